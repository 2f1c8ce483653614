/* The numbers of a group: from memory to values, and from the range of its elements to memory. */
#include "kernels/formats/format.h"

/* ---- Reading ---- */

static ptx_val load_nested(ptx_builder *b, const sidecars *s, ptx_val index)
{
    ptx_val byte = ptx_ld_global_nc(b, PTX_U8, ptx_add(b, s->scale, index), 0);
    ptx_val entry = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, s->nested_map, byte, 4), 0);
    ptx_val outer = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, s->nested_scale, ptx_shr(b, index, 8), 4), 0);
    return ptx_add(b, ptx_mul(b, entry, outer), s->nested_offset);
}

/* What quantize divides by or, if the scale is a power of two or on request, multiplies by. For an E4M3 scale
 * that was rounded to 0, the result is 0 either way. */
static ptx_val divisor_of(ptx_builder *b, const coding *c, const sidecars *s, ptx_val scale)
{
    if (c->spec->stored.scale == QDNN_SCALE_E8M0)
        return ptx_rcp(b, scale);
    ptx_val divisor = s->global_scale.kind != PTX_NOTHING ? ptx_mul(b, scale, s->global_scale) : scale;
    if (c->spec->quantize.division == QDNN_DIVIDE_EXACT)
        return divisor;
    ptx_val reciprocal = ptx_rcp(b, divisor);
    if (c->spec->stored.scale != QDNN_SCALE_E4M3)
        return reciprocal;
    return ptx_selp(b, ptx_f32(b, 0), reciprocal, ptx_setp(b, PTX_EQ, divisor, 0.0f));
}

group_values group_of_numbers(ptx_builder *b, const coding *c, const sidecars *s, ptx_val scale, ptx_val zero)
{
    return (group_values){.scale = scale, .divisor = divisor_of(b, c, s, scale), .zero = zero};
}

ptx_val group_load_scale(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index)
{
    qdnnScaleType_t type = c->spec->stored.scale;
    return c->spec->stored.nested
               ? load_nested(b, s, index)
               : emit_load_scale(b, type, ptx_at(b, s->scale, index, scale_bytes(type)), 0);
}

/* GPTQ's first version stores zeros minus one; the largest code then stands for 2^bits, or for 0 if zeros
 * wrap. */
ptx_val group_zero_from(ptx_builder *b, const coding *c, ptx_val stored)
{
    if (!c->spec->stored.zero_minus_one)
        return stored;
    ptx_val zero = ptx_add(b, stored, ptx_f32(b, 1));
    if (!c->spec->stored.zero_wraps)
        return zero;
    return ptx_selp(b, ptx_f32(b, 0), zero,
                    ptx_setp(b, PTX_EQ, stored, ptx_f32(b, (float)format_largest_integer(c))));
}

group_values group_load(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index)
{
    const kernel_spec *spec = c->spec;
    ptx_val zero = {0};
    if (format_has_zero(c->format))
        zero = group_zero_from(
            b, c,
            emit_load(b, spec->stored.zero, ptx_at(b, s->zero, index, element_bytes(spec->stored.zero)), 0));
    return group_of_numbers(b, c, s, group_load_scale(b, c, s, index), zero);
}

/* The largest number that an absmax, or a width, is divided by. */
static float divisions_of(const coding *c)
{
    if (!c->format->codec->is_integer)
        return c->format->number ? c->format->number->largest : 1;
    return format_has_zero(c->format) ? (float)((1 << c->format->facts.bits) - 1)
                                      : (float)format_largest_integer(c);
}

/* With a floor, no scale is subnormal. */
bool scale_is_close(const coding *c, const group_values *group)
{
    return group->is_own &&
           (c->spec->stored.scale == QDNN_SCALE_F32 || c->spec->stored.scale == QDNN_SCALE_BF16) &&
           !c->format->codec->scale_is_absmax && c->spec->quantize.floor / divisions_of(c) >= 0x1p-126f;
}

/* 1 / s may be infinite, and a table's scale 0. */
group_values group_of_made(ptx_builder *b, const coding *c, const sidecars *s, const group_made *made)
{
    group_values group = group_of_numbers(b, c, s, made->scale, made->zero);
    const bool is_float = scale_data_type(c->spec->stored.scale) != 0;
    group.is_own =
        is_float && !c->spec->stored.nested &&
        (c->spec->quantize.division == QDNN_DIVIDE_EXACT || c->spec->stored.scale == QDNN_SCALE_F16 ||
         (!c->format->codec->scale_is_absmax && c->spec->quantize.floor / divisions_of(c) >= 0x1p-126f)) &&
        !(c->format->codec->scale_is_absmax && c->spec->quantize.floor == 0);
    return group;
}

group_values group_without_scale(ptx_builder *b)
{
    return (group_values){.scale = ptx_f32(b, 1), .divisor = ptx_f32(b, 1), .zero = ptx_f32(b, 0)};
}

/* ---- Values ---- */

ptx_val group_decode(ptx_builder *b, const coding *c, const sidecars *s, const group_values *group,
                     ptx_val unit)
{
    qdnnZeroKind_t kind = c->format->facts.zero_kind;
    if (c->spec->stored.groups == QDNN_GROUPS_DEFAULT)
        return unit;
    if (kind == QDNN_ZERO_POINT)
        unit = ptx_sub(b, unit, group->zero);
    ptx_val value = ptx_mul(b, unit, group->scale);
    if (s->global_scale.kind != PTX_NOTHING)
        value = ptx_mul(b, value, s->global_scale);
    return kind == QDNN_ZERO_MINIMUM ? ptx_add(b, value, group->zero) : value;
}

/* ---- Quotients ---- */

static ptx_val limited(ptx_builder *b, ptx_val x)
{
    const float largest = element_largest(QDNN_DATA_F32);
    return ptx_clamp(b, x, ptx_f32(b, -largest), ptx_f32(b, largest));
}

/* Whether NaN is replaced by 0 behind the division, by whatever it is caused. */
static bool replaces_nan_last(const coding *c)
{
    return c->format->codec->replaces_nan_last || c->format->facts.zero_kind == QDNN_ZERO_POINT;
}

/* Whether the least element of a group always has the least code, so that minus infinity has it too: the zero is the same quotient rounded in the
 * same way, with the other sign, and is not clamped (255 (1 + 2^-8) would be); one of float type is added before rounding, which is to
 * even, as the least code is. */
static bool least_has_least_code(const coding *c, const group_values *group)
{
    const kernel_spec *spec = c->spec;
    return c->format->facts.zero_kind == QDNN_ZERO_POINT && scale_is_close(c, group) &&
           (spec->stored.scale == QDNN_SCALE_F32 || c->format->facts.bits < 8) &&
           spec->quantize.division == QDNN_DIVIDE_EXACT &&
           spec->quantize.rounding == QDNN_ROUND_TIES_TO_EVEN && spec->quantize.range == QDNN_RANGE_WITH_ZERO;
}

/* Whether the minimum is the group's own, which is finite, and stands for the code 0. Less that and divided by a positive scale, minus infinity has
 * that code, as the least finite number has, which is not above the minimum. */
static bool is_own_minimum(const coding *c, const group_values *group)
{
    return c->format->facts.zero_kind == QDNN_ZERO_MINIMUM && group->is_own &&
           c->spec->stored.code == QDNN_CODE_UNSIGNED;
}

/* Whether with such a minimum the largest f32 has the largest code, as infinity has: the range begins at 0 or below, so that its width is at least
 * that number; the quotient by the width's scale is off by less than half a code, unless the minimum is limited to a narrower range. */
static bool largest_has_largest_code(const coding *c, const group_values *group)
{
    const kernel_spec *spec = c->spec;
    return is_own_minimum(c, group) && scale_is_close(c, group) &&
           (spec->stored.scale == QDNN_SCALE_F32 || c->format->facts.bits < 8) &&
           spec->quantize.range == QDNN_RANGE_WITH_ZERO &&
           (spec->stored.zero == QDNN_DATA_F32 || spec->stored.zero == QDNN_DATA_BF16);
}

/* x without the infinities that have other codes than the largest finite numbers. */
static ptx_val limited_to_finite(ptx_builder *b, const coding *c, const group_values *group, ptx_val x)
{
    if (largest_has_largest_code(c, group))
        return x;
    return is_own_minimum(c, group) ? ptx_min(b, x, ptx_f32(b, element_largest(QDNN_DATA_F32)))
                                    : limited(b, x);
}

/* Infinities become the largest finite number, where the codes would differ; NaN stays if there is a code for it, or if it is replaced later, and otherwise becomes
 * 0. */
static ptx_val finite(ptx_builder *b, const coding *c, const group_values *group, ptx_val x)
{
    if (least_has_least_code(c, group))
        return ptx_min(b, x, ptx_f32(b, element_largest(QDNN_DATA_F32)));
    if (replaces_nan_last(c))
        return limited(b, x);
    ptx_val of_nan = c->format->codec->has_nan ? x : ptx_f32(b, 0);
    return ptx_selp(b, of_nan, limited_to_finite(b, c, group, x), ptx_setp(b, PTX_NAN, x, x));
}

/* Whether infinities and NaN need not be replaced before the division.
 *
 * Without scales, all encoders saturate, and give NaN the code of 0 or of NaN. Divided by a finite f16 scale, or by one of E4M3, the largest f32
 * exceeds all codes, just as an infinity does; divided by an infinite scale, both give 0: a zero of either sign for some floats, which
 * therefore are not in it. A NaN x gives the code of NaN, or of +0, which is not that of 0 / -s for floats. A zero that may be infinite makes NaN
 * of an infinity of the other sign.
 *
 * With a scale of the group itself, an infinity counts as the largest magnitude, whose quotient is encoded as the largest code: the
 * encoders limit infinities to that. Such a scale is positive. */
static bool takes_infinities(const coding *c, const group_values *group)
{
    const kernel_spec *spec = c->spec;
    const qdnnZeroKind_t zero = c->format->facts.zero_kind;
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT || (zero == QDNN_ZERO_NONE && scale_is_close(c, group)) ||
        (c->format->codec->scale_is_absmax && group->is_own))
        return true;
    if (zero == QDNN_ZERO_MINIMUM ||
        (zero == QDNN_ZERO_POINT && !spec->stored.zero_packed && format_zero_is_float(spec)))
        return false;
    if (spec->stored.scale == QDNN_SCALE_E4M3)
        return !spec->stored.global_scale && (!c->format->number || c->format->codec->has_nan);
    return spec->stored.scale == QDNN_SCALE_F16 && !c->format->number;
}

static ptx_val divide(ptx_builder *b, const coding *c, const group_values *group, ptx_val x)
{
    const kernel_spec *spec = c->spec;
    ptx_val value = takes_infinities(c, group) ? x : finite(b, c, group, x);
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT)
        return value;
    if (c->format->facts.zero_kind == QDNN_ZERO_MINIMUM)
        value = ptx_sub(b, value, group->zero);
    bool by_product =
        spec->stored.scale == QDNN_SCALE_E8M0 || spec->quantize.division == QDNN_DIVIDE_RECIPROCAL;
    return by_product ? ptx_mul(b, value, group->divisor) : ptx_div(b, value, group->divisor);
}

/* If an E4M3 scale was rounded to 0, all codes are 0. An x that was limited may have been NaN when the quotient is not; the quotient by a
 * scale of the group itself is not NaN when x is not. */
ptx_val group_quotient(ptx_builder *b, const coding *c, const group_values *group, ptx_val x)
{
    ptx_val quotient = divide(b, c, group, x), zero = ptx_f32(b, 0), is_zero = {0};
    const bool has_zero =
        c->spec->stored.scale == QDNN_SCALE_E4M3 && c->spec->stored.groups != QDNN_GROUPS_DEFAULT;
    if (has_zero)
        is_zero = ptx_setp(b, PTX_EQ, group->divisor, 0.0f);
    if (!replaces_nan_last(c))
        return has_zero ? ptx_selp(b, zero, quotient, is_zero) : quotient;
    ptx_val first = takes_infinities(c, group) ? quotient : x, second = group->is_own ? first : quotient;
    return ptx_selp(b, zero, quotient,
                    has_zero ? ptx_setp_or(b, PTX_NAN, first, second, is_zero)
                             : ptx_setp(b, PTX_NAN, first, second));
}

/* ---- Writing ---- */

static float power_of_two(int e)
{
    float x = 1;
    for (; e > 0; e--)
        x *= 2;
    return x;
}

/* Added to the bits of an absmax, this makes the mantissa carry into the exponent if the absmax counts as the
 * next power of two: with EVEN, if it rounds up to that; with CEIL, if it is above the mantissa of the
 * largest number. */
static uint32_t mx_addend(const minifloat *f, qdnnMxRounding_t rounding)
{
    float mantissa = f->largest / power_of_two((int)f->largest_exponent);
    switch (rounding) {
    case QDNN_MX_EVEN:
        return 1u << (22 - f->fraction_bits);
    case QDNN_MX_CEIL:
        return 0x7FFFFF - (uint32_t)((mantissa - 1) * 0x1p23f);
    default:
        return 0;
    }
}

/* The exponent by the MX rule, 0 to 254. The exponent bits of an absmax can be used as they are: subnormals
 * are far below the range of E8M0. */
static ptx_val mx_exponent(ptx_builder *b, const coding *c, ptx_val absmax)
{
    uint32_t addend = mx_addend(c->format->number, c->spec->quantize.mx_rounding);
    ptx_val bits = ptx_as(b, PTX_U32, absmax);
    if (addend)
        bits = ptx_add(b, bits, ptx_u32(b, addend));
    ptx_val exponent = ptx_as(b, PTX_S32, ptx_shr(b, bits, 23));
    return ptx_as(b, PTX_U32,
                  ptx_clamp_s32(b, ptx_sub(b, exponent, (int)c->format->number->largest_exponent), 0, 254));
}

/* Table formats need no floor: if the descriptor's is 0, the scale of a group of zeros is 0. */
static float least_scale(const coding *c, qdnnDataType_t data)
{
    return c->format->codec->scale_is_absmax && c->spec->quantize.floor == 0 ? 0 : element_smallest(data);
}

/* Limits a rounded scale to what is stored. A magnitude is not negative and at most the largest f32, a width twice that, and the floor is
 * what they are at least: often there is nothing to limit. */
static ptx_val limit_scale(ptx_builder *b, const coding *c, qdnnDataType_t data, ptx_val scale)
{
    const float least = least_scale(c, data), divisions = divisions_of(c);
    if (c->format->codec->scale_is_absmax ? least > 0 : c->spec->quantize.floor / divisions < least)
        scale = ptx_max(b, scale, ptx_f32(b, least));
    if (data == QDNN_DATA_F16 || (data == QDNN_DATA_BF16 && divisions < 2))
        scale = ptx_min(b, scale, ptx_f32(b, element_largest(data)));
    return scale;
}

/* If the global scale is 0, all scales are 0. */
static ptx_val scale_under_global(ptx_builder *b, const coding *c, const sidecars *s, ptx_val absmax)
{
    ptx_val scale = ptx_div(b, ptx_div(b, absmax, ptx_f32(b, c->format->number->largest)), s->global_scale);
    return ptx_selp(b, ptx_f32(b, 0), scale, ptx_setp(b, PTX_EQ, s->global_scale, 0.0f));
}

/* The scale as it will be stored, and the value that a reader will see. */
static void make_scale(ptx_builder *b, const coding *c, const sidecars *s, ptx_val lo, ptx_val hi,
                       group_made *g)
{
    qdnnScaleType_t type = c->spec->stored.scale;
    if (type == QDNN_SCALE_E8M0) {
        g->code = mx_exponent(b, c, hi);
        g->scale = e8m0_decode(b, g->code);
        return;
    }
    ptx_val scale = s->global_scale.kind != PTX_NOTHING ? scale_under_global(b, c, s, hi)
                                                        : c->format->codec->scale(b, c, lo, hi);
    if (type == QDNN_SCALE_E4M3) {
        const bool is_known = s->global_scale.kind == PTX_NOTHING;
        g->code = minifloat_encode(b, &float_e4m3, scale,
                                   (minifloat_facts){.is_number = is_known, .is_positive = is_known});
        g->scale = minifloat_decode(b, &float_e4m3, g->code, 0);
        return;
    }
    qdnnDataType_t data = scale_data_type(type);
    g->scale = limit_scale(b, c, data, emit_round(b, data, scale));
}

/* Whether a range with an infinite end makes the same scale and zero as one with the largest finite number there: an f16 scale is limited to 65504 either
 * way, and the quotient of either end by that is beyond all codes; zeros of other types are limited in themselves. (A tight range may have
 * two ends of the same sign.) */
static bool takes_infinite_ends(const coding *c)
{
    return c->spec->stored.scale == QDNN_SCALE_F16 && c->spec->quantize.range == QDNN_RANGE_WITH_ZERO;
}

/* An empty range (NaN) counts as 0, an infinity as the largest finite number. An end of a range with 0 is on its side of 0. */
static ptx_val range_end(ptx_builder *b, const coding *c, ptx_val x, bool is_high)
{
    const float largest = element_largest(QDNN_DATA_F32);
    if (c->spec->quantize.range == QDNN_RANGE_TIGHT)
        return limited(b, nan_to_zero(b, x));
    if (takes_infinite_ends(c))
        return x;
    return is_high ? ptx_min(b, x, ptx_f32(b, largest)) : ptx_max(b, x, ptx_f32(b, -largest));
}

/* Whether zeros are clamped integers between -128 and 255, all of which f16 and bf16 represent exactly, and
 * never -0, since the clamp's maximum of -0 and 0 is 0. */
static bool zero_is_small(const coding *c)
{
    return c->format->facts.zero_kind == QDNN_ZERO_POINT && c->spec->quantize.range == QDNN_RANGE_WITH_ZERO;
}

/* Other zeros of float type are rounded, limited to the largest finite number, and never -0. */
static ptx_val make_zero(ptx_builder *b, const coding *c, ptx_val lo, ptx_val scale)
{
    qdnnDataType_t type = c->spec->stored.zero_packed ? QDNN_DATA_F32 : c->spec->stored.zero;
    float largest = element_largest(type);
    ptx_val zero = c->format->codec->zero(b, c, lo, scale);
    if (largest == 0 || zero_is_small(c))
        return zero;
    zero = ptx_clamp(b, ptx_add(b, zero, ptx_f32(b, 0)), ptx_f32(b, -largest), ptx_f32(b, largest));
    return emit_round(b, type, zero);
}

group_made group_make(ptx_builder *b, const coding *c, const sidecars *s, ptx_val lo, ptx_val hi)
{
    bool is_signed = format_has_zero(c->format);
    ptx_val high = range_end(b, c, hi, true), low = is_signed ? range_end(b, c, lo, false) : lo;
    group_made g = {0};
    make_scale(b, c, s, low, high, &g);
    if (is_signed)
        g.zero = make_zero(b, c, low, g.scale);
    return g;
}

/* The stored form of a zero that is stored minus one; 0 is stored as the largest code. */
static ptx_val minus_one(ptx_builder *b, const coding *c, ptx_val zero)
{
    ptx_val less = ptx_sub(b, zero, ptx_f32(b, 1));
    return ptx_selp(b, ptx_f32(b, (float)format_largest_integer(c)), less, ptx_setp(b, PTX_EQ, zero, 0.0f));
}

void group_store_at(ptx_builder *b, const coding *c, const sidecars *s, const group_made *g,
                    ptx_val scale_index, ptx_val zero_index)
{
    const kernel_spec *spec = c->spec;
    qdnnDataType_t zero_type = spec->stored.zero_packed ? QDNN_DATA_F32 : spec->stored.zero;
    ptx_val address = ptx_at(b, s->scale, scale_index, scale_bytes(spec->stored.scale));
    if (g->code.kind != PTX_NOTHING)
        ptx_st_global_u8(b, address, 0, g->code);
    else
        emit_store_exact(b, scale_data_type(spec->stored.scale), address, 0, g->scale);
    if (g->zero.kind == PTX_NOTHING)
        return;
    ptx_val zero = spec->stored.zero_minus_one ? minus_one(b, c, g->zero) : g->zero;
    emit_store_exact(b, zero_type, ptx_at(b, s->zero, zero_index, element_bytes(zero_type)), 0, zero);
}

void group_store(ptx_builder *b, const coding *c, const sidecars *s, const group_made *g, ptx_val index)
{
    group_store_at(b, c, s, g, index, index);
}
