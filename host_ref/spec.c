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

bool hr_deny(const hr_reason *why, const char *rule, ...)
{
    va_list arguments;
    va_start(arguments, rule);
    vsnprintf(why->text, why->size, rule, arguments);
    va_end(arguments);
    return false;
}

static bool is_plain(qdnnDataType_t storage)
{
    return storage == QDNN_DATA_F32 || storage == QDNN_DATA_F16 || storage == QDNN_DATA_BF16;
}

bool hr_data_is_legal(const ref_quant_spec *spec, const hr_reason *why)
{
    HR_RULE(is_plain(spec->data) || spec->data == QDNN_DATA_F64, "data must be F32, F16, BF16 or F64");
    return true;
}

static bool groups_are_legal(const tensor *t, const hr_reason *why)
{
    const ref_quant_spec *s = &t->spec;
    bool single = !s->scale_swizzle && !s->scale_order && !s->group_index;
    HR_RULE(s->group_size >= 1, "group_size must be at least 1");
    HR_RULE(s->group_rows >= 1, "group_rows must not be negative");
    HR_RULE(s->channels >= 0, "channels must not be negative");
    HR_RULE(s->groups >= QDNN_GROUPS_FLAT && s->groups <= QDNN_GROUPS_COLUMNS, "unknown groups %d",
            (int)s->groups);
    HR_RULE(s->groups != QDNN_GROUPS_FLAT || (s->group_rows == 1 && single),
            "flat groups have no group_rows, swizzle, order or group_index");
    HR_RULE(s->channels == 0 || s->groups == QDNN_GROUPS_FLAT, "only flat groups have channels");
    HR_RULE(!s->group_index || s->groups == QDNN_GROUPS_COLUMNS, "group_index needs groups down columns");
    HR_RULE(!s->no_scale || single, "no_scale with a swizzle, an order of scales or group_index");
    return true;
}

static bool scales_are_legal(const tensor *t, const hr_reason *why)
{
    const ref_quant_spec *s = &t->spec;
    bool is_float = t->codec.family == CODEC_FLOAT;
    HR_RULE(s->floor >= 0.0f && s->floor <= FLT_MAX, "floor must be finite and not negative");
    HR_RULE((unsigned)s->scale <= QDNN_SCALE_E8M0, "unknown type of scales %d", (int)s->scale);
    HR_RULE(s->global_scale >= 0 && s->global_scale <= 2, "global_scale must be 0, 1 or 2");
    HR_RULE(!s->global_scale || s->scale == QDNN_SCALE_E4M3, "a global scale needs E4M3 scales");
    HR_RULE(!s->no_scale || (!s->global_scale && !s->nested && s->zero_kind == QDNN_ZERO_NONE),
            "no_scale with a global scale, nested scales or zeros");
    HR_RULE(!s->nested || (s->scale == QDNN_SCALE_F32 && !s->scale_swizzle),
            "nested scales are F32, and not swizzled");
    HR_RULE(s->zero_kind == QDNN_ZERO_NONE || (!s->global_scale && s->scale != QDNN_SCALE_E8M0 && !s->nested),
            "zeros and minima exclude a global scale and E8M0 or nested scales");
    HR_RULE(is_float || (!s->global_scale && s->scale != QDNN_SCALE_E8M0),
            "a global scale and E8M0 scales need floating-point codes");
    return true;
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

static bool zeros_are_legal(const tensor *t, const hr_reason *why)
{
    const ref_quant_spec *s = &t->spec;
    if (s->zero_kind == QDNN_ZERO_NONE)
        return true;
    HR_RULE(s->zero_kind <= QDNN_ZERO_MINIMUM, "unknown kind of zero %d", (int)s->zero_kind);
    bool integer = s->zero_packed || s->zero == QDNN_DATA_U8 || s->zero == QDNN_DATA_I8 ||
                   s->zero == QDNN_DATA_U32 || s->zero == QDNN_DATA_I32;
    HR_RULE(integer || hr_zero_is_float(s), "zero must be U8, I8, U32, I32, F32, F16 or BF16, or packed");
    HR_RULE(!integer || s->zero_kind == QDNN_ZERO_POINT, "minima must be F32, F16 or BF16");
    HR_RULE(!integer || s->range == QDNN_RANGE_WITH_ZERO, "a tight range needs zeros of float type");
    HR_RULE(s->zero_packed || zeros_fit(s->zero, &t->codec),
            "zeros of codes from %d to %d do not fit their type", (int)t->codec.low, (int)t->codec.high);
    HR_RULE(!s->zero_minus_one || (integer && s->code == QDNN_CODE_UNSIGNED),
            "zero_minus_one is for integer zeros of unsigned codes");
    return true;
}

static bool layout_is_legal(const tensor *t, const hr_reason *why)
{
    const ref_quant_spec *s = &t->spec;
    bool awq = s->layout == QDNN_LAYOUT_AWQ;
    HR_RULE(!awq || (t->codec.bits == 4 && t->columns % 8 == 0),
            "AWQ has 4 bits and a multiple of 8 columns");
    HR_RULE(s->nibble_order == QDNN_NIBBLE_LOW_FIRST ||
                (t->codec.bits == 4 && (s->layout == QDNN_LAYOUT_BYTES || s->layout == QDNN_LAYOUT_BLOCK)),
            "high first is for 4-bit codes in bytes");
    HR_RULE(!awq || !s->zero_packed || s->zero_kind == QDNN_ZERO_NONE || s->groups != QDNN_GROUPS_COLUMNS ||
                s->group_rows == 1,
            "AWQ packs the zeros of eight columns: group_rows must be 1");
    return true;
}

/* Values that are stored unquantized have neither codes nor scales. */
static bool plain_is_legal(const ref_quant_spec *s, const hr_reason *why)
{
    HR_RULE(!s->bits && !s->code && !s->nibble_order && !s->zero_kind,
            "plain values have no code width, code kind, nibble order or zeros");
    HR_RULE(s->layout == QDNN_LAYOUT_BYTES || s->layout == QDNN_LAYOUT_BLOCK, "plain values are not packed");
    HR_RULE(!s->group_index && !s->scale_order && !s->scale_swizzle && !s->nested && !s->global_scale,
            "plain values have no group_index, and no order, swizzle, nesting or global scale of scales");
    return true;
}

static bool resolve_codes(tensor *t, const hr_reason *why)
{
    ref_quant_spec *s = &t->spec;
    if (!hr_codec_of(s, &t->codec, why))
        return false;
    s->bits = t->codec.bits;
    s->code = t->codec.kind;
    HR_RULE(hr_layout_is_known(s->layout), "unknown layout %d", (int)s->layout);
    if (s->groups == QDNN_GROUPS_DEFAULT)
        s->groups = hr_default_groups(s->layout);
    if (s->group_rows == 0)
        s->group_rows = 1;
    if (!groups_are_legal(t, why) || !scales_are_legal(t, why))
        return false;
    t->groups = hr_flat_or_lined_groups(s, t->rows, t->columns, &t->lines);
    return zeros_are_legal(t, why) && layout_is_legal(t, why);
}

bool hr_shape_is_legal(int64_t rows, int64_t columns, const hr_reason *why)
{
    HR_RULE(rows >= 0 && columns >= 0, "rows and columns must not be negative");
    HR_RULE(rows == 0 || columns <= INT64_MAX / rows, "rows * columns must fit");
    return true;
}

/* Fills in the defaults; returns false, with the violated rule, if there is no such tensor. */
static bool resolve(tensor *t, const hr_reason *why)
{
    HR_RULE(t->spec.block == QDNN_BLOCK_NONE, "blocks have no arrays of scales");
    if (!hr_shape_is_legal(t->rows, t->columns, why) || !hr_data_is_legal(&t->spec, why))
        return false;
    return t->plain ? plain_is_legal(&t->spec, why) : resolve_codes(t, why);
}

tensor hr_tensor_of(const ref_quant_spec *spec, int64_t rows, int64_t columns)
{
    char text[HR_REASON_BYTES];
    tensor t = {.spec = *spec, .rows = rows, .columns = columns, .plain = is_plain(spec->storage)};
    if (!resolve(&t, &(hr_reason){text, sizeof text}))
        hr_refuse("%s", text);
    return t;
}

/* What computing scales asks for in addition. */
static bool has_scales_to_compute(const ref_quant_spec *s, const hr_reason *why)
{
    HR_RULE(s->block == QDNN_BLOCK_NONE, "blocks hold their scales: they are quantized in one step");
    HR_RULE(!is_plain(s->storage) && !s->no_scale, "there are no scales to compute");
    HR_RULE(!s->group_index, "scales are computed for contiguous groups, without group_index");
    return true;
}

bool ref_is_legal(ref_operation operation, const ref_quant_spec *spec, int64_t rows, int64_t columns,
                  char *reason, size_t size)
{
    const hr_reason why = {reason, size};
    if (operation == REF_SCALE && !has_scales_to_compute(spec, &why))
        return false;
    if (spec->block != QDNN_BLOCK_NONE)
        return hr_blocks_are_legal(spec, rows, columns, operation == REF_QUANTIZE, &why);
    tensor t = {.spec = *spec, .rows = rows, .columns = columns, .plain = is_plain(spec->storage)};
    return resolve(&t, &why);
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
