/* The tile kernel of products in mode tensor: a block of threads computes a tile of y, and decodes each weight once.
 *
 *              k ->                       x: tile_m lines of k, copied by cp.async, a few tiles ahead
 *        +------------+                   w: lines of k or of n, decoded one tile ahead of their use
 *   m  x | . . x . .  |                   both in shared memory, each piece of 16 bytes at place p ^ (line & 7),
 *        +------------+                   so that ldmatrix meets no bank twice
 *              |      +---------+
 *              v   w  | . w . . | k       warps stand side by side over the tile of y; each has the sum of the strip at
 *              +------+---------+         hand and the sum of the strips before it in registers
 *            m |      |  y      |
 *              +------+---------+  n
 */
#ifndef QDNN_KERNELS_TENSOR_TILE_H
#define QDNN_KERNELS_TENSOR_TILE_H

#include "kernels/tensor/w_tile.h"

enum { TILE_WARPS = TILE_THREADS / WARP, STRIP = 512, FRAGMENTS_MAX = 4 };

typedef struct tile_shape {
    unsigned m, n, k;
    unsigned warps_m, warps_n; /* that compute; others only load and decode */
} tile_shape;

/* The tile for a product of up to so many rows; k and n as the format of the weights has them. */
tile_shape tile_shape_of(const kernel_row *row, uint64_t rows);

/* Dynamic shared memory of a block. */
unsigned tile_shared_bytes(const tile_shape *shape, const ptx_sm *sm);

/* The sums of a warp: element c of the fragment at (i, j), which covers 16 rows by 8 columns. */
typedef struct tile_sums {
    unsigned fragments_m, fragments_n;
    ptx_val at[FRAGMENTS_MAX][FRAGMENTS_MAX][4];
} tile_sums;

typedef struct tile {
    tile_shape shape;
    qdnnDataType_t data;
    w_tile w;
    ptx_val x;              /* pointer */
    ptx_val m, n, k;        /* u32 */
    ptx_val x_stride;       /* u64: elements from a row of x to the next */
    ptx_val m0, n0;         /* u32: where the tile begins */
    ptx_val warp_m, warp_n; /* u32: where the warp's part of it begins */
    ptx_val lane;           /* u32 */
    ptx_val x_shared, w_shared;
    unsigned x_stages;
    tile_sums part, sums; /* variables: of the strip, and of those before it */
} tile;

/* Emits all of it but the end: t->sums are then S of the warp's elements, of which some lie outside y. The caller sets
 * shape, data, w, x, m, n, k, x_stride. Threads of warps that do not compute have returned. */
void tile_compute(ptx_builder *b, tile *t);

/* The row (u32) of element c of fragment i, and the column of element c of fragment j. */
ptx_val tile_row(ptx_builder *b, const tile *t, unsigned i, unsigned c);
ptx_val tile_column(ptx_builder *b, const tile *t, unsigned j, unsigned c);

#endif
