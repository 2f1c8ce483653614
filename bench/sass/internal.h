/* Between the parts of sass.h: the listing as basic blocks, and what is solved for. */
#ifndef BENCH_SASS_INTERNAL_H
#define BENCH_SASS_INTERNAL_H

#include "bench/sass/sass.h"

typedef struct sass_inst {
    const char *opcode; /* in the listing, "LDG.E.CONSTANT" */
    int opcode_length, base_length;
    const char *target; /* label of a branch or call; null: none */
    int target_length;
    int line;         /* of the PTX */
    bool guarded;     /* @P0 */
    bool conditional; /* guarded, or a branch with a predicate among its operands */
} sass_inst;

typedef struct sass_block {
    int first, count;
    bool reached;
} sass_block;

/* Blocks follow each other, or one calls the other: then control also goes on behind the call. */
typedef struct sass_edge {
    int from, to;
    bool call;
} sass_edge;

typedef struct sass_code {
    sass_inst *insts;
    sass_block *blocks;
    sass_edge *edges;
    int n_insts, n_blocks, n_edges;
} sass_code;

/* listing.c. False: the kernel is not in the listing, or there is no memory. */
bool sass_parse(const char *listing, const char *kernel, sass_code *code);
void sass_code_free(sass_code *code);
bool sass_is(const sass_inst *inst, const char *base); /* the opcode up to its first dot */

/* ptxas' own code for numbers that its short sequence for div, sqrt or rcp cannot do. */
bool sass_calls_slow_path(const sass_inst *inst);

/* flow.c: how often each block runs. False: no memory. */
bool sass_solve(const sass_code *code, const ptxvm_counters *counters, uint64_t warps, double *runs,
                double *misfit);

/* nnls.c: the x >= 0 with the least x'Gx - 2h'x; G is n x n, symmetric, positive definite. False: no
 * memory. */
bool nnls(const double *g, const double *h, int n, double *x);

#endif
