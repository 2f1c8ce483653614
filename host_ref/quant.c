/* Computing scales, quantizing and dequantizing, in terms of codecs, layouts and groups. */
#include "host_ref/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Scale ---- */

/* Comparisons with NaN are false, so NaN is ignored. */
static void range_add(group_range *range, float value)
{
    if (value < range->lo)
        range->lo = value;
    if (value > range->hi)
        range->hi = value;
}

/* Indexed by group number. The caller frees it. */
static group_range *ranges_of(const tensor *t, const void *x, const ref_arrays *in)
{
    int64_t total = hr_group_total(t);
    group_range *ranges = malloc((size_t)total * sizeof *ranges);
    hr_require(ranges != NULL, "out of memory for %lld groups", (long long)total);
    for (int64_t i = 0; i < total; i++)
        ranges[i] = (group_range){INFINITY, -INFINITY};
    for (int64_t row = 0; row < t->rows; row++)
        for (int64_t column = 0; column < t->columns; column++) {
            float value = saturated(hr_scalar_load(t->spec.data, x, row * t->columns + column));
            group_place place = hr_group_of(t, in, row, column);
            if (place.group != NO_GROUP)
                range_add(&ranges[hr_group_number(t, place)], value);
        }
    return ranges;
}

static void make_global(const tensor *t, const group_range *ranges, const ref_arrays *out)
{
    float absmax = 0.0f;
    for (int64_t i = 0; i < hr_group_total(t); i++)
        absmax = larger(hr_absmax_of(ranges[i]), absmax);
    *out->global_scale = hr_global_from(t, absmax);
}

static void make_scales(const tensor *t, const group_range *ranges, const ref_arrays *out)
{
    int64_t total = hr_group_total(t);
    float *scales = malloc((size_t)total * sizeof *scales);
    hr_require(scales != NULL, "out of memory for %lld scales", (long long)total);
    float global = hr_load_global(t, out);
    for (int64_t i = 0; i < total; i++)
        scales[i] = hr_scale_from(t, ranges[i], global);
    hr_store_scales(t, out, scales);
    free(scales);
}

/* Uses the scales as stored. */
static void make_zeros(const tensor *t, const group_range *ranges, const ref_arrays *out)
{
    memset(out->zero, 0, (size_t)hr_zero_bytes(t));
    for (int64_t i = 0; i < hr_group_total(t); i++) {
        group_place place = hr_group_numbered(t, i);
        hr_store_zero(t, out, place, hr_zero_from(t, ranges[i], hr_load_scale(t, out, place)));
    }
}

void hr_scale(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x, const ref_arrays *out)
{
    tensor t = hr_tensor_of(spec, rows, columns);
    if (t.plain || hr_group_total(&t) == 0)
        return;
    group_range *ranges = ranges_of(&t, x, out);
    if (spec->global_scale)
        make_global(&t, ranges, out);
    if (!spec->no_scale)
        make_scales(&t, ranges, out);
    if (spec->zero_kind != QDNN_ZERO_NONE)
        make_zeros(&t, ranges, out);
    free(ranges);
}

/* ---- Quantize ---- */

float hr_quotient(const tensor *t, float x, float scale)
{
    if (t->spec.division == QDNN_DIVIDE_EXACT)
        return x / scale;
    float reciprocal = 1.0f / scale;
    return x * reciprocal;
}

/* A zero of integer type is added after rounding, one of float type before. */
static unsigned encode_integer(const tensor *t, float v, float zero)
{
    float q;
    if (t->spec.zero_kind != QDNN_ZERO_POINT)
        q = round_integral(v, t->spec.rounding);
    else if (hr_zero_is_float(&t->spec))
        q = round_integral(v + zero, t->spec.rounding);
    else
        q = round_integral(v, t->spec.rounding) + zero;
    return t->codec.encode(&t->codec, clamp(q, t->codec.low, t->codec.high));
}

/* The complete scale: that of the group times the global one. */
static float whole_scale(const tensor *t, const ref_arrays *in, group_place place)
{
    float scale = hr_load_scale(t, in, place);
    return t->spec.global_scale ? scale * hr_load_global(t, in) : scale;
}

static unsigned encode(const tensor *t, const ref_arrays *in, group_place place, float x)
{
    float scale = whole_scale(t, in, place), zero = hr_load_zero(t, in, place), v;
    if (isnan(x) && !t->codec.has_nan)
        x = 0.0f;
    if (t->spec.zero_kind == QDNN_ZERO_MINIMUM)
        x = x - zero;
    if (t->spec.scale == QDNN_SCALE_E4M3 && !t->spec.no_scale && scale == 0.0f)
        v = 0.0f;
    else
        v = hr_quotient(t, x, scale);
    if (isnan(v) && !t->codec.has_nan)
        v = 0.0f;
    if (t->codec.family == CODEC_INTEGER)
        return encode_integer(t, v, zero);
    return t->codec.encode(&t->codec, v);
}

static void quantize_plain(const tensor *t, const void *x, const ref_arrays *io)
{
    for (int64_t i = 0; i < t->rows * t->columns; i++)
        hr_scalar_store(t->spec.storage, io->codes, i, hr_scalar_load(t->spec.data, x, i));
}

void hr_quantize(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
                 const ref_arrays *io)
{
    if (spec->block != QDNN_BLOCK_NONE) {
        hr_block_quantize_all(spec, rows, columns, x, io->codes);
        return;
    }
    tensor t = hr_tensor_of(spec, rows, columns);
    if (rows == 0 || columns == 0)
        return;
    if (t.plain) {
        quantize_plain(&t, x, io);
        return;
    }
    memset(io->codes, 0, (size_t)hr_code_bytes(&t));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            float value = saturated(hr_scalar_load(spec->data, x, row * columns + column));
            unsigned code = encode(&t, io, hr_group_of(&t, io, row, column), value);
            hr_put_code(io->codes, hr_place_of_code(&t, row, column), t.codec.bits, code);
        }
}

/* ---- Dequantize ---- */

float hr_decode_at(const tensor *t, const ref_arrays *in, int64_t row, int64_t column)
{
    if (t->plain)
        return hr_scalar_load(t->spec.storage, in->codes, row * t->columns + column);
    group_place place = hr_group_of(t, in, row, column);
    unsigned code = hr_get_code(in->codes, hr_place_of_code(t, row, column), t->codec.bits);
    float number = t->codec.decode(&t->codec, code);
    float zero = hr_load_zero(t, in, place);
    if (t->spec.zero_kind == QDNN_ZERO_POINT)
        number = number - zero;
    float value = number * hr_load_scale(t, in, place);
    if (t->spec.zero_kind == QDNN_ZERO_MINIMUM)
        value = value + zero;
    if (t->spec.global_scale)
        value = value * hr_load_global(t, in);
    return hr_canonical(value);
}

float hr_decode(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in, int64_t row,
                int64_t column)
{
    if (spec->block != QDNN_BLOCK_NONE)
        return hr_block_decode_one(spec, rows, columns, in->codes, row, column);
    tensor t = hr_tensor_of(spec, rows, columns);
    return hr_decode_at(&t, in, row, column);
}

void hr_dequantize(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in, void *y)
{
    if (spec->block != QDNN_BLOCK_NONE) {
        hr_block_dequantize_all(spec, rows, columns, in->codes, y);
        return;
    }
    tensor t = hr_tensor_of(spec, rows, columns);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            hr_scalar_store(spec->data, y, row * columns + column, hr_decode_at(&t, in, row, column));
}

void hr_dequantize_rows(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *in,
                        const int32_t *index, int64_t count, void *y)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t column = 0; column < columns; column++) {
            bool known = index[i] >= 0 && index[i] < rows;
            float value =
                known ? hr_decode(spec, rows, columns, in, index[i], column) : ref_f32_from_bits(REF_NAN_F32);
            hr_scalar_store(spec->data, y, i * columns + column, value);
        }
}

/* ---- Repack ---- */

void ref_repack(const ref_quant_spec *from, const ref_quant_spec *to, int64_t rows, int64_t columns,
                const void *codes, void *repacked)
{
    tensor before = hr_tensor_of(from, rows, columns), after = hr_tensor_of(to, rows, columns);
    bool integers = before.codec.family == CODEC_INTEGER && after.codec.family == CODEC_INTEGER;
    hr_require(!before.plain && !after.plain && before.codec.bits == after.codec.bits &&
                   (integers || (from->storage == to->storage && before.codec.kind == after.codec.kind)),
               "codes are repacked into codes of the same kind and width");
    bool flips =
        (before.codec.kind == QDNN_CODE_TWOS_COMPLEMENT) != (after.codec.kind == QDNN_CODE_TWOS_COMPLEMENT);
    unsigned highest = flips ? 1u << (before.codec.bits - 1) : 0;
    memset(repacked, 0, (size_t)hr_code_bytes(&after));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            unsigned code = hr_get_code(codes, hr_place_of_code(&before, row, column), before.codec.bits);
            hr_put_code(repacked, hr_place_of_code(&after, row, column), after.codec.bits, code ^ highest);
        }
}
