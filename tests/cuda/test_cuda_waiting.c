/* Launches that cannot go on: kernels that wait for what never comes, and launches without memory. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "log_file.h"

/* Line 8 looks at a flag that is in mapped memory of the host, until it is not 0. */
static const char wait_ptx[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry wait_for(.param .u64 flag)\n"
    "{\n"
    "  .reg .u64 %rd; .reg .u32 %r; .reg .pred %p;\n"
    "  ld.param.u64 %rd, [flag];\n"
    "again: ld.volatile.global.u32 %r, [%rd]; setp.eq.u32 %p, %r, 0; @%p bra again;\n"
    "  ret;\n"
    "}\n";

/* Launches it with a flag of that value; what the stream says afterwards. */
static CUresult wait_for(uint32_t value, unsigned blocks)
{
    CUmodule m = NULL;
    CUfunction f = NULL;
    uint32_t *flag = NULL;
    CUdeviceptr address = 0;
    CUstream s;
    void *params[] = {&address};
    CU(cu.cuModuleLoadData(&m, wait_ptx));
    CU(cu.cuModuleGetFunction(&f, m, "wait_for"));
    CU(cu.cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    CU(cu.cuMemHostGetDevicePointer_v2(&address, flag, 0));
    CU(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    *flag = value;
    CU(cu.cuLaunchKernel(f, blocks, 1, 1, 32, 1, 1, 0, s, params, NULL));
    return cu.cuStreamSynchronize(s);
}

TEST_CASE(CudaWaiting, AFlagThatTheHostSetsLaterIsAnError)
{
    for (unsigned blocks = 1; blocks <= 3; blocks += 2) {
        REQUIRE(driver_open_logged("", "PTXVM_WAIT=1"));
        CU_IS(wait_for(0, blocks), CUDA_ERROR_LAUNCH_TIMEOUT);
        char *log = driver_close_logged();
        CHECK_HAS(log, "kernel wait_for, line 8, block (0,0,0)");
        CHECK_HAS(log, "waited for 1 seconds");
        CHECK_HAS(log, "PTXVM_WAIT");
        free(log);
    }
    REQUIRE(driver_open_context("PTXVM_WAIT=1"));
    CU(wait_for(1, 3)); /* a flag that was set before is seen */
    driver_close();
}

/* A cooperative launch needs a workspace in device memory, of which nothing is left. */
TEST_CASE(CudaWaiting, ALaunchWithoutMemoryIsNoEndOfTheContext)
{
    CUmodule m = NULL;
    CUdeviceptr rest;
    size_t left = 0, total;
    REQUIRE(driver_open_context("PTXVM_MEMORY=64M PTXVM_SM=sm_90"));
    CUfunction share = test_function(&m, "share");
    CUdeviceptr out = new_u32(1, 0);
    void *params[] = {&out};
    CU(cu.cuMemGetInfo_v2(&left, &total));
    CU(cu.cuMemAlloc_v2(&rest, left - 512));
    for (CUdeviceptr p; cu.cuMemAlloc_v2(&p, 1) == CUDA_SUCCESS;)
        ;
    CU_IS(cu.cuLaunchCooperativeKernel(share, 2, 1, 1, 32, 1, 1, 16, NULL, params), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuCtxSynchronize()); /* told once */
    CU(cu.cuMemFree_v2(rest));
    CU(cu.cuLaunchCooperativeKernel(share, 2, 1, 1, 32, 1, 1, 16, NULL, params));
    CHECK_EQ_U32(read_u32(out), 19);
    driver_close();
}
