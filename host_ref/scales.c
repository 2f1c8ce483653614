/* Scales, zeros and the global scale as stored: their types, nested scales, packed zeros. */
#include "host_ref/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- The types of scales ---- */

static float load_e4m3(const void *scale, int64_t slot)
{
    return hr_minifloat_to_f32(REF_E4M3, ((const uint8_t *)scale)[slot]);
}

static void store_e4m3(void *scale, int64_t slot, float value)
{
    ((uint8_t *)scale)[slot] = (uint8_t)hr_f32_to_minifloat(REF_E4M3, value);
}

static float load_e8m0(const void *scale, int64_t slot)
{
    return hr_e8m0_to_f32(((const uint8_t *)scale)[slot]);
}

/* The value must be a power of two from 2^-127 up: scale_from produces no others. */
static void store_e8m0(void *scale, int64_t slot, float value)
{
    ((uint8_t *)scale)[slot] = (uint8_t)(ilogbf(value) + 127);
}

static float load_f32(const void *scale, int64_t slot)
{
    return hr_scalar_load(QDNN_DATA_F32, scale, slot);
}

static void store_f32(void *scale, int64_t slot, float value)
{
    hr_scalar_store(QDNN_DATA_F32, scale, slot, value);
}

static float load_f16(const void *scale, int64_t slot)
{
    return hr_scalar_load(QDNN_DATA_F16, scale, slot);
}

static void store_f16(void *scale, int64_t slot, float value)
{
    hr_scalar_store(QDNN_DATA_F16, scale, slot, value);
}

static float load_bf16(const void *scale, int64_t slot)
{
    return hr_scalar_load(QDNN_DATA_BF16, scale, slot);
}

static void store_bf16(void *scale, int64_t slot, float value)
{
    hr_scalar_store(QDNN_DATA_BF16, scale, slot, value);
}

/* A scale that we compute is clamped to [least, largest]. */
static const struct {
    int64_t size;
    float (*load)(const void *scale, int64_t slot);
    void (*store)(void *scale, int64_t slot, float value);
    float least, largest;
} scale_types[] = {
    [QDNN_SCALE_F32] = {4, load_f32, store_f32, 0x1p-149f, FLT_MAX},
    [QDNN_SCALE_F16] = {2, load_f16, store_f16, 0x1p-24f, 65504.0f},
    [QDNN_SCALE_BF16] = {2, load_bf16, store_bf16, 0x1p-133f, 0x1.FEp127f},
    [QDNN_SCALE_E4M3] = {1, load_e4m3, store_e4m3, 0.0f, 448.0f},
    [QDNN_SCALE_E8M0] = {1, load_e8m0, store_e8m0, 0x1p-127f, 0x1p127f},
};

int64_t hr_scale_size(const tensor *t)
{
    return t->spec.nested ? 1 : scale_types[t->spec.scale].size;
}

/* Table formats have no floor: if the descriptor's is 0, the scale of zeros is 0, as in bitsandbytes. */
static float least_scale(const tensor *t)
{
    if (t->codec.family == CODEC_TABLE && t->spec.floor == 0.0f)
        return 0.0f;
    return scale_types[t->spec.scale].least;
}

/* ---- Scales ---- */

float hr_load_global(const tensor *t, const ref_arrays *in)
{
    if (!t->spec.global_scale)
        return 1.0f;
    return t->spec.global_scale == 2 ? 1.0f / *in->global_scale : *in->global_scale;
}

static float load_nested(const ref_arrays *in, int64_t number)
{
    float unit = in->nested_map[((const uint8_t *)in->scale)[number]];
    float product = unit * in->nested_scale[number / 256];
    return product + *in->nested_offset;
}

float hr_load_scale(const tensor *t, const ref_arrays *in, group_place place)
{
    int64_t number = hr_group_number(t, place);
    if (t->spec.no_scale)
        return 1.0f;
    if (place.group == NO_GROUP)
        return ref_f32_from_bits(REF_NAN_F32);
    if (t->spec.nested)
        return load_nested(in, number);
    return scale_types[t->spec.scale].load(in->scale, hr_scale_slot(t, number));
}

/* Rounds first and clamps afterwards, so the result is a number of the type. */
static void store_scale(const tensor *t, void *scale, int64_t slot, float value)
{
    scale_types[t->spec.scale].store(scale, slot, value);
    float rounded = scale_types[t->spec.scale].load(scale, slot);
    float stored = clamp(rounded, least_scale(t), scale_types[t->spec.scale].largest);
    scale_types[t->spec.scale].store(scale, slot, stored);
}

/* 256 scales, minus the offset, are quantized like any table format, with their absmax as the scale. */
static void store_nested(const tensor *t, const ref_arrays *out, const float *scales, int64_t begin,
                         int64_t end)
{
    float absmax = 0.0f;
    for (int64_t i = begin; i < end; i++)
        absmax = larger(fabsf(scales[i] - *out->nested_offset), absmax);
    out->nested_scale[begin / 256] = absmax;
    for (int64_t i = begin; i < end; i++) {
        float v = hr_quotient(t, scales[i] - *out->nested_offset, absmax);
        if (isnan(v))
            v = 0.0f;
        ((uint8_t *)out->scale)[i] = (uint8_t)hr_nearest_entry(out->nested_map, 256, v);
    }
}

void hr_store_scales(const tensor *t, const ref_arrays *out, const float *scales)
{
    int64_t total = hr_group_total(t);
    if (t->spec.nested) {
        for (int64_t begin = 0; begin < total; begin += 256)
            store_nested(t, out, scales, begin, begin + 256 < total ? begin + 256 : total);
        return;
    }
    memset(out->scale, 0, (size_t)(hr_scale_slots(t) * hr_scale_size(t)));
    for (int64_t i = 0; i < total; i++)
        store_scale(t, out->scale, hr_scale_slot(t, i), scales[i]);
}

/* ---- Zeros ---- */

bool hr_zero_is_float(const ref_quant_spec *spec)
{
    return !spec->zero_packed &&
           (spec->zero == QDNN_DATA_F32 || spec->zero == QDNN_DATA_F16 || spec->zero == QDNN_DATA_BF16);
}

/* Words per stream of packed zeros; there is one stream per group, or one in all for flat groups. */
static int64_t zero_words(const tensor *t)
{
    return ceil_div((t->spec.groups == QDNN_GROUPS_FLAT ? t->groups : t->lines) * t->codec.bits, 32);
}

/* Packed along the lines: over columns if groups run down columns, over rows if they run along rows. */
static code_place place_of_zero(const tensor *t, group_place place)
{
    int64_t bit = place.line * t->codec.bits;
    if (t->spec.groups == QDNN_GROUPS_FLAT)
        return (code_place){0, 1, place.group * t->codec.bits};
    if (t->spec.groups == QDNN_GROUPS_ROWS)
        return (code_place){place.group, t->groups, bit};
    if (t->spec.layout == QDNN_LAYOUT_AWQ)
        bit = hr_awq_bit(place.line);
    return (code_place){place.group * zero_words(t), 1, bit};
}

int64_t hr_zero_bytes(const tensor *t)
{
    if (t->spec.zero_kind == QDNN_ZERO_NONE || t->plain)
        return 0;
    if (t->spec.zero_packed)
        return hr_group_total(t) == 0               ? 0
               : t->spec.groups == QDNN_GROUPS_FLAT ? zero_words(t) * 4
                                                    : zero_words(t) * t->groups * 4;
    return hr_group_total(t) * (int64_t)ref_scalar_size(t->spec.zero);
}

float hr_load_zero(const tensor *t, const ref_arrays *in, group_place place)
{
    float stored;
    if (t->spec.zero_kind == QDNN_ZERO_NONE || place.group == NO_GROUP)
        return 0.0f;
    if (t->spec.zero_packed)
        stored = t->codec.decode(&t->codec, hr_get_code(in->zero, place_of_zero(t, place), t->codec.bits));
    else
        stored = hr_scalar_load(t->spec.zero, in->zero, hr_group_number(t, place));
    if (!t->spec.zero_minus_one)
        return stored;
    return t->spec.zero_wraps && stored == t->codec.high ? 0.0f : stored + 1.0f;
}

/* Overflow of an f16 or bf16 gives its largest finite number. Adding 0 turns -0 into +0. */
static void store_float_zero(const tensor *t, const ref_arrays *out, group_place place, float zero)
{
    float largest = hr_scalar_largest(t->spec.zero);
    hr_scalar_store(t->spec.zero, out->zero, hr_group_number(t, place),
                    clamp(zero + 0.0f, -largest, largest));
}

void hr_store_zero(const tensor *t, const ref_arrays *out, group_place place, float zero)
{
    if (hr_zero_is_float(&t->spec)) {
        store_float_zero(t, out, place, zero);
        return;
    }
    if (t->spec.zero_minus_one)
        zero = zero == 0.0f ? t->codec.high : zero - 1.0f;
    if (t->spec.zero_packed)
        hr_put_code(out->zero, place_of_zero(t, place), t->codec.bits, t->codec.encode(&t->codec, zero));
    else
        hr_scalar_store(t->spec.zero, out->zero, hr_group_number(t, place), zero);
}
