/* Integer products: codes times codes, with int32 sums that wrap. docs/numerics.md defines the formulas; the
 * bits are the same on every SM, whichever instruction computes them.
 *
 *   acc[m,n] = sum over k of (x[m,k] - x_zero) (w(k,n) - w_zero)
 *   requantized   y = clamp(round((acc + bias) multiplier) + y_zero), i8 or u8; or acc + bias itself, i32
 *   scaled        y = out(act(alpha S + bias) + residual), S = (acc x_scale[m]) w_scale[n]; gated pairs, experts and row weights as
 *                 in qdnn/matmul.h
 *
 * Codes are i8, u8, or i4: two's complement nibbles, eight per u32, the low one first, each row padded to
 * whole words; what the padding holds does not matter. Plans are executed by qdnnExecute, with the operands listed at each plan. */
#ifndef QDNN_INTEGER_H
#define QDNN_INTEGER_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnIntegerDescriptor *qdnnIntegerDescriptor_t;

/* The attributes of a descriptor and their defaults. The numbers never change. */
typedef enum {
    QDNN_INTEGER_TRANSPOSE_W = 0, /* 1: w is [N, K]; 0: w is [K, N], only for i8; default 1 */
    QDNN_INTEGER_X_ZERO = 1,      /* within the range of x's type; default 0 */
    QDNN_INTEGER_W_ZERO = 2,      /* -128 to 127; default 0 */
    QDNN_INTEGER_Y_ZERO = 3,      /* within the range of y's type; default 0 */
    /* qdnnGranularity_t: TENSOR, the number set by qdnnSetIntegerMultiplier, or CHANNEL, one per column in
     * the operand MULTIPLIER; default TENSOR */
    QDNN_INTEGER_MULTIPLIERS = 4,
    QDNN_INTEGER_ROUNDING = 5, /* qdnnRounding_t of codes; default TIES_AWAY */
    /* qdnnDataType_t: I32 for requantized results; F32, F16, BF16 for scaled ones; 0: no bias; default 0 */
    QDNN_INTEGER_BIAS_TYPE = 6,
    QDNN_INTEGER_ALPHA = 7,          /* qdnnAlpha_t of scaled results; default NONE */
    QDNN_INTEGER_ACTIVATION = 8,     /* qdnnActivation_t of scaled results; default NONE */
    QDNN_INTEGER_RESIDUAL = 9,       /* scaled results: 1: the operand RESIDUAL is added; default 0 */
    QDNN_INTEGER_GROUP_SIZE = 10,    /* i4 weights with i8: k per scale; 1 to 2^30; default 128 */
    QDNN_INTEGER_SCALE_TYPE = 11,    /* of those: QDNN_SCALE_F32, F16 or BF16; default F32 */
    QDNN_INTEGER_W_SCALE_FIRST = 12, /* i4 with i4: 1: S = (acc w_scale[n]) x_scale[m]; default 0 */
    QDNN_INTEGER_NHWC = 13,          /* convolutions: 1: channels come last; 0: NCHW; default 0 */
    QDNN_INTEGER_STRIDE_H = 14,      /* 1 to 32767; default 1 */
    QDNN_INTEGER_STRIDE_W = 15,
    QDNN_INTEGER_PADDING_H = 16, /* 0 to 32767; default 0 */
    QDNN_INTEGER_PADDING_W = 17,
    QDNN_INTEGER_DILATION_H = 18, /* 1 to 32767; default 1 */
    QDNN_INTEGER_DILATION_W = 19,
    QDNN_INTEGER_GROUPS = 20, /* of channels; at least 1; default 1 */
    /* i8 or u8 with i8, i8 with i4, scaled results: 1: w has 2N outputs, first a, then b, and y = out(act(a) * b + residual);
     * default 0 */
    QDNN_INTEGER_GATED = 21,
    /* Likewise: w is a stack [experts, N, K], and the operand EXPERT_INDEX gives the expert of each row of y; out of range: a row of NaN.
     * 0: one matrix; default 0 */
    QDNN_INTEGER_EXPERTS = 22,
    QDNN_INTEGER_SLOTS = 23,      /* with experts: rows of y for each row of x, 1 to 32, as QDNN_MATMUL_SLOTS; default 1 */
    QDNN_INTEGER_ROW_WEIGHT = 24, /* likewise: 1: each row of the result is multiplied by its element of ROW_WEIGHT; default 0 */
    QDNN_INTEGER_ATTRIBUTE_COUNT = 25
} qdnnIntegerAttribute_t;

/* Creates a descriptor with every value at its default; the multiplier is 1.
 *   integer   receives it; qdnnDestroyIntegerDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Thread-safe. */
QDNN_API qdnnStatus_t qdnnCreateIntegerDescriptor(qdnnIntegerDescriptor_t *integer);

/* Sets one attribute.
 *   integer
 *   attribute   one of the list above
 *   value       as in the list above
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute or an invalid
 * value; the descriptor is then unchanged. */
QDNN_API qdnnStatus_t qdnnSetIntegerAttribute(qdnnIntegerDescriptor_t integer,
                                              qdnnIntegerAttribute_t attribute, int64_t value);

/* Gets one attribute.
 *   integer
 *   attribute   one of the list above
 *   value       receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute. */
QDNN_API qdnnStatus_t qdnnGetIntegerAttribute(qdnnIntegerDescriptor_t integer,
                                              qdnnIntegerAttribute_t attribute, int64_t *value);

/* Sets the factor of a sum before it is rounded to a code.
 *   integer
 *   multiplier   any f32
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnSetIntegerMultiplier(qdnnIntegerDescriptor_t integer, float multiplier);

/* Sets QDNN_INTEGER_ALPHA to QDNN_ALPHA_NUMBER, and the constant it uses.
 *   integer
 *   alpha   any f32
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnSetIntegerAlpha(qdnnIntegerDescriptor_t integer, float alpha);

/* Frees a descriptor. Plans created from it no longer need it.
 *   integer   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyIntegerDescriptor(qdnnIntegerDescriptor_t integer);

/* Plans the dot product of two i4 vectors. Operands: X and CODES are read, Y is written; if y is not i32 it
 * is (acc a_scale) b_scale, and X_SCALE and SCALE, one f32 each, are read too.
 *   handle
 *   a, b    i4 vectors of the same length
 *   y       one element: i32, f32, f16 or bf16
 *   plan    receives it; qdnnDestroyPlan frees it, before the handle
 * Returns what qdnnCreateScalePlan does. */
QDNN_API qdnnStatus_t qdnnCreateIntegerDotPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t a,
                                               qdnnTensorDescriptor_t b, qdnnTensorDescriptor_t y,
                                               qdnnPlan_t *plan);

/* Plans a product. The types select the operation:
 *
 *   x               w    y               operation
 *   i8, u8          i8   i8, u8, i32     quant.int8.qmatmul: BIAS (i32) and MULTIPLIER as the descriptor says
 *   i8, u8          i8   f32, f16, bf16  quant.w8a8.matmul: X_SCALE f32 [M], SCALE f32 [N]
 *   i8              i4   f32, f16, bf16  quant.w4a8.matmul: X_SCALE f32 [M], SCALE [N, groups]
 *   i4              i4   f32, f16, bf16  quant.w4a4.matmul, or quant.int4.batched_matmul.scaled with W_SCALE_FIRST: as w8a8
 *   f32, f16, bf16  any                  x is first quantized to i8, one scale per row; no X_SCALE
 *
 * Operands: X, CODES (w), those above, and ALPHA, BIAS, RESIDUAL, EXPERT_INDEX and ROW_WEIGHT if the descriptor asks for them; Y is
 * written. In a stack, SCALE, and ALPHA and BIAS if there is one per output, are those of the experts back to back. If x holds codes, the plan may be executed with fewer rows (qdnnExecuteRows).
 *   handle
 *   integer
 *   x        [..., K], packed: the dimensions before the last make M rows
 *   w        [N, K]; without QDNN_INTEGER_TRANSPOSE_W [K, N]
 *   y        [..., N], M rows, packed
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * M, N and K are at most 2^31 - 2^16. K = 0 gives sums of 0; M = 0 or N = 0 writes nothing.
 * Returns what qdnnCreateScalePlan does; _BAD_PARAM_SHAPE_MISMATCH if the shapes do not match, or a zero
 * point is out of the range of its tensor's type; _NOT_SUPPORTED for types that are not in the table, and for
 * attributes that the operation does not support. */
QDNN_API qdnnStatus_t qdnnCreateIntegerMatmulPlan(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                                  qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                                  qdnnTensorDescriptor_t y, qdnnPlan_t *plan);

/* Plans the search for the k largest scores in each row of quant.int4.batched_matmul.scaled, in descending
 * order, equal ones by index, NaNs last. Operands: X, CODES, X_SCALE f32 [B], SCALE f32 [R] are read, Y
 * (scores) and TOP_INDEX are written.
 *   handle
 *   x         [B, K]: i4
 *   w         [R, K]: i4
 *   scores    [B, k]: f32; k is 1 to 64, and at most R
 *   indices   [B, k]: i32 or f32
 *   plan      receives it; qdnnDestroyPlan frees it, before the handle
 * Returns what qdnnCreateIntegerMatmulPlan does; _BAD_PARAM_OUT_OF_BOUND for a k out of range. */
QDNN_API qdnnStatus_t qdnnCreateIntegerTopPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                               qdnnTensorDescriptor_t w, qdnnTensorDescriptor_t scores,
                                               qdnnTensorDescriptor_t indices, qdnnPlan_t *plan);

/* Plans a 2-D convolution, without an im2col buffer. Operands: X, CODES (w), and BIAS (i32) and MULTIPLIER if
 * the descriptor asks for them, one per output channel; Y is written.
 *   handle
 *   integer
 *   x        [N, C, H, W] of i8 or u8; NHWC: [N, H, W, C]
 *   w        [C_out, C / groups, kh, kw] of i8; NHWC: [C_out, kh, kw, C / groups]
 *   y        [N, C_out, OH, OW] of i8, u8 or i32; NHWC: [N, OH, OW, C_out]; OH = (H + 2 padding - dilation (kh - 1) - 1) /
 *            stride + 1
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * An image has at most 2^31 - 2^16 elements, and y as many positions.
 * Returns what qdnnCreateIntegerMatmulPlan does; _BAD_PARAM_SHAPE_MISMATCH also if the number of channels is
 * not a multiple of the groups, or the window is larger than the padded image. */
QDNN_API qdnnStatus_t qdnnCreateIntegerConvPlan(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                                qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                                qdnnTensorDescriptor_t y, qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
