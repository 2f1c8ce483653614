/* A source file with mistakes compiled in. An expression becomes SOURCE_EITHER(n, (mutated), (original)), a statement that may be left out is
 * put behind an if; the original part contains the places within it, rewritten in the same way. */
#include "mutate_sources/rewrite.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
    const source *s;
    const numbered *list; /* outer places first */
    int count;
    tool_text *out;
    int next_block;
} writer;

static int compare(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    if (x->mistake->first != y->mistake->first)
        return x->mistake->first < y->mistake->first ? -1 : 1;
    if (x->mistake->end != y->mistake->end)
        return x->mistake->end > y->mistake->end ? -1 : 1;
    /* A statement contains the expression that it consists of, but for the semicolon. */
    if (x->mistake->is_statement != y->mistake->is_statement)
        return x->mistake->is_statement ? -1 : 1;
    return x->number - y->number;
}

static void copy(writer *w, int from, int to)
{
    for (; w->next_block < w->s->n_blocks && w->s->blocks[w->next_block].at <= to; w->next_block++) {
        const block *b = &w->s->blocks[w->next_block];
        if (b->at <= from)
            continue;
        tool_append(w->out, w->s->text + from, (size_t)(b->at - from));
        tool_printf(w->out, " SOURCE_REACHED(%u)", b->id);
        from = b->at;
    }
    tool_append(w->out, w->s->text + from, (size_t)(to - from));
}

/* The same without line ends, so that the original behind it stays on its lines. A comment to the end of its line would swallow the rest. */
static void copy_in_one_line(writer *w, int from, int to)
{
    for (int i = from; i < to; i++) {
        const char *s = w->s->text + i;
        if (s[0] == '/' && s[1] == '/')
            while (i < to && w->s->text[i] != '\n')
                i++;
        const char c = i < to && w->s->text[i] != '\n' ? w->s->text[i] : ' ';
        tool_append(w->out, &c, 1);
    }
}

static void copy_mutated(writer *w, const mistake *m)
{
    copy_in_one_line(w, m->first, m->at);
    for (const char *c = m->with; *c; c++)
        tool_append(w->out, *c == '\n' ? " " : c, 1);
    copy_in_one_line(w, m->at + m->length, m->end);
}

/* Writes [from, to) with the places from list[*next] on that lie in it. */
static void write_span(writer *w, int from, int to, int *next)
{
    while (*next < w->count && w->list[*next].mistake->first < to && w->list[*next].mistake->first >= from) {
        const numbered *n = &w->list[*next];
        const mistake *m = n->mistake;
        copy(w, from, m->first);
        ++*next;
        if (m->is_statement) {
            tool_printf(w->out, "{ if (!SOURCE_MUTANT(%d)) { ", n->number);
        } else {
            tool_printf(w->out, "SOURCE_EITHER(%d, (", n->number);
            copy_mutated(w, m);
            tool_printf(w->out, "), (");
        }
        write_span(w, m->first, m->end, next);
        tool_printf(w->out, m->is_statement ? " } }" : "))");
        from = m->end;
    }
    copy(w, from, to);
}

static bool is_nested(const numbered *list, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count && list[k].mistake->first < list[i].mistake->end; k++)
            if (list[k].mistake->end > list[i].mistake->end)
                return false;
    return true;
}

bool rewrite(const source *s, const char *root, const numbered *list, int count, tool_text *out)
{
    numbered *sorted = malloc((size_t)(count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (int i = 0; i < count; i++)
        sorted[i] = list[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    const bool ok = is_nested(sorted, count);
    if (ok) {
        writer w = {.s = s, .list = sorted, .count = count, .out = out};
        int next = 0;
        tool_printf(out, "#include \"%s/tests/mutate_sources/inside.h\"\n#line 1 \"%s/%s\"\n", root, root,
                    s->path);
        write_span(&w, 0, (int)strlen(s->text), &next);
    }
    free(sorted);
    return ok && !out->failed;
}
