/* The library together with a program's own CUDA code: its contexts, its streams, its graphs. The driver is ptxvm's
 * libcuda.so.1, which the test and the library both open. */
#include <stdio.h>
#include <string.h>

#include "blocks.h"
#include "calls.h"
#include "cuda/driver.h"
#include "scene.h"
#include "support/environment.h"

void cuda_close_all(void); /* driver/cuda/open.h, which declares the driver's types anew */

#define SETTINGS                                                                                             \
    "QDNN_DEVICE=cuda QDNN_LIBCUDA=" QDNN_BINARY_DIR                                                         \
    "/ptxvm/libcuda.so.1 QDNN_REQUIRE_GPU= QDNN_BUNDLE_DIR= "                                                \
    "QDNN_LOGLEVEL= PTXVM_SM= PTXVM_FAULT= PTXVM_DEVICES= PTXVM_CHECK="

/* A context of the program's, current, in a driver that the library opens as well. */
static bool begin(void)
{
    cuda_close_all();
    return driver_open_context(SETTINGS);
}

static void end(void)
{
    cuda_close_all();
    driver_close();
}

static const char *const executes[] = {"qdnnExecute of scales", "qdnnExecute of quantize",
                                       "qdnnExecute of dequantize"};

/* ---- Graphs ---- */

static bool capture(scene *s, CUstream stream, CUgraphExec *exec)
{
    CUgraph graph = NULL;
    size_t nodes = 0;
    OK(qdnnSetStream(s->handle, stream));
    CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 3; i++)
        scene_step_run(s, executes[i]);
    bool ok = CU(cu.cuStreamEndCapture(stream, &graph)) && CU(cu.cuGraphGetNodes(graph, NULL, &nodes)) &&
              CHECK(nodes >= 3) && CU(cu.cuGraphInstantiateWithFlags(exec, graph, 0));
    CU(cu.cuGraphDestroy(graph));
    return ok;
}

/* Replays with the data of `other`, and compares with its expected results. */
static void replay(scene *s, const scene *other, CUstream stream, CUgraphExec exec)
{
    OK(qdnnCopyToDevice(s->handle, s->buffers[QDNN_OPERAND_X], other->expected[QDNN_OPERAND_X],
                        other->bytes[QDNN_OPERAND_X]));
    CU(cu.cuGraphLaunch(exec, stream));
    OK(qdnnSynchronize(s->handle));
    for (int i = QDNN_OPERAND_Y; i < QDNN_OPERAND_COUNT; i++) {
        OK(qdnnCopyToHost(s->handle, s->got[0][i], s->buffers[i], s->bytes[i]));
        CHECK_EQ_MEM(s->got[0][i], other->expected[i], s->bytes[i]);
    }
}

TEST_EACH(ApiGraphs, ReplayWithOtherData, scene_kind_count, scene_kind_name)
{
    scene s, other;
    CUstream stream = NULL;
    CUgraphExec exec = NULL;
    REQUIRE(begin());
    CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (scene_open(&s, &scene_kinds[index], NULL) && capture(&s, stream, &exec)) {
        for (uint32_t seed = 21; seed < 23; seed++) {
            scene_begin(&other, &scene_kinds[index], NULL, seed);
            replay(&s, &other, stream, exec);
            scene_end(&other);
        }
        CU(cu.cuGraphExecDestroy(exec));
    }
    scene_close(&s);
    end();
}

/* A capture survives the attempt, and so does the handle. */
TEST_CASE(ApiGraphs, PlansAreMadeBeforeACapture)
{
    scene s;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    qdnnPlan_t plan = NULL;
    qdnnStream_t got = NULL;
    REQUIRE(begin());
    CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_INT4], NULL));
    OK(qdnnSetStream(s.handle, stream));
    OK(qdnnGetStream(s.handle, &got));
    CHECK(got == stream);
    CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_STATUS_IS(qdnnCreateScalePlan(s.handle, s.tensor, s.quant, &plan), QDNN_STATUS_EXECUTION_FAILED);
    CHECK_HAS(last_sentence(), "the handle's stream is being captured; create the plan before");
    CHECK_STATUS_IS(qdnnComputeScales(s.handle, s.tensor, s.buffers[QDNN_OPERAND_X], s.quant,
                                      s.buffers[QDNN_OPERAND_SCALE], NULL),
                    QDNN_STATUS_EXECUTION_FAILED);
    CHECK_HAS(last_sentence(), "make it once before");
    CHECK(!plan);
    scene_step_run(&s, executes[0]);
    CU(cu.cuStreamEndCapture(stream, &graph));
    CU(cu.cuGraphDestroy(graph));
    OK(qdnnCreateScalePlan(s.handle, s.tensor, s.quant, &plan));
    OK(qdnnDestroyPlan(plan));
    scene_close(&s);
    end();
}

/* A kernel is loaded for another handle, whose stream is not captured: the capture does not notice. */
TEST_CASE(ApiGraphs, PlansOfOtherHandlesDoNotSpoilACapture)
{
    scene s;
    CUstream captured = NULL, other = NULL;
    CUgraph graph = NULL;
    qdnnHandle_t handle = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    REQUIRE(begin());
    CU(cu.cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    CU(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_INT4], NULL));
    OK(qdnnCreate(&handle));
    OK(qdnnSetStream(handle, other));
    OK(qdnnSetStream(s.handle, captured));
    CU(cu.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(qdnnSetQuantAttribute(s.quant, QDNN_QUANT_GROUP_SIZE, 77)); /* a kernel that has not been loaded yet */
    OK(qdnnCreateScalePlan(handle, s.tensor, s.quant, &plan));
    OK(qdnnGetPlanInfo(plan, &info));
    CHECK(!info.fromCache);
    OK(qdnnDestroyPlan(plan));
    scene_step_run(&s, executes[0]);
    CU(cu.cuStreamEndCapture(captured, &graph));
    CU(cu.cuGraphDestroy(graph));
    OK(qdnnDestroy(handle));
    scene_close(&s);
    end();
}

/* One-shot calls, once they have been made, can be captured as well. */
TEST_CASE(ApiGraphs, WarmOneShotCallsCanBeCaptured)
{
    static const char *const calls[] = {"qdnnComputeScales", "qdnnQuantize", "qdnnDequantize"};
    scene s, other;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    REQUIRE(begin());
    CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_TENSOR], NULL));
    OK(qdnnSetStream(s.handle, stream));
    for (int i = 0; i < 3; i++)
        scene_step_run(&s, calls[i]);
    OK(qdnnSynchronize(s.handle));
    CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 3; i++)
        scene_step_run(&s, calls[i]);
    CU(cu.cuStreamEndCapture(stream, &graph));
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    scene_begin(&other, &scene_kinds[SCENE_TENSOR], NULL, 33);
    replay(&s, &other, stream, exec);
    scene_end(&other);
    CU(cu.cuGraphExecDestroy(exec));
    CU(cu.cuGraphDestroy(graph));
    scene_close(&s);
    end();
}

/* ---- What an execute does ---- */

/* Runs a step that must call the driver for nothing but these, and allocate nothing. */
static void check_step(scene *s, const char *step, int launches, bool pushes)
{
    test_push_note("%s", step);
    blocks_fail(0);
    calls_reset();
    scene_step_run(s, step);
    CHECK_EQ_I64(calls_of(CALL_cuCtxGetCurrent), 1);
    CHECK_EQ_I64(calls_of(CALL_cuLaunchKernel) + calls_of(CALL_cuLaunchKernelEx), launches);
    CHECK_EQ_I64(calls_of(CALL_cuLaunchKernel), 1); /* the others begin before the one in front has ended */
    CHECK_EQ_I64(calls_of(CALL_cuCtxPushCurrent), pushes);
    CHECK_EQ_I64(calls_of(CALL_cuCtxPopCurrent), pushes);
    CHECK_EQ_I64(calls_total(), 1 + launches + 2 * pushes);
    CHECK_EQ_I64(blocks_asked(), 0);
    test_pop_note();
}

static void check_executes(scene *s, bool pushes)
{
    for (int i = 0; i < 3; i++) {
        qdnnPlanInfo_t info = {.size = sizeof info};
        OK(qdnnGetPlanInfo(s->plans[i], &info));
        check_step(s, executes[i], info.kernels, pushes);
    }
}

TEST_EACH(ApiGraphs, ExecuteOnlyLaunches, scene_kind_count, scene_kind_name)
{
    scene s;
    CUcontext popped = NULL;
    REQUIRE(begin());
    REQUIRE(CHECK(calls_watch("cuda")));
    blocks_begin();
    REQUIRE(scene_open(&s, &scene_kinds[index], NULL));
    check_executes(&s, false);
    CU(cu.cuCtxPopCurrent_v2(&popped)); /* now each call has to make the context current */
    check_executes(&s, true);
    scene_close(&s);
    CHECK_EQ_I64(blocks_live(), 0);
    blocks_end();
    end();
}

/* ---- Contexts ---- */

/* Which context is current while the handle is created, and while it is used. */
typedef enum { NONE, FIRST, SECOND } which_context;
static const struct {
    const char *name;
    which_context creates, uses;
} arrangements[] = {
    {"none", NONE, NONE},         {"one", FIRST, FIRST},      {"gone_later", FIRST, NONE},
    {"come_later", NONE, SECOND}, {"another", FIRST, SECOND},
};

/* Whatever a call does, it leaves the thread's current context as it was. */
TEST_ROWS(ApiGraphs, ContextsAreLeftAlone, arrangements)
{
    scene s;
    CUcontext second = NULL, now = NULL;
    REQUIRE(begin());
    CU(cu.cuCtxCreate_v2(&second, 0, 0));
    CU(cu.cuCtxPopCurrent_v2(&now));
    CU(cu.cuCtxPopCurrent_v2(&now)); /* an empty stack: what is set is all that is there */
    CUcontext contexts[] = {NULL, driver_context, second};
    scene_begin(&s, &scene_kinds[SCENE_ZERO_POINT], NULL, 5);
    for (int i = 0; i < scene_step_count; i++) {
        CUcontext current = contexts[s.handle ? arrangements[index].uses : arrangements[index].creates];
        CU(cu.cuCtxSetCurrent(current));
        test_push_note("%s", scene_steps[i].name);
        scene_run(&s, &scene_steps[i]);
        CU(cu.cuCtxGetCurrent(&now));
        CHECK(now == current);
        test_pop_note();
    }
    scene_compare(&s);
    scene_end(&s);
    end();
}

/* Pointers of the program's own in the context that was current when the handle was created. */
TEST_CASE(ApiGraphs, TheProgramsPointersAreUsedAsTheyAre)
{
    scene s;
    CUdeviceptr own = 0;
    unsigned char bytes[4] = {0};
    REQUIRE(begin());
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_INT4], NULL));
    CHECK_EQ_I64(s.info.kind, QDNN_DEVICE_PTXVM);
    CU(cu.cuMemAlloc_v2(&own, 64));
    OK(qdnnFill(s.handle, (void *)(uintptr_t)own, 0x77, 64));
    OK(qdnnSynchronize(s.handle));
    CU(cu.cuMemcpyDtoH_v2(bytes, own, 4));
    CHECK_EQ_U32(bytes[3], 0x77);
    OK(qdnnCopyToDevice(s.handle, (void *)(uintptr_t)own, "abc", 4));
    CU(cu.cuMemcpyDtoH_v2(bytes, own, 4));
    CHECK_EQ_STR((char *)bytes, "abc");
    CU(cu.cuMemFree_v2(own));
    scene_close(&s);
    end();
}

/* A program that lends us the primary context and releases it later does not take it from handles that
 * retained it themselves. */
TEST_CASE(ApiGraphs, ThePrimaryContextStaysForWhoAskedForIt)
{
    qdnnHandle_t borrower = NULL, owner = NULL;
    CUcontext primary = NULL;
    unsigned flags = 0;
    int active = 0;
    void *pointer = NULL;
    REQUIRE(begin());
    CU(cu.cuDevicePrimaryCtxRetain(&primary, 0));
    CU(cu.cuCtxSetCurrent(primary));
    OK(qdnnCreate(&borrower));
    CU(cu.cuCtxSetCurrent(NULL));
    OK(qdnnCreate(&owner));
    CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    OK(qdnnMalloc(owner, &pointer, 64));
    OK(qdnnFill(owner, pointer, 1, 64));
    OK(qdnnFree(owner, pointer));
    OK(qdnnDestroy(borrower));
    OK(qdnnSynchronize(owner));
    OK(qdnnDestroy(owner));
    CU(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK_EQ_I64(active, 0);
    end();
}

/* QDNN_CHECK_BUFFERS: host memory is refused even if kernels could access it; managed memory counts as device memory. */
TEST_CASE(ApiGraphs, CheckedBuffersMayBeManagedNotPinned)
{
    NEED_PTXVM;
    scene s;
    void *pinned = NULL;
    CUdeviceptr managed = 0;
    REQUIRE(begin());
    environment_set("QDNN_CHECK_BUFFERS=1");
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_INT4], NULL));
    size_t bytes = s.bytes[QDNN_OPERAND_X];
    CU(cu.cuMemAllocHost_v2(&pinned, bytes));
    CU(cu.cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL));
    memcpy(pinned, s.expected[QDNN_OPERAND_X], bytes);
    CU(cu.cuMemcpyHtoD_v2(managed, pinned, bytes));
    CHECK_STATUS_IS(
        qdnnComputeScales(s.handle, s.tensor, pinned, s.quant, s.buffers[QDNN_OPERAND_SCALE], NULL),
        QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "x is 0x");
    CHECK_HAS(last_sentence(), "which is host memory; copy it to device memory");
    OK(qdnnComputeScales(s.handle, s.tensor, (void *)(uintptr_t)managed, s.quant,
                         s.buffers[QDNN_OPERAND_SCALE], NULL));
    OK(qdnnSynchronize(s.handle));
    CU(cu.cuMemFreeHost(pinned));
    CU(cu.cuMemFree_v2(managed));
    scene_close(&s);
    end();
}
