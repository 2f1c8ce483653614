/* What the kernels for scales and codes take. */
#include "kernels/operations.h"
#include "kernels/quant/quant.h"
#include "kernels/formats/quantized.h"

/* The operands beside codes that are read. */
#define READ_BESIDE                                                                                          \
    QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, QDNN_OPERAND_GLOBAL_SCALE, QDNN_OPERAND_GROUP_INDEX,              \
        QDNN_OPERAND_NESTED_MAP, QDNN_OPERAND_NESTED_SCALE, QDNN_OPERAND_NESTED_OFFSET

/* Scales do not depend on the layout of the codes. */
bool kernel_is_matrix(const kernel_row *row, const kernel_spec *spec)
{
    bool is_lined = spec->stored.groups == QDNN_GROUPS_ROWS || spec->stored.groups == QDNN_GROUPS_COLUMNS;
    if (format_is_blocks(row->format) || format_is_plain(row->format))
        return false;
    switch (kernel_operation_of(row)) {
    case KERNEL_SCALE:
        return is_lined;
    case KERNEL_REPACK:
    case KERNEL_PREPACK:
        return true;
    case KERNEL_QUANTIZE:
    case KERNEL_DEQUANTIZE:
        return spec->row_index || is_lined || spec->stored.layout != QDNN_LAYOUT_BYTES ||
               spec->stored.zero_packed || spec->stored.zero_minus_one;
    default:
        return false;
    }
}

/* A matrix, a table of which rows are selected, or a flat tensor. */
static number_set numbers_of(const kernel_row *row, const kernel_spec *spec)
{
    number_set numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS);
    if (!kernel_is_matrix(row, spec) && !spec->row_index)
        return A_NUMBER(N);
    if (spec->row_index)
        numbers |= A_NUMBER(TABLE_ROWS);
    if (spec->strided)
        numbers |= A_NUMBER(X_STRIDE) | A_NUMBER(PAGE_SLOTS) | A_NUMBER(PAGE_STRIDE) | A_NUMBER(SLOT_STRIDE) |
                   A_NUMBER(HEAD_STRIDE);
    return numbers;
}

static void read_plain(kernel_description *d, const kernel_spec *spec)
{
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data),
                  spec->strided ? rule_span(rule_number(NUMBER_ROWS), rule_number(NUMBER_X_STRIDE),
                                            rule_number(NUMBER_COLUMNS))
                                : describe_elements(d));
}

void describe_scale(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = numbers_of(row, spec);
    read_plain(d, spec);
    describe_stored(d, row, spec, false, STORED_LIST(QDNN_OPERAND_NESTED_MAP, QDNN_OPERAND_NESTED_OFFSET));
    describe_stored(d, row, spec, true,
                    STORED_LIST(QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, QDNN_OPERAND_GLOBAL_SCALE,
                                QDNN_OPERAND_NESTED_SCALE));
}

void describe_quantize(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = numbers_of(row, spec);
    read_plain(d, spec);
    describe_stored(d, row, spec, false, STORED_LIST(READ_BESIDE));
    describe_stored(d, row, spec, true, STORED_LIST(QDNN_OPERAND_CODES));
}

void describe_dequantize(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = numbers_of(row, spec);
    describe_stored(d, row, spec, false,
                    STORED_LIST(QDNN_OPERAND_CODES, READ_BESIDE, QDNN_OPERAND_ROW_INDEX));
    describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->data), describe_elements(d));
}

void describe_dynamic(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = numbers_of(row, spec);
    read_plain(d, spec);
    describe_stored(d, row, spec, false, STORED_LIST(QDNN_OPERAND_GLOBAL_SCALE, QDNN_OPERAND_ROW_INDEX));
    describe_stored(d, row, spec, true,
                    STORED_LIST(QDNN_OPERAND_CODES, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO));
}

void describe_quantize_rows(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = numbers_of(row, spec);
    read_plain(d, spec);
    describe_stored(d, row, spec, false, STORED_LIST(QDNN_OPERAND_ROW_INDEX));
    describe_stored(d, row, spec, true, STORED_LIST(QDNN_OPERAND_CODES));
}

void describe_repack(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = numbers_of(row, spec);
    describe_stored(d, row, spec, false, STORED_LIST(QDNN_OPERAND_CODES));
    describe_stored(d, row, spec, true, STORED_LIST(QDNN_OPERAND_REPACKED));
}

void describe_prepack(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS);
    describe_stored(d, row, spec, spec->product.unpack, STORED_LIST(QDNN_OPERAND_CODES));
    describe_stored(d, row, spec, !spec->product.unpack, STORED_LIST(QDNN_OPERAND_REPACKED));
}

/* ---- Parts of these ---- */

void describe_global(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = A_NUMBER(N) | A_NUMBER(LARGEST);
    read_plain(d, spec);
    describe_stored(d, row, spec, true, STORED_LIST(QDNN_OPERAND_GLOBAL_SCALE));
}

/* x has the scales, one of which becomes a byte each. */
void describe_nest(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_rule n = rule_number(NUMBER_N);
    d->numbers = A_NUMBER(N);
    read_plain(d, spec);
    describe_stored(d, row, spec, false, STORED_LIST(QDNN_OPERAND_NESTED_MAP, QDNN_OPERAND_NESTED_OFFSET));
    describe_write(d, QDNN_OPERAND_SCALE, element_type_of(QDNN_DATA_U8), n);
    describe_write(d, QDNN_OPERAND_NESTED_SCALE, element_type_of(QDNN_DATA_F32), rule_ceil(n, 256));
}

void describe_range(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    d->numbers = A_NUMBER(N);
    read_plain(d, spec);
    describe_workspace(d, "range", WORKSPACE_OWN, element_type_of(QDNN_DATA_F32), true);
}
