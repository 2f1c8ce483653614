/* Integers of 2 to 8 bits: symmetric, with zero points, or with minima. */
#include "kernels/formats/pairs.h"
#include "kernels/formats/placed.h"

ptx_val nan_to_zero(ptx_builder *b, ptx_val x)
{
    return ptx_selp(b, ptx_f32(b, 0), x, ptx_setp(b, PTX_NAN, x, x));
}

/* x moved away from 0 by the number before 1/2: without its fraction, this is x rounded to the nearest integer, ties
 * away from 0. (With 1/2 itself, the sum for 0.49999997 would round up to 1.) Verified for every f32, including the sign
 * of zeros: numbers from 2^23 on are integers, and half a unit is not enough to make the sum another. */
static ptx_val moved_away(ptx_builder *b, ptx_val x)
{
    return ptx_add(b, x, ptx_copysign(b, x, ptx_f32(b, 0x1.fffffep-2f)));
}

ptx_val round_integral(ptx_builder *b, const kernel_spec *spec, ptx_val x)
{
    return spec->quantize.rounding == QDNN_ROUND_TIES_AWAY ? ptx_cvt_rzi(b, PTX_F32, moved_away(b, x))
                                                           : ptx_cvt_rni(b, PTX_F32, x);
}

ptx_val round_ties_away_s32(ptx_builder *b, ptx_val x)
{
    return ptx_cvt_rzi(b, PTX_S32, moved_away(b, x));
}

ptx_val round_s32(ptx_builder *b, const kernel_spec *spec, ptx_val x)
{
    return spec->quantize.rounding == QDNN_ROUND_TIES_AWAY ? round_ties_away_s32(b, x)
                                                           : ptx_cvt_rni(b, PTX_S32, x);
}

/* ---- The integers that codes stand for ---- */

static unsigned bits_of(const coding *c)
{
    return c->format->facts.bits;
}

static int half_range(const coding *c)
{
    return 1 << (bits_of(c) - 1);
}

static int least(const coding *c)
{
    return c->spec->stored.code == QDNN_CODE_UNSIGNED ? 0 : -half_range(c);
}

static int most(const coding *c)
{
    return least(c) + 2 * half_range(c) - 1;
}

int format_largest_integer(const coding *c)
{
    return most(c);
}

/* The code of an integer in the range above. */
static ptx_val code_of(ptx_builder *b, const coding *c, ptx_val integer)
{
    switch (c->spec->stored.code) {
    case QDNN_CODE_OFFSET:
        return ptx_as(b, PTX_U32, ptx_add(b, integer, half_range(c)));
    case QDNN_CODE_TWOS_COMPLEMENT:
        return ptx_and(b, ptx_as(b, PTX_U32, integer), 2 * half_range(c) - 1);
    default:
        return ptx_as(b, PTX_U32, integer);
    }
}

/* ---- Scales and zeros ---- */

static ptx_val symmetric_scale(ptx_builder *b, const coding *c, ptx_val absmax)
{
    ptx_val magnitude = ptx_max(b, absmax, ptx_f32(b, c->spec->quantize.floor));
    return most(c) == 1 ? magnitude : ptx_div(b, magnitude, ptx_f32(b, (float)most(c)));
}

/* The scale of a range whose width overflows: both ends are divided before they are subtracted. With f16 data
 * an end is at most 65504 or, if infinite, counts as the largest f32, so the width overflows only if both
 * ends are infinite: a constant. */
static ptx_val wide_scale(ptx_builder *b, const coding *c, ptx_val lo, ptx_val hi, float steps)
{
    if (c->spec->data == QDNN_DATA_F16)
        return ptx_f32(b, 2 * (element_largest(QDNN_DATA_F32) / steps));
    return ptx_sub(b, ptx_div(b, hi, ptx_f32(b, steps)), ptx_div(b, lo, ptx_f32(b, steps)));
}

/* An f16 scale is clamped to 65504. If the width overflows, both the usual quotient, an infinity, and the
 * correct one exceed that, so no special case is needed. */
static ptx_val range_scale(ptx_builder *b, const coding *c, ptx_val lo, ptx_val hi)
{
    const float steps = (float)(2 * half_range(c) - 1);
    ptx_val width = ptx_sub(b, hi, lo);
    ptx_val usual = ptx_div(b, ptx_max(b, width, ptx_f32(b, c->spec->quantize.floor)), ptx_f32(b, steps));
    if (c->spec->stored.scale == QDNN_SCALE_F16)
        return usual;
    return ptx_selp(b, usual, wide_scale(b, c, lo, hi, steps), ptx_testp_finite(b, width));
}

static ptx_val integer_scale(ptx_builder *b, const coding *c, ptx_val lo, ptx_val hi)
{
    return format_has_zero(c->format) ? range_scale(b, c, lo, hi) : symmetric_scale(b, c, hi);
}

static ptx_val integer_zero(ptx_builder *b, const coding *c, ptx_val lo, ptx_val scale)
{
    ptx_val low = ptx_f32(b, (float)least(c));
    if (c->format->facts.zero_kind == QDNN_ZERO_MINIMUM)
        return least(c) ? ptx_sub(b, lo, ptx_mul(b, low, scale)) : lo;
    ptx_val zero = ptx_div(b, ptx_neg(b, lo), scale);
    bool no_zero =
        c->spec->stored.zero_minus_one && !c->spec->stored.zero_wraps; /* 0 cannot be stored minus one */
    if (c->spec->quantize.range == QDNN_RANGE_WITH_ZERO)
        zero = ptx_clamp(b, ptx_cvt_rni(b, PTX_F32, zero), ptx_f32(b, no_zero ? 1 : 0),
                         ptx_f32(b, (float)(most(c) - least(c))));
    return least(c) ? ptx_add(b, zero, low) : zero;
}

/* ---- Codes ---- */

bool format_zero_is_float(const kernel_spec *spec)
{
    return spec->stored.zero == QDNN_DATA_F32 || spec->stored.zero == QDNN_DATA_F16 ||
           spec->stored.zero == QDNN_DATA_BF16;
}

/* The conversion to s32 turns NaN into 0 and saturates, so clamping can come after it. The quotient by a scale of the group itself is
 * at most 127 (1 + 2^-8), which is less than 127.5, in magnitude: only infinities are clamped, to what the largest f32 would become. */
static ptx_val encode_rounded(ptx_builder *b, const coding *c, const group_values *group, ptx_val quotient)
{
    ptx_val q = round_s32(b, c->spec, quotient);
    const bool is_even = scale_is_close(c, group) && !format_has_zero(c->format) && least(c) < 0;
    return code_of(b, c, ptx_clamp_s32(b, q, is_even ? -most(c) : least(c), most(c)));
}

/* An integer zero is added after the quotient is rounded; a float zero, which may be fractional, before. */
static ptx_val encode_with_zero(ptx_builder *b, const coding *c, const group_values *group, ptx_val quotient)
{
    ptx_val q = format_zero_is_float(c->spec) ? round_integral(b, c->spec, ptx_add(b, quotient, group->zero))
                                              : ptx_add(b, round_integral(b, c->spec, quotient), group->zero);
    q = ptx_clamp(b, q, ptx_f32(b, (float)least(c)), ptx_f32(b, (float)most(c)));
    return code_of(b, c, ptx_cvt_rni(b, PTX_S32, q));
}

static ptx_val integer_encode(ptx_builder *b, const coding *c, const group_values *group, ptx_val quotient)
{
    return c->format->facts.zero_kind == QDNN_ZERO_POINT ? encode_with_zero(b, c, group, quotient)
                                                         : encode_rounded(b, c, group, quotient);
}

/* The code's bits are inserted into the fraction of 2^(23-position), where the lowest bit of the code counts
 * 1; the sign bit of two's complement is flipped, which turns it into an offset code. The surplus is then
 * subtracted, exactly. */
static ptx_val integer_unit(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                            unsigned position)
{
    (void)state;
    if (position + bits_of(c) > 23) {
        word = ptx_shr(b, word, position);
        position = 0;
    }
    ptx_val placed = placed_code(b, c, word, position, false);
    return ptx_sub(b, placed, ptx_f32(b, placed_surplus(QDNN_DATA_F32, position) - (float)least(c)));
}

/* One permutation puts a byte into the fraction of 2^23. */
static void integer_units_of_bytes(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                                   ptx_val out[4])
{
    (void)state;
    ptx_val biased =
        c->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT ? ptx_xor(b, word, ptx_u32(b, 0x80808080)) : word;
    float extra = (float)((1u << 23) - (uint32_t)least(c));
    for (unsigned i = 0; i < 4; i++) {
        ptx_val placed = ptx_prmt(b, biased, ptx_u32(b, 0x4B000000), ptx_u32(b, 0x7440 | i));
        out[i] = ptx_sub(b, ptx_as(b, PTX_F32, placed), ptx_f32(b, extra));
    }
}

/* The bit of a 16-bit half that a code is moved to: it keeps its bit within the byte if the fraction has room
 * for that, else it goes to bit 0. */
static unsigned place_in_half(const coding *c, qdnnDataType_t type, unsigned position)
{
    return position % 8 + bits_of(c) <= pair_fraction_bits(type) ? position % 8 : 0;
}

/* Like integer_unit: the code goes into the fraction of 2^(fraction bits - at), and the surplus is
 * subtracted. Surplus and zero are combined into one constant if the type represents their sum: f16
 * represents all integers up to 2048; in bf16, packed zeros do not carry the sum past the power of two. */
static ptx_val short_pair(ptx_builder *b, const coding *c, qdnnDataType_t type, ptx_val minus_zero,
                          code_place first, code_place second)
{
    const unsigned at[2] = {place_in_half(c, type, first.position), place_in_half(c, type, second.position)};
    ptx_val placed = pair_place(b, bits_of(c), first, at[0], second, at[1]);
    placed = ptx_as(b, pair_type(type), placed_pair(b, c, type, placed, at));
    ptx_val less = pair_constant(b, type, (float)least(c) - placed_surplus(type, at[0]),
                                 (float)least(c) - placed_surplus(type, at[1]));
    if (minus_zero.kind == PTX_NOTHING)
        return pair_add(b, type, placed, less);
    if (type == QDNN_DATA_F16 || c->spec->stored.zero_packed)
        return pair_add(b, type, placed, pair_add(b, type, minus_zero, less));
    return pair_add(b, type, pair_add(b, type, placed, less), minus_zero);
}

/* The fraction of bf16 has 7 bits, so 8-bit codes are converted by way of f32. */
static ptx_val integer_pair(ptx_builder *b, const coding *c, qdnnDataType_t type, ptx_val minus_zero,
                            code_place first, code_place second)
{
    if (bits_of(c) <= pair_fraction_bits(type))
        return short_pair(b, c, type, minus_zero, first, second);
    ptx_val low = integer_unit(b, c, NULL, first.word, first.position);
    ptx_val high = integer_unit(b, c, NULL, second.word, second.position);
    ptx_val pair = ptx_as(b, pair_type(type), emit_narrow_pair(b, type, low, high));
    return minus_zero.kind == PTX_NOTHING ? pair : pair_add(b, type, pair, minus_zero);
}

const codec codec_integer = {.is_integer = true,
                             .pair = integer_pair,
                             .scale = integer_scale,
                             .zero = integer_zero,
                             .encode = integer_encode,
                             .unit = integer_unit,
                             .units_of_bytes = integer_units_of_bytes};
