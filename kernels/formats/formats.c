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
    return format->codec->is_integer;
}

static bool is_bytes(qdnnDataType_t storage)
{
    return storage == QDNN_DATA_I8 || storage == QDNN_DATA_U8;
}

/* I8 storage means signed bytes by default; the same kernels handle U8 with another code kind. Both can be narrowed to the
 * 4 bits that I4 stands for. */
static bool storage_fits(const format_row *f, qdnnDataType_t storage)
{
    if (is_integer(f) && is_bytes(storage))
        return is_bytes(f->facts.storage) || f->facts.storage == QDNN_DATA_I4;
    return f->facts.storage == storage;
}

static unsigned storage_bits(qdnnDataType_t storage)
{
    if (storage == QDNN_DATA_F32)
        return 32;
    if (storage == QDNN_DATA_F16 || storage == QDNN_DATA_BF16)
        return 16;
    return storage == QDNN_DATA_I4 || storage == QDNN_DATA_NF4 || storage == QDNN_DATA_FP4 ? 4 : 8;
}

/* OFFSET, UNSIGNED and TWOS_COMPLEMENT are settings of integer formats; the other kinds are formats of their own. */
static bool code_fits(const format_row *f, qdnnCodeKind_t code)
{
    bool is_setting = code != QDNN_CODE_DEFAULT && code <= QDNN_CODE_TWOS_COMPLEMENT;
    return is_setting ? is_integer(f) : f->facts.code == code;
}

/* A code kind that is a format of its own also determines the width. */
static bool width_fits(const format_facts *f, qdnnDataType_t storage, unsigned bits)
{
    if (bits == 0 || bits > 8)
        return f->code != QDNN_CODE_DEFAULT || f->bits == storage_bits(storage);
    return f->bits == bits;
}

const format_row *kernel_find_format(qdnnDataType_t storage, unsigned bits, qdnnZeroKind_t zero_kind,
                                     qdnnCodeKind_t code, qdnnBlockFormat_t block)
{
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const format_row *f = &format_rows[i];
        if (f->facts.block != block)
            continue;
        if (block != QDNN_BLOCK_NONE)
            return f;
        if (storage_fits(f, storage) && width_fits(&f->facts, storage, bits) &&
            f->facts.zero_kind == zero_kind && code_fits(f, code))
            return f;
    }
    return NULL;
}

static kernel_key_set without(kernel_key_set keys, const kernel_key *list)
{
    return kernel_key_set_both(keys, kernel_key_set_others(kernel_key_set_of(list)));
}

kernel_key_set format_keys(const format_row *format)
{
    kernel_key_set keys = kernel_key_set_others((kernel_key_set){0});
    if (format == &format_none)
        return keys;
    if (format_is_blocks(format)) /* the format determines the rest */
        return kernel_key_set_of(KERNEL_KEYS(PRODUCT_KEYS, ATTENTION_KEYS, KERNEL_KEY(ROW_INDEX),
                                             KERNEL_KEY(INDEX_TYPE), KERNEL_KEY(UNPACK)));
    if (format_is_plain(format))
        return kernel_key_set_of(KERNEL_KEYS(PRODUCT_KEYS, KERNEL_KEY(UNPACK)));
    if (!is_integer(format))
        keys = without(keys, KERNEL_KEYS(KERNEL_KEY(CODE), KERNEL_KEY(ROUNDING), KERNEL_KEY(TO_CODE)));
    if (!format_has_zero(format))
        keys =
            without(keys, KERNEL_KEYS(KERNEL_KEY(ZERO), KERNEL_KEY(ZERO_PACKED), KERNEL_KEY(ZERO_MINUS_ONE),
                                      KERNEL_KEY(ZERO_WRAPS), KERNEL_KEY(RANGE)));
    if (format->facts.bits != 4)
        keys = without(keys, KERNEL_KEYS(KERNEL_KEY(NIBBLE_ORDER), KERNEL_KEY(TO_NIBBLE_ORDER)));
    if (!format->number)
        keys = without(keys, KERNEL_KEYS(KERNEL_KEY(MX_ROUNDING)));
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
    bool is_signed = spec->stored.code != QDNN_CODE_UNSIGNED,
         is_minimum = row->format->facts.zero_kind == QDNN_ZERO_MINIMUM;
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT)
        return kernel_refuse(
            error, error_size,
            "groups is none: without scales there are no zeros either; fix: use groups, or a "
            "format without zeros");
    if (spec->stored.zero_packed && (is_minimum || spec->quantize.range == QDNN_RANGE_TIGHT))
        return kernel_refuse(error, error_size,
                             "zero_packed needs integer zero points and range=with_zero; fix: unset "
                             "zero_packed, or use those");
    if (spec->stored.zero_minus_one && (is_signed || is_float(spec->stored.zero)))
        return kernel_refuse(error, error_size,
                             "zero_minus_one is for integer zeros of unsigned codes; fix: unset it, or use "
                             "those");
    if (spec->stored.zero_packed)
        return true;
    if (!is_signed && bits == 8 && spec->stored.zero == QDNN_DATA_I8)
        return kernel_refuse(error, error_size,
                             "zeros of 0 to 255 do not fit into i8; fix: use u8, u32, i32 or packed ones");
    if (is_minimum && !is_float(spec->stored.zero))
        return kernel_refuse(error, error_size,
                             "zero is an integer type, and minima are not integers; fix: zero of type f32, "
                             "f16 or bf16");
    /* (The first of two passes over a tensor takes the range, and writes no zeros.) */
    if (spec->quantize.range == QDNN_RANGE_TIGHT && !is_float(spec->stored.zero) &&
        kernel_has_key(row, KERNEL_KEY(ZERO)))
        return kernel_refuse(error, error_size,
                             "range is tight, which needs zeros of float type; fix: f32, f16 or bf16");
    if (is_signed && (spec->stored.zero == QDNN_DATA_U32 || spec->stored.zero == QDNN_DATA_U8))
        return kernel_refuse(error, error_size,
                             "zero is %s, but the codes are signed; fix: use i8, i32, f32, f16 or bf16",
                             spec->stored.zero == QDNN_DATA_U8 ? "u8" : "u32");
    return true;
}

static bool scales_serve(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    bool has_zero = format_has_zero(row->format);
    if (spec->stored.scale == QDNN_SCALE_E8M0 && !row->format->number)
        return kernel_refuse(error, error_size,
                             "scale is e8m0, which needs floating-point codes; fix: use those, or scales of "
                             "another type");
    if (spec->stored.global_scale &&
        (spec->stored.scale != QDNN_SCALE_E4M3 || has_zero || !row->format->number))
        return kernel_refuse(error, error_size,
                             "a global scale needs floating-point codes and scales of type e4m3; fix: unset "
                             "global_scale, or use those");
    if (spec->stored.nested &&
        (spec->stored.scale != QDNN_SCALE_F32 || spec->stored.scale_swizzle || has_zero))
        return kernel_refuse(error, error_size,
                             "nested scales must be f32, must not be swizzled, and exclude zeros; fix: unset "
                             "nested, or the others");
    return true;
}

qdnnDataType_t format_zero_type(const format_row *format, const kernel_spec *spec)
{
    if (!format_has_zero(format))
        return QDNN_DATA_U8;
    if (spec->stored.zero != KERNEL_ZERO_DEFAULT && !spec->stored.zero_packed)
        return spec->stored.zero;
    if (format->facts.zero_kind == QDNN_ZERO_MINIMUM)
        return QDNN_DATA_F32;
    return spec->stored.code == QDNN_CODE_UNSIGNED ? QDNN_DATA_U8 : QDNN_DATA_I8;
}

static bool is_lined(const kernel_spec *spec)
{
    return spec->stored.groups == QDNN_GROUPS_ROWS || spec->stored.groups == QDNN_GROUPS_COLUMNS;
}

/* Checks settings that only apply to groups along rows or down columns. */
static bool groups_serve(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    bool makes_scales =
        kernel_operation_of(row) == KERNEL_SCALE || kernel_operation_of(row) == KERNEL_DYNAMIC;
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT && makes_scales)
        return kernel_refuse(error, error_size,
                             "groups is none: there are no scales to compute; fix: use groups");
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT && (spec->stored.global_scale || spec->stored.nested))
        return kernel_refuse(error, error_size,
                             "groups is none: without scales there is no global scale and no nesting; fix: "
                             "unset them, or use groups");
    if (!is_lined(spec) && (spec->stored.scale_order || spec->stored.scale_swizzle))
        return kernel_refuse(
            error, error_size,
            "scale_order and scale_swizzle are for groups along rows or down columns; fix: use "
            "such groups, or the usual order without swizzle");
    if (spec->stored.group_index && spec->stored.groups != QDNN_GROUPS_COLUMNS)
        return kernel_refuse(error, error_size,
                             "group_index is for groups down columns; fix: use such groups, or unset it");
    if (spec->stored.group_index && makes_scales)
        return kernel_refuse(
            error, error_size,
            "scales are computed for contiguous groups: group_index must be no; fix: unset it");
    return true;
}

static bool layout_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const unsigned bits = row->format->facts.bits;
    if ((spec->stored.layout == QDNN_LAYOUT_AWQ || spec->to.layout == QDNN_LAYOUT_AWQ) && bits != 4)
        return kernel_refuse(
            error, error_size,
            "layout is awq, which takes 4-bit codes; these have %u bits; fix: use 4 bits, or "
            "another layout",
            bits);
    if (spec->stored.layout == QDNN_LAYOUT_AWQ && format_has_zero(row->format) && spec->stored.zero_packed &&
        spec->stored.groups == QDNN_GROUPS_COLUMNS && spec->stored.group_rows != 1)
        return kernel_refuse(error, error_size,
                             "awq packs the zeros of eight columns: group_rows must be 1; fix: set it to 1");
    if ((spec->stored.layout != QDNN_LAYOUT_BYTES && spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST) ||
        (spec->to.layout != QDNN_LAYOUT_BYTES && spec->to.nibble_order == QDNN_NIBBLE_HIGH_FIRST))
        return kernel_refuse(error, error_size,
                             "nibble_order is high, which needs layout bytes; fix: set it to low, or use "
                             "that layout");
    return true;
}

/* Rejects settings that normalising would drop because the format has nothing that they could apply to: whoever set them meant
 * another format. */
static bool nothing_is_meaningless(const kernel_row *row, const kernel_spec *spec, char *error,
                                   size_t error_size)
{
    const unsigned bits = row->format->facts.bits;
    if (format_is_blocks(row->format)) /* the block determines everything */
        return true;
    if (bits != 4 && (spec->stored.nibble_order != QDNN_NIBBLE_LOW_FIRST ||
                      spec->to.nibble_order != QDNN_NIBBLE_LOW_FIRST))
        return kernel_refuse(error, error_size,
                             "nibble_order is high, and codes of %u bits are no nibbles; fix: set it to low, "
                             "or use 4-bit codes",
                             bits);
    if (!format_is_plain(row->format) && !is_lined(spec) && spec->stored.group_rows != 1)
        return kernel_refuse(error, error_size,
                             "group_rows is %llu, and the groups are %s; fix: use groups along rows or down "
                             "columns, or group_rows 1",
                             (unsigned long long)spec->stored.group_rows,
                             spec->stored.groups == QDNN_GROUPS_FLAT ? "flat" : "none");
    if (!format_is_plain(row->format))
        return true;
    if (spec->stored.layout != QDNN_LAYOUT_BYTES)
        return kernel_refuse(error, error_size, "%s has no codes to arrange in words; fix: use layout bytes",
                             row->format->facts.name);
    if (spec->stored.scale_order || spec->stored.scale_swizzle || spec->stored.group_index ||
        spec->stored.nested || spec->stored.global_scale)
        return kernel_refuse(error, error_size,
                             "%s has no scales; fix: unset scale_order, scale_swizzle, group_index, nested "
                             "and global_scale",
                             row->format->facts.name);
    return true;
}

static bool settings_serve(const kernel_row *row, const kernel_spec *spec, kernel_key_set keys, char *error,
                           size_t error_size)
{
    return (!kernel_key_set_has(&keys, KERNEL_KEY(GROUPS)) || groups_serve(row, spec, error, error_size)) &&
           (!kernel_key_set_has(&keys, KERNEL_KEY(LAYOUT)) || layout_serves(row, spec, error, error_size)) &&
           (!kernel_key_set_has(&keys, KERNEL_KEY(ZERO)) || zeros_serve(row, spec, error, error_size)) &&
           (!kernel_key_set_has(&keys, KERNEL_KEY(SCALE)) || scales_serve(row, spec, error, error_size));
}

bool format_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    return settings_serve(row, spec, kernel_keys(row), error, error_size);
}

bool format_allows(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    kernel_spec whole = *spec;
    if (row->format == &format_none)
        return true;
    if (is_integer(row->format))
        whole.stored.code = format_code_kind(row->format, spec->stored.code);
    whole.stored.zero = format_zero_type(row->format, &whole);
    return nothing_is_meaningless(row, spec, error, error_size) &&
           settings_serve(row, &whole, format_keys(row->format), error, error_size);
}
