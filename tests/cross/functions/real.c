/* f32 and f64: arithmetic, comparisons, conversions, small numerical methods. */
#include "functions.h"

#define ARITHMETIC(T, BITS, OF)                                                                              \
    u64 arithmetic_##T(u64 a, u64 b)                                                                         \
    {                                                                                                        \
        T x = OF(a), y = OF(b);                                                                              \
        u64 h = mix(mix(BITS(x + y), BITS(x - y)), BITS(x * y));                                             \
        return mix(mix(h, BITS(-x)), BITS(x * y + x));                                                       \
    }                                                                                                        \
    u64 divide_##T(u64 a, u64 b)                                                                             \
    {                                                                                                        \
        T x = OF(a), y = OF(b);                                                                              \
        return mix(mix(BITS(x / y), BITS(1 / x)), BITS(y / 3));                                              \
    }                                                                                                        \
    u64 compare_##T(u64 a, u64 b)                                                                            \
    {                                                                                                        \
        T x = OF(a), y = OF(b);                                                                              \
        u64 flags = (u64)(x < y) | (u64)(x <= y) << 1 | (u64)(x > y) << 2 | (u64)(x >= y) << 3;              \
        flags |= (u64)(x == y) << 4 | (u64)(x != y) << 5 | (u64)!x << 6 | (u64)(x && y) << 7;                \
        flags |= (u64) !(x < y) << 8 | (u64) !(x >= y) << 9 | (u64)__builtin_isunordered(x, y) << 10;        \
        T least = x < y ? x : y, most = x > y ? x : y;                                                       \
        return mix(mix(flags, BITS(least)), BITS(most));                                                     \
    }

/* Inputs are any bits, so that subnormal numbers, infinities and NaN occur too. */
static float f32_input(u64 x)
{
    return f32_of((u32)x);
}

ARITHMETIC(float, f32_bits, f32_input)
ARITHMETIC(double, f64_bits, f64_of)

u64 convert_float(u64 a, u64 b)
{
    float x = f32_of((u32)a);
    double y = f64_of(b);
    return mix(f64_bits(x), f32_bits((float)y));
}

/* Into integers, within their range: NaN and numbers that are too large count as 0. */
u64 truncate_float(u64 a, u64 b)
{
    float x = f32_of((u32)a);
    double y = f64_of(b);
    u64 h = x > -2147483648.0f && x < 2147483648.0f ? (u64)(s32)x : 1;
    h = mix(h, x > -1.0f && x < 18446744073709551616.0f ? (u64)x : 2);
    h = mix(h, y > -9223372036854775808.0 && y < 9223372036854775808.0 ? (u64)(s64)y : 3);
    h = mix(h, y > -1.0 && y < 4294967296.0 ? (u64)(u32)y : 4);
    return mix(h, x > -129.0f && x < 128.0f ? (u64)(s8)x : 5);
}

u64 magnitude(u64 a, u64 b)
{
    float x = f32_of((u32)a);
    double y = f64_of(b);
    u64 h = mix(f32_bits(__builtin_fabsf(x)), f64_bits(__builtin_fabs(y)));
    return mix(h, f32_bits(__builtin_copysignf(x, f32_of((u32)b))));
}

u64 root_float(u64 a, u64 b)
{
    return mix(f32_bits(__builtin_sqrtf(f32_of((u32)a & 0x7FFFFFFF))),
               f64_bits(__builtin_sqrt(f64_of(b & ~(1ull << 63)))));
}

u64 fused(u64 a, u64 b)
{
    float x = f32_of((u32)a), y = f32_of((u32)b), z = f32_of((u32)(a >> 32));
    double p = f64_of(a), q = f64_of(b), r = f64_of(a ^ b);
    return mix(f32_bits(__builtin_fmaf(x, y, z)), f64_bits(__builtin_fma(p, q, r)));
}

u64 round_float(u64 a, u64 b)
{
    float x = f32_of((u32)a);
    double y = f64_of(b);
    u64 h = mix(f32_bits(__builtin_floorf(x)), f32_bits(__builtin_ceilf(x)));
    h = mix(mix(h, f32_bits(__builtin_truncf(x))), f32_bits(__builtin_rintf(x)));
    h = mix(mix(h, f64_bits(__builtin_floor(y))), f64_bits(__builtin_ceil(y)));
    return mix(mix(h, f64_bits(__builtin_trunc(y))), f64_bits(__builtin_rint(y)));
}

/* A number in [-1, 1) from an integer, and how it is used below. */
static float unit(u32 x)
{
    return (float)(s32)x / 2147483648.0f;
}

static const float coefficients[] = {1.0f, -0.5f, 0.041666668f, -0.0013888889f, 2.4801588e-5f};

u64 polynomial(u64 a, u64 b)
{
    float x = unit((u32)a), sum = 0;
    for (int i = 4; i >= 0; i--)
        sum = sum * x + coefficients[i];
    return mix(f32_bits(sum), f32_bits(sum * unit((u32)b)));
}

u64 newton(u64 a, u64 b)
{
    double x = (double)(a >> 12) + 1.0, y = x;
    for (int i = 0; i < 30; i++)
        y = 0.5 * (y + x / y);
    return mix(f64_bits(y), f64_bits(y / ((double)(b >> 20) + 0.5)));
}

u64 kahan_sum(u64 a, u64 b)
{
    float sum = 0, lost = 0;
    for (u32 i = 0; i < 50; i++) {
        float y = unit((u32)a * (2 * i + 1) + (u32)b) - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    return mix(f32_bits(sum), f32_bits(lost));
}

u64 harmonic(u64 a, u64 b)
{
    double sum = 0;
    for (u32 i = 1; i <= (u32)(a % 100); i++)
        sum += 1.0 / (i + (double)(b % 7));
    return f64_bits(sum);
}

/* The matrix product of two 4x4 matrices, in f32 and in f64. */
u64 matrix_product(u64 a, u64 b)
{
    float x[4][4], y[4][4];
    double p[4][4];
    for (u32 i = 0; i < 16; i++) {
        x[i / 4][i % 4] = unit((u32)a * (i + 1));
        y[i / 4][i % 4] = unit((u32)b * (i + 3));
    }
    u64 h = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            float sum = 0;
            p[i][j] = 0;
            for (int k = 0; k < 4; k++) {
                sum += x[i][k] * y[k][j];
                p[i][j] += (double)x[i][k] * y[j][k];
            }
            h = mix(mix(h, f32_bits(sum)), f64_bits(p[i][j]));
        }
    return h;
}

u64 mandelbrot(u64 a, u64 b)
{
    double cr = unit((u32)a) * 2.0 - 0.5, ci = unit((u32)b) * 1.5, zr = 0, zi = 0;
    u64 n = 0;
    for (; n < 200 && zr * zr + zi * zi < 4.0; n++) {
        double next = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = next;
    }
    return mix(n, f64_bits(zr));
}

u64 determinant(u64 a, u64 b)
{
    double m[3][3], result = 1;
    for (u32 i = 0; i < 9; i++)
        m[i / 3][i % 3] = (double)unit((u32)a * (i + 1) ^ (u32)b) + (i % 4 == 0 ? 2.0 : 0.0);
    for (int k = 0; k < 3; k++) {
        result *= m[k][k];
        for (int i = k + 1; i < 3; i++)
            for (int j = 2; j >= k; j--)
                m[i][j] -= m[k][j] * m[i][k] / m[k][k];
    }
    return f64_bits(result);
}
