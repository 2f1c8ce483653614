/* The 32 lanes of a sum and the tree that joins them: s[i] = s[i] + s[i + 16], then 8, 4, 2, 1. A lane is a number of the
 * contract; a thread may hold several. */
#ifndef QDNN_KERNELS_GEMM_LANES_H
#define QDNN_KERNELS_GEMM_LANES_H

#include "ptxgen/ptx.h"

/* The sum of all lanes where thread i of the warp has lane i; every thread gets it. Additions commute, so both partners of
 * an exchange compute the same bits. */
ptx_val lanes_join_warp(ptx_builder *b, ptx_val partial);

/* Sums of a few outputs and rows whose lanes are spread over a team: `threads` neighbouring threads of a warp have
 * `lanes` each, thread t those from t * lanes on. While joining, threads share out the sums: rows first, then outputs
 * (unless each thread is to keep all of them). In the end a thread has the whole sums of `outputs` from `first_output`
 * on and `rows` from `first_row` on, or another one has the same: `holds` is true for one of them. */
enum { SHARE_OUTPUTS = 4, SHARE_ROWS = 16, SHARE_LANES = 8 };
typedef struct lanes_share {
    unsigned outputs, rows, lanes, threads;
    bool keeps_outputs;
    ptx_val parts[SHARE_OUTPUTS][SHARE_ROWS][SHARE_LANES];
    ptx_val sums[SHARE_OUTPUTS][SHARE_ROWS];
    ptx_val first_output, first_row; /* u32 */
    ptx_val holds;                   /* predicate */
} lanes_share;
void lanes_join_team(ptx_builder *b, lanes_share *l, ptx_val thread);

#endif
