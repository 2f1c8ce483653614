/* Scale, quantize + pack and unpack + dequantize of the 4-bit formats, with a scale a group, a channel or a
 * tensor.
 *
 * What differs from format to format is one row of the table `formats`; the three operations at the end of
 * the file are written once over it. */
#include "host_ref/host_ref.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* What the scale of a group is made from. NaN left out, and 0 always within. */
typedef struct {
    float lo, hi, absmax;
} group_range;

typedef struct {
    qdnnDataType_t storage;
    qdnnZeroKind_t zero_kind;
    /* The scale before it is rounded to its type. */
    float (*scale)(group_range range, float floor);
    /* The zero point that goes with the stored scale. Null: the format has none. */
    float (*zero)(group_range range, float scale);
    /* The code of a quotient x / scale that is not NaN. */
    unsigned (*encode)(float quotient, float zero, qdnnRounding_t rounding);
    /* The value of a code, in units of the scale. */
    float (*decode)(unsigned code, float zero);
} format_rules;

/* Steps that formats share. */

static float larger(float a, float b)
{
    return a > b ? a : b;
}

/* A NaN gives low. */
static float clamp(float x, float low, float high)
{
    if (!(x > low))
        return low;
    return x < high ? x : high;
}

/* Truncation and the difference are exact, so a tie is seen as exactly one half. */
static float round_ties_away(float x)
{
    float whole = truncf(x);
    if (x - whole >= 0.5f)
        return whole + 1.0f;
    if (x - whole <= -0.5f)
        return whole - 1.0f;
    return whole;
}

static float round_integral(float x, qdnnRounding_t rounding)
{
    return rounding == QDNN_ROUND_TIES_AWAY ? round_ties_away(x) : rintf(x);
}

/* INT4: symmetric, the code is the integer -8..7 plus 8. */

static float int4_scale(group_range range, float floor)
{
    return larger(range.absmax, floor) / 7.0f;
}

static unsigned int4_encode(float quotient, float zero, qdnnRounding_t rounding)
{
    (void)zero;
    int q = (int)clamp(round_integral(quotient, rounding), -8.0f, 7.0f);
    return (unsigned)(q + 8);
}

static float int4_decode(unsigned code, float zero)
{
    (void)zero;
    return (float)((int)code - 8);
}

/* INT4_ZP: codes 0..15, of which `zero` stands for the value 0. */

static float int4_zp_scale(group_range range, float floor)
{
    float width = range.hi - range.lo;
    if (isinf(width))
        return range.hi / 15.0f - range.lo / 15.0f;
    return larger(width, floor) / 15.0f;
}

static float int4_zp_zero(group_range range, float scale)
{
    return clamp(rintf(-range.lo / scale), 0.0f, 15.0f);
}

/* A caller's zero may be fractional: the sum is rounded once more, ties to even. */
static unsigned int4_zp_encode(float quotient, float zero, qdnnRounding_t rounding)
{
    float q = round_integral(quotient, rounding) + zero;
    return (unsigned)rintf(clamp(q, 0.0f, 15.0f));
}

static float int4_zp_decode(unsigned code, float zero)
{
    return (float)code - zero;
}

/* NF4: the code is the place in a table of 16 values in [-1, 1]. */

/* clang-format off */
static const uint32_t nf4_bits[16] = {
    0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0x00000000,
    0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000,
};
/* clang-format on */

static float nf4_scale(group_range range, float floor)
{
    (void)floor;
    return range.absmax;
}

static float nf4_decode(unsigned code, float zero)
{
    (void)zero;
    return ref_f32_from_bits(nf4_bits[code]);
}

/* Counts the midpoints below the quotient: the nearest entry, and the lower one on a midpoint. */
static unsigned nf4_encode(float quotient, float zero, qdnnRounding_t rounding)
{
    (void)rounding;
    unsigned code = 0;
    for (unsigned i = 0; i < 15; i++) {
        float midpoint = (nf4_decode(i, zero) + nf4_decode(i + 1, zero)) * 0.5f;
        if (midpoint < quotient)
            code++;
    }
    return code;
}

static const format_rules formats[] = {
    {QDNN_DATA_I4, QDNN_ZERO_NONE, int4_scale, NULL, int4_encode, int4_decode},
    {QDNN_DATA_I4, QDNN_ZERO_POINT, int4_zp_scale, int4_zp_zero, int4_zp_encode, int4_zp_decode},
    {QDNN_DATA_NF4, QDNN_ZERO_NONE, nf4_scale, NULL, nf4_encode, nf4_decode},
};

static void require(bool ok, const char *rule)
{
    if (ok)
        return;
    fprintf(stderr, "host_ref: %s\n", rule);
    abort();
}

/* The rules of the format, once the rest of the spec is known to be sound. */
static const format_rules *rules_of(const ref_quant_spec *spec, int64_t n)
{
    require(n >= 0, "n must not be negative");
    require(spec->group_size >= 1, "group_size must be at least 1");
    require(spec->channels >= 0, "channels must not be negative");
    require(spec->channels == 0 || spec->group_size <= INT64_MAX / 2 / spec->channels,
            "group_size * channels must fit");
    require(spec->floor >= 0.0f && spec->floor <= FLT_MAX, "floor must be finite and not negative");
    require(spec->data != QDNN_DATA_U8, "data must be F32, F16 or BF16");
    require(ref_scale_data_type(spec->scale) != 0, "scale must be F32, F16 or BF16");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].storage == spec->storage && formats[i].zero_kind == spec->zero_kind)
            return &formats[i];
    require(false, "the format has no row in the table");
    return NULL;
}

/* Sizes and places. */

int64_t ref_group_count(const ref_quant_spec *spec, int64_t n)
{
    if (n > 0 && spec->channels > 0)
        return spec->channels;
    return n / spec->group_size + (n % spec->group_size != 0);
}

static int64_t group_of(const ref_quant_spec *spec, int64_t index)
{
    int64_t run = index / spec->group_size;
    return spec->channels > 0 ? run % spec->channels : run;
}

int64_t ref_packed_bytes(int64_t n)
{
    return n / 2 + n % 2;
}

static int nibble_shift(int64_t index, qdnnNibbleOrder_t order)
{
    bool even = index % 2 == 0;
    bool low = order == QDNN_NIBBLE_LOW_FIRST ? even : !even;
    return low ? 0 : 4;
}

/* Codes are put in order, so the even element opens its byte and leaves the other nibble 0. */
static void put_code(uint8_t *codes, int64_t index, qdnnNibbleOrder_t order, unsigned code)
{
    unsigned before = index % 2 == 0 ? 0 : codes[index / 2];
    codes[index / 2] = (uint8_t)(before | code << nibble_shift(index, order));
}

static unsigned get_code(const uint8_t *codes, int64_t index, qdnnNibbleOrder_t order)
{
    return codes[index / 2] >> nibble_shift(index, order) & 15u;
}

/* An element as scale and quantize see it: infinities are the largest finite numbers, a NaN stays. */
static float load_finite(const ref_quant_spec *spec, const void *x, int64_t index)
{
    float value = ref_scalar_load(spec->data, x, index);
    if (isinf(value))
        return value > 0.0f ? FLT_MAX : -FLT_MAX;
    return value;
}

static float load_zero(const ref_quant_spec *spec, const format_rules *rules, const void *zero, int64_t group)
{
    return rules->zero ? ref_scalar_load(spec->zero, zero, group) : 0.0f;
}

/* The operations. */

/* Comparisons with NaN are false, which leaves it out. */
static void range_add(group_range *range, float value)
{
    if (value < range->lo)
        range->lo = value;
    if (value > range->hi)
        range->hi = value;
}

/* A group is one run of elements; with channels, every channels-th run from the group's first on. */
static group_range range_of(const ref_quant_spec *spec, const void *x, int64_t n, int64_t group)
{
    group_range range = {0.0f, 0.0f, 0.0f};
    int64_t begin = group * spec->group_size;
    while (begin < n) {
        int64_t count = n - begin < spec->group_size ? n - begin : spec->group_size;
        for (int64_t i = begin; i < begin + count; i++)
            range_add(&range, load_finite(spec, x, i));
        if (spec->channels == 0)
            break;
        begin += spec->group_size * spec->channels;
    }
    range.absmax = larger(-range.lo, range.hi);
    return range;
}

/* Rounds the scale to its type, keeps it positive and finite, and returns what was stored. */
static float store_scale(qdnnDataType_t type, void *scale, int64_t group, float value)
{
    ref_scalar_store(type, scale, group, value);
    float rounded = ref_scalar_load(type, scale, group);
    float stored = clamp(rounded, ref_scalar_smallest(type), ref_scalar_largest(type));
    ref_scalar_store(type, scale, group, stored);
    return stored;
}

void ref_scale(const ref_quant_spec *spec, const void *x, int64_t n, void *scale, void *zero)
{
    const format_rules *rules = rules_of(spec, n);
    for (int64_t group = 0; group < ref_group_count(spec, n); group++) {
        group_range range = range_of(spec, x, n, group);
        float stored = store_scale(ref_scale_data_type(spec->scale), scale, group, rules->scale(range, spec->floor));
        if (rules->zero)
            ref_scalar_store(spec->zero, zero, group, rules->zero(range, stored));
    }
}

static float divide(float x, float scale, qdnnDivision_t division)
{
    if (division == QDNN_DIVIDE_EXACT)
        return x / scale;
    float reciprocal = 1.0f / scale;
    return x * reciprocal;
}

void ref_quantize(const ref_quant_spec *spec, const void *x, int64_t n, const void *scale, const void *zero,
                  uint8_t *codes)
{
    const format_rules *rules = rules_of(spec, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t group = group_of(spec, i);
        float s = ref_scalar_load(ref_scale_data_type(spec->scale), scale, group);
        float z = load_zero(spec, rules, zero, group);
        float quotient = divide(load_finite(spec, x, i), s, spec->division);
        if (isnan(quotient))
            quotient = 0.0f;
        put_code(codes, i, spec->nibble_order, rules->encode(quotient, z, spec->rounding));
    }
}

void ref_dequantize(const ref_quant_spec *spec, const uint8_t *codes, int64_t n, const void *scale,
                    const void *zero, void *y)
{
    const format_rules *rules = rules_of(spec, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t group = group_of(spec, i);
        float s = ref_scalar_load(ref_scale_data_type(spec->scale), scale, group);
        float z = load_zero(spec, rules, zero, group);
        float units = rules->decode(get_code(codes, i, spec->nibble_order), z);
        ref_scalar_store(spec->data, y, i, units * s);
    }
}
