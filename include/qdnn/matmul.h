/* Products with quantized weights: y = x W, or x W^T. */
#ifndef QDNN_MATMUL_H
#define QDNN_MATMUL_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnMatmulDescriptor *qdnnMatmulDescriptor_t;

/* How the product is computed. The numbers never change. */
typedef enum {
    /* By the contract of docs/numerics.md: the same bits on every SM, in every batch, on the host and on ptxvm. */
    QDNN_MATMUL_EXACT = 0,
    /* The weights are dequantized to the type of x in the workspace, by the contract; cuBLAS then computes
     * the product, with f32 sums. Its bits depend on the GPU and on the version of cuBLAS. Needs a GPU;
     * suited to large M. Alpha, bias, activation, gate and residual are not supported. */
    QDNN_MATMUL_CUBLAS = 1,
    /* TENSOR for x in FP8, and for x in f16 or bf16 where the SM has the instruction (bf16: not sm_75); EXACT for
     * x in f32. After qdnnSetMath(handle, QDNN_MATH_EXACT) it is EXACT always. M, N, K and the format of the weights have no
     * part in it. qdnnGetPlanInfo tells what was chosen, and why. */
    QDNN_MATMUL_AUTO = 2,
    /* By tensor cores, as docs/numerics.md defines it for the SM's family: the same bits in every batch, with
     * every kernel, and on every SM of the family. x is f16, bf16 (not on sm_75), or FP8 with FP8 weights:
     * see qdnnCreateMatmulPlan. */
    QDNN_MATMUL_TENSOR = 3
} qdnnMatmulAlgorithm_t;

/* The attributes of a descriptor and their defaults. The numbers never change. y = out(act(alpha (x W) +
 * bias) + residual), without the parts that are absent. */
typedef enum {
    QDNN_MATMUL_ALGORITHM = 0,   /* qdnnMatmulAlgorithm_t; default AUTO */
    QDNN_MATMUL_TRANSPOSE_W = 1, /* 1: w is [N, K], as in most weight files; 0: w is [K, N]; default 1 */
    QDNN_MATMUL_ALPHA = 2,       /* qdnnAlpha_t; default NONE */
    QDNN_MATMUL_BIAS_TYPE = 3,   /* qdnnDataType_t: F32, F16, BF16; 0: no bias; default 0 */
    QDNN_MATMUL_ACTIVATION = 4,  /* qdnnActivation_t; default NONE */
    /* 1: w has 2N outputs, first a, then b, and y = out(act(a) * b + residual), as in SwiGLU (SILU) and GeGLU
     * (GELU); default 0 */
    QDNN_MATMUL_GATED = 5,
    QDNN_MATMUL_RESIDUAL = 6, /* 1: the operand RESIDUAL is added; default 0 */
    /* 7 is reserved. */
    /* Grouped products (mixture of experts): w is a stack [experts, N, K] or [experts, K, N], and the operand
     * EXPERT_INDEX gives the expert of each row of y. 0: the product is not grouped; default 0. */
    QDNN_MATMUL_EXPERTS = 8,
    /* 1: as the last step, each row of the result is multiplied by its element of the operand ROW_WEIGHT, the
     * router's probability; default 0 */
    QDNN_MATMUL_ROW_WEIGHT = 9,
    /* 1: an execute copies EXPERT_INDEX to the host, waits for it, and rejects an index out of range before
     * anything is launched; not allowed while a stream is being captured. 0: an index out of range gives a
     * row of NaN; default 0 */
    QDNN_MATMUL_CHECK_INDICES = 10,
    /* LoRA rank; 0: no LoRA. The operands LORA_A [K, rank] and LORA_B [rank, N] are not quantized, and x A B,
     * times the scale of qdnnSetMatmulLoraScale, is added to alpha (x W) before the bias; default 0 */
    QDNN_MATMUL_LORA_RANK = 11,
    QDNN_MATMUL_LORA_TYPE = 12, /* qdnnDataType_t of A and B: F32, F16, BF16; default F16 */
    QDNN_MATMUL_PREPACKED =
        13, /* 1: CODES was prepacked by qdnnCreatePrepackPlan; needs TENSOR or AUTO; default 0 */
    /* 1: x is FP8, and as the first step each row of sums is multiplied by its element of the operand
     * X_SCALE; default 0 */
    QDNN_MATMUL_X_SCALE = 14,
    /* F8E4M3 or F8E5M2: x is f32, f16 or bf16, and is quantized to that type first, with one scale per row;
     * 0: x is used as it is; default 0 */
    QDNN_MATMUL_QUANTIZE_X = 15,
    /* Grouped products: rows of y for each row of x, the slots of a token (experts that it goes to), 1 to 32. x then
     * has M / slots rows, y and EXPERT_INDEX have M, and row i of y is that of row i / slots of x; default 1 */
    QDNN_MATMUL_SLOTS = 16,
    QDNN_MATMUL_ATTRIBUTE_COUNT = 17
} qdnnMatmulAttribute_t;

/* Creates a descriptor with every value at its default.
 *   matmul   receives it; qdnnDestroyMatmulDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Thread-safe. */
QDNN_API qdnnStatus_t qdnnCreateMatmulDescriptor(qdnnMatmulDescriptor_t *matmul);

/* Sets one attribute.
 *   matmul
 *   attribute   one of the list above
 *   value       as in the list above
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute or an invalid
 * value; the descriptor is then unchanged. */
QDNN_API qdnnStatus_t qdnnSetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                             int64_t value);

/* Gets one attribute.
 *   matmul
 *   attribute   one of the list above
 *   value       receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute. */
QDNN_API qdnnStatus_t qdnnGetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                             int64_t *value);

/* Sets QDNN_MATMUL_ALPHA to QDNN_ALPHA_NUMBER, and the constant it uses.
 *   matmul
 *   alpha   any f32
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnSetMatmulAlpha(qdnnMatmulDescriptor_t matmul, float alpha);

/* Sets the factor of LoRA's x A B; 1 by default.
 *   matmul
 *   scale   any f32
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnSetMatmulLoraScale(qdnnMatmulDescriptor_t matmul, float scale);

/* Frees a descriptor. Plans created from it no longer need it.
 *   matmul   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyMatmulDescriptor(qdnnMatmulDescriptor_t matmul);

/* Plans a product. Operands: X, CODES, SCALE (and what else the format has) are read, and if the descriptor
 * asks for them ALPHA (f32, one in all or one per output of w), BIAS (one per output of w), RESIDUAL (like y,
 * and may be y itself), EXPERT_INDEX, ROW_WEIGHT, LORA_A and LORA_B; Y is written. The plan is for M rows and
 * may be executed with fewer (qdnnExecuteRows).
 * For a stack of experts, every array (codes, scales, zeros, ...; alpha and bias, if they have one element
 * per output) is the concatenation of the experts' arrays, each of the size it has for a single expert.
 * FP8 with FP8 (QDNN_MATMUL_TENSOR or AUTO): y = out(act(alpha ((x W) x_scale[m]) + bias) + residual). x is FP8, with X_SCALE (f32 [M]) if QDNN_MATMUL_X_SCALE is 1; or the plan
 * quantizes it (QDNN_MATMUL_QUANTIZE_X), and then its rows must be packed and all of them are computed. w is
 * FP8 without scales (QDNN_GRANULARITY_NONE): pass the scales of its columns as ALPHA; as stored or
 * prepacked. LoRA is not supported.
 *   handle   QDNN_MATMUL_CUBLAS needs one on a GPU
 *   matmul
 *   x        [..., K]: f32, f16, bf16 or FP8; the dimensions before the last make M rows, which need not be
 *            contiguous
 *   w        the shape of the weights, [N, K] or [K, N] (gated: 2N instead of N). Its type is ignored, except
 *            by QDNN_MATMUL_CUBLAS: it is then the type of x, to which the weights are dequantized. With
 *            QDNN_MATMUL_EXPERTS: [experts, N, K] or [experts, K, N]
 *   quant    how the weights are quantized; for a stack, those of one expert: an axis is one of its two
 *            dimensions
 *   y        [..., N], M rows, which need not be contiguous: f32, f16 or bf16 (QDNN_MATMUL_CUBLAS: the type
 *            of x, or f32)
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * K = 0 gives sums of +0. M = 0 or N = 0 writes nothing. Blocks (GGUF) must begin at a multiple of the largest power of two
 * that divides their size.
 * Returns what qdnnCreateDequantizePlan does, and: _BAD_PARAM_SHAPE_MISMATCH if the shapes do not match; with
 * QDNN_MATMUL_TENSOR, or AUTO that is TENSOR, _BAD_PARAM_OUT_OF_BOUND if M, N or K is above 2^31 - 2^16; _NOT_SUPPORTED
 * for x in FP8 and prepacked weights under AUTO after qdnnSetMath(handle, QDNN_MATH_EXACT); with QDNN_MATMUL_CUBLAS
 * _BAD_PARAM_OUT_OF_BOUND if M, N or K is 2^31 or more, or K is 0, _NOT_SUPPORTED on ptxvm, and
 * _NOT_SUPPORTED_LIBRARY_MISSING if there is no cuBLAS. */
QDNN_API qdnnStatus_t qdnnCreateMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                           qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                           qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                           qdnnPlan_t *plan);

/* A quantized type: how an element is stored, and which elements share a scale and a zero point. The type
 * allows different granularities for the two; products require the same. */
typedef struct {
    qdnnDataType_t storage;  /* I4 */
    qdnnGranularity_t scale; /* GROUP: along K; NONE: every scale is 1 */
    int64_t scaleGroupSize;  /* of GROUP; else 0 */
    qdnnGranularity_t zero;  /* like scale; NONE: every zero is 0 */
    int64_t zeroGroupSize;   /* of GROUP; else 0 */
} qdnnQuantizedType_t;

/* Plans a product whose weights are [K, N] in interleaved words of unsigned 4-bit codes, described by a type:
 * scale NONE and zero NONE is quant.linear_4bit (w = code), both GROUP is quant.linear_4bit.affine_grouped
 * (w = (code - zero) * scale, f32 scales and u32 zeros, [groups, N] both). Unlike qdnnCreateMatmulPlan, this
 * call rejects an empty K or N, and its errors end with a remedy: "...; fix: ...".
 *   handle
 *   matmul   as for qdnnCreateMatmulPlan; QDNN_MATMUL_TRANSPOSE_W is ignored, since w is [K, N]
 *   x        [..., K]
 *   type
 *   n        the N of the weights (gated: 2N)
 *   y        [..., N]
 *   plan     receives it
 * Returns what qdnnCreateMatmulPlan does; _BAD_PARAM_OUT_OF_BOUND for an n or a group size below 1, K = 0, and sizes whose
 * product overflows; _NOT_SUPPORTED for a storage or granularity that the operation does not support. */
QDNN_API qdnnStatus_t qdnnCreateTypedMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                                qdnnTensorDescriptor_t x, const qdnnQuantizedType_t *type,
                                                int64_t n, qdnnTensorDescriptor_t y, qdnnPlan_t *plan);

/* Plans prepacking: reordering the codes of weights, once, into the order that tensor cores consume, for
 * products with QDNN_MATMUL_PREPACKED. Scales and zeros stay as they are (products read them fastest if those
 * of neighbouring columns of y are adjacent; E4M3 scales of 16 k, if those of one column are adjacent and K is
 * a multiple of 256); blocks are prepacked with their scales. Operands: CODES is read,
 * REPACKED is written; the size is that of CODES with N rounded up to 16 and K to 64.
 *   handle
 *   matmul   only QDNN_MATMUL_TRANSPOSE_W is used
 *   w        the shape of the weights; for a stack of experts [experts, N, K] or [experts, K, N], each
 *            prepacked by itself
 *   quant    how they are quantized: not at all (f32, f16, bf16), in blocks, or in groups of a multiple of 16 k
 *            (flat ones dividing K)
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * Returns what qdnnCreateDequantizePlan does, and _NOT_SUPPORTED for formats and groups that cannot be
 * prepacked. */
QDNN_API qdnnStatus_t qdnnCreatePrepackPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                            qdnnTensorDescriptor_t w, qdnnQuantDescriptor_t quant,
                                            qdnnPlan_t *plan);

/* Plans the reverse of prepacking: REPACKED is read, CODES is written. Arguments and statuses as for
 * qdnnCreatePrepackPlan. */
QDNN_API qdnnStatus_t qdnnCreateUnpackPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                           qdnnTensorDescriptor_t w, qdnnQuantDescriptor_t quant,
                                           qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
