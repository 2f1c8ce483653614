/* What a call asks for, derived from its descriptors: a kernel of the registry, its normal specification, and
 * the shape of the problem. */
#ifndef QDNN_DRIVER_REQUEST_H
#define QDNN_DRIVER_REQUEST_H

#include <qdnn/plan.h>

#include "driver/api/descriptors.h"
#include "kernels/kernels.h"

typedef struct request {
    const kernel_row *row;
    kernel_spec spec; /* in normal form */
    kernel_problem problem;
    bool takes_rows; /* the plan may be executed with fewer rows than the problem has */
    kernel_operand operands[QDNN_OPERAND_COUNT]; /* of all repeats together */
    /* How often the launches are repeated, and by how many bytes each operand advances each time: for a stack
     * of matrices. */
    uint64_t repeats, strides[QDNN_OPERAND_COUNT];
} request;

/* Validates the descriptors, and finds the row, the specification and the size of the matrix. */
qdnnStatus_t request_read(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out);

/* The same, and the operands. */
qdnnStatus_t request_make(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out);

/* Groups that are the channels of an axis; `attribute` is the name of the descriptor's attribute, for
 * messages. */
qdnnStatus_t request_set_channels(const struct qdnnTensorDescriptor *tensor, const char *attribute,
                                  int64_t axis, kernel_spec *spec);

/* stack.c: turns a request for a stack of matrices (rank 3 and more) into one per matrix, unless it is
 * equivalent to one matrix of all their rows. */
qdnnStatus_t request_stack(const struct qdnnTensorDescriptor *tensor, request *r);

/* Rejects tensors with gaps or another order of dimensions. */
qdnnStatus_t request_check_packed(const struct qdnnTensorDescriptor *tensor);

/* Dequantizing selected rows of a table: y has one row per index. */
qdnnStatus_t request_make_rows(const struct qdnnTensorDescriptor *table,
                               const struct qdnnQuantDescriptor *quant, const struct qdnnTensorDescriptor *y,
                               request *out);

/* Dequantizing a stack of matrices [..., N, K] in blocks to [..., K, N]. */
qdnnStatus_t request_make_transposed(const struct qdnnTensorDescriptor *w,
                                     const struct qdnnQuantDescriptor *quant,
                                     const struct qdnnTensorDescriptor *y, request *out);

/* Quantizing rows of x into the rows of a table that a list names. */
qdnnStatus_t request_make_quantize_rows(const struct qdnnTensorDescriptor *x,
                                        const struct qdnnQuantDescriptor *quant, qdnnDataType_t index,
                                        const struct qdnnTensorDescriptor *table, request *out);

/* Whether a list may have that type, for a table of so many rows. */
qdnnStatus_t request_check_index(qdnnDataType_t type, uint64_t rows);

/* Quantizing keys or values of new tokens, one scale per head and token; into a tensor of x's own shape if
 * `cache` is null, else into the slots given by a list. */
qdnnStatus_t request_make_kv(const struct qdnnTensorDescriptor *x, const struct qdnnQuantDescriptor *quant,
                             const struct qdnnTensorDescriptor *cache, request *out);

/* Repacking the codes of a tensor from one layout to another. */
qdnnStatus_t request_make_repack(const struct qdnnTensorDescriptor *tensor,
                                 const struct qdnnQuantDescriptor *from, const struct qdnnQuantDescriptor *to,
                                 request *out);

#endif
