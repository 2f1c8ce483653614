/* The blocks of a warp in order. Where control may go on in several ways, each is taken as often as flow.c has counted it, evenly spread:
 * the k-th of n times is due at k/n, and what is due first is taken. Of two that are due at the same time the one that stays in the loop
 * is first, so that a loop that is entered e times and jumps back b times goes back b/e times before each exit. */
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"

#define NEVER 1e30
#define SAME  1e-3 /* counts are estimates */

static double due(double times, uint32_t taken)
{
    return times > SAME ? (taken + 1) / times : NEVER;
}

static int depth_of(const sass_code *code, int block)
{
    return code->blocks[block].loop < 0 ? -1 : code->loops[code->blocks[block].loop].depth;
}

/* A jump back is as deep as the loop that it stays in. */
static int depth_of_edge(const sass_code *code, const sass_edge *e)
{
    int from = depth_of(code, e->from), to = depth_of(code, e->to);
    return to < from ? to : from;
}

sass_walk sass_walk_begin(const sass_code *code, const sass_path *path)
{
    double blocks = 0;
    for (int b = 0; b < code->n_blocks; b++)
        blocks += path->blocks[b];
    return (sass_walk){.code = code,
                       .of = path,
                       .taken = calloc((size_t)code->n_edges + 1, sizeof(uint32_t)),
                       .calls = calloc((size_t)code->n_blocks + 1, sizeof(int)),
                       .at = -1,
                       .left = (uint64_t)(1.01 * blocks) + (uint64_t)code->n_blocks};
}

void sass_walk_free(sass_walk *walk)
{
    free(walk->taken);
    free(walk->calls);
    walk->taken = NULL;
    walk->calls = NULL;
}

/* The edge to follow; -1: the warp exits here. */
static int choose(const sass_walk *walk)
{
    const sass_code *code = walk->code;
    double earliest = NEVER, leaving = 0;
    int best = -1;
    for (int e = 0; e < code->n_edges; e++) {
        if (code->edges[e].from != walk->at || (code->edges[e].call && walk->of->edges[e] < SAME))
            continue;
        double at = due(walk->of->edges[e], walk->taken[e]);
        leaving += code->edges[e].call ? 0 : walk->of->edges[e];
        if (best < 0 || at < earliest - SAME ||
            (at < earliest + SAME &&
             depth_of_edge(code, &code->edges[e]) > depth_of_edge(code, &code->edges[best]))) {
            best = e;
            earliest = at;
        }
    }
    const sass_block *block = &code->blocks[walk->at];
    const bool may_exit = code->insts[block->first + block->count - 1].kind == SASS_EXIT;
    return may_exit && due(walk->of->blocks[walk->at] - leaving, 0) < earliest - SAME ? -1 : best;
}

static int calls_on(const sass_walk *walk)
{
    for (int e = 0; e < walk->code->n_edges; e++)
        if (walk->code->edges[e].from == walk->at && walk->code->edges[e].call &&
            (walk->taken[e] + 0.5) < walk->of->edges[e])
            return e;
    return -1;
}

static int next_block(sass_walk *walk)
{
    const sass_code *code = walk->code;
    if (walk->at < 0)
        return 0;
    const sass_block *block = &code->blocks[walk->at];
    const sass_inst *last = &code->insts[block->first + block->count - 1];
    int edge = last->kind == SASS_CALL ? calls_on(walk) : -1;
    if (edge >= 0 && walk->n_calls <= code->n_blocks)
        walk->calls[walk->n_calls++] = walk->at + 1;
    else if (last->kind == SASS_RETURN && !last->guarded)
        return walk->n_calls ? walk->calls[--walk->n_calls] : -1;
    else
        edge = choose(walk);
    if (edge < 0)
        return -1;
    walk->taken[edge]++;
    return code->edges[edge].to;
}

int sass_walk_next(sass_walk *walk)
{
    walk->at = walk->taken && walk->calls && walk->left-- ? next_block(walk) : -1;
    if (walk->at < 0)
        sass_walk_free(walk);
    return walk->at;
}

double sass_trips(const sass_code *code, const sass_path *path, int loop)
{
    const int head = code->loops[loop].head;
    double entries = path->blocks[head];
    for (int e = 0; e < code->n_edges; e++)
        if (code->edges[e].to == head && sass_in_loop(code, code->edges[e].from, loop))
            entries -= path->edges[e];
    return entries > SAME ? path->blocks[head] / entries : 0;
}
