/* Tensor descriptors: the type and shape of the data at a pointer. They hold no data and belong to no
 * device. */
#ifndef QDNN_TENSOR_H
#define QDNN_TENSOR_H

#include <qdnn/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { QDNN_DIMS_MAX = 8 };

/* The printed name of a data type: "bf16", "vec2<u32>"; "unknown" for any other number. A type with
 * parameters gives its bare name: "sparse_csr". Thread-safe. */
QDNN_API const char *qdnnGetDataTypeName(qdnnDataType_t type);

/* Gets the size of an element.
 *   type
 *   bits   receives it: 16 for bf16, 4 for nf4, 32 for bool; 0 for types whose size depends on parameters
 *          (array, tensor, opaque...)
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown type. Thread-safe. */
QDNN_API qdnnStatus_t qdnnGetDataTypeBits(qdnnDataType_t type, int *bits);

/* The properties of a data type, which never change. */
typedef struct {
    size_t size;           /* sizeof(qdnnDataTypeInfo_t): set it before the call (docs/compatibility.md) */
    const char *name;      /* as from qdnnGetDataTypeName */
    int bits;              /* as from qdnnGetDataTypeBits */
    bool isFloat;          /* a float type; false for types that have an element type */
    uint64_t leastBytes;   /* minimum size of a value; 4-bit codes count as one byte */
    uint64_t largestBytes; /* maximum size of a value; UINT64_MAX: unlimited */
} qdnnDataTypeInfo_t;

/* Describes a data type.
 *   type
 *   info   receives it; the caller sets its size
 * Returns what qdnnGetDataTypeBits does; _BAD_PARAM_OUT_OF_BOUND also if size is not set.
 * Thread-safe. */
QDNN_API qdnnStatus_t qdnnGetDataTypeInfo(qdnnDataType_t type, qdnnDataTypeInfo_t *info);

/* Prints a data type with its parameters.
 *   type      one without parameters is printed as its name
 *   element   the type of its elements; 0 for types that have none
 *   count     of numbers
 *   numbers   TENSOR_SHAPED, tensor<f32;2x3>: its sizes, 1 to QDNN_DIMS_MAX; VEC, vec<u16;3>: how many;
 *             SPARSE_BSR, sparse_bsr<f16;2x4>: the sizes of a block; SPARSE_CSR and COO, sparse_csr<f32>: none;
 *             DEVICE_MESH, device_mesh<2x4>: its sizes; ARRAY, array<7B>: the bytes of an element; HANDLE and
 *             OPAQUE, handle<0x0000abcd>: the number of the kind
 *   text      receives the name and a terminating zero; not written if it does not fit
 *   size      of text in bytes; 256 is always enough
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown type, and for
 * parameters that the type does not take; _BAD_PARAM_SIZE_INSUFFICIENT. Thread-safe. */
QDNN_API qdnnStatus_t qdnnPrintDataType(qdnnDataType_t type, qdnnDataType_t element, int count,
                                        const uint64_t *numbers, char *text, size_t size);

typedef struct qdnnTensorDescriptor *qdnnTensorDescriptor_t;

/* Creates a descriptor. It describes nothing until it is set: calls that need a tensor refuse it (_BAD_PARAM).
 *   tensor   receives it; qdnnDestroyTensorDescriptor frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_ALLOCATION_FAILED. Thread-safe. */
QDNN_API qdnnStatus_t qdnnCreateTensorDescriptor(qdnnTensorDescriptor_t *tensor);

/* Sets the type and shape of a tensor.
 *   tensor
 *   type      of an element; one that has a size
 *   rank      1 to QDNN_DIMS_MAX
 *   dims      `rank` sizes, slowest first; may be 0
 *   strides   `rank` distances between neighbours along each dimension, in elements, not negative; null:
 *             packed, row-major. Most operations require packed tensors; the others document their strides.
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND if a number is out of range or the
 * tensor would have 2^60 bytes or more; the descriptor is then unchanged. */
QDNN_API qdnnStatus_t qdnnSetTensorDescriptor(qdnnTensorDescriptor_t tensor, qdnnDataType_t type, int rank,
                                              const int64_t *dims, const int64_t *strides);

/* Gets the type and shape of a tensor. Results that are not wanted may be null.
 *   tensor
 *   type, rank     receive them
 *   dims, strides  receive `rank` numbers each: QDNN_DIMS_MAX is always enough
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER for a null tensor. */
QDNN_API qdnnStatus_t qdnnGetTensorDescriptor(qdnnTensorDescriptor_t tensor, qdnnDataType_t *type, int *rank,
                                              int64_t *dims, int64_t *strides);

/* Frees a descriptor. Plans created from it no longer need it.
 *   tensor   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyTensorDescriptor(qdnnTensorDescriptor_t tensor);

#ifdef __cplusplus
}
#endif
#endif
