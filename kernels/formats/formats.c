/* The table of formats, the settings that a format can be combined with, and how a descriptor selects a
 * row. */
#include "kernels/formats/format.h"
#include "kernels/operations.h"

#include <stdio.h>

/* The code kind of those codecs that only the kind of code distinguishes. */
enum {
    CODE_integer = QDNN_CODE_DEFAULT,
    CODE_nf4 = QDNN_CODE_DEFAULT,
    CODE_fp4_bnb = QDNN_CODE_FP4_BNB,
    CODE_e2m1 = QDNN_CODE_DEFAULT,
    CODE_e2m3 = QDNN_CODE_E2M3,
    CODE_e3m2 = QDNN_CODE_E3M2,
    CODE_e4m3 = QDNN_CODE_DEFAULT,
    CODE_e5m2 = QDNN_CODE_DEFAULT,
    CODE_plain = QDNN_CODE_DEFAULT,
    CODE_block = QDNN_CODE_DEFAULT
};

const format_row format_rows[] = {
#define FORMAT(name, storage, bits, zero, block, codec, number, scales, quantizes, dequantizes, words)       \
    {{#name, QDNN_DATA_##storage, bits, QDNN_ZERO_##zero, QDNN_BLOCK_##block, (qdnnCodeKind_t)CODE_##codec}, \
     &codec_##codec,                                                                                         \
     number},
#include "kernels/formats/formats.def"
#undef FORMAT
};
enum { FORMAT_COUNT = sizeof format_rows / sizeof format_rows[0] };

const format_row format_none = {.facts = {.name = "none"}};

const format_facts *kernel_format_at(int index)
{
    return index >= 0 && index < FORMAT_COUNT ? &format_rows[index].facts : NULL;
}

const format_facts *format_facts_of(const format_row *format)
{
    return &format->facts;
}

const format_facts *kernel_format(const kernel_row *row)
{
    return row->format == &format_none ? NULL : &row->format->facts;
}

bool format_has_zero(const format_row *format)
{
    return format->facts.zero_kind != QDNN_ZERO_NONE;
}

const codec codec_plain = {.has_nan = true};

bool format_is_plain(const format_row *format)
{
    return format->codec == &codec_plain;
}

bool format_is_blocks(const format_row *format)
{
    return format->facts.block != QDNN_BLOCK_NONE;
}

static bool is_integer(const format_row *format)
{
    return format->codec == &codec_integer;
}

/* I8 storage means signed bytes by default; the same kernels handle U8 with another code kind. */
static bool storage_fits(const format_facts *f, qdnnDataType_t storage)
{
    return f->storage == storage || (f->storage == QDNN_DATA_I8 && storage == QDNN_DATA_U8);
}

static unsigned storage_bits(qdnnDataType_t storage)
{
    if (storage == QDNN_DATA_F32)
        return 32;
    if (storage == QDNN_DATA_F16 || storage == QDNN_DATA_BF16)
        return 16;
    return storage == QDNN_DATA_I4 || storage == QDNN_DATA_NF4 || storage == QDNN_DATA_FP4 ? 4 : 8;
}

const format_row *kernel_find_format(qdnnDataType_t storage, unsigned bits, qdnnZeroKind_t zero_kind,
                                     qdnnCodeKind_t code, qdnnBlockFormat_t block)
{
    qdnnCodeKind_t wanted = code > QDNN_CODE_TWOS_COMPLEMENT ? code : QDNN_CODE_DEFAULT;
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const format_row *f = &format_rows[i];
        if (f->facts.block != block)
            continue;
        if (block != QDNN_BLOCK_NONE)
            return f;
        if (storage_fits(&f->facts, storage) &&
            f->facts.bits == (bits && bits <= 8 ? bits : storage_bits(storage)) &&
            f->facts.zero_kind == zero_kind && f->facts.code == wanted)
            return f;
    }
    return NULL;
}

kernel_key_set format_keys(const format_row *format)
{
    kernel_key_set keys = ~UINT64_C(0);
    if (format == &format_none)
        return keys;
    if (format_is_blocks(format))
        return PRODUCT_KEYS | KERNEL_KEY(ROW_INDEX) | KERNEL_KEY(UNPACK); /* the format determines the rest */
    if (format_is_plain(format))
        return PRODUCT_KEYS | KERNEL_KEY(UNPACK);
    if (!is_integer(format))
        keys &= ~(KERNEL_KEY(CODE) | KERNEL_KEY(ROUNDING) | KERNEL_KEY(TO_CODE));
    if (!format_has_zero(format))
        keys &= ~(KERNEL_KEY(ZERO) | KERNEL_KEY(ZERO_PACKED) | KERNEL_KEY(ZERO_MINUS_ONE) |
                  KERNEL_KEY(ZERO_WRAPS));
    if (!format_has_zero(format))
        keys &= ~KERNEL_KEY(RANGE);
    if (format->facts.bits != 4)
        keys &= ~(KERNEL_KEY(NIBBLE_ORDER) | KERNEL_KEY(TO_NIBBLE_ORDER));
    if (!format->number)
        keys &= ~KERNEL_KEY(MX_ROUNDING);
    return keys;
}

/* By default, codes narrower than a byte are offset by half their range, or unsigned if the format has zeros;
 * 8-bit codes are two's complement. */
qdnnCodeKind_t format_code_kind(const format_row *format, qdnnCodeKind_t kind)
{
    if (kind != QDNN_CODE_DEFAULT)
        return kind;
    if (format->facts.bits == 8)
        return QDNN_CODE_TWOS_COMPLEMENT;
    return format_has_zero(format) ? QDNN_CODE_UNSIGNED : QDNN_CODE_OFFSET;
}

static bool is_float(qdnnDataType_t type)
{
    return type == QDNN_DATA_F32 || type == QDNN_DATA_F16 || type == QDNN_DATA_BF16;
}

static bool zeros_serve(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const unsigned bits = row->format->facts.bits;
    bool is_signed = spec->code != QDNN_CODE_UNSIGNED,
         is_minimum = row->format->facts.zero_kind == QDNN_ZERO_MINIMUM;
    if (spec->groups == QDNN_GROUPS_DEFAULT)
        return kernel_refuse(error, error_size, "groups is none: without scales there are no zeros either");
    if (spec->zero_packed && (is_minimum || spec->range == QDNN_RANGE_TIGHT))
        return kernel_refuse(error, error_size, "zero_packed needs integer zero points and range=with_zero");
    if (spec->zero_minus_one && (is_signed || is_float(spec->zero)))
        return kernel_refuse(error, error_size, "zero_minus_one is for integer zeros of unsigned codes");
    if (spec->zero_packed)
        return true;
    if (!is_signed && bits == 8 && spec->zero == QDNN_DATA_I8)
        return kernel_refuse(error, error_size,
                             "zeros of 0 to 255 do not fit into i8; use u8, u32, i32 or packed ones");
    if (is_minimum && !is_float(spec->zero))
        return kernel_refuse(error, error_size, "zero is an integer type; minima are f32, f16 or bf16");
    if (spec->range == QDNN_RANGE_TIGHT && !is_float(spec->zero))
        return kernel_refuse(error, error_size,
                             "range is tight, which needs zeros of float type: f32, f16 or bf16");
    if (is_signed && spec->zero == QDNN_DATA_U32)
        return kernel_refuse(error, error_size,
                             "zero is u32, but the codes are signed; zero must be i8, i32, f32, f16 or bf16");
    return true;
}

static bool scales_serve(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    bool has_zero = format_has_zero(row->format);
    if (spec->scale == QDNN_SCALE_E8M0 && !row->format->number)
        return kernel_refuse(error, error_size, "scale is e8m0, which needs floating-point codes");
    if (spec->global_scale && (spec->scale != QDNN_SCALE_E4M3 || has_zero || !row->format->number))
        return kernel_refuse(error, error_size,
                             "a global scale needs floating-point codes and scales of type e4m3");
    if (spec->nested && (spec->scale != QDNN_SCALE_F32 || spec->scale_swizzle || has_zero))
        return kernel_refuse(error, error_size,
                             "nested scales must be f32, must not be swizzled, and exclude zeros");
    return true;
}

qdnnDataType_t format_zero_type(const format_row *format, const kernel_spec *spec)
{
    if ((spec->zero != QDNN_DATA_U8 && !spec->zero_packed) || !format_has_zero(format))
        return spec->zero;
    if (format->facts.zero_kind == QDNN_ZERO_MINIMUM)
        return QDNN_DATA_F32;
    return spec->code == QDNN_CODE_UNSIGNED ? QDNN_DATA_U8 : QDNN_DATA_I8;
}

/* Checks settings that only apply to groups along rows or down columns. */
static bool groups_serve(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    bool is_lined = spec->groups == QDNN_GROUPS_ROWS || spec->groups == QDNN_GROUPS_COLUMNS;
    bool makes_scales =
        kernel_operation_of(row) == KERNEL_SCALE || kernel_operation_of(row) == KERNEL_DYNAMIC;
    if (spec->groups == QDNN_GROUPS_DEFAULT && makes_scales)
        return kernel_refuse(error, error_size, "groups is none: there are no scales to compute");
    if (spec->groups == QDNN_GROUPS_DEFAULT && (spec->global_scale || spec->nested))
        return kernel_refuse(error, error_size,
                             "groups is none: without scales there is no global scale and no nesting");
    if (!is_lined && (spec->scale_order || spec->scale_swizzle))
        return kernel_refuse(error, error_size,
                             "scale_order and scale_swizzle are for groups along rows or down columns");
    if (spec->group_index && spec->groups != QDNN_GROUPS_COLUMNS)
        return kernel_refuse(error, error_size, "group_index is for groups down columns");
    if (spec->group_index && makes_scales)
        return kernel_refuse(error, error_size,
                             "scales are computed for contiguous groups: group_index must be no");
    return true;
}

static bool layout_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const unsigned bits = row->format->facts.bits;
    if ((spec->layout == QDNN_LAYOUT_AWQ || spec->to_layout == QDNN_LAYOUT_AWQ) && bits != 4)
        return kernel_refuse(error, error_size, "layout is awq, which takes 4-bit codes; these have %u bits",
                             bits);
    if (spec->layout == QDNN_LAYOUT_AWQ && spec->zero_packed && spec->groups == QDNN_GROUPS_COLUMNS &&
        spec->group_rows != 1)
        return kernel_refuse(error, error_size, "awq packs the zeros of eight columns: group_rows must be 1");
    if ((spec->layout != QDNN_LAYOUT_BYTES && spec->nibble_order == QDNN_NIBBLE_HIGH_FIRST) ||
        (spec->to_layout != QDNN_LAYOUT_BYTES && spec->to_nibble_order == QDNN_NIBBLE_HIGH_FIRST))
        return kernel_refuse(error, error_size, "nibble_order is high, which needs layout bytes");
    return true;
}

bool format_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    kernel_key_set keys = kernel_keys(row);
    if ((keys & KERNEL_KEY(GROUPS)) && !groups_serve(row, spec, error, error_size))
        return false;
    if ((keys & KERNEL_KEY(LAYOUT)) && !layout_serves(row, spec, error, error_size))
        return false;
    if ((keys & KERNEL_KEY(ZERO)) && !zeros_serve(row, spec, error, error_size))
        return false;
    if ((keys & KERNEL_KEY(SCALE)) && !scales_serve(row, spec, error, error_size))
        return false;
    return true;
}
