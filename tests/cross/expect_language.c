/* The expected results of the common kernels in cuda/language.cu. */
#include "nvrtc.h"

#include <stdlib.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;

/* The result of thread i, whose word is x. */
#define EXPECT(name)                                                                                         \
    static u32 name##_of(u32 i, u32 x);                                                                      \
    static void name(u32 *out)                                                                               \
    {                                                                                                        \
        for (u32 i = 0; i < IN_WORDS; i++)                                                                   \
            out[i] = name##_of(i, in_at(i));                                                                 \
    }                                                                                                        \
    static u32 name##_of(__attribute__((unused)) u32 i, __attribute__((unused)) u32 x)

static u32 word(u32 i)
{
    return in_at(i % IN_WORDS);
}

static u32 square(u32 a)
{
    return a * a * 16 + 1;
}

static u32 box(u32 a, u32 b, u32 c)
{
    return 2 * (a * b + b * c + a * c) * 16 + 2 + c % 2;
}

EXPECT(virtual_functions)
{
    return x & 256 ? square(x & 255) : box(x & 255, 3, (x & 255) + 1);
}

EXPECT(heap_objects)
{
    u32 sum = 0;
    for (u32 k = 0; k < 4; k++) {
        u32 a = word(i + k) & 127;
        sum = sum * 31 + (a & 1 ? square(a) : box(a, k, 5));
    }
    return sum;
}

EXPECT(function_tables)
{
    for (u32 k = 0; k < 5; k++) {
        u32 which = (x >> 3) % 3;
        x = which == 0 ? x + 3 : which == 1 ? x * 3 : ~x;
    }
    return x * 3;
}

EXPECT(lambdas)
{
    u32 times = x % 20;
    for (u32 k = 0; k < times; k++)
        x = x * 5 + (word(i + 1) >> k % 8);
    return x;
}

static int by_value(const void *x, const void *y)
{
    u32 a = *(const u32 *)x, b = *(const u32 *)y;
    return (a > b) - (a < b);
}

EXPECT(recursion)
{
    u32 v[16], h = 0;
    for (u32 k = 0; k < 16; k++)
        v[k] = word(i + 7 * k);
    qsort(v, 16, sizeof *v, by_value);
    for (u32 k = 0; k < 16; k++)
        h = h * 31 + v[k];
    return h;
}

EXPECT(switches)
{
    u32 y = x >> 8;
    const u32 results[10] = {y + 7, y * 3, y ^ 0x5555, ~y - 9, y - 9, y << 3, y / 5, y % 1000, y * y, 1};
    return results[x % 10];
}

EXPECT(globals)
{
    static const u32 numbers[6] = {10, 20, 30, 40}, constants[8] = {1, 1, 2, 3, 5, 8, 13, 21};
    static const u32 lists[2][3] = {{1, 2, 3}, {4, 5, 0}};
    static const char *const names[3] = {"alpha", "beta", "gamma"};
    u32 sum = numbers[x % 6] + numbers[3] + (x % 2 ? 9 - 2 : 7 + 20) + lists[x % 2][x / 2 % 3];
    sum += (x % 2 ? 1000 : numbers[1]) + constants[x >> 5 & 7];
    for (const char *s = names[x % 3]; *s; s++)
        sum = sum * 7 + (u32)*s;
    return sum;
}

EXPECT(local_arrays)
{
    u32 v[40], at = i, h = 0;
    for (u32 k = 0; k < 40; k++)
        v[k] = word(i + k);
    for (u32 k = 0; k < 60; k++) {
        at = v[at % 40];
        v[(at >> 9) % 40] ^= k;
        h = h * 3 + at;
    }
    return h;
}

EXPECT(reinterpreted)
{
    uint8_t bytes[32];
    u64 wide;
    uint16_t half;
    u32 h = 0;
    for (u32 k = 0; k < 32; k++)
        bytes[k] = (uint8_t)(x >> k % 4 * 8) ^ (uint8_t)k;
    memcpy(&wide, bytes + 8 * (x % 4), 8);
    memcpy(&half, bytes + 2 * (x / 4 % 16), 2);
    memcpy(bytes + 3, &wide, 8);
    memset(bytes + 20, half & 255, 5);
    for (u32 k = 0; k < 32; k++)
        h = h * 31 + bytes[k];
    return h ^ half;
}

EXPECT(inline_ptx)
{
    u32 y = word(i + 1), low = x + y, high = x + 5 + (low < x), field = (u32)((int32_t)(x << 18) >> 23);
    u32 chosen = x > y ? x * 3 + 1 : 17, ranked = (u32)__builtin_popcount(x & ((1u << i % 32) - 1));
    u64 product = (u64)x * y + field;
    return low ^ high * 3 ^ (x ^ y ^ field) * 5 ^ chosen * 7 ^ ranked * 11 ^ (u32)(product >> 32);
}

#define LANGUAGE(name)                                                                                       \
    {                                                                                                        \
        "language", #name, {IN_WORDS / 64, 64, 0, false}, 0, name, 0, 0                                      \
    }
const cuda_case cuda_cases_language[] = {LANGUAGE(virtual_functions),
                                         LANGUAGE(heap_objects),
                                         LANGUAGE(function_tables),
                                         LANGUAGE(lambdas),
                                         LANGUAGE(recursion),
                                         LANGUAGE(switches),
                                         LANGUAGE(globals),
                                         LANGUAGE(local_arrays),
                                         LANGUAGE(reinterpreted),
                                         LANGUAGE(inline_ptx),
                                         {0}};
