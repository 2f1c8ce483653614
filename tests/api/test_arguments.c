/* Bindings of plans, device memory, and the order of destruction: each mistake has its status and its
 * message, and nothing is written. */
#include <string.h>

#include "scene.h"

#define BAD_PARAM QDNN_STATUS_BAD_PARAM

/* ---- Bindings ---- */

enum { GOOD = 4096 }; /* a device's address that is aligned to everything */

static const struct {
    const char *name;
    int plan; /* 0 scale, 1 quantize, 2 dequantize */
    int count;
    struct {
        int operand;
        uintptr_t pointer; /* 0: the right one; 1: null; else this many bytes more */
    } bindings[6];
    qdnnStatus_t status;
    const char *part;
} bindings[] = {
    {"none", 1, 0, {{0}}, BAD_PARAM, "QDNN_OPERAND_X is missing; quant.int4_zp.quantize needs it"},
    {"one missing",
     1,
     3,
     {{QDNN_OPERAND_X, 0}, {QDNN_OPERAND_CODES, 0}, {QDNN_OPERAND_ZERO, 0}},
     BAD_PARAM,
     "QDNN_OPERAND_SCALE is missing"},
    {"zeros missing",
     0,
     2,
     {{QDNN_OPERAND_X, 0}, {QDNN_OPERAND_SCALE, 0}},
     BAD_PARAM,
     "QDNN_OPERAND_ZERO is missing"},
    {"twice",
     0,
     3,
     {{QDNN_OPERAND_X, 0}, {QDNN_OPERAND_SCALE, 0}, {QDNN_OPERAND_X, 0}},
     BAD_PARAM,
     "bindings[2] is QDNN_OPERAND_X, which quant.int4_zp.scale is given already"},
    {"foreign",
     0,
     4,
     {{QDNN_OPERAND_X, 0}, {QDNN_OPERAND_SCALE, 0}, {QDNN_OPERAND_ZERO, 0}, {QDNN_OPERAND_Y, 0}},
     BAD_PARAM,
     "bindings[3] is QDNN_OPERAND_Y, which quant.int4_zp.scale does not take"},
    {"x of dequantize", 2, 1, {{QDNN_OPERAND_X, 0}}, BAD_PARAM, "does not take"},
    {"the operand behind the last",
     0,
     1,
     {{QDNN_OPERAND_COUNT, 0}},
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "bindings[0].operand is 64; it must be 0 to 63"},
    {"operand -1", 0, 1, {{-1, 0}}, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "bindings[0].operand is -1"},
    {"operand of 2^31 - 1", 0, 1, {{INT32_MAX, 0}}, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "2147483647"},
    {"count of -1", 0, -1, {{0}}, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is -1"},
    {"least count", 0, INT32_MIN, {{0}}, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is -2147483648"},
    {"null",
     0,
     3,
     {{QDNN_OPERAND_X, 0}, {QDNN_OPERAND_SCALE, 1}, {QDNN_OPERAND_ZERO, 0}},
     QDNN_STATUS_BAD_PARAM_NULL_POINTER,
     "QDNN_OPERAND_SCALE is null"},
    {"odd x",
     0,
     3,
     {{QDNN_OPERAND_X, 3}, {QDNN_OPERAND_SCALE, 0}, {QDNN_OPERAND_ZERO, 0}},
     QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
     "QDNN_OPERAND_X is 0x"},
    {"odd scale",
     0,
     3,
     {{QDNN_OPERAND_X, 0}, {QDNN_OPERAND_SCALE, 3}, {QDNN_OPERAND_ZERO, 0}},
     QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
     "a multiple of its element's 2 bytes"},
    {"odd y",
     2,
     4,
     {{QDNN_OPERAND_CODES, 0}, {QDNN_OPERAND_SCALE, 0}, {QDNN_OPERAND_ZERO, 0}, {QDNN_OPERAND_Y, 3}},
     QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
     "QDNN_OPERAND_Y is 0x"},
};

static void bind(const scene *s, size_t row, qdnnBinding_t *to)
{
    for (int i = 0; i < bindings[row].count; i++) {
        int operand = bindings[row].bindings[i].operand;
        uintptr_t shift = bindings[row].bindings[i].pointer;
        char *right = operand >= 0 && operand < QDNN_OPERAND_COUNT ? s->buffers[operand] : NULL;
        to[i] = (qdnnBinding_t){(qdnnOperand_t)operand, shift == 1 ? NULL : right ? right + shift : NULL, 0};
    }
}

static void check_untouched(const scene *s)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        OK(qdnnCopyToHost(s->handle, s->got[0][i], s->buffers[i], s->bytes[i]));
        for (size_t at = 0; at < s->bytes[i]; at++)
            if (s->got[0][i][at] != 0xC3) {
                FAIL("byte %zu of operand %d was written", at, i);
                break;
            }
    }
}

TEST_CASE(ApiArguments, BindingsThatAreWrong)
{
    NEED_PTXVM;
    scene s;
    vm_begin("PTXVM_CHECK=all");
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_ZERO_POINT], NULL));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        OK(qdnnFill(s.handle, s.buffers[i], 0xC3, s.bytes[i]));
    for (size_t i = 0; i < sizeof bindings / sizeof bindings[0]; i++) {
        qdnnBinding_t bound[6];
        test_push_note("%s", bindings[i].name);
        bind(&s, i, bound);
        CHECK_STATUS_IS(qdnnExecute(s.handle, s.plans[bindings[i].plan], bound, bindings[i].count, NULL, 0),
                        bindings[i].status);
        CHECK_HAS(last_sentence(), bindings[i].part);
        test_pop_note();
    }
    check_untouched(&s);
    scene_close(&s);
    vm_end();
}

/* Zeros for a quantization that has none. */
TEST_CASE(ApiArguments, ZerosThatNobodyAskedFor)
{
    NEED_PTXVM;
    scene s;
    vm_begin(NULL);
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_INT4], NULL));
    void **b = s.buffers;
    CHECK_STATUS_IS(qdnnComputeScales(s.handle, s.tensor, b[QDNN_OPERAND_X], s.quant, b[QDNN_OPERAND_SCALE],
                                      b[QDNN_OPERAND_CODES]),
                    BAD_PARAM);
    CHECK_HAS(last_sentence(), "zero is given, but quant.int4.scale does not take it; it must be null");
    scene_close(&s);
    vm_end();
}

TEST_CASE(ApiArguments, PlansOfAnotherHandle)
{
    NEED_PTXVM;
    scene s;
    qdnnHandle_t other = NULL;
    vm_begin(NULL);
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_INT4], NULL));
    OK(qdnnCreate(&other));
    CHECK_STATUS_IS(qdnnExecute(other, s.plans[0], NULL, 0, NULL, 0), BAD_PARAM);
    CHECK_HAS(last_sentence(), "belongs to another handle");
    OK(qdnnDestroy(other));
    CHECK_STATUS_IS(qdnnDestroy(s.handle), BAD_PARAM);
    CHECK_HAS(last_sentence(), "still has plans (11)");
    CHECK(scene_step_run(&s, "qdnnExecute of scales")); /* it keeps working */
    scene_close(&s);
    vm_end();
}

/* ---- The workspace ---- */

TEST_CASE(ApiArguments, WorkspacesThatAreWrong)
{
    NEED_PTXVM;
    scene s;
    vm_begin(NULL);
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_TENSOR], NULL));
    size_t bytes = s.bytes[SCENE_WORKSPACE];
    char *workspace = s.buffers[SCENE_WORKSPACE];
    const qdnnBinding_t bound[] = {{QDNN_OPERAND_X, s.buffers[QDNN_OPERAND_X], 0},
                                   {QDNN_OPERAND_SCALE, s.buffers[QDNN_OPERAND_SCALE], 0}};
    if (CHECK(bytes > 0)) {
        CHECK_STATUS_IS(qdnnExecute(s.handle, s.plans[0], bound, 2, workspace, bytes - 1),
                        QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        CHECK_HAS(last_sentence(), "the plan needs");
        CHECK_STATUS_IS(qdnnExecute(s.handle, s.plans[0], bound, 2, workspace, 0),
                        QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        CHECK_STATUS_IS(qdnnExecute(s.handle, s.plans[0], bound, 2, NULL, bytes),
                        QDNN_STATUS_BAD_PARAM_NULL_POINTER);
        CHECK_HAS(last_sentence(), "workspace is null");
        CHECK_STATUS_IS(qdnnExecute(s.handle, s.plans[0], bound, 2, workspace + 4, SIZE_MAX),
                        QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
        CHECK_HAS(last_sentence(), "a multiple of 16");
    }
    scene_close(&s);
    vm_end();
}

/* ---- Device memory ---- */

TEST_CASE(ApiArguments, MemoryThatThereIsNot)
{
    NEED_PTXVM;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 62, (size_t)1 << 50};
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    REQUIRE(OK(qdnnCreate(&handle)));
    for (int i = 0; i < 4; i++) {
        void *pointer = &handle;
        CHECK_STATUS_IS(qdnnMalloc(handle, &pointer, sizes[i]),
                        QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
        CHECK(pointer == &handle);
    }
    void *pointer = &handle;
    OK(qdnnMalloc(handle, &pointer, 0));
    CHECK(!pointer);
    OK(qdnnMalloc(handle, &pointer, 1));
    CHECK(pointer && (uintptr_t)pointer % 256 == 0);
    CHECK_STATUS_IS(qdnnFree(handle, (char *)pointer + 1), QDNN_STATUS_BAD_PARAM);
    OK(qdnnFree(handle, pointer));
    CHECK_STATUS_IS(qdnnFree(handle, pointer), QDNN_STATUS_BAD_PARAM);
    CHECK_STATUS_IS(qdnnFill(handle, pointer, 0, 1), QDNN_STATUS_BAD_PARAM);
    OK(qdnnSynchronize(handle));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* A kernel that accesses invalid memory takes its context down: every later call reports it. */
TEST_CASE(ApiArguments, KernelsThatFailKillTheHandle)
{
    NEED_PTXVM;
    scene s;
    vm_begin(NULL);
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_INT4], NULL));
    void *nowhere = (void *)(uintptr_t)GOOD;
    const qdnnBinding_t bound[] = {{QDNN_OPERAND_X, nowhere, 0},
                                   {QDNN_OPERAND_SCALE, s.buffers[QDNN_OPERAND_SCALE], 0}};
    qdnnStatus_t status = qdnnExecute(s.handle, s.plans[0], bound, 2, NULL, 0);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnSynchronize(s.handle);
    CHECK_STATUS_IS(status, QDNN_STATUS_EXECUTION_FAILED_STICKY);
    CHECK_HAS(last_sentence(), "CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK_HAS(last_sentence(), "PTXVM_LOG=stderr tells where");
    CHECK_STATUS_IS(qdnnSynchronize(s.handle), QDNN_STATUS_EXECUTION_FAILED_STICKY);
    CHECK_STATUS_IS(qdnnFree(s.handle, s.buffers[0]), QDNN_STATUS_EXECUTION_FAILED_STICKY);
    OK(qdnnDestroySchedule(s.schedule));
    OK(qdnnDestroyProgram(s.program));
    for (int i = 0; i < SCENE_PLANS; i++)
        OK(qdnnDestroyPlan(s.plans[i]));
    OK(qdnnDestroy(s.handle));
    OK(qdnnDestroyTensorDescriptor(s.tensor));
    OK(qdnnDestroyQuantDescriptor(s.quant));
    OK(qdnnDestroyTrainDescriptor(s.train));
    OK(qdnnDestroyIntegerDescriptor(s.integer));
    scene_end(&s);
    vm_end();
}

/* The same, noticed by qdnnDestroy. */
TEST_CASE(ApiArguments, DestroyTellsOfKernelsThatFailed)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    void *nowhere = (void *)(uintptr_t)GOOD;
    vm_begin(NULL);
    REQUIRE(OK(qdnnCreate(&handle)));
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&q));
    qdnnStatus_t first = qdnnComputeScales(handle, t, nowhere, q, nowhere, NULL);
    qdnnStatus_t last = qdnnDestroy(handle);
    CHECK(first == QDNN_STATUS_EXECUTION_FAILED_STICKY || last == QDNN_STATUS_EXECUTION_FAILED_STICKY);
    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyQuantDescriptor(q));
    vm_end();
}
