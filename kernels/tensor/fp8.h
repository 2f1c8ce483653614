/* x and weights in FP8. sm_89, 120 and 121 have tensor cores for FP8: tiles hold the bytes themselves, two
 * per unit of 16 bits. On other targets both factors are converted to f16, which can represent every FP8
 * number. */
#ifndef QDNN_KERNELS_TENSOR_FP8_H
#define QDNN_KERNELS_TENSOR_FP8_H

#include "kernels/formats/pairs.h"

/* x lies in shared memory in units of 16 bits: one element of f16 or bf16, or two of FP8. How x is
 * converted to units: */
typedef struct x_form {
    unsigned bytes;         /* of an element in memory */
    unsigned unit_elements; /* 2 where the SM multiplies FP8; else 1 */
    const minifloat *from;  /* not null: FP8 is converted to f16 on the way */
    bool is_async;          /* copied by cp.async */
} x_form;

/* Whether the SM has native FP8 instructions. (sm_90 and 100 accept them, but build them from others,
 * which add in another order.) */
bool fp8_is_native(const ptx_sm *sm);

/* How the x of a specification is converted to units. */
x_form x_form_of(ptx_builder *b, const kernel_spec *spec);

/* The instruction for x of that form; weights of type `weights` are operand A (`w_first`) or B. */
ptx_mma_id mma_instruction(ptx_builder *b, const kernel_spec *spec, const x_form *form,
                           qdnnDataType_t weights, bool w_first);

/* Whether the product supports x in FP8; if not, why. */
bool fp8_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

#endif
