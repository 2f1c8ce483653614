/* The quantize kernel: a block takes a tile of 4,096 elements, by chunks of 16 bytes where it is whole and
 * aligned. */
#include "twin.cuh"

struct arguments {
    const data_t *x;
    const scale_t *scale;
    const zero_t *zero;
    u8 *codes;
};

__device__ inline u32 code_at(const arguments &a, u64 i)
{
    group_values g = load_group(a.scale, a.zero, group_of(i));
    return encode_element(a.x[i], g) << nibble_shift(i);
}

__device__ inline void quantize_chunk(const arguments &a, u64 i)
{
    data_chunk c = *(const data_chunk *)(a.x + i);
    group_values g = load_group(a.scale, a.zero, group_of(i));
    u32 word = 0;
#pragma unroll
    for (int k = 0; k < chunk; k++) {
        if (!one_group && (i + k) % GROUP_SIZE == 0)
            g = load_group(a.scale, a.zero, group_of(i + k));
        word |= encode_element(c.at[k], g) << (k / 2 * 8) << nibble_shift(k);
    }
    *(code_word *)(a.codes + i / 2) = (code_word)word;
}

/* A byte a thread at a time; the last one's second code is 0 where n is odd. */
__device__ inline void quantize_bytes(const arguments &a, u64 first, u64 end)
{
    for (u64 i = first + 2 * threadIdx.x; i < end; i += 2 * BLOCK) {
        u32 byte = code_at(a, i);
        if (i + 1 < end)
            byte |= code_at(a, i + 1);
        a.codes[i / 2] = (u8)byte;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(const data_t *__restrict__ x, const scale_t *__restrict__ scale,
#ifdef FORMAT_INT4_ZP
          const zero_t *__restrict__ zero,
#endif
          u8 *__restrict__ codes, u64 n)
{
#ifndef FORMAT_INT4_ZP
    const zero_t *zero = nullptr;
#endif
    arguments a = {x, scale, zero, codes};
    u64 first = (u64)blockIdx.x * TILE, end = n < first + TILE ? n : first + TILE;
    if (end == first + TILE && aligned(x, 16) && aligned(codes, sizeof(code_word))) {
#pragma unroll
        for (int i = 0; i < TILE / (BLOCK * chunk); i++)
            quantize_chunk(a, first + (u64)(i * BLOCK + threadIdx.x) * chunk);
    } else {
        quantize_bytes(a, first, end);
    }
}
