/* The two operands of a tile in shared memory: rows of 64 bytes, of x and then of w, in several stages.
 *
 * The 16-byte chunks of a row are exchanged among themselves by bits of the row's number, so that what is read at a time lies
 * in different banks: chunk c of row r is at r * 64 + (c ^ e) * 16. For ldmatrix, which takes a chunk of eight rows, e is r /
 * 2 & 3; for loads of two neighbouring chunks of four rows it is r & 2. */
#ifndef QDNN_KERNELS_INTEGER_FILL_H
#define QDNN_KERNELS_INTEGER_FILL_H

#include "kernels/integer/integer.h"

enum {
    FILL_ROW = 64, /* bytes of a row in a stage */
    FILL_CHUNKS = FILL_ROW / INT_CHUNK,
    FILL_ROWS = INT_TILE_BLOCK / FILL_CHUNKS, /* rows that the block's threads take at once */
    FILL_PASSES_MAX = 4,
    FILL_HELD_MAX = 2 * FILL_PASSES_MAX
};

/* The windows of a convolution: row m of x is the window of output m. */
typedef struct fill_windows {
    ptx_val stride[2], padding[2], dilation[2], out[2], in[2]; /* u32 */
    ptx_val channels, first_channel;                           /* u32 */
    ptx_val splat;                                             /* u32: x_zero four times; empty: it is 0 */
} fill_windows;

/* One window: where its image begins, and its first position, which may lie in the padding. */
typedef struct fill_window {
    ptx_val image;       /* u64 */
    ptx_val position[2]; /* u32; below 0 it is very large */
} fill_window;

typedef struct fill {
    const kernel_spec *spec;
    int_matrix x, w;
    ptx_val first_row, first_column; /* u64 */
    unsigned passes;                 /* of each operand, and of each part of x */
    unsigned x_parts;                /* 2: a tile has 128 bytes of x, in two parts of 64; else 1 */
    unsigned stage_bytes;
    bool is_async, is_conv;
    ptx_val x_to,
        w_to; /* u32: where the thread's chunk of the first row lies in the first stage, of w without an offset */
    ptx_val k;       /* u32 variable: its byte of w's row in the tile that is filled next */
    ptx_val x_k;     /* the same of x's row, in its first part */
    ptx_val is_fast; /* all chunks begin at multiples of 16 */
    ptx_val x_from[FILL_PASSES_MAX], w_from[FILL_PASSES_MAX]; /* u64 variables: what is read next */
    ptx_val held[FILL_HELD_MAX][4]; /* u32 variables: chunks on their way, without cp.async */
    fill_windows windows;
    fill_window of_row[FILL_PASSES_MAX];
} fill;

/* `shared` is the first stage. */
void fill_begin(ptx_builder *b, fill *f, ptx_val shared);
/* e of a row (u32). */
typedef enum { FILL_X, FILL_W, FILL_HALVES } fill_half;
ptx_val fill_exchange(ptx_builder *b, const fill *f, fill_half half, ptx_val row);
/* Reads the next tile. With cp.async it goes to the stage by itself. Without, it is read in two halves, x and w, so that
 * few registers hold it, and fill_end puts each half there. */
void fill_start(ptx_builder *b, fill *f, unsigned stage);
void fill_hold(ptx_builder *b, fill *f, fill_half half);
void fill_put(ptx_builder *b, fill *f, fill_half half, unsigned stage);

#endif
