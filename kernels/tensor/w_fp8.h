/* Weights in FP8 in the tile kernel, for SMs that multiply FP8: tiles hold the bytes themselves.
 *
 * [N, K]: two neighbours along k are a unit of 16 bits, and units are copied like plain values of 16 bits.
 *
 * [K, N]: shared memory has a line of tile_n bytes for each k. ldmatrix.trans takes two neighbouring bytes
 * of a line for an element, so that a lane gets columns 2g and 2g + 1 at the k of two lines; which lines
 * these are depends on the addresses that the lanes pass:
 *
 *     matrix 0: k 0 1  4 5  8 9  12 13     lane 4g + t gets k 4t     and 4t + 1 of both columns
 *     matrix 1: k 2 3  6 7 10 11 14 15     lane 4g + t gets k 4t + 2 and 4t + 3
 *
 * Two prmt extract from them the four k of each column. So one fragment has the even columns of 16, the
 * next the odd ones. Piece p of line k lies at place p ^ (k & 1 | k >> 1 & 6), so that the eight lines of
 * a matrix are in different banks. */
#ifndef QDNN_KERNELS_TENSOR_W_FP8_H
#define QDNN_KERNELS_TENSOR_W_FP8_H

#include "kernels/tensor/tile.h"

/* Whether tiles of weights have lines of bytes along n. */
bool fp8_along_n(const tile *t);

/* The kernel row for plain 16-bit weights, as which pairs of bytes are copied. */
const kernel_row *fp8_pairs_row(void);
/* Fills a tile byte by byte: any alignment, [N, K] and [K, N]. */
void fp8_w_put_slowly(ptx_builder *b, const tile *t, ptx_val k0, ptx_val tile);

/* ---- [K, N]: counterparts of the functions of w_tile.h ---- */

ptx_val fp8_w_aligned(ptx_builder *b, const tile *t);
void fp8_w_fetch(ptx_builder *b, const tile *t, ptx_val k0, fetched *f);
void fp8_w_put(ptx_builder *b, const tile *t, const fetched *f, ptx_val tile);

/* The address that a lane passes to ldmatrix for the 16 columns of piece `piece` (u32), in bytes from the
 * start of a tile. */
ptx_val fp8_w_place(ptx_builder *b, const tile *t, ptx_val piece);
/* Operand B of 32 k, for the even and for the odd columns. */
void fp8_w_fragments(ptx_builder *b, ptx_val from, unsigned step, ptx_val even[2], ptx_val odd[2]);

#endif
