/* The same trials on a GPU: the one that QDNN_DEVICE=cuda[:N] names, by default the first. Without a GPU
 * these tests are skipped, unless QDNN_REQUIRE_GPU says that there has to be one; the last tests here check
 * that rule itself, in processes of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda/open.h"
#include "parity/gpu.h"
#include "parity/trial.h"
#include "support/process.h"
#include "test.h"

#define PROGRAM       QDNN_BINARY_DIR "/tests/parity_tests"
#define PTXVM_LIBCUDA QDNN_BINARY_DIR "/ptxvm/libcuda.so.1"

bool gpu_required(void)
{
    const char *text = getenv("QDNN_REQUIRE_GPU");
    return text && *text && strcmp(text, "0") != 0;
}

static qdnnHandle_t open_gpu(char *reason, size_t size)
{
    const char *device = getenv("QDNN_DEVICE");
    bool named = device && *device && strcmp(device, "auto") != 0;
    qdnnHandle_t handle = NULL;
    if (named && strncmp(device, "cuda", 4) != 0) {
        snprintf(reason, size, "QDNN_DEVICE is %s, which is no GPU", device);
        return NULL;
    }
    if (qdnnCreateOn(&handle, named ? device : "cuda") != QDNN_STATUS_SUCCESS)
        qdnnGetLastErrorString(reason, size);
    return handle;
}

/* Which driver it was is part of the result: a libcuda.so.1 may be ptxvm. */
static void say_device(qdnnHandle_t handle)
{
    qdnnDeviceInfo_t info = {.size = sizeof info};
    if (CHECK_QDNN(qdnnGetDeviceInfo(handle, &info)))
        printf("device %d: %s, %s, CUDA %d\n", info.ordinal, info.name, info.target, info.driverVersion);
}

qdnnHandle_t gpu_begin(char *reason, size_t size)
{
    cuda_close_all(); /* the tests before had settings of their own */
    qdnnHandle_t handle = open_gpu(reason, size);
    if (handle)
        say_device(handle);
    return handle;
}

void gpu_end(qdnnHandle_t handle)
{
    CHECK_QDNN(qdnnDestroy(handle));
    cuda_close_all();
}

TEST_EACH(Parity, OnGpu, parity_row_count, parity_row_name)
{
    char reason[512];
    qdnnHandle_t handle = gpu_begin(reason, sizeof reason);
    if (!handle && gpu_required())
        FAIL("a GPU is required, and there is none: %s", reason);
    if (!handle)
        SKIP("no GPU: %s", reason);
    const kernel_row *row = parity_row_at(index);
    for (int turn = 0; turn < PARITY_TURNS; turn++)
        parity_run_turn(handle, row, turn);
    for (int i = 0; i < parity_large_count(); i++) {
        parity_trial trial = parity_large_at(row, i);
        parity_run(handle, &trial);
    }
    gpu_end(handle);
}

/* ---- The rule itself ---- */

/* Runs the GPU test of one kernel in a process that knows nothing but these settings. */
static process_result run_gpu_test(const char *settings)
{
    return process_run(
        "env -u QDNN_DEVICE -u QDNN_REQUIRE_GPU -u QDNN_BUNDLE_DIR -u PTXVM_FAULT -u QDNN_TEST_SUMMARY %s "
        "'%s' --gtest_filter='*OnGpu/quantize_nf4'",
        settings, PROGRAM);
}

enum { SKIPPED = 77 }; /* what a program whose every test was skipped ends with */

static const struct {
    const char *name, *settings;
    int status; /* of the process */
    const char *part, *other;
} rules[] = {
    {"WithoutADriverItIsSkipped", "QDNN_LIBCUDA=libno_such_driver.so.1", SKIPPED, "[  SKIPPED ] 1 test",
     "no GPU: QDNN_LIBCUDA names no library that can be opened"},
    {"RequiredWithoutADriverItFails", "QDNN_LIBCUDA=libno_such_driver.so.1 QDNN_REQUIRE_GPU=1", 1,
     "a GPU is required, and there is none", "QDNN_LIBCUDA names no library that can be opened"},
    {"RequiredPtxvmWillNotDo", "QDNN_LIBCUDA=" PTXVM_LIBCUDA " QDNN_REQUIRE_GPU=1 QDNN_DEVICE=cuda", 1,
     "a GPU is required, and there is none", "is ptxvm"},
    {"RequiredButAnotherDeviceIsNamed", "QDNN_REQUIRE_GPU=1 QDNN_DEVICE=vm:sm_90", 1,
     "a GPU is required, and there is none", "QDNN_DEVICE is vm:sm_90"},
    {"ZeroRequiresNothing", "QDNN_LIBCUDA=libno_such_driver.so.1 QDNN_REQUIRE_GPU=0", SKIPPED,
     "[  SKIPPED ] 1 test", "Parity.OnGpu/quantize_nf4"},
    /* The same path as with a GPU, but without one: libcuda.so.1 is opened at run time. */
    {"ThroughLibcuda", "QDNN_LIBCUDA=" PTXVM_LIBCUDA " QDNN_DEVICE=cuda PTXVM_SM=sm_89", 0,
     "[  PASSED  ] 1 test", "device 0: ptxvm sm_89"},
};

TEST_ROWS(ParityRequiresGpu, Rule, rules)
{
    process_result result = run_gpu_test(rules[index].settings);
    CHECK_EQ_I64(result.status, rules[index].status);
    CHECK_HAS(result.output, rules[index].part);
    CHECK_HAS(result.output, rules[index].other);
    process_free(&result);
}
