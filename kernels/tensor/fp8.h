/* x and weights in FP8. sm_89, 120 and 121 have tensor cores for FP8: tiles hold the bytes themselves, two to a unit of 16 bits.
 * Elsewhere both factors become f16, which holds every number of FP8. */
#ifndef QDNN_KERNELS_TENSOR_FP8_H
#define QDNN_KERNELS_TENSOR_FP8_H

#include "kernels/formats/pairs.h"

/* x lies in shared memory in units of 16 bits: an element of f16 or bf16, or two of FP8. How x comes to be such units: */
typedef struct x_form {
    unsigned bytes;         /* of an element in memory */
    unsigned unit_elements; /* 2 where the SM multiplies FP8; else 1 */
    const minifloat *from;  /* not null: FP8 becomes f16 on the way */
    bool is_async;          /* it is copied by cp.async */
} x_form;

/* Whether the SM has an instruction of its own for FP8 (sm_90 and 100 take it, and make it of others in another order). */
bool fp8_is_native(const ptx_sm *sm);
/* That of operands A and B in these types, F8E4M3 or F8E5M2. */
ptx_mma_id fp8_instruction(qdnnDataType_t a, qdnnDataType_t b);

/* How x of a specification becomes units. */
x_form x_form_of(ptx_builder *b, const kernel_spec *spec);

/* Whether the product takes x in FP8; else the reason. */
bool fp8_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

#endif
