/* The demo: one kernel written for two SMs side by side, the host reference at work, and the kernels run on
 * ptxvm. */
#include <qdnn/emit.h>

#include "demo/demo.h"
#include "host_ref/host_ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One kernel, two SMs ---- */

enum { COLUMN = 58, SHOWN = 28 };

/* Copies the next line of text, cut to the column, and returns where the one after it starts. */
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

/* Where the bodies (behind the register declarations, whose numbers differ) begin to differ, in lines of the
 * body. */
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

static bool show_two_sms(void)
{
    qdnnPtx_t old, new;
    if (!emit("sm_75", &old))
        return false;
    if (!emit("sm_90", &new)) {
        qdnnFreePtx(&old);
        return false;
    }
    int from = first_difference(body(old.ptx), body(new.ptx)) - 8;
    const char *left = skip_lines(body(old.ptx), from), *right = skip_lines(body(new.ptx), from);
    printf("One kernel, two SMs: %s to bf16 in groups of 64, where its text begins to differ\n\n%-*s | %s\n",
           old.entry, COLUMN, "sm_75: bf16 by integer arithmetic", "sm_90: bf16 by instructions");
    for (int i = 0; i < SHOWN; i++) {
        char a[COLUMN + 1], b[COLUMN + 1];
        left = take_line(left, a);
        right = take_line(right, b);
        printf("%-*s %c %s\n", COLUMN, a, strcmp(a, b) ? '|' : ' ', b);
    }
    qdnnFreePtx(&old);
    qdnnFreePtx(&new);
    return true;
}

/* ---- The host reference ---- */

enum { N = 64, GROUP = 32 };

static void show_format(const char *name, qdnnFormat_t format, const float *x)
{
    ref_quant_spec spec = {.format = format,
                           .data = QDNN_DATA_F32,
                           .scale = QDNN_DATA_F32,
                           .zero = QDNN_DATA_U8,
                           .group_size = GROUP,
                           .floor = REF_DEFAULT_FLOOR};
    float scale[N / GROUP], y[N], worst = 0;
    uint8_t zero[N / GROUP], codes[N / 2];
    ref_scale(&spec, x, N, scale, zero);
    ref_quantize(&spec, x, N, scale, zero, codes);
    ref_dequantize(&spec, codes, N, scale, zero, y);
    for (int i = 0; i < N; i++)
        worst = fmaxf(worst, fabsf(x[i] - y[i]));
    printf("  %-8s scales %.6f %.6f   codes", name, scale[0], scale[1]);
    for (int i = 0; i < 10; i++)
        printf(" %02x", codes[i]);
    printf(" ...  largest error %.4f\n", worst);
}

static void show_host_ref(void)
{
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = sinf((float)i * 0.37f) * (i < GROUP ? 1.0f : 3.0f);
    printf("\nThe host reference: %d values of a sine, two groups of %d, from %.3f %.3f %.3f ...\n\n", N,
           GROUP, x[0], x[1], x[2]);
    show_format("int4", QDNN_FORMAT_INT4, x);
    show_format("int4_zp", QDNN_FORMAT_INT4_ZP, x);
    show_format("nf4", QDNN_FORMAT_NF4, x);
}

int main(void)
{
    if (!show_two_sms())
        return 1;
    show_host_ref();
    return show_on_ptxvm() ? 0 : 1;
}
