/* The two operands of a tile in shared memory: rows of 64 bytes, first of x and then of w, in several stages.
 *
 * To avoid bank conflicts, the 16-byte chunks of a row are permuted by bits of the row number: chunk c of row
 * r is at r * 64 + (c ^ e) * 16. For ldmatrix, which reads one chunk of eight rows, e is r / 2 & 3; for loads
 * of two adjacent chunks of four rows, it is r & 2. */
#ifndef QDNN_KERNELS_INTEGER_FILL_H
#define QDNN_KERNELS_INTEGER_FILL_H

#include "kernels/integer/integer.h"

enum {
    FILL_ROW = 64, /* bytes per row in a stage */
    FILL_CHUNKS = FILL_ROW / INT_CHUNK,
    FILL_ROWS = INT_TILE_BLOCK / FILL_CHUNKS, /* rows that the block's threads fill at once */
    FILL_PASSES_MAX = 4,
    FILL_HELD_MAX = 2 * FILL_PASSES_MAX
};

/* The windows of a convolution: row m of x is the window of output m. */
typedef struct fill_windows {
    ptx_val stride[2], padding[2], dilation[2], out[2], in[2]; /* u32 each */
    ptx_val channels, first_channel;                           /* u32 */
    /* u32: x_zero in all four bytes; empty: x_zero is 0 */
    ptx_val splat;
} fill_windows;

/* One window: the address of its image, and its first position, which may be in the padding. */
typedef struct fill_window {
    ptx_val image;       /* u64 */
    ptx_val position[2]; /* u32; negative positions wrap to very large ones */
} fill_window;

typedef struct fill {
    const kernel_spec *spec;
    int_matrix x, w;
    row_tile rows;                   /* with experts: the rows of y; then first_row is not used */
    ptx_val first_row, first_column; /* u64; of a gated pair, the first column of y */
    unsigned passes;                 /* for each operand, and for each part of x */
    unsigned x_parts;                /* 2: a tile has 128 bytes of x, in two parts of 64; else 1 */
    unsigned stage_bytes;
    bool is_async, is_conv;
    /* u32: where the thread's chunk of the first row is in the first stage; w_to without the offset of w */
    ptx_val x_to, w_to;
    ptx_val k;   /* u32 variable: the thread's byte of w's row in the next tile to be filled */
    ptx_val x_k; /* the same for x's row, in its first part */
    ptx_val x_from[FILL_PASSES_MAX], w_from[FILL_PASSES_MAX]; /* u64 variables: the next addresses to read */
    /* u32 variables: chunks in transit, without cp.async */
    ptx_val held[FILL_HELD_MAX][4];
    fill_windows windows;
    fill_window of_row[FILL_PASSES_MAX];
} fill;

/* Bytes of a row of x and w of a convolution: its windows are part of the specification. */
unsigned fill_window_bytes(const kernel_spec *spec);
/* Rows of w in a tile. Of gated pairs, eight of the first half of w's outputs and the same of the second take turns: the output that is row i
 * (u32) of the tile, or one that exists. */
ptx_val fill_output(ptx_builder *b, const fill *f, ptx_val i);
/* `shared` is the address of the first stage. */
void fill_begin(ptx_builder *b, fill *f, ptx_val shared);
/* Whether all chunks are 16-byte aligned (predicate), so that the next tile can be read by the functions below; any other tile is read by
 * fill_slowly, to the first stage. */
ptx_val fill_is_fast(ptx_builder *b, const fill *f);
void fill_slowly(ptx_builder *b, fill *f);
/* The e of a row (u32), as described above. */
typedef enum { FILL_X, FILL_W, FILL_HALVES } fill_half;
ptx_val fill_exchange(ptx_builder *b, const fill *f, fill_half half, ptx_val row);
/* Reads the next tile. With cp.async, fill_start copies it to the stage asynchronously. Without, it is read
 * in two halves, x and w, so that few registers hold it: fill_hold loads a half, and fill_put writes it to
 * the stage. */
void fill_start(ptx_builder *b, fill *f, unsigned stage);
void fill_hold(ptx_builder *b, fill *f, fill_half half);
void fill_put(ptx_builder *b, fill *f, fill_half half, unsigned stage);

#endif
