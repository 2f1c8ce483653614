/* A program as a user of CUDA writes it: against cuda.h, linked with -lcuda. It uses every group of
 * functions, and exits with 0 if all is well. Run by test_cuda_program.c on libcuda.so.1 of the build. */
#include <cuda.h>
#include <cudaProfiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(CUresult result, const char *call, int line)
{
    const char *name = "?";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    printf("line %d: %s: %s\n", line, call, name);
    failures++;
}
#define CU(call) check((call), #call, __LINE__)

static void expect(int ok, const char *what, int line)
{
    if (ok)
        return;
    printf("line %d: %s\n", line, what);
    failures++;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

static const char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 total = 5;\n"
    ".visible .entry scale(.param .u64 data, .param .u32 factor)\n"
    "{\n"
    "  .reg .u64 %rd<3>; .reg .u32 %r<4>;\n"
    "  ld.param.u64 %rd0, [data]; ld.param.u32 %r0, [factor];\n"
    "  mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1;\n"
    "  ld.global.u32 %r2, [%rd2]; mul.lo.u32 %r3, %r2, %r0; st.global.u32 [%rd2], %r3;\n"
    "  ret;\n"
    "}\n";

static CUcontext context;
static CUmodule module;
static CUfunction scale;

static void devices(void)
{
    CUdevice device;
    CUuuid uuid;
    int count = 0, value = 0;
    char name[100], bus[20];
    size_t bytes = 0;
    CU(cuInit(0));
    CU(cuDriverGetVersion(&value));
    EXPECT(value >= 11000);
    CU(cuDeviceGetCount(&count));
    EXPECT(count == 2);
    CU(cuDeviceGet(&device, 0));
    CU(cuDeviceGetName(name, sizeof name, device));
    EXPECT(strstr(name, "ptxvm") != NULL);
    CU(cuDeviceGetUuid(&uuid, device));
    CU(cuDeviceGetPCIBusId(bus, sizeof bus, device));
    CU(cuDeviceTotalMem(&bytes, device));
    CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    EXPECT(value == 32);
#if CUDA_VERSION >= 13000
    CU(cuCtxCreate(&context, NULL, 0, device));
#else
    CU(cuCtxCreate(&context, 0, device));
#endif
}

static void modules(void)
{
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUdeviceptr total;
    size_t bytes;
    int value;
    CU(cuModuleLoadDataEx(&module, ptx, 2, options, values));
    CU(cuModuleGetFunction(&scale, module, "scale"));
    CU(cuModuleGetGlobal(&total, &bytes, module, "total"));
    EXPECT(bytes == 4);
    CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, scale));
    CU(cuFuncSetCacheConfig(scale, CU_FUNC_CACHE_PREFER_L1));
    CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, scale, 128, 0));
    EXPECT(value > 0);
    CUlinkState link;
    void *image;
    CUmodule linked;
    CU(cuLinkCreate(0, NULL, NULL, &link));
    CU(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)ptx, sizeof ptx, "program", 0, NULL, NULL));
    CU(cuLinkComplete(link, &image, &bytes));
    CU(cuModuleLoadData(&linked, image));
    CU(cuLinkDestroy(link));
    CU(cuModuleUnload(linked));
}

static CUresult launch(CUdeviceptr data, unsigned factor, CUstream stream)
{
    void *params[] = {&data, &factor};
    return cuLaunchKernel(scale, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static void memory(void)
{
    unsigned host[32], back[32], *pinned;
    CUdeviceptr p, managed, pool_memory;
    size_t pitch;
    for (unsigned i = 0; i < 32; i++)
        host[i] = i;
    CU(cuMemAlloc(&p, sizeof host));
    CU(cuMemcpyHtoD(p, host, sizeof host));
    CU(launch(p, 3, NULL));
    CU(cuMemcpyDtoH(back, p, sizeof back));
    EXPECT(back[31] == 93);
    CU(cuMemsetD32(p, 7, 32));
    CU(cuMemcpyDtoH(back, p, sizeof back));
    EXPECT(back[5] == 7);
    CU(cuMemFree(p));
    CU(cuMemAllocHost((void **)&pinned, 128));
    for (int i = 0; i < 32; i++)
        pinned[i] = 2;
    CU(launch((CUdeviceptr)pinned, 4, NULL));
    CU(cuCtxSynchronize());
    EXPECT(pinned[9] == 8);
    CU(cuMemFreeHost(pinned));
    CU(cuMemAllocManaged(&managed, 128, CU_MEM_ATTACH_GLOBAL));
    CU(cuMemFree(managed));
    CU(cuMemAllocPitch(&p, &pitch, 100, 4, 4));
    CUDA_MEMCPY2D copy = {0};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.srcPitch = 32;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = p;
    copy.dstPitch = pitch;
    copy.WidthInBytes = 32;
    copy.Height = 4;
    CU(cuMemcpy2D(&copy));
    CU(cuMemcpyDtoH(back, p + 3 * pitch, 32));
    EXPECT(back[0] == 24);
    CU(cuMemFree(p));
    CU(cuMemAllocAsync(&pool_memory, 64, NULL));
    CU(cuMemFreeAsync(pool_memory, NULL));
    CUdeviceptr range;
    EXPECT(cuMemAddressReserve(&range, 1 << 21, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
}

static void on_host(void *user)
{
    *(int *)user = 1;
}

static void streams(void)
{
    CUstream a, b;
    CUevent start, end;
    CUdeviceptr p;
    float ms = -1;
    int called = 0;
    unsigned value;
    CU(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreateWithPriority(&b, CU_STREAM_DEFAULT, -1));
    CU(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
    CU(cuMemAlloc(&p, 128));
    CU(cuEventRecord(start, a));
    CU(cuMemsetD32Async(p, 2, 32, a));
    CU(launch(p, 5, a));
    CU(cuEventRecord(end, a));
    CU(cuStreamWaitEvent(b, end, 0));
    CU(launch(p, 6, b));
    CU(cuLaunchHostFunc(b, on_host, &called));
    CU(cuStreamSynchronize(b));
    EXPECT(called);
    CU(cuMemcpyDtoH(&value, p, 4));
    EXPECT(value == 60);
    CU(cuStreamWriteValue32(a, p, 77, 0));
    CU(cuStreamWaitValue32(a, p, 77, CU_STREAM_WAIT_VALUE_EQ));
    CU(cuStreamQuery(a));
    CU(cuEventElapsedTime(&ms, start, end));
    EXPECT(ms >= 0);
    CU(cuMemFree(p));
    CU(cuEventDestroy(start));
    CU(cuEventDestroy(end));
    CU(cuStreamDestroy(a));
    CU(cuStreamDestroy(b));
}

static void graphs(void)
{
    CUstream s;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[4];
    CUdeviceptr p;
    size_t n = 4;
    unsigned value, factor = 10;
    CU(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CU(cuMemAlloc(&p, 128));
    CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cuMemsetD32Async(p, 3, 32, s));
    CU(launch(p, 4, s));
    CU(cuStreamEndCapture(s, &graph));
    CU(cuGraphGetNodes(graph, nodes, &n));
    EXPECT(n == 2);
    CU(cuGraphInstantiate(&exec, graph, 0));
    CU(cuGraphLaunch(exec, s));
    CU(cuStreamSynchronize(s));
    CU(cuMemcpyDtoH(&value, p, 4));
    EXPECT(value == 12);
    CUDA_KERNEL_NODE_PARAMS params;
    void *arguments[] = {&p, &factor};
    CU(cuGraphKernelNodeGetParams(nodes[1], &params));
    params.kernelParams = arguments;
    CU(cuGraphExecKernelNodeSetParams(exec, nodes[1], &params));
    CU(cuGraphLaunch(exec, s));
    CU(cuStreamSynchronize(s));
    CU(cuMemcpyDtoH(&value, p, 4));
    EXPECT(value == 30);
    CU(cuGraphExecDestroy(exec));
    CU(cuGraphDestroy(graph));
    CU(cuStreamDestroy(s));
    CU(cuMemFree(p));
}

static void peers(void)
{
    CUcontext other;
    CUdeviceptr here, there;
    unsigned value;
    CU(cuMemAlloc(&here, 4));
    CU(cuMemsetD32(here, 9, 1));
    CU(cuDevicePrimaryCtxRetain(&other, 1));
    CU(cuCtxPushCurrent(other));
    CU(cuMemAlloc(&there, 4));
    CU(cuMemcpyPeer(there, other, here, context, 4));
    CU(cuMemcpyDtoH(&value, there, 4));
    EXPECT(value == 9);
    CU(cuCtxPopCurrent(NULL));
    CU(cuDevicePrimaryCtxRelease(1));
    CU(cuMemFree(here));
}

static void libraries(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUdeviceptr p;
    unsigned value, factor = 8;
    void *params[] = {&p, &factor};
    CU(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    CU(cuLibraryGetKernel(&kernel, library, "scale"));
    CU(cuMemAlloc(&p, 128));
    CU(cuMemsetD32(p, 2, 32));
    CU(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    CU(cuMemcpyDtoH(&value, p, 4));
    EXPECT(value == 16);
    CU(cuMemFree(p));
    CU(cuLibraryUnload(library));
}

int main(void)
{
    devices();
    modules();
    memory();
    streams();
    graphs();
    peers();
    libraries();
    CU(cuProfilerStart());
    CU(cuProfilerStop());
    CU(cuModuleUnload(module));
    CU(cuCtxDestroy(context));
    printf("%d failures\n", failures);
    return failures != 0;
}
