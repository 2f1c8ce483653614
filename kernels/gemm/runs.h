/* Runs of weights: eight neighbours in memory, read as whole words and decoded in registers with few
 * instructions each. A run is a chunk of K of one output, or eight outputs at one k, depending on the
 * layout. */
#ifndef QDNN_KERNELS_GEMM_RUNS_H
#define QDNN_KERNELS_GEMM_RUNS_H

#include "kernels/gemm/weights.h"

/* Whether runs lie along K; otherwise along the outputs. */
bool runs_along_k(const weights *w);

/* Whether the format and its groups can be read in runs: known when the kernel is emitted. */
bool runs_exist(const weights *w);

/* Whether shape and pointers allow them: a predicate, the same in all threads. If so, K is a multiple of
 * CHUNK and below 2^31. Runs begin at multiples of CHUNK, and at `second` plus such a multiple if that is
 * not empty. */
ptx_val runs_allowed(ptx_builder *b, const weights *w, ptx_val second);

/* The part of a run's address that does not depend on k, for one output or eight. */
typedef struct run_base {
    ptx_val output; /* u64: the first; all exist */
    ptx_val codes;  /* pointer to those of k = 0 */
    ptx_val pitch;  /* u32: bytes between neighbouring k, or chunks, where that is not a constant */
    ptx_val line;   /* u64: the output's number in `matrix` */
    matrix matrix;  /* all weights, or only the line of this output */
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

/* Issues the loads only, as far as they can be separated from the decoding. k is a u32, for blocks
 * possibly a u64; for blocks, all threads of a warp have the same k modulo ROUND. */
void run_fetch(ptx_builder *b, const weights *w, const run_base *base, ptx_val k, weight_run *run);

/* Whether all runs of a chunk of K have the same groups, as those along outputs may. If so,
 * run_fetch_beside fetches another run of the chunk and takes the groups from the first. */
bool runs_share_groups(const weights *w);
void run_fetch_beside(ptx_builder *b, const weights *w, const weight_run *first, ptx_val k, weight_run *run);

/* Where decoded weights go in shared memory: those along K as two vectors of four, the second `half` bytes
 * after the first; those along outputs `step` bytes apart. */
typedef struct run_target {
    ptx_val address;
    int half, step;
} run_target;
void run_put(ptx_builder *b, const weights *w, const weight_run *run, const run_target *to);

/* Stores zeros in place of a run. */
void run_put_zeros(ptx_builder *b, const weights *w, const run_target *to);

/* Stores the weights of a run one by one, in any format except blocks: +0 from k = w->k on; outputs other
 * than the first are clamped to those that exist. output and k: u64. */
void run_put_elements(ptx_builder *b, const weights *w, ptx_val output, ptx_val k, const run_target *to);

#endif
