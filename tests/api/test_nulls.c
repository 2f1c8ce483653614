/* A null pointer for every argument that must not be one: the status, the argument's name, and nothing
 * written. */
#include <string.h>

#include "qdnn/emit.h"
#include "scene.h"

/* Somewhere to write results: bytes that no call may touch. */
static union {
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnMatmulDescriptor_t matmul;
    qdnnTrainDescriptor_t train;
    qdnnPlan_t plan;
    qdnnSchedule_t schedule;
    qdnnProgram_t program;
    qdnnProgramInfo_t program_info;
    qdnnProgramTensorInfo_t program_tensor_info;
    int count;
    qdnnPlanInfo_t plan_info;
    qdnnDeviceInfo_t device_info;
    qdnnMath_t math;
    qdnnStream_t stream;
    qdnnPtx_t ptx;
    const char *name;
    void *pointer;
    size_t size;
    int64_t number;
    float real;
    char bytes[1024];
} out;

/* The public functions that have logged that they were called, since the last check. */
static char told[4096];

static void listen(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    (void)severity;
    (void)user;
    const size_t used = strlen(told);
    if (strncmp(message, "called", 6) == 0)
        snprintf(told + used, sizeof told - used, "%s(", debug->function);
}

/* Every function logs its call, also one that fails. */
static void check_told(const char *call)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(call, "(") + 1, call);
    CHECK_HAS(told, strncmp(name, "qdnn", 4) == 0 ? name : "qdnn"); /* else one of a table of functions */
    told[0] = 0;
}

static void check_null(qdnnStatus_t status, const char *call, const char *argument)
{
    char sentence[64];
    test_push_note("%s", call);
    CHECK_STATUS_IS(status, QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    check_told(call);
    strcpy(sentence, argument);
    strcat(sentence, " is null");
    CHECK(strncmp(last_sentence(), sentence, strlen(sentence)) == 0);
    for (size_t i = 0; i < sizeof out.bytes; i++)
        if (out.bytes[i] != 0x5a) {
            FAIL("byte %zu of a result was written", i);
            memset(&out, 0x5a, sizeof out);
        }
    test_pop_note();
}
#define IS_NULL(argument, call)                                                                              \
    do {                                                                                                     \
        qdnnSetCallback(QDNN_SEVERITY_INFO_BIT, NULL, listen);                                               \
        check_null(call, #call, argument);                                                                   \
        qdnnSetCallback(0, NULL, NULL);                                                                      \
    } while (0)

TEST_CASE(ApiNulls, WithoutAHandle)
{
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    qdnnMatmulDescriptor_t m = NULL;
    int64_t dims[] = {3};
    memset(&out, 0x5a, sizeof out);
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnCreateMatmulDescriptor(&m));

    IS_NULL("handle", qdnnCreate(NULL));
    IS_NULL("handle", qdnnCreateOn(NULL, "vm"));
    IS_NULL("bits", qdnnGetDataTypeBits(QDNN_DATA_F32, NULL));
    IS_NULL("info", qdnnGetDataTypeInfo(QDNN_DATA_F32, NULL));
    IS_NULL("numbers", qdnnPrintDataType(QDNN_DATA_VEC, QDNN_DATA_F32, 1, NULL, (char *)out.bytes, 64));
    IS_NULL("text", qdnnPrintDataType(QDNN_DATA_F32, (qdnnDataType_t)0, 0, NULL, NULL, 64));
    IS_NULL("tensor", qdnnCreateTensorDescriptor(NULL));
    IS_NULL("tensor", qdnnSetTensorDescriptor(NULL, QDNN_DATA_F32, 1, dims, NULL));
    IS_NULL("dims", qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, NULL, NULL));
    IS_NULL("tensor", qdnnGetTensorDescriptor(NULL, NULL, NULL, &out.number, &out.number));
    IS_NULL("quant", qdnnCreateQuantDescriptor(NULL));
    IS_NULL("quant", qdnnSetQuantDescriptor(NULL, QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 64));
    IS_NULL("quant", qdnnSetQuantAttribute(NULL, QDNN_QUANT_AXIS, 0));
    IS_NULL("quant", qdnnGetQuantAttribute(NULL, QDNN_QUANT_AXIS, &out.number));
    IS_NULL("value", qdnnGetQuantAttribute(q, QDNN_QUANT_AXIS, NULL));
    IS_NULL("quant", qdnnSetQuantFloor(NULL, 1));
    IS_NULL("quant", qdnnGetQuantFloor(NULL, &out.real));
    IS_NULL("floor", qdnnGetQuantFloor(q, NULL));
    IS_NULL("quant", qdnnGetQuantizedSizes(NULL, t, &out.size, &out.size, &out.size));
    IS_NULL("tensor", qdnnGetQuantizedSizes(q, NULL, &out.size, &out.size, &out.size));
    IS_NULL("quant", qdnnGetOperandSize(NULL, t, QDNN_OPERAND_CODES, &out.size));
    IS_NULL("tensor", qdnnGetOperandSize(q, NULL, QDNN_OPERAND_CODES, &out.size));
    IS_NULL("bytes", qdnnGetOperandSize(q, t, QDNN_OPERAND_CODES, NULL));
    IS_NULL("quant", qdnnSetQuantWeights(NULL, QDNN_WEIGHTS_AWQ, 0));
    IS_NULL("matmul", qdnnCreateMatmulDescriptor(NULL));
    IS_NULL("matmul", qdnnSetMatmulAttribute(NULL, QDNN_MATMUL_TRANSPOSE_W, 0));
    IS_NULL("matmul", qdnnGetMatmulAttribute(NULL, QDNN_MATMUL_TRANSPOSE_W, &out.number));
    IS_NULL("matmul", qdnnSetMatmulAlpha(NULL, 1));
    IS_NULL("value", qdnnGetMatmulAttribute(m, QDNN_MATMUL_TRANSPOSE_W, NULL));
    IS_NULL("kernel", qdnnEmitPtx(NULL, "sm_90", NULL, &out.ptx));
    IS_NULL("sm", qdnnEmitPtx("quantize_nf4", NULL, NULL, &out.ptx));
    IS_NULL("out", qdnnEmitPtx("quantize_nf4", "sm_90", NULL, NULL));
    const char *const no_sizes[] = {NULL};
    qdnnEmitted_t *emitted = NULL;
    IS_NULL("operation", qdnnEmitOperation(NULL, "sm_90", NULL, no_sizes, &emitted));
    IS_NULL("sm", qdnnEmitOperation("quantize_nf4", NULL, NULL, no_sizes, &emitted));
    IS_NULL("sizes", qdnnEmitOperation("quantize_nf4", "sm_90", NULL, NULL, &emitted));
    IS_NULL("out", qdnnEmitOperation("quantize_nf4", "sm_90", NULL, no_sizes, NULL));
    IS_NULL("operation", qdnnFindOperation(NULL, &out.name));
    IS_NULL("kernel", qdnnFindOperation("quant.nf4.quantize", NULL));
    IS_NULL("operation", qdnnGetOperationSettings(NULL, &out.name));
    IS_NULL("settings", qdnnGetOperationSettings("quant.linear_4bit", NULL));
    IS_NULL("matmul", qdnnSetMatmulLoraScale(NULL, 1));

    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyQuantDescriptor(q));
    OK(qdnnDestroyMatmulDescriptor(m));
}

TEST_CASE(ApiNulls, OfTraining)
{
    qdnnTensorDescriptor_t t = NULL;
    qdnnTrainDescriptor_t r = NULL;
    memset(&out, 0x5a, sizeof out);
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateTrainDescriptor(&r));
    IS_NULL("train", qdnnCreateTrainDescriptor(NULL));
    IS_NULL("train", qdnnSetTrainAttribute(NULL, QDNN_TRAIN_BITS, 4));
    IS_NULL("train", qdnnGetTrainAttribute(NULL, QDNN_TRAIN_BITS, &out.number));
    IS_NULL("value", qdnnGetTrainAttribute(r, QDNN_TRAIN_BITS, NULL));
    IS_NULL("train", qdnnSetTrainDecay(NULL, 0.5f));
    IS_NULL("train", qdnnGetTrainDecay(NULL, &out.real));
    IS_NULL("decay", qdnnGetTrainDecay(r, NULL));
    IS_NULL("train", qdnnGetTrainScaleCount(NULL, t, &out.size));
    IS_NULL("tensor", qdnnGetTrainScaleCount(r, NULL, &out.size));
    IS_NULL("count", qdnnGetTrainScaleCount(r, t, NULL));
    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyTrainDescriptor(r));
}

static void check_row_plans(qdnnHandle_t h, qdnnTensorDescriptor_t t)
{
    const qdnnNorm_t norm = {.size = sizeof norm};
    const qdnnPointwise_t pointwise = {.size = sizeof pointwise};
    IS_NULL("handle", qdnnCreateNormPlan(NULL, &norm, t, t, NULL, &out.plan));
    IS_NULL("norm", qdnnCreateNormPlan(h, NULL, t, t, NULL, &out.plan));
    IS_NULL("x", qdnnCreateNormPlan(h, &norm, NULL, t, NULL, &out.plan));
    IS_NULL("y", qdnnCreateNormPlan(h, &norm, t, NULL, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateNormPlan(h, &norm, t, t, NULL, NULL));
    const qdnnRope_t rope = {.size = sizeof rope};
    const qdnnKvCache_t cache = {.size = sizeof cache, .pages = 1, .pageSlots = 1, .heads = 1, .headSize = 8};
    const qdnnRopeTables_t tables = {.size = sizeof tables, .rotary = 2, .base = 10000};
    float number = 0;
    IS_NULL("tables", qdnnMakeRopeTables(NULL, 0, 1, &number, &number));
    IS_NULL("cos", qdnnMakeRopeTables(&tables, 0, 1, NULL, &number));
    IS_NULL("sin", qdnnMakeRopeTables(&tables, 0, 1, &number, NULL));
    IS_NULL("handle", qdnnCreateRopePlan(NULL, &rope, t, t, NULL, NULL, &out.plan));
    IS_NULL("rope", qdnnCreateRopePlan(h, NULL, t, t, NULL, NULL, &out.plan));
    IS_NULL("x", qdnnCreateRopePlan(h, &rope, NULL, t, NULL, NULL, &out.plan));
    IS_NULL("y", qdnnCreateRopePlan(h, &rope, t, NULL, NULL, NULL, &out.plan));
    IS_NULL("keys->quant", qdnnCreateRopePlan(h, &rope, t, t, &cache, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateRopePlan(h, &rope, t, t, NULL, NULL, NULL));
    const qdnnAttention_t attention = {.size = sizeof attention};
    IS_NULL("handle", qdnnCreateAttentionPlan(NULL, &attention, t, &cache, &cache, t, &out.plan));
    IS_NULL("attention", qdnnCreateAttentionPlan(h, NULL, t, &cache, &cache, t, &out.plan));
    IS_NULL("x", qdnnCreateAttentionPlan(h, &attention, NULL, &cache, &cache, t, &out.plan));
    IS_NULL("keys", qdnnCreateAttentionPlan(h, &attention, t, NULL, &cache, t, &out.plan));
    IS_NULL("keys->quant", qdnnCreateAttentionPlan(h, &attention, t, &cache, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateAttentionPlan(h, &attention, t, &cache, &cache, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateAttentionPlan(h, &attention, t, &cache, &cache, t, NULL));
    IS_NULL("handle", qdnnCreatePointwisePlan(NULL, &pointwise, t, NULL, t, NULL, &out.plan));
    IS_NULL("pointwise", qdnnCreatePointwisePlan(h, NULL, t, NULL, t, NULL, &out.plan));
    IS_NULL("x", qdnnCreatePointwisePlan(h, &pointwise, NULL, NULL, t, NULL, &out.plan));
    IS_NULL("y", qdnnCreatePointwisePlan(h, &pointwise, t, NULL, NULL, NULL, &out.plan));
    IS_NULL("plan", qdnnCreatePointwisePlan(h, &pointwise, t, NULL, t, NULL, NULL));
}

TEST_CASE(ApiNulls, OfIntegers)
{
    qdnnIntegerDescriptor_t i = NULL;
    memset(&out, 0x5a, sizeof out);
    OK(qdnnCreateIntegerDescriptor(&i));
    IS_NULL("integer", qdnnCreateIntegerDescriptor(NULL));
    IS_NULL("integer", qdnnSetIntegerAttribute(NULL, QDNN_INTEGER_GROUPS, 4));
    IS_NULL("integer", qdnnGetIntegerAttribute(NULL, QDNN_INTEGER_GROUPS, &out.number));
    IS_NULL("value", qdnnGetIntegerAttribute(i, QDNN_INTEGER_GROUPS, NULL));
    IS_NULL("integer", qdnnSetIntegerMultiplier(NULL, 0.5f));
    IS_NULL("integer", qdnnSetIntegerAlpha(NULL, 0.5f));
    OK(qdnnDestroyIntegerDescriptor(i));
}

TEST_CASE(ApiNulls, OfSelection)
{
    qdnnSelectDescriptor_t s = NULL;
    memset(&out, 0x5a, sizeof out);
    OK(qdnnCreateSelectDescriptor(&s));
    IS_NULL("select", qdnnCreateSelectDescriptor(NULL));
    IS_NULL("select", qdnnSetSelectAttribute(NULL, QDNN_SELECT_TOP, 4));
    IS_NULL("select", qdnnGetSelectAttribute(NULL, QDNN_SELECT_TOP, &out.number));
    IS_NULL("value", qdnnGetSelectAttribute(s, QDNN_SELECT_TOP, NULL));
    IS_NULL("select", qdnnSetSelectScale(NULL, 0.5f));
    IS_NULL("select", qdnnGetSelectScale(NULL, &out.real));
    IS_NULL("scale", qdnnGetSelectScale(s, NULL));
    IS_NULL("select", qdnnSetSelectEpsilon(NULL, 0.5f));
    IS_NULL("select", qdnnGetSelectEpsilon(NULL, &out.real));
    IS_NULL("epsilon", qdnnGetSelectEpsilon(s, NULL));
    IS_NULL("select", qdnnSetSelectFactor(NULL, 0.5f));
    IS_NULL("select", qdnnGetSelectFactor(NULL, &out.real));
    IS_NULL("factor", qdnnGetSelectFactor(s, NULL));
    OK(qdnnDestroySelectDescriptor(s));
}

static void check_select_plans(qdnnHandle_t h, qdnnTensorDescriptor_t t)
{
    qdnnSelectDescriptor_t s = NULL;
    OK(qdnnCreateSelectDescriptor(&s));
    IS_NULL("handle", qdnnCreateSoftmaxPlan(NULL, t, s, t, &out.plan));
    IS_NULL("x", qdnnCreateSoftmaxPlan(h, NULL, s, t, &out.plan));
    IS_NULL("select", qdnnCreateSoftmaxPlan(h, t, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateSoftmaxPlan(h, t, s, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateSoftmaxPlan(h, t, s, t, NULL));
    IS_NULL("handle", qdnnCreateTopKPlan(NULL, t, s, &out.plan));
    IS_NULL("x", qdnnCreateTopKPlan(h, NULL, s, &out.plan));
    IS_NULL("select", qdnnCreateTopKPlan(h, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateTopKPlan(h, t, s, NULL));
    IS_NULL("handle", qdnnCreateSamplePlan(NULL, t, s, &out.plan));
    IS_NULL("logits", qdnnCreateSamplePlan(h, NULL, s, &out.plan));
    IS_NULL("select", qdnnCreateSamplePlan(h, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateSamplePlan(h, t, s, NULL));
    IS_NULL("handle", qdnnCreateRoutePlan(NULL, t, s, &out.plan));
    IS_NULL("logits", qdnnCreateRoutePlan(h, NULL, s, &out.plan));
    IS_NULL("select", qdnnCreateRoutePlan(h, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateRoutePlan(h, t, s, NULL));
    IS_NULL("handle", qdnnCreateCombinePlan(NULL, t, s, t, &out.plan));
    IS_NULL("x", qdnnCreateCombinePlan(h, NULL, s, t, &out.plan));
    IS_NULL("select", qdnnCreateCombinePlan(h, t, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateCombinePlan(h, t, s, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateCombinePlan(h, t, s, t, NULL));
    OK(qdnnDestroySelectDescriptor(s));
}

static void check_integer_plans(qdnnHandle_t h, qdnnTensorDescriptor_t t)
{
    static qdnnStatus_t (*const makers[])(qdnnHandle_t, qdnnIntegerDescriptor_t, qdnnTensorDescriptor_t,
                                          qdnnTensorDescriptor_t, qdnnTensorDescriptor_t, qdnnPlan_t *) = {
        qdnnCreateIntegerMatmulPlan, qdnnCreateIntegerConvPlan};
    qdnnIntegerDescriptor_t i = NULL;
    OK(qdnnCreateIntegerDescriptor(&i));
    for (size_t k = 0; k < sizeof makers / sizeof makers[0]; k++) {
        IS_NULL("handle", makers[k](NULL, i, t, t, t, &out.plan));
        IS_NULL("integer", makers[k](h, NULL, t, t, t, &out.plan));
        IS_NULL("x", makers[k](h, i, NULL, t, t, &out.plan));
        IS_NULL("w", makers[k](h, i, t, NULL, t, &out.plan));
        IS_NULL("y", makers[k](h, i, t, t, NULL, &out.plan));
        IS_NULL("plan", makers[k](h, i, t, t, t, NULL));
    }
    IS_NULL("handle", qdnnCreateIntegerDotPlan(NULL, t, t, t, &out.plan));
    IS_NULL("a", qdnnCreateIntegerDotPlan(h, NULL, t, t, &out.plan));
    IS_NULL("b", qdnnCreateIntegerDotPlan(h, t, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateIntegerDotPlan(h, t, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateIntegerDotPlan(h, t, t, t, NULL));
    IS_NULL("handle", qdnnCreateIntegerTopPlan(NULL, t, t, t, t, &out.plan));
    IS_NULL("x", qdnnCreateIntegerTopPlan(h, NULL, t, t, t, &out.plan));
    IS_NULL("w", qdnnCreateIntegerTopPlan(h, t, NULL, t, t, &out.plan));
    IS_NULL("scores", qdnnCreateIntegerTopPlan(h, t, t, NULL, t, &out.plan));
    IS_NULL("indices", qdnnCreateIntegerTopPlan(h, t, t, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateIntegerTopPlan(h, t, t, t, t, NULL));
    OK(qdnnDestroyIntegerDescriptor(i));
}

static void check_train_plans(qdnnHandle_t h, qdnnTensorDescriptor_t t)
{
    static qdnnStatus_t (*const makers[])(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnTrainDescriptor_t,
                                          qdnnPlan_t *) = {qdnnCreateFakeQuantizePlan,
                                                           qdnnCreateFakeQuantizeBackwardPlan,
                                                           qdnnCreateLsqPlan, qdnnCreateLsqBackwardPlan};
    qdnnTrainDescriptor_t r = NULL;
    OK(qdnnCreateTrainDescriptor(&r));
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        IS_NULL("handle", makers[i](NULL, t, r, &out.plan));
        IS_NULL("x", makers[i](h, NULL, r, &out.plan));
        IS_NULL("train", makers[i](h, t, NULL, &out.plan));
        IS_NULL("plan", makers[i](h, t, r, NULL));
    }
    OK(qdnnDestroyTrainDescriptor(r));
}

static void check_handle_calls(void)
{
    char host[4] = {0};
    void *d = (void *)(uintptr_t)4096;
    IS_NULL("handle", qdnnSetStream(NULL, NULL));
    IS_NULL("handle", qdnnGetStream(NULL, &out.stream));
    IS_NULL("handle", qdnnSetMath(NULL, QDNN_MATH_EXACT));
    IS_NULL("handle", qdnnGetMath(NULL, &out.math));
    IS_NULL("handle", qdnnSynchronize(NULL));
    IS_NULL("handle", qdnnGetDeviceInfo(NULL, &out.device_info));
    IS_NULL("handle", qdnnSetBundle(NULL, "."));
    IS_NULL("handle", qdnnMalloc(NULL, &out.pointer, 16));
    IS_NULL("handle", qdnnFree(NULL, d));
    IS_NULL("handle", qdnnFree(NULL, NULL));
    IS_NULL("handle", qdnnCopyToDevice(NULL, d, host, 4));
    IS_NULL("handle", qdnnCopyToHost(NULL, out.bytes, d, 4));
    IS_NULL("handle", qdnnCopyOnDevice(NULL, d, d, 4));
    IS_NULL("handle", qdnnFill(NULL, d, 0, 4));
}

static void check_memory(const scene *s)
{
    char host[4] = {0};
    void *d = s->buffers[QDNN_OPERAND_X];
    IS_NULL("stream", qdnnGetStream(s->handle, NULL));
    IS_NULL("info", qdnnGetDeviceInfo(s->handle, NULL));
    IS_NULL("pointer", qdnnMalloc(s->handle, NULL, 16));
    IS_NULL("pointer", qdnnMalloc(s->handle, NULL, 0));
    IS_NULL("device", qdnnCopyToDevice(s->handle, NULL, host, 4));
    IS_NULL("host", qdnnCopyToDevice(s->handle, d, NULL, 4));
    IS_NULL("host", qdnnCopyToHost(s->handle, NULL, d, 4));
    IS_NULL("device", qdnnCopyToHost(s->handle, out.bytes, NULL, 4));
    IS_NULL("to", qdnnCopyOnDevice(s->handle, NULL, d, 4));
    IS_NULL("from", qdnnCopyOnDevice(s->handle, d, NULL, 4));
    IS_NULL("device", qdnnFill(s->handle, NULL, 0, 4));
    OK(qdnnCopyToDevice(s->handle, NULL, NULL, 0));
    OK(qdnnCopyToHost(s->handle, NULL, NULL, 0));
    OK(qdnnCopyOnDevice(s->handle, NULL, NULL, 0));
    OK(qdnnFill(s->handle, NULL, 0, 0));
    OK(qdnnFree(s->handle, NULL));
}

static void check_typed(qdnnHandle_t h, qdnnMatmulDescriptor_t m, qdnnTensorDescriptor_t t)
{
    const qdnnQuantizedType_t type = {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 0, QDNN_GRANULARITY_NONE, 0};
    IS_NULL("handle", qdnnCreateTypedMatmulPlan(NULL, m, t, &type, 8, t, &out.plan));
    IS_NULL("matmul", qdnnCreateTypedMatmulPlan(h, NULL, t, &type, 8, t, &out.plan));
    IS_NULL("x", qdnnCreateTypedMatmulPlan(h, m, NULL, &type, 8, t, &out.plan));
    IS_NULL("type", qdnnCreateTypedMatmulPlan(h, m, t, NULL, 8, t, &out.plan));
    IS_NULL("y", qdnnCreateTypedMatmulPlan(h, m, t, &type, 8, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateTypedMatmulPlan(h, m, t, &type, 8, t, NULL));
}

static void check_schedules(qdnnHandle_t h, qdnnPlan_t plan)
{
    qdnnSchedule_t s = NULL;
    OK(qdnnCreateSchedule(h, &s));
    IS_NULL("handle", qdnnCreateSchedule(NULL, &out.schedule));
    IS_NULL("schedule", qdnnCreateSchedule(h, NULL));
    IS_NULL("schedule", qdnnAddToSchedule(NULL, plan, NULL, 0));
    IS_NULL("plan", qdnnAddToSchedule(s, NULL, NULL, 0));
    IS_NULL("schedule", qdnnAddRowsToSchedule(NULL, plan, 1, NULL, 0));
    IS_NULL("plan", qdnnAddRowsToSchedule(s, NULL, 1, NULL, 0));
    IS_NULL("schedule", qdnnGetScheduleWorkspaceSize(NULL, &out.size));
    IS_NULL("bytes", qdnnGetScheduleWorkspaceSize(s, NULL));
    IS_NULL("handle", qdnnExecuteSchedule(NULL, s, NULL, 0));
    IS_NULL("schedule", qdnnExecuteSchedule(h, NULL, NULL, 0));
    OK(qdnnDestroySchedule(s));
}

static void check_programs(qdnnHandle_t h, qdnnTensorDescriptor_t t, qdnnPlan_t plan)
{
    const qdnnProgramKernel_t kernel = {.size = sizeof kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    qdnnProgramKernel_t nameless = kernel, function = kernel, argued = kernel;
    qdnnProgram_t p = NULL;
    nameless.text = "";
    function.source = QDNN_SOURCE_FUNCTION;
    argued.text = argued.entry = "";
    argued.count = 1;
    OK(qdnnCreateProgram(h, 1, &p));
    IS_NULL("handle", qdnnCreateProgram(NULL, 1, &out.program));
    IS_NULL("program", qdnnCreateProgram(h, 1, NULL));
    IS_NULL("program", qdnnAddTensorToProgram(NULL, "x", QDNN_PROGRAM_EXTERNAL, t, 0, &out.count));
    IS_NULL("name", qdnnAddTensorToProgram(p, NULL, QDNN_PROGRAM_EXTERNAL, t, 0, &out.count));
    IS_NULL("shape", qdnnAddTensorToProgram(p, "x", QDNN_PROGRAM_EXTERNAL, NULL, 0, &out.count));
    IS_NULL("tensor", qdnnAddTensorToProgram(p, "x", QDNN_PROGRAM_EXTERNAL, t, 0, NULL));
    IS_NULL("program", qdnnAddPlanToProgram(NULL, "x", plan, 0, NULL, 0));
    IS_NULL("plan", qdnnAddPlanToProgram(p, "x", NULL, 0, NULL, 0));
    IS_NULL("bindings", qdnnAddPlanToProgram(p, "x", plan, 0, NULL, 1));
    IS_NULL("program", qdnnAddCopyToProgram(NULL, "x", 0, 0));
    IS_NULL("program", qdnnAddFillToProgram(NULL, "x", 0, 0));
    IS_NULL("program", qdnnAddKernelToProgram(NULL, "x", &kernel));
    IS_NULL("kernel", qdnnAddKernelToProgram(p, "x", NULL));
    IS_NULL("step 0 'x' (kernel): kernel->text", qdnnAddKernelToProgram(p, "x", &kernel));
    IS_NULL("step 0 'x' (kernel): kernel->entry", qdnnAddKernelToProgram(p, "x", &nameless));
    IS_NULL("step 0 'x' (kernel): kernel->function", qdnnAddKernelToProgram(p, "x", &function));
    IS_NULL("step 0 'x' (kernel): arguments", qdnnAddKernelToProgram(p, "x", &argued));
    IS_NULL("program", qdnnCompileProgram(NULL));
    IS_NULL("program", qdnnGetProgramInfo(NULL, &out.program_info));
    IS_NULL("info", qdnnGetProgramInfo(p, NULL));
    IS_NULL("program", qdnnGetProgramTensorInfo(NULL, 0, &out.program_tensor_info));
    IS_NULL("info", qdnnGetProgramTensorInfo(p, 0, NULL));
    IS_NULL("handle", qdnnRunProgram(NULL, p, NULL, 0, 0, NULL, 0));
    IS_NULL("program", qdnnRunProgram(h, NULL, NULL, 0, 0, NULL, 0));
    OK(qdnnDestroyProgram(p));
}

static void check_once(qdnnHandle_t h, qdnnTensorDescriptor_t t, qdnnQuantDescriptor_t q)
{
    const qdnnQuantizedType_t type = {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 0, QDNN_GRANULARITY_NONE, 0};
    const qdnnNorm_t norm = {.size = sizeof norm};
    const qdnnAttention_t attention = {.size = sizeof attention};
    const qdnnKvCache_t cache = {.size = sizeof cache};
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, NULL, 0}};
    qdnnMatmulDescriptor_t m = NULL;
    qdnnIntegerDescriptor_t i = NULL;
    qdnnTrainDescriptor_t r = NULL;
    qdnnTensorDescriptor_t f = NULL;
    IS_NULL("tensor", qdnnCreateTensorDescriptorOf(NULL, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    IS_NULL("dims", qdnnCreateTensorDescriptorOf(&out.tensor, QDNN_DATA_F32, 1, NULL, NULL));
    IS_NULL("quant", qdnnCreateQuantDescriptorOf(NULL, QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 32));
    IS_NULL("quant", qdnnCreateQuantDescriptorOfWeights(NULL, QDNN_WEIGHTS_AWQ, 0));
    IS_NULL("matmul", qdnnCreateMatmulDescriptorOf(NULL, NULL, 0));
    IS_NULL("settings", qdnnCreateMatmulDescriptorOf(&out.matmul, NULL, 1));
    IS_NULL("integer", qdnnCreateIntegerDescriptorOf(NULL, NULL, 0));
    IS_NULL("settings", qdnnCreateIntegerDescriptorOf((qdnnIntegerDescriptor_t *)&out, NULL, 1));
    IS_NULL("train", qdnnCreateTrainDescriptorOf(NULL, NULL, 0));
    IS_NULL("settings", qdnnCreateTrainDescriptorOf(&out.train, NULL, 1));
    OK(qdnnCreateMatmulDescriptorOf(&m, NULL, 0));
    OK(qdnnCreateIntegerDescriptorOf(&i, NULL, 0));
    OK(qdnnCreateTrainDescriptorOf(&r, NULL, 0));
    IS_NULL("handle", qdnnMatmulWith(NULL, m, t, t, q, t, bindings, 1));
    IS_NULL("matmul", qdnnMatmulWith(h, NULL, t, t, q, t, bindings, 1));
    IS_NULL("x", qdnnMatmulWith(h, m, NULL, t, q, t, bindings, 1));
    IS_NULL("w", qdnnMatmulWith(h, m, t, NULL, q, t, bindings, 1));
    IS_NULL("quant", qdnnMatmulWith(h, m, t, t, NULL, t, bindings, 1));
    IS_NULL("y", qdnnMatmulWith(h, m, t, t, q, NULL, bindings, 1));
    IS_NULL("handle", qdnnTypedMatmulWith(NULL, m, t, &type, 8, t, bindings, 1));
    IS_NULL("matmul", qdnnTypedMatmulWith(h, NULL, t, &type, 8, t, bindings, 1));
    IS_NULL("x", qdnnTypedMatmulWith(h, m, NULL, &type, 8, t, bindings, 1));
    IS_NULL("type", qdnnTypedMatmulWith(h, m, t, NULL, 8, t, bindings, 1));
    IS_NULL("y", qdnnTypedMatmulWith(h, m, t, &type, 8, NULL, bindings, 1));
    IS_NULL("handle", qdnnIntegerMatmulWith(NULL, i, t, t, t, bindings, 1));
    IS_NULL("integer", qdnnIntegerMatmulWith(h, NULL, t, t, t, bindings, 1));
    IS_NULL("x", qdnnIntegerMatmulWith(h, i, NULL, t, t, bindings, 1));
    IS_NULL("w", qdnnIntegerMatmulWith(h, i, t, NULL, t, bindings, 1));
    IS_NULL("y", qdnnIntegerMatmulWith(h, i, t, t, NULL, bindings, 1));
    IS_NULL("handle", qdnnIntegerDotWith(NULL, t, t, t, bindings, 1));
    IS_NULL("a", qdnnIntegerDotWith(h, NULL, t, t, bindings, 1));
    IS_NULL("b", qdnnIntegerDotWith(h, t, NULL, t, bindings, 1));
    IS_NULL("y", qdnnIntegerDotWith(h, t, t, NULL, bindings, 1));
    IS_NULL("handle", qdnnIntegerTopWith(NULL, t, t, t, t, bindings, 1));
    IS_NULL("x", qdnnIntegerTopWith(h, NULL, t, t, t, bindings, 1));
    IS_NULL("w", qdnnIntegerTopWith(h, t, NULL, t, t, bindings, 1));
    IS_NULL("scores", qdnnIntegerTopWith(h, t, t, NULL, t, bindings, 1));
    IS_NULL("indices", qdnnIntegerTopWith(h, t, t, t, NULL, bindings, 1));
    IS_NULL("handle", qdnnIntegerConvWith(NULL, i, t, t, t, bindings, 1));
    IS_NULL("integer", qdnnIntegerConvWith(h, NULL, t, t, t, bindings, 1));
    IS_NULL("x", qdnnIntegerConvWith(h, i, NULL, t, t, bindings, 1));
    IS_NULL("w", qdnnIntegerConvWith(h, i, t, NULL, t, bindings, 1));
    IS_NULL("y", qdnnIntegerConvWith(h, i, t, t, NULL, bindings, 1));
    IS_NULL("handle", qdnnNormWith(NULL, &norm, t, t, NULL, bindings, 1));
    IS_NULL("norm", qdnnNormWith(h, NULL, t, t, NULL, bindings, 1));
    IS_NULL("x", qdnnNormWith(h, &norm, NULL, t, NULL, bindings, 1));
    IS_NULL("y", qdnnNormWith(h, &norm, t, NULL, NULL, bindings, 1));
    IS_NULL("handle", qdnnAttentionWith(NULL, &attention, t, &cache, &cache, t, bindings, 1));
    IS_NULL("attention", qdnnAttentionWith(h, NULL, t, &cache, &cache, t, bindings, 1));
    IS_NULL("x", qdnnAttentionWith(h, &attention, NULL, &cache, &cache, t, bindings, 1));
    IS_NULL("keys", qdnnAttentionWith(h, &attention, t, NULL, &cache, t, bindings, 1));
    IS_NULL("y", qdnnAttentionWith(h, &attention, t, &cache, &cache, NULL, bindings, 1));
    IS_NULL("handle", qdnnLsqWith(NULL, t, r, bindings, 1));
    IS_NULL("x", qdnnLsqWith(h, NULL, r, bindings, 1));
    IS_NULL("train", qdnnLsqWith(h, t, NULL, bindings, 1));
    IS_NULL("handle", qdnnLsqBackwardWith(NULL, t, r, bindings, 1));
    IS_NULL("x", qdnnLsqBackwardWith(h, NULL, r, bindings, 1));
    IS_NULL("train", qdnnLsqBackwardWith(h, t, NULL, bindings, 1));
    OK(qdnnCreateTensorDescriptorOf(&f, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    IS_NULL("bindings", qdnnLsqWith(h, f, r, NULL, 1));
    OK(qdnnDestroyTensorDescriptor(f));
    OK(qdnnDestroyMatmulDescriptor(m));
    OK(qdnnDestroyIntegerDescriptor(i));
    OK(qdnnDestroyTrainDescriptor(r));
}

static void check_plans(const scene *s)
{
    qdnnHandle_t h = s->handle;
    qdnnTensorDescriptor_t t = s->tensor;
    qdnnQuantDescriptor_t q = s->quant;
    qdnnMatmulDescriptor_t m = NULL;
    IS_NULL("handle", qdnnCreateScalePlan(NULL, t, q, &out.plan));
    IS_NULL("x", qdnnCreateScalePlan(h, NULL, q, &out.plan));
    IS_NULL("quant", qdnnCreateScalePlan(h, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateScalePlan(h, t, q, NULL));
    IS_NULL("handle", qdnnCreateQuantizePlan(NULL, t, q, &out.plan));
    IS_NULL("x", qdnnCreateQuantizePlan(h, NULL, q, &out.plan));
    IS_NULL("quant", qdnnCreateQuantizePlan(h, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateQuantizePlan(h, t, q, NULL));
    IS_NULL("handle", qdnnCreateDequantizePlan(NULL, t, q, &out.plan));
    IS_NULL("y", qdnnCreateDequantizePlan(h, NULL, q, &out.plan));
    IS_NULL("quant", qdnnCreateDequantizePlan(h, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateDequantizePlan(h, t, q, NULL));
    IS_NULL("handle", qdnnCreateQuantizeKvCachePlan(NULL, t, q, t, &out.plan));
    IS_NULL("x", qdnnCreateQuantizeKvCachePlan(h, NULL, q, t, &out.plan));
    IS_NULL("quant", qdnnCreateQuantizeKvCachePlan(h, t, NULL, t, &out.plan));
    IS_NULL("plan", qdnnCreateQuantizeKvCachePlan(h, t, q, t, NULL));
    IS_NULL("handle", qdnnCreateCopyPlan(NULL, t, t, &out.plan));
    IS_NULL("x", qdnnCreateCopyPlan(h, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateCopyPlan(h, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateCopyPlan(h, t, t, NULL));
    IS_NULL("handle", qdnnCreateGatherPlan(NULL, t, QDNN_DATA_I32, t, &out.plan));
    IS_NULL("table", qdnnCreateGatherPlan(h, NULL, QDNN_DATA_I32, t, &out.plan));
    IS_NULL("y", qdnnCreateGatherPlan(h, t, QDNN_DATA_I32, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateGatherPlan(h, t, QDNN_DATA_I32, t, NULL));
    IS_NULL("handle", qdnnCreateScatterPlan(NULL, t, QDNN_DATA_I32, t, &out.plan));
    IS_NULL("x", qdnnCreateScatterPlan(h, NULL, QDNN_DATA_I32, t, &out.plan));
    IS_NULL("table", qdnnCreateScatterPlan(h, t, QDNN_DATA_I32, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateScatterPlan(h, t, QDNN_DATA_I32, t, NULL));
    IS_NULL("handle", qdnnCreateQuantizeRowsPlan(NULL, t, q, QDNN_DATA_I32, t, &out.plan));
    IS_NULL("x", qdnnCreateQuantizeRowsPlan(h, NULL, q, QDNN_DATA_I32, t, &out.plan));
    IS_NULL("quant", qdnnCreateQuantizeRowsPlan(h, t, NULL, QDNN_DATA_I32, t, &out.plan));
    IS_NULL("table", qdnnCreateQuantizeRowsPlan(h, t, q, QDNN_DATA_I32, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateQuantizeRowsPlan(h, t, q, QDNN_DATA_I32, t, NULL));
    IS_NULL("handle", qdnnCreateDequantizeTransposedPlan(NULL, t, q, t, &out.plan));
    IS_NULL("w", qdnnCreateDequantizeTransposedPlan(h, NULL, q, t, &out.plan));
    IS_NULL("quant", qdnnCreateDequantizeTransposedPlan(h, t, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateDequantizeTransposedPlan(h, t, q, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateDequantizeTransposedPlan(h, t, q, t, NULL));
    IS_NULL("handle", qdnnCreateDequantizeRowsPlan(NULL, t, q, t, &out.plan));
    IS_NULL("table", qdnnCreateDequantizeRowsPlan(h, NULL, q, t, &out.plan));
    IS_NULL("quant", qdnnCreateDequantizeRowsPlan(h, t, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateDequantizeRowsPlan(h, t, q, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateDequantizeRowsPlan(h, t, q, t, NULL));
    IS_NULL("handle", qdnnCreateRepackPlan(NULL, t, q, q, &out.plan));
    IS_NULL("tensor", qdnnCreateRepackPlan(h, NULL, q, q, &out.plan));
    IS_NULL("quantFrom", qdnnCreateRepackPlan(h, t, NULL, q, &out.plan));
    IS_NULL("quantTo", qdnnCreateRepackPlan(h, t, q, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateRepackPlan(h, t, q, q, NULL));
    OK(qdnnCreateMatmulDescriptor(&m));
    IS_NULL("handle", qdnnCreateMatmulPlan(NULL, m, t, t, q, t, &out.plan));
    IS_NULL("matmul", qdnnCreateMatmulPlan(h, NULL, t, t, q, t, &out.plan));
    IS_NULL("x", qdnnCreateMatmulPlan(h, m, NULL, t, q, t, &out.plan));
    IS_NULL("w", qdnnCreateMatmulPlan(h, m, t, NULL, q, t, &out.plan));
    IS_NULL("quant", qdnnCreateMatmulPlan(h, m, t, t, NULL, t, &out.plan));
    IS_NULL("y", qdnnCreateMatmulPlan(h, m, t, t, q, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateMatmulPlan(h, m, t, t, q, t, NULL));
    check_typed(h, m, t);
    IS_NULL("handle", qdnnCreatePrepackPlan(NULL, m, t, q, &out.plan));
    IS_NULL("matmul", qdnnCreatePrepackPlan(h, NULL, t, q, &out.plan));
    IS_NULL("w", qdnnCreatePrepackPlan(h, m, NULL, q, &out.plan));
    IS_NULL("quant", qdnnCreatePrepackPlan(h, m, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreatePrepackPlan(h, m, t, q, NULL));
    IS_NULL("handle", qdnnCreateUnpackPlan(NULL, m, t, q, &out.plan));
    IS_NULL("matmul", qdnnCreateUnpackPlan(h, NULL, t, q, &out.plan));
    IS_NULL("w", qdnnCreateUnpackPlan(h, m, NULL, q, &out.plan));
    IS_NULL("quant", qdnnCreateUnpackPlan(h, m, t, NULL, &out.plan));
    IS_NULL("plan", qdnnCreateUnpackPlan(h, m, t, q, NULL));
    OK(qdnnDestroyMatmulDescriptor(m));
    check_schedules(h, s->plans[0]);
    check_programs(h, t, s->plans[0]);
    IS_NULL("plan", qdnnGetPlanWorkspaceSize(NULL, &out.size));
    IS_NULL("bytes", qdnnGetPlanWorkspaceSize(s->plans[0], NULL));
    IS_NULL("plan", qdnnGetPlanInfo(NULL, &out.plan_info));
    IS_NULL("info", qdnnGetPlanInfo(s->plans[0], NULL));
    IS_NULL("handle", qdnnExecute(NULL, s->plans[0], NULL, 0, NULL, 0));
    IS_NULL("plan", qdnnExecute(h, NULL, NULL, 0, NULL, 0));
    IS_NULL("bindings", qdnnExecute(h, s->plans[0], NULL, 2, NULL, 0));
    IS_NULL("handle", qdnnExecuteRows(NULL, s->plans[0], 0, NULL, 0, NULL, 0));
    IS_NULL("plan", qdnnExecuteRows(h, NULL, 0, NULL, 0, NULL, 0));
}

/* The tensors' own pointers, too, are named as the arguments are. */
static void check_one_shots(const scene *s)
{
    qdnnHandle_t h = s->handle;
    qdnnTensorDescriptor_t t = s->tensor;
    qdnnQuantDescriptor_t q = s->quant;
    void *const *b = s->buffers;
    void *x = b[QDNN_OPERAND_X], *y = b[QDNN_OPERAND_Y], *c = b[QDNN_OPERAND_CODES];
    void *scale = b[QDNN_OPERAND_SCALE], *zero = b[QDNN_OPERAND_ZERO];
    IS_NULL("handle", qdnnComputeScales(NULL, t, x, q, scale, zero));
    IS_NULL("xDesc", qdnnComputeScales(h, NULL, x, q, scale, zero));
    IS_NULL("x", qdnnComputeScales(h, t, NULL, q, scale, zero));
    IS_NULL("quant", qdnnComputeScales(h, t, x, NULL, scale, zero));
    IS_NULL("scale", qdnnComputeScales(h, t, x, q, NULL, zero));
    IS_NULL("zero", qdnnComputeScales(h, t, x, q, scale, NULL));
    IS_NULL("handle", qdnnQuantize(NULL, t, x, q, scale, zero, c));
    IS_NULL("xDesc", qdnnQuantize(h, NULL, x, q, scale, zero, c));
    IS_NULL("x", qdnnQuantize(h, t, NULL, q, scale, zero, c));
    IS_NULL("quant", qdnnQuantize(h, t, x, NULL, scale, zero, c));
    IS_NULL("scale", qdnnQuantize(h, t, x, q, NULL, zero, c));
    IS_NULL("zero", qdnnQuantize(h, t, x, q, scale, NULL, c));
    IS_NULL("codes", qdnnQuantize(h, t, x, q, scale, zero, NULL));
    IS_NULL("handle", qdnnDequantize(NULL, q, c, scale, zero, t, y));
    IS_NULL("quant", qdnnDequantize(h, NULL, c, scale, zero, t, y));
    IS_NULL("codes", qdnnDequantize(h, q, NULL, scale, zero, t, y));
    IS_NULL("scale", qdnnDequantize(h, q, c, NULL, zero, t, y));
    IS_NULL("zero", qdnnDequantize(h, q, c, scale, NULL, t, y));
    IS_NULL("yDesc", qdnnDequantize(h, q, c, scale, zero, NULL, y));
    IS_NULL("y", qdnnDequantize(h, q, c, scale, zero, t, NULL));
}

TEST_CASE(ApiNulls, WithAHandle)
{
    NEED_PTXVM;
    scene s;
    vm_begin(NULL);
    memset(&out, 0x5a, sizeof out);
    if (scene_open(&s, &scene_kinds[SCENE_ZERO_POINT], NULL)) {
        check_handle_calls();
        check_memory(&s);
        check_plans(&s);
        check_train_plans(s.handle, s.tensor);
        check_select_plans(s.handle, s.tensor);
        check_integer_plans(s.handle, s.tensor);
        check_row_plans(s.handle, s.tensor);
        check_one_shots(&s);
        check_once(s.handle, s.tensor, s.quant);
        scene_close(&s);
    }
    vm_end();
}

/* Where a null pointer is fine. */
TEST_CASE(ApiNulls, ThatAreFine)
{
    qdnnTensorDescriptor_t t = NULL;
    OK(qdnnDestroy(NULL));
    OK(qdnnDestroyPlan(NULL));
    OK(qdnnDestroySchedule(NULL));
    OK(qdnnDestroyProgram(NULL));
    OK(qdnnDestroyTensorDescriptor(NULL));
    OK(qdnnDestroyQuantDescriptor(NULL));
    OK(qdnnDestroyMatmulDescriptor(NULL));
    OK(qdnnDestroyTrainDescriptor(NULL));
    OK(qdnnDestroyIntegerDescriptor(NULL));
    OK(qdnnSetCallback(0, NULL, NULL));
    qdnnFreePtx(NULL);
    qdnnFreeEmitted(NULL);
    qdnnGetLastErrorString(NULL, 8);
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnGetTensorDescriptor(t, NULL, NULL, NULL, NULL));
    OK(qdnnDestroyTensorDescriptor(t));
}
