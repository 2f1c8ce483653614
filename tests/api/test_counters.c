/* Attention with counters: one launch instead of two, the same bits, on two streams at once. The driver is ptxvm's libcuda.so.1. */
#include <stdlib.h>

#include "calls.h"
#include "cuda/driver.h"
#include "scene.h"

void cuda_close_all(void); /* driver/cuda/open.h, which declares the driver's types anew */

#define SETTINGS                                                                                             \
    "QDNN_DEVICE=cuda QDNN_LIBCUDA=" QDNN_BINARY_DIR                                                         \
    "/ptxvm/libcuda.so.1 QDNN_REQUIRE_GPU= QDNN_BUNDLE_DIR= "                                                \
    "QDNN_LOGLEVEL= PTXVM_SM=sm_80 PTXVM_FAULT= PTXVM_DEVICES= PTXVM_CHECK=all"

#define F32 QDNN_DATA_F32

enum { TOKENS = 2, HEADS = 2, SIZE = 16, KEYS = 2048, PLANS = 2, STREAMS = 2 };

/* Attention over one cache by two plans, of which one has counters, on two streams. */
typedef struct counted {
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t x;
    qdnnPlan_t plans[PLANS]; /* without counters, and with */
    void *q, *keys, *values, *y, *counters, *workspace[STREAMS];
    size_t bytes[PLANS]; /* of the workspace */
    CUstream streams[STREAMS];
} counted;

static void *filled(qdnnHandle_t handle, size_t count, uint32_t seed)
{
    float *host = malloc(count * sizeof *host);
    void *device = NULL;
    for (size_t i = 0; i < count; i++, seed = seed * 1664525 + 1013904223)
        host[i] = (float)(seed >> 16) / 32768 - 1;
    OK(qdnnMalloc(handle, &device, count * sizeof *host));
    OK(qdnnCopyToDevice(handle, device, host, count * sizeof *host));
    free(host);
    return device;
}

static bool counted_open(counted *c)
{
    *c = (counted){0};
    cuda_close_all();
    if (!driver_open_context(SETTINGS) || !OK(qdnnCreate(&c->handle)))
        return false;
    for (int i = 0; i < STREAMS; i++)
        CU(cu.cuStreamCreate(&c->streams[i], CU_STREAM_NON_BLOCKING));
    const qdnnKvCache_t cache = {
        .size = sizeof cache, .pages = 1, .pageSlots = KEYS, .heads = HEADS, .headSize = SIZE, .type = F32};
    OK(qdnnCreateTensorDescriptor(&c->x));
    OK(qdnnSetTensorDescriptor(c->x, F32, 3, (const int64_t[]){TOKENS, HEADS, SIZE}, NULL));
    for (int i = 0; i < PLANS; i++) {
        const qdnnAttention_t a = {.size = sizeof a, .sees = QDNN_SEES_ALL, .oneSequence = 1, .counters = i};
        OK(qdnnCreateAttentionPlan(c->handle, &a, c->x, &cache, &cache, c->x, &c->plans[i]));
        OK(qdnnGetPlanWorkspaceSize(c->plans[i], &c->bytes[i]));
    }
    c->q = filled(c->handle, TOKENS * HEADS * SIZE, 1);
    c->keys = filled(c->handle, KEYS * HEADS * SIZE, 2);
    c->values = filled(c->handle, KEYS * HEADS * SIZE, 3);
    c->y = filled(c->handle, 2 * STREAMS * TOKENS * HEADS * SIZE, 4);
    c->counters = filled(c->handle, STREAMS * TOKENS * HEADS, 5);
    const uint32_t zeros[STREAMS * TOKENS * HEADS] = {0};
    OK(qdnnCopyToDevice(c->handle, c->counters, zeros, sizeof zeros));
    for (int i = 0; i < STREAMS; i++) /* whatever it holds */
        c->workspace[i] = filled(c->handle, c->bytes[0] / sizeof(float), 6 + (uint32_t)i);
    return true;
}

static void counted_close(counted *c)
{
    void *const memory[] = {c->q, c->keys, c->values, c->y, c->counters, c->workspace[0], c->workspace[1]};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        OK(qdnnFree(c->handle, memory[i]));
    for (int i = 0; i < PLANS; i++)
        qdnnDestroyPlan(c->plans[i]);
    qdnnDestroyTensorDescriptor(c->x);
    OK(qdnnDestroy(c->handle));
    for (int i = 0; i < STREAMS; i++)
        CU(cu.cuStreamDestroy_v2(c->streams[i]));
    cuda_close_all();
    driver_close();
}

/* The result goes to place `to`; counters and workspace are those of a stream. */
static qdnnStatus_t counted_run(const counted *c, int plan, int stream, int to)
{
    const size_t row = TOKENS * HEADS * SIZE * sizeof(float), list = TOKENS * HEADS * sizeof(uint32_t);
    const qdnnBinding_t bindings[] = {
        {.operand = QDNN_OPERAND_X, .pointer = c->q},
        {.operand = QDNN_OPERAND_KEYS, .pointer = c->keys},
        {.operand = QDNN_OPERAND_VALUES, .pointer = c->values},
        {.operand = QDNN_OPERAND_Y, .pointer = (char *)c->y + (size_t)to * row},
        {.operand = QDNN_OPERAND_COUNTERS, .pointer = (char *)c->counters + (size_t)stream * list}};
    OK(qdnnSetStream(c->handle, c->streams[stream]));
    return qdnnExecute(c->handle, c->plans[plan], bindings, plan ? 5 : 4, c->workspace[stream],
                       c->bytes[plan]);
}

/* One launch instead of two; without the counters nothing is launched. */
TEST_CASE(ApiCounters, SaveALaunch)
{
    counted c;
    REQUIRE(counted_open(&c));
    for (int i = 0; i < PLANS; i++) {
        qdnnPlanInfo_t info = {.size = sizeof info};
        OK(qdnnGetPlanInfo(c.plans[i], &info));
        CHECK_EQ_I64(info.kernels, 2 - i);
    }
    const qdnnBinding_t none[] = {{.operand = QDNN_OPERAND_X, .pointer = c.q},
                                  {.operand = QDNN_OPERAND_KEYS, .pointer = c.keys},
                                  {.operand = QDNN_OPERAND_VALUES, .pointer = c.values},
                                  {.operand = QDNN_OPERAND_Y, .pointer = c.y}};
    CHECK_STATUS_IS(qdnnExecute(c.handle, c.plans[1], none, 4, c.workspace[0], c.bytes[1]),
                    QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "QDNN_OPERAND_COUNTERS is missing");
    counted_close(&c);
}

/* Executes on two streams that nothing orders, each with counters and a workspace of its own, give the bits of two launches, and leave
 * zeros; and so does a second round with what the first has left. */
TEST_CASE(ApiCounters, TwoStreams)
{
    enum { ELEMENTS = TOKENS * HEADS * SIZE };
    counted c;
    float y[2 * STREAMS][ELEMENTS];
    uint32_t left[STREAMS * TOKENS * HEADS];
    const uint32_t zeros[STREAMS * TOKENS * HEADS] = {0};
    REQUIRE(counted_open(&c));
    OK(counted_run(&c, 0, 0, 0));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < STREAMS; i++)
            OK(counted_run(&c, 1, i, 1 + i));
    for (int i = 0; i < STREAMS; i++)
        CU(cu.cuStreamSynchronize(c.streams[i]));
    OK(qdnnCopyToHost(c.handle, y, c.y, sizeof y));
    OK(qdnnCopyToHost(c.handle, left, c.counters, sizeof left));
    for (int i = 0; i < STREAMS; i++)
        CHECK_EQ_MEM(y[1 + i], y[0], sizeof y[0]);
    CHECK_EQ_MEM(left, zeros, sizeof zeros);
    counted_close(&c);
}
