/* Contexts, primary contexts, the stack, limits; several devices and their peers. */
#include <stdlib.h>

#include "driver.h"

TEST_CASE(CudaContext, TheStackOfAThread)
{
    CUcontext a, b, now;
    CUdevice device = -1;
    size_t limit = 0;
    REQUIRE(driver_open("PTXVM_DEVICES=2"));
    CU(cu.cuCtxGetCurrent(&now));
    CHECK(now == NULL);
    CU_IS(cu.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    CU_IS(cu.cuCtxPopCurrent_v2(&now), CUDA_ERROR_INVALID_CONTEXT);
    CU(cu.cuCtxCreate_v2(&a, 0, 0));
    CU(cu.cuCtxCreate_v4(&b, NULL, CU_CTX_SCHED_SPIN, 1));
    CU(cu.cuCtxGetDevice(&device));
    CHECK_EQ_I64(device, 1);
    CU(cu.cuCtxPopCurrent_v2(&now));
    CHECK(now == b);
    CU(cu.cuCtxGetCurrent(&now));
    CHECK(now == a);
    CU(cu.cuCtxSetCurrent(b));
    CU(cu.cuCtxGetCurrent(&now));
    CHECK(now == b);
    CU(cu.cuCtxPopCurrent_v2(NULL));
    CU_IS(cu.cuCtxPopCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    CU(cu.cuCtxPushCurrent_v2(a));
    CU(cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096));
    CU(cu.cuCtxGetLimit(&limit, CU_LIMIT_PRINTF_FIFO_SIZE));
    CHECK_EQ_U64(limit, 4096);
    CU_IS(cu.cuCtxGetLimit(&limit, CU_LIMIT_SHMEM_SIZE), CUDA_ERROR_UNSUPPORTED_LIMIT);
    CU_IS(cu.cuCtxPushCurrent_v2((CUcontext)&limit), CUDA_ERROR_INVALID_CONTEXT);
    CU_IS(cu.cuCtxCreate_v2(&a, 0, 7), CUDA_ERROR_INVALID_DEVICE);
    CU(cu.cuCtxPushCurrent_v2(b));
    CU(cu.cuCtxPushCurrent_v2(a));
    CU(cu.cuCtxDestroy_v2(b)); /* in the stack below */
    CU(cu.cuCtxPopCurrent_v2(NULL));
    CU_IS(cu.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CU_IS(cu.cuCtxDestroy_v2(b), CUDA_ERROR_INVALID_CONTEXT);
    driver_close();
}

TEST_CASE(CudaContext, ThePrimaryOne)
{
    CUcontext a, b;
    unsigned flags;
    int active;
    CUdeviceptr p;
    REQUIRE(driver_open(NULL));
    CU(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK_EQ_I64(active, 0);
    CU(cu.cuDevicePrimaryCtxRetain(&a, 0));
    CU(cu.cuDevicePrimaryCtxRetain(&b, 0));
    CHECK(a == b);
    CU(cu.cuCtxSetCurrent(a));
    CU(cu.cuMemAlloc_v2(&p, 4));
    CU_IS(cu.cuCtxDestroy_v2(a), CUDA_ERROR_INVALID_CONTEXT);
    CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    CU(cu.cuMemFree_v2(p));
    CU(cu.cuDevicePrimaryCtxRelease_v2(0));
    CU_IS(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    CU_IS(cu.cuMemAlloc_v2(&p, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CU(cu.cuDevicePrimaryCtxRetain(&a, 0));
    CU(cu.cuDevicePrimaryCtxReset_v2(0));
    CU(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK_EQ_I64(active, 0);
    driver_close();
}

TEST_CASE(CudaContext, ItsEndFreesItsMemory)
{
    CUdeviceptr p;
    size_t before, after, total;
    CUcontext second;
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuMemGetInfo_v2(&before, &total));
    CU(cu.cuCtxCreate_v2(&second, 0, 0));
    CU(cu.cuMemAlloc_v2(&p, 5000));
    CUmodule m = NULL;
    test_function(&m, "add");
    CU(cu.cuCtxDestroy_v2(second));
    CU(cu.cuMemGetInfo_v2(&after, &total));
    CHECK_EQ_U64(after, before);
    driver_close();
}

TEST_CASE(CudaPeers, OneDeviceReachesTheOther)
{
    CUcontext a, b;
    CUdeviceptr there, later;
    CUmodule m = NULL;
    int can = 0;
    uint32_t value = 5;
    REQUIRE(driver_open("PTXVM_DEVICES=2"));
    CU(cu.cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK_EQ_I64(can, 1);
    CU(cu.cuCtxCreate_v2(&b, 0, 1));
    there = new_u32(4, 3);
    CHECK_EQ_U64(there, UINT64_C(0x200000000) + (UINT64_C(1) << 40));
    CU(cu.cuCtxCreate_v2(&a, 0, 0));
    CUdeviceptr here = new_u32(4, 0);
    CU(cu.cuMemcpyPeer(here, a, there, b, 16));
    CHECK_EQ_U32(read_u32(here + 12), 3);
    CU(cu.cuCtxEnablePeerAccess(b, 0));
    CU_IS(cu.cuCtxEnablePeerAccess(b, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CU_IS(cu.cuCtxEnablePeerAccess(a, 0), CUDA_ERROR_INVALID_CONTEXT);
    CU(cu.cuCtxPushCurrent_v2(b));
    later = new_u32(4, 4);
    CU(cu.cuCtxPopCurrent_v2(NULL));
    CUfunction bump = test_function(&m, "bump");
    void *params[] = {&there, &value}, *again[] = {&later, &value};
    CU(launch_one(bump, NULL, params));
    CU(launch_one(bump, NULL, again));
    CU(cu.cuCtxSynchronize());
    CHECK_EQ_U32(read_u32(there), 35);
    CHECK_EQ_U32(read_u32(later), 45);
    CU(cu.cuCtxDisablePeerAccess(b));
    CU_IS(cu.cuCtxDisablePeerAccess(b), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CU(launch_one(bump, NULL, params));
    CU_IS(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    driver_close();
}
