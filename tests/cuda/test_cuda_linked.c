/* The driver linked in, as our library has it: functions by name, settings by a call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "tools/toolkit.h"
#include "ptxvm/cuda/ptxvm_cuda.h"
#include "support/environment.h"
#include "support/process.h"

#define FIND(type, variable, name)                                                                           \
    type *variable;                                                                                          \
    do {                                                                                                     \
        void *symbol_ = ptxvm_cuda_symbol(name);                                                             \
        REQUIRE(symbol_ != NULL);                                                                            \
        memcpy(&variable, &symbol_, sizeof symbol_);                                                         \
    } while (0)

typedef CUresult init_fn(unsigned);
typedef CUresult count_fn(int *);
typedef CUresult name_fn(char *, int, CUdevice);

TEST_CASE(CudaLinked, SettingsByACall)
{
    char name[64] = "";
    int count = 0;
    FIND(init_fn, init, "cuInit");
    FIND(count_fn, get_count, "cuDeviceGetCount");
    FIND(name_fn, get_name, "cuDeviceGetName");
    CU_IS(get_count(&count), CUDA_ERROR_NOT_INITIALIZED);
    ptxvm_cuda_settings settings = {.sm = "sm_75", .devices = 3, .fault = "cuDeviceGetCount:2=999"};
    CHECK(ptxvm_cuda_configure(&settings));
    CU(init(0));
    CHECK(!ptxvm_cuda_configure(&settings));
    CU(get_count(&count));
    CHECK_EQ_I64(count, 3);
    CU_IS(get_count(&count), CUDA_ERROR_UNKNOWN);
    CU(get_name(name, sizeof name, 2));
    CHECK_EQ_STR(name, "ptxvm sm_75 (emulated GPU)");
    ptxvm_cuda_shutdown();
    settings.fault = "cuNoSuchFunction:1=1";
    CHECK(!ptxvm_cuda_configure(&settings));
    settings = (ptxvm_cuda_settings){.devices = 1};
    environment_set("PTXVM_LIMIT_TEXT=few");
    CHECK(!ptxvm_cuda_configure(&settings));
    environment_restore();
    settings = (ptxvm_cuda_settings){.devices = 17};
    CHECK(!ptxvm_cuda_configure(&settings));
    settings = (ptxvm_cuda_settings){.sm = "sm_12345"};
    CHECK(ptxvm_cuda_configure(&settings));
    CU_IS(init(0), CUDA_ERROR_NO_DEVICE);
    ptxvm_cuda_shutdown();
    CHECK(ptxvm_cuda_symbol("cuLaunchKernel_ptsz") != NULL);
    CHECK(ptxvm_cuda_symbol("cuMemcpyHtoD_v2_ptds") != NULL);
    CHECK(ptxvm_cuda_symbol("nothing") == NULL);
    CHECK(ptxvm_cuda_symbol(NULL) == NULL);
}

typedef CUresult find_fn(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

TEST_CASE(CudaLinked, AnOlderDriverHasLess)
{
    CUdriverProcAddressQueryResult status;
    void *function;
    FIND(find_fn, find, "cuGetProcAddress_v2");
    ptxvm_cuda_settings settings = {.driver_version = 11040};
    CHECK(ptxvm_cuda_configure(&settings));
    CU(find("cuCtxCreate", &function, 13000, 0, &status));
    CHECK(function == ptxvm_cuda_symbol("cuCtxCreate_v3"));
    CU_IS(find("cuLibraryLoadData", &function, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ_I64(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    ptxvm_cuda_shutdown();
}

TEST_CASE(CudaLinked, TheLogSaysWhyAndWhatToDo)
{
    char folder[256], path[300], settings[800];
    CUmodule m;
    size_t bytes;
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(settings, sizeof settings, "PTXVM_LOG=%s PTXVM_CHECK=memory,leak PTXVM_COUNTERS=%s/counters",
             path, folder);
    REQUIRE(driver_open_context(settings));
    CU_IS(cu.cuModuleLoadData(&m, "\x7f"
                                  "ELF\2"),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    CUdeviceptr wild = 16;
    void *params[] = {&wild};
    m = NULL;
    CUdeviceptr good = new_u32(3, 0);
    void *fine[] = {&good};
    CU(launch_one(test_function(&m, "poke"), NULL, fine));
    CU(launch_one(test_function(&m, "poke"), NULL, params));
    driver_close();
    snprintf(settings, sizeof settings, "%s/counters", folder);
    char *counters = toolkit_read_file(settings, &bytes);
    if (CHECK(counters != NULL)) {
        CHECK_HAS(counters, "{\"kernel\": \"poke\"");
        CHECK_HAS(counters,
                  "\"global_store\": {\"requests\": 1, \"sectors\": 1, \"least_sectors\": 1, \"bytes\": 4}");
    }
    free(counters);
    char *text = toolkit_read_file(path, &bytes);
    if (CHECK(text != NULL)) {
        CHECK_HAS(text, "compile it to PTX");
        CHECK_HAS(text, "(code 209)");
        CHECK_HAS(text, "poke");
        CHECK_HAS(text, "(code 700)");
        CHECK_HAS(text, "leak: 12 bytes at 0x200000");
    }
    free(text);
    temp_dir_remove(folder);
}

/* ---- Arguments that make no sense ---- */

typedef CUresult any_fn(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                        void *);

static void call_with(void *function, void *value)
{
    any_fn *call;
    memcpy(&call, &function, sizeof call);
    call(value, value, value, value, value, value, value, value, value, value, value);
}

/* Every function is called with nulls and zeros, and those that take a handle with a wild one: any result will do. */
TEST_CASE(CudaWild, NullsAndWildHandlesAreErrors)
{
    static char zeros[4096];
    CUcontext context;
    static const char *const handles[] = {"cuCtxDestroy_v2",    "cuCtxPushCurrent_v2", "cuCtxSetCurrent",
                                          "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamQuery",
                                          "cuEventDestroy_v2",  "cuEventQuery",        "cuEventSynchronize",
                                          "cuModuleUnload",     "cuLibraryUnload",     "cuLinkDestroy",
                                          "cuGraphDestroy",     "cuGraphDestroyNode",  "cuGraphExecDestroy",
                                          "cuGraphLaunch",      "cuMemPoolDestroy",    "cuMemFree_v2",
                                          "cuMemFreeHost",      "cuMemHostUnregister", "cuLaunch",
                                          "cuFuncLoad",         "cuUserObjectRelease", "cuGraphNodeGetType",
                                          "cuKernelGetName",    "cuFuncGetName",       "cuStreamGetFlags",
                                          "cuEventRecord"};
    REQUIRE(driver_open_context("PTXVM_LOG=trace:/dev/null")); /* lines about them are written too */
#define CALL(name)                                                                                           \
    CU(cu.cuCtxCreate_v2(&context, 0, 0));                                                                   \
    call_with(driver_symbol(name), NULL);                                                                    \
    CU(cu.cuCtxDestroy_v2(context));
#define F(base, v, since, needs, params, args) CALL(#base #v)
#define S(base, v, pt, since, needs, params, args)                                                           \
    CALL(#base #v)                                                                                           \
    CALL(#base #v "_" #pt)
#define U(base, v, since)      CALL(#base #v)
#define UP(base, v, pt, since) CALL(#base #v "_" #pt)
#include "ptxvm/cuda/functions.def"
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
        CU(cu.cuCtxSetCurrent(driver_context));
        call_with(driver_symbol(handles[i]), zeros);
        call_with(driver_symbol(handles[i]), (void *)(uintptr_t)0x1238);
    }
    CU(cu.cuCtxSetCurrent(driver_context));
    CHECK_EQ_U32(read_u32(new_u32(1, 12)), 12); /* it still works */
    CHECK(driver_symbol("ptxvm_cuInit") == NULL);
    driver_close();
}
