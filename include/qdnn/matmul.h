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
    /* By the contract of docs/numerics.md: the same bits everywhere. No kernel of this version does it. */
    QDNN_MATMUL_EXACT = 0,
    /* The weights are dequantized to the type of x in the workspace, by the contract; the product is
     * cuBLAS's, with f32 sums, and its bits depend on the GPU and on the version of cuBLAS. For a GPU, and
     * for large M. */
    QDNN_MATMUL_CUBLAS = 1
} qdnnMatmulAlgorithm_t;

/* What a descriptor says, each with its default. Numbers are frozen. */
typedef enum {
    QDNN_MATMUL_ALGORITHM = 0,   /* qdnnMatmulAlgorithm_t; default EXACT */
    QDNN_MATMUL_TRANSPOSE_W = 1, /* 1: w is [N, K], as files of weights are; 0: w is [K, N]; default 1 */
    QDNN_MATMUL_ATTRIBUTE_COUNT = 2
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

/* Frees a descriptor. Plans that were made from it do not need it any more.
 *   matmul   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyMatmulDescriptor(qdnnMatmulDescriptor_t matmul);

/* Plans a product. Operands: X, CODES, SCALE (and ZERO), then Y is written.
 *   handle   on a GPU, for QDNN_MATMUL_CUBLAS
 *   matmul
 *   x        [..., K]: f32, f16 or bf16, packed; the dimensions before the last make M rows
 *   w        the shape of the weights, [N, K] or [K, N], in the type of x, to which they are dequantized
 *   quant    how the weights are quantized
 *   y        [..., N], M rows, packed: of the type of x, or f32
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * Returns what qdnnCreateDequantizePlan does, and: _BAD_PARAM_SHAPE_MISMATCH where the shapes do not fit
 * together; _BAD_PARAM_OUT_OF_BOUND where M, N or K is 2^31 or more, or K is 0; _NOT_SUPPORTED for
 * QDNN_MATMUL_EXACT and, with QDNN_MATMUL_CUBLAS, on ptxvm; _NOT_SUPPORTED_LIBRARY_MISSING where there is no
 * cuBLAS. */
QDNN_API qdnnStatus_t qdnnCreateMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                           qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                           qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                           qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
