/* Descriptions of quantized tensors: the types and sizes of codes, scales and what else lies beside them, in terms of numbers. */
#include <string.h>

#include "kernels/formats/prepacked.h"
#include "kernels/formats/quantized.h"

/* A quantized tensor in terms of numbers. */
typedef struct extent {
    const kernel_row *row;
    const kernel_spec *spec;
    bool is_flat; /* only n is known */
    kernel_rule rows, columns, elements;
} extent;

static extent extent_of(number_set numbers, const kernel_row *row, const kernel_spec *spec)
{
    extent e = {.row = row,
                .spec = spec,
                .is_flat = numbers & A_NUMBER(N) && !(numbers & A_NUMBER(ROWS)),
                .rows = rule_number(spec->row_index ? NUMBER_TABLE_ROWS : NUMBER_ROWS),
                .columns = rule_number(NUMBER_COLUMNS)};
    e.elements = e.is_flat ? rule_number(NUMBER_N) : rule_times(e.rows, e.columns);
    return e;
}

/* Groups along rows, down columns: how many of them one above the other, and side by side. */
static kernel_rule groups_down(const extent *e)
{
    const kernel_stored *s = &e->spec->stored;
    return rule_ceil(e->rows, s->groups == QDNN_GROUPS_COLUMNS ? s->group_size : s->group_rows);
}

static kernel_rule groups_across(const extent *e)
{
    const kernel_stored *s = &e->spec->stored;
    return rule_ceil(e->columns, s->groups == QDNN_GROUPS_COLUMNS ? s->group_rows : s->group_size);
}

static bool is_flat_grouping(const kernel_spec *spec)
{
    return spec->stored.groups != QDNN_GROUPS_ROWS && spec->stored.groups != QDNN_GROUPS_COLUMNS;
}

static kernel_rule groups_of(const extent *e)
{
    const kernel_stored *s = &e->spec->stored;
    if (!is_flat_grouping(e->spec))
        return rule_times(groups_down(e), groups_across(e));
    return s->channels ? rule_constant(s->channels) : rule_ceil(e->elements, s->group_size);
}

kernel_rule describe_groups(const kernel_description *d, const kernel_spec *spec)
{
    const extent e = extent_of(d->numbers, NULL, spec);
    return groups_of(&e);
}

uint64_t kernel_groups(const kernel_spec *spec, const kernel_problem *problem)
{
    const uint64_t numbers[NUMBERS] = {[NUMBER_ROWS] = problem->rows, [NUMBER_COLUMNS] = problem->columns};
    kernel_spec matrix = *spec;
    matrix.row_index = 0;
    if (problem->rows == 0 || problem->columns == 0 || spec->stored.groups == QDNN_GROUPS_DEFAULT)
        return 0;
    const extent e = extent_of(0, NULL, &matrix);
    const kernel_rule groups = groups_of(&e);
    return rule_value(&groups, numbers);
}

/* Bytes of codes that are packed in words, or follow each other; of blocks, with all that is in them. */
static kernel_rule code_bytes(const extent *e, qdnnLayout_t layout)
{
    const unsigned bits = e->row->format->facts.bits;
    const block_layout *blocks = block_layout_of(e->row->format);
    const kernel_rule of_bits = rule_constant(bits), word = rule_constant(4);
    if (blocks && e->is_flat)
        return rule_times(rule_over(e->elements, rule_constant(blocks->elements)),
                          rule_constant(blocks->bytes));
    if (blocks)
        return rule_times(rule_times(e->rows, rule_over(e->columns, rule_constant(blocks->elements))),
                          rule_constant(blocks->bytes));
    switch (layout) {
    case QDNN_LAYOUT_WORDS_INTERLEAVED:
        return rule_times(rule_times(rule_ceil(rule_times(e->rows, of_bits), 32), e->columns), word);
    case QDNN_LAYOUT_WORDS_ROWS:
        return rule_times(rule_times(rule_ceil(rule_times(e->columns, of_bits), 32), e->rows), word);
    case QDNN_LAYOUT_AWQ:
        return rule_times(rule_times(e->rows, rule_ceil(e->columns, 8)), word);
    default:
        return bits % 8 == 0 ? rule_times(rule_constant(bits / 8), e->elements)
                             : rule_ceil(rule_times(e->elements, of_bits), 8);
    }
}

/* From the first head of a strided cache to the end of the last. */
static kernel_rule strided_bytes(const extent *e)
{
    const kernel_rule heads = rule_over(e->columns, rule_constant(e->spec->stored.group_size)),
                      pages = rule_over(rule_number(NUMBER_TABLE_ROWS), rule_number(NUMBER_PAGE_SLOTS));
    extent all = *e;
    all.elements =
        rule_span(heads, rule_number(NUMBER_HEAD_STRIDE), rule_constant(e->spec->stored.group_size));
    all.elements = rule_span(rule_number(NUMBER_PAGE_SLOTS), rule_number(NUMBER_SLOT_STRIDE), all.elements);
    all.elements = rule_span(pages, rule_number(NUMBER_PAGE_STRIDE), all.elements);
    return code_bytes(&all, QDNN_LAYOUT_BYTES);
}

/* Codes in whole units, followed for blocks by the other bytes of each. */
static kernel_rule prepacked_bytes(const extent *e)
{
    const bool by_columns = e->spec->product.reduction == KERNEL_K_COLUMNS;
    const kernel_rule n = by_columns ? e->rows : e->columns, k = by_columns ? e->columns : e->rows;
    const block_layout *blocks = block_layout_of(e->row->format);
    const unit_extent unit = prepack_unit(e->row->format);
    const kernel_rule units_n = rule_ceil(n, UNIT_N), units_k = rule_ceil(k, unit.elements),
                      bytes = rule_constant(unit.bytes);
    if (!blocks)
        return rule_times(rule_times(units_n, units_k), bytes);
    const kernel_rule headers = rule_times(rule_over(k, rule_constant(blocks->elements)),
                                           rule_constant(UNIT_N * block_header_bytes(blocks)));
    return rule_times(units_n, rule_plus(rule_times(units_k, bytes), headers));
}

/* In tiles of 128 x 4. */
static kernel_rule swizzled_scales(const extent *e)
{
    const bool is_turned = e->spec->stored.scale_order == QDNN_SCALE_ORDER_TRANSPOSED;
    return rule_times(rule_times(rule_ceil(groups_down(e), is_turned ? 4 : 128),
                                 rule_ceil(groups_across(e), is_turned ? 128 : 4)),
                      rule_constant(512));
}

/* Words for each line of groups, times the lines. */
static kernel_rule packed_zeros(const extent *e)
{
    const kernel_rule bits = rule_constant(e->row->format->facts.bits), word = rule_constant(4);
    const bool is_down = e->spec->stored.groups == QDNN_GROUPS_COLUMNS;
    if (is_flat_grouping(e->spec))
        return rule_times(rule_ceil(rule_times(groups_of(e), bits), 32), word);
    const kernel_rule line = is_down ? groups_across(e) : groups_down(e),
                      lines = is_down ? groups_down(e) : groups_across(e);
    return rule_times(rule_times(rule_ceil(rule_times(line, bits), 32), lines), word);
}

/* Codes are counted in bytes. */
static element_type code_element(const extent *e, qdnnLayout_t layout)
{
    const format_row *format = e->row->format;
    if (format_is_plain(format))
        return (element_type){format->facts.name + strlen("plain_"), format->facts.bits / 8, 1};
    if (format_is_blocks(format))
        return (element_type){"block", kernel_is_product(e->row) ? block_align(block_layout_of(format)) : 1,
                              1};
    return layout == QDNN_LAYOUT_BYTES ? (element_type){"u8", 1, 1} : (element_type){"u32", 4, 1};
}

static bool is_prepacked(const extent *e)
{
    return kernel_is_product(e->row) && e->spec->product.kernel == KERNEL_PRODUCT_STREAM;
}

static void add_codes(kernel_description *d, const extent *e, bool writes)
{
    element_type element = code_element(e, e->spec->stored.layout);
    if (is_prepacked(e))
        element.align = LOAD_BYTES;
    describe_operand(d, QDNN_OPERAND_CODES, writes, element,
                     is_prepacked(e)    ? prepacked_bytes(e)
                     : e->spec->strided ? strided_bytes(e)
                                        : code_bytes(e, e->spec->stored.layout));
}

static void add_repacked(kernel_description *d, const extent *e, bool writes)
{
    element_type element = code_element(e, e->spec->to.layout);
    const bool is_prepack = kernel_operation_of(e->row) == KERNEL_PREPACK;
    if (is_prepack)
        element.align = LOAD_BYTES;
    describe_operand(d, QDNN_OPERAND_REPACKED, writes, element,
                     is_prepack ? prepacked_bytes(e) : code_bytes(e, e->spec->to.layout));
}

static void add_scales(kernel_description *d, const extent *e, bool writes)
{
    const kernel_stored *s = &e->spec->stored;
    const element_type byte = {"u8", 1, 1};
    describe_operand(d, QDNN_OPERAND_SCALE, writes, s->nested ? byte : element_type_of_scale(s->scale),
                     s->scale_swizzle != QDNN_SWIZZLE_NONE ? swizzled_scales(e) : groups_of(e))
        ->is_per_group = true;
}

static void add_zeros(kernel_description *d, const extent *e, bool writes)
{
    const kernel_stored *s = &e->spec->stored;
    if (s->zero_packed)
        describe_operand(d, QDNN_OPERAND_ZERO, writes, (element_type){"u32", 4, 1}, packed_zeros(e))
            ->is_per_group = true;
    else
        describe_operand(d, QDNN_OPERAND_ZERO, writes, element_type_of(s->zero), groups_of(e))->is_per_group =
            true;
}

/* What lies beside the codes. */
static void add_beside(kernel_description *d, const extent *e, bool writes, qdnnOperand_t operand)
{
    const kernel_stored *s = &e->spec->stored;
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    if (operand == QDNN_OPERAND_SCALE)
        add_scales(d, e, writes);
    else if (operand == QDNN_OPERAND_ZERO && format_has_zero(e->row->format))
        add_zeros(d, e, writes);
    else if (operand == QDNN_OPERAND_GLOBAL_SCALE && s->global_scale)
        describe_operand(d, operand, writes, f32, rule_constant(1));
    else if (operand == QDNN_OPERAND_GROUP_INDEX && s->group_index)
        describe_operand(d, operand, writes, element_type_of(QDNN_DATA_I32), e->rows);
    else if (operand == QDNN_OPERAND_NESTED_MAP && s->nested)
        describe_operand(d, operand, writes, f32, rule_constant(256));
    else if (operand == QDNN_OPERAND_NESTED_SCALE && s->nested)
        describe_operand(d, operand, writes, f32, rule_ceil(groups_of(e), 256))->is_per_group = true;
    else if (operand == QDNN_OPERAND_NESTED_OFFSET && s->nested)
        describe_operand(d, operand, writes, f32, rule_constant(1));
}

static void add_stored(kernel_description *d, const extent *e, bool writes, qdnnOperand_t operand)
{
    if (operand == QDNN_OPERAND_CODES)
        add_codes(d, e, writes);
    else if (operand == QDNN_OPERAND_REPACKED)
        add_repacked(d, e, writes);
    else if (operand == QDNN_OPERAND_ROW_INDEX && e->spec->row_index)
        describe_operand(d, operand, writes, element_type_of((qdnnDataType_t)e->spec->index_type),
                         rule_number(NUMBER_ROWS));
    else if (e->spec->stored.groups != QDNN_GROUPS_DEFAULT && !format_is_blocks(e->row->format))
        add_beside(d, e, writes, operand);
}

void describe_stored(kernel_description *d, const kernel_row *row, const kernel_spec *spec, bool writes,
                     const qdnnOperand_t *list)
{
    const extent e = extent_of(d->numbers, row, spec);
    for (; (int)*list != QDNN_OPERAND_COUNT; list++)
        add_stored(d, &e, writes, *list);
}
