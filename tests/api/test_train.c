/* Descriptors and plans of training: defaults, what is refused and with which message, which operands a plan takes. */
#include <math.h>
#include <string.h>

#include "scene.h"

static void check_refused(qdnnStatus_t status, qdnnStatus_t expected, const char *words)
{
    CHECK_STATUS_IS(status, expected);
    CHECK_HAS(last_sentence(), words);
}

TEST_CASE(ApiTrain, Defaults)
{
    static const int64_t presets[QDNN_TRAIN_ATTRIBUTE_COUNT] = {8,
                                                                QDNN_GRANULARITY_TENSOR,
                                                                0,
                                                                128,
                                                                QDNN_SCALE_MODE_BATCH,
                                                                QDNN_BACKWARD_CLIPPED,
                                                                QDNN_ROUND_TIES_AWAY,
                                                                0};
    qdnnTrainDescriptor_t train = NULL;
    float decay = 0;
    OK(qdnnCreateTrainDescriptor(&train));
    for (int i = 0; i < QDNN_TRAIN_ATTRIBUTE_COUNT; i++) {
        int64_t value = -1;
        OK(qdnnGetTrainAttribute(train, (qdnnTrainAttribute_t)i, &value));
        CHECK_EQ_I64(value, presets[i]);
    }
    OK(qdnnGetTrainDecay(train, &decay));
    CHECK_EQ_F32(decay, 0.99f);
    OK(qdnnDestroyTrainDescriptor(train));
}

/* A refused value leaves the previous one in place. */
TEST_CASE(ApiTrain, ValuesOutOfBounds)
{
    static const struct {
        int attribute;
        int64_t good, bad[3];
        const char *words;
    } cases[] = {
        {QDNN_TRAIN_BITS, 4, {3, 0, 16}, "QDNN_TRAIN_BITS is"},
        {QDNN_TRAIN_GRANULARITY,
         QDNN_GRANULARITY_GROUP,
         {-1, QDNN_GRANULARITY_NONE, 9},
         "QDNN_TRAIN_GRANULARITY is"},
        {QDNN_TRAIN_AXIS, 7, {-1, 8, 99}, "QDNN_TRAIN_AXIS is"},
        {QDNN_TRAIN_GROUP_SIZE, 3, {0, -1, (INT64_C(1) << 40) + 1}, "QDNN_TRAIN_GROUP_SIZE is"},
        {QDNN_TRAIN_SCALE_MODE, QDNN_SCALE_MODE_EMA, {-1, 3, 4}, "QDNN_TRAIN_SCALE_MODE is"},
        {QDNN_TRAIN_BACKWARD, QDNN_BACKWARD_TANH, {-1, 4, 5}, "QDNN_TRAIN_BACKWARD is"},
        {QDNN_TRAIN_ROUNDING, QDNN_ROUND_TIES_TO_EVEN, {-1, 2, 3}, "QDNN_TRAIN_ROUNDING is"},
        {QDNN_TRAIN_GRADIENT_FACTOR, 1, {-1, 2, 3}, "QDNN_TRAIN_GRADIENT_FACTOR is"},
    };
    qdnnTrainDescriptor_t train = NULL;
    OK(qdnnCreateTrainDescriptor(&train));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qdnnTrainAttribute_t attribute = (qdnnTrainAttribute_t)cases[i].attribute;
        OK(qdnnSetTrainAttribute(train, attribute, cases[i].good));
        for (int k = 0; k < 3; k++) {
            int64_t value = -99;
            check_refused(qdnnSetTrainAttribute(train, attribute, cases[i].bad[k]),
                          QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, cases[i].words);
            OK(qdnnGetTrainAttribute(train, attribute, &value));
            CHECK_EQ_I64(value, cases[i].good);
        }
    }
    check_refused(qdnnSetTrainAttribute(train, QDNN_TRAIN_ATTRIBUTE_COUNT, 0),
                  QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute is 8");
    OK(qdnnDestroyTrainDescriptor(train));
}

TEST_CASE(ApiTrain, DecaysOutOfBounds)
{
    static const float bad[] = {-0.001f, 1.001f, NAN, INFINITY, -INFINITY};
    qdnnTrainDescriptor_t train = NULL;
    float decay;
    OK(qdnnCreateTrainDescriptor(&train));
    OK(qdnnSetTrainDecay(train, 0));
    OK(qdnnSetTrainDecay(train, 1));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_refused(qdnnSetTrainDecay(train, bad[i]), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "it must be 0 to 1");
    OK(qdnnGetTrainDecay(train, &decay));
    CHECK_EQ_F32(decay, 1);
    OK(qdnnDestroyTrainDescriptor(train));
}

TEST_CASE(ApiTrain, ScaleCounts)
{
    static const struct {
        qdnnGranularity_t granularity;
        int64_t extent;
        size_t count;
    } cases[] = {{QDNN_GRANULARITY_TENSOR, 0, 1},  {QDNN_GRANULARITY_CHANNEL, 0, 3},
                 {QDNN_GRANULARITY_CHANNEL, 1, 5}, {QDNN_GRANULARITY_CHANNEL, 2, 7},
                 {QDNN_GRANULARITY_GROUP, 10, 11}, {QDNN_GRANULARITY_GROUP, 999, 1}};
    const int64_t dims[] = {3, 5, 7}, none[] = {3, 0, 7};
    qdnnTensorDescriptor_t x = NULL;
    qdnnTrainDescriptor_t train = NULL;
    OK(qdnnCreateTensorDescriptor(&x));
    OK(qdnnCreateTrainDescriptor(&train));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count = 99;
        bool by_group = cases[i].granularity == QDNN_GRANULARITY_GROUP;
        OK(qdnnSetTrainAttribute(train, QDNN_TRAIN_GRANULARITY, cases[i].granularity));
        OK(qdnnSetTrainAttribute(train, by_group ? QDNN_TRAIN_GROUP_SIZE : QDNN_TRAIN_AXIS, cases[i].extent));
        OK(qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 3, dims, NULL));
        OK(qdnnGetTrainScaleCount(train, x, &count));
        CHECK_EQ_U64(count, cases[i].count);
        OK(qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 3, none, NULL));
        OK(qdnnGetTrainScaleCount(train, x, &count));
        CHECK_EQ_U64(count, 0);
    }
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTrainDescriptor(train));
}

TEST_CASE(ApiTrain, WhatPlansRefuse)
{
    NEED_PTXVM;
    const int64_t dims[] = {4, 6}, gaps[] = {8, 1};
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t x = NULL;
    qdnnTrainDescriptor_t train = NULL;
    qdnnPlan_t plan = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    OK(qdnnCreateTensorDescriptor(&x));
    OK(qdnnCreateTrainDescriptor(&train));
    OK(qdnnSetTensorDescriptor(x, QDNN_DATA_F16, 2, dims, NULL));
    check_refused(qdnnCreateLsqPlan(handle, x, train, &plan), QDNN_STATUS_NOT_SUPPORTED,
                  "type f16; training takes f32");
    OK(qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 2, dims, gaps));
    check_refused(qdnnCreateLsqPlan(handle, x, train, &plan), QDNN_STATUS_NOT_SUPPORTED, "packed");
    OK(qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 2, dims, NULL));
    OK(qdnnSetTrainAttribute(train, QDNN_TRAIN_GRANULARITY, QDNN_GRANULARITY_CHANNEL));
    OK(qdnnSetTrainAttribute(train, QDNN_TRAIN_AXIS, 2));
    check_refused(qdnnCreateLsqPlan(handle, x, train, &plan), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                  "QDNN_TRAIN_AXIS is 2, and the tensor has 2 dimensions");
    CHECK(plan == NULL);
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTrainDescriptor(train));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* ---- Which operands a plan takes ---- */

#define BIT(operand) (UINT64_C(1) << QDNN_OPERAND_##operand)

static const struct {
    const char *name;
    qdnnStatus_t (*make)(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnTrainDescriptor_t, qdnnPlan_t *);
    qdnnScaleMode_t mode;
    qdnnBackward_t backward;
    uint64_t operands;
} plans[] = {
    {"fake_quantize_batch", qdnnCreateFakeQuantizePlan, QDNN_SCALE_MODE_BATCH, 0, BIT(X) | BIT(Y)},
    {"fake_quantize_ema", qdnnCreateFakeQuantizePlan, QDNN_SCALE_MODE_EMA, 0, BIT(X) | BIT(Y) | BIT(STATE)},
    {"fake_quantize_fixed", qdnnCreateFakeQuantizePlan, QDNN_SCALE_MODE_FIXED, 0,
     BIT(X) | BIT(Y) | BIT(STATE)},
    {"backward_batch", qdnnCreateFakeQuantizeBackwardPlan, QDNN_SCALE_MODE_BATCH, QDNN_BACKWARD_TANH,
     BIT(X) | BIT(DY) | BIT(DX)},
    {"backward_ema", qdnnCreateFakeQuantizeBackwardPlan, QDNN_SCALE_MODE_EMA, QDNN_BACKWARD_CLIPPED,
     BIT(X) | BIT(DY) | BIT(DX) | BIT(STATE)},
    {"backward_identity", qdnnCreateFakeQuantizeBackwardPlan, QDNN_SCALE_MODE_EMA, QDNN_BACKWARD_IDENTITY,
     BIT(DY) | BIT(DX)},
    {"lsq", qdnnCreateLsqPlan, QDNN_SCALE_MODE_EMA, 0, BIT(X) | BIT(Y) | BIT(SCALE)},
    {"lsq_backward", qdnnCreateLsqBackwardPlan, QDNN_SCALE_MODE_BATCH, QDNN_BACKWARD_IDENTITY,
     BIT(X) | BIT(DY) | BIT(SCALE) | BIT(DX) | BIT(DSCALE)},
};

/* Executes with these operands, all in buffers of 64 bytes, which 16 elements and their one scale need. */
static qdnnStatus_t execute_with(qdnnHandle_t handle, qdnnPlan_t plan, uint64_t operands, char *memory)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    size_t workspace = 0;
    int count = 0;
    OK(qdnnGetPlanWorkspaceSize(plan, &workspace));
    CHECK(workspace <= 256);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (operands >> i & 1)
            bindings[count++] =
                (qdnnBinding_t){.operand = (qdnnOperand_t)i, .pointer = memory + 256 + 64 * i};
    return qdnnExecute(handle, plan, bindings, count, memory, workspace);
}

TEST_ROWS(ApiTrain, Operands, plans)
{
    NEED_PTXVM;
    const int64_t dims[] = {16};
    const size_t bytes = 256 + 64 * QDNN_OPERAND_COUNT;
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t x = NULL;
    qdnnTrainDescriptor_t train = NULL;
    qdnnPlan_t plan = NULL;
    void *memory = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    OK(qdnnCreateTensorDescriptor(&x));
    OK(qdnnCreateTrainDescriptor(&train));
    OK(qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 1, dims, NULL));
    OK(qdnnSetTrainAttribute(train, QDNN_TRAIN_SCALE_MODE, plans[index].mode));
    OK(qdnnSetTrainAttribute(train, QDNN_TRAIN_BACKWARD, plans[index].backward));
    OK(qdnnMalloc(handle, &memory, bytes));
    OK(qdnnFill(handle, memory, 0, bytes));
    OK(plans[index].make(handle, x, train, &plan));
    OK(execute_with(handle, plan, plans[index].operands, memory));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        bool takes = plans[index].operands >> i & 1;
        test_push_note("operand %d", i);
        check_refused(execute_with(handle, plan, plans[index].operands ^ UINT64_C(1) << i, memory),
                      QDNN_STATUS_BAD_PARAM, takes ? "is missing" : "does not take");
        test_pop_note();
    }
    OK(qdnnSynchronize(handle));
    OK(qdnnDestroyPlan(plan));
    OK(qdnnFree(handle, memory));
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTrainDescriptor(train));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* Operations by their stable names. */
TEST_CASE(ApiTrain, Names)
{
    static const char *const names[][2] = {{"train.fake_quantize", "fake_quantize"},
                                           {"train.fake_quantize.backward", "fake_quantize_backward"},
                                           {"train.lsq", "lsq"},
                                           {"train.lsq.backward", "lsq_backward"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *kernel = NULL;
        bool listed = false;
        OK(qdnnFindOperation(names[i][0], &kernel));
        CHECK_EQ_STR(kernel, names[i][1]);
        for (int k = 0; qdnnGetOperationName(k); k++)
            listed = listed || strcmp(qdnnGetOperationName(k), names[i][0]) == 0;
        CHECK(listed);
    }
}
