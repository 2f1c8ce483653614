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
 *
 * With few rows, such tiles would leave most of a GPU idle. Then the tile's lines, of x and of w, are divided into 2, 4 or 8 "parts":
 * part p has strip p of the sum, for the same rows and fewer columns. At the end of a strip, the parts' sums meet in shared
 * memory and are added up in order; then all parts go on behind the last:
 *
 *        k ->  0      512     1024    1536
 *        +------------+------------+--
 *     n  | part 0 ... | part 1 ... |           4 parts: 32 columns instead of 128
 *        +------------+------------+--
 *
 * With 8 parts, a warp has a part to itself in most formats: then it waits for the others only where strips end.
 */
#ifndef QDNN_KERNELS_TENSOR_TILE_H
#define QDNN_KERNELS_TENSOR_TILE_H

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/routes.h"
#include "kernels/tensor/fp8.h"
#include "kernels/tensor/w_tile.h"

enum { TILE_WARPS = TILE_THREADS / WARP, STRIP = 512, FRAGMENTS_MAX = 4, STEPS_MAX = 16 };
enum { PARTS_MAX = 8, JOINED_MAX = TILE_BYTES / 4 / 2 / TILE_THREADS };

typedef struct tile_shape {
    unsigned m, n, k;          /* n: of all parts; a part has n / parts columns of the weights */
    unsigned parts;            /* strips side by side */
    unsigned warps_m, warps_n; /* warps that compute a part; those that no part needs only load and decode */
    bool apart; /* each warp loads and decodes its own part: no warp waits for another before a strip ends */
} tile_shape;

/* The tile of a specification: k and n depend on the format, m is its tile_rows, parts its split. */
tile_shape tile_shape_of(const kernel_row *row, const kernel_spec *spec);
/* The most parts of a tile of so many rows. */
unsigned tile_parts_max(const kernel_row *row, const kernel_spec *spec, uint64_t rows);

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
    ptx_val warp_m, warp_n; /* u32: where the warp's share of it begins; warp_n counts lines */
    ptx_val warp_x;         /* u32: the line of x with which it begins */
    ptx_val lane;           /* u32 */
    ptx_val x_shared, w_shared;
    unsigned x_stages;
    tile_sums part, sums; /* variables: of the current strip, and of those before it */
    ptx_val joined
        [2]
        [JOINED_MAX]; /* the latter, if there are several parts: of the outputs that a thread completes (of a and b) */
} tile;

/* The units of x (elements, or pairs of FP8) of a strip. */
unsigned tile_strip(const tile *t);

extern const gemm_kernel gemm_tile;

#endif
