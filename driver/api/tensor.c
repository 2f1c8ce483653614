/* Tensor descriptors. */
#include "driver/base/alloc.h"
#include "driver/base/check.h"
#include "driver/base/data_type.h"
#include "driver/api/descriptors.h"

#include <string.h>

uint64_t tensor_elements(const struct qdnnTensorDescriptor *tensor)
{
    uint64_t n = 1;
    for (int i = 0; i < tensor->rank; i++)
        n *= (uint64_t)tensor->dims[i];
    return n;
}

bool tensor_is_packed(const struct qdnnTensorDescriptor *tensor)
{
    int64_t next = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->dims[i] == 0)
            return true;
        if (tensor->dims[i] > 1 && tensor->strides[i] != next)
            return tensor_elements(tensor) == 0;
        next *= tensor->dims[i];
    }
    return true;
}

static void set_packed_strides(struct qdnnTensorDescriptor *tensor)
{
    int64_t next = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        tensor->strides[i] = next;
        next *= tensor->dims[i] > 0 ? tensor->dims[i] : 1;
    }
}

qdnnStatus_t qdnnCreateTensorDescriptor(qdnnTensorDescriptor_t *tensor)
{
    CALL_BEGIN_WITH(tensor);
    CHECK_NOT_NULL(tensor);
    qdnnTensorDescriptor_t made = object_create(OBJECT_TENSOR, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    *made = (struct qdnnTensorDescriptor){.type = QDNN_DATA_F32}; /* rank 0: not set yet */
    *tensor = made;
    return QDNN_STATUS_SUCCESS;
}

/* Below 2^63 bits, so below 2^60 bytes and far from overflow in all sums computed from it. The other sizes
 * are checked even if one is 0, because packed strides are products of them. */
static qdnnStatus_t check_extent(const struct qdnnTensorDescriptor *t, int bits)
{
    int64_t product = bits, last = 0, span;
    for (int i = 0; i < t->rank; i++) {
        if (__builtin_mul_overflow(product, t->dims[i] > 0 ? t->dims[i] : 1, &product))
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                              "the product of dims is too large: a tensor must have fewer than 2^60 bytes");
    }
    for (int i = 0; i < t->rank; i++) {
        if (__builtin_mul_overflow(t->dims[i] > 0 ? t->dims[i] - 1 : 0, t->strides[i], &span) ||
            __builtin_mul_overflow(span, (int64_t)bits, &span) || __builtin_add_overflow(last, span, &last))
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                              "strides[%d] is %lld: the tensor would span 2^60 bytes or more", i,
                              (long long)t->strides[i]);
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_sizes(const char *name, const int64_t *sizes, int rank)
{
    for (int i = 0; i < rank; i++)
        if (sizes[i] < 0)
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s[%d] is %lld; it must not be negative",
                              name, i, (long long)sizes[i]);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t tensor_set(struct qdnnTensorDescriptor *tensor, qdnnDataType_t type, int rank,
                        const int64_t *dims, const int64_t *strides)
{
    int bits = data_type_bits(type);
    if (bits <= 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "type is %d (%s); elements must have a size, as f32 does", (int)type,
                          qdnnGetDataTypeName(type));
    if (rank < 1 || rank > QDNN_DIMS_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "rank is %d; it must be 1 to %d", rank,
                          QDNN_DIMS_MAX);
    CHECK_STATUS(check_sizes("dims", dims, rank));
    struct qdnnTensorDescriptor made = {.type = type, .rank = rank};
    memcpy(made.dims, dims, (size_t)rank * sizeof *dims);
    if (strides) {
        CHECK_STATUS(check_sizes("strides", strides, rank));
        memcpy(made.strides, strides, (size_t)rank * sizeof *strides);
    }
    CHECK_STATUS(check_extent(&made, bits));
    if (!strides)
        set_packed_strides(&made);
    *tensor = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetTensorDescriptor(qdnnTensorDescriptor_t tensor, qdnnDataType_t type, int rank,
                                     const int64_t *dims, const int64_t *strides)
{
    CALL_BEGIN_WITH(tensor, type, rank, dims, strides);
    CHECK_NOT_NULL(tensor);
    CHECK_NOT_NULL(dims);
    return tensor_set(tensor, type, rank, dims, strides);
}

qdnnStatus_t qdnnGetTensorDescriptor(qdnnTensorDescriptor_t tensor, qdnnDataType_t *type, int *rank,
                                     int64_t *dims, int64_t *strides)
{
    CALL_BEGIN_WITH(tensor, type, rank, dims, strides);
    CHECK_NOT_NULL(tensor);
    if (type)
        *type = tensor->type;
    if (rank)
        *rank = tensor->rank;
    if (dims)
        memcpy(dims, tensor->dims, (size_t)tensor->rank * sizeof *dims);
    if (strides)
        memcpy(strides, tensor->strides, (size_t)tensor->rank * sizeof *strides);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnDestroyTensorDescriptor(qdnnTensorDescriptor_t tensor)
{
    CALL_BEGIN_WITH(tensor);
    if (tensor)
        CHECK_NOT_NULL(tensor);
    object_destroy(tensor);
    return QDNN_STATUS_SUCCESS;
}
