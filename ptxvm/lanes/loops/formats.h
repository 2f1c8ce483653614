/* The small floating-point formats: widening to f32, and rounding from f32 in every way that PTX has.
 *
 * One function rounds to all of them: the significand is shifted right by the bits that the result cannot hold,
 * after adding an increment that depends only on the rounding rule. Everything is integer arithmetic without
 * branches, so it can be vectorized, and it does not depend on the processor's rounding mode. */
#ifndef PTXVM_LANES_FORMATS_H
#define PTXVM_LANES_FORMATS_H

#include "loops.h"

#define is_nan(x) ((x) != (x))
#define F32_NAN   0x7FFFFFFFu
#define F32_INF   0x7F800000u
#define F64_NAN   0xFFF8000000000000u /* the result of an undefined operation, such as 0 * Inf */
#define F64_INF   0x7FF0000000000000u
#define F64_QUIET 0x0008000000000000u

typedef struct small_format {
    int mantissa, bias, sign;    /* bits of the mantissa; bias; position of the sign bit */
    uint32_t max, overflow, nan; /* codes without sign: largest finite, overflow, NaN (never signed) */
} small_format;

static const small_format FORMAT_F16 = {10, 15, 15, 0x7BFF, 0x7C00, 0x7FFF};
static const small_format FORMAT_BF16 = {7, 127, 15, 0x7F7F, 0x7F80, 0x7FFF};
static const small_format FORMAT_TF32 = {10, 127, 18, 0x3FBFF, 0x3FC00, 0x3FFFF};
static const small_format FORMAT_E4M3 = {3, 7, 7, 0x7E, 0x7F, 0x7F};
static const small_format FORMAT_E5M2 = {2, 15, 7, 0x7B, 0x7C, 0x7F};
/* These have neither Inf nor NaN: NaN becomes the largest number. */
static const small_format FORMAT_E3M2 = {2, 3, 5, 0x1F, 0x1F, 0x1F};
static const small_format FORMAT_E2M3 = {3, 1, 5, 0x1F, 0x1F, 0x1F};
static const small_format FORMAT_E2M1 = {1, 1, 3, 0x7, 0x7, 0x7};

typedef enum {
    ROUND_EVEN,      /* to nearest, ties to even */
    ROUND_TRUNCATE,  /* towards zero */
    ROUND_AWAY,      /* away from zero */
    ROUND_HALF_AWAY, /* to nearest, ties away from zero: .rna */
    ROUND_RANDOM     /* .rs: away if random bits plus discarded bits carry */
} round_rule;

typedef struct rounding {
    round_rule positive, negative;
    bool satfinite, relu;
} rounding;

static inline rounding rounding_of(const pvm_inst *inst)
{
    const unsigned mod = inst->mod[S_RND];
    round_rule same = mod == M_rz    ? ROUND_TRUNCATE
                      : mod == M_rna ? ROUND_HALF_AWAY
                      : mod == M_rs  ? ROUND_RANDOM
                                     : ROUND_EVEN;
    return (rounding){
        mod == M_rp   ? ROUND_AWAY
        : mod == M_rm ? ROUND_TRUNCATE
                      : same,
        mod == M_rm   ? ROUND_AWAY
        : mod == M_rp ? ROUND_TRUNCATE
                      : same,
        inst->mod[S_SAT] == M_satfinite,
        inst->mod[S_RELU] == M_relu,
    };
}

/* The increment added before `shift` bits are dropped. The 16 random bits are a fraction: their top bit is
 * aligned with the top discarded bit. */
static inline uint32_t round_increment(round_rule rule, uint32_t significand, uint32_t shift, uint32_t random)
{
    const uint32_t half = 1u << (shift - 1);
    const uint32_t even = half - 1 + (significand >> shift & 1);
    const uint32_t lottery = shift >= 16 ? random << (shift - 16) : random >> (16 - shift);
    return rule == ROUND_EVEN        ? even
           : rule == ROUND_TRUNCATE  ? 0
           : rule == ROUND_AWAY      ? 2 * half - 1
           : rule == ROUND_HALF_AWAY ? half
                                     : lottery;
}

/* f32 bits -> the format's code, sign included. */
static inline uint32_t round_to(const small_format f, uint32_t u, const rounding r, uint32_t random)
{
    const uint32_t negative = u >> 31, magnitude = u & 0x7FFFFFFF;
    const round_rule rule = negative ? r.negative : r.positive;
    const int32_t field = (int32_t)(magnitude >> 23);
    const uint32_t significand = (magnitude & 0x7FFFFF) | (field ? 0x800000u : 0);
    /* The exponent field of the result; below 1 it is subnormal there and loses that many more bits. */
    const int32_t exponent = (field ? field : 1) - 127 + f.bias;
    const int32_t extra = exponent < 1 ? 1 - exponent : 0;
    const int32_t wanted = 23 - f.mantissa + extra;
    const uint32_t shift = (uint32_t)(wanted < 31 ? wanted : 31);
    const uint32_t kept = (significand + round_increment(rule, significand, shift, random)) >> shift;
    uint32_t code = kept + ((uint32_t)(exponent < 1 ? 0 : exponent - 1) << f.mantissa);

    const bool finite_result = r.satfinite || (rule == ROUND_TRUNCATE && magnitude != F32_INF);
    code = code > f.max ? (finite_result ? f.max : f.overflow) : code;
    code |= negative << f.sign;
    code &= ~(0u - (negative & (r.relu ? 1u : 0u)));
    return magnitude > F32_INF ? f.nan : code;
}

/* The two usual roundings. Loops use them as constants, so that the compiler can vectorize round_to. */
static const rounding NEAREST_EVEN = {ROUND_EVEN, ROUND_EVEN, false, false};
static const rounding NEAREST_FINITE = {ROUND_EVEN, ROUND_EVEN, true, false};

static inline bool same_rounding(const rounding a, const rounding b)
{
    return a.positive == b.positive && a.negative == b.negative && a.satfinite == b.satfinite &&
           a.relu == b.relu;
}

static inline uint16_t f16_of_f32(float x)
{
    return (uint16_t)round_to(FORMAT_F16, bits_of_f32(x), NEAREST_EVEN, 0);
}

static inline uint16_t bf16_of_f32(float x)
{
    const uint32_t u = bits_of_f32(x);
    return (uint16_t)((u & 0x7FFFFFFF) > F32_INF ? 0x7FFF : (u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* A code without sign, as f32 bits: moved into place it is the value times 2^(bias - 127), even if it is
 * subnormal, and the product that corrects this is exact in every rounding mode. */
static inline uint32_t widen_magnitude(uint32_t code, int mantissa, int bias)
{
    return bits_of_f32(f32_of_bits(code << (23 - mantissa)) * f32_of_bits((uint32_t)(254 - bias) << 23));
}

static inline float f32_of_f16(uint16_t h)
{
    const uint32_t magnitude = h & 0x7FFF, sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t finite = widen_magnitude(magnitude, 10, 15) | sign;
    return f32_of_bits(magnitude > 0x7C00 ? F32_NAN : magnitude == 0x7C00 ? F32_INF | sign : finite);
}

static inline float f32_of_bf16(uint16_t h)
{
    return f32_of_bits((h & 0x7FFF) > 0x7F80 ? F32_NAN : (uint32_t)h << 16);
}

/* f64 -> f32 rounded to odd: a later rounding to 22 bits or fewer is then the same as rounding the f64
 * itself. Works in any rounding mode: a conversion that went away from zero is one step too far. */
static inline float f32_odd_of_f64(double x)
{
    const float near = (float)x;
    const double back = (double)near, error = fabs(back) - fabs(x);
    const uint32_t far = error > 0 ? 1 : 0, inexact = error > 0 || error < 0 ? 1 : 0;
    return is_nan(x) ? f32_of_bits(F32_NAN) : f32_of_bits((bits_of_f32(near) - far) | inexact);
}

#endif
