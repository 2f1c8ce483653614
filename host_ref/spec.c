/* Validates a spec, fills in its defaults, and computes the sizes of the arrays. */
#include "host_ref/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void hr_refuse(const char *rule, ...)
{
    va_list arguments;
    va_start(arguments, rule);
    fprintf(stderr, "host_ref: ");
    vfprintf(stderr, rule, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

static bool is_plain(qdnnDataType_t storage)
{
    return storage == QDNN_DATA_F32 || storage == QDNN_DATA_F16 || storage == QDNN_DATA_BF16;
}

void hr_check_data(const ref_quant_spec *spec)
{
    hr_require(is_plain(spec->data) || spec->data == QDNN_DATA_F64, "data must be F32, F16, BF16 or F64");
}

static void check_groups(const tensor *t)
{
    const ref_quant_spec *s = &t->spec;
    hr_require(s->group_size >= 1, "group_size must be at least 1");
    hr_require(s->group_rows >= 1, "group_rows must not be negative");
    hr_require(s->channels >= 0, "channels must not be negative");
    hr_require(s->groups >= QDNN_GROUPS_FLAT && s->groups <= QDNN_GROUPS_COLUMNS, "unknown groups %d",
               (int)s->groups);
    if (s->groups == QDNN_GROUPS_FLAT)
        hr_require(s->group_rows == 1 && !s->scale_swizzle && !s->scale_order && !s->group_index,
                   "flat groups have no group_rows, swizzle, order or group_index");
    hr_require(s->channels == 0 || s->groups == QDNN_GROUPS_FLAT, "only flat groups have channels");
    hr_require(!s->group_index || s->groups == QDNN_GROUPS_COLUMNS, "group_index needs groups down columns");
}

static void check_scales(const tensor *t)
{
    const ref_quant_spec *s = &t->spec;
    hr_require(s->floor >= 0.0f && s->floor <= FLT_MAX, "floor must be finite and not negative");
    hr_require((unsigned)s->scale <= QDNN_SCALE_E8M0, "unknown type of scales %d", (int)s->scale);
    hr_require(s->global_scale >= 0 && s->global_scale <= 2, "global_scale must be 0, 1 or 2");
    hr_require(!s->global_scale || s->scale == QDNN_SCALE_E4M3, "a global scale needs E4M3 scales");
    hr_require(!s->no_scale || (!s->global_scale && !s->nested),
               "no_scale with a global scale or nested scales");
    hr_require(!s->nested || (s->scale == QDNN_SCALE_F32 && !s->scale_swizzle),
               "nested scales are F32, and not swizzled");
    hr_require(s->zero_kind == QDNN_ZERO_NONE || (!s->global_scale && s->scale != QDNN_SCALE_E8M0),
               "zeros and minima exclude a global scale and E8M0 scales");
}

/* Whether every integer zero that these codes can have fits into its type. */
static bool zeros_fit(qdnnDataType_t type, const codec *c)
{
    switch (type) {
    case QDNN_DATA_U8:
    case QDNN_DATA_U32:
        return c->low == 0.0f;
    case QDNN_DATA_I8:
        return c->high <= 127.0f;
    default:
        return true;
    }
}

static void check_zeros(const tensor *t)
{
    const ref_quant_spec *s = &t->spec;
    if (s->zero_kind == QDNN_ZERO_NONE)
        return;
    hr_require(s->zero_kind <= QDNN_ZERO_MINIMUM, "unknown kind of zero %d", (int)s->zero_kind);
    bool integer = s->zero_packed || s->zero == QDNN_DATA_U8 || s->zero == QDNN_DATA_I8 ||
                   s->zero == QDNN_DATA_U32 || s->zero == QDNN_DATA_I32;
    hr_require(integer || hr_zero_is_float(s), "zero must be U8, I8, U32, I32, F32, F16 or BF16, or packed");
    hr_require(!integer || s->zero_kind == QDNN_ZERO_POINT, "minima must be F32, F16 or BF16");
    hr_require(!integer || s->range == QDNN_RANGE_WITH_ZERO, "a tight range needs zeros of float type");
    hr_require(s->zero_packed || zeros_fit(s->zero, &t->codec),
               "zeros of codes from %d to %d do not fit their type", (int)t->codec.low, (int)t->codec.high);
    hr_require(!s->zero_minus_one || (integer && s->code == QDNN_CODE_UNSIGNED),
               "zero_minus_one is for integer zeros of unsigned codes");
}

static void check_layout(const tensor *t)
{
    const ref_quant_spec *s = &t->spec;
    if (s->layout == QDNN_LAYOUT_AWQ)
        hr_require(t->codec.bits == 4 && t->columns % 8 == 0, "AWQ has 4 bits and a multiple of 8 columns");
    hr_require(s->nibble_order == QDNN_NIBBLE_LOW_FIRST ||
                   (t->codec.bits == 4 && (s->layout == QDNN_LAYOUT_BYTES || s->layout == QDNN_LAYOUT_BLOCK)),
               "high first is for 4-bit codes in bytes");
    if (s->zero_packed && s->layout == QDNN_LAYOUT_AWQ && s->groups == QDNN_GROUPS_COLUMNS && t->groups > 0)
        hr_require(t->lines % 8 == 0, "AWQ packs zeros of a multiple of 8 columns");
}

static void resolve_codes(tensor *t)
{
    ref_quant_spec *s = &t->spec;
    t->codec = hr_codec_of(s->storage, s->code, s->bits, s->zero_kind);
    s->bits = t->codec.bits;
    s->code = t->codec.kind;
    if (s->groups == QDNN_GROUPS_DEFAULT)
        s->groups = hr_default_groups(s->layout);
    if (s->group_rows == 0)
        s->group_rows = 1;
    check_groups(t);
    check_scales(t);
    t->groups = hr_flat_or_lined_groups(s, t->rows, t->columns, &t->lines);
    check_zeros(t);
    check_layout(t);
}

tensor hr_tensor_of(const ref_quant_spec *spec, int64_t rows, int64_t columns)
{
    tensor t = {.spec = *spec, .rows = rows, .columns = columns, .plain = is_plain(spec->storage)};
    hr_require(rows >= 0 && columns >= 0, "rows and columns must not be negative");
    hr_require(rows == 0 || columns <= INT64_MAX / rows, "rows * columns must fit");
    hr_require(spec->block == QDNN_BLOCK_NONE, "blocks have no arrays of scales");
    hr_check_data(spec);
    if (!t.plain) /* plain values have neither codes nor scales */
        resolve_codes(&t);
    return t;
}

int64_t ref_group_count(const ref_quant_spec *spec, int64_t rows, int64_t columns)
{
    if (spec->block != QDNN_BLOCK_NONE)
        return 0;
    tensor t = hr_tensor_of(spec, rows, columns);
    return t.plain || spec->no_scale ? 0 : hr_group_total(&t);
}

ref_sizes ref_sizes_of(const ref_quant_spec *spec, int64_t rows, int64_t columns)
{
    if (spec->block != QDNN_BLOCK_NONE)
        return (ref_sizes){.codes = hr_block_array_bytes(spec, rows, columns)};
    tensor t = hr_tensor_of(spec, rows, columns);
    ref_sizes sizes = {.codes = hr_code_bytes(&t)};
    if (t.plain || rows == 0 || columns == 0)
        return sizes;
    if (!spec->no_scale)
        sizes.scale = hr_scale_slots(&t) * hr_scale_size(&t);
    sizes.zero = hr_zero_bytes(&t);
    if (spec->global_scale)
        sizes.global_scale = 4;
    if (spec->group_index)
        sizes.group_index = rows * 4;
    if (spec->nested) {
        sizes.nested_map = 256 * 4;
        sizes.nested_scale = ceil_div(hr_group_total(&t), 256) * 4;
        sizes.nested_offset = 4;
    }
    return sizes;
}
