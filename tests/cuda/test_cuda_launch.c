/* Launches: parameters, attributes, limits, and the errors that stay. */
#include <string.h>

#include "driver.h"

TEST_CASE(CudaLaunch, ParametersBothWays)
{
    CUmodule m = NULL;
    uint32_t host[1000], value = 5, n = 1000;
    REQUIRE(driver_open_context(NULL));
    CUfunction add = test_function(&m, "add");
    CUdeviceptr in = new_u32(1000, 2), out = new_u32(1000, 0);
    void *params[] = {&out, &in, &value, &n};
    CU(cu.cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    CU(cu.cuMemcpyDtoH_v2(host, out, sizeof host));
    for (int i = 0; i < 1000; i++)
        if (!CHECK_EQ_U32(host[i], 7))
            break;
    struct {
        CUdeviceptr out, in;
        uint32_t value, n;
    } block = {in, out, 100, 10};
    size_t bytes = sizeof block;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CU(cu.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    CHECK_EQ_U32(read_u32(in + 36), 107);
    CHECK_EQ_U32(read_u32(in + 40), 2);
    bytes = 20;
    CU_IS(cu.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    /* the interface of CUDA 2 */
    CU(cu.cuFuncSetBlockShape(add, 32, 1, 1));
    CU(cu.cuParamSetSize(add, 24));
    CU(cu.cuParamSetv(add, 0, &out, 8));
    CU(cu.cuParamSetv(add, 8, &in, 8));
    CU(cu.cuParamSeti(add, 16, 1));
    CU(cu.cuParamSeti(add, 20, 1));
    CU(cu.cuLaunchGrid(add, 1, 1));
    CHECK_EQ_U32(read_u32(out), 108);
    driver_close();
}

/* cuLaunchGrid has two dimensions: the third is 1. */
TEST_CASE(CudaLaunch, GridsOfTwoDimensions)
{
    static const char text[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry grid(.param .u64 out) { .reg .u64 %rd; .reg .u32 %r<4>; ld.param.u64 %rd, [out];\n"
        "mov.u32 %r0, %nctaid.x; mov.u32 %r1, %nctaid.y; mov.u32 %r2, %nctaid.z;\n"
        "mad.lo.u32 %r0, %r0, 100, %r2; mad.lo.u32 %r0, %r1, 10, %r0; atom.global.exch.b32 %r3, [%rd], %r0; "
        "ret; }\n";
    CUmodule m;
    CUfunction f;
    REQUIRE(driver_open_context(NULL));
    CUdeviceptr out = new_u32(1, 0);
    CU(cu.cuModuleLoadData(&m, text));
    CU(cu.cuModuleGetFunction(&f, m, "grid"));
    CU(cu.cuFuncSetBlockShape(f, 1, 1, 1));
    CU(cu.cuParamSetSize(f, 8));
    CU(cu.cuParamSetv(f, 0, &out, 8));
    CU(cu.cuLaunchGrid(f, 3, 2));
    CHECK_EQ_U32(read_u32(out), 321);
    driver_close();
}

TEST_CASE(CudaLaunch, LimitsAndAttributes)
{
    CUmodule m = NULL;
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    CUdeviceptr out = new_u32(1, 0);
    void *params[] = {&out};
    CUfunction share = test_function(&m, "share");
    CU(cu.cuLaunchKernel(share, 1, 1, 1, 32, 1, 1, 1000, NULL, params, NULL));
    CHECK_EQ_U32(read_u32(out), 1003);
    CU_IS(cu.cuLaunchKernel(share, 1, 1, 1, 32, 1, 1, 60000, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuFuncSetAttribute(share, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    CU(cu.cuLaunchKernel(share, 1, 1, 1, 32, 1, 1, 60000, NULL, params, NULL));
    CHECK_EQ_U32(read_u32(out), 60003);
    CU_IS(cu.cuLaunchKernel(share, 1, 1, 1, 512, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuLaunchKernel(share, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuLaunchKernel(share, 1, 65536, 1, 32, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuLaunchKernel(share, 1, 1, 1, 1024, 2, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    CU_IS(cu.cuLaunchKernel(share, 1, 1, 1, 1, 1, 1, 0, (CUstream)params, params, NULL),
          CUDA_ERROR_INVALID_HANDLE);
    CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = -1}},
                                       {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}}};
    CUlaunchConfig config = {.gridDimX = 2,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = 8,
                             .attrs = attributes,
                             .numAttrs = 2};
    CU(cu.cuLaunchKernelEx(&config, share, params, NULL));
    CHECK_EQ_U32(read_u32(out), 11);
    config.gridDimX = 1000000;
    CU_IS(cu.cuLaunchKernelEx(&config, share, params, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CU_IS(cu.cuLaunchCooperativeKernel(share, 1000000, 1, 1, 32, 1, 1, 0, NULL, params),
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CU(cu.cuLaunchCooperativeKernel(share, 4, 1, 1, 32, 1, 1, 16, NULL, params));
    CHECK_EQ_U32(read_u32(out), 19);
    config.gridDimX = 2;
    attributes[0] =
        (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value = {.clusterDim = {3, 1, 1}}};
    CU_IS(cu.cuLaunchKernelEx(&config, share, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CU_IS(cu.cuLaunchKernelEx(NULL, share, params, NULL), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

/* Each attribute by its number: those that only affect performance are taken, and so are events, which are recorded. */
TEST_CASE(CudaLaunch, EveryAttribute)
{
    CUmodule m = NULL;
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    CUdeviceptr out = new_u32(1, 0);
    void *params[] = {&out};
    CUfunction share = test_function(&m, "share");
    for (int id = 0; id < 20; id++) {
        CUevent before, event;
        float ms = -1;
        const bool is_event =
            id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
        CUlaunchAttribute attribute = {.id = (CUlaunchAttributeID)id};
        const CUlaunchConfig config = {.gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 32,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .sharedMemBytes = 8,
                                       .attrs = &attribute,
                                       .numAttrs = 1};
        CU(cu.cuEventCreate(&before, 0));
        CU(cu.cuEventCreate(&event, 0));
        CU(cu.cuEventRecord(before, NULL));
        if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            attribute.value.programmaticEvent.event = event;
        else if (id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            attribute.value.launchCompletionEvent.event = event;
        else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            attribute.value.clusterDim.x = attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
        test_push_note("attribute %d", id);
        CU_IS(cu.cuLaunchKernelEx(&config, share, params, NULL),
              id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE    ? CUDA_ERROR_NOT_SUPPORTED
              : id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING ? CUDA_ERROR_INVALID_VALUE
                                                                        : CUDA_SUCCESS);
        CU(cu.cuCtxSynchronize());
        CU_IS(cu.cuEventElapsedTime(&ms, before, event), is_event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
        test_pop_note();
        CU(cu.cuEventDestroy_v2(before));
        CU(cu.cuEventDestroy_v2(event));
    }
    driver_close();
}

static void check_sticks(const char *kernel, CUdeviceptr address, CUresult code)
{
    CUmodule m = NULL;
    CUdeviceptr p;
    CUcontext fresh, old;
    test_push_note("%s at 0x%llx", kernel, address);
    CU(cu.cuCtxCreate_v2(&old, 0, 0));
    void *params[] = {&address};
    CU(launch_one(test_function(&m, kernel), NULL, params)); /* the error comes later, as from a GPU */
    CU_IS(cu.cuCtxSynchronize(), code);
    CU_IS(cu.cuMemAlloc_v2(&p, 4), code);
    CU_IS(cu.cuStreamSynchronize(NULL), code);
    CU(cu.cuCtxCreate_v2(&fresh, 0, 0)); /* other contexts still work */
    CHECK_EQ_U32(read_u32(new_u32(1, 3)), 3);
    CU(cu.cuCtxDestroy_v2(fresh));
    CU_IS(cu.cuCtxSynchronize(), code);
    CU(cu.cuCtxDestroy_v2(old));
    test_pop_note();
}

TEST_CASE(CudaLaunch, ErrorsOfKernelsStay)
{
    REQUIRE(driver_open_context("PTXVM_STEPS=100000"));
    CUdeviceptr good = new_u32(1, 0);
    check_sticks("poke", 16, CUDA_ERROR_ILLEGAL_ADDRESS);
    check_sticks("poke", good + 4, CUDA_ERROR_ILLEGAL_ADDRESS);
    check_sticks("poke", good + 2, CUDA_ERROR_MISALIGNED_ADDRESS);
    check_sticks("die", 0, CUDA_ERROR_LAUNCH_FAILED);
    check_sticks("spin", 0, CUDA_ERROR_LAUNCH_TIMEOUT);
    CHECK_EQ_U32(read_u32(good), 0);
    driver_close();
}

/* What a module may cost is a setting of the environment, here as for the ptxvm command. */
TEST_CASE(CudaLaunch, LimitsAreSettings)
{
    static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n.entry k() { ret; }\n";
    CUmodule m = NULL;
    REQUIRE(driver_open_context("PTXVM_LIMIT_TEXT=10"));
    CU_IS(cu.cuModuleLoadData(&m, text), CUDA_ERROR_INVALID_PTX);
    driver_close();
    REQUIRE(driver_open_context("PTXVM_LIMIT_TEXT=1K"));
    CU(cu.cuModuleLoadData(&m, text));
    driver_close();
}

/* Every block takes a ticket: the order in which they ran. */
static const char ticket_ptx[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry ticket(.param .u64 counter, .param .u64 out)\n"
    "{\n"
    "  .reg .u64 %rd<3>; .reg .u32 %r<2>;\n"
    "  ld.param.u64 %rd0, [counter]; ld.param.u64 %rd1, [out];\n"
    "  atom.global.add.u32 %r0, [%rd0], 1;\n"
    "  mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"
    "  st.global.u32 [%rd2], %r0;\n"
    "  ret;\n"
    "}\n";

enum { TICKETS = 100 };

static void take_tickets(const char *settings, uint32_t *tickets)
{
    CUmodule m;
    CUfunction f;
    REQUIRE(driver_open_context(settings));
    CU(cu.cuModuleLoadData(&m, ticket_ptx));
    CU(cu.cuModuleGetFunction(&f, m, "ticket"));
    CUdeviceptr counter = new_u32(1, 0), out = new_u32(TICKETS, 0);
    void *params[] = {&counter, &out};
    CU(cu.cuLaunchKernel(f, TICKETS, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CU(cu.cuMemcpyDtoH_v2(tickets, out, TICKETS * sizeof *tickets));
    driver_close();
}

TEST_CASE(CudaLaunch, TheSeedShufflesBlocks)
{
    uint32_t plain[TICKETS], first[TICKETS], again[TICKETS], other[TICKETS];
    bool taken[TICKETS] = {false};
    take_tickets(NULL, plain);
    take_tickets("PTXVM_SEED=1", first);
    take_tickets("PTXVM_SEED=1 PTXVM_THREADS=2", again);
    take_tickets("PTXVM_SEED=2", other);
    for (uint32_t i = 0; i < TICKETS; i++) {
        CHECK_EQ_U32(plain[i], i);
        taken[first[i] % TICKETS] = true;
    }
    for (int i = 0; i < TICKETS; i++)
        CHECK(taken[i]);
    CHECK(memcmp(first, plain, sizeof plain) != 0);
    CHECK_EQ_MEM(again, first, sizeof first);
    CHECK(memcmp(other, first, sizeof first) != 0);
    CHECK(memcmp(other, plain, sizeof plain) != 0);
}
