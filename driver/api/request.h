/* What a call asks for, from its descriptors: a kernel of the registry, its normal specification, and the shape of
 * the problem. */
#ifndef QDNN_DRIVER_REQUEST_H
#define QDNN_DRIVER_REQUEST_H

#include <qdnn/plan.h>

#include "driver/api/descriptors.h"
#include "kernels/kernels.h"

typedef struct request {
    const kernel_row *row;
    kernel_spec spec; /* normal */
    kernel_problem problem;
    kernel_operand operands[QDNN_OPERAND_COUNT]; /* of all repeats together */
    /* The launches are repeated so often, each time so many bytes further in each operand: a stack of matrices. */
    uint64_t repeats, strides[QDNN_OPERAND_COUNT];
} request;

/* Validates and resolves. */
qdnnStatus_t request_make(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out);

/* Groups that are the channels of an axis; `attribute` is what the descriptor calls it. */
qdnnStatus_t request_set_channels(const struct qdnnTensorDescriptor *tensor, const char *attribute, int64_t axis,
                                  kernel_spec *spec);

/* stack.c: makes a request for a stack of matrices (rank 3 and more) one for each of them, where that is not the same as
 * for one matrix of all their rows. */
qdnnStatus_t request_stack(const struct qdnnTensorDescriptor *tensor, request *r);

/* Refuses tensors with gaps or another order of dimensions. */
qdnnStatus_t request_check_packed(const struct qdnnTensorDescriptor *tensor);

/* Dequantizing rows of a table by their numbers: y has a row for each. */
qdnnStatus_t request_make_rows(const struct qdnnTensorDescriptor *table, const struct qdnnQuantDescriptor *quant,
                               const struct qdnnTensorDescriptor *y, request *out);

/* Quantizing keys or values of new tokens, a scale for each head and token; `cache` may be null: then into a tensor of x's own
 * shape, else to the places that a list names. */
qdnnStatus_t request_make_kv(const struct qdnnTensorDescriptor *x, const struct qdnnQuantDescriptor *quant,
                             const struct qdnnTensorDescriptor *cache, request *out);

/* Bringing the codes of a tensor from one layout into another. */
qdnnStatus_t request_make_repack(const struct qdnnTensorDescriptor *tensor, const struct qdnnQuantDescriptor *from,
                                 const struct qdnnQuantDescriptor *to, request *out);

#endif
