// CUDA C for test_ops_cuda.c: compiled by NVRTC where it is found, and run on ptxvm.
// Every kernel takes (out, in, n); what it should leave is in the C file, under the same name.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace cg = cooperative_groups;
typedef unsigned u32;
#define KERNEL extern "C" __global__ void

KERNEL shared_reduction(u32 *out, const u32 *in, int n)
{
    __shared__ u32 s[256];
    u32 t = threadIdx.x, sum = 0;
    for (int i = t; i < n; i += blockDim.x)
        sum += in[i];
    s[t] = sum;
    __syncthreads();
    for (u32 d = blockDim.x / 2; d > 0; d /= 2) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    out[t] = s[0];
}

KERNEL shuffles(u32 *out, const u32 *in, int)
{
    u32 t = threadIdx.x, v = in[t];
    for (int d = 16; d; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    out[t] = v + __popc(__ballot_sync(~0u, t & 1)) + __reduce_max_sync(~0u, t) + __match_any_sync(~0u, t % 3);
}

KERNEL block_scan(u32 *out, const u32 *in, int)
{
    __shared__ u32 sums[32];
    u32 t = threadIdx.x, lane = t % 32, v = in[t] & 255;
    for (int d = 1; d < 32; d *= 2) {
        u32 other = __shfl_up_sync(~0u, v, d);
        if (lane >= d)
            v += other;
    }
    if (lane == 31)
        sums[t / 32] = v;
    __syncthreads();
    for (u32 i = 0; i < t / 32; i++)
        v += sums[i];
    out[t] = v;
}

KERNEL histogram(u32 *out, const u32 *in, int n)
{
    __shared__ u32 h[64];
    if (threadIdx.x < 64)
        h[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&h[in[i] & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64)
        atomicAdd(&out[threadIdx.x], h[threadIdx.x]);
}

KERNEL transpose(u32 *out, const u32 *in, int)
{
    __shared__ u32 tile[16][17];
    u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
    tile[y][x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[x][y];
}

KERNEL atomics(u32 *out, const u32 *, int)
{
    atomicAdd((__half *)out + 3, __float2half(1.f));
    atomicAdd((__half2 *)out + 4, __floats2half2_rn(1.f, 2.f));
    atomicAdd((float *)out + 10, 0.5f);
    atomicAdd((double *)out + 10, 0.25);
    atomicCAS((unsigned short *)out + 50, (unsigned short)0, (unsigned short)7);
    atomicMax((int *)out + 30, (int)threadIdx.x - 5);
    atomicExch(out + 31, 9u);
    atomicInc(out + 32, 5u);
}

KERNEL spin_lock(u32 *out, const u32 *, int)
{
    for (int i = 0; i < 2; i++)
        for (bool done = false; !done;)
            if (atomicCAS(out, 0u, 1u) == 0u) {
                out[1] += threadIdx.x + blockIdx.x;
                __threadfence();
                atomicExch(out, 0u);
                done = true;
            }
}

KERNEL groups(u32 *out, const u32 *in, int)
{
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto eight = cg::tiled_partition<8>(block);
    u32 v = in[block.thread_rank()];
    u32 sum = cg::reduce(warp, v, cg::plus<u32>()), most = cg::reduce(eight, v, cg::greater<u32>());
    block.sync();
    out[block.thread_rank()] = sum + most + cg::coalesced_threads().size();
}

KERNEL grid_sync(u32 *out, const u32 *, int)
{
    auto grid = cg::this_grid();
    u32 id = grid.thread_rank();
    out[id] = id;
    grid.sync();
    u32 other = out[(id + 37) % grid.size()];
    grid.sync();
    out[id] = other + grid.size();
}

KERNEL copy_async(u32 *out, const u32 *in, int)
{
    __shared__ alignas(16) u32 s[512];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, in, sizeof s);
    cg::wait(block);
    out[threadIdx.x] = s[threadIdx.x * 7 % 512];
}

KERNEL half_arithmetic(u32 *out, const u32 *, int)
{
    float t = threadIdx.x;
    __half2 a = __floats2half2_rn(t * 0.5f, t * 0.25f), b = __hfma2(a, a, __float2half2_rn(1.f));
    __nv_bfloat16 c = __float2bfloat16(t);
    out[threadIdx.x] = __float_as_uint(__low2float(b) + __high2float(b) + __bfloat162float(c + c));
}

// 16 x 16 x 16: a[i] = i % 7, b[i] = i % 5, the sums start at 1.
KERNEL matrix_f16(u32 *out, const u32 *, int)
{
    using namespace nvcuda::wmma;
    __shared__ __half a[256], b[256];
    for (int i = threadIdx.x; i < 256; i += 32) {
        a[i] = __float2half(i % 7);
        b[i] = __float2half(i % 5);
    }
    __syncwarp();
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 1.f);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync((float *)out, fc, 16, mem_row_major);
}

KERNEL matrix_s8(u32 *out, const u32 *, int)
{
    using namespace nvcuda::wmma;
    __shared__ signed char a[256], b[256];
    for (int i = threadIdx.x; i < 256; i += 32) {
        a[i] = i % 7 - 3;
        b[i] = i % 5 - 2;
    }
    __syncwarp();
    fragment<matrix_a, 16, 16, 16, signed char, row_major> fa;
    fragment<matrix_b, 16, 16, 16, signed char, col_major> fb;
    fragment<accumulator, 16, 16, 16, int> fc;
    fill_fragment(fc, 0);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync((int *)out, fc, 16, mem_row_major);
}

KERNEL prints(u32 *, const u32 *, int)
{
    u32 t = threadIdx.x;
    const char *kind = t ? "odd" : "even";
    printf("%d.%d: %s %.1f %lld %c\n", blockIdx.x, t, kind, t * 0.5, (long long)t << 40, 'a' + t);
}

KERNEL asserts(u32 *, const u32 *, int)
{
    assert(threadIdx.x != 5);
}

KERNEL heap(u32 *out, const u32 *, int)
{
    u32 *p = (u32 *)malloc(64 * sizeof(u32)), sum = 0;
    for (u32 i = 0; i < 64; i++)
        p[i] = i * threadIdx.x;
    for (u32 i = 0; i < 64; i++)
        sum += p[63 - i];
    free(p);
    out[threadIdx.x] = sum;
}

__device__ __noinline__ u32 fibonacci(u32 n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

KERNEL recursion(u32 *out, const u32 *, int)
{
    out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

struct Base {
    u32 x;
    __device__ Base(u32 x) : x(x) {}
    __device__ virtual u32 f(u32 a) { return a + x; }
};
struct Times : Base {
    __device__ Times(u32 x) : Base(x) {}
    __device__ u32 f(u32 a) override { return a * x; }
};
struct Xor : Base {
    __device__ Xor(u32 x) : Base(x) {}
    __device__ u32 f(u32 a) override { return a ^ x; }
};

KERNEL virtual_functions(u32 *out, const u32 *, int)
{
    u32 t = threadIdx.x;
    Base *b = t % 3 == 0 ? new Base(5) : t % 3 == 1 ? new Times(6) : (Base *)new Xor(7);
    out[t] = b->f(t);
    delete b;
}

struct Big {
    u32 a[20];
};

__device__ __noinline__ Big twist(Big b, u32 k)
{
    for (u32 i = 0; i < 20; i++)
        b.a[i] = b.a[i] * k + b.a[(i + k) % 20];
    return b;
}

KERNEL structs_by_value(u32 *out, const u32 *in, int)
{
    Big b;
    u32 t = threadIdx.x, sum = 0;
    for (u32 i = 0; i < 20; i++)
        b.a[i] = in[(t + i) % 64];
    b = twist(b, t % 5 + 1);
    for (u32 i = 0; i < 20; i++)
        sum = sum * 31 + b.a[i];
    out[t] = sum;
}

typedef u32 (*function)(u32);
__device__ u32 add_one(u32 x)
{
    return x + 1;
}
__device__ u32 triple(u32 x)
{
    return x * 3;
}
__device__ function table[2] = {add_one, triple};
__constant__ u32 constants[4] = {3, 5, 8, 13};

KERNEL function_pointers(u32 *out, const u32 *, int)
{
    out[threadIdx.x] = table[threadIdx.x % 2](threadIdx.x) + constants[threadIdx.x % 4];
}

KERNEL dynamic_shared(u32 *out, const u32 *in, int)
{
    extern __shared__ u32 dynamic[];
    dynamic[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}

KERNEL local_arrays(u32 *out, const u32 *in, int)
{
    u32 a[32], j = threadIdx.x, sum = 0;
    for (u32 i = 0; i < 32; i++)
        a[i] = in[i] + threadIdx.x;
    for (u32 i = 0; i < 10; i++) {
        j = a[j % 32];
        a[(j >> 3) % 32] += i;
        sum ^= j;
    }
    out[threadIdx.x] = sum;
}
