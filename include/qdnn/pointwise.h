/* Operations on each element: sums, products, functions, gated functions, with quantization behind.
 * docs/numerics.md ("Operations on rows") has the formulas.
 *
 *   add, mul   y = a + b, y = a * b
 *   function   y = f(a)
 *   gated      y = f(a) * b
 *
 * A quantized result has the bits of the operation followed by qdnnCreateDynamicQuantizePlan. */
#ifndef QDNN_POINTWISE_H
#define QDNN_POINTWISE_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    QDNN_POINTWISE_ADD = 0,
    QDNN_POINTWISE_MUL = 1,
    QDNN_POINTWISE_FUNCTION = 2,
    QDNN_POINTWISE_GATED = 3
} qdnnPointwiseKind_t;

/* Where the second input, b, is. */
typedef enum {
    QDNN_SECOND_NONE = 0,        /* functions have none */
    QDNN_SECOND_TENSOR = 1,      /* operand B: shape of y */
    QDNN_SECOND_ROW = 2,         /* operand B: one row for all (add, mul) */
    QDNN_SECOND_NUMBER = 3,      /* `number` (add, mul) */
    QDNN_SECOND_LAST_HALF = 4,   /* gated: the rows of x are those of a and then those of b */
    QDNN_SECOND_FIRST_HALF = 5,  /* gated: those of b come first */
    QDNN_SECOND_INTERLEAVED = 6, /* gated: even columns of x are a, odd ones b */
} qdnnSecond_t;

/* What is done with each element. Set `size`, and 0 for what does not matter. */
typedef struct {
    size_t size; /* sizeof(qdnnPointwise_t) */
    qdnnPointwiseKind_t kind;
    qdnnActivation_t function; /* of FUNCTION and GATED */
    qdnnSecond_t second;
    qdnnDataType_t secondType; /* of operand B: F32, F16, BF16; 0: that of x */
    float number;              /* of QDNN_SECOND_NUMBER */
    float limit;               /* of SOFTCAP and CLAMPED_SILU: more than 0 */
    float factor;              /* of CLAMPED_SILU */
} qdnnPointwise_t;

/* Plans an operation on each element. Operands: X is read, and B if the second input is an operand; Y is written, or CODES
 * and SCALE of its quantization (GLOBAL_SCALE is then an input, where the descriptor has one).
 *   handle
 *   pointwise
 *   x       f32, f16 or bf16; shape of y, but rows of twice as many elements if b is a part of them. Only the first
 *           dimension may have a stride that is not packed
 *   b       the tensor or row that operand B is; null: packed, of `secondType`
 *   y       f32, f16, bf16: the type that the result is rounded to. With `quant`, it is not written
 *   quant   null, or how the rounded result is quantized, as for qdnnCreateNormPlan. Whole rows may have up to 32,768 elements
 *   plan    receives it; qdnnDestroyPlan frees it, before the handle. It may be executed with fewer rows, which are the
 *           first dimension of y
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_OUT_OF_BOUND for a member of `pointwise` that is invalid. */
QDNN_API qdnnStatus_t qdnnCreatePointwisePlan(qdnnHandle_t handle, const qdnnPointwise_t *pointwise,
                                              qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t b,
                                              qdnnTensorDescriptor_t y, qdnnQuantDescriptor_t quant,
                                              qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
