/* exp, tanh, erf, sigmoid, silu and both forms of gelu: fixed sequences of f32 operations, each rounded once to
 * nearest even, so that the bits are the same everywhere. docs/numerics.md lists the sequences, their constants
 * and their errors.
 *
 * e^x is 2^n e^r with n = rint(x / ln 2). Where a result may be subnormal, the power of two is kept separate until
 * the last operation, so that the result is rounded once. */
#include "host_ref/host_ref.h"

#include <math.h>
#include <string.h>

/* 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits of the sum. */
#define ROUNDER 12582912.0f

/* Like ref_f32_from_bits and ref_f32_to_bits, but inlined: constants cost nothing, which a sweep over all
 * inputs needs. */
static float number(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The coefficient of the highest power comes first. */
static float horner(const uint32_t *coefficients, int count, float x)
{
    float p = number(coefficients[0]);
    for (int i = 1; i < count; i++)
        p = fmaf(p, x, number(coefficients[i]));
    return p;
}

/* x = n ln 2 + r. The rounder may include an offset; t has n + offset in its low bits. */
typedef struct {
    float t, n, r;
} reduced;

/* A single f32 for ln 2 is enough if n is small, or if e^x contributes little to the result. */
static reduced reduce(float x, float rounder)
{
    float t = fmaf(x, number(0x3FB8AA3B), rounder);
    float n = t - rounder;
    return (reduced){.t = t, .n = n, .r = fmaf(n, number(0xBF317218), x)};
}

static reduced reduce_far(float x, float rounder)
{
    reduced v = reduce(x, rounder);
    v.r = fmaf(v.n, number(0x3102E308), v.r);
    return v;
}

/* one * 2^(n + offset), where `one` is about 1: the exponents are added. */
static float scale_by(float one, reduced v)
{
    return number(bits_of(one) + (bits_of(v.t) << 23));
}

/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2 */
static float exp_tail(float r)
{
    static const uint32_t coefficients[] = {0x3AB6CD21, 0x3C091400, 0x3D2AAA57, 0x3E2AAA58, 0x3F000000};
    return horner(coefficients, 5, r);
}

/* e^x * 2^offset, from the reduced x */
static float exp_scaled(reduced v)
{
    return scale_by(fmaf(fmaf(exp_tail(v.r), v.r, 1.0f), v.r, 1.0f), v);
}

/* e^r - 1 */
static float expm1_reduced(float r)
{
    return fmaf(r * r, exp_tail(r), r);
}

/* e^x - 1 for |x| < 30 */
static float expm1_near(float x)
{
    reduced v = reduce(x, ROUNDER);
    float power = scale_by(1.0f, v);
    return fmaf(power, expm1_reduced(v.r), power - 1.0f);
}

float hr_exp(float x)
{
    if (isnan(x))
        return number(REF_NAN_F32);
    float clamped = fminf(fmaxf(x, -104.0f), 89.0f);
    if (x < 0)
        return exp_scaled(reduce_far(clamped, ROUNDER + 64)) * 0x1p-64f;
    return exp_scaled(reduce_far(clamped, ROUNDER - 64)) * 0x1p64f;
}

/* (e^2a - 1) / (e^2a + 1), or a + a^3 P(a^2) where the former loses digits. */
float hr_tanh(float x)
{
    static const uint32_t coefficients[] = {0xBD51D861, 0x3E086CBA, 0xBEAAAA83};
    if (isnan(x))
        return number(REF_NAN_F32);
    float a = fminf(fabsf(x), 10.0f), square = a * a;
    if (a < 0.2578125f)
        return copysignf(fmaf(a * square, horner(coefficients, 3, square), a), x);
    float m = expm1_near(a * 2.0f);
    return copysignf(m / (m + 2.0f), x);
}

/* erf(a) = 1 - e^y with y = ln(erfc(a)) = a (c0 + c1 a + ...). c0 is two floats because it dominates small
 * results. */
float hr_erf(float x)
{
    static const uint32_t coefficients[] = {0x371CB6FA, 0xB8F85BF4, 0x3A26A96E, 0xBADB3C97, 0x392E6D0C,
                                            0x3C9CDF9C, 0xBDD27CA5, 0xBF22F97F, 0x337BD649};
    if (isnan(x))
        return number(REF_NAN_F32);
    float a = fminf(fabsf(x), 4.0f);
    float y = fmaf(a, number(0xBF906EBB), a * horner(coefficients, 9, a));
    return copysignf(expm1_near(y), x);
}

/* 1 / (1 + e^-x), both scaled by 2^-64. The smaller of 1 and 2^n is added first. */
float hr_sigmoid(float x)
{
    const float one = 0x1p-64f;
    if (isnan(x))
        return number(REF_NAN_F32);
    reduced v = reduce_far(fminf(fmaxf(-x, -30.0f), 104.0f), ROUNDER - 64);
    float power = scale_by(1.0f, v);
    float small = fmaf(power, expm1_reduced(v.r), fminf(power, one));
    return one / (small + fmaxf(power, one));
}

/* silu and gelu are max(x, 0) - tail(|x|), with the sign of x. The tail is scaled by 2^64. */
static float ramp_minus_tail(float x, float tail)
{
    return copysignf(fmaf(tail, -0x1p-64f, fmaxf(x, 0.0f)), x);
}

/* a e / (1 + e), where e and the result are scaled by 2^64 */
static float logistic_tail(float a, float e)
{
    return (a * e) / fmaf(e, 0x1p-64f, 1.0f);
}

/* 2^64 e^(x - low) for x <= 0 */
static float exp_two_floats(float x, float low)
{
    reduced v = reduce_far(x, ROUNDER + 64);
    v.r = v.r - low;
    return exp_scaled(v);
}

float hr_silu(float x)
{
    if (isnan(x))
        return number(REF_NAN_F32);
    float a = fminf(fabsf(x), 120.0f);
    return ramp_minus_tail(x, logistic_tail(a, exp_scaled(reduce_far(-a, ROUNDER + 64))));
}

/* gelu's tanh form is x / (1 + e^-z) with z = 2 sqrt(2 / pi) (x + 0.044715 x^3) = x (k0 + k1 x^2). z is two
 * floats: an error in z is a relative error of the result, and z is as large as 106. */
float hr_gelu_tanh(float x)
{
    const float k0 = number(0x3FCC4228), k0_low = number(0x344F50D9);
    const float k1 = number(0x3D922279), k1_low = number(0x3124D8B5);
    if (isnan(x))
        return number(REF_NAN_F32);
    float a = fminf(fabsf(x), 11.0f), square = a * a, square_low = fmaf(a, a, -square);
    float c = fmaf(k1, square, k0);
    float c_low = fmaf(k1, square, k0 - c); /* k0 has 21 bits, so that k0 - c is exact */
    c_low = fmaf(k1, square_low, c_low) + fmaf(k1_low, square, k0_low);
    float z = a * c, z_low = fmaf(a, c_low, fmaf(a, c, -z));
    return ramp_minus_tail(x, logistic_tail(a, exp_two_floats(-z, z_low)));
}

/* gelu's erf form is x Phi(x). The tail is a Phi(-a) = e^(-a^2 / 2) X / (1 + a N(a) + l X) with X = a / 2 +
 * a^2 / 2 D(a). For large a nearly all of the divisor is l X, so that an error in X cancels. */
float hr_gelu_erf(float x)
{
    static const uint32_t d[] = {0x3C268498, 0x3DC07804, 0x3ECEAA75, 0x3F6D0405};
    static const uint32_t n[] = {0x3C50273A, 0x3DF2E1DF, 0x3EF0D9DE};
    if (isnan(x))
        return number(REF_NAN_F32);
    float a = fminf(fabsf(x), 15.0f), half = a * 0.5f;
    float square = half * a, square_low = fmaf(half, a, -square);
    float e = exp_two_floats(-square, square_low);
    float share = fmaf(square, horner(d, 4, a), half);
    float sum = fmaf(share, number(0x40206CA8), a * horner(n, 3, a)) + 1.0f;
    return ramp_minus_tail(x, share / sum * e);
}
