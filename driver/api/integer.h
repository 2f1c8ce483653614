/* Shared by the plans of integer products. */
#ifndef QDNN_DRIVER_INTEGER_H
#define QDNN_DRIVER_INTEGER_H

#include <qdnn/integer.h>

#include "driver/api/plan.h"

struct qdnnIntegerDescriptor {
    int64_t values[QDNN_INTEGER_ATTRIBUTE_COUNT];
    float multiplier, alpha;
};

const char *integer_attribute_name(qdnnIntegerAttribute_t attribute);

/* Sets how sums become codes, from a descriptor; checks that the zero points are in the range of their
 * types. */
qdnnStatus_t integer_set_codes(const struct qdnnIntegerDescriptor *integer, qdnnDataType_t x,
                               qdnnDataType_t y, request *out);
/* Rejects an attribute that is not at its default, for an operation that does not support it. */
qdnnStatus_t integer_refuse(const struct qdnnIntegerDescriptor *integer, qdnnIntegerAttribute_t attribute,
                            const char *operation);
/* Rejects sizes above KERNEL_SIZE_32. */
qdnnStatus_t integer_check_size(const char *name, int64_t size);

/* Completes the request and creates the plan; that of a product can be executed with fewer rows. */
qdnnStatus_t integer_plan(qdnnHandle_t handle, request *r, bool takes_rows, qdnnPlan_t *plan);

#endif
