/* The expected results of the kernels in cuda/warp.cu. */
#include "nvrtc.h"

#define EXPECT(name) static void name(uint32_t *out)

static uint32_t sum_of(uint32_t first, uint32_t end)
{
    uint32_t sum = 0;
    for (uint32_t i = first; i < end; i++)
        sum += in_at(i);
    return sum;
}

EXPECT(warp_reduce)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t first = i / 32 * 32, least = ~0u, most = 0;
        for (uint32_t k = first; k < first + 32; k++) {
            least = in_at(k) < least ? in_at(k) : least;
            most = in_at(k) > most ? in_at(k) : most;
        }
        out[i] = sum_of(first, first + 32) ^ least * 3 ^ most * 5;
    }
}

EXPECT(warp_scan)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[i] = sum_of(i / 32 * 32, i + 1);
}

EXPECT(warp_width)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t eight = i / 8 * 8;
        out[i] = in_at(eight + 3) + 2 * in_at(i % 8 < 2 ? i : i - 2) + 3 * in_at(i % 8 > 2 ? i : i + 5) +
                 4 * in_at(i ^ 9);
    }
}

EXPECT(warp_wide_values)
{
    for (uint32_t i = 0; i < IN_WORDS; i++)
        out[i] = in_at(i ^ 7) ^ (i ^ 7) ^ in_at(i % 32 == 31 ? i : i + 1);
}

EXPECT(warp_votes)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t ballot = 0, all = 1, any = 0;
        for (uint32_t k = 0; k < 32; k++) {
            uint32_t x = in_at(i / 32 * 32 + k);
            ballot |= (x & 1) << k;
            all &= x >> 8 != 0;
            any |= (x & 63) == 0;
        }
        out[i] = ballot ^ all << 5 ^ any << 9;
    }
}

EXPECT(warp_divergent_votes)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t second = 0, third = 0, any = 0;
        for (uint32_t k = 0; k < 32; k++) {
            uint32_t x = in_at(i / 32 * 32 + k);
            second |= (x & 1 && x & 2 ? 1u : 0) << k;
            third |= (!(x & 1) && x & 4 ? 1u : 0) << k;
            any |= !(x & 1) && x & 8;
        }
        out[i] = in_at(i) & 1 ? second : third * 3 + any;
    }
}

EXPECT(warp_match)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < 32; k++)
            same |= (uint32_t)(in_at(i / 32 * 32 + k) % 5 == in_at(i) % 5) << k;
        out[i] = 2 * same + (i / 32 % 2 ? (same == ~0u ? same : 0) : ~0u);
    }
}

/* A lane leaves in the round of its number's first lane among the different numbers. */
EXPECT(warp_leaders)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t seen = 0, rounds = 0;
        for (uint32_t k = i / 32 * 32; !(seen >> in_at(i) % 7 & 1); k++) {
            rounds += !(seen >> in_at(k) % 7 & 1);
            seen |= 1u << in_at(k) % 7;
        }
        out[i] = rounds;
    }
}

EXPECT(warp_sort)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t first = i / 32 * 32, rank = 0;
        for (uint32_t k = first; k < first + 32; k++)
            rank += in_at(k) < in_at(i) || (in_at(k) == in_at(i) && k < i);
        out[first + rank] = in_at(i);
    }
}

static uint32_t uneven(uint32_t i, uint32_t *steps)
{
    uint32_t x = in_at(i);
    *steps = 0;
    while (x % 16 != 0) {
        x = x % 3 == 0 ? x / 3 : x * 5 + 1;
        if (++*steps == 50)
            break;
        x ^= x & 64 ? 0 : *steps;
    }
    return x;
}

EXPECT(warp_uneven_loops)
{
    for (uint32_t i = 0; i < IN_WORDS; i++) {
        uint32_t many = 0, steps;
        for (uint32_t k = 0; k < 32; k++) {
            uneven(i / 32 * 32 + k, &steps);
            many += steps > 10;
        }
        out[i] = uneven(i, &steps);
        out[i] += steps + many;
    }
}

EXPECT(warp_redux)
{
    for (uint32_t i = 0; i < IN_WORDS; i += 32) {
        uint32_t add = 0, least = ~0u, most = 0, all = ~0u, any = 0, odd = 0;
        int32_t lowest = INT32_MAX;
        for (uint32_t k = i; k < i + 32; k++) {
            uint32_t x = in_at(k);
            add += x, odd ^= x, any |= x & 0xFF, all &= x | 0xF0;
            least = x < least ? x : least;
            most = x > most ? x : most;
            lowest = (int32_t)x < lowest ? (int32_t)x : lowest;
        }
        for (uint32_t k = i; k < i + 32; k++)
            out[k] = add ^ least ^ most ^ (uint32_t)lowest ^ all ^ any ^ odd;
    }
}

#define WARP(name, least_sm)                                                                                 \
    {                                                                                                        \
        "warp", #name, {IN_WORDS / 128, 128, 0, false}, 0, name, least_sm, 0                                 \
    }
const cuda_case cuda_cases_warp[] = {
    WARP(warp_reduce, 0),       WARP(warp_scan, 0),    WARP(warp_width, 0),
    WARP(warp_wide_values, 0),  WARP(warp_votes, 0),   WARP(warp_divergent_votes, 0),
    WARP(warp_match, 0),        WARP(warp_leaders, 0), WARP(warp_sort, 0),
    WARP(warp_uneven_loops, 0), WARP(warp_redux, 80),  {0}};
