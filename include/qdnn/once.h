/* One call in place of several: descriptors that are created and set at once, and one-shot calls for products, norms and
 * attention.
 *
 * A one-shot call makes a plan, keeps it in the handle (the 64 used last, of all such calls together), and executes it: the next
 * call with descriptors of the same content only launches. It is given the operands as qdnnExecute is, with their sizes:
 * a buffer whose `bytes` are too few is refused before anything is launched; `bytes` 0: not checked. A workspace, where a plan
 * needs one, is the handle's, which grows as needed: a call that makes a plan, or a larger workspace, is not allowed while the
 * stream is being captured. */
#ifndef QDNN_ONCE_H
#define QDNN_ONCE_H

#include <qdnn/attention.h>
#include <qdnn/integer.h>
#include <qdnn/matmul.h>
#include <qdnn/norm.h>
#include <qdnn/train.h>
#include <qdnn/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Descriptors ---- */

/* An attribute and its value. */
typedef struct {
    int attribute; /* of the descriptor's own list, such as QDNN_MATMUL_BIAS_TYPE */
    int64_t value;
} qdnnSetting_t;

/* qdnnCreateTensorDescriptor and qdnnSetTensorDescriptor.
 *   tensor   receives it; qdnnDestroyTensorDescriptor frees it
 *   type, rank, dims, strides   as for qdnnSetTensorDescriptor
 * Returns what the two do; if setting fails, nothing is created. Thread-safe, as are the others below. */
QDNN_API qdnnStatus_t qdnnCreateTensorDescriptorOf(qdnnTensorDescriptor_t *tensor, qdnnDataType_t type,
                                                   int rank, const int64_t *dims, const int64_t *strides);

/* qdnnCreateQuantDescriptor and qdnnSetQuantDescriptor, likewise.
 *   quant   receives it; qdnnDestroyQuantDescriptor frees it
 *   storage, granularity, extent   as for qdnnSetQuantDescriptor
 * Returns what the two do. */
QDNN_API qdnnStatus_t qdnnCreateQuantDescriptorOf(qdnnQuantDescriptor_t *quant, qdnnDataType_t storage,
                                                  qdnnGranularity_t granularity, int64_t extent);

/* qdnnCreateQuantDescriptor and qdnnSetQuantWeights, likewise.
 *   quant   receives it; qdnnDestroyQuantDescriptor frees it
 *   weights, extent   as for qdnnSetQuantWeights
 * Returns what the two do. */
QDNN_API qdnnStatus_t qdnnCreateQuantDescriptorOfWeights(qdnnQuantDescriptor_t *quant, qdnnWeights_t weights,
                                                         int64_t extent);

/* qdnnCreateMatmulDescriptor and qdnnSetMatmulAttribute for each setting, likewise.
 *   matmul     receives it; qdnnDestroyMatmulDescriptor frees it
 *   settings   set in this order; null if there are none
 *   count      of settings
 * Returns what these do; _BAD_PARAM_OUT_OF_BOUND for a negative count. */
QDNN_API qdnnStatus_t qdnnCreateMatmulDescriptorOf(qdnnMatmulDescriptor_t *matmul,
                                                   const qdnnSetting_t *settings, int count);

/* The same for integer products. */
QDNN_API qdnnStatus_t qdnnCreateIntegerDescriptorOf(qdnnIntegerDescriptor_t *integer,
                                                    const qdnnSetting_t *settings, int count);

/* The same for training. */
QDNN_API qdnnStatus_t qdnnCreateTrainDescriptorOf(qdnnTrainDescriptor_t *train, const qdnnSetting_t *settings,
                                                  int count);

/* ---- One-shot calls ----
 *
 * The first arguments of each are those of the call that creates its plan, which documents the operands.
 *   bindings, count   the operands
 * Returns what creating the plan and qdnnExecute do; _BAD_PARAM_SIZE_INSUFFICIENT names the binding, its bytes and those that
 * are needed. */

/* y = x W with quantized weights, and what the descriptor adds: see qdnnCreateMatmulPlan. */
QDNN_API qdnnStatus_t qdnnMatmulWith(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                     qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                     qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y,
                                     const qdnnBinding_t *bindings, int count);

/* A product whose weights are described by a type: see qdnnCreateTypedMatmulPlan. */
QDNN_API qdnnStatus_t qdnnTypedMatmulWith(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                          qdnnTensorDescriptor_t x, const qdnnQuantizedType_t *type,
                                          int64_t n, qdnnTensorDescriptor_t y, const qdnnBinding_t *bindings,
                                          int count);

/* Codes times codes: see qdnnCreateIntegerMatmulPlan. */
QDNN_API qdnnStatus_t qdnnIntegerMatmulWith(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                            qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                            qdnnTensorDescriptor_t y, const qdnnBinding_t *bindings,
                                            int count);

/* The dot product of two i4 vectors: see qdnnCreateIntegerDotPlan. */
QDNN_API qdnnStatus_t qdnnIntegerDotWith(qdnnHandle_t handle, qdnnTensorDescriptor_t a,
                                         qdnnTensorDescriptor_t b, qdnnTensorDescriptor_t y,
                                         const qdnnBinding_t *bindings, int count);

/* The k largest scores of each row: see qdnnCreateIntegerTopPlan. */
QDNN_API qdnnStatus_t qdnnIntegerTopWith(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                         qdnnTensorDescriptor_t w, qdnnTensorDescriptor_t scores,
                                         qdnnTensorDescriptor_t indices, const qdnnBinding_t *bindings,
                                         int count);

/* A 2-D convolution of codes: see qdnnCreateIntegerConvPlan. */
QDNN_API qdnnStatus_t qdnnIntegerConvWith(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                          qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                          qdnnTensorDescriptor_t y, const qdnnBinding_t *bindings, int count);

/* The norm of each row: see qdnnCreateNormPlan. */
QDNN_API qdnnStatus_t qdnnNormWith(qdnnHandle_t handle, const qdnnNorm_t *norm, qdnnTensorDescriptor_t x,
                                   qdnnTensorDescriptor_t y, qdnnQuantDescriptor_t quant,
                                   const qdnnBinding_t *bindings, int count);

/* Attention over a KV cache: see qdnnCreateAttentionPlan. */
QDNN_API qdnnStatus_t qdnnAttentionWith(qdnnHandle_t handle, const qdnnAttention_t *attention,
                                        qdnnTensorDescriptor_t x, const qdnnKvCache_t *keys,
                                        const qdnnKvCache_t *values, qdnnTensorDescriptor_t y,
                                        const qdnnBinding_t *bindings, int count);

/* Fake quantization with scales that are parameters, and its gradients: see qdnnCreateLsqPlan and
 * qdnnCreateLsqBackwardPlan. */
QDNN_API qdnnStatus_t qdnnLsqWith(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnTrainDescriptor_t train,
                                  const qdnnBinding_t *bindings, int count);
QDNN_API qdnnStatus_t qdnnLsqBackwardWith(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                          qdnnTrainDescriptor_t train, const qdnnBinding_t *bindings,
                                          int count);

#ifdef __cplusplus
}
#endif
#endif
