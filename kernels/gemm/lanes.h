/* The 32 lanes of a sum and the tree that joins them: s[i] = s[i] + s[i + 16], then 8, 4, 2, 1. A lane is a number of the
 * contract; a thread may hold several. */
#ifndef QDNN_KERNELS_GEMM_LANES_H
#define QDNN_KERNELS_GEMM_LANES_H

#include "ptxgen/ptx.h"

/* The sum of all lanes where thread i of the warp has lane i; every thread gets it. Additions commute, so both partners of
 * an exchange compute the same bits. */
ptx_val lanes_join_warp(ptx_builder *b, ptx_val partial);

#endif
