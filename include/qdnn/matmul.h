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
     * on every SM of the family. x is f16 or (not on sm_75) bf16. */
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
    QDNN_MATMUL_ATTRIBUTE_COUNT = 8
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

/* Frees a descriptor. Plans that were made from it do not need it any more.
 *   matmul   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyMatmulDescriptor(qdnnMatmulDescriptor_t matmul);

/* Plans a product. Operands: X, CODES, SCALE (and what else the format has), as the descriptor says ALPHA (f32, 1 or one for
 * each output of w), BIAS (one for each output of w) and RESIDUAL (as y, and may be y itself); then Y is written. The plan
 * is made for M rows and may be executed with fewer (qdnnExecuteRows).
 *   handle   QDNN_MATMUL_CUBLAS: on a GPU
 *   matmul
 *   x        [..., K]: f32, f16 or bf16; the dimensions before the last make M rows, which may lie apart
 *   w        the shape of the weights, [N, K] or [K, N] (gated: 2N in the place of N); its type is not looked at, but for
 *            QDNN_MATMUL_CUBLAS: the type of x, to which they are dequantized
 *   quant    how the weights are quantized
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

#ifdef __cplusplus
}
#endif
#endif
