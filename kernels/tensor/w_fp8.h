/* Weights in FP8 in the tile kernel, where tiles have the bytes themselves. */
#ifndef QDNN_KERNELS_TENSOR_W_FP8_H
#define QDNN_KERNELS_TENSOR_W_FP8_H

#include "kernels/tensor/tile.h"

/* The row whose weights are copied as pairs of bytes are. */
const kernel_row *fp8_pairs_row(void);
/* A tile of bytes, one by one: any alignment, [N, K] and [K, N]. */
void fp8_w_put_slowly(ptx_builder *b, const tile *t, ptx_val k0, ptx_val tile);

#endif
