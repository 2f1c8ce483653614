/* Private to the product "blocks" (blocks.c): what its ways of reading blocks share. */
#ifndef QDNN_KERNELS_GEMM_BLOCKS_H
#define QDNN_KERNELS_GEMM_BLOCKS_H

#include "kernels/formats/block_reader.h"
#include "kernels/gemm/lanes.h"
#include "kernels/gemm/window.h"

enum {
    BLOCKS_ROWS_MAX = 16,
    BLOCKS_OUTPUTS_MAX = 2, /* outputs per team */
    BLOCKS_SLOTS_MAX = 4    /* rounds of weights loaded ahead */
};

typedef struct blocks {
    const kernel_spec *spec;
    gemm_args args;
    block_share share;
    codec_state state;
    map lanes; /* of the chunks of a thread */
    block_reader reader;
    unsigned warps, teams;  /* of a thread block */
    unsigned rows, outputs; /* rows of x; outputs per team */
    unsigned window;        /* rounds of x in shared memory */
    bool ragged;            /* rows of blocks begin anywhere */
    /* Blocks lie between the entries of a table, as x does: there is no room elsewhere. */
    bool between;
    bool pairs;                          /* accumulators are pairs, for fma on f32x2 */
    ptx_val thread, team;                /* u32: thread in its team; team in the thread block */
    ptx_val rounds;                      /* u32 */
    row_tile at;                         /* the rows of x */
    ptx_val n;                           /* u64: the first column of y */
    ptx_val stack;                       /* pointer: all blocks, of all experts */
    ptx_val rows_at[BLOCKS_OUTPUTS_MAX]; /* pointers: rows of blocks, clamped to outputs that exist */
    ptx_val dynamic;                     /* u32: dynamic shared memory; empty: none */
    unsigned dynamic_used;               /* bytes of it */
    x_window x;
    ptx_val x_mine; /* u32: where this thread's x begins in a round */
    ptx_val sums[BLOCKS_ROWS_MAX][BLOCKS_OUTPUTS_MAX]
                [TEAM_CHUNKS];         /* variables; pairs use the first half, as f32x2 */
    ptx_val units[BLOCKS_OUTPUTS_MAX]; /* variables u32, where sums are in units: that of each output */
} blocks;

/* Threads of a team: 8, or 16 or 32 where outputs are divided further than that. */
unsigned blocks_team(const block_layout *layout, const kernel_spec *spec);
/* Warps of a thread block. */
unsigned blocks_warps(const block_layout *layout, const kernel_spec *spec);

/* Allocates shared memory and returns its address (u32): from what is left of the dynamic memory, or
 * statically. */
ptx_val blocks_shared(ptx_builder *b, blocks *s, const char *name, unsigned bytes);

/* How many rounds of x are in shared memory at a time. */
unsigned blocks_window(const block_layout *layout, const kernel_spec *spec);

/* Adds a round of each output, times all rows of x; the round's x lies at x_at + x_more. */
void blocks_add_round(ptx_builder *b, const blocks *s, const block_values *values, ptx_val x_at, int x_more);

/* A pass over K, by windows of x: each is staged (scaled if the decode is cheap), then `window` adds
 * rounds [first, end) (u32). */
typedef void window_function(ptx_builder *b, const blocks *s, void *user, ptx_val first, ptx_val end);
void blocks_pass(ptx_builder *b, const blocks *s, block_way way, window_function *window, void *user);

/* ---- Weights straight from memory, loaded ahead: Q4_K, whose fields are aligned (block_direct.c) ---- */

bool blocks_are_direct(const block_layout *layout);
/* How many rounds are loaded ahead: a power of two. */
unsigned blocks_slots(const kernel_spec *spec);
void blocks_direct_pass(ptx_builder *b, const blocks *s);

/* ---- Weights through shared memory: the other blocks (block_segments.c, block_fetch.c) ---- */

/* Bytes of shared memory that blocks take. */
unsigned blocks_segments_bytes(const block_layout *layout, const kernel_spec *spec, unsigned outputs);
/* Sets up the copies of rows; returns a predicate: they can be copied by vectors, so that there can be a pass. */
typedef struct segments segments;
ptx_val blocks_segments_begin(ptx_builder *b, blocks *s, segments *g);
void blocks_segments_pass(ptx_builder *b, const blocks *s, segments *g);

#endif
