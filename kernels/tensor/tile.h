/* The tile kernel of products in mode tensor: a thread block computes a tile of y, and decodes each weight
 * once.
 *
 *              k ->                 x: tile_m lines of k, copied by cp.async, a few tiles ahead
 *        +------------+             w: lines of k or of n, decoded one tile ahead of their use
 *   m  x | . . x . .  |             both in shared memory, each piece p of 16 bytes at place p ^ (line & 7),
 *        +------------+             so that ldmatrix has no bank conflicts
 *              |      +---------+
 *              v   w  | . w . . | k   warps stand side by side over the tile of y; each keeps the sum of
 *              +------+---------+     the current strip (512 k) and that of the strips before it in registers
 *            m |      |  y      |
 *              +------+---------+  n
 */
#ifndef QDNN_KERNELS_TENSOR_TILE_H
#define QDNN_KERNELS_TENSOR_TILE_H

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/routes.h"
#include "kernels/tensor/fp8.h"
#include "kernels/tensor/w_tile.h"

enum { TILE_WARPS = TILE_THREADS / WARP, STRIP = 512, FRAGMENTS_MAX = 4, STEPS_MAX = 16 };

typedef struct tile_shape {
    unsigned m, n, k;
    unsigned warps_m, warps_n; /* warps that compute; the others only load and decode */
} tile_shape;

/* The tile of a specification: k and n depend on the format, m is its tile_rows. */
tile_shape tile_shape_of(const kernel_row *row, const kernel_spec *spec);

/* The sums of a warp: element c of the fragment at (i, j), which covers 16 rows by 8 columns. */
typedef struct tile_sums {
    unsigned fragments_m, fragments_n;
    ptx_val at[FRAGMENTS_MAX][FRAGMENTS_MAX][4];
} tile_sums;

typedef struct tile {
    const kernel_spec *spec;
    tile_shape shape;
    gemm_args args;
    w_tile w;
    ptx_val x; /* pointer */
    x_form form;
    qdnnDataType_t storage; /* of the weights */
    ptx_val n, k;           /* u32: n is that of y, k counts units */
    ptx_val n0;             /* u32: the first column of the tile of y */
    row_tile at;            /* its rows */
    ptx_val warp_m, warp_n; /* u32: where the warp's part of it begins */
    ptx_val lane;           /* u32 */
    ptx_val x_shared, w_shared;
    unsigned x_stages;
    tile_sums part, sums; /* variables: of the current strip, and of those before it */
} tile;

extern const gemm_kernel gemm_tile;

#endif
