/* Private to block_segments.c and block_fetch.c. A "segment" is a few rounds of a row of blocks, copied to
 * shared memory. */
#ifndef QDNN_KERNELS_GEMM_BLOCK_SEGMENTS_H
#define QDNN_KERNELS_GEMM_BLOCK_SEGMENTS_H

#include "kernels/gemm/blocks.h"

enum { BETWEEN_ROUNDS = 4, BETWEEN_UNITS_MAX = 5 };

/* The shape of a segment: as many rounds as there is room for, up to a limit. Whole sectors are copied, so
 * the bytes that precede the first round in its sector come along. Rows that begin anywhere are copied to where they
 * have the same distance from a vector as in memory. */
typedef struct segment_shape {
    unsigned rounds, of_round; /* rounds per segment; bytes per round */
    unsigned turn;             /* rounds per turn of the loop */
    unsigned vectors, stride;  /* vectors per output; bytes from one output to the next */
    unsigned pitch;            /* bytes between the vectors of a thread */
    unsigned second, pair;     /* bytes between the two teams of a pair, and between pairs */
} segment_shape;

/* The warp copies the segments of its rows; each thread copies a part of those of its own team. */
struct segments {
    segment_shape shape;
    ptx_val row_bytes;                   /* u64 */
    ptx_val before[BLOCKS_OUTPUTS_MAX];  /* u32: bytes of a sector that precede a row; empty: none */
    ptx_val start[BLOCKS_OUTPUTS_MAX];   /* u64: where that sector begins */
    ptx_val from[BLOCKS_OUTPUTS_MAX];    /* addresses of this thread's first vector in a row */
    ptx_val rows[BLOCKS_OUTPUTS_MAX];    /* u32: where the segment of an output lies */
    ptx_val to[BLOCKS_OUTPUTS_MAX][2];   /* u32: where its halves go */
    ptx_val last[BLOCKS_OUTPUTS_MAX][4]; /* variables u32: the last vector, which only some threads have */
    block_place places[BLOCKS_OUTPUTS_MAX][2]; /* this thread's runs of the first round of a segment */
    ptx_val words_at
        [BLOCKS_OUTPUTS_MAX]; /* u32: where a thread has whole blocks, the aligned address of the first */
    ptx_val between_at[BETWEEN_ROUNDS]
                      [BETWEEN_UNITS_MAX]; /* u32: what the thread loads per round, for the first output */
    ptx_val turn[BLOCKS_OUTPUTS_MAX],
        head[BLOCKS_OUTPUTS_MAX]
            [2]; /* selectors: shift two aligned words into one; pick the thread's scales */
};

/* Where byte `at` (u32) of a segment lies, relative to its first run, when segments lie between the
 * entries of a table. */
ptx_val segment_between(ptx_builder *b, const blocks *s, ptx_val at);

/* Prepares what a thread needs to find its blocks. */
void segment_begin_fetch(ptx_builder *b, const blocks *s, segments *g);

/* Loads round `number` of a turn, for one output; the turn begins at byte `more` (u32) of the segment. */
void segment_fetch(ptx_builder *b, const blocks *s, const segments *g, unsigned output, ptx_val more,
                   unsigned number, block_round *round);

#endif
