/* The version and the names of the statuses. */
#include "test.h"

#include <qdnn/qdnn.h>

TEST_CASE(Status, EveryCodeHasItsName)
{
    CHECK_EQ_STR(qdnnGetErrorString(QDNN_STATUS_SUCCESS), "QDNN_STATUS_SUCCESS");
    CHECK_EQ_STR(qdnnGetErrorString(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND), "QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND");
    CHECK_EQ_STR(qdnnGetErrorString((qdnnStatus_t)12345), "unknown status");
}

TEST_CASE(Status, VersionIsTheHeaders)
{
    CHECK_EQ_I64(qdnnGetVersion(), QDNN_VERSION);
}
