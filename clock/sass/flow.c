/* How often each basic block runs. Unknown are the runs of each block and of each edge between blocks; known:
 *
 *   entry    the first block runs once for each warp
 *   anchor   loads, stores, shuffles, mma and the like are neither dropped nor merged by ptxas: the blocks
 *            that hold copies of one, together, run as often as ptxvm executed its PTX line
 *   vote     of a block without an anchor: the most frequent count of PTX lines that have one instruction,
 *            in this block; branches and joins do not vote, for ptxas makes its own, nor does what it moves
 *            out of loops
 *   slow     ptxas' slow paths of div, sqrt and rcp are for numbers out of the ordinary range: never taken
 *   flow     what flows into a block flows out of it
 *
 *   entered  a loop that a path of equal warps runs is entered at least once. Where the solution runs it in a
 *            circle that nothing leads to, its blocks' votes are wrong (ptxas has peeled a trip off it, and
 *            dropped lines from that copy): all is solved again without them
 *
 * Least squares with these as equations, weighted by how far each can be trusted, over numbers >= 0. Where
 * several flows fit (a loop that ptxas has unrolled, and the rest of it), the one with the fewest
 * instructions is taken. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"

enum { TERMS = 256 };

/* A row of the equations: the sum of the terms, each 1 or -1 times an unknown, is `rhs`. */
typedef struct equation {
    int unknown[TERMS];
    double factor[TERMS];
    int n;
    double rhs;
} equation;

typedef struct flow {
    const sass_code *code;
    const uint64_t *lines; /* how often each PTX line was executed */
    int n_lines;
    double scale; /* unknowns count in it */
    double *g, *h, *x;
    int n, next_slack;
    bool *anchored; /* by block */
    bool *circular; /* by loop: a solution ran it without entering it */
    bool solved;    /* equations are compared with the solution x, not added */
    double missed, counted;
} flow;

typedef enum {
    ENTRY,
    ANCHOR,
    VOTE,
    HUNCH, /* a vote without a clear majority: less than flow, for ptxas moves single instructions between blocks */
    FLOW
} reason;
static const double weights[] = {[ENTRY] = 10, [ANCHOR] = 3, [VOTE] = 1, [HUNCH] = 0.02, [FLOW] = 0.1};
#define REGULAR 1e-10
#define LEAN    1e-6 /* the price of an instruction */
#define BACK    2e-4 /* of a jump back: more than what leads to a loop may cost */
#define ZERO    1e-6
#define HELD    1e6

static void add_term(equation *e, int unknown, double factor)
{
    for (int i = 0; i < e->n; i++)
        if (e->unknown[i] == unknown) {
            e->factor[i] += factor;
            return;
        }
    if (e->n == TERMS)
        return;
    e->unknown[e->n] = unknown;
    e->factor[e->n++] = factor;
}

/* How far the solution misses an equation. */
static void compare(flow *f, const equation *e, reason why)
{
    double got = 0;
    for (int i = 0; i < e->n; i++)
        got += e->factor[i] * f->x[e->unknown[i]] * f->scale;
    if (why != VOTE && why != HUNCH)
        f->missed += fabs(got - e->rhs);
    f->counted += why == ANCHOR ? e->rhs : 0;
}

static void add_equation(flow *f, const equation *e, reason why)
{
    double w = weights[why] * weights[why];
    if (f->solved) {
        compare(f, e, why);
        return;
    }
    for (int i = 0; i < e->n; i++) {
        f->h[e->unknown[i]] += w * e->factor[i] * e->rhs / f->scale;
        for (int j = 0; j < e->n; j++)
            f->g[e->unknown[i] * f->n + e->unknown[j]] += w * e->factor[i] * e->factor[j];
    }
}

static void add_count(flow *f, int block, double count, reason why)
{
    equation e = {.rhs = count};
    add_term(&e, block, 1);
    add_equation(f, &e, why);
}

static uint64_t count_of(const flow *f, int line)
{
    return line > 0 && line < f->n_lines ? f->lines[line] : 0;
}

/* ---- Anchors ---- */

static bool is_anchor(const sass_inst *inst)
{
    const bool kept = inst->kind > SASS_COMPUTE && inst->kind <= SASS_FENCE && inst->space != SASS_CONSTANT &&
                      inst->space != SASS_LOCAL; /* spills have no line */
    return kept || sass_is(inst, "IDP") || sass_is(inst, "MUFU");
}

static bool same_anchor(const sass_inst *a, const sass_inst *b)
{
    return a->line == b->line && a->base_length == b->base_length &&
           memcmp(a->text, b->text, (size_t)a->base_length) == 0;
}

/* The copies of an anchor: all of them, and those that are not guarded. */
typedef struct copies {
    equation all, sure;
    bool guarded;
} copies;

/* Of the anchor at instruction i; false: this is not the first of its copies, or it is never reached. */
static bool find_copies(const flow *f, int i, copies *c)
{
    const sass_code *code = f->code;
    *c = (copies){.guarded = false};
    c->all.rhs = c->sure.rhs = (double)count_of(f, code->insts[i].line);
    for (int b = 0; b < code->n_blocks; b++)
        for (int k = code->blocks[b].first; k < code->blocks[b].first + code->blocks[b].count; k++) {
            if (!code->blocks[b].reached || !same_anchor(&code->insts[k], &code->insts[i]))
                continue;
            if (k < i)
                return false;
            add_term(&c->all, b, 1);
            if (code->insts[k].guarded)
                c->guarded = true;
            else
                add_term(&c->sure, b, 1);
        }
    return c->all.n > 0;
}

/* A guarded copy may be issued and do nothing: then all copies run at least as often as the line, and those
 * that are not guarded at most so. What is between is unknown, too. */
static void add_anchors(flow *f)
{
    copies c;
    for (int i = 0; i < f->code->n_insts; i++) {
        if (!is_anchor(&f->code->insts[i]) || !find_copies(f, i, &c))
            continue;
        if (c.guarded)
            add_term(&c.all, f->next_slack++, -1);
        add_equation(f, &c.all, ANCHOR);
        if (c.guarded && c.sure.n) {
            add_term(&c.sure, f->next_slack++, 1);
            add_equation(f, &c.sure, ANCHOR);
        }
    }
}

static int count_slacks(const flow *f)
{
    copies c;
    int n = 0;
    for (int i = 0; i < f->code->n_insts; i++)
        if (is_anchor(&f->code->insts[i]) && find_copies(f, i, &c) && c.guarded)
            n += c.sure.n ? 2 : 1;
    return n;
}

/* A block with an anchor that is not guarded needs no vote. */
static void mark_anchored(flow *f)
{
    for (int b = 0; b < f->code->n_blocks; b++)
        for (int i = f->code->blocks[b].first; i < f->code->blocks[b].first + f->code->blocks[b].count; i++)
            f->anchored[b] |= is_anchor(&f->code->insts[i]) && !f->code->insts[i].guarded;
}

/* ---- Votes ---- */

static bool is_alone(const sass_code *code, int line)
{
    int n = 0;
    for (int i = 0; i < code->n_insts; i++)
        n += code->insts[i].line == line;
    return n == 1;
}

/* Without calls a warp runs a block outside all loops once at most. */
static bool is_once(const sass_code *code, int b)
{
    for (int e = 0; e < code->n_edges; e++)
        if (code->edges[e].call)
            return false;
    return code->blocks[b].loop < 0;
}

static bool is_in_circle(const flow *f, int b)
{
    int loop = f->code->blocks[b].loop;
    while (loop >= 0 && !f->circular[loop])
        loop = f->code->loops[loop].parent;
    return loop >= 0;
}

static void add_vote(flow *f, int b)
{
    const sass_block *block = &f->code->blocks[b];
    const bool once = is_once(f->code, b);
    uint64_t counts[TERMS];
    int votes[TERMS], n = 0, all = 0, best = 0;
    for (int i = block->first; i < block->first + block->count; i++) {
        const sass_inst *inst = &f->code->insts[i];
        uint64_t count = count_of(f, inst->line);
        if (!count || inst->guarded || inst->unit == SASS_UNIT_BRANCH || !is_alone(f->code, inst->line))
            continue;
        if (once && (double)count > f->scale) /* ptxas has moved it out of a loop */
            continue;
        int k = 0;
        while (k < n && counts[k] != count)
            k++;
        if (k == TERMS)
            continue;
        votes[k] = k < n ? votes[k] + 1 : 1;
        counts[k] = count;
        n += k == n;
        all++;
    }
    for (int k = 1; k < n; k++)
        best = votes[k] > votes[best] ? k : best;
    if (n)
        add_count(f, b, (double)counts[best], votes[best] >= 2 && 2 * votes[best] > all ? VOTE : HUNCH);
}

static const sass_inst *last_of(const sass_code *code, int b)
{
    return &code->insts[code->blocks[b].first + code->blocks[b].count - 1];
}

/* ---- Flow ---- */

static void add_flow(flow *f, int b)
{
    const sass_code *code = f->code;
    const sass_inst *last = last_of(code, b);
    equation in = {.n = 0}, out = {.n = 0};
    for (int i = 0; i < code->n_edges; i++) {
        if (code->edges[i].to == b)
            add_term(&in, code->n_blocks + i, -1);
        if (code->edges[i].from == b && !code->edges[i].call)
            add_term(&out, code->n_blocks + i, -1);
        if (code->edges[i].from == b && code->edges[i].call && !last->guarded) { /* each run calls */
            equation call = {.n = 0};
            add_term(&call, b, 1);
            add_term(&call, code->n_blocks + i, -1);
            add_equation(f, &call, FLOW);
        }
    }
    if (b > 0 && in.n) {
        add_term(&in, b, 1);
        add_equation(f, &in, FLOW);
    }
    if (out.n && !(last->kind == SASS_EXIT && last->guarded)) {
        add_term(&out, b, 1);
        add_equation(f, &out, FLOW);
    }
}

/* ---- Loops ---- */

static bool enters(const sass_code *code, const sass_edge *e, int loop)
{
    return e->to == code->loops[loop].head && !sass_in_loop(code, e->from, loop);
}

/* At least once; the slack is what is more. */
static void add_entries(flow *f, int loop)
{
    const sass_code *code = f->code;
    equation entries = {.rhs = f->scale};
    for (int e = 0; e < code->n_edges; e++)
        if (enters(code, &code->edges[e], loop))
            add_term(&entries, code->n_blocks + e, 1);
    add_term(&entries, f->next_slack++, -1);
    add_equation(f, &entries, ANCHOR);
}

/* Finds loops that the solution runs, but hardly enters. False: there is no new one. */
static bool find_circles(flow *f)
{
    const sass_code *code = f->code;
    bool found = false;
    for (int l = 0; l < code->n_loops; l++) {
        double entries = 0;
        for (int e = 0; e < code->n_edges; e++)
            entries += enters(code, &code->edges[e], l) ? f->x[code->n_blocks + e] : 0;
        if (f->circular[l] || f->x[code->loops[l].head] < 0.5 || entries > 0.5)
            continue;
        f->circular[l] = true;
        found = true;
    }
    return found;
}

/* ---- All of it ---- */

/* All equations; once to solve them, once to see how far they are met. */
static void set_up(flow *f, uint64_t warps)
{
    for (int i = 0; i < f->n; i++)
        f->g[i * f->n + i] += REGULAR;
    add_count(f, 0, (double)warps, ENTRY);
    f->next_slack = f->code->n_blocks + f->code->n_edges;
    add_anchors(f);
    mark_anchored(f);
    for (int b = 0; b < f->code->n_blocks; b++) {
        if (!f->code->blocks[b].reached || sass_calls_slow_path(last_of(f->code, b)))
            add_count(f, b, 0, ENTRY);
        else if (!f->anchored[b] && !is_in_circle(f, b))
            add_vote(f, b);
        add_flow(f, b);
    }
    for (int l = 0; l < f->code->n_loops; l++)
        if (f->circular[l])
            add_entries(f, l);
}

/* A jump back costs a little, so that a loop is entered, not run in a circle that nothing leads to. */
static double price(const flow *f, int unknown)
{
    const sass_code *code = f->code;
    if (unknown < code->n_blocks)
        return LEAN * code->blocks[unknown].count;
    if (unknown >= code->n_blocks + code->n_edges)
        return 0;
    const sass_edge *e = &code->edges[unknown - code->n_blocks];
    const int loop = code->blocks[e->to].loop;
    return loop >= 0 && code->loops[loop].head == e->to && sass_in_loop(code, e->from, loop) ? BACK : 0;
}

/* First with a price, which finds out what is 0; then the rest without it. */
static bool solve(flow *f)
{
    for (int i = 0; i < f->n; i++)
        f->h[i] -= price(f, i);
    if (!nnls(f->g, f->h, f->n, f->x))
        return false;
    for (int i = 0; i < f->n; i++) {
        f->h[i] += price(f, i);
        f->g[i * f->n + i] += f->x[i] < ZERO ? HELD : 0;
    }
    return nnls(f->g, f->h, f->n, f->x);
}

static bool allocate(flow *f)
{
    size_t n = (size_t)f->n;
    f->g = calloc(n * n, sizeof *f->g);
    f->h = calloc(n, sizeof *f->h);
    f->x = calloc(n, sizeof *f->x);
    f->anchored = calloc((size_t)f->code->n_blocks, sizeof *f->anchored);
    f->circular = calloc((size_t)f->code->n_loops + 1, sizeof *f->circular);
    return f->g && f->h && f->x && f->anchored && f->circular;
}

static bool solve_once(flow *f, uint64_t warps)
{
    memset(f->g, 0, (size_t)f->n * (size_t)f->n * sizeof *f->g);
    memset(f->h, 0, (size_t)f->n * sizeof *f->h);
    set_up(f, warps);
    return solve(f);
}

bool sass_solve(const sass_code *code, const uint64_t *lines, int n_lines, uint64_t warps, bool merged,
                double *blocks, double *edges, double *misfit)
{
    flow f = {.code = code,
              .lines = lines,
              .n_lines = n_lines,
              .scale = warps ? (double)warps : 1,
              .n = code->n_blocks + code->n_edges};
    f.n += count_slacks(&f) + code->n_loops;
    bool ok = allocate(&f) && solve_once(&f, warps);
    while (ok && !merged && find_circles(&f))
        ok = solve_once(&f, warps);
    f.solved = true;
    if (ok)
        set_up(&f, warps);
    for (int b = 0; ok && b < code->n_blocks; b++)
        blocks[b] = f.x[b] * f.scale;
    for (int e = 0; ok && e < code->n_edges; e++)
        edges[e] = f.x[code->n_blocks + e] * f.scale;
    *misfit = f.counted > 0 ? f.missed / f.counted : 0;
    free(f.g);
    free(f.h);
    free(f.x);
    free(f.anchored);
    free(f.circular);
    return ok;
}
