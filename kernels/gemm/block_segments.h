/* Inside of block_segments.c and block_fetch.c: segments of rows of blocks in shared memory. */
#ifndef QDNN_KERNELS_GEMM_BLOCK_SEGMENTS_H
#define QDNN_KERNELS_GEMM_BLOCK_SEGMENTS_H

#include "kernels/gemm/blocks.h"

enum { BETWEEN_ROUNDS = 4, BETWEEN_UNITS_MAX = 5 };

/* Rounds of blocks in shared memory, as many as there is room for up to a limit. They are copied by whole
 * sectors, so what precedes the first in its sector comes along. */
typedef struct segment_shape {
    unsigned rounds, of_round; /* rounds, bytes of one */
    unsigned turn;             /* rounds of a turn of the loop */
    unsigned vectors, stride;  /* of an output; bytes from one to the next */
    unsigned pitch;            /* bytes from a thread's vector to its next */
    unsigned second, pair;     /* bytes from a team of a pair to the other, and from one pair to the next */
} segment_shape;

/* A warp copies segments of its rows; a thread those of its own team's. */
typedef struct segments {
    segment_shape shape;
    ptx_val row_bytes;                 /* u64 */
    ptx_val from[BLOCKS_OUTPUTS_MAX];  /* addresses of this thread's first vector in a row */
    ptx_val to[BLOCKS_OUTPUTS_MAX][2]; /* u32: where its halves go */
    ptx_val last[BLOCKS_OUTPUTS_MAX]
                [4]; /* variables u32: the last vector of threads that have one more than others */
    block_place places[BLOCKS_OUTPUTS_MAX][2]; /* this thread's runs of the first round of a segment */
    ptx_val words_at
        [BLOCKS_OUTPUTS_MAX]; /* u32: where a thread has whole blocks, the aligned address of the first */
    ptx_val between_at[BETWEEN_ROUNDS]
                      [BETWEEN_UNITS_MAX]; /* u32: of a round, what the thread loads of the first output */
    ptx_val turn, head[2]; /* selectors: words together of aligned ones, the thread's scales of a word */
} segments;

/* Where byte `at` (u32) of a segment lies from its first run on, if it lies between the entries of a table. */
ptx_val segment_between(ptx_builder *b, const blocks *s, ptx_val at);

/* What a thread keeps to find its blocks; `rows` (u32): where its first output lies. */
void segment_begin_fetch(ptx_builder *b, const blocks *s, segments *g, ptx_val rows);

/* Round `number` of a turn, of one output; the turn begins at `more` (u32, bytes) of the segment. */
void segment_fetch(ptx_builder *b, const blocks *s, const segments *g, unsigned output, ptx_val more,
                   unsigned number, block_round *round);

#endif
