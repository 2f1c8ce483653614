/* The elementary functions without branches: all cases are computed, and the right result is selected. Names
 * follow docs/numerics.md. */
#include "kernels/functions.h"

/* 1.5 * 2^23: adding it to a number rounds the number to an integer, which is then in the low bits of the
 * sum. */
#define ROUNDER 12582912.0f

static ptx_val number(ptx_builder *b, uint32_t bits)
{
    return ptx_bits(b, PTX_F32, bits);
}

/* The coefficient of the highest power comes first. */
static ptx_val horner(ptx_builder *b, const uint32_t *coefficients, int count, ptx_val x)
{
    ptx_val p = number(b, coefficients[0]);
    for (int i = 1; i < count; i++)
        p = ptx_fma(b, p, x, number(b, coefficients[i]));
    return p;
}

static ptx_val unless_nan(ptx_builder *b, ptx_val x, ptx_val result)
{
    return ptx_selp(b, number(b, 0x7FFFFFFF), result, ptx_setp(b, PTX_NAN, x, x));
}

static ptx_val magnitude(ptx_builder *b, ptx_val x, float largest)
{
    return ptx_min(b, ptx_abs(b, x), ptx_f32(b, largest));
}

/* x = n ln 2 + r. The rounder may include an offset; t has n + offset in its low bits. */
typedef struct reduced {
    ptx_val t, n, r;
} reduced;

static reduced reduce(ptx_builder *b, ptx_val x, ptx_val rounder)
{
    reduced v = {.t = ptx_fma(b, x, number(b, 0x3FB8AA3B), rounder)};
    v.n = ptx_sub(b, v.t, rounder);
    v.r = ptx_fma(b, v.n, number(b, 0xBF317218), x);
    return v;
}

static reduced reduce_far(ptx_builder *b, ptx_val x, ptx_val rounder)
{
    reduced v = reduce(b, x, rounder);
    v.r = ptx_fma(b, v.n, number(b, 0x3102E308), v.r);
    return v;
}

/* one * 2^(n + offset), where `one` is about 1. */
static ptx_val scale_by(ptx_builder *b, ptx_val one, const reduced *v)
{
    ptx_val exponent = ptx_shl(b, ptx_as(b, PTX_U32, v->t), 23);
    return ptx_as(b, PTX_F32, ptx_add(b, ptx_as(b, PTX_U32, one), exponent));
}

/* (e^r - 1 - r) / r^2 */
static ptx_val exp_tail(ptx_builder *b, ptx_val r)
{
    static const uint32_t coefficients[] = {0x3AB6CD21, 0x3C091400, 0x3D2AAA57, 0x3E2AAA58, 0x3F000000};
    return horner(b, coefficients, 5, r);
}

/* e^x * 2^offset, from the reduced x */
static ptx_val exp_scaled(ptx_builder *b, const reduced *v)
{
    ptx_val p = ptx_fma(b, exp_tail(b, v->r), v->r, 1.0f);
    return scale_by(b, ptx_fma(b, p, v->r, 1.0f), v);
}

/* e^r - 1 */
static ptx_val expm1_reduced(ptx_builder *b, ptx_val r)
{
    ptx_val tail = exp_tail(b, r);
    return ptx_fma(b, ptx_mul(b, r, r), tail, r);
}

static ptx_val expm1_near(ptx_builder *b, ptx_val x)
{
    reduced v = reduce(b, x, ptx_f32(b, ROUNDER));
    ptx_val m = expm1_reduced(b, v.r), power = scale_by(b, ptx_f32(b, 1.0f), &v);
    return ptx_fma(b, power, m, ptx_add(b, power, -1.0f));
}

ptx_val emit_exp(ptx_builder *b, ptx_val x)
{
    ptx_val negative = ptx_setp(b, PTX_LT, x, 0.0f);
    ptx_val rounder = ptx_selp(b, ptx_f32(b, ROUNDER + 64), ptx_f32(b, ROUNDER - 64), negative);
    ptx_val scale = ptx_selp(b, ptx_f32(b, 0x1p-64f), ptx_f32(b, 0x1p64f), negative);
    reduced v = reduce_far(b, ptx_clamp(b, x, ptx_f32(b, -104.0f), ptx_f32(b, 89.0f)), rounder);
    return unless_nan(b, x, ptx_mul(b, exp_scaled(b, &v), scale));
}

ptx_val emit_exp16(ptx_builder *b, ptx_val x)
{
    static const uint32_t coefficients[] = {0x3C1D0166, 0x3D64FE24, 0x3E7601BC, 0x3F317096, 0x3F800000};
    ptx_val clamped = ptx_max(b, x, ptx_f32(b, -80.0f)), log2e = number(b, 0x3FB8AA3B);
    reduced v = {.t = ptx_fma(b, clamped, log2e, ptx_f32(b, ROUNDER))};
    v.n = ptx_sub(b, ptx_f32(b, ROUNDER), v.t);
    v.r = ptx_fma(b, clamped, log2e, v.n);
    return scale_by(b, horner(b, coefficients, 5, v.r), &v);
}

ptx_val emit_tanh(ptx_builder *b, ptx_val x)
{
    static const uint32_t coefficients[] = {0xBD51D861, 0x3E086CBA, 0xBEAAAA83};
    ptx_val a = magnitude(b, x, 10.0f), square = ptx_mul(b, a, a);
    ptx_val p = horner(b, coefficients, 3, square);
    ptx_val small = ptx_fma(b, ptx_mul(b, a, square), p, a);
    ptx_val m = expm1_near(b, ptx_mul(b, a, 2.0f));
    ptx_val large = ptx_div(b, m, ptx_add(b, m, 2.0f));
    ptx_val y = ptx_selp(b, small, large, ptx_setp(b, PTX_LT, a, 0.2578125f));
    return unless_nan(b, x, ptx_copysign(b, x, y));
}

ptx_val emit_erf(ptx_builder *b, ptx_val x)
{
    static const uint32_t coefficients[] = {0x371CB6FA, 0xB8F85BF4, 0x3A26A96E, 0xBADB3C97, 0x392E6D0C,
                                            0x3C9CDF9C, 0xBDD27CA5, 0xBF22F97F, 0x337BD649};
    ptx_val a = magnitude(b, x, 4.0f), p = horner(b, coefficients, 9, a);
    ptx_val y = ptx_fma(b, a, number(b, 0xBF906EBB), ptx_mul(b, a, p));
    return unless_nan(b, x, ptx_copysign(b, x, expm1_near(b, y)));
}

ptx_val emit_sigmoid(ptx_builder *b, ptx_val x)
{
    ptx_val one = ptx_f32(b, 0x1p-64f), y = ptx_neg(b, x);
    reduced v =
        reduce_far(b, ptx_clamp(b, y, ptx_f32(b, -30.0f), ptx_f32(b, 104.0f)), ptx_f32(b, ROUNDER - 64));
    ptx_val m = expm1_reduced(b, v.r), power = scale_by(b, ptx_f32(b, 1.0f), &v);
    ptx_val small = ptx_fma(b, power, m, ptx_min(b, power, one));
    ptx_val sum = ptx_add(b, small, ptx_max(b, power, one));
    return unless_nan(b, x, ptx_div(b, one, sum));
}

/* max(x, 0) - tail / 2^64, with the sign of x */
static ptx_val ramp_minus_tail(ptx_builder *b, ptx_val x, ptx_val tail)
{
    ptx_val y = ptx_fma(b, tail, -0x1p-64f, ptx_max(b, x, 0.0f));
    return unless_nan(b, x, ptx_copysign(b, x, y));
}

/* a e / (1 + e) where e and the result are scaled by 2^64 */
static ptx_val logistic_tail(ptx_builder *b, ptx_val a, ptx_val e)
{
    ptx_val product = ptx_mul(b, a, e);
    return ptx_div(b, product, ptx_fma(b, e, 0x1p-64f, 1.0f));
}

/* 2^64 e^(x - low) for x <= 0 */
static ptx_val exp_two_floats(ptx_builder *b, ptx_val x, ptx_val low)
{
    reduced v = reduce_far(b, x, ptx_f32(b, ROUNDER + 64));
    v.r = ptx_sub(b, v.r, low);
    return exp_scaled(b, &v);
}

ptx_val emit_silu(ptx_builder *b, ptx_val x)
{
    ptx_val a = magnitude(b, x, 120.0f);
    reduced v = reduce_far(b, ptx_neg(b, a), ptx_f32(b, ROUNDER + 64));
    return ramp_minus_tail(b, x, logistic_tail(b, a, exp_scaled(b, &v)));
}

ptx_val emit_gelu_tanh(ptx_builder *b, ptx_val x)
{
    ptx_val k0 = number(b, 0x3FCC4228), k0_low = number(b, 0x344F50D9);
    ptx_val k1 = number(b, 0x3D922279), k1_low = number(b, 0x3124D8B5);
    ptx_val a = magnitude(b, x, 11.0f), square = ptx_mul(b, a, a);
    ptx_val square_low = ptx_fma(b, a, a, ptx_neg(b, square));
    ptx_val c = ptx_fma(b, k1, square, k0);
    ptx_val c_low = ptx_fma(b, k1, square, ptx_sub(b, k0, c));
    c_low = ptx_add(b, ptx_fma(b, k1, square_low, c_low), ptx_fma(b, k1_low, square, k0_low));
    ptx_val minus_z = ptx_neg(b, ptx_mul(b, a, c));
    ptx_val z_low = ptx_fma(b, a, c_low, ptx_fma(b, a, c, minus_z));
    return ramp_minus_tail(b, x, logistic_tail(b, a, exp_two_floats(b, minus_z, z_low)));
}

ptx_val emit_gelu_erf(ptx_builder *b, ptx_val x)
{
    static const uint32_t d[] = {0x3C268498, 0x3DC07804, 0x3ECEAA75, 0x3F6D0405};
    static const uint32_t n[] = {0x3C50273A, 0x3DF2E1DF, 0x3EF0D9DE};
    ptx_val a = magnitude(b, x, 15.0f), half = ptx_mul(b, a, 0.5f), square = ptx_mul(b, half, a);
    ptx_val minus_square = ptx_neg(b, square);
    ptx_val e = exp_two_floats(b, minus_square, ptx_fma(b, half, a, minus_square));
    ptx_val share = ptx_fma(b, square, horner(b, d, 4, a), half);
    ptx_val rest = ptx_mul(b, a, horner(b, n, 3, a));
    ptx_val sum = ptx_add(b, ptx_fma(b, share, number(b, 0x40206CA8), rest), 1.0f);
    return ramp_minus_tail(b, x, ptx_mul(b, ptx_div(b, share, sum), e));
}
