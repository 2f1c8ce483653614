/* The dequantize kernel: a block takes a tile of 4,096 elements, by chunks of 16 bytes where it is whole and
 * aligned. */
#include "twin.cuh"

struct arguments {
    const u8 *codes;
    const scale_t *scale;
    const zero_t *zero;
    data_t *y;
    const float *table;
};

__device__ inline data_t value_of(const arguments &a, const group_values &g, u32 code)
{
    return narrow<DATA>(decode(code, g, a.table) * g.scale);
}

__device__ inline void dequantize_chunk(const arguments &a, u64 i)
{
    u32 word = *(const code_word *)(a.codes + i / 2);
    group_values g = load_group(a.scale, a.zero, group_of(i));
    data_chunk c;
#pragma unroll
    for (int k = 0; k < chunk; k++) {
        if (!one_group && (i + k) % GROUP_SIZE == 0)
            g = load_group(a.scale, a.zero, group_of(i + k));
        c.at[k] = value_of(a, g, word >> (k / 2 * 8) >> nibble_shift(k) & 15);
    }
    *(data_chunk *)(a.y + i) = c;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(const u8 *__restrict__ codes, const scale_t *__restrict__ scale,
#ifdef FORMAT_INT4_ZP
          const zero_t *__restrict__ zero,
#endif
          data_t *__restrict__ y, u64 n)
{
#ifndef FORMAT_INT4_ZP
    const zero_t *zero = nullptr;
#endif
    __shared__ float table[16];
#ifdef FORMAT_NF4
    if (threadIdx.x < 16)
        table[threadIdx.x] = __int_as_float((int)nf4_bits[threadIdx.x]);
    __syncthreads();
#endif
    arguments a = {codes, scale, zero, y, table};
    u64 first = (u64)blockIdx.x * TILE, end = n < first + TILE ? n : first + TILE;
    if (end == first + TILE && aligned(y, 16) && aligned(codes, sizeof(code_word))) {
#pragma unroll
        for (int i = 0; i < TILE / (BLOCK * chunk); i++)
            dequantize_chunk(a, first + (u64)(i * BLOCK + threadIdx.x) * chunk);
    } else {
        for (u64 i = first + threadIdx.x; i < end; i += BLOCK) {
            group_values g = load_group(scale, zero, group_of(i));
            y[i] = value_of(a, g, codes[i / 2] >> nibble_shift(i) & 15);
        }
    }
}
