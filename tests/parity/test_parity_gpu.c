/* The rule of device/under_test.h itself, in processes of their own: what is skipped and what fails without a GPU, and that a
 * damaged byte of a GPU's launch is found in each family of tests. The GPU is the tests' own (doubles/gpu.c). */
#include <stdio.h>
#include <string.h>

#include "support/process.h"
#include "test.h"

#define PROGRAM       QDNN_BINARY_DIR "/tests/parity_tests"
#define PTXVM_LIBCUDA QDNN_BINARY_DIR "/ptxvm/libcuda.so.1"
#define GPU_LIBCUDA   QDNN_BINARY_DIR "/tests/doubles/gpu/libcuda.so.1"
#define NO_LIBCUDA    "QDNN_LIBCUDA=libno_such_driver.so.1"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Runs tests in a process that knows nothing but these settings. */
static process_result run_tests(const char *program, const char *settings, const char *filter)
{
    return process_run(
        "env -u QDNN_DEVICE -u QDNN_REQUIRE_GPU -u QDNN_BUNDLE_DIR -u PTXVM_FAULT -u QDNN_TEST_SUMMARY "
        "-u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX %s '%s' --gtest_filter='%s'",
        settings, program, filter);
}

enum { SKIPPED = 77 }; /* what a program whose every test was skipped ends with */

#define ON_GPU "ParityOnGpu.Large/quantize_nf4"
static const struct {
    const char *name, *settings, *filter;
    int status; /* of the process */
    const char *part, *other;
} rules[] = {
    {"WithoutADriverItIsSkipped", NO_LIBCUDA, ON_GPU, SKIPPED, "[  SKIPPED ] 1 test",
     "no GPU: QDNN_LIBCUDA names no library that can be opened"},
    {"RequiredWithoutADriverItFails", NO_LIBCUDA " QDNN_REQUIRE_GPU=1", ON_GPU, 1,
     "a GPU is required, and there is none", "QDNN_LIBCUDA names no library that can be opened"},
    {"RequiredPtxvmWillNotDo", "QDNN_LIBCUDA=" PTXVM_LIBCUDA " QDNN_REQUIRE_GPU=1 QDNN_DEVICE=cuda", ON_GPU,
     1, "a GPU is required, and there is none", "is ptxvm"},
    {"RequiredButAnotherDeviceIsNamed", "QDNN_REQUIRE_GPU=1 QDNN_DEVICE=vm:sm_90", ON_GPU, 1,
     "a GPU is required, and there is none", "QDNN_DEVICE is vm:sm_90"},
    {"ZeroRequiresNothing", NO_LIBCUDA " QDNN_REQUIRE_GPU=0", ON_GPU, SKIPPED, "[  SKIPPED ] 1 test", ON_GPU},
    /* The same path as with a GPU, but without one: libcuda.so.1 is opened at run time. */
    {"ThroughLibcuda", "QDNN_LIBCUDA=" PTXVM_LIBCUDA " QDNN_DEVICE=cuda PTXVM_SM=sm_89", ON_GPU, 0,
     "[  PASSED  ] 1 test", "device 0: ptxvm sm_89"},
    {"OnAGpu", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1 PTXVM_SM=sm_89", ON_GPU, 0,
     "[  PASSED  ] 1 test", "device 0: the tests' own GPU 8.9, sm_89"},
    {"TheNamedDeviceIsOfAllTests", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_DEVICE=cuda",
     "Parity.Large/quantize_nf4", 0, "[  PASSED  ] 1 test", "device 0: the tests' own GPU"},
    {"TheNamedSmIsOfAllTests", "QDNN_DEVICE=vm:sm_120", "ParityMatmul.Tensor/int4_sm_80", SKIPPED,
     "[  SKIPPED ] 1 test", "the case is for sm_80, the device is sm_120"},
    {"RequiredOnesAreAllTests", NO_LIBCUDA " QDNN_REQUIRE_GPU=1", "Parity.Large/quantize_nf4", 1,
     "a GPU is required, and there is none", "Parity.Large/quantize_nf4"},
    {"OtherTensorCores", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1 PTXVM_SM=sm_90",
     "ParityMatmulOnGpu.Tensor/int4_sm_80", SKIPPED, "[  SKIPPED ] 1 test",
     "the case is for sm_80, the device is sm_90"},
    {"RelatedTensorCores", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1 PTXVM_SM=sm_86",
     "ParityMatmulOnGpu.Tensor/int4_sm_80", 0, "[  PASSED  ] 1 test", "the tests' own GPU 8.6"},
    {"OnlyPtxvm", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1", "ParityFindsOnGpu.NothingWhereNothingIs",
     SKIPPED, "[  SKIPPED ] 1 test", "only ptxvm has checks of memory"},
};

TEST_ROWS(ParityRequiresGpu, Rule, rules)
{
    process_result result = run_tests(PROGRAM, rules[index].settings, rules[index].filter);
    CHECK_EQ_I64(result.status, rules[index].status);
    CHECK_HAS(result.output, rules[index].part);
    CHECK_HAS(result.output, rules[index].other);
    process_free(&result);
}
