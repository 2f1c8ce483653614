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
    if (c->spec->scale == QDNN_SCALE_E8M0)
        return ptx_rcp(b, scale);
    ptx_val divisor = s->global_scale.kind != PTX_NOTHING ? ptx_mul(b, scale, s->global_scale) : scale;
    if (c->spec->division == QDNN_DIVIDE_EXACT)
        return divisor;
    ptx_val reciprocal = ptx_rcp(b, divisor);
    if (c->spec->scale != QDNN_SCALE_E4M3)
        return reciprocal;
    return ptx_selp(b, ptx_f32(b, 0), reciprocal, ptx_setp(b, PTX_EQ, divisor, 0.0f));
}

group_values group_of_numbers(ptx_builder *b, const coding *c, const sidecars *s, ptx_val scale, ptx_val zero)
{
    return (group_values){.scale = scale, .divisor = divisor_of(b, c, s, scale), .zero = zero};
}

ptx_val group_load_scale(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index)
{
    qdnnScaleType_t type = c->spec->scale;
    return c->spec->nested ? load_nested(b, s, index)
                           : emit_load_scale(b, type, ptx_at(b, s->scale, index, scale_bytes(type)), 0);
}

/* GPTQ's first version stores zeros minus one; the largest code then stands for 2^bits, or for 0 if zeros
 * wrap. */
ptx_val group_zero_from(ptx_builder *b, const coding *c, ptx_val stored)
{
    if (!c->spec->zero_minus_one)
        return stored;
    ptx_val zero = ptx_add(b, stored, ptx_f32(b, 1));
    if (!c->spec->zero_wraps)
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
            b, c, emit_load(b, spec->zero, ptx_at(b, s->zero, index, element_bytes(spec->zero)), 0));
    return group_of_numbers(b, c, s, group_load_scale(b, c, s, index), zero);
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
    if (c->spec->groups == QDNN_GROUPS_DEFAULT)
        return unit;
    if (kind == QDNN_ZERO_POINT)
        unit = ptx_sub(b, unit, group->zero);
    ptx_val value = ptx_mul(b, unit, group->scale);
    if (s->global_scale.kind != PTX_NOTHING)
        value = ptx_mul(b, value, s->global_scale);
    return kind == QDNN_ZERO_MINIMUM ? ptx_add(b, value, group->zero) : value;
}

/* Infinities become the largest finite number; NaN stays if there is a code for it, and otherwise becomes
 * 0. */
static ptx_val finite(ptx_builder *b, const coding *c, ptx_val x)
{
    ptx_val largest = ptx_f32(b, element_largest(QDNN_DATA_F32));
    ptx_val clamped = ptx_clamp(b, x, ptx_neg(b, largest), largest);
    ptx_val of_nan = c->format->codec->has_nan ? x : ptx_f32(b, 0);
    return ptx_selp(b, of_nan, clamped, ptx_setp(b, PTX_NAN, x, x));
}

/* Whether infinities and NaN need not be replaced before the division. Symmetric integer codes come from a
 * conversion that saturates and turns NaN into 0. Divided by a finite f16 scale, the largest f32 exceeds all
 * codes, just as an infinity does; divided by an infinite scale, both give 0. */
static bool takes_infinities(const coding *c)
{
    return c->format->codec == &codec_integer && c->format->facts.zero_kind == QDNN_ZERO_NONE &&
           c->spec->scale == QDNN_SCALE_F16;
}

ptx_val group_quotient(ptx_builder *b, const coding *c, const group_values *group, ptx_val x)
{
    const kernel_spec *spec = c->spec;
    ptx_val value = takes_infinities(c) ? x : finite(b, c, x);
    if (spec->groups == QDNN_GROUPS_DEFAULT)
        return value;
    if (c->format->facts.zero_kind == QDNN_ZERO_MINIMUM)
        value = ptx_sub(b, value, group->zero);
    bool by_product = spec->scale == QDNN_SCALE_E8M0 || spec->division == QDNN_DIVIDE_RECIPROCAL;
    ptx_val quotient = by_product ? ptx_mul(b, value, group->divisor) : ptx_div(b, value, group->divisor);
    if (spec->scale != QDNN_SCALE_E4M3)
        return quotient;
    /* if the scale was rounded to 0, all codes are 0 */
    return ptx_selp(b, ptx_f32(b, 0), quotient, ptx_setp(b, PTX_EQ, group->divisor, 0.0f));
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
    uint32_t addend = mx_addend(c->format->number, c->spec->mx_rounding);
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
    bool is_table = c->format->codec == &codec_nf4 || c->format->codec == &codec_fp4_bnb;
    return is_table && c->spec->floor == 0 ? 0 : element_smallest(data);
}

/* A scale that may be 0 is an absmax: never less than 0, and finite unless a narrower type rounds it to infinity. */
static ptx_val limited(ptx_builder *b, qdnnDataType_t data, ptx_val scale, float least)
{
    const float largest = element_largest(data);
    if (least > 0)
        return ptx_clamp(b, scale, ptx_f32(b, least), ptx_f32(b, largest));
    return data == QDNN_DATA_F32 ? scale : ptx_min(b, scale, ptx_f32(b, largest));
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
    qdnnScaleType_t type = c->spec->scale;
    if (type == QDNN_SCALE_E8M0) {
        g->code = mx_exponent(b, c, hi);
        g->scale = e8m0_decode(b, g->code);
        return;
    }
    ptx_val scale = s->global_scale.kind != PTX_NOTHING ? scale_under_global(b, c, s, hi)
                                                        : c->format->codec->scale(b, c, lo, hi);
    if (type == QDNN_SCALE_E4M3) {
        g->code = minifloat_encode(b, &float_e4m3, scale);
        g->scale = minifloat_decode(b, &float_e4m3, g->code, 0);
        return;
    }
    qdnnDataType_t data = scale_data_type(type);
    g->scale = limited(b, data, emit_round(b, data, scale), least_scale(c, data));
}

/* An empty range (NaN) counts as 0, an infinity as the largest finite number. */
static ptx_val range_end(ptx_builder *b, const coding *c, ptx_val x)
{
    ptx_val largest = ptx_f32(b, element_largest(QDNN_DATA_F32));
    bool may_be_nan = c->spec->range == QDNN_RANGE_TIGHT;
    return ptx_clamp(b, may_be_nan ? nan_to_zero(b, x) : x, ptx_neg(b, largest), largest);
}

/* Whether zeros are clamped integers between -128 and 255, all of which f16 and bf16 represent exactly, and
 * never -0, since the clamp's maximum of -0 and 0 is 0. */
static bool zero_is_small(const coding *c)
{
    return c->format->facts.zero_kind == QDNN_ZERO_POINT && c->spec->range == QDNN_RANGE_WITH_ZERO;
}

/* Other zeros of float type are rounded, limited to the largest finite number, and never -0. */
static ptx_val make_zero(ptx_builder *b, const coding *c, ptx_val lo, ptx_val scale)
{
    qdnnDataType_t type = c->spec->zero_packed ? QDNN_DATA_F32 : c->spec->zero;
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
    ptx_val high =
        is_signed ? range_end(b, c, hi) : ptx_min(b, hi, ptx_f32(b, element_largest(QDNN_DATA_F32)));
    ptx_val low = is_signed ? range_end(b, c, lo) : lo;
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
    qdnnDataType_t zero_type = spec->zero_packed ? QDNN_DATA_F32 : spec->zero;
    ptx_val address = ptx_at(b, s->scale, scale_index, scale_bytes(spec->scale));
    if (g->code.kind != PTX_NOTHING)
        ptx_st_global_u8(b, address, 0, g->code);
    else
        emit_store_exact(b, scale_data_type(spec->scale), address, 0, g->scale);
    if (g->zero.kind == PTX_NOTHING)
        return;
    ptx_val zero = spec->zero_minus_one ? minus_one(b, c, g->zero) : g->zero;
    emit_store_exact(b, zero_type, ptx_at(b, s->zero, zero_index, element_bytes(zero_type)), 0, zero);
}

void group_store(ptx_builder *b, const coding *c, const sidecars *s, const group_made *g, ptx_val index)
{
    group_store_at(b, c, s, g, index, index);
}
