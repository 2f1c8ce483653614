/* Tests of a GPU in processes of their own. */
#include "device/gpu_process.h"

#include <stdio.h>

#include "test.h"

process_result gpu_process_run(const char *program, const char *settings, const char *filter)
{
    return process_run(
        "env -u QDNN_DEVICE -u QDNN_REQUIRE_GPU -u QDNN_BUNDLE_DIR -u PTXVM_FAULT -u QDNN_TEST_SUMMARY "
        "-u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX %s '" QDNN_BINARY_DIR "/tests/%s' --gtest_filter='%s'",
        settings, program, filter);
}

static void check(const char *program, const char *settings, const char *filter, int status, const char *part)
{
    process_result result = gpu_process_run(program, settings, filter);
    test_push_note("%s", settings);
    CHECK_EQ_I64(result.status, status);
    CHECK_HAS(result.output, part);
    test_pop_note();
    process_free(&result);
}

#define ON_GPU "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1 PTXVM_SM=sm_90"

void gpu_process_check_damage(const char *program, const char *filter, int first, int second)
{
    const int launches[] = {first, second};
    check(program, ON_GPU, filter, 0, "[  PASSED  ] 1 test");
    check(program, NO_LIBCUDA " QDNN_REQUIRE_GPU=1", filter, 1, "a GPU is required, and there is none");
    for (int i = 0; i < 2 && launches[i]; i++) {
        char settings[1024];
        snprintf(settings, sizeof settings, ON_GPU " TEST_GPU_DAMAGE=%d", launches[i]);
        check(program, settings, filter, 1, "[  FAILED  ] 1 test");
    }
}
