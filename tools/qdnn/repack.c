/* Converting values to another format without loss. */
#include "tools/qdnn/repack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/qdnn/rewrite.h"

/* ---- the scale of each element ---- */

/* Where a block format has its codes, and the byte that makes each code 1. */
typedef struct block_ones {
    qdnnBlockFormat_t block;
    int elements, bytes;
    struct {
        int from, bytes;
        uint8_t fill;
    } parts[2];
} block_ones;

static const block_ones ones_of[] = {
    {QDNN_BLOCK_Q4_0, 32, 18, {{2, 16, 0x99}, {0, 0, 0}}},
    {QDNN_BLOCK_Q5_0, 32, 22, {{2, 4, 0xFF}, {6, 16, 0x11}}},
    {QDNN_BLOCK_Q8_0, 32, 34, {{2, 32, 0x01}, {0, 0, 0}}},
    {QDNN_BLOCK_MXFP4, 32, 17, {{1, 16, 0x22}, {0, 0, 0}}},
    {QDNN_BLOCK_NVFP4, 64, 36, {{4, 32, 0x22}, {0, 0, 0}}},
};

static const block_ones *find_ones(qdnnBlockFormat_t block)
{
    for (size_t i = 0; i < sizeof ones_of / sizeof ones_of[0]; i++)
        if (ones_of[i].block == block)
            return &ones_of[i];
    return NULL;
}

static void fill_blocks(const block_ones *ones, uint8_t *codes, size_t bytes)
{
    for (size_t at = 0; at + (size_t)ones->bytes <= bytes; at += (size_t)ones->bytes)
        for (int i = 0; i < 2; i++)
            memset(codes + at + ones->parts[i].from, ones->parts[i].fill, (size_t)ones->parts[i].bytes);
}

/* Fills in codes that all represent 1, so that the weight decodes to its scales. */
static void fill_codes(const tensor *t, ref_quant_spec spec, const float *ones, void *codes)
{
    ref_arrays arrays = {.codes = codes};
    spec.no_scale = true;
    spec.nested = spec.group_index = false;
    spec.global_scale = 0;
    ref_quantize(&spec, t->rows, t->columns, ones, &arrays);
}

static bool decode_scales(const tensor *t, float *scales)
{
    ref_quant_spec spec = reference_spec(t);
    ref_arrays arrays = reference_arrays(t);
    const block_ones *blocks = find_ones(spec.block);
    if (is_plain(t) || spec.no_scale ? !blocks : spec.block && !blocks)
        return true; /* every scale is 1, or an element has no single scale */
    uint8_t *codes = tool_alloc(t->bytes[QDNN_OPERAND_CODES]);
    if (!codes)
        return false;
    memcpy(codes, arrays.codes, t->bytes[QDNN_OPERAND_CODES]);
    spec.zero_kind = QDNN_ZERO_NONE;
    spec.zero_packed = spec.zero_minus_one = spec.zero_wraps = false;
    if (blocks)
        fill_blocks(blocks, codes, t->bytes[QDNN_OPERAND_CODES]);
    else
        fill_codes(t, spec, scales, codes);
    arrays.codes = codes;
    ref_dequantize(&spec, t->rows, t->columns, &arrays, scales);
    free(codes);
    return true;
}

float *repack_scales(const tensor *t)
{
    int64_t n = t->rows * t->columns;
    float *scales = tool_alloc((size_t)n * sizeof *scales);
    for (int64_t i = 0; scales && i < n; i++)
        scales[i] = 1;
    if (!scales || decode_scales(t, scales))
        return scales;
    free(scales);
    return NULL;
}

qdnnScaleType_t repack_scale_type(const tensor *t)
{
    ref_quant_spec spec = reference_spec(t);
    if (spec.block)
        return QDNN_SCALE_F16;
    return spec.scale <= QDNN_SCALE_BF16 ? spec.scale : QDNN_SCALE_F32;
}

int64_t repack_group(const tensor *t)
{
    ref_quant_spec spec = reference_spec(t);
    const block_ones *blocks = find_ones(spec.block);
    int64_t k = t->how.transposed ? t->rows : t->columns;
    if (spec.block)
        return blocks && blocks->block != QDNN_BLOCK_NVFP4 ? blocks->elements : 16;
    return spec.no_scale || spec.channels || spec.group_size > k ? k : spec.group_size;
}

/* ---- blocks ---- */

static int nearest_code(float value, float scale, int low, int high)
{
    float q = rintf(value / scale);
    return q >= (float)low && q <= (float)high ? (int)q : 0; /* also for NaN: the comparison decides */
}

static unsigned nearest_e2m1(float value, float scale)
{
    float q = value / scale;
    return q == q ? ref_f32_to_minifloat(REF_E2M1, q) : 0;
}

static void put_half(uint8_t *at, float scale)
{
    uint16_t bits = ref_f32_to_f16(scale);
    memcpy(at, &bits, sizeof bits);
}

/* Only powers of two have an exponent; others fail the comparison. */
static uint8_t e8m0_of(float scale)
{
    int exponent = 0;
    if (isfinite(scale) && scale > 0)
        frexpf(scale, &exponent);
    return (uint8_t)(exponent + 126 > 0 ? exponent + 126 : 0);
}

static void pack_q4_0(const float *v, const float *s, uint8_t *out)
{
    put_half(out, s[0]);
    for (int i = 0; i < 16; i++)
        out[2 + i] = (uint8_t)(nearest_code(v[i], s[i], -8, 7) + 8) |
                     (uint8_t)((nearest_code(v[i + 16], s[i + 16], -8, 7) + 8) << 4);
}

static void pack_q5_0(const float *v, const float *s, uint8_t *out)
{
    put_half(out, s[0]);
    memset(out + 2, 0, 20);
    for (int i = 0; i < 32; i++) {
        unsigned code = (unsigned)(nearest_code(v[i], s[i], -16, 15) + 16);
        out[2 + i / 8] |= (uint8_t)(code >> 4 << i % 8);
        out[6 + i % 16] |= (uint8_t)((code & 15) << (i < 16 ? 0 : 4));
    }
}

static void pack_q8_0(const float *v, const float *s, uint8_t *out)
{
    put_half(out, s[0]);
    for (int i = 0; i < 32; i++)
        out[2 + i] = (uint8_t)nearest_code(v[i], s[i], -128, 127);
}

static void pack_mxfp4(const float *v, const float *s, uint8_t *out)
{
    out[0] = e8m0_of(s[0]);
    for (int i = 0; i < 16; i++)
        out[1 + i] = (uint8_t)(nearest_e2m1(v[i], s[i]) | nearest_e2m1(v[i + 16], s[i + 16]) << 4);
}

static void pack_nvfp4(const float *v, const float *s, uint8_t *out)
{
    for (int part = 0; part < 4; part++) {
        const float *pv = v + 16 * part, *ps = s + 16 * part;
        out[part] = (uint8_t)ref_f32_to_minifloat(REF_E4M3, ps[0]);
        for (int i = 0; i < 8; i++)
            out[4 + 8 * part + i] =
                (uint8_t)(nearest_e2m1(pv[i], ps[i]) | nearest_e2m1(pv[i + 8], ps[i + 8]) << 4);
    }
}

static bool pack_blocks(tensor *to, qdnnBlockFormat_t block, const float *values, const float *scales)
{
    static const struct {
        qdnnBlockFormat_t block;
        void (*pack)(const float *v, const float *s, uint8_t *out);
    } packers[] = {{QDNN_BLOCK_Q4_0, pack_q4_0},
                   {QDNN_BLOCK_Q5_0, pack_q5_0},
                   {QDNN_BLOCK_Q8_0, pack_q8_0},
                   {QDNN_BLOCK_MXFP4, pack_mxfp4},
                   {QDNN_BLOCK_NVFP4, pack_nvfp4}};
    const block_ones *facts = find_ones(block);
    uint8_t *out = to->host[QDNN_OPERAND_CODES];
    for (size_t i = 0; facts && i < sizeof packers / sizeof packers[0]; i++) {
        if (packers[i].block != block)
            continue;
        for (int64_t at = 0; at < to->rows * to->columns; at += facts->elements, out += facts->bytes)
            packers[i].pack(values + at, scales + at, out);
        return true;
    }
    return false;
}

/* ---- arrays ---- */

static void store_scale(qdnnScaleType_t type, void *array, int64_t index, float scale)
{
    switch (type) {
    case QDNN_SCALE_E4M3:
        ((uint8_t *)array)[index] = (uint8_t)ref_f32_to_minifloat(REF_E4M3, scale);
        return;
    case QDNN_SCALE_E8M0:
        ((uint8_t *)array)[index] = e8m0_of(scale);
        return;
    default:
        ref_scalar_store(ref_scale_data_type(type), array, index, scale);
    }
}

/* The scale of a group is that of its first element; groups run along rows. */
static bool fill_arrays(tensor *to, const ref_quant_spec *spec, const float *values, const float *scales)
{
    ref_arrays arrays = reference_arrays(to);
    int64_t size = spec->group_size < to->columns ? spec->group_size : to->columns, index = 0;
    if (spec->zero_kind || spec->nested)
        return false;
    for (int64_t row = 0; row < to->rows && size > 0; row++)
        for (int64_t k = 0; k < to->columns; k += size)
            store_scale(spec->scale, arrays.scale, index++, scales[row * to->columns + k]);
    if (spec->global_scale)
        *arrays.global_scale = 1;
    ref_quantize(spec, to->rows, to->columns, values, &arrays);
    return true;
}

bool repack_fill(tensor *to, const float *values, const float *scales)
{
    ref_quant_spec spec = reference_spec(to);
    if (is_plain(to)) {
        round_plain(to, values);
        return true;
    }
    return spec.block ? pack_blocks(to, spec.block, values, scales) : fill_arrays(to, &spec, values, scales);
}

bool repack_holds(const tensor *to, const float *values, int64_t *at)
{
    int64_t n = to->rows * to->columns;
    float *y = tool_alloc((size_t)n * sizeof *y);
    *at = -1;
    if (!y)
        return false;
    reference_dequantize(to, y);
    for (int64_t i = 0; i < n && *at < 0; i++)
        if (y[i] != values[i] && (y[i] == y[i] || values[i] == values[i]))
            *at = i;
    free(y);
    return *at < 0;
}
