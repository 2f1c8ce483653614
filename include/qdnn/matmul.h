/* Products with quantized weights: y = x W, or x W^T. */
#ifndef QDNN_MATMUL_H
#define QDNN_MATMUL_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnMatmulDescriptor *qdnnMatmulDescriptor_t;

/* How the product is computed. Numbers are frozen. */
typedef enum {
    /* By the contract of docs/numerics.md: the same bits on every SM, in every batch, on the host and on ptxvm. */
    QDNN_MATMUL_EXACT = 0,
    /* The weights are dequantized to the type of x in the workspace, by the contract; the product is
     * cuBLAS's, with f32 sums, and its bits depend on the GPU and on the version of cuBLAS. For a GPU, and
     * for large M. It takes neither alpha nor bias, activation, gate or residual. */
    QDNN_MATMUL_CUBLAS = 1,
    /* EXACT for every M, unless QDNN_MATMUL_FAMILY_BITS allows TENSOR; the choice follows the M of the plan. The plan's info
     * says what was chosen, and why. */
    QDNN_MATMUL_AUTO = 2,
    /* By tensor cores, as docs/numerics.md has it for the SM's family: the same bits in every batch and by every kernel,
     * on every SM of the family. x is f16 or (not on sm_75) bf16; or FP8, with weights in FP8: see qdnnCreateMatmulPlan. */
    QDNN_MATMUL_TENSOR = 3
} qdnnMatmulAlgorithm_t;

/* What a descriptor says, each with its default. Numbers are frozen. y = out(act(alpha (x W) + bias) + residual), and what
 * is absent is left out. */
typedef enum {
    QDNN_MATMUL_ALGORITHM = 0,   /* qdnnMatmulAlgorithm_t; default AUTO */
    QDNN_MATMUL_TRANSPOSE_W = 1, /* 1: w is [N, K], as files of weights are; 0: w is [K, N]; default 1 */
    QDNN_MATMUL_ALPHA = 2,       /* qdnnAlpha_t; default NONE */
    QDNN_MATMUL_BIAS_TYPE = 3,   /* qdnnDataType_t: F32, F16, BF16; 0: there is no bias; default 0 */
    QDNN_MATMUL_ACTIVATION = 4,  /* qdnnActivation_t; default NONE */
    QDNN_MATMUL_GATED = 5,       /* 1: w has 2N outputs, a first, then b: y = out(act(a) * b + residual), as SwiGLU (SILU)
                                    and GeGLU (GELU) have it; default 0 */
    QDNN_MATMUL_RESIDUAL = 6,    /* 1: the operand RESIDUAL is added; default 0 */
    QDNN_MATMUL_FAMILY_BITS = 7, /* 1: AUTO may choose TENSOR, whose bits depend on the SM's family; default 0 */
    /* Grouped products (mixture of experts): w is a stack [experts, N, K] or [experts, K, N], and each row of x names its
     * expert in the operand EXPERT_INDEX. 0: the product is not grouped; default 0. */
    QDNN_MATMUL_EXPERTS = 8,
    /* 1: each row of the result is multiplied by its number in the operand ROW_WEIGHT, last of all: the router's
     * probability; default 0 */
    QDNN_MATMUL_ROW_WEIGHT = 9,
    /* 1: an execute copies EXPERT_INDEX to the host, waits for it, and refuses an index out of range before anything is
     * launched; not while a stream is captured. 0: such a row of the result is NaN; default 0 */
    QDNN_MATMUL_CHECK_INDICES = 10,
    /* Not 0: LoRA. The operands LORA_A [K, rank] and LORA_B [rank, N] are plain, and x A B, times the scale of
     * qdnnSetMatmulLoraScale, is added to alpha (x W) before the bias; default 0 */
    QDNN_MATMUL_LORA_RANK = 11,
    QDNN_MATMUL_LORA_TYPE = 12, /* qdnnDataType_t of A and B: F32, F16, BF16; default F16 */
    QDNN_MATMUL_PREPACKED = 13, /* 1: CODES are as qdnnCreatePrepackPlan's plan left them; for TENSOR; default 0 */
    /* 1: x is FP8, and each row of sums is multiplied by its number in the operand X_SCALE, first of all; default 0 */
    QDNN_MATMUL_X_SCALE = 14,
    /* F8E4M3 or F8E5M2: x is f32, f16 or bf16, and is quantized to that type first, with a scale for each row; 0: it is not;
     * default 0 */
    QDNN_MATMUL_QUANTIZE_X = 15,
    QDNN_MATMUL_ATTRIBUTE_COUNT = 16
} qdnnMatmulAttribute_t;

/* Creates a descriptor with every value at its default.
 *   matmul   receives it; qdnnDestroyMatmulDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Any thread. */
QDNN_API qdnnStatus_t qdnnCreateMatmulDescriptor(qdnnMatmulDescriptor_t *matmul);

/* Sets one value.
 *   matmul
 *   attribute   which
 *   value       as the list above says
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an attribute or value that there is
 * not; the descriptor then stays as it was. */
QDNN_API qdnnStatus_t qdnnSetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                             int64_t value);

/* One value.
 *   matmul
 *   attribute   which
 *   value       receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute. */
QDNN_API qdnnStatus_t qdnnGetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                             int64_t *value);

/* The number that QDNN_ALPHA_NUMBER stands for; sets QDNN_MATMUL_ALPHA to it too.
 *   matmul
 *   alpha   any f32
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnSetMatmulAlpha(qdnnMatmulDescriptor_t matmul, float alpha);

/* The number that LoRA's x A B is multiplied by; 1 unless it is set.
 *   matmul
 *   scale   any f32
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnSetMatmulLoraScale(qdnnMatmulDescriptor_t matmul, float scale);

/* Frees a descriptor. Plans that were made from it do not need it any more.
 *   matmul   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyMatmulDescriptor(qdnnMatmulDescriptor_t matmul);

/* Plans a product. Operands: X, CODES, SCALE (and what else the format has), as the descriptor says ALPHA (f32, 1 or one for
 * each output of w), BIAS (one for each output of w), RESIDUAL (as y, and may be y itself), EXPERT_INDEX, ROW_WEIGHT,
 * LORA_A and LORA_B; then Y is written. The plan is made for M rows and may be executed with fewer (qdnnExecuteRows).
 * Of a stack of experts, every array (codes, scales, zeros, ...; alpha and bias, where they have a number for each output)
 * holds those of one expert after another, each as large as that of one expert alone.
 * FP8 with FP8 (QDNN_MATMUL_TENSOR, or AUTO with QDNN_MATMUL_FAMILY_BITS): y = out(act(alpha ((x W) x_scale[m]) + bias) +
 * residual). x is FP8, with X_SCALE (f32 [M]) where QDNN_MATMUL_X_SCALE is 1; or it is quantized in the same plan
 * (QDNN_MATMUL_QUANTIZE_X), whose rows are packed and which is executed with all of them. w is FP8 without scales
 * (QDNN_GRANULARITY_NONE): those of its columns are ALPHA. It takes neither LoRA nor prepacked weights.
 *   handle   QDNN_MATMUL_CUBLAS: on a GPU
 *   matmul
 *   x        [..., K]: f32, f16, bf16 or FP8; the dimensions before the last make M rows, which may lie apart
 *   w        the shape of the weights, [N, K] or [K, N] (gated: 2N in the place of N); its type is not looked at, but for
 *            QDNN_MATMUL_CUBLAS: the type of x, to which they are dequantized. With QDNN_MATMUL_EXPERTS: [experts, N, K] or
 *            [experts, K, N]
 *   quant    how the weights are quantized; of a stack, those of one expert: an axis is one of its two dimensions
 *   y        [..., N], M rows, which may lie apart: f32, f16 or bf16 (QDNN_MATMUL_CUBLAS: the type of x, or f32)
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * K = 0 gives sums of +0. M = 0 or N = 0 writes nothing. Blocks (GGUF) must begin at a multiple of the largest power of two
 * that divides their size.
 * Returns what qdnnCreateDequantizePlan does, and: _BAD_PARAM_SHAPE_MISMATCH where the shapes do not fit
 * together; with QDNN_MATMUL_CUBLAS _BAD_PARAM_OUT_OF_BOUND where M, N or K is 2^31 or more, or K is 0,
 * _NOT_SUPPORTED on ptxvm, and _NOT_SUPPORTED_LIBRARY_MISSING where there is no cuBLAS. */
QDNN_API qdnnStatus_t qdnnCreateMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                           qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                           qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                           qdnnPlan_t *plan);

/* A quantized type: what is stored for an element, and which elements share a scale and a zero. Both may have a granularity
 * of their own; the products here want the same one. */
typedef struct {
    qdnnDataType_t storage;   /* I4 */
    qdnnGranularity_t scale;  /* GROUP: along K; NONE: every scale is 1 */
    int64_t scaleGroupSize;   /* of GROUP; else 0 */
    qdnnGranularity_t zero;   /* as scale; NONE: every zero is 0 */
    int64_t zeroGroupSize;    /* of GROUP; else 0 */
} qdnnQuantizedType_t;

/* Plans a product whose weights are [K, N] in interleaved words, unsigned codes of 4 bits, described by a type:
 * scale NONE and zero NONE is quant.linear_4bit (w = code), both GROUP is quant.linear_4bit.affine_grouped
 * (w = (code - zero) * scale, f32 scales and u32 zeros, [groups, N] both). Where qdnnCreateMatmulPlan takes an empty K or N,
 * this call refuses it, and its errors end with what to change: "...; fix: ...".
 *   handle
 *   matmul   as qdnnCreateMatmulPlan; QDNN_MATMUL_TRANSPOSE_W is not looked at, w being [K, N]
 *   x        [..., K]
 *   type
 *   n        the N of the weights (gated: 2N in its place)
 *   y        [..., N]
 *   plan     receives it
 * Returns what qdnnCreateMatmulPlan does; _BAD_PARAM_OUT_OF_BOUND for an n or a group size below 1, K = 0, and sizes whose
 * product overflows; _NOT_SUPPORTED for storage and granularities that the operation does not take. */
QDNN_API qdnnStatus_t qdnnCreateTypedMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                                qdnnTensorDescriptor_t x, const qdnnQuantizedType_t *type, int64_t n,
                                                qdnnTensorDescriptor_t y, qdnnPlan_t *plan);

/* Plans prepacking: the codes of weights are put into the order in which tensor cores take them, once, for products with
 * QDNN_MATMUL_PREPACKED. Scales and zeros stay as they are (products read them fastest where those of neighbouring columns of
 * y are neighbours; E4M3 scales of 16 k, where those of one column are, and K is a multiple of 256); blocks are prepacked with their scales. Operands: CODES is read, REPACKED is written; as many bytes, with N rounded up to 16 and K to 64.
 *   handle
 *   matmul   QDNN_MATMUL_TRANSPOSE_W of it
 *   w        the shape of the weights; of a stack of experts [experts, N, K] or [experts, K, N]: each by itself
 *   quant    how they are quantized: in blocks other than TQ1_0, or in groups of a multiple of 16 k (flat ones dividing K)
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * Returns what qdnnCreateDequantizePlan does, and _NOT_SUPPORTED for formats and groups that are not prepacked. */
QDNN_API qdnnStatus_t qdnnCreatePrepackPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul, qdnnTensorDescriptor_t w,
                                            qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

/* Plans the way back: REPACKED is read, CODES is written. Arguments and statuses as those of qdnnCreatePrepackPlan. */
QDNN_API qdnnStatus_t qdnnCreateUnpackPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul, qdnnTensorDescriptor_t w,
                                           qdnnQuantDescriptor_t quant, qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
