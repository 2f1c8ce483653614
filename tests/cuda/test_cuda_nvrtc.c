/* CUDA C, compiled by NVRTC where it is found, through the driver API: reductions, histogram, transpose,
 * scan, a matrix product on tensor cores with cp.async, two streams with events, a captured graph replayed
 * with changed parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "driver/cuda/nvrtc.h"

static const char source[] =
    "#include <mma.h>\n"
    "#include <cuda_pipeline.h>\n"
    "using namespace nvcuda;\n"
    "extern \"C\" __global__ void reduce(const int *in, int *out, int n)\n"
    "{\n"
    "    __shared__ int part[32];\n"
    "    int sum = 0;\n"
    "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += "
    "in[i];\n"
    "    for (int k = 16; k; k /= 2) sum += __shfl_down_sync(~0u, sum, k);\n"
    "    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0) {\n"
    "        for (int i = 1; i < blockDim.x / 32; i++) sum += part[i];\n"
    "        atomicAdd(out, sum);\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void histogram(const unsigned char *in, int *bins, int n)\n"
    "{\n"
    "    __shared__ int local[16];\n"
    "    if (threadIdx.x < 16) local[threadIdx.x] = 0;\n"
    "    __syncthreads();\n"
    "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)\n"
    "        atomicAdd(&local[in[i] % 16], 1);\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);\n"
    "}\n"
    "extern \"C\" __global__ void transpose(const float *in, float *out, int n)\n"
    "{\n"
    "    __shared__ float tile[16][17];\n"
    "    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;\n"
    "    tile[threadIdx.y][threadIdx.x] = in[y * n + x];\n"
    "    __syncthreads();\n"
    "    out[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x] = "
    "tile[threadIdx.x][threadIdx.y];\n"
    "}\n"
    "extern \"C\" __global__ void scan(const int *in, int *out)\n"
    "{\n"
    "    extern __shared__ int s[];\n"
    "    int i = threadIdx.x;\n"
    "    s[i] = in[i];\n"
    "    __syncthreads();\n"
    "    for (int k = 1; k < blockDim.x; k *= 2) {\n"
    "        int add = i >= k ? s[i - k] : 0;\n"
    "        __syncthreads();\n"
    "        s[i] += add;\n"
    "        __syncthreads();\n"
    "    }\n"
    "    out[i] = s[i];\n"
    "}\n"
    "extern \"C\" __global__ void product(const half *a, const half *b, float *c)\n"
    "{\n"
    "    __shared__ __align__(32) half sa[256], sb[256];\n"
    "    __pipeline_memcpy_async(sa + 8 * threadIdx.x, a + 8 * threadIdx.x, 16);\n"
    "    __pipeline_memcpy_async(sb + 8 * threadIdx.x, b + 8 * threadIdx.x, 16);\n"
    "    __pipeline_commit();\n"
    "    __pipeline_wait_prior(0);\n"
    "    __syncthreads();\n"
    "    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;\n"
    "    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;\n"
    "    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;\n"
    "    wmma::fill_fragment(fc, 0.0f);\n"
    "    wmma::load_matrix_sync(fa, sa, 16);\n"
    "    wmma::load_matrix_sync(fb, sb, 16);\n"
    "    wmma::mma_sync(fc, fa, fb, fc);\n"
    "    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);\n"
    "}\n"
    "extern \"C\" __global__ void axpy(float *y, const float *x, float a, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] += a * x[i];\n"
    "}\n";

/* One compilation serves all tests of this file. */
static const char *compiled(void)
{
    static nvrtc_result result;
    static bool tried;
    const char *options[] = {"--gpu-architecture=compute_80", "--std=c++17", ("-I" QDNN_CUDA_INCLUDE)};
    if (!tried && nvrtc_found() && sizeof QDNN_CUDA_INCLUDE > 1 &&
        nvrtc_compile(source, NULL, 0, options, 3, &result) != QDNN_STATUS_SUCCESS)
        FAIL("%s", result.log);
    tried = true;
    return result.data;
}

static CUmodule module;

static bool begin(void)
{
    const char *ptx = compiled();
    return ptx && driver_open_context("PTXVM_SM=sm_80 PTXVM_CHECK=all") &&
           CU(cu.cuModuleLoadData(&module, ptx));
}

static CUfunction function(const char *name)
{
    CUfunction f = NULL;
    CU(cu.cuModuleGetFunction(&f, module, name));
    return f;
}

static CUdeviceptr upload(const void *data, size_t bytes)
{
    CUdeviceptr p = 0;
    CU(cu.cuMemAlloc_v2(&p, bytes));
    CU(cu.cuMemcpyHtoD_v2(p, data, bytes));
    return p;
}

#define NEEDS_NVRTC()                                                                                        \
    do {                                                                                                     \
        if (!compiled())                                                                                     \
            SKIP("no NVRTC with its headers was found");                                                     \
        REQUIRE(begin());                                                                                    \
    } while (0)

TEST_CASE(CudaNvrtc, ReductionAndHistogram)
{
    int n = 10000, bins[16], want[16] = {0}, total = 0, got = 0;
    static int numbers[10000];
    static uint8_t bytes[10000];
    NEEDS_NVRTC();
    for (int i = 0; i < n; i++) {
        numbers[i] = (i * 37) % 101 - 50;
        bytes[i] = (uint8_t)(i * i + 3 * i);
        total += numbers[i];
        want[bytes[i] % 16]++;
    }
    CUdeviceptr in = upload(numbers, sizeof numbers), data = upload(bytes, sizeof bytes), out = new_u32(1, 0),
                counts = new_u32(16, 0);
    void *p[] = {&in, &out, &n}, *q[] = {&data, &counts, &n};
    CU(cu.cuLaunchKernel(function("reduce"), 5, 1, 1, 256, 1, 1, 0, NULL, p, NULL));
    CU(cu.cuLaunchKernel(function("histogram"), 3, 1, 1, 128, 1, 1, 0, NULL, q, NULL));
    CU(cu.cuMemcpyDtoH_v2(&got, out, 4));
    CU(cu.cuMemcpyDtoH_v2(bins, counts, sizeof bins));
    CHECK_EQ_I64(got, total);
    CHECK_EQ_MEM(bins, want, sizeof bins);
    driver_close();
}

TEST_CASE(CudaNvrtc, TransposeAndScan)
{
    enum { N = 48 };
    static float a[N * N], b[N * N], want[N * N];
    int n = N, in[256], out[256], sums[256], sum = 0;
    NEEDS_NVRTC();
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)i;
        want[i % N * N + i / N] = (float)i;
    }
    for (int i = 0; i < 256; i++)
        sums[i] = sum += in[i] = i % 7 - 2;
    CUdeviceptr from = upload(a, sizeof a), to = upload(b, sizeof b), x = upload(in, sizeof in),
                y = upload(out, sizeof out);
    void *p[] = {&from, &to, &n}, *q[] = {&x, &y};
    CU(cu.cuLaunchKernel(function("transpose"), 3, 3, 1, 16, 16, 1, 0, NULL, p, NULL));
    CU(cu.cuLaunchKernel(function("scan"), 1, 1, 1, 256, 1, 1, 1024, NULL, q, NULL));
    CU(cu.cuMemcpyDtoH_v2(b, to, sizeof b));
    CU(cu.cuMemcpyDtoH_v2(out, y, sizeof out));
    CHECK_EQ_MEM(b, want, sizeof b);
    CHECK_EQ_MEM(out, sums, sizeof out);
    driver_close();
}

/* Small whole numbers as f16. */
static uint16_t half_of(int value)
{
    static const uint16_t halves[] = {0xc000, 0xbc00, 0x0000, 0x3c00, 0x4000};
    return halves[value + 2];
}

TEST_CASE(CudaNvrtc, ProductOnTensorCores)
{
    uint16_t a[256], b[256];
    float c[256], want[256];
    NEEDS_NVRTC();
    for (int i = 0; i < 256; i++) {
        a[i] = half_of(i * 7 % 5 - 2);
        b[i] = half_of(i * 11 % 5 - 2);
    }
    for (int i = 0; i < 256; i++) {
        want[i] = 0;
        for (int k = 0; k < 16; k++)
            want[i] += (float)((i / 16 * 16 + k) * 7 % 5 - 2) * (float)((i % 16 * 16 + k) * 11 % 5 - 2);
    }
    CUdeviceptr pa = upload(a, sizeof a), pb = upload(b, sizeof b), pc = upload(c, sizeof c);
    void *p[] = {&pa, &pb, &pc};
    CU(cu.cuLaunchKernel(function("product"), 1, 1, 1, 32, 1, 1, 0, NULL, p, NULL));
    CU(cu.cuMemcpyDtoH_v2(c, pc, sizeof c));
    CHECK_EQ_MEM(c, want, sizeof c);
    driver_close();
}

TEST_CASE(CudaNvrtc, TwoStreamsAndAGraph)
{
    enum { N = 100 };
    int n = N;
    float host[N], a = 2;
    CUstream s, t;
    CUevent ready;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[8];
    size_t count = 8;
    NEEDS_NVRTC();
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    CUdeviceptr x = upload(host, sizeof host), y = upload(host, sizeof host);
    void *p[] = {&y, &x, &a, &n};
    CUfunction axpy = function("axpy");
    CU(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CU(cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    CU(cu.cuEventCreate(&ready, 0));
    CU(cu.cuLaunchKernel(axpy, 4, 1, 1, 32, 1, 1, 0, s, p, NULL)); /* y = 3x */
    CU(cu.cuEventRecord(ready, s));
    CU(cu.cuStreamWaitEvent(t, ready, 0));
    CU(cu.cuMemcpyDtoDAsync_v2(x, y, sizeof host, t)); /* x = 3x */
    CU(cu.cuStreamSynchronize(t));
    CU(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cu.cuMemsetD32Async(y, 0, N, s));
    CU(cu.cuLaunchKernel(axpy, 4, 1, 1, 32, 1, 1, 0, s, p, NULL));
    CU(cu.cuMemcpyDtoHAsync_v2(host, y, sizeof host, s));
    CU(cu.cuStreamEndCapture(s, &graph));
    CU(cu.cuGraphGetNodes(graph, nodes, &count));
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int round = 1; round < 4; round++) {
        CUDA_KERNEL_NODE_PARAMS_v2 params;
        CU(cu.cuGraphKernelNodeGetParams_v2(nodes[1], &params));
        a = (float)round;
        params.kernelParams = p;
        CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &params));
        CU(cu.cuGraphLaunch(exec, s));
        CU(cu.cuStreamSynchronize(s));
        CHECK_EQ_F32(host[99], 297.0f * a);
        CHECK_EQ_F32(host[1], 3.0f * a);
    }
    driver_close();
}
