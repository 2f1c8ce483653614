#include "texts/normal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of one kind of names, such as %r or $L, by the number that the text gives them; 0: has not appeared yet. */
typedef struct numbering {
    char kind[8];
    unsigned *to, room, last;
} numbering;

enum { KINDS_MAX = 16 };

typedef struct writer {
    numbering kinds[KINDS_MAX];
    int n_kinds;
    char *at;
    bool failed;
} writer;

/* Names that builders count: a kind of %r, %rd, $L and digits. Special registers, such as %tid, have none; %pm0 and the like keep
 * theirs in relation to each other only, which is enough where one text has one of them. */
static size_t counted_name(const char *text, size_t *kind)
{
    size_t n = 1;
    if (*text != '%' && *text != '$')
        return 0;
    while (isalpha((unsigned char)text[n]) || text[n] == '_')
        n++;
    *kind = n;
    while (isdigit((unsigned char)text[n]))
        n++;
    return n > *kind && *kind < sizeof((numbering){0}.kind) && !isalnum((unsigned char)text[n]) &&
                   text[n] != '_'
               ? n
               : 0;
}

static numbering *numbering_of(writer *w, const char *kind, size_t length)
{
    for (int i = 0; i < w->n_kinds; i++)
        if (strlen(w->kinds[i].kind) == length && memcmp(w->kinds[i].kind, kind, length) == 0)
            return &w->kinds[i];
    if (w->n_kinds == KINDS_MAX)
        return NULL;
    memcpy(w->kinds[w->n_kinds].kind, kind, length);
    return &w->kinds[w->n_kinds++];
}

static unsigned number_of(writer *w, numbering *kind, unsigned old)
{
    if (!kind || old > 1u << 24) {
        w->failed = true;
        return 0;
    }
    if (old >= kind->room) {
        const unsigned room = (old + 1) * 2;
        unsigned *more = realloc(kind->to, room * sizeof *more);
        if (!more) {
            w->failed = true;
            return 0;
        }
        memset(more + kind->room, 0, (room - kind->room) * sizeof *more);
        kind->to = more;
        kind->room = room;
    }
    if (!kind->to[old])
        kind->to[old] = ++kind->last;
    return kind->to[old];
}

static bool is_left_out(const char *line, size_t length)
{
    while (length && (*line == ' ' || *line == '\t'))
        line++, length--;
    return length == 0 || strncmp(line, "//", 2) == 0 ||
           (strncmp(line, ".reg ", 5) == 0 && memchr(line, '<', length));
}

/* One line, up to a comment; the blanks before it go with it. */
static void write_line(writer *w, const char *line, const char *end)
{
    char *first = w->at;
    while (line < end && strncmp(line, "//", 2) != 0) {
        size_t kind, length = counted_name(line, &kind);
        if (length) {
            const unsigned old = (unsigned)strtoul(line + kind, NULL, 10);
            w->at +=
                sprintf(w->at, "%.*s%u", (int)kind, line, number_of(w, numbering_of(w, line, kind), old));
            line += length;
        } else {
            *w->at++ = *line++;
        }
    }
    while (w->at > first && (w->at[-1] == ' ' || w->at[-1] == '\t'))
        w->at--;
    *w->at++ = '\n';
}

char *normal_text(const char *ptx)
{
    writer w = {0};
    /* A number may become longer, to as many digits as there are names: twice the text is enough for those of one digit. */
    char *text = malloc(4 * strlen(ptx) + 64);
    w.at = text;
    for (const char *line = ptx; text && *line;) {
        const size_t length = strcspn(line, "\n");
        if (!is_left_out(line, length))
            write_line(&w, line, line + length);
        line += length + (line[length] == '\n');
    }
    for (int i = 0; i < w.n_kinds; i++)
        free(w.kinds[i].to);
    if (text)
        *w.at = 0;
    if (w.failed) {
        free(text);
        return NULL;
    }
    return text;
}

uint64_t normal_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001B3);
    return hash;
}
