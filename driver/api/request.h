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
    kernel_operand operands[QDNN_OPERAND_COUNT];
} request;

/* Validates and resolves. */
qdnnStatus_t request_make(kernel_operation operation, const struct qdnnTensorDescriptor *tensor,
                          const struct qdnnQuantDescriptor *quant, request *out);

#endif
