/* The version and the names of the statuses. */
#include <qdnn/qdnn.h>

int qdnnGetVersion(void)
{
    return QDNN_VERSION;
}

const char *qdnnGetErrorString(qdnnStatus_t status)
{
#define NAME(code)                                                                                           \
    case code:                                                                                               \
        return #code
    switch (status) {
        NAME(QDNN_STATUS_SUCCESS);
        NAME(QDNN_STATUS_BAD_PARAM);
        NAME(QDNN_STATUS_BAD_PARAM_NULL_POINTER);
        NAME(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        NAME(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME);
        NAME(QDNN_STATUS_NOT_SUPPORTED);
        NAME(QDNN_STATUS_NOT_SUPPORTED_SM);
        NAME(QDNN_STATUS_INTERNAL_ERROR);
        NAME(QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED);
        NAME(QDNN_STATUS_EXECUTION_FAILED);
    }
#undef NAME
    return "unknown status";
}
