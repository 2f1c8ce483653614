/* Objects that were destroyed, or are of another kind, are refused with a message and never dereferenced. */
#include <qdnn/qdnn.h>

#include "scene.h"

static void *as_any(void *object)
{
    return object;
}

TEST_CASE(ApiObjects, DestroyedDescriptorsAreRefused)
{
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    OK(qdnnCreateTensorDescriptor(&tensor));
    OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&quant));
    OK(qdnnDestroyTensorDescriptor(tensor));
    CHECK_STATUS_IS(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 1, (const int64_t[]){4}, NULL),
                    QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "tensor is a tensor descriptor that was destroyed; create another with");
    CHECK_STATUS_IS(qdnnDestroyTensorDescriptor(tensor), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "that was destroyed");
    size_t bytes = 7;
    CHECK_STATUS_IS(qdnnGetOperandSize(quant, tensor, QDNN_OPERAND_CODES, &bytes), QDNN_STATUS_BAD_PARAM);
    CHECK_EQ_U64(bytes, 7);
    OK(qdnnDestroyQuantDescriptor(quant));
    CHECK_STATUS_IS(qdnnDestroyQuantDescriptor(quant), QDNN_STATUS_BAD_PARAM);
}

TEST_CASE(ApiObjects, ObjectsOfAnotherKindAreRefused)
{
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnMatmulDescriptor_t matmul = NULL;
    OK(qdnnCreateTensorDescriptor(&tensor));
    OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateMatmulDescriptor(&matmul));
    CHECK_STATUS_IS(qdnnSetQuantAttribute(as_any(tensor), QDNN_QUANT_GROUP_SIZE, 32), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "quant is a tensor descriptor; it must be a quantization descriptor");
    CHECK_STATUS_IS(qdnnDestroy(as_any(matmul)), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "handle is a matmul descriptor; it must be a handle, created by qdnnCreate");
    CHECK_STATUS_IS(qdnnDestroyPlan(as_any(tensor)), QDNN_STATUS_BAD_PARAM);
    OK(qdnnDestroyTensorDescriptor(tensor));
    OK(qdnnDestroyMatmulDescriptor(matmul));
}

TEST_CASE(ApiObjects, DestroyedHandlesAndPlansAreRefused)
{
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    OK(qdnnCreateOn(&handle, "vm"));
    OK(qdnnCreateTensorDescriptor(&tensor));
    OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&quant));
    OK(qdnnCreateScalePlan(handle, tensor, quant, &plan));
    OK(qdnnDestroyPlan(plan));
    CHECK_STATUS_IS(qdnnExecute(handle, plan, NULL, 0, NULL, 0), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "plan is a plan that was destroyed");
    CHECK_STATUS_IS(qdnnDestroyPlan(plan), QDNN_STATUS_BAD_PARAM);
    OK(qdnnDestroy(handle));
    CHECK_STATUS_IS(qdnnSynchronize(handle), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "handle is a handle that was destroyed");
    CHECK_STATUS_IS(qdnnDestroy(handle), QDNN_STATUS_BAD_PARAM);
    qdnnPlan_t none = NULL;
    CHECK_STATUS_IS(qdnnCreateScalePlan(handle, tensor, quant, &none), QDNN_STATUS_BAD_PARAM);
    CHECK(none == NULL);
    OK(qdnnDestroyTensorDescriptor(tensor));
    OK(qdnnDestroyQuantDescriptor(quant));
}
