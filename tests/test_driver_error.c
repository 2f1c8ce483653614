/* Codes of the CUDA driver as statuses and messages. */
#include "driver/cuda/cuda_error.h"

#include <qdnn/qdnn.h>

#include <stdio.h>
#include <string.h>

#include "test.h"

/* The context is lost after these, and usable after all others. */
static const int sticky[] = {4,   214, 220, 226, 700, 702, 709, 710, 714,
                             715, 716, 717, 718, 719, 721, 810, 911};

static bool in_list(int code)
{
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        if (sticky[i] == code)
            return true;
    return false;
}

TEST_CASE(DriverError, StickyCodes)
{
    for (int code = 0; code <= 1000; code++) {
        test_push_note("code %d", code);
        CHECK_EQ_I64(cuda_is_sticky(code), in_list(code));
        CHECK_EQ_I64(cuda_status(code) == QDNN_STATUS_EXECUTION_FAILED_STICKY, in_list(code));
        test_pop_note();
    }
}

TEST_CASE(DriverError, CodesWithAStatusOfTheirOwn)
{
    static const struct {
        int code;
        qdnnStatus_t status;
    } own[] = {{0, QDNN_STATUS_SUCCESS},
               {2, QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED},
               {100, QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE},
               {101, QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE},
               {209, QDNN_STATUS_NOT_SUPPORTED_SM},
               {218, QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED},
               {222, QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD}};
    int n = (int)(sizeof own / sizeof *own);
    for (int code = 0; code <= 1000; code++) {
        qdnnStatus_t expected =
            in_list(code) ? QDNN_STATUS_EXECUTION_FAILED_STICKY : QDNN_STATUS_EXECUTION_FAILED;
        for (int i = 0; i < n; i++)
            if (own[i].code == code)
                expected = own[i].status;
        test_push_note("code %d", code);
        CHECK_EQ_I64(cuda_status(code), expected);
        test_pop_note();
    }
}

/* A driver newer than our list, and one that leaves the name unset, like the toolkit's stub. */
static CUresult names_one(CUresult code, const char **name)
{
    if (code == 917)
        *name = "CUDA_ERROR_OF_TOMORROW";
    return 0;
}

static void check_sentence(const cuda_api *api, CUresult code, const char *expected)
{
    char sentence[512];
    cuda_failed(api, code, "cuMemAlloc", "the workspace of %zu bytes", (size_t)4096);
    qdnnGetLastErrorString(sentence, sizeof sentence);
    CHECK_EQ_STR(sentence, expected);
}

TEST_CASE(DriverError, SentencesNameCallCodeAndAdvice)
{
    cuda_api api = {.cuGetErrorName = names_one}, empty = {0};
    check_sentence(
        &api, 2,
        "the workspace of 4096 bytes: cuMemAlloc returned 2 (CUDA_ERROR_OUT_OF_MEMORY): the device has too "
        "little free memory");
    check_sentence(
        NULL, 222,
        "the workspace of 4096 bytes: cuMemAlloc returned 222 (CUDA_ERROR_UNSUPPORTED_PTX_VERSION): the "
        "driver is older than the PTX: update it");
    check_sentence(&api, 917,
                   "the workspace of 4096 bytes: cuMemAlloc returned 917 (CUDA_ERROR_OF_TOMORROW)");
    check_sentence(&api, 918, "the workspace of 4096 bytes: cuMemAlloc returned 918 (an unknown code)");
    check_sentence(&empty, 918, "the workspace of 4096 bytes: cuMemAlloc returned 918 (an unknown code)");
    check_sentence(NULL, 918, "the workspace of 4096 bytes: cuMemAlloc returned 918 (an unknown code)");
    CHECK_EQ_I64(cuda_failed(&api, 700, "cuLaunchKernel", "a kernel"), QDNN_STATUS_EXECUTION_FAILED_STICKY);
}

TEST_CASE(DriverError, EveryAdviceFits)
{
    char text[384];
    for (int code = 0; code <= 1000; code++) {
        cuda_describe(NULL, code, "cuDevicePrimaryCtxRetain", text, sizeof text);
        CHECK(strlen(text) < 200);
    }
}
