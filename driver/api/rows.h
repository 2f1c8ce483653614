/* Plans of operations on rows: what norms, operations on elements and rope have in common. */
#ifndef QDNN_DRIVER_ROWS_H
#define QDNN_DRIVER_ROWS_H

#include "driver/api/request.h"

/* A tensor as tokens of adjacent rows: the first dimension, all others but the last, the last. */
typedef struct row_extent {
    uint64_t tokens, heads, columns;
    uint64_t stride; /* elements from token to token */
} row_extent;

/* Refuses types other than f32, f16 and bf16, and strides that are not packed except for the first one. */
qdnnStatus_t rows_of(const char *name, const struct qdnnTensorDescriptor *tensor, row_extent *out);

/* Copies settings that a caller passes with the size that it knows: what the caller does not know is 0, and what this
 * library does not know has to be. */
qdnnStatus_t rows_take_settings(const char *name, const void *from, void *to, size_t known);

/* Whether a type is one of F32, F16, BF16, or 0, which stands for "none". */
qdnnStatus_t rows_check_type(const char *name, qdnnDataType_t type);

/* Completes a request whose settings are made, but for the row of the registry: that of the plain operation, or of the
 * one with a result that is quantized from y. */
qdnnStatus_t rows_settle(kernel_operation plain, kernel_operation quantized,
                         const struct qdnnTensorDescriptor *y, const struct qdnnQuantDescriptor *quant,
                         request *r);

/* Completes a request whose row and settings are made. */
qdnnStatus_t rows_finish(request *r);

/* For fusing, which only asks; nothing is reported. Gives an operation the quantization behind it that `alone` is by itself;
 * completes a request. False: there is no such kernel. */
bool rows_take_quantization(kernel_operation quantized, const request *alone, request *r);
bool rows_can_finish(request *r, char *reason, size_t reason_size);

#endif
