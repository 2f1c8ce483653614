/* Operations for training: fake quantization with its gradients, and LSQ (learned step size). docs/numerics.md has the
 * formulas. Data, scales and states are f32.
 *
 *   forward    y = clamp(round(x / s), -qmax, qmax) * s, qmax = 2^(bits - 1) - 1
 *   backward   dx from x, dy and the same s; of LSQ also the gradient of each scale
 *
 * Plans are executed by qdnnExecute, with the operands that each plan names. */
#ifndef QDNN_TRAIN_H
#define QDNN_TRAIN_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnTrainDescriptor *qdnnTrainDescriptor_t;

/* The attributes of a descriptor, with their defaults. Numbers are frozen. */
typedef enum {
    QDNN_TRAIN_BITS = 0,        /* 8, 4 or 2; default 8 */
    QDNN_TRAIN_GRANULARITY = 1, /* qdnnGranularity_t: TENSOR, CHANNEL or GROUP; default TENSOR */
    QDNN_TRAIN_AXIS = 2,        /* of CHANNEL: 0 to QDNN_DIMS_MAX - 1; default 0 */
    QDNN_TRAIN_GROUP_SIZE =
        3, /* of GROUP: consecutive elements of the flat tensor; 1 to 2^40;
                                   default 128 */
    QDNN_TRAIN_SCALE_MODE = 4, /* qdnnScaleMode_t of fake quantization; default BATCH */
    QDNN_TRAIN_BACKWARD = 5,   /* qdnnBackward_t of fake quantization; default CLIPPED */
    QDNN_TRAIN_ROUNDING = 6,   /* qdnnRounding_t; default TIES_AWAY */
    QDNN_TRAIN_GRADIENT_FACTOR =
        7, /* 1: the gradient of an LSQ scale is multiplied by 1 / sqrt(count * qmax), count
                                       being the number of elements that share it; default 0 */
    QDNN_TRAIN_ATTRIBUTE_COUNT = 8
} qdnnTrainAttribute_t;

/* Creates a descriptor with every value at its default: 8 bits, one scale for the tensor, computed from each batch.
 *   train   receives it; qdnnDestroyTrainDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Any thread. */
QDNN_API qdnnStatus_t qdnnCreateTrainDescriptor(qdnnTrainDescriptor_t *train);

/* Sets one attribute.
 *   train
 *   attribute   which
 *   value       as the list above says
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute or a value that it does not
 * take; the descriptor then stays as it was. */
QDNN_API qdnnStatus_t qdnnSetTrainAttribute(qdnnTrainDescriptor_t train, qdnnTrainAttribute_t attribute,
                                            int64_t value);

/* Gets one attribute.
 *   train
 *   attribute   which
 *   value       receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown attribute. */
QDNN_API qdnnStatus_t qdnnGetTrainAttribute(qdnnTrainDescriptor_t train, qdnnTrainAttribute_t attribute,
                                            int64_t *value);

/* The decay of scale mode EMA: how much of the state stays with each batch. 0.99 by default.
 *   train
 *   decay   0 to 1
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND. */
QDNN_API qdnnStatus_t qdnnSetTrainDecay(qdnnTrainDescriptor_t train, float decay);

/* The decay.
 *   train
 *   decay   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetTrainDecay(qdnnTrainDescriptor_t train, float *decay);

/* How many scales a tensor has: the f32 of STATE, SCALE and DSCALE.
 *   train
 *   tensor
 *   count    receives it; 0 for a tensor without elements
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_SHAPE_MISMATCH for an axis that the tensor does not have;
 * _NOT_SUPPORTED for a tensor that is not f32 or not packed. */
QDNN_API qdnnStatus_t qdnnGetTrainScaleCount(qdnnTrainDescriptor_t train, qdnnTensorDescriptor_t tensor,
                                             size_t *count);

/* Frees a descriptor. Plans made from it no longer need it.
 *   train   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyTrainDescriptor(qdnnTrainDescriptor_t train);

/* Plans fake quantization. Operands: X is read, Y written. Scale mode FIXED: STATE is read; EMA: it is read and written
 * (fill it with 0 before the first batch).
 *   handle
 *   x        the tensor: f32, packed
 *   train
 *   plan     receives it; qdnnDestroyPlan frees it, before the handle
 * Returns what qdnnCreateScalePlan does. */
QDNN_API qdnnStatus_t qdnnCreateFakeQuantizePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                 qdnnTrainDescriptor_t train, qdnnPlan_t *plan);

/* Plans the gradient of fake quantization. Operands: X and DY are read, DX is written. Scale modes FIXED and EMA: STATE
 * is read, as the forward left it. QDNN_BACKWARD_IDENTITY has neither X nor STATE.
 * Arguments and statuses as qdnnCreateFakeQuantizePlan. */
QDNN_API qdnnStatus_t qdnnCreateFakeQuantizeBackwardPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                         qdnnTrainDescriptor_t train, qdnnPlan_t *plan);

/* Plans LSQ: fake quantization with scales that are parameters. Operands: X and SCALE are read, Y is written.
 * Arguments and statuses as qdnnCreateFakeQuantizePlan; scale mode and backward are ignored. */
QDNN_API qdnnStatus_t qdnnCreateLsqPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                        qdnnTrainDescriptor_t train, qdnnPlan_t *plan);

/* Plans the gradients of LSQ. Operands: X, SCALE and DY are read, DX and DSCALE written. A long group needs a workspace.
 * Arguments and statuses as qdnnCreateLsqPlan. */
QDNN_API qdnnStatus_t qdnnCreateLsqBackwardPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                                qdnnTrainDescriptor_t train, qdnnPlan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
