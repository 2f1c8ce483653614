/* A kernel's specification in host_ref's terms. */
#include "formats/ref_spec.h"

#include <math.h>
#include <string.h>

#include "formats/kernel_data.h"

enum { BLOCK_ELEMENTS_MAX = 256 };

ref_quant_spec ref_spec_of(const kernel_row *row, const kernel_spec *spec)
{
    const format_facts *f = kernel_format(row);
    kernel_spec s = kernel_spec_normal(row, spec);
    return (ref_quant_spec){.data = s.data,
                            .block = f->block,
                            .storage = f->storage,
                            .bits = f->bits <= 8 ? (int)f->bits : 0, /* plain values have no code width */
                            .code = f->code ? f->code : s.stored.code,
                            .layout = s.stored.layout,
                            .nibble_order = s.stored.nibble_order,
                            .groups = s.stored.groups,
                            .group_size = (int64_t)s.stored.group_size,
                            .group_rows = (int64_t)s.stored.group_rows,
                            .channels = (int64_t)s.stored.channels,
                            .group_index = s.stored.group_index,
                            .scale_order = s.stored.scale_order,
                            .scale_swizzle = s.stored.scale_swizzle,
                            .no_scale = s.stored.groups == QDNN_GROUPS_DEFAULT,
                            .scale = s.stored.scale,
                            .nested = s.stored.nested,
                            .global_scale = s.stored.global_scale,
                            .mx_rounding = s.quantize.mx_rounding,
                            .floor = s.quantize.floor,
                            .zero_kind = f->zero_kind,
                            .zero = s.stored.zero,
                            .zero_packed = s.stored.zero_packed,
                            .zero_minus_one = s.stored.zero_minus_one,
                            .zero_wraps = s.stored.zero_wraps,
                            .range = s.quantize.range,
                            .rounding = s.quantize.rounding,
                            .division = s.quantize.division};
}

int64_t ref_operand_bytes(const ref_quant_spec *spec, int64_t rows, int64_t columns, int operand)
{
    ref_sizes sizes = ref_sizes_of(spec, rows, columns);
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
    case QDNN_OPERAND_Y:
        return rows * columns * (int64_t)ref_scalar_size(spec->data);
    case QDNN_OPERAND_CODES:
        return sizes.codes;
    case QDNN_OPERAND_SCALE:
        return sizes.scale;
    case QDNN_OPERAND_ZERO:
        return sizes.zero;
    case QDNN_OPERAND_GLOBAL_SCALE:
        return sizes.global_scale;
    case QDNN_OPERAND_GROUP_INDEX:
        return sizes.group_index;
    case QDNN_OPERAND_NESTED_MAP:
        return sizes.nested_map;
    case QDNN_OPERAND_NESTED_SCALE:
        return sizes.nested_scale;
    case QDNN_OPERAND_NESTED_OFFSET:
        return sizes.nested_offset;
    default:
        return 0;
    }
}

size_t ref_element_bytes(const ref_quant_spec *spec, int operand)
{
    qdnnDataType_t scale = ref_scale_data_type(spec->scale);
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
    case QDNN_OPERAND_Y:
        return ref_scalar_size(spec->data);
    case QDNN_OPERAND_CODES:
        if (spec->storage == QDNN_DATA_F32 || spec->storage == QDNN_DATA_F16 ||
            spec->storage == QDNN_DATA_BF16)
            return ref_scalar_size(spec->storage);
        return spec->layout == QDNN_LAYOUT_BYTES || spec->layout == QDNN_LAYOUT_BLOCK ? 1 : 4;
    case QDNN_OPERAND_SCALE:
        return scale && !spec->nested ? ref_scalar_size(scale) : 1;
    case QDNN_OPERAND_ZERO:
        return spec->zero_packed ? 4 : ref_scalar_size(spec->zero);
    default:
        return 4;
    }
}

ref_arrays ref_arrays_of(uint8_t *const operands[QDNN_OPERAND_COUNT])
{
    return (ref_arrays){.codes = operands[QDNN_OPERAND_CODES],
                        .scale = operands[QDNN_OPERAND_SCALE],
                        .zero = operands[QDNN_OPERAND_ZERO],
                        .global_scale = (float *)(void *)operands[QDNN_OPERAND_GLOBAL_SCALE],
                        .group_index = (const int32_t *)(const void *)operands[QDNN_OPERAND_GROUP_INDEX],
                        .nested_map = (const float *)(const void *)operands[QDNN_OPERAND_NESTED_MAP],
                        .nested_scale = (float *)(void *)operands[QDNN_OPERAND_NESTED_SCALE],
                        .nested_offset = (const float *)(const void *)operands[QDNN_OPERAND_NESTED_OFFSET]};
}

/* Whether all numbers of a block are finite, and the largest is of moderate size. */
static bool is_moderate(const ref_quant_spec *spec, uint8_t *block, int64_t elements)
{
    float values[BLOCK_ELEMENTS_MAX], largest = 0;
    ref_quant_spec plain = *spec;
    plain.data = QDNN_DATA_F32;
    ref_dequantize(&plain, 1, elements, &(ref_arrays){.codes = block}, values);
    for (int64_t i = 0; i < elements; i++) {
        if (!isfinite(values[i]))
            return false;
        largest = fmaxf(largest, fabsf(values[i]));
    }
    return largest > 0.125f && largest < 16.0f;
}

/* Numbers of much the same size: each of them counts in a sum. */
static void fill_moderate_blocks(const ref_quant_spec *spec, int64_t elements, uint32_t seed, int64_t n,
                                 uint8_t *blocks)
{
    const int64_t bytes = ref_sizes_of(spec, 1, elements).codes;
    for (int64_t i = 0; i < n / elements; i++)
        do
            fill_bytes(seed++, blocks + i * bytes, bytes);
        while (!is_moderate(spec, blocks + i * bytes, elements));
}

void ref_fill_blocks(const kernel_row *row, const ref_quant_spec *spec, int64_t n, uint32_t seed,
                     blocks_kind kind, void *data, uint8_t *blocks)
{
    ref_arrays arrays = {.codes = blocks};
    bool can_quantize = kernel_find_operation(KERNEL_QUANTIZE, row->format) != NULL;
    if (can_quantize)
        ref_quantize(spec, 1, n, data, &arrays);
    if (kernel_operation_of(row) != KERNEL_DEQUANTIZE)
        return;
    if (kind == BLOCKS_ANY)
        fill_bytes(seed, blocks, ref_sizes_of(spec, 1, n).codes);
    else if (kind == BLOCKS_MODERATE || !can_quantize)
        fill_moderate_blocks(spec, (int64_t)kernel_columns_multiple(row), seed, n, blocks);
    ref_dequantize(spec, 1, n, &arrays, data);
}
