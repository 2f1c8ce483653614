/* The order of the calls that the library makes of a driver, where ptxvm, which finishes everything at once, would not notice a mistake. */
#include "api/calls.h"
#include "api/recorder.h"
#include "api/scene.h"
#include "driver/api/handle.h"
#include "driver/api/modules.h"
#include "test.h"

static qdnnHandle_t begin(recorder **r)
{
    qdnnHandle_t handle = NULL;
    *r = recorder_begin();
    const cuda_device device = recorder_device();
    OK(handle_create(&device, &handle));
    return handle;
}

/* Nothing is left behind, and nothing was too early. */
static void end(qdnnHandle_t handle, const recorder *r)
{
    OK(qdnnDestroy(handle));
    CHECK_EQ_STR(r->mistake, "");
    CHECK_EQ_I64(r->loads, r->unloads);
    CHECK_EQ_I64(r->memory, 0);
}

/* The caller may use its memory as soon as the call returns. */
TEST_CASE(ApiOrder, CopiesOfTheHostWait)
{
    recorder *r;
    qdnnHandle_t handle = begin(&r);
    void *a = NULL, *b = NULL;
    char host[64] = "";
    OK(qdnnMalloc(handle, &a, sizeof host));
    OK(qdnnMalloc(handle, &b, sizeof host));
    for (int stream = 0; stream < 2; stream++) {
        OK(qdnnSetStream(handle, recorder_stream(stream)));
        OK(qdnnCopyOnDevice(handle, a, b, sizeof host));
        CHECK_EQ_I64(recorder_pending(stream), 1); /* the recorder does see what is queued */
        OK(qdnnCopyToDevice(handle, a, host, sizeof host));
        CHECK_EQ_I64(recorder_pending(stream), 0);
        OK(qdnnCopyOnDevice(handle, a, b, sizeof host));
        OK(qdnnCopyToHost(handle, host, a, sizeof host));
        CHECK_EQ_I64(recorder_pending(stream), 0);
    }
    OK(qdnnFree(handle, a));
    OK(qdnnFree(handle, b));
    end(handle, r);
}

typedef struct tensors {
    qdnnTensorDescriptor_t t;
    qdnnQuantDescriptor_t q;
    void *x, *scale;
} tensors;

static tensors tensors_make(qdnnHandle_t handle, int64_t count)
{
    tensors m = {0};
    OK(qdnnCreateTensorDescriptor(&m.t));
    OK(qdnnCreateQuantDescriptor(&m.q));
    OK(qdnnSetTensorDescriptor(m.t, QDNN_DATA_F32, 1, &count, NULL));
    OK(qdnnMalloc(handle, &m.x, (size_t)count * 4));
    OK(qdnnMalloc(handle, &m.scale, (size_t)count * 4));
    return m;
}

static void tensors_free(qdnnHandle_t handle, tensors *m)
{
    OK(qdnnFree(handle, m->x));
    OK(qdnnFree(handle, m->scale));
    OK(qdnnDestroyTensorDescriptor(m->t));
    OK(qdnnDestroyQuantDescriptor(m->q));
}

/* More kernels than the cache keeps, each launched and not waited for: those that make room are waited for first. */
TEST_CASE(ApiOrder, AModuleIsUnloadedWhenItsKernelsAreDone)
{
    recorder *r;
    qdnnHandle_t handle = begin(&r);
    tensors m = tensors_make(handle, 4096);
    for (int i = 0; i < MODULES_MAX + 20; i++) {
        qdnnPlan_t plan = NULL;
        const qdnnBinding_t b[] = {{.operand = QDNN_OPERAND_X, .pointer = m.x, .bytes = 4096 * 4},
                                   {.operand = QDNN_OPERAND_SCALE, .pointer = m.scale, .bytes = 4096 * 4}};
        OK(qdnnSetStream(handle, recorder_stream(i % 2)));
        OK(qdnnSetQuantAttribute(m.q, QDNN_QUANT_GROUP_SIZE, 2 + i));
        OK(qdnnCreateScalePlan(handle, m.t, m.q, &plan));
        OK(qdnnExecute(handle, plan, b, 2, NULL, 0));
        OK(qdnnDestroyPlan(plan));
    }
    CHECK_EQ_I64(r->loads, MODULES_MAX + 20);
    CHECK(r->unloads >= 20);
    CHECK(r->launches >= r->loads);
    CHECK_EQ_STR(r->mistake, "");
    tensors_free(handle, &m);
    end(handle, r);
}

/* The last handle of a context unloads its modules. Nothing is freed before, because freeing waits. */
TEST_CASE(ApiOrder, AHandleWaitsBeforeItIsGone)
{
    recorder *r;
    qdnnHandle_t handle = begin(&r);
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    qdnnPlan_t plan = NULL;
    const qdnnBinding_t b[] = {{.operand = QDNN_OPERAND_X, .pointer = (void *)(uintptr_t)4096},
                               {.operand = QDNN_OPERAND_SCALE, .pointer = (void *)(uintptr_t)(1 << 20)}};
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1024}, NULL));
    OK(qdnnCreateScalePlan(handle, t, q, &plan));
    OK(qdnnSetStream(handle, recorder_stream(1)));
    OK(qdnnExecute(handle, plan, b, 2, NULL, 0));
    OK(qdnnSetStream(handle, recorder_stream(0)));
    OK(qdnnDestroyPlan(plan));
    CHECK_EQ_I64(recorder_pending(1), 1);
    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyQuantDescriptor(q));
    end(handle, r);
}

/* A kernel of the caller's own, in a program that is destroyed while it runs. */
TEST_CASE(ApiOrder, AProgramWaitsForKernelsOfItsOwn)
{
    recorder *r;
    qdnnHandle_t handle = begin(&r);
    for (int runs = 0; runs < 2; runs++) {
        qdnnProgram_t program = NULL;
        int x = 0;
        OK(qdnnCreateProgram(handle, 4, &program));
        qdnnTensorDescriptor_t shape = NULL;
        OK(qdnnCreateTensorDescriptor(&shape));
        OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_F32, 2, (const int64_t[]){4, 8}, NULL));
        OK(qdnnAddTensorToProgram(program, "x", QDNN_PROGRAM_EXTERNAL, shape, 1, &x));
        OK(qdnnDestroyTensorDescriptor(shape));
        const qdnnProgramArgument_t argument = {.kind = QDNN_KERNEL_ARGUMENT_WRITE, .tensor = x};
        const qdnnProgramKernel_t kernel = {.size = sizeof kernel,
                                            .source = QDNN_SOURCE_PTX,
                                            .text = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                                    ".visible .entry own(.param .u64 x)\n{\n    ret;\n}\n",
                                            .entry = "own",
                                            .grid = {1, 1, 1},
                                            .block = {32, 1, 1},
                                            .arguments = &argument,
                                            .count = 1};
        OK(qdnnAddKernelToProgram(program, "own", &kernel));
        OK(qdnnCompileProgram(program));
        const void *pointers[] = {(void *)(uintptr_t)4096};
        OK(qdnnSetStream(handle, recorder_stream(1)));
        if (runs)
            OK(qdnnRunProgram(handle, program, pointers, 1, 4, NULL, 0));
        OK(qdnnSetStream(handle, recorder_stream(0)));
        CHECK_EQ_I64(r->launches, runs);
        CHECK_EQ_I64(recorder_pending(1), runs);
        const int syncs = r->syncs;
        OK(qdnnDestroyProgram(program));
        CHECK_EQ_I64(r->syncs - syncs, runs); /* what never ran is not waited for */
        CHECK_EQ_STR(r->mistake, "");
    }
    end(handle, r);
}

/* One-shot calls keep a workspace in the handle: on another stream it is another one, or the first stream is done with it. */
TEST_CASE(ApiOrder, NoWorkspaceOnTwoStreams)
{
    enum { COUNT = 1 << 20 }; /* its largest element takes two kernels */
    recorder *r;
    qdnnHandle_t handle = begin(&r);
    tensors m = tensors_make(handle, COUNT);
    OK(qdnnSetQuantAttribute(m.q, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_TENSOR));
    r->is_own = true;
    for (int i = 0; i < 6; i++) {
        OK(qdnnSetStream(handle, recorder_stream(i / 2 % 2)));
        OK(qdnnComputeScales(handle, m.t, m.x, m.q, m.scale, NULL));
        CHECK_EQ_STR(r->mistake, "");
    }
    r->is_own = false;
    CHECK(r->used_own_memory >= 6); /* the recorder does see the workspace */
    tensors_free(handle, &m);
    end(handle, r);
}

static qdnnHandle_t other;
static tensors others;

static void plan_the_same(void)
{
    qdnnPlan_t plan = NULL;
    OK(qdnnCreateScalePlan(other, others.t, others.q, &plan));
    OK(qdnnDestroyPlan(plan));
}

/* Another thread loads the same kernel at the same time: one of both is not kept, and is unloaded. */
TEST_CASE(ApiOrder, AKernelThatIsLoadedTwiceIsUnloadedTwice)
{
    recorder *r;
    qdnnPlan_t plan = NULL;
    other = begin(&r);
    others = tensors_make(other, 4096);
    r->while_loading = plan_the_same;
    OK(qdnnCreateScalePlan(other, others.t, others.q, &plan));
    CHECK_EQ_I64(r->loads, 2);
    CHECK_EQ_I64(r->unloads, 1);
    OK(qdnnDestroyPlan(plan));
    tensors_free(other, &others);
    end(other, r);
}
