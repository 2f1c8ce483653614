/* What operations on each element compute. Where the library has a function, it is that one (docs/numerics.md); logarithms,
 * sines and cosines are computed in f64 and rounded once. */
#include "bodies.h"

#include "kernels/functions.h"

#define BODY(name)                                                                                           \
    ptx_val body_##name(__attribute__((unused)) ptx_builder *b, ptx_val x,                                   \
                        __attribute__((unused)) ptx_val z, __attribute__((unused)) const ptx_val *number)

static ptx_val f64(ptx_builder *b, uint64_t bits)
{
    return ptx_bits(b, PTX_F64, bits);
}

static ptx_val horner(ptx_builder *b, const double *coefficients, int count, ptx_val x)
{
    ptx_val y = ptx_f64(b, coefficients[0]);
    for (int i = 1; i < count; i++)
        y = ptx_fma(b, y, x, ptx_f64(b, coefficients[i]));
    return y;
}

/* ---- Two elements ---- */

BODY(add)
{
    return ptx_add(b, x, z);
}
BODY(sub)
{
    return ptx_sub(b, x, z);
}
BODY(mul)
{
    return ptx_mul(b, x, z);
}
BODY(div)
{
    return ptx_div(b, x, z);
}

/* ---- One ---- */

BODY(number)
{
    return x;
}
BODY(scale)
{
    return ptx_add(b, ptx_mul(b, x, number[0]), number[1]);
}
BODY(clamp)
{
    return ptx_clamp(b, x, number[0], number[1]);
}
BODY(sqr)
{
    return ptx_mul(b, x, x);
}
BODY(sqrt)
{
    return ptx_sqrt(b, x);
}
BODY(abs)
{
    return ptx_abs(b, x);
}
BODY(neg)
{
    return ptx_neg(b, x);
}
BODY(exp)
{
    return emit_exp(b, x);
}
BODY(expm1)
{
    return ptx_add(b, emit_exp(b, x), -1.0f);
}
BODY(tanh)
{
    return emit_tanh(b, x);
}
BODY(sigmoid)
{
    return emit_sigmoid(b, x);
}
BODY(silu)
{
    return emit_silu(b, x);
}
BODY(gelu_tanh)
{
    return emit_gelu_tanh(b, x);
}
BODY(gelu_erf)
{
    return emit_gelu_erf(b, x);
}
BODY(floor)
{
    return ptx_cvt_rmi(b, PTX_F32, x);
}
BODY(ceil)
{
    return ptx_cvt_rpi(b, PTX_F32, x);
}
BODY(trunc)
{
    return ptx_cvt_rzi(b, PTX_F32, x);
}

BODY(gelu_quick)
{
    return ptx_mul(b, x, emit_sigmoid(b, ptx_mul(b, x, ptx_f32(b, 1.702f))));
}

static ptx_val is_positive(ptx_builder *b, ptx_val x)
{
    return ptx_setp(b, PTX_GT, x, 0.0f);
}

BODY(step)
{
    return ptx_selp(b, ptx_f32(b, 1.0f), ptx_f32(b, 0.0f), is_positive(b, x));
}

BODY(sgn)
{
    ptx_val negative = ptx_selp(b, ptx_f32(b, -1.0f), ptx_f32(b, 0.0f), ptx_setp(b, PTX_LT, x, 0.0f));
    return ptx_selp(b, ptx_f32(b, 1.0f), negative, is_positive(b, x));
}

BODY(relu)
{
    return ptx_selp(b, ptx_f32(b, 0.0f), x, ptx_setp(b, PTX_LE, x, 0.0f));
}

BODY(leaky_relu)
{
    return ptx_selp(b, x, ptx_mul(b, x, number[0]), is_positive(b, x));
}

BODY(elu)
{
    return ptx_selp(b, x, ptx_add(b, emit_exp(b, x), -1.0f), is_positive(b, x));
}

BODY(hardsigmoid)
{
    ptx_val y = ptx_div(b, ptx_add(b, x, 3.0f), ptx_f32(b, 6.0f));
    return ptx_clamp(b, y, ptx_f32(b, 0.0f), ptx_f32(b, 1.0f));
}

BODY(hardswish)
{
    return ptx_mul(b, x, body_hardsigmoid(b, x, z, number));
}

/* The numbers are alpha for negative x, for positive x, beta, and the x above which e^x - 1 is not computed. */
BODY(xielu)
{
    ptx_val linear = ptx_mul(b, x, number[2]);
    ptx_val positive = ptx_add(b, ptx_mul(b, ptx_mul(b, number[1], x), x), linear);
    ptx_val power = ptx_add(b, emit_exp(b, ptx_min(b, x, number[3])), -1.0f);
    ptx_val negative = ptx_add(b, ptx_mul(b, ptx_sub(b, power, x), number[0]), linear);
    return ptx_selp(b, positive, negative, is_positive(b, x));
}

/* Halves away from zero. */
BODY(round)
{
    ptx_val whole = ptx_cvt_rzi(b, PTX_F32, x), rest = ptx_abs(b, ptx_sub(b, x, whole));
    ptx_val away = ptx_add(b, whole, ptx_copysign(b, x, ptx_f32(b, 1.0f)));
    return ptx_selp(b, away, whole, ptx_setp(b, PTX_GE, rest, 0.5f));
}

/* ---- Logarithms: x = m 2^e with m around 1, ln m = 2 artanh((m - 1) / (m + 1)) ---- */

static ptx_val emit_log(ptx_builder *b, ptx_val x)
{
    static const double artanh[] = {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
    ptx_val bits = ptx_as(b, PTX_U64, ptx_cvt(b, PTX_F64, x));
    ptx_val mantissa = ptx_or(b, ptx_and(b, bits, 0x000FFFFFFFFFFFFFull), 0x3FF0000000000000ull);
    ptx_val m = ptx_as(b, PTX_F64, mantissa);
    ptx_val exponent = ptx_and(b, ptx_cvt(b, PTX_U32, ptx_shr(b, bits, 52)), 0x7FF);
    ptx_val is_large = ptx_setp(b, PTX_GT, m, f64(b, 0x3FF6A09E667F3BCDull)); /* sqrt 2 */
    m = ptx_selp(b, ptx_mul(b, m, 0.5), m, is_large);
    ptx_val e = ptx_sub(b, ptx_as(b, PTX_S32, exponent), 1023);
    e = ptx_selp(b, ptx_add(b, e, 1), e, is_large);
    ptx_val s = ptx_div(b, ptx_add(b, m, -1.0), ptx_add(b, m, 1.0));
    ptx_val series = ptx_mul(b, ptx_add(b, s, s), horner(b, artanh, 8, ptx_mul(b, s, s)));
    ptx_val ln = ptx_fma(b, ptx_cvt(b, PTX_F64, e), f64(b, 0x3FE62E42FEFA39EFull), series);
    ptx_val y = ptx_cvt_rn(b, PTX_F32, ln);
    y = ptx_selp(b, x, y, ptx_setp(b, PTX_EQ, x, ptx_bits(b, PTX_F32, 0x7F800000)));
    y = ptx_selp(b, ptx_bits(b, PTX_F32, 0xFF800000), y, ptx_setp(b, PTX_EQ, x, 0.0f));
    return ptx_selp(b, ptx_bits(b, PTX_F32, 0x7FFFFFFF), y, ptx_setp(b, PTX_LTU, x, 0.0f));
}

BODY(log)
{
    return emit_log(b, x);
}

BODY(softplus)
{
    ptx_val y = emit_log(b, ptx_add(b, emit_exp(b, x), 1.0f));
    return ptx_selp(b, x, y, ptx_setp(b, PTX_GT, x, 20.0f));
}

/* ---- Sines and cosines: the angle modulo pi / 2, then series ---- */

void emit_cos_sin(ptx_builder *b, ptx_val angle, ptx_val *cosine, ptx_val *sine)
{
    static const double sines[] = {1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
                                   1.0 / 120,        -1.0 / 6,        1.0};
    static const double cosines[] = {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720,
                                     1.0 / 24,        -1.0 / 2,       1.0};
    ptx_val x = ptx_cvt(b, PTX_F64, angle), rounder = ptx_f64(b, 0x1.8p52);
    ptx_val t = ptx_fma(b, x, f64(b, 0x3FE45F306DC9C883ull), rounder); /* 2 / pi */
    ptx_val turns = ptx_neg(b, ptx_sub(b, t, rounder));
    ptx_val quarter = ptx_and(b, ptx_cvt(b, PTX_U32, ptx_as(b, PTX_U64, t)), 3);
    ptx_val r = ptx_fma(b, turns, f64(b, 0x3FF921FB54442D18ull), x); /* pi / 2, and what it lacks */
    r = ptx_fma(b, turns, f64(b, 0x3C91A62633145C07ull), r);
    ptx_val square = ptx_mul(b, r, r);
    ptx_val s = ptx_cvt_rn(b, PTX_F32, ptx_mul(b, r, horner(b, sines, 7, square)));
    ptx_val c = ptx_cvt_rn(b, PTX_F32, horner(b, cosines, 7, square));
    ptx_val is_odd = ptx_setp(b, PTX_NE, ptx_and(b, quarter, 1), 0);
    ptx_val sine_is_negative = ptx_setp(b, PTX_GE, quarter, 2);
    ptx_val shifted = ptx_and(b, ptx_add(b, quarter, 1), 3);
    ptx_val cosine_is_negative = ptx_setp(b, PTX_GE, shifted, 2);
    *sine = ptx_selp(b, c, s, is_odd);
    *sine = ptx_selp(b, ptx_neg(b, *sine), *sine, sine_is_negative);
    *cosine = ptx_selp(b, s, c, is_odd);
    *cosine = ptx_selp(b, ptx_neg(b, *cosine), *cosine, cosine_is_negative);
}

BODY(sin)
{
    ptx_val cosine, sine;
    emit_cos_sin(b, x, &cosine, &sine);
    return sine;
}

BODY(cos)
{
    ptx_val cosine, sine;
    emit_cos_sin(b, x, &cosine, &sine);
    return cosine;
}

/* ---- Gated ---- */

BODY(reglu)
{
    return ptx_mul(b, body_relu(b, x, z, number), z);
}
BODY(geglu)
{
    return ptx_mul(b, emit_gelu_tanh(b, x), z);
}
BODY(swiglu)
{
    return ptx_mul(b, emit_silu(b, x), z);
}
BODY(geglu_erf)
{
    return ptx_mul(b, emit_gelu_erf(b, x), z);
}
BODY(geglu_quick)
{
    return ptx_mul(b, body_gelu_quick(b, x, z, number), z);
}

static ptx_val limited(ptx_builder *b, ptx_val z, ptx_val limit)
{
    return ptx_clamp(b, z, ptx_neg(b, limit), limit);
}

/* The numbers are alpha and the limit. */
BODY(swiglu_oai)
{
    ptx_val gate = ptx_min(b, x, number[1]);
    ptx_val y = ptx_mul(b, gate, emit_sigmoid(b, ptx_mul(b, gate, number[0])));
    return ptx_mul(b, y, ptx_add(b, limited(b, z, number[1]), 1.0f));
}

BODY(swiglu_clamp)
{
    return ptx_mul(b, emit_silu(b, ptx_min(b, x, number[1])), limited(b, z, number[1]));
}
