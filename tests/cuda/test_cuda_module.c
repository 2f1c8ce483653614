/* Modules, links, libraries, functions and their attributes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

TEST_CASE(CudaModule, FunctionsAndGlobals)
{
    CUmodule m = NULL, same = NULL;
    CUfunction f, all[8] = {0};
    CUdeviceptr p;
    size_t bytes, offset;
    unsigned count = 0;
    int value = 0;
    const char *name;
    uint32_t word = 0;
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    f = test_function(&m, "add");
    CU(cu.cuModuleGetFunctionCount(&count, m));
    CHECK_EQ_U32(count, 6);
    CU(cu.cuModuleEnumerateFunctions(all, 8, m));
    CHECK(all[0] == f && all[5] && !all[6]);
    CU(cu.cuFuncGetName(&name, f));
    CHECK_EQ_STR(name, "add");
    CU(cu.cuFuncGetModule(&same, f));
    CHECK(same == m);
    CU(cu.cuFuncGetParamInfo(f, 2, &offset, &bytes));
    CHECK_EQ_U64(offset, 16);
    CHECK_EQ_U64(bytes, 4);
    CU_IS(cu.cuFuncGetParamInfo(f, 4, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuModuleGetFunction(&f, m, "none"), CUDA_ERROR_NOT_FOUND);
    CU(cu.cuModuleGetGlobal_v2(&p, &bytes, m, "counter"));
    CHECK_EQ_U64(bytes, 4);
    CHECK_EQ_U32(read_u32(p), 7);
    CU(cu.cuModuleGetGlobal_v2(&p, &bytes, m, "table"));
    CU(cu.cuMemcpyDtoH_v2(&word, p + 8, 4));
    CHECK_EQ_U32(word, 3);
    word = 33;
    CU(cu.cuMemcpyHtoD_v2(p + 8, &word, 4));
    CHECK_EQ_U32(read_u32(p + 8), 33);
    CU_IS(cu.cuModuleGetGlobal_v2(&p, &bytes, m, "none"), CUDA_ERROR_NOT_FOUND);
    f = test_function(&m, "share");
    CU(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    CHECK_EQ_I64(value, 256);
    CU(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    CHECK_EQ_I64(value, 256);
    CU(cu.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 256)); /* 48 KB without an opt-in */
    CHECK_EQ_U64(bytes, 49152 - 256);
    CU_IS(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448),
          CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    CU(cu.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 256));
    CHECK_EQ_U64(bytes, 100000);
    CU(cu.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 4, 256));
    CHECK_EQ_U64(bytes, 233472 / 4 - 1024 - 256);
    CU(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 256, 100000));
    CHECK_EQ_I64(value, 2);
    CU(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 256, 0));
    CHECK_EQ_I64(value, 4);
    int grid, block;
    CU(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, test_function(&m, "add"), NULL, 0, 0));
    CHECK_EQ_I64(block, 1024);
    CHECK_EQ_I64(grid, 264);
    CU(cu.cuModuleUnload(m));
    CU_IS(cu.cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
    CU_IS(cu.cuFuncGetName(&name, f), CUDA_ERROR_INVALID_HANDLE);
    driver_close();
}

static CUresult load(const char *image, char *log, size_t size, uintptr_t *used)
{
    CUmodule m;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)size};
    CUresult result = cu.cuModuleLoadDataEx(&m, image, 2, options, values);
    *used = (uintptr_t)values[1];
    return result;
}

TEST_CASE(CudaModule, ErrorsHaveCodesAndALog)
{
    char log[512];
    uintptr_t used;
    static const char head[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
    char text[256];
    REQUIRE(driver_open_context("PTXVM_SM=sm_80"));
    snprintf(text, sizeof text, "%s.visible .entry k() { nonsense.u32 %%r1; }\n", head);
    CU_IS(load(text, log, sizeof log, &used), CUDA_ERROR_INVALID_PTX);
    CHECK_HAS(log, "nonsense");
    CHECK_EQ_U64(used, strlen(log));
    CU_IS(load(text, log, 8, &used), CUDA_ERROR_INVALID_PTX);
    CHECK_EQ_U64(strlen(log), 7);
    CU_IS(load(".version 99.0\n.target sm_75\n", log, sizeof log, &used), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    CU_IS(load(".version 8.0\n.target sm_90\n.address_size 64\n", log, sizeof log, &used),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    CU_IS(load("\x7f"
               "ELF\2\1\1",
               log, sizeof log, &used),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK_HAS(log, "compile it to PTX");
    static const char no_entries[16] = "\x50\xed\x55\xba\1\0\x10";
    CU_IS(load(no_entries, log, sizeof log, &used), CUDA_ERROR_NO_BINARY_FOR_GPU);
    CU_IS(load("hello", log, sizeof log, &used), CUDA_ERROR_INVALID_IMAGE);
    CU_IS(load("", log, sizeof log, &used), CUDA_ERROR_INVALID_IMAGE);
    CUmodule m;
    CU_IS(cu.cuModuleLoad(&m, "/no/such/file.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
    CU_IS(cu.cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuModuleLoadFatBinary(&m, no_entries), CUDA_ERROR_NO_BINARY_FOR_GPU);
    driver_close();
}

TEST_CASE(CudaModule, LinksLoadAgain)
{
    static const char second[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry other(.param .u64 out) { .reg .u64 %rd; ld.param.u64 %rd, [out]; "
        "st.global.u32 [%rd], 77; ret; }\n";
    CUlinkState link;
    void *image;
    size_t bytes = 0;
    CUmodule m;
    CUfunction f;
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuLinkCreate_v2(0, NULL, NULL, &link));
    CU_IS(cu.cuLinkComplete(link, &image, &bytes), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)test_ptx, strlen(test_ptx), "a", 0,
                           NULL, NULL));
    CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)second, sizeof second, "b", 0, NULL,
                           NULL));
    CU_IS(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)second, 8, "c", 0, NULL, NULL),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    CU(cu.cuLinkComplete(link, &image, &bytes));
    CU(cu.cuModuleLoadData(&m, image));
    CU(cu.cuLinkDestroy(link));
    CU_IS(cu.cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
    CU(cu.cuModuleGetFunction(&f, m, "bump"));
    CU(cu.cuModuleGetFunction(&f, m, "other"));
    CUdeviceptr p = new_u32(1, 0);
    void *params[] = {&p};
    CU(launch_one(f, NULL, params));
    CHECK_EQ_U32(read_u32(p), 77);
    driver_close();
}

TEST_CASE(CudaLibrary, KernelsInEveryContext)
{
    CUlibrary library, same;
    CUkernel kernel, list[8];
    CUfunction f;
    CUcontext second;
    CUdeviceptr counter;
    size_t bytes, offset;
    unsigned n = 0;
    int value;
    const char *name;
    REQUIRE(driver_open("PTXVM_DEVICES=2"));
    CU(cu.cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CU(cu.cuLibraryGetKernelCount(&n, library));
    CHECK_EQ_U32(n, 6);
    CU(cu.cuLibraryEnumerateKernels(list, 8, library));
    CU(cu.cuLibraryGetKernel(&kernel, library, "bump"));
    CHECK(kernel == list[1]);
    CU_IS(cu.cuLibraryGetKernel(&kernel, library, "none"), CUDA_ERROR_NOT_FOUND);
    CU(cu.cuKernelGetName(&name, kernel));
    CHECK_EQ_STR(name, "bump");
    CU(cu.cuKernelGetLibrary(&same, kernel));
    CHECK(same == library);
    for (int device = 0; device < 2; device++) {
        CU(cu.cuCtxCreate_v2(&second, 0, device));
        CUdeviceptr p = new_u32(1, 4);
        uint32_t add = 2;
        void *params[] = {&p, &add};
        CU(cu.cuKernelGetFunction(&f, kernel));
        CU(launch_one(f, NULL, params));
        CU(launch_one((CUfunction)(void *)kernel, NULL, params)); /* a CUkernel is taken as well */
        CHECK_EQ_U32(read_u32(p), 422);
        CU(cu.cuLibraryGetGlobal(&counter, &bytes, library, "counter"));
        CHECK_EQ_U32(read_u32(counter), 7);
        CU(cu.cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device));
        CHECK_EQ_I64(value, 1024);
        CU(cu.cuKernelGetParamInfo(kernel, 1, &offset, NULL));
        CHECK_EQ_U64(offset, 8);
    }
    CU(cu.cuCtxDestroy_v2(second));
    CU(cu.cuLibraryUnload(library));
    CU_IS(cu.cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
    CU_IS(cu.cuKernelGetName(&name, kernel), CUDA_ERROR_INVALID_HANDLE);
    driver_close();
}
