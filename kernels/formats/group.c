/* The numbers of a group: from memory to values, and from a reduced range to memory. */
#include "kernels/formats/format.h"

/* ---- Reading ---- */

static ptx_val load_nested(ptx_builder *b, const sidecars *s, ptx_val index)
{
    ptx_val byte = ptx_ld_global_nc(b, PTX_U8, ptx_add(b, s->scale, index), 0);
    ptx_val entry = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, s->nested_map, byte, 4), 0);
    ptx_val outer = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, s->nested_scale, ptx_shr(b, index, 8), 4), 0);
    return ptx_add(b, ptx_mul(b, entry, outer), s->nested_offset);
}

/* What quantize divides by, or (a power of two, or on request) multiplies with. An E4M3 scale that rounded to 0 gives
 * 0 either way. */
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

group_values group_load(ptx_builder *b, const coding *c, const sidecars *s, ptx_val index)
{
    const kernel_spec *spec = c->spec;
    ptx_val zero = {0};
    ptx_val scale = spec->nested
                        ? load_nested(b, s, index)
                        : emit_load_scale(b, spec->scale, ptx_at(b, s->scale, index, scale_bytes(spec->scale)), 0);
    if (format_has_zero(c->format))
        zero = emit_load(b, spec->zero, ptx_at(b, s->zero, index, element_bytes(spec->zero)), 0);
    return group_of_numbers(b, c, s, scale, zero);
}

group_values group_without_scale(ptx_builder *b)
{
    return (group_values){.scale = ptx_f32(b, 1), .divisor = ptx_f32(b, 1), .zero = ptx_f32(b, 0)};
}

/* ---- Values ---- */

ptx_val group_decode(ptx_builder *b, const coding *c, const sidecars *s, const group_values *group, ptx_val unit)
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

/* An infinity becomes the largest finite number; a NaN stays where there is a code for it, and else becomes 0. */
static ptx_val finite(ptx_builder *b, const coding *c, ptx_val x)
{
    ptx_val largest = ptx_f32(b, element_largest(QDNN_DATA_F32));
    ptx_val clamped = ptx_clamp(b, x, ptx_neg(b, largest), largest);
    ptx_val of_nan = c->format->codec->has_nan ? x : ptx_f32(b, 0);
    return ptx_selp(b, of_nan, clamped, ptx_setp(b, PTX_NAN, x, x));
}

ptx_val group_quotient(ptx_builder *b, const coding *c, const group_values *group, ptx_val x)
{
    const kernel_spec *spec = c->spec;
    ptx_val value = finite(b, c, x);
    if (spec->groups == QDNN_GROUPS_DEFAULT)
        return value;
    if (c->format->facts.zero_kind == QDNN_ZERO_MINIMUM)
        value = ptx_sub(b, value, group->zero);
    bool by_product = spec->scale == QDNN_SCALE_E8M0 || spec->division == QDNN_DIVIDE_RECIPROCAL;
    ptx_val quotient = by_product ? ptx_mul(b, value, group->divisor) : ptx_div(b, value, group->divisor);
    if (spec->scale != QDNN_SCALE_E4M3)
        return quotient;
    /* a block whose scale rounded to 0 has codes of 0 */
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

/* What is added to the bits of an absmax so that a mantissa that is to count for the next power of two carries into
 * the exponent: for EVEN one that rounds up to it, for CEIL one above that of the largest number. */
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

/* The exponent of the MX rule, 0 to 254. The bits of an absmax have its exponent in place: a subnormal one is far
 * below what E8M0 reaches. */
static ptx_val mx_exponent(ptx_builder *b, const coding *c, ptx_val absmax)
{
    uint32_t addend = mx_addend(c->format->number, c->spec->mx_rounding);
    ptx_val bits = ptx_as(b, PTX_U32, absmax);
    if (addend)
        bits = ptx_add(b, bits, ptx_u32(b, addend));
    ptx_val exponent = ptx_as(b, PTX_S32, ptx_shr(b, bits, 23));
    return ptx_as(b, PTX_U32, ptx_clamp_s32(b, ptx_sub(b, exponent, (int)c->format->number->largest_exponent), 0, 254));
}

/* Tables have no floor: where the descriptor's is 0, the scale of zeros is 0. */
static float least_scale(const coding *c, qdnnDataType_t data)
{
    bool is_table = c->format->codec == &codec_nf4 || c->format->codec == &codec_fp4_bnb;
    return is_table && c->spec->floor == 0 ? 0 : element_smallest(data);
}

/* A global scale of 0 stands over scales of 0. */
static ptx_val scale_under_global(ptx_builder *b, const coding *c, const sidecars *s, ptx_val absmax)
{
    ptx_val scale = ptx_div(b, ptx_div(b, absmax, ptx_f32(b, c->format->number->largest)), s->global_scale);
    return ptx_selp(b, ptx_f32(b, 0), scale, ptx_setp(b, PTX_EQ, s->global_scale, 0.0f));
}

/* Stores the scale and returns what a reader will see. */
static ptx_val store_scale(ptx_builder *b, const coding *c, const sidecars *s, ptx_val lo, ptx_val hi, ptx_val index)
{
    qdnnScaleType_t type = c->spec->scale;
    ptx_val address = ptx_at(b, s->scale, index, scale_bytes(type));
    if (type == QDNN_SCALE_E8M0) {
        ptx_st_global_u8(b, address, 0, mx_exponent(b, c, hi));
        return hi; /* formats with such scales have no zeros that would depend on them */
    }
    ptx_val scale = c->format->codec->scale(b, c, lo, hi);
    if (type == QDNN_SCALE_E4M3) {
        if (s->global_scale.kind != PTX_NOTHING)
            scale = scale_under_global(b, c, s, hi);
        ptx_val code = minifloat_encode(b, &float_e4m3, scale);
        ptx_st_global_u8(b, address, 0, code);
        return minifloat_decode(b, &float_e4m3, code, 0);
    }
    qdnnDataType_t data = scale_data_type(type);
    ptx_val rounded = emit_round(b, data, scale);
    ptx_val stored =
        ptx_clamp(b, rounded, ptx_f32(b, least_scale(c, data)), ptx_f32(b, element_largest(data)));
    emit_store(b, data, address, 0, stored);
    return stored;
}

/* A range without a number counts as 0; an infinity as the largest finite number. */
static ptx_val range_end(ptx_builder *b, const coding *c, ptx_val x)
{
    ptx_val largest = ptx_f32(b, element_largest(QDNN_DATA_F32));
    bool may_be_nan = c->spec->range == QDNN_RANGE_TIGHT;
    return ptx_clamp(b, may_be_nan ? nan_to_zero(b, x) : x, ptx_neg(b, largest), largest);
}

/* Zeros of float type: never -0, and not beyond the largest number. */
static void store_zero(ptx_builder *b, const coding *c, const sidecars *s, ptx_val zero, ptx_val index)
{
    qdnnDataType_t type = c->spec->zero;
    float largest = element_largest(type);
    if (largest > 0)
        zero = ptx_clamp(b, ptx_add(b, zero, ptx_f32(b, 0)), ptx_f32(b, -largest), ptx_f32(b, largest));
    emit_store(b, type, ptx_at(b, s->zero, index, element_bytes(type)), 0, zero);
}

void group_store(ptx_builder *b, const coding *c, const sidecars *s, ptx_val lo, ptx_val hi, ptx_val index)
{
    bool is_signed = format_has_zero(c->format);
    ptx_val high = is_signed ? range_end(b, c, hi) : ptx_min(b, hi, ptx_f32(b, element_largest(QDNN_DATA_F32)));
    ptx_val low = is_signed ? range_end(b, c, lo) : lo;
    ptx_val scale = store_scale(b, c, s, low, high, index);
    if (is_signed)
        store_zero(b, c, s, c->format->codec->zero(b, c, low, scale), index);
}
