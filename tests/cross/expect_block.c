/* The expected results of the kernels in cuda/block.cu. */
#include "nvrtc.h"

#include <stdlib.h>

#define EXPECT(name) static void name(uint32_t *out)

EXPECT(block_reduce)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t sum = 0;
        for (uint32_t k = i / 256 * 256; k < i / 256 * 256 + 256; k++)
            sum += in_at(k);
        out[i] = sum + i % 256;
    }
}

static int by_value(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

EXPECT(block_bitonic_sort)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[i] = in_at(i);
    for (uint32_t i = 0; i < IN_WORDS; i += 1024)
        qsort(out + i, 1024, sizeof *out, by_value);
}

EXPECT(block_transpose)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[i] = in_at(i % 64 * 64 + i / 64);
}

EXPECT(block_scan)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[i] = sum += in_at(i);
}

EXPECT(block_histogram)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[in_at(i) >> 24]++;
}

/* Stable, by the low eight bits. */
EXPECT(block_radix_sort)
{
    for (uint32_t first = 0, n = 0; first < IN_WORDS; first += 1024)
        for (uint32_t key = 0; key < 256; key++)
            for (uint32_t i = first; i < first + 1024; i++)
                if ((in_at(i) & 255) == key)
                    out[n++] = in_at(i);
}

EXPECT(block_votes)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t count = 0, all = 1, any = 0;
        for (uint32_t k = i / 128 * 128; k < i / 128 * 128 + 128; k++) {
            count += in_at(k) & 1;
            all &= in_at(k) != 12345;
            any |= (in_at(k) & 255) == 0;
        }
        out[i] = count + (all << 16) + (any << 17);
    }
}

EXPECT(block_named_barriers)
{
    for (uint32_t i = 0; i < IN_WORDS / 8; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 8; k++)
            sum += in_at((i / 64 * 8 + k) * 64 + 63 - i % 64) * (k + 1);
        out[i] = sum;
    }
}

EXPECT(block_dynamic)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t first = i / 128 * 128, t = i % 128;
        out[i] = in_at(first + 127 - t) + (uint16_t)(in_at(first + (t * 7 + 3) % 128) >> 7);
    }
}

EXPECT(block_matrix)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 64; k++)
            sum += (in_at(i / 64 * 64 + k) >> 24) * (in_at(k * 64 + i % 64) >> 16 & 255);
        out[i] = sum;
    }
}

EXPECT(block_early_exit)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t sum = 0;
        for (uint32_t k = i / 128 * 128; k < i / 128 * 128 + 100; k++)
            sum += in_at(k);
        out[i] = i % 128 < 100 ? sum : out[i];
    }
}

#define BLOCK(name, blocks, threads, shared)                                                                 \
    {                                                                                                        \
        "block", #name, {blocks, threads, shared, false}, 0, name, 0, 0                                      \
    }
const cuda_case cuda_cases_block[] = {
    BLOCK(block_reduce, 16, 256, 0),        BLOCK(block_bitonic_sort, 4, 1024, 0),
    BLOCK(block_transpose, 4, 256, 0),      BLOCK(block_scan, 1, 512, 0),
    BLOCK(block_histogram, 5, 96, 0),       BLOCK(block_radix_sort, 4, 1024, 0),
    BLOCK(block_votes, 32, 128, 0),         BLOCK(block_named_barriers, 8, 128, 0),
    BLOCK(block_dynamic, 32, 128, 128 * 6), BLOCK(block_matrix, 16, 256, 0),
    BLOCK(block_early_exit, 32, 128, 0),    {0}};
