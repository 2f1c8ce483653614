/* Natural loops: a jump back to a block that dominates the one it comes from. */
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"

typedef struct finder {
    sass_code *code;
    int *order, *number; /* reached blocks, from the entry on; the place of each in it, -1: not reached */
    int *dominator;      /* immediate, by place */
    int n;
    bool *body; /* of one loop */
    int *todo;
} finder;

/* ---- Dominators (Cooper, Harvey and Kennedy) ---- */

/* The blocks behind a block come first, so the order is filled from its end. */
static void visit(finder *f, int block, int *next)
{
    f->number[block] = 0;
    for (int e = 0; e < f->code->n_edges; e++)
        if (f->code->edges[e].from == block && f->number[f->code->edges[e].to] < 0)
            visit(f, f->code->edges[e].to, next);
    f->order[--*next] = block;
}

static void number_blocks(finder *f)
{
    int next = f->code->n_blocks;
    for (int b = 0; b < f->code->n_blocks; b++)
        f->number[b] = -1;
    visit(f, 0, &next);
    f->n = f->code->n_blocks - next;
    memmove(f->order, f->order + next, (size_t)f->n * sizeof *f->order);
    for (int i = 0; i < f->n; i++)
        f->number[f->order[i]] = i;
}

static int meet(const finder *f, int a, int b)
{
    while (a != b) {
        while (a > b)
            a = f->dominator[a];
        while (b > a)
            b = f->dominator[b];
    }
    return a;
}

/* One pass; true: something has changed. */
static bool narrow_dominators(finder *f)
{
    bool changed = false;
    for (int i = 1; i < f->n; i++) {
        int best = -1;
        for (int e = 0; e < f->code->n_edges; e++) {
            int from = f->number[f->code->edges[e].from];
            if (f->number[f->code->edges[e].to] == i && from >= 0 && f->dominator[from] >= 0)
                best = best < 0 ? from : meet(f, from, best);
        }
        changed |= f->dominator[i] != best;
        f->dominator[i] = best;
    }
    return changed;
}

static void find_dominators(finder *f)
{
    for (int i = 0; i < f->n; i++)
        f->dominator[i] = i ? -1 : 0;
    while (narrow_dominators(f))
        ;
}

static bool is_back_edge(const finder *f, const sass_edge *e)
{
    int to = f->number[e->to], from = f->number[e->from];
    if (from < 0)
        return false;
    while (from > to)
        from = f->dominator[from];
    return from == to;
}

/* ---- Loops ---- */

static void add_to_body(finder *f, int block, int *n)
{
    if (!f->body[block]) {
        f->body[block] = true;
        f->todo[(*n)++] = block;
    }
}

/* What reaches a jump back without passing the head. Returns the number of blocks. */
static int find_body(finder *f, int head)
{
    const sass_code *code = f->code;
    int n = 0;
    memset(f->body, 0, (size_t)code->n_blocks * sizeof *f->body);
    f->body[head] = true;
    for (int e = 0; e < code->n_edges; e++)
        if (code->edges[e].to == head && is_back_edge(f, &code->edges[e]))
            add_to_body(f, code->edges[e].from, &n);
    for (int i = 0; i < n; i++)
        for (int e = 0; e < code->n_edges; e++)
            if (code->edges[e].to == f->todo[i] && f->number[code->edges[e].from] >= 0)
                add_to_body(f, code->edges[e].from, &n);
    return n + 1;
}

static bool is_head(const finder *f, int block)
{
    for (int e = 0; e < f->code->n_edges; e++)
        if (f->code->edges[e].to == block && is_back_edge(f, &f->code->edges[e]))
            return true;
    return false;
}

static int by_size(const void *a, const void *b)
{
    const sass_loop *x = a, *y = b;
    return x->n_blocks != y->n_blocks ? x->n_blocks - y->n_blocks : x->head - y->head;
}

/* From small to large: the first loop that has a block is its innermost, and the first that has a whole loop is around it. */
static void nest(finder *f)
{
    sass_code *code = f->code;
    for (int l = 0; l < code->n_loops; l++) {
        sass_loop *loop = &code->loops[l];
        find_body(f, loop->head);
        loop->parent = -1;
        for (int b = 0; b < code->n_blocks; b++) {
            if (!f->body[b])
                continue;
            loop->bytes += SASS_INST_BYTES * code->blocks[b].count;
            if (code->blocks[b].loop < 0)
                code->blocks[b].loop = l;
        }
        for (int inner = 0; inner < l; inner++)
            if (f->body[code->loops[inner].head] && code->loops[inner].parent < 0)
                code->loops[inner].parent = l;
    }
    for (int l = code->n_loops - 1; l >= 0; l--)
        code->loops[l].depth = code->loops[l].parent < 0 ? 0 : code->loops[code->loops[l].parent].depth + 1;
}

static void find_loops(finder *f)
{
    sass_code *code = f->code;
    number_blocks(f);
    find_dominators(f);
    for (int b = 0; b < code->n_blocks; b++) {
        code->blocks[b].loop = -1;
        if (f->number[b] >= 0 && is_head(f, b))
            code->loops[code->n_loops++] = (sass_loop){.head = b, .n_blocks = find_body(f, b)};
    }
    qsort(code->loops, (size_t)code->n_loops, sizeof *code->loops, by_size);
    nest(f);
}

bool sass_find_loops(sass_code *code)
{
    const size_t n = (size_t)code->n_blocks;
    finder f = {.code = code,
                .order = calloc(n, sizeof(int)),
                .number = calloc(n, sizeof(int)),
                .dominator = calloc(n, sizeof(int)),
                .body = calloc(n, sizeof(bool)),
                .todo = calloc(n, sizeof(int))};
    code->loops = calloc(n, sizeof *code->loops);
    bool ok = f.order && f.number && f.dominator && f.body && f.todo && code->loops;
    if (ok)
        find_loops(&f);
    free(f.order);
    free(f.number);
    free(f.dominator);
    free(f.body);
    free(f.todo);
    return ok;
}

bool sass_in_loop(const sass_code *code, int b, int loop)
{
    int l = code->blocks[b].loop;
    while (l >= 0 && l != loop)
        l = code->loops[l].parent;
    return l == loop && l >= 0;
}
