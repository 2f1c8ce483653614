/* The scale kernel: LANES threads reduce a group; a whole block where LANES is 256. With channels a block
 * takes one after another. */
#include "twin.cuh"

/* lo and hi enclose 0; a NaN is left out. */
struct range {
    float lo, hi;
    __device__ void add(float x)
    {
        lo = fminf(lo, x);
        hi = fmaxf(hi, x);
    }
    __device__ void add(const range &r)
    {
        lo = fminf(lo, r.lo);
        hi = fmaxf(hi, r.hi);
    }
    __device__ void reduce(int lanes)
    {
        for (int mask = lanes / 2; mask > 0; mask /= 2) {
            range other = {__shfl_xor_sync(0xFFFFFFFF, lo, mask), __shfl_xor_sync(0xFFFFFFFF, hi, mask)};
            add(other);
        }
    }
};

__device__ inline float scale_of(float lo, float hi)
{
    float floor = __int_as_float(FLOOR_BITS);
#if defined(FORMAT_INT4)
    return fmaxf(fmaxf(-lo, hi), floor) / 7.0f;
#elif defined(FORMAT_INT4_ZP)
    float width = hi - lo;
    return width > LARGEST_FINITE ? hi / 15.0f - lo / 15.0f : fmaxf(width, floor) / 15.0f;
#else
    return fmaxf(-lo, hi);
#endif
}

/* NF4 without a floor may have a scale of 0. */
#if defined(FORMAT_NF4)
#define LEAST_SCALE_BITS (FLOOR_BITS == 0 ? 0 : element<SCALE>::smallest)
#else
#define LEAST_SCALE_BITS element<SCALE>::smallest
#endif

__device__ inline range reduce_block(range r)
{
    __shared__ range warps[BLOCK / 32];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = r;
    __syncthreads();
    r = warps[threadIdx.x % (BLOCK / 32)];
    r.reduce(BLOCK / 32);
    return r;
}

/* Every LANES-th element, or chunk of 16 bytes, of the group. */
__device__ inline range reduce_own(const data_t *x, u64 first, u64 count, u32 lane)
{
    range r = {0.0f, 0.0f};
    if (GROUP_SIZE % chunk == 0 && count == GROUP_SIZE && aligned(x, 16)) {
        const data_chunk *chunks = (const data_chunk *)(x + first);
#pragma unroll 8
        for (u64 i = lane; i < GROUP_SIZE / chunk; i += LANES) {
            data_chunk c = chunks[i];
#pragma unroll
            for (int k = 0; k < chunk; k++)
                r.add(widen<DATA>(c.at[k]));
        }
    } else {
        for (u64 i = lane; i < count; i += LANES)
            r.add(widen<DATA>(x[first + i]));
    }
    return r;
}

/* Every LANES-th element of a channel: GROUP_SIZE of them in each turn of all channels. */
__device__ inline range reduce_channel(const data_t *x, u64 channel, u64 n)
{
    range r = {0.0f, 0.0f};
    for (u64 k = threadIdx.x;; k += LANES) {
        u64 i = k / GROUP_SIZE * (GROUP_SIZE * CHANNELS) + channel * GROUP_SIZE + k % GROUP_SIZE;
        if (i >= n)
            return r;
        r.add(widen<DATA>(x[i]));
    }
}

__device__ inline void store_group(const range &r, scale_t *scale, zero_t *zero, u64 group)
{
    float lo = fmaxf(r.lo, -LARGEST_FINITE), hi = fminf(r.hi, LARGEST_FINITE);
    float rounded = widen<SCALE>(narrow<SCALE>(scale_of(lo, hi)));
    float stored =
        clamp(rounded, __int_as_float(LEAST_SCALE_BITS), __int_as_float(element<SCALE>::largest));
    scale[group] = narrow<SCALE>(stored);
#ifdef FORMAT_INT4_ZP
    zero[group] = narrow<ZERO>(clamp(round_even(-lo / stored), 0.0f, 15.0f));
#endif
}

__device__ inline void scale_channels(const data_t *x, scale_t *scale, zero_t *zero, u64 n)
{
    for (u64 channel = blockIdx.x; channel < CHANNELS && n > 0; channel += gridDim.x) {
        range r = reduce_channel(x, channel, n);
        r.reduce(32);
        r = reduce_block(r);
        if (threadIdx.x == 0)
            store_group(r, scale, zero, channel);
        __syncthreads(); /* before the ranges of the next channel come into the same memory */
    }
}

__device__ inline void scale_groups(const data_t *x, scale_t *scale, zero_t *zero, u64 n)
{
    u32 lane = threadIdx.x % LANES;
    u64 group = (u64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    u64 first = group * GROUP_SIZE;
    u64 left = first < n ? n - first : 0;
    range r = reduce_own(x, first, left < GROUP_SIZE ? left : GROUP_SIZE, lane);
    r.reduce(LANES < 32 ? LANES : 32);
    if (LANES > 32)
        r = reduce_block(r);
    if (lane == 0 && left > 0)
        store_group(r, scale, zero, group);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(const data_t *__restrict__ x, scale_t *__restrict__ scale,
#ifdef FORMAT_INT4_ZP
          zero_t *__restrict__ zero,
#endif
          u64 n)
{
#ifndef FORMAT_INT4_ZP
    zero_t *zero = nullptr;
#endif
    if (CHANNELS)
        scale_channels(x, scale, zero, n);
    else
        scale_groups(x, scale, zero, n);
}
