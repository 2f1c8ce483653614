/* Descriptors of tensors: what lies at a pointer. They hold no data and belong to no device. */
#ifndef QDNN_TENSOR_H
#define QDNN_TENSOR_H

#include <qdnn/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The printed name of a data type: "bf16"; "unknown" for a number that is none. Any thread. */
QDNN_API const char *qdnnGetDataTypeName(qdnnDataType_t type);

/* The size of an element.
 *   type
 *   bits   receives it: 16 for bf16, 4 for nf4; 0 for types without a size of their own (tensor, bytes,
 *          opaque...)
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for a number that is no type. Any
 * thread. */
QDNN_API qdnnStatus_t qdnnGetDataTypeBits(qdnnDataType_t type, int *bits);

enum { QDNN_DIMS_MAX = 8 };

typedef struct qdnnTensorDescriptor *qdnnTensorDescriptor_t;

/* Creates a descriptor: of one f32, until it is set.
 *   tensor   receives it; qdnnDestroyTensorDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Any thread. */
QDNN_API qdnnStatus_t qdnnCreateTensorDescriptor(qdnnTensorDescriptor_t *tensor);

/* Says what the tensor is.
 *   tensor
 *   type      of an element; one that has a size
 *   rank      1 to QDNN_DIMS_MAX
 *   dims      `rank` sizes, slowest first; 0 is a size too
 *   strides   `rank` distances between neighbours along each dimension, in elements, not negative; null:
 *             packed, row-major. Operations say which strides they take; today all ask for packed ones.
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND where a number is out of its range or
 * the whole would have 2^60 bytes or more; the descriptor then stays as it was. */
QDNN_API qdnnStatus_t qdnnSetTensorDescriptor(qdnnTensorDescriptor_t tensor, qdnnDataType_t type, int rank,
                                              const int64_t *dims, const int64_t *strides);

/* What was set. Each result may be null where it is not wanted.
 *   tensor
 *   type, rank     receive them
 *   dims, strides  receive `rank` numbers each: QDNN_DIMS_MAX are room enough
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER for a null tensor. */
QDNN_API qdnnStatus_t qdnnGetTensorDescriptor(qdnnTensorDescriptor_t tensor, qdnnDataType_t *type, int *rank,
                                              int64_t *dims, int64_t *strides);

/* Frees a descriptor. Plans that were made from it do not need it any more.
 *   tensor   null is fine
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyTensorDescriptor(qdnnTensorDescriptor_t tensor);

#ifdef __cplusplus
}
#endif
#endif
