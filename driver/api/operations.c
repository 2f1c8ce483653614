/* Operations by their stable names, for tools. */
#include <string.h>

#include <qdnn/plan.h>

#include "driver/base/check.h"
#include "kernels/kernels.h"

const char *qdnnGetOperationName(int index)
{
    int number = 0;
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_rows[i].operation_name && number++ == index)
            return kernel_rows[i].operation_name;
    return NULL;
}

qdnnStatus_t qdnnFindOperation(const char *operation, const char **kernel)
{
    CALL_BEGIN();
    CHECK_NOT_NULL(operation);
    CHECK_NOT_NULL(kernel);
    const kernel_row *row = kernel_find(operation);
    if (!row || strcmp(row->name, operation) == 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                          "unknown operation '%s'; qdnnGetOperationName lists the known ones",
                          operation);
    *kernel = row->name;
    return QDNN_STATUS_SUCCESS;
}
