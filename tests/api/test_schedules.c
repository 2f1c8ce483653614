/* Schedules: plans in a row, run by one call, alone and in a graph. */
#include <stdio.h>
#include <string.h>

#include "blocks.h"
#include "cuda/driver.h"
#include "device/small_product.h"
#include "scene.h"

void cuda_close_all(void); /* driver/cuda/open.h, which declares the driver's types anew */

#define SETTINGS                                                                                             \
    "QDNN_DEVICE=cuda QDNN_LIBCUDA=" QDNN_BINARY_DIR                                                         \
    "/ptxvm/libcuda.so.1 QDNN_REQUIRE_GPU= QDNN_BUNDLE_DIR= "                                                \
    "QDNN_LOGLEVEL= PTXVM_SM= PTXVM_FAULT= PTXVM_DEVICES= PTXVM_CHECK=all"

/* Two layers: h = x A^T, grouped by expert; then y = h B^T + LoRA. Both need a workspace, of different sizes.
 * All numbers are small integers. */
enum { M = 3, K = 4, H = 5, N = 2, EXPERTS = 2 };

typedef struct layers {
    qdnnHandle_t handle;
    small_product first, second;
    qdnnSchedule_t schedule;
    device_buffer workspace;
} layers;

static float weight(int i)
{
    return (float)(i * 5 % 7 - 3);
}

static void fill(float *x, int n, int from)
{
    for (int i = 0; i < n; i++)
        x[i] = weight(i + from);
}

/* What comes out for an x. */
static void expect(const float *x, float *y)
{
    static const int32_t expert[M] = {1, 0, 1};
    float h[M * H];
    for (int i = 0; i < M * H; i++) {
        h[i] = 0;
        for (int k = 0; k < K; k++)
            h[i] += x[i / H * K + k] * weight(expert[i / H] * H * K + i % H * K + k);
    }
    for (int i = 0; i < M * N; i++) {
        float t = 0;
        y[i] = 0;
        for (int k = 0; k < H; k++) {
            y[i] += h[i / N * H + k] * weight(i % N * H + k + 1);
            t += h[i / N * H + k] * weight(k + 2);
        }
        y[i] += t * weight(i % N + 3);
    }
}

static bool make_plans(layers *l)
{
    static const int32_t expert[M] = {1, 0, 1};
    const small_weights plain = {QDNN_WEIGHTS_F32, 0, false};
    float x[M * K], a[EXPERTS * H * K], b[N * H], down[H], up[N];
    fill(x, M * K, 0);
    fill(a, EXPERTS * H * K, 0);
    fill(b, N * H, 1);
    fill(down, H, 2);
    fill(up, N, 3);
    return small_product_begin(&l->first, l->handle, (const int64_t[]){M, H, K}, EXPERTS, plain) &&
           small_product_begin(&l->second, l->handle, (const int64_t[]){M, N, H}, 0, plain) &&
           small_product_set(&l->second, QDNN_MATMUL_LORA_RANK, 1) &&
           small_product_set(&l->second, QDNN_MATMUL_LORA_TYPE, QDNN_DATA_F32) &&
           small_product_plan(&l->first) && small_product_plan(&l->second) &&
           small_product_put(&l->first, QDNN_OPERAND_X, x, sizeof x) &&
           small_product_put(&l->first, QDNN_OPERAND_CODES, a, sizeof a) &&
           small_product_put(&l->first, QDNN_OPERAND_EXPERT_INDEX, expert, sizeof expert) &&
           small_product_put(&l->second, QDNN_OPERAND_CODES, b, sizeof b) &&
           small_product_put(&l->second, QDNN_OPERAND_LORA_A, down, sizeof down) &&
           small_product_put(&l->second, QDNN_OPERAND_LORA_B, up, sizeof up);
}

/* The second product reads what the first writes. */
static int bind_second(const layers *l, qdnnBinding_t *bindings)
{
    int count = small_product_bind(&l->second, bindings);
    bindings[count] = (qdnnBinding_t){QDNN_OPERAND_X, device_buffer_at(&l->first.at[QDNN_OPERAND_Y]), 0};
    return count + 1;
}

static bool make_schedule(layers *l)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    size_t bytes = 0;
    int count = small_product_bind(&l->first, bindings);
    if (!CHECK_QDNN(qdnnCreateSchedule(l->handle, &l->schedule)) ||
        !CHECK_QDNN(qdnnAddToSchedule(l->schedule, l->first.plan, bindings, count)))
        return false;
    count = bind_second(l, bindings);
    return CHECK_QDNN(qdnnAddRowsToSchedule(l->schedule, l->second.plan, M, bindings, count)) &&
           CHECK_QDNN(qdnnGetScheduleWorkspaceSize(l->schedule, &bytes)) &&
           device_buffer_make(l->handle, BUFFER_EXACT, bytes, 0, &l->workspace);
}

static bool layers_begin(layers *l, qdnnHandle_t handle)
{
    *l = (layers){.handle = handle};
    return make_plans(l) && make_schedule(l);
}

static void layers_end(layers *l)
{
    OK(qdnnDestroySchedule(l->schedule));
    device_buffer_free(&l->workspace);
    small_product_end(&l->first);
    small_product_end(&l->second);
}

static qdnnStatus_t run(layers *l)
{
    qdnnStatus_t status =
        qdnnExecuteSchedule(l->handle, l->schedule, device_buffer_at(&l->workspace), l->workspace.bytes);
    return status == QDNN_STATUS_SUCCESS ? qdnnSynchronize(l->handle) : status;
}

static void check_result(layers *l, const float *x)
{
    float y[M * N], expected[M * N];
    expect(x, expected);
    if (small_product_result(&l->second, y))
        CHECK_EQ_MEM(y, expected, sizeof y);
}

TEST_CASE(ApiSchedules, RunsItsStepsInOrder)
{
    NEED_PTXVM;
    layers l;
    qdnnHandle_t handle = NULL;
    float x[M * K];
    vm_begin("PTXVM_CHECK=all");
    OK(qdnnCreate(&handle));
    if (layers_begin(&l, handle)) {
        size_t first = 0, second = 0;
        OK(qdnnGetPlanWorkspaceSize(l.first.plan, &first));
        OK(qdnnGetPlanWorkspaceSize(l.second.plan, &second));
        CHECK(first > 0 && second > 0 && first != second);
        CHECK_EQ_I64((int64_t)l.workspace.bytes,
                     (int64_t)(first > second ? first : second)); /* they share it */
        for (int turn = 0; turn < 3; turn++) {
            fill(x, M * K, turn);
            device_buffer_write(&l.first.at[QDNN_OPERAND_X], x);
            OK(run(&l));
            check_result(&l, x);
        }
    }
    layers_end(&l);
    OK(qdnnDestroy(handle));
    vm_end();
}

TEST_CASE(ApiSchedules, CanBeCaptured)
{
    NEED_PTXVM;
    layers l;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    qdnnHandle_t handle = NULL;
    size_t nodes = 0;
    float x[M * K];
    cuda_close_all();
    REQUIRE(driver_open_context(SETTINGS));
    CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(qdnnCreate(&handle));
    OK(qdnnSetStream(handle, stream));
    if (layers_begin(&l, handle)) {
        CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(qdnnExecuteSchedule(handle, l.schedule, device_buffer_at(&l.workspace), l.workspace.bytes));
        CU(cu.cuStreamEndCapture(stream, &graph));
        CU(cu.cuGraphGetNodes(graph, NULL, &nodes));
        CHECK_EQ_I64((int64_t)nodes, 5); /* sort, product; two of LoRA, product */
        CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
        for (int turn = 4; turn < 6; turn++) {
            fill(x, M * K, turn);
            device_buffer_write(&l.first.at[QDNN_OPERAND_X], x);
            CU(cu.cuGraphLaunch(exec, stream));
            OK(qdnnSynchronize(handle));
            check_result(&l, x);
        }
        CU(cu.cuGraphExecDestroy(exec));
        CU(cu.cuGraphDestroy(graph));
    }
    layers_end(&l);
    OK(qdnnDestroy(handle));
    cuda_close_all();
    driver_close();
}

/* The schedule keeps what it needs: plans may be destroyed before it, and the handle may not. */
TEST_CASE(ApiSchedules, KeepsItsPlans)
{
    NEED_PTXVM;
    layers l;
    qdnnHandle_t handle = NULL;
    float x[M * K];
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    if (layers_begin(&l, handle)) {
        OK(qdnnDestroyPlan(l.first.plan));
        OK(qdnnDestroyPlan(l.second.plan));
        CHECK_STATUS_IS(qdnnDestroyPlan(l.first.plan), QDNN_STATUS_BAD_PARAM); /* the user no longer has it */
        CHECK_HAS(last_sentence(), "plan is a plan that was destroyed");
        l.first.plan = l.second.plan = NULL;
        fill(x, M * K, 0);
        OK(run(&l));
        check_result(&l, x);
        CHECK_STATUS_IS(qdnnDestroy(handle), QDNN_STATUS_BAD_PARAM);
        CHECK_HAS(last_sentence(),
                  "the handle still has plans (2), schedules (1) and programs (0); destroy them before it");
    }
    layers_end(&l);
    OK(qdnnDestroy(handle));
    vm_end();
}

TEST_CASE(ApiSchedules, ErrorsNameTheStep)
{
    NEED_PTXVM;
    layers l;
    qdnnHandle_t handle = NULL, other = NULL;
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    OK(qdnnCreate(&other));
    if (layers_begin(&l, handle)) {
        qdnnSchedule_t foreign = NULL;
        int count = small_product_bind(&l.second, bindings); /* without x */
        CHECK_STATUS_IS(qdnnAddToSchedule(l.schedule, l.second.plan, bindings, count), QDNN_STATUS_BAD_PARAM);
        CHECK_HAS(last_sentence(), "step 2 (quant.plain_f32.matmul): QDNN_OPERAND_X is missing");
        CHECK_STATUS_IS(qdnnAddRowsToSchedule(l.schedule, l.second.plan, M + 1, bindings, count),
                        QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_HAS(last_sentence(),
                  "step 2 (quant.plain_f32.matmul): rows is 4; the plan was made for 0 to 3");
        OK(qdnnCreateSchedule(other, &foreign));
        CHECK_STATUS_IS(qdnnAddToSchedule(foreign, l.second.plan, bindings, count), QDNN_STATUS_BAD_PARAM);
        CHECK_HAS(last_sentence(), "step 0 (quant.plain_f32.matmul): the plan belongs to another handle");
        CHECK_STATUS_IS(qdnnExecuteSchedule(handle, foreign, NULL, 0), QDNN_STATUS_BAD_PARAM);
        CHECK_HAS(last_sentence(), "the schedule belongs to another handle");
        OK(qdnnExecuteSchedule(other, foreign, NULL, 0)); /* without steps it does nothing */
        OK(qdnnDestroySchedule(foreign));
        CHECK_STATUS_IS(
            qdnnExecuteSchedule(handle, l.schedule, device_buffer_at(&l.workspace), l.workspace.bytes - 1),
            QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        CHECK_STATUS_IS(qdnnExecuteSchedule(handle, l.schedule, NULL, l.workspace.bytes),
                        QDNN_STATUS_BAD_PARAM_NULL_POINTER);
        CHECK_STATUS_IS(qdnnExecuteSchedule(handle, l.schedule, (char *)device_buffer_at(&l.workspace) + 1,
                                            l.workspace.bytes),
                        QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
        OK(run(&l)); /* what was refused was not added */
    }
    layers_end(&l);
    OK(qdnnDestroy(other));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* The driver refuses the fourth launch, which is LoRA's second: step 1. */
/* The fourth launch, the second of step 1. From sm_90 on, only the first is an independent one. */
static const struct {
    const char *name, *settings;
} failing[] = {{"independent", "PTXVM_SM=sm_80 PTXVM_FAULT=cuLaunchKernel:4=701"},
               {"dependent", "PTXVM_SM=sm_90 PTXVM_FAULT=cuLaunchKernelEx:3=701"}};

TEST_ROWS(ApiSchedules, ALaunchThatFails, failing)
{
    NEED_PTXVM;
    layers l;
    qdnnHandle_t handle = NULL;
    vm_begin(failing[index].settings);
    OK(qdnnCreate(&handle));
    if (layers_begin(&l, handle)) {
        CHECK_STATUS_IS(run(&l), QDNN_STATUS_EXECUTION_FAILED);
        CHECK_HAS(last_sentence(), "step 1 (quant.plain_f32.matmul): quant.plain_f32.matmul: ");
        OK(run(&l));
    }
    layers_end(&l);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* Dozens of steps; each allocation fails once, and the same call then succeeds. */
TEST_CASE(ApiSchedules, GrowsAndSurvivesAllocationsThatFail)
{
    NEED_PTXVM;
    enum { STEPS = 40 };
    layers l;
    qdnnHandle_t handle = NULL;
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    float x[M * K];
    vm_begin(NULL);
    blocks_begin();
    OK(qdnnCreate(&handle));
    if (layers_begin(&l, handle)) {
        int count = small_product_bind(&l.first, bindings), failures = 0;
        for (int i = 0; i < STEPS; i++) {
            blocks_fail(1);
            qdnnStatus_t status = qdnnAddToSchedule(l.schedule, l.first.plan, bindings, count);
            blocks_fail(0);
            failures += status == QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED;
            if (status != QDNN_STATUS_SUCCESS)
                OK(qdnnAddToSchedule(l.schedule, l.first.plan, bindings, count));
        }
        CHECK(failures >= 3); /* the list grew as often */
        fill(x, M * K, 0);
        OK(run(&l));
        check_result(&l, x);
    }
    layers_end(&l);
    OK(qdnnDestroy(handle));
    CHECK_EQ_I64(blocks_live(), 0);
    blocks_end();
    vm_end();
}
