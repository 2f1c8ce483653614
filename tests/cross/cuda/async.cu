/* Copies that run by themselves: cp.async if the SM has it, plain loads if not. n = 4,096 words.
 */
#include "common.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

/* Two stages: the next tile is on its way while this one is read. */
KERNEL async_pipeline(u32 *out, const u32 *in, u32 n)
{
    __shared__ alignas(16) u32 stage[2][128];
    u32 t = threadIdx.x, first = blockIdx.x * 1024, sum = 0;
    __pipeline_memcpy_async(&stage[0][t], in + first + t, 4);
    __pipeline_commit();
    for (u32 k = 0; k < 8; k++) {
        if (k + 1 < 8)
            __pipeline_memcpy_async(&stage[(k + 1) % 2][t], in + first + (k + 1) * 128 + t, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += stage[k % 2][(t * 5 + k) % 128];
        __syncthreads();
    }
    out[global_index()] = sum;
}

/* 16 bytes per thread, and zeros where there is nothing to copy. */
KERNEL async_zero_fill(u32 *out, const u32 *in, u32 n)
{
    __shared__ alignas(16) u32 tile[512];
    u32 t = threadIdx.x;
    __pipeline_memcpy_async(&tile[4 * t], in + blockIdx.x * 512 + 4 * t, 16, t % 4 == 3 ? 8 : 0);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (u32 k = t; k < 512; k += blockDim.x)
        out[blockIdx.x * 512 + k] = tile[511 - k];
}

KERNEL async_group_copy(u32 *out, const u32 *in, u32 n)
{
    __shared__ alignas(16) u32 tile[512];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in + blockIdx.x * 512, sizeof tile);
    cg::wait(block);
    for (u32 k = threadIdx.x; k < 512; k += blockDim.x)
        out[blockIdx.x * 512 + k] = tile[(k * 3 + 1) % 512];
}

/* An mbarrier between the copy and its readers; on sm_90 the copy is one cp.async.bulk. */
KERNEL async_barrier(u32 *out, const u32 *in, u32 n)
{
    __shared__ alignas(128) u32 tile[512];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    cg::thread_block block = cg::this_thread_block();
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(block, tile, in + blockIdx.x * 512, cuda::aligned_size_t<16>(sizeof tile), bar);
    bar.arrive_and_wait();
    for (u32 k = threadIdx.x; k < 512; k += blockDim.x)
        out[blockIdx.x * 512 + k] = tile[k ^ 5];
}

KERNEL async_cuda_pipeline(u32 *out, const u32 *in, u32 n)
{
    __shared__ alignas(16) u32 stage[2][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    cg::thread_block block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    u32 first = blockIdx.x * 1024, t = threadIdx.x, sum = 0;
    for (u32 fetch = 0, k = 0; k < 8; k++) {
        for (; fetch < 8 && fetch < k + 2; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[fetch % 2], in + first + fetch * 128, sizeof stage[0], pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += stage[k % 2][(t * 5 + k) % 128];
        pipe.consumer_release();
    }
    out[global_index()] = sum;
}

/* Arrivals counted by phases: each round, every thread sees what all have written in the round before. */
KERNEL async_phases(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 v[2][128];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    u32 t = threadIdx.x;
    if (t == 0)
        init(&bar, blockDim.x);
    v[0][t] = in[global_index()];
    __syncthreads();
    for (u32 k = 0; k < 6; k++) {
        auto token = bar.arrive();
        u32 mine = k + 1;
        bar.wait(cuda::std::move(token));
        v[(k + 1) % 2][t] = v[k % 2][(t + mine) % 128] + v[k % 2][t] * 3;
    }
    bar.arrive_and_wait();
    out[global_index()] = v[0][t];
}
