/* Weights in FP8 in the tile kernel, where tiles have the bytes themselves.
 *
 * [N, K]: two neighbours along k are a unit of 16 bits, and units are copied as plain values of 16 bits are.
 *
 * [K, N]: shared memory has a line of tile_n bytes for each k. ldmatrix.trans takes two neighbours of a line for an element, so that
 * a lane gets columns 2g and 2g + 1 of the k of two lines; which lines these are is up to the lane that points to them:
 *
 *     matrix 0: k 0 1  4 5  8 9  12 13     lane 4g + t gets k 4t     and 4t + 1 of both columns
 *     matrix 1: k 2 3  6 7 10 11 14 15     lane 4g + t gets k 4t + 2 and 4t + 3
 *
 * Two prmt make the four k of each column of them. So one fragment has the even columns of 16, the next the odd ones. Piece p of
 * line k lies at place p ^ (k & 1 | k >> 1 & 6), so that the eight lines of a matrix are in different banks. */
#ifndef QDNN_KERNELS_TENSOR_W_FP8_H
#define QDNN_KERNELS_TENSOR_W_FP8_H

#include "kernels/tensor/tile.h"

/* Whether tiles of weights have lines of bytes along n. */
bool fp8_along_n(const tile *t);

/* The row whose weights are copied as pairs of bytes are. */
const kernel_row *fp8_pairs_row(void);
/* A tile of bytes, one by one: any alignment, [N, K] and [K, N]. */
void fp8_w_put_slowly(ptx_builder *b, const tile *t, ptx_val k0, ptx_val tile);

/* ---- [K, N]: as w_tile.h has them ---- */

ptx_val fp8_w_aligned(ptx_builder *b, const tile *t);
void fp8_w_fetch(ptx_builder *b, const tile *t, ptx_val k0, fetched *f);
void fp8_w_put(ptx_builder *b, const tile *t, const fetched *f, ptx_val tile);

/* Where a lane points ldmatrix to for the 16 columns from piece `piece` (u32) on, in bytes from the start of a tile. */
ptx_val fp8_w_place(ptx_builder *b, const tile *t, ptx_val piece);
/* Operand B of 32 k, of the even and of the odd columns. */
void fp8_w_fragments(ptx_builder *b, ptx_val from, unsigned step, ptx_val even[2], ptx_val odd[2]);

#endif
