/* Norms of rows: RMS norm and layer norm, with a residual added in front and quantization behind.
 * docs/numerics.md ("Operations on rows") has the formulas.
 *
 *   h = x + residual, rounded and written     (if there is a residual)
 *   RMS norm     y = (h / sqrt(mean(h^2) + eps)) * weight
 *   layer norm   y = ((h - mean(h)) / sqrt(variance(h) + eps)) * weight + bias
 *
 * A norm reads x once, in one kernel. A quantized result has the bits of the norm followed by
 * qdnnCreateDynamicQuantizePlan. */
#ifndef QDNN_NORM_H
#define QDNN_NORM_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { QDNN_NORM_RMS = 0, QDNN_NORM_LAYER = 1 } qdnnNormKind_t;

/* What a norm does. Set `size`, and 0 for what is not wanted. */
typedef struct {
    size_t size; /* sizeof(qdnnNorm_t) */
    qdnnNormKind_t kind;
    float eps;                 /* 0 or more */
    qdnnDataType_t weightType; /* of WEIGHT, one factor per column: F32, F16, BF16; 0: none */
    int weightPlusOne;         /* 1: the factor is 1 + weight */
    qdnnDataType_t biasType;   /* of BIAS, one per column; 0: none */
    qdnnDataType_t sumType;    /* of RESIDUAL and SUM; 0: no residual */
} qdnnNorm_t;

/* Plans the norm of each row of x, its last dimension. Operands: X is read, and WEIGHT, BIAS and RESIDUAL if the norm has
 * them; Y is written, or CODES and SCALE of its quantization (GLOBAL_SCALE is then an input, where the descriptor has
 * one); with a residual, SUM is written. RESIDUAL and SUM are packed, and may be the same buffer.
 *   handle
 *   norm
 *   x       f32, f16 or bf16; up to 32,768 elements in a row. Only the first dimension may have a stride that is not packed: so [tokens,
 *           heads, head size] may be a part of wider rows
 *   y       shape of x; f32, f16, bf16, the type that the result is rounded to. With `quant`, it is not written
 *   quant   null, or how the rounded result is quantized: 4 or 8 bits without zeros, in groups of 8, 16, 32, 64, 128
 *           or 256 elements that divide the row, or of the whole row (QDNN_GRANULARITY_GROUP)
 *   plan    receives it; qdnnDestroyPlan frees it, before the handle. It may be executed with fewer rows, which are the
 *           first dimension of x
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_OUT_OF_BOUND for a member of `norm` that is invalid. */
QDNN_API qdnnStatus_t qdnnCreateNormPlan(qdnnHandle_t handle, const qdnnNorm_t *norm,
                                         qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t y,
                                         qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
