/* Grids: atomics, locks, blocks that wait for each other. Each kernel is given n = 4,096 words. */
#include "common.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

KERNEL grid_atomics(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[global_index()];
    atomicAdd(out + 0, x);
    atomicSub(out + 1, x);
    atomicMin(out + 2, x);
    atomicMax(out + 3, x);
    atomicAnd(out + 4, x | 0xFFFF);
    atomicOr(out + 5, x & 0x00FF00FF);
    atomicXor(out + 6, x);
    atomicInc(out + 7, 1000);
    atomicDec(out + 8, 999);
    atomicMin((int *)out + 9, (int)x);
    atomicMax((int *)out + 10, (int)x);
    atomicAdd((u64 *)(out + 12), (u64)x << 20);
    atomicMax((u64 *)(out + 14), (u64)x * x);
    atomicXor((u64 *)(out + 16), (u64)x * x);
    atomicAdd((float *)out + 18, (float)(x % 64));
    atomicAdd((double *)(out + 20), (double)(x % 1024));
    u32 old = out[22], seen; /* a sum of squares by compare-and-swap */
    do {
        seen = old;
        old = atomicCAS(out + 22, seen, seen + x * x);
    } while (old != seen);
}

/* Each value of the counter is handed out once. */
KERNEL grid_tickets(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 ticket;
    if (threadIdx.x == 0)
        ticket = atomicAdd(out + 4095, 1);
    __syncthreads();
    out[ticket * blockDim.x + threadIdx.x] = ticket + threadIdx.x;
}

/* Aggregated by warps before it goes to memory. */
KERNEL grid_compact(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[global_index()];
    if (x % 3 == 0) {
        u32 active = __activemask(), leader = (u32)__ffs((int)active) - 1, first;
        if (lane() == leader)
            first = atomicAdd(out + 4095, (u32)__popc(active));
        first = __shfl_sync(active, first, (int)leader);
        out[first + __popc(active & ((1u << lane()) - 1))] = x;
    }
}

__device__ u32 lock_word;

/* One lock for all threads: between lanes of a warp, between warps, between blocks. */
KERNEL grid_lock(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[global_index()];
    for (bool done = false; !done;) {
        if (atomicCAS(&lock_word, 0, 1) == 0) {
            __threadfence();
            volatile u32 *guarded = out;
            guarded[0] = guarded[0] + 1;
            guarded[1] = guarded[1] + x;
            __threadfence();
            atomicExch(&lock_word, 0);
            done = true;
        }
    }
}

/* A lane spins until its neighbour has written: threads of one warp are scheduled by themselves. */
KERNEL grid_lane_chain(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index();
    volatile u32 *chain = out;
    if (lane() != 0)
        while (chain[i - 1] == 0)
            ;
    __threadfence();
    chain[i] = lane() ? chain[i - 1] + (in[i] & 7) : 1;
}

/* The block that ends last adds up what all have left. */
KERNEL grid_last_block(u32 *out, const u32 *in, u32 n)
{
    __shared__ bool last;
    __shared__ u32 sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[global_index()]);
    __syncthreads();
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(out + 4095, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        u32 all = 0;
        for (u32 b = 0; b < gridDim.x; b++)
            all += ((volatile u32 *)out)[1 + b];
        out[0] = all;
    }
}

/* A scan in one pass: each block waits for the sum of those before it. */
KERNEL grid_scan(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 v[256], before, ticket;
    u32 *counter = out + 4096, t = threadIdx.x;
    volatile u64 *state = (volatile u64 *)(out + 4098);
    if (t == 0)
        ticket = atomicAdd(counter, 1);
    __syncthreads();
    u32 b = ticket;
    v[t] = in[b * 256 + t];
    __syncthreads();
    for (u32 k = 1; k < 256; k *= 2) {
        u32 x = t >= k ? v[t - k] : 0;
        __syncthreads();
        v[t] += x;
        __syncthreads();
    }
    if (t == 0) {
        u64 s = 1ull << 32;
        if (b > 0)
            while (((s = state[b - 1]) >> 32) == 0)
                ;
        before = b > 0 ? (u32)s : 0;
        state[b] = 1ull << 32 | (u32)(before + v[255]);
    }
    __syncthreads();
    out[b * 256 + t] = before + v[t];
}

/* Stages of a sort of the whole grid, with a barrier of the grid after each. */
KERNEL grid_cooperative(u32 *out, const u32 *in, u32 n)
{
    cg::grid_group grid = cg::this_grid();
    u32 i = (u32)grid.thread_rank();
    out[i] = in[i];
    for (u32 size = 2; size <= 1024; size *= 2)
        for (u32 stride = size / 2; stride; stride /= 2) {
            grid.sync();
            u32 other = i ^ stride;
            if (other > i && (out[i] > out[other]) == ((i & size) == 0)) {
                u32 x = out[i];
                out[i] = out[other];
                out[other] = x;
            }
        }
}

KERNEL grid_tiles(u32 *out, const u32 *in, u32 n)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    u32 i = global_index(), x = in[i] & 0xFFFF;
    u32 sum = cg::reduce(tile, x, cg::plus<u32>()), most = cg::reduce(tile, x, cg::greater<u32>());
    u32 scan = cg::inclusive_scan(tile, x);
    cg::coalesced_group few = cg::labeled_partition(tile, x % 2);
    out[i] = sum * 3 + most * 5 + scan * 7 + few.size() * 11 + tile.meta_group_rank();
    block.sync();
}
