/* What operations on each element compute. Where the library has a function, it is that one (docs/numerics.md); logarithms,
 * sines and cosines are computed in f64 and rounded once. */
#include "bodies.h"

#include "kernels/functions.h"

/* ---- Functions of x ---- */

static ptx_val emit_same(ptx_builder *b, ptx_val x)
{
    (void)b;
    return x;
}

static ptx_val emit_square(ptx_builder *b, ptx_val x)
{
    return ptx_mul(b, x, x);
}

static ptx_val emit_expm1(ptx_builder *b, ptx_val x)
{
    return ptx_add(b, emit_exp(b, x), -1.0f);
}

static ptx_val emit_floor(ptx_builder *b, ptx_val x)
{
    return ptx_cvt_rmi(b, PTX_F32, x);
}

static ptx_val emit_ceil(ptx_builder *b, ptx_val x)
{
    return ptx_cvt_rpi(b, PTX_F32, x);
}

static ptx_val emit_trunc(ptx_builder *b, ptx_val x)
{
    return ptx_cvt_rzi(b, PTX_F32, x);
}

static ptx_val emit_gelu_quick(ptx_builder *b, ptx_val x)
{
    return ptx_mul(b, x, emit_sigmoid(b, ptx_mul(b, x, 1.702f)));
}

static ptx_val is_positive(ptx_builder *b, ptx_val x)
{
    return ptx_setp(b, PTX_GT, x, 0.0f);
}

static ptx_val emit_step(ptx_builder *b, ptx_val x)
{
    return ptx_selp(b, ptx_f32(b, 1.0f), ptx_f32(b, 0.0f), is_positive(b, x));
}

static ptx_val emit_sign(ptx_builder *b, ptx_val x)
{
    ptx_val negative = ptx_selp(b, ptx_f32(b, -1.0f), ptx_f32(b, 0.0f), ptx_setp(b, PTX_LT, x, 0.0f));
    return ptx_selp(b, ptx_f32(b, 1.0f), negative, is_positive(b, x));
}

static ptx_val emit_relu(ptx_builder *b, ptx_val x)
{
    return ptx_selp(b, ptx_f32(b, 0.0f), x, ptx_setp(b, PTX_LE, x, 0.0f));
}

static ptx_val emit_elu(ptx_builder *b, ptx_val x)
{
    return ptx_selp(b, x, emit_expm1(b, x), is_positive(b, x));
}

static ptx_val emit_hardsigmoid(ptx_builder *b, ptx_val x)
{
    ptx_val y = ptx_div(b, ptx_add(b, x, 3.0f), ptx_f32(b, 6.0f));
    return ptx_clamp(b, y, ptx_f32(b, 0.0f), ptx_f32(b, 1.0f));
}

static ptx_val emit_hardswish(ptx_builder *b, ptx_val x)
{
    return ptx_mul(b, x, emit_hardsigmoid(b, x));
}

/* Halves away from zero. */
static ptx_val emit_round(ptx_builder *b, ptx_val x)
{
    ptx_val whole = ptx_cvt_rzi(b, PTX_F32, x), rest = ptx_abs(b, ptx_sub(b, x, whole));
    ptx_val away = ptx_add(b, whole, ptx_copysign(b, x, ptx_f32(b, 1.0f)));
    return ptx_selp(b, away, whole, ptx_setp(b, PTX_GE, rest, 0.5f));
}

/* ---- Logarithms: x = m 2^e with m around 1, ln m = 2 artanh((m - 1) / (m + 1)) ---- */

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

static ptx_val emit_softplus(ptx_builder *b, ptx_val x)
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

static ptx_val emit_sin(ptx_builder *b, ptx_val x)
{
    ptx_val cosine, sine;
    emit_cos_sin(b, x, &cosine, &sine);
    return sine;
}

static ptx_val emit_cos(ptx_builder *b, ptx_val x)
{
    ptx_val cosine, sine;
    emit_cos_sin(b, x, &cosine, &sine);
    return cosine;
}

/* ---- Functions of x, z and numbers ---- */

static ptx_val emit_scale(ptx_builder *b, ptx_val x, ptx_val z, const ptx_val *number)
{
    (void)z;
    return ptx_add(b, ptx_mul(b, x, number[0]), number[1]);
}

static ptx_val emit_clamp(ptx_builder *b, ptx_val x, ptx_val z, const ptx_val *number)
{
    (void)z;
    return ptx_clamp(b, x, number[0], number[1]);
}

static ptx_val emit_leaky_relu(ptx_builder *b, ptx_val x, ptx_val z, const ptx_val *number)
{
    (void)z;
    return ptx_selp(b, x, ptx_mul(b, x, number[0]), is_positive(b, x));
}

/* The numbers are alpha for negative x, for positive x, beta, and the x above which e^x - 1 is not computed. */
static ptx_val emit_xielu(ptx_builder *b, ptx_val x, ptx_val z, const ptx_val *number)
{
    (void)z;
    ptx_val linear = ptx_mul(b, x, number[2]);
    ptx_val positive = ptx_add(b, ptx_mul(b, ptx_mul(b, number[1], x), x), linear);
    ptx_val power = emit_expm1(b, ptx_min(b, x, number[3]));
    ptx_val negative = ptx_add(b, ptx_mul(b, ptx_sub(b, power, x), number[0]), linear);
    return ptx_selp(b, positive, negative, is_positive(b, x));
}

static ptx_val limited(ptx_builder *b, ptx_val z, ptx_val limit)
{
    return ptx_clamp(b, z, ptx_neg(b, limit), limit);
}

/* The numbers are alpha and the limit. */
static ptx_val emit_swiglu_oai(ptx_builder *b, ptx_val x, ptx_val z, const ptx_val *number)
{
    ptx_val gate = ptx_min(b, x, number[1]);
    ptx_val y = ptx_mul(b, gate, emit_sigmoid(b, ptx_mul(b, gate, number[0])));
    return ptx_mul(b, y, ptx_add(b, limited(b, z, number[1]), 1.0f));
}

static ptx_val emit_swiglu_clamp(ptx_builder *b, ptx_val x, ptx_val z, const ptx_val *number)
{
    return ptx_mul(b, emit_silu(b, ptx_min(b, x, number[1])), limited(b, z, number[1]));
}

/* ---- By operation ---- */

const each_body body_add = {.two = ptx_add}, body_neg = {.one = ptx_neg}, body_same = {.one = emit_same};

static const each_body by_op[GGML_OP_COUNT] = {
    [GGML_OP_ADD] = {.two = ptx_add},
    [GGML_OP_ADD1] = {.two = ptx_add},
    [GGML_OP_SUB] = {.two = ptx_sub},
    [GGML_OP_MUL] = {.two = ptx_mul},
    [GGML_OP_DIV] = {.two = ptx_div},
    [GGML_OP_SQR] = {.one = emit_square},
    [GGML_OP_SQRT] = {.one = ptx_sqrt},
    [GGML_OP_LOG] = {.one = emit_log},
    [GGML_OP_SIN] = {.one = emit_sin},
    [GGML_OP_COS] = {.one = emit_cos},
    [GGML_OP_SCALE] = {.with = emit_scale},
    [GGML_OP_CLAMP] = {.with = emit_clamp},
    [GGML_OP_LEAKY_RELU] = {.with = emit_leaky_relu},
};

static const each_body by_unary[GGML_UNARY_OP_COUNT] = {
    [GGML_UNARY_OP_ABS] = {.one = ptx_abs},
    [GGML_UNARY_OP_SGN] = {.one = emit_sign},
    [GGML_UNARY_OP_NEG] = {.one = ptx_neg},
    [GGML_UNARY_OP_STEP] = {.one = emit_step},
    [GGML_UNARY_OP_TANH] = {.one = emit_tanh},
    [GGML_UNARY_OP_ELU] = {.one = emit_elu},
    [GGML_UNARY_OP_RELU] = {.one = emit_relu},
    [GGML_UNARY_OP_SIGMOID] = {.one = emit_sigmoid},
    [GGML_UNARY_OP_GELU] = {.one = emit_gelu_tanh},
    [GGML_UNARY_OP_GELU_QUICK] = {.one = emit_gelu_quick},
    [GGML_UNARY_OP_SILU] = {.one = emit_silu},
    [GGML_UNARY_OP_HARDSWISH] = {.one = emit_hardswish},
    [GGML_UNARY_OP_HARDSIGMOID] = {.one = emit_hardsigmoid},
    [GGML_UNARY_OP_EXP] = {.one = emit_exp},
    [GGML_UNARY_OP_EXPM1] = {.one = emit_expm1},
    [GGML_UNARY_OP_SOFTPLUS] = {.one = emit_softplus},
    [GGML_UNARY_OP_GELU_ERF] = {.one = emit_gelu_erf},
    [GGML_UNARY_OP_XIELU] = {.with = emit_xielu},
    [GGML_UNARY_OP_FLOOR] = {.one = emit_floor},
    [GGML_UNARY_OP_CEIL] = {.one = emit_ceil},
    [GGML_UNARY_OP_ROUND] = {.one = emit_round},
    [GGML_UNARY_OP_TRUNC] = {.one = emit_trunc},
};

static const each_body by_glu[GGML_GLU_OP_COUNT] = {
    [GGML_GLU_OP_REGLU] = {.one = emit_relu, .is_gate = true},
    [GGML_GLU_OP_GEGLU] = {.one = emit_gelu_tanh, .is_gate = true},
    [GGML_GLU_OP_SWIGLU] = {.one = emit_silu, .is_gate = true},
    [GGML_GLU_OP_SWIGLU_OAI] = {.with = emit_swiglu_oai},
    [GGML_GLU_OP_GEGLU_ERF] = {.one = emit_gelu_erf, .is_gate = true},
    [GGML_GLU_OP_GEGLU_QUICK] = {.one = emit_gelu_quick, .is_gate = true},
    [GGML_GLU_OP_SWIGLU_CLAMP] = {.with = emit_swiglu_clamp},
};

static const each_body *find(const each_body *bodies, int count, int op)
{
    const bool known = op >= 0 && op < count && (bodies[op].one || bodies[op].two || bodies[op].with);
    return known ? &bodies[op] : NULL;
}

const each_body *body_of_op(enum ggml_op op)
{
    return find(by_op, GGML_OP_COUNT, (int)op);
}

const each_body *body_of_unary(enum ggml_unary_op op)
{
    return find(by_unary, GGML_UNARY_OP_COUNT, (int)op);
}

const each_body *body_of_glu(enum ggml_glu_op op)
{
    return find(by_glu, GGML_GLU_OP_COUNT, (int)op);
}

ptx_val emit_body(ptx_builder *b, const each_body *body, ptx_val x, ptx_val z, const ptx_val *number)
{
    if (body->with)
        return body->with(b, x, z, number);
    if (body->two)
        return body->two(b, x, z);
    ptx_val y = body->one(b, x);
    return body->is_gate ? ptx_mul(b, y, z) : y;
}
