/* The version and the names of the statuses. */
#include "test.h"

#include <qdnn/qdnn.h>

#include <stdio.h>

TEST_CASE(Status, EveryCodeHasItsName)
{
#define CHECK_NAME(status, number)                                                                           \
    do {                                                                                                     \
        CHECK_EQ_I64(status, number);                                                                        \
        CHECK_EQ_STR(qdnnGetErrorString(status), #status);                                                   \
    } while (0)
    CHECK_NAME(QDNN_STATUS_SUCCESS, 0);
    CHECK_NAME(QDNN_STATUS_BAD_PARAM, 2000);
    CHECK_NAME(QDNN_STATUS_BAD_PARAM_NULL_POINTER, 2001);
    CHECK_NAME(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, 2002);
    CHECK_NAME(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, 2003);
    CHECK_NAME(QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, 2004);
    CHECK_NAME(QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, 2005);
    CHECK_NAME(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, 2006);
    CHECK_NAME(QDNN_STATUS_NOT_SUPPORTED, 3000);
    CHECK_NAME(QDNN_STATUS_NOT_SUPPORTED_SM, 3001);
    CHECK_NAME(QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, 3002);
    CHECK_NAME(QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, 3003);
    CHECK_NAME(QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD, 3004);
    CHECK_NAME(QDNN_STATUS_NOT_SUPPORTED_LIBRARY_MISSING, 3005);
    CHECK_NAME(QDNN_STATUS_INTERNAL_ERROR, 4000);
    CHECK_NAME(QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED, 4001);
    CHECK_NAME(QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, 4002);
    CHECK_NAME(QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4003);
    CHECK_NAME(QDNN_STATUS_EXECUTION_FAILED, 5000);
    CHECK_NAME(QDNN_STATUS_EXECUTION_FAILED_STICKY, 5001);
#undef CHECK_NAME
    CHECK_EQ_STR(qdnnGetErrorString((qdnnStatus_t)12345), "unknown status");
}

/* The version is written in the header and in CMakeLists.txt. */
TEST_CASE(Status, VersionIsTheHeadersAndTheProjects)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", QDNN_MAJOR, QDNN_MINOR, QDNN_PATCH);
    CHECK_EQ_STR(text, QDNN_PROJECT_VERSION);
    CHECK_EQ_I64(qdnnGetVersion(), QDNN_VERSION);
}
