/* Runs of weights: eight neighbours in memory, read as whole words and decoded in registers with few instructions each. A
 * run is a chunk of K of one output, or eight outputs at one k, as the layout has it. */
#ifndef QDNN_KERNELS_GEMM_RUNS_H
#define QDNN_KERNELS_GEMM_RUNS_H

#include "kernels/gemm/weights.h"

/* Whether runs lie along K; else along the outputs. */
bool runs_along_k(const weights *w);

/* Whether the format and its groups have runs: known when the kernel is emitted. */
bool runs_exist(const weights *w);

/* Whether shape and pointers allow them: a predicate, the same in all threads. K is a multiple of CHUNK then, and below
 * 2^31. Runs begin at multiples of CHUNK, at `second` + such a multiple too where that is not empty. */
ptx_val runs_allowed(ptx_builder *b, const weights *w, ptx_val second);

/* The runs of one output, or of eight: what does not depend on k. */
typedef struct run_base {
    ptx_val output; /* u64: the first; all exist */
    ptx_val codes;  /* pointer to those of k = 0 */
    ptx_val pitch;  /* u32: bytes from a k to the next, or from a chunk, where that is no constant */
    ptx_val line;   /* u64: the output among those that `matrix` has */
    matrix matrix;  /* the weights, or the line of them alone */
} run_base;
run_base run_base_of(ptx_builder *b, const weights *w, ptx_val output);

/* A run as it was loaded. */
typedef struct weight_run {
    run_base base;
    ptx_val k; /* u32 or u64: of the first weight */
    ptx_val quads[CHUNK / QUAD];
    group_values groups[CHUNK];
    ptx_val words[CHUNK]; /* of plain weights */
    block_run block;
    ptx_val strand; /* u32: of blocks */
} weight_run;

/* The loads alone, as far as they can be told from the rest. k is a u32, of blocks it may be a u64; all threads of a warp
 * have the same, modulo ROUND, in blocks. */
void run_fetch(ptx_builder *b, const weights *w, const run_base *base, ptx_val k, weight_run *run);

/* Whether all runs of a chunk of K have the same groups, as those along outputs may; then another of them, the groups of
 * which are taken from the first. */
bool runs_share_groups(const weights *w);
void run_fetch_beside(ptx_builder *b, const weights *w, const weight_run *first, ptx_val k, weight_run *run);

/* Where decoded weights go in shared memory: those along K in vectors of four, the second `half` bytes behind the first;
 * those along outputs `step` bytes apart. */
typedef struct run_target {
    ptx_val address;
    int half, step;
} run_target;
void run_put(ptx_builder *b, const weights *w, const weight_run *run, const run_target *to);

/* Zeros in the place of a run. */
void run_put_zeros(ptx_builder *b, const weights *w, const run_target *to);

/* The weights of a run one by one, in any format but blocks; +0 from k = w->k on, and other outputs than the first are
 * clamped to those that exist. output and k: u64. */
void run_put_elements(ptx_builder *b, const weights *w, ptx_val output, ptx_val k, const run_target *to);

#endif
