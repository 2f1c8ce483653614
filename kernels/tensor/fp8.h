/* x and weights in FP8, in the tile kernel. sm_89, 120 and 121 have tensor cores for FP8: tiles hold the bytes themselves, two to
 * a unit of 16 bits. Elsewhere both factors become f16, which holds every number of FP8. */
#ifndef QDNN_KERNELS_TENSOR_FP8_H
#define QDNN_KERNELS_TENSOR_FP8_H

#include "kernels/formats/pairs.h"
#include "kernels/tensor/tile.h"

/* Whether the SM has an instruction of its own for FP8 (sm_90 and 100 take it, and make it of others in another order). */
bool fp8_is_native(const ptx_sm *sm);
/* Of x in one type and weights in another, F8E4M3 or F8E5M2. */
ptx_mma_id fp8_instruction(qdnnDataType_t x, qdnnDataType_t w);

/* How x of a specification becomes units. */
x_form x_form_of(ptx_builder *b, const kernel_spec *spec);

/* Whether the product takes x in FP8; else the reason. */
bool fp8_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* The row whose weights are copied as pairs of bytes are. */
const kernel_row *fp8_pairs_row(void);
/* A tile of bytes, one by one: any alignment, [N, K] and [K, N]. */
void fp8_w_put_slowly(ptx_builder *b, const tile *t, ptx_val k0, ptx_val tile);

#endif
