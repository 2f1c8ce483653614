/* The expected results of the kernels in cuda/grid.cu and cuda/async.cu. */
#include "nvrtc.h"

#include <stdlib.h>
#include <string.h>

#define EXPECT(name) static void name(uint32_t *out)

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

EXPECT(grid_atomics)
{
    uint64_t sum, top, odd;
    float real;
    double wide;
    memcpy(&sum, out + 12, 8);
    memcpy(&top, out + 14, 8);
    memcpy(&odd, out + 16, 8);
    memcpy(&real, out + 18, 4);
    memcpy(&wide, out + 20, 8);
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t x = in_at(i);
        uint64_t square = (uint64_t)x * x;
        out[0] += x;
        out[1] -= x;
        out[2] = least(out[2], x);
        out[3] = most(out[3], x);
        out[4] &= x | 0xFFFF;
        out[5] |= x & 0x00FF00FF;
        out[6] ^= x;
        out[7] = out[7] >= 1000 ? 0 : out[7] + 1;
        out[8] = out[8] == 0 || out[8] > 999 ? 999 : out[8] - 1;
        out[9] = (int32_t)x < (int32_t)out[9] ? x : out[9];
        out[10] = (int32_t)x > (int32_t)out[10] ? x : out[10];
        sum += (uint64_t)x << 20;
        top = square > top ? square : top;
        odd ^= square;
        real += (float)(x % 64);
        wide += (double)(x % 1024);
        out[22] += x * x;
    }
    memcpy(out + 12, &sum, 8);
    memcpy(out + 14, &top, 8);
    memcpy(out + 16, &odd, 8);
    memcpy(out + 18, &real, 4);
    memcpy(out + 20, &wide, 8);
}

EXPECT(grid_tickets)
{
    for (uint32_t i = 0; i < 31 * 128; i++)
        out[i] = i / 128 + i % 128;
    out[4095] += 31;
}

EXPECT(grid_compact)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        if (in_at(i) % 3 == 0)
            out[out[4095]++] = in_at(i);
}

EXPECT(grid_lock)
{
    for (uint32_t i = 0; i < 512; i++) {
        out[0]++;
        out[1] += in_at(i);
    }
}

EXPECT(grid_lane_chain)
{
    for (uint32_t i = 0; i < 256; i++)
        out[i] = i % 32 ? out[i - 1] + (in_at(i) & 7) : 1;
}

EXPECT(grid_last_block)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        out[1 + i / 128] += in_at(i);
        out[0] += in_at(i);
    }
}

EXPECT(grid_scan)
{
    for (uint32_t i = 0, sum = 0; i < IN_WORDS; i++) {
        out[i] = sum += in_at(i);
        if (i % 256 == 255) {
            out[4098 + i / 256 * 2] = sum;
            out[4099 + i / 256 * 2] = 1;
        }
    }
    out[4096] = 16;
}

static int by_value(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

EXPECT(grid_cooperative)
{
    for (uint32_t i = 0; i < 1024; i++)
        out[i] = in_at(i);
    qsort(out, 1024, sizeof *out, by_value);
}

EXPECT(grid_tiles)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t sum = 0, top = 0, scan = 0, alike = 0, x = in_at(i) & 0xFFFF;
        for (uint32_t k = i / 8 * 8; k < i / 8 * 8 + 8; k++) {
            uint32_t y = in_at(k) & 0xFFFF;
            sum += y;
            top = most(top, y);
            scan += k <= i ? y : 0;
            alike += y % 2 == x % 2;
        }
        out[i] = sum * 3 + top * 5 + scan * 7 + alike * 11 + i % 128 / 8;
    }
}

const cuda_case cuda_cases_grid[] = {
    {"grid", "grid_atomics", {32, 128, 0, false}, 0x40000000, grid_atomics, 0, 0},
    {"grid", "grid_tickets", {31, 128, 0, false}, 0, grid_tickets, 0, 0},
    {"grid", "grid_compact", {32, 128, 0, false}, 0, grid_compact, 0, 4000},
    {"grid", "grid_lock", {8, 64, 0, false}, 0, grid_lock, 0, 0},
    {"grid", "grid_lane_chain", {2, 128, 0, false}, 0, grid_lane_chain, 0, 0},
    {"grid", "grid_last_block", {32, 128, 0, false}, 0, grid_last_block, 0, 0},
    {"grid", "grid_scan", {16, 256, 0, false}, 0, grid_scan, 0, 0},
    {"grid", "grid_cooperative", {8, 128, 0, true}, 0, grid_cooperative, 0, 0},
    {"grid", "grid_tiles", {32, 128, 0, false}, 0, grid_tiles, 0, 0},
    {0}};

/* ---- async ---- */

EXPECT(async_pipeline)
{
    for (uint32_t i = 0; i < 512; i++)
        for (uint32_t k = 0; k < 8; k++)
            out[i] += in_at(i / 128 * 1024 + k * 128 + (i % 128 * 5 + k) % 128);
}

/* Of every fourth quadruple, the second half is zero. */
EXPECT(async_zero_fill)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t k = 511 - i % 512;
        out[i] = k / 4 % 4 == 3 && k % 4 >= 2 ? 0 : in_at(i / 512 * 512 + k);
    }
}

EXPECT(async_group_copy)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[i] = in_at(i / 512 * 512 + (i * 3 + 1) % 512);
}

EXPECT(async_barrier)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[i] = in_at(i ^ 5);
}

EXPECT(async_phases)
{
    for (uint32_t block = 0; block < 32; block++) {
        uint32_t v[2][128];
        for (uint32_t t = 0; t < 128; t++)
            v[0][t] = in_at(block * 128 + t);
        for (uint32_t k = 0; k < 6; k++)
            for (uint32_t t = 0; t < 128; t++)
                v[(k + 1) % 2][t] = v[k % 2][(t + k + 1) % 128] + v[k % 2][t] * 3;
        memcpy(out + block * 128, v[0], sizeof v[0]);
    }
}

#define ASYNC(name, blocks, expect)                                                                          \
    {                                                                                                        \
        "async", name, {blocks, 128, 0, false}, 0, expect, 0, 0                                              \
    }
const cuda_case cuda_cases_async[] = {ASYNC("async_pipeline", 4, async_pipeline),
                                      ASYNC("async_zero_fill", 8, async_zero_fill),
                                      ASYNC("async_group_copy", 8, async_group_copy),
                                      ASYNC("async_barrier", 8, async_barrier),
                                      ASYNC("async_cuda_pipeline", 4, async_pipeline),
                                      ASYNC("async_phases", 32, async_phases),
                                      {0}};
