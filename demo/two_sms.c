/* One kernel emitted for two SMs, side by side, from where its text begins to differ. */
#include "demo/demo.h"

#include <qdnn/emit.h>

#include <stdio.h>
#include <string.h>

enum { COLUMN = 52, BEFORE = 2, SHOWN = 9 };

/* Copies the next line of text, truncated to the column, and returns the start of the line after it. */
static const char *take_line(const char *text, char line[COLUMN + 1])
{
    size_t length = strcspn(text, "\n"), kept = 0;
    for (size_t i = 0; i < length && kept < COLUMN; i++)
        line[kept++] = text[i] == '\t' ? ' ' : text[i];
    line[kept] = 0;
    return text[length] ? text + length + 1 : text + length;
}

static const char *skip_lines(const char *text, int count)
{
    while (count-- > 0 && *text)
        text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != 0);
    return text;
}

/* Skips the register declarations, whose numbers differ. */
static const char *body(const char *ptx)
{
    const char *start = strstr(ptx, "ld.param");
    return start ? start : ptx;
}

static int first_difference(const char *left, const char *right)
{
    int line = 0;
    for (; *left && *left == *right; left++, right++)
        line += *left == '\n';
    return line;
}

static bool emit(const char *sm, qdnnPtx_t *out)
{
    const char *settings[] = {"data=bf16", "group_size=64", NULL};
    if (qdnnEmitPtx("dequantize_int4", sm, settings, out) == QDNN_STATUS_SUCCESS)
        return true;
    char why[512];
    qdnnGetLastErrorString(why, sizeof why);
    fprintf(stderr, "demo: %s\n", why);
    return false;
}

static void print(const qdnnPtx_t *old, const qdnnPtx_t *new)
{
    int from = first_difference(body(old->ptx), body(new->ptx)) - BEFORE;
    const char *left = skip_lines(body(old->ptx), from), *right = skip_lines(body(new->ptx), from);
    printf("One kernel, two SMs: %s to bf16, where its text begins to differ\n\n%-*s | %s\n", old->entry,
           COLUMN, "sm_75: bf16 by integer arithmetic", "sm_90: bf16 by instructions");
    for (int i = 0; i < SHOWN; i++) {
        char a[COLUMN + 1], b[COLUMN + 1];
        left = take_line(left, a);
        right = take_line(right, b);
        printf("%-*s %c %s\n", COLUMN, a, strcmp(a, b) ? '|' : ' ', b);
    }
    printf("\n");
}

bool show_two_sms(void)
{
    qdnnPtx_t old, new;
    if (!emit("sm_75", &old))
        return false;
    bool ok = emit("sm_90", &new);
    if (ok) {
        print(&old, &new);
        qdnnFreePtx(&new);
    }
    qdnnFreePtx(&old);
    return ok;
}
