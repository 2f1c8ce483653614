/* Operations by stable name, for tools. */
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
    const kernel_alias *alias = index >= number ? kernel_alias_at(index - number) : NULL;
    return alias ? alias->name : NULL;
}

/* The row of an operation, or the row behind an alias; the name of a kernel is not accepted. */
static qdnnStatus_t find(const char *operation, const kernel_row **row, const kernel_alias **alias)
{
    *alias = kernel_find_alias(operation);
    *row = kernel_find(*alias ? (*alias)->kernel : operation);
    if (*alias || (*row && strcmp((*row)->name, operation) != 0))
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                      "unknown operation '%s'; qdnnGetOperationName lists the known ones", operation);
}

qdnnStatus_t qdnnFindOperation(const char *operation, const char **kernel)
{
    CALL_BEGIN_WITH(operation, kernel);
    CHECK_NOT_NULL(operation);
    CHECK_NOT_NULL(kernel);
    const kernel_row *row;
    const kernel_alias *alias;
    CHECK_STATUS(find(operation, &row, &alias));
    *kernel = row->name;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetOperationSettings(const char *operation, const char **settings)
{
    CALL_BEGIN_WITH(operation, settings);
    CHECK_NOT_NULL(operation);
    CHECK_NOT_NULL(settings);
    const kernel_row *row;
    const kernel_alias *alias;
    CHECK_STATUS(find(operation, &row, &alias));
    *settings = alias ? alias->settings : "";
    return QDNN_STATUS_SUCCESS;
}
