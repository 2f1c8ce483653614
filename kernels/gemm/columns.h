/* Inside of the product "columns" (columns.c): what its ways to decode share. */
#ifndef QDNN_KERNELS_GEMM_COLUMNS_H
#define QDNN_KERNELS_GEMM_COLUMNS_H

#include "kernels/gemm/lanes.h"
#include "kernels/gemm/window.h"

enum {
    COLUMNS_WARPS = 8,
    COLUMNS_LANES = SUM_LANES / COLUMNS_WARPS, /* of a thread */
    COLUMNS_STRETCH = COLUMNS_LANES * CHUNK,   /* k of a warp in a round */
    COLUMNS_ROWS_MAX = 8,
    COLUMNS_WIDTH_MAX = 8
};

typedef struct columns {
    const kernel_spec *spec;
    gemm_args args;
    weights w;
    x_window x;
    unsigned rows, width, step; /* of x; columns of a thread; rows of the matrix that are loaded together */
    bool pairs;                 /* sums of neighbouring columns lie in pairs, for fma on f32x2 */
    ptx_val warp, lane;         /* u32 */
    ptx_val rounds;             /* u32 */
    row_tile at;                /* the rows of x */
    ptx_val n;                  /* u64: first column of y, of the block */
    ptx_val span, column;       /* u64: of the warp; of this thread, of the matrix, one that exists */
    ptx_val
        scratch; /* u32: shared memory for a lane of every thread: 16 bytes times SUM_LANES times WARP and more */
    /* Variables; of pairs, f32x2 in the first half. */
    ptx_val sums[COLUMNS_ROWS_MAX][COLUMNS_LANES][COLUMNS_WIDTH_MAX];
} columns;

/* Eight rows of the columns of a thread, a chunk of a lane: f32, or of pairs f32x2 in the first half. */
typedef struct column_values {
    ptx_val at[CHUNK][COLUMNS_WIDTH_MAX];
} column_values;

/* Adds a chunk, times all rows of x; x_at: the warp's stretch of x. */
void columns_add_chunk(ptx_builder *b, const columns *s, const column_values *w, unsigned lane, ptx_val x_at);

/* The lanes of a stretch that exist, where K ends within it; `row` (u64): its first row of the matrix. */
void columns_add_rest(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at);

/* ---- Words of 4-bit integers, interleaved (columns_words.c) ---- */

/* Whether they have a decode of their own. */
bool words_are_cheap(const coding *c);
/* The pass over K; weights are aligned. `wrong` (predicate): zeros were too large for it; empty where none can be. */
ptx_val words_pass(ptx_builder *b, const columns *s);

#endif
