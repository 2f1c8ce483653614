/* The expected results of the kernels in cuda/numeric.cu and cuda/matrix.cu. */
#include "nvrtc.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define EXPECT(name)                                                                                         \
    static u32 name##_of(u32 x, u32 y);                                                                      \
    static void name(u32 *out)                                                                               \
    {                                                                                                        \
        for (u32 i = 0; i < IN_WORDS; i++)                                                                   \
            out[i] = name##_of(in_at(i), in_at((i + 1) % IN_WORDS));                                         \
    }                                                                                                        \
    static u32 name##_of(u32 x, u32 y)

static u32 mix(u32 h, u32 x)
{
    h = (h ^ x) * 0x9E3779B1u;
    return h ^ h >> 15;
}

static u32 mix64(u32 h, u64 x)
{
    return mix(mix(h, (u32)x), (u32)(x >> 32));
}

/* ---- integers ---- */

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

static u64 reverse(u64 x, int bits)
{
    u64 result = 0;
    for (int i = 0; i < bits; i++)
        result |= (x >> i & 1) << (bits - 1 - i);
    return result;
}

static u32 permute(u32 x, u32 y, u32 selector)
{
    u64 both = (u64)y << 32 | x;
    u32 result = 0;
    for (int i = 0; i < 4; i++) {
        u32 choice = selector >> 4 * i & 15, byte = (u32)(both >> 8 * (choice & 7)) & 255;
        result |= byte << 8 * i;
    }
    return result;
}

static int32_t low24(u32 x)
{
    return (int32_t)(x << 8) >> 8;
}

EXPECT(integer_intrinsics)
{
    u64 wide = (u64)x << 32 | y, other = (u64)y << 32 | x, pair = (u64)y << 32 | x;
    int64_t sx = (int32_t)x, sy = (int32_t)y;
    u32 h = mix(0, (u32)(u64)(sx * sy >> 32));
    h = mix(h, (u32)((u64)x * y >> 32));
    h = mix64(h, (u64)((u128)wide * other >> 64));
    h = mix64(h, (u64)((s128)(int64_t)wide * (int64_t)other >> 64));
    h = mix(h, (u32)((int64_t)low24(x) * low24(y)));
    h = mix(h, (u32)((u64)(x & 0xFFFFFF) * (y & 0xFFFFFF)));
    h = mix(h, (u32)reverse(x, 32));
    h = mix64(h, reverse(wide, 64));
    h = mix(h, (x ? (u32)__builtin_clz(x) : 32) + 64 * (wide ? (u32)__builtin_clzll(wide) : 64));
    h = mix(h, (u32)__builtin_popcount(x) + 64 * (u32)__builtin_popcountll(wide));
    h = mix(h, (u32)__builtin_ffs((int)x) + 64 * (u32)__builtin_ffsll((long long)wide));
    h = mix(h, permute(x, y, x >> 3 & 0x7777));
    h = mix(h, (u32)(pair << (x & 31) >> 32) + (u32)(pair >> (y & 31)));
    u32 left = (x & 63) < 32 ? x & 63 : 32, right = (y & 63) < 32 ? y & 63 : 32;
    h = mix(h, (u32)((u128)pair << left >> 32) + (u32)(pair >> right));
    h = mix(h, (u32)(sx > sy ? sx - sy : sy - sx) + 5 + (x > y ? x - y : y - x) + 9);
    h = mix(h, (u32)((sx + sy) >> 1) + (u32)((sx + sy + 1) >> 1));
    return mix(h, (u32)(((u64)x + y) >> 1) + (u32)(((u64)x + y + 1) >> 1));
}

/* Each byte, or half, by itself. */
typedef int (*lane_operation)(int a, int b);

static u32 by_lanes(u32 x, u32 y, int bits, bool is_signed, lane_operation operation)
{
    u32 result = 0, mask = (1u << bits) - 1;
    for (int at = 0; at < 32; at += bits) {
        int a = (int)(x >> at & mask), b = (int)(y >> at & mask);
        if (is_signed) {
            a = a >> (bits - 1) ? a - (1 << bits) : a;
            b = b >> (bits - 1) ? b - (1 << bits) : b;
        }
        result |= ((u32)operation(a, b) & mask) << at;
    }
    return result;
}

static int plus(int a, int b)
{
    return a + b;
}
static int minus(int a, int b)
{
    return a - b;
}
static int distance(int a, int b)
{
    return a > b ? a - b : b - a;
}
static int most(int a, int b)
{
    return a > b ? a : b;
}
static int least(int a, int b)
{
    return a < b ? a : b;
}
static int average(int a, int b)
{
    return (a + b + 1) / 2;
}
static int greater(int a, int b)
{
    return a > b ? -1 : 0;
}
static int plus_to_255(int a, int b)
{
    return least(a + b, 255);
}
static int minus_s16(int a, int b)
{
    return most(least(a - b, 32767), -32768);
}

EXPECT(packed_bytes)
{
    u32 h = mix(0, by_lanes(x, y, 8, false, plus)), sum = 0;
    h = mix(h, by_lanes(x, y, 8, false, minus));
    h = mix(h, by_lanes(x, y, 8, false, distance));
    h = mix(h, by_lanes(x, y, 8, false, most));
    h = mix(h, by_lanes(x, y, 8, true, least));
    h = mix(h, by_lanes(x, y, 8, false, average));
    h = mix(h, by_lanes(x, y, 8, false, greater));
    h = mix(h, by_lanes(x, y, 8, false, plus_to_255));
    for (int i = 0; i < 4; i++)
        sum += by_lanes(x, y, 8, false, distance) >> 8 * i & 255;
    h = mix(h, sum);
    h = mix(h, by_lanes(x, y, 16, false, plus));
    h = mix(h, by_lanes(x, y, 16, true, most));
    return mix(h, by_lanes(x, y, 16, true, minus_s16));
}

EXPECT(dot_products)
{
    u32 four_signed = 1000, four = 1000, low = (u32)-7, high = 7;
    for (int i = 0; i < 4; i++) {
        four_signed += (u32)((int8_t)(x >> 8 * i) * (int8_t)(y >> 8 * i));
        four += (x >> 8 * i & 255) * (y >> 8 * i & 255);
    }
    for (int i = 0; i < 2; i++) {
        low += (u32)((int16_t)(x >> 16 * i) * (int8_t)(y >> 8 * i));
        high += (x >> 16 * i & 0xFFFF) * (y >> (16 + 8 * i) & 255);
    }
    return mix(mix(mix(mix(0, four_signed), four), low), high);
}

/* ---- rounding ---- */

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};

static float f32_of(u32 u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static double f64_of(u64 u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

static u32 f32_bits(float x)
{
    u32 u;
    memcpy(&u, &x, 4);
    return x != x ? 0x7FC00000u : u;
}

static u64 f64_bits(double x)
{
    u64 u;
    memcpy(&u, &x, 8);
    return x != x ? 0x7FF8000000000000u : u;
}

/* Operands and results are volatile, so that nothing is computed before the mode is set. */
EXPECT(rounded_f32)
{
    volatile float a = f32_of(x), b = f32_of(y), c = f32_of(x ^ y >> 1), r;
    u32 h = 0;
    for (int mode = 0; mode < 4; mode++) {
        fesetround(modes[mode]);
        h = mix(h, (r = a + b, f32_bits(r)));
        h = mix(h, (r = a - b, f32_bits(r)));
        h = mix(h, (r = a * b, f32_bits(r)));
        h = mix(h, (r = fmaf(a, b, c), f32_bits(r)));
        h = mix(h, (r = a / b, f32_bits(r)));
        h = mix(h, (r = sqrtf(c), f32_bits(r)));
        h = mix(h, (r = 1.0f / a, f32_bits(r)));
    }
    fesetround(FE_TONEAREST);
    return h;
}

EXPECT(rounded_f64)
{
    volatile double a = f64_of((u64)x << 32 | y), b = f64_of((u64)y << 32 | x),
                    c = f64_of((u64)(x ^ y >> 1) << 32 | 1), r;
    u32 h = 0;
    for (int mode = 0; mode < 4; mode++) {
        fesetround(modes[mode]);
        h = mix64(h, (r = a + b, f64_bits(r)));
        h = mix64(h, (r = a * b, f64_bits(r)));
        h = mix64(h, (r = fma(a, b, c), f64_bits(r)));
        h = mix64(h, (r = a / b, f64_bits(r)));
        h = mix64(h, (r = sqrt(c), f64_bits(r)));
        h = mix64(h, (r = 1.0 / a, f64_bits(r)));
    }
    fesetround(FE_TONEAREST);
    return h;
}

/* A whole number into a range that it may lie outside of. */
static int64_t clamp(double x, double low, double end, int64_t lowest, int64_t highest)
{
    return x < low ? lowest : x >= end ? highest : (int64_t)x;
}

static int64_t to_s32(double x)
{
    return clamp(x, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
}

static int64_t to_s64(double x)
{
    return clamp(x, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
}

EXPECT(converted)
{
    volatile u64 wide = (u64)x << 32 | y;
    volatile double a = f32_of(x), d = f64_of(wide), r;
    volatile float f;
    volatile int32_t whole = (int32_t)x;
    u32 h = 0;
    a = a != a ? 0 : a;
    d = d != d ? 0 : d;
    for (int mode = 0; mode < 4; mode++) {
        fesetround(modes[mode]);
        r = nearbyint(a);
        h = mix(mix(h, (u32)to_s32(r)), (u32)clamp(r, 0, 0x1p32, 0, UINT32_MAX));
        h = mix64(h, (u64)to_s64(r));
        r = nearbyint(d);
        h = mix(mix64(h, (u64)to_s64(r)), (u32)to_s32(r));
        h = mix(h, (f = (float)d, f32_bits(f)));
        h = mix(h, (f = (float)whole, f32_bits(f)));
        h = mix(h, (f = (float)wide, f32_bits(f)));
        h = mix64(h, (r = (double)(int64_t)wide, f64_bits(r)));
    }
    fesetround(FE_TONEAREST);
    return h;
}

/* ---- f16 and bf16 ---- */

typedef struct small_format {
    int mantissa, bias;
} small_format;
static const small_format f16 = {10, 15}, bf16 = {7, 127};

/* The bits of a number that is in range, exact so far. */
static u32 narrow(small_format format, double x, int mode)
{
    u32 sign = signbit(x) ? 0x8000 : 0;
    volatile double magnitude = fabs(x), units;
    if (magnitude == 0)
        return sign;
    int top = ilogb(magnitude) > 1 - format.bias ? ilogb(magnitude) : 1 - format.bias;
    fesetround(mode == FE_UPWARD && sign ? FE_DOWNWARD : mode == FE_DOWNWARD && sign ? FE_UPWARD : mode);
    units = nearbyint(ldexp(magnitude, format.mantissa - top));
    fesetround(FE_TONEAREST);
    return sign | (((u32)(top + format.bias - 1) << format.mantissa) + (u32)units);
}

static double widen(small_format format, u32 bits)
{
    u32 magnitude = bits & 0x7FFF;
    int exponent = (int)(magnitude >> format.mantissa);
    double fraction = magnitude & ((1u << format.mantissa) - 1);
    double x = exponent ? ldexp(fraction + (1 << format.mantissa), exponent - format.bias - format.mantissa)
                        : ldexp(fraction, 1 - format.bias - format.mantissa);
    return bits & 0x8000 ? -x : x;
}

static float moderate(u32 x)
{
    return (float)((int)(x >> 20) - 2048) * (1.0f / 16.0f);
}

static u32 take(u32 h, small_format format, double exact)
{
    return mix(h, narrow(format, exact, FE_TONEAREST));
}

EXPECT(half_arithmetic)
{
    double a = widen(f16, narrow(f16, moderate(x), FE_TONEAREST)),
           b = widen(f16, narrow(f16, moderate(y), FE_TONEAREST));
    double c = widen(f16, narrow(f16, moderate(x * 77), FE_TONEAREST));
    double fused = widen(f16, narrow(f16, a * b + c, FE_TONEAREST));
    u32 h = take(0, f16, a + b);
    h = take(take(h, f16, a - b), f16, a * b);
    h = take(take(h, f16, fused), f16, fused < 0 ? 0 : fused > 1 ? 1 : fused);
    h = take(take(h, f16, -a), f16, fabs(b));
    h = take(take(h, f16, a < b ? a : b), f16, a > b ? a : b);
    for (int mode = 1; mode < 4; mode++)
        h = mix(h, narrow(f16, moderate(x) * 1.0009f, modes[mode]));
    h = mix(h, (u32)(a < b) + 2 * (u32)(a == b) + 4 * (u32)(a >= b));
    h = mix(h, (u32)(int)rint(a) + (u32)(int)b);
    return take(take(h, f16, fused), f16, b * c + a);
}

EXPECT(bfloat_arithmetic)
{
    double a = widen(bf16, narrow(bf16, moderate(x), FE_TONEAREST));
    double b = widen(bf16, narrow(bf16, moderate(y), FE_TONEAREST));
    u32 h = take(take(0, bf16, a + b), bf16, a - b);
    h = take(take(take(h, bf16, a * b), bf16, -a), bf16, a > b ? a : b);
    for (int mode = 1; mode < 4; mode++)
        h = mix(h, narrow(bf16, moderate(x) * 1.003f, modes[mode]));
    return mix(h, f32_bits((float)(a + b)));
}

#define NUMERIC(name)                                                                                        \
    {                                                                                                        \
        "numeric", #name, {IN_WORDS / 128, 128, 0, false}, 0, name, 0, 0                                     \
    }
const cuda_case cuda_cases_numeric[] = {
    NUMERIC(integer_intrinsics), NUMERIC(packed_bytes),      NUMERIC(dot_products),
    NUMERIC(rounded_f32),        NUMERIC(rounded_f64),       NUMERIC(converted),
    NUMERIC(half_arithmetic),    NUMERIC(bfloat_arithmetic), {0}};

/* ---- matrices ---- */

/* Twice the product of the matrices whose elements are the top four bits of a word, less `zero`. */
static void product(u32 *out, int zero)
{
    for (u32 i = 0; i < IN_WORDS; i++) {
        int sum = 0;
        for (u32 k = 0; k < 64; k++)
            sum +=
                ((int)(in_at(i / 64 * 64 + k) >> 28) - zero) * ((int)(in_at(k * 64 + i % 64) >> 28) - zero);
        out[i] = (u32)(2 * sum);
    }
}

static void signed_product(u32 *out)
{
    product(out, 8);
}

static void unsigned_product(u32 *out)
{
    product(out, 0);
}

static void bit_product(u32 *out)
{
    for (u32 i = 0; i < IN_WORDS; i++)
        for (u32 k = 0; k < 64; k++)
            out[i] += in_at(i / 64 * 64 + k) >> 31 & in_at(k * 64 + i % 64) >> 31;
}

#define MATRIX(name, expect, least_sm)                                                                       \
    {                                                                                                        \
        "matrix", name, {16, 32, 0, false}, 0, expect, least_sm, 0                                           \
    }
const cuda_case cuda_cases_matrix[] = {MATRIX("wmma_f16", signed_product, 0),
                                       MATRIX("wmma_f16_columns", signed_product, 0),
                                       MATRIX("wmma_s8", signed_product, 0),
                                       MATRIX("wmma_u8", unsigned_product, 0),
                                       MATRIX("wmma_bf16", signed_product, 80),
                                       MATRIX("wmma_tf32", signed_product, 80),
                                       MATRIX("wmma_f64", signed_product, 80),
                                       MATRIX("wmma_f16_sums", bit_product, 0),
                                       {0}};
