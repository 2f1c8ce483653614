/* What a call asks for, from its descriptors: a kernel of the registry, its specification, and how many
 * elements. */
#ifndef QDNN_DRIVER_REQUEST_H
#define QDNN_DRIVER_REQUEST_H

#include <qdnn/plan.h>

#include "driver/api/descriptors.h"
#include "kernels/kernels.h"

typedef struct request {
    const kernel_row *row;
    kernel_spec spec;
    uint64_t n;
    uint8_t align[QDNN_OPERAND_COUNT]; /* bytes of an element of each operand; 0: the operation has no such
                                          operand */
    size_t bytes[QDNN_OPERAND_COUNT];  /* the whole */
} request;

/* Validates and resolves. */
qdnnStatus_t request_make(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out);

#endif
