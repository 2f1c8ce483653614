/* Operands and launches of copies, gathers and scatters. */
#include "kernels/copy/copy.h"

bool copy_is_empty(const kernel_problem *p)
{
    return p->m == 0 || p->columns == 0 || p->lines.dims[0] == 0 || p->lines.dims[1] == 0;
}

/* ---- Specifications ---- */

static bool is_raw(int type)
{
    return type == QDNN_DATA_U8 || type == QDNN_DATA_U16 || type == QDNN_DATA_U32 || type == QDNN_DATA_U64;
}

/* Elements that stay as they are: only their size matters. */
static int raw_type(int type)
{
    switch (cast_bytes(type)) {
    case 1:
        return QDNN_DATA_U8;
    case 2:
        return QDNN_DATA_U16;
    case 4:
        return QDNN_DATA_U32;
    default:
        return QDNN_DATA_U64;
    }
}

void fix_copy(kernel_spec *spec)
{
    if (spec->copy.from == spec->copy.to)
        spec->copy.from = spec->copy.to = raw_type(spec->copy.from);
    if (spec->copy.way == KERNEL_COPY_FLAT || spec->copy.way == KERNEL_COPY_TILES)
        spec->copy.lanes = COPY_BLOCK;
}

/* The type of the result says what a missing row is. */
void fix_move_rows(kernel_spec *spec)
{
    spec->copy.way = KERNEL_COPY_LINES;
}

bool copy_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    (void)row;
    const kernel_copying *copy = &spec->copy;
    if (copy->from != copy->to && (is_raw(copy->from) || is_raw(copy->to)))
        return kernel_refuse(error, error_size,
                             "u8 to u64 are copied as they are; a conversion takes f32, f16, bf16, f64, e4m3 "
                             "and e5m2");
    if (copy->lanes < 1 || copy->lanes > COPY_BLOCK || (copy->lanes & (copy->lanes - 1)) != 0)
        return kernel_refuse(error, error_size, "lanes is %llu; it must be a power of two, 1 to %d",
                             (unsigned long long)copy->lanes, COPY_BLOCK);
    return true;
}

/* As many lanes as a line has accesses. */
void kernel_copy_choose(kernel_spec *spec, uint64_t columns)
{
    const uint64_t vector = spec->copy.way == KERNEL_COPY_ELEMENTS ? 1 : cast_vector(&spec->copy),
                   accesses = ceil_div(columns, vector);
    uint64_t lanes = 1;
    while (lanes < accesses && lanes < COPY_BLOCK)
        lanes *= 2;
    spec->copy.lanes = lanes;
}

/* ---- Launches ---- */

static kernel_rule lines_of(uint64_t teams, bool has_dims)
{
    kernel_rule lines = rule_number(NUMBER_M);
    if (has_dims)
        lines = rule_times(rule_times(lines, rule_number(NUMBER_DIM_1)), rule_number(NUMBER_DIM_2));
    return rule_ceil(lines, teams);
}

kernel_geometry copy_geometry(const kernel_row *row, const kernel_spec *spec)
{
    const bool is_copy = kernel_operation_of(row) == KERNEL_COPY;
    const kernel_rule parts = rule_capped(rule_parts(NUMBER_COLUMNS, copy_span(spec)));
    switch (spec->copy.way) {
    case KERNEL_COPY_FLAT:
        return (kernel_geometry){
            .block = COPY_BLOCK,
            .grid = {
                rule_ceil(rule_times(rule_number(NUMBER_M), rule_number(NUMBER_COLUMNS)), copy_span(spec))}};
    case KERNEL_COPY_LINES:
    case KERNEL_COPY_ELEMENTS:
        return (kernel_geometry){.block = COPY_BLOCK,
                                 .grid = {lines_of(COPY_BLOCK / spec->copy.lanes, is_copy), parts}};
    case KERNEL_COPY_TILES:
        return (kernel_geometry){
            .block = COPY_BLOCK,
            .grid = {rule_times(
                rule_times(rule_number(NUMBER_M), rule_number(NUMBER_DIM_1)),
                rule_times(rule_parts(NUMBER_DIM_2, COPY_SIDE), rule_parts(NUMBER_COLUMNS, COPY_SIDE)))}};
    }
    missing_row("ways to copy", (int)spec->copy.way);
}

/* ---- Operands ---- */

static void set_if_none(uint64_t *number, uint64_t value)
{
    *number = *number ? *number : value;
}

/* Packed tensors, except that x is packed along dim_2 in way `tiles`. */
void copy_complete(const kernel_spec *spec, kernel_problem *p)
{
    kernel_lines *l = &p->lines;
    const bool is_transposed = spec->copy.way == KERNEL_COPY_TILES;
    set_if_none(&l->dims[0], 1);
    set_if_none(&l->dims[1], 1);
    set_if_none(&l->y[2], 1);
    set_if_none(&l->y[1], p->columns);
    set_if_none(&l->y[0], l->dims[1] * p->columns);
    set_if_none(&l->x[2], is_transposed ? l->dims[1] : 1);
    set_if_none(&l->x[1], is_transposed ? 1 : p->columns);
    set_if_none(&l->x[0], l->dims[1] * p->columns);
    set_if_none(&p->x_stride, l->dims[0] * l->dims[1] * p->columns);
    set_if_none(&p->y_stride, l->dims[0] * l->dims[1] * p->columns);
    p->rows = 1;
}

void move_rows_complete(const kernel_spec *spec, kernel_problem *p)
{
    (void)spec;
    set_if_none(&p->x_stride, p->columns);
    set_if_none(&p->y_stride, p->columns);
    set_if_none(&p->table_rows, 1);
    p->lines.dims[0] = p->lines.dims[1] = 1;
    p->rows = 1;
}

/* From the first element to the last: with the numbers of the strides of m, dim_1, dim_2 and columns; N: neighbours. */
static kernel_rule span_of(kernel_description *d, const kernel_number strides[4])
{
    static const kernel_number counts[] = {NUMBER_M, NUMBER_DIM_1, NUMBER_DIM_2, NUMBER_COLUMNS};
    kernel_rule each = rule_constant(1);
    for (int i = 4; i-- > 0;) {
        const bool is_packed = strides[i] == NUMBER_N;
        each =
            rule_span(rule_number(counts[i]), is_packed ? rule_constant(1) : rule_number(strides[i]), each);
        d->numbers |= (number_set)1 << counts[i] | (is_packed ? 0 : (number_set)1 << strides[i]);
    }
    return each;
}

static element_type element_of(int type)
{
    return element_type_of((qdnnDataType_t)type);
}

void describe_copy(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_copy_way way = spec->copy.way;
    const bool is_line = way == KERNEL_COPY_LINES, is_tile = way == KERNEL_COPY_TILES;
    const kernel_number x[] = {NUMBER_X_STRIDE, NUMBER_X_STRIDE_1, is_tile ? NUMBER_N : NUMBER_X_STRIDE_2,
                               is_line ? NUMBER_N : NUMBER_X_STRIDE_3};
    const kernel_number y[] = {NUMBER_Y_STRIDE, NUMBER_Y_STRIDE_1, NUMBER_Y_STRIDE_2,
                               is_line || is_tile ? NUMBER_N : NUMBER_Y_STRIDE_3};
    const kernel_rule all = rule_times(rule_number(NUMBER_M), rule_number(NUMBER_COLUMNS));
    (void)row;
    d->numbers = A_NUMBER(M) | A_NUMBER(COLUMNS);
    if (way == KERNEL_COPY_FLAT) {
        describe_read(d, QDNN_OPERAND_X, element_of(spec->copy.from), all);
        describe_write(d, QDNN_OPERAND_Y, element_of(spec->copy.to), all);
        return;
    }
    describe_read(d, QDNN_OPERAND_X, element_of(spec->copy.from), span_of(d, x));
    describe_write(d, QDNN_OPERAND_Y, element_of(spec->copy.to), span_of(d, y));
}

/* Rows by index: one side is the table, the other has a row for each index. */
void describe_move_rows(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const bool is_gather = kernel_operation_of(row) == KERNEL_GATHER;
    const kernel_rule m = rule_number(NUMBER_M), table = rule_number(NUMBER_TABLE_ROWS),
                      columns = rule_number(NUMBER_COLUMNS);
    d->numbers =
        A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(TABLE_ROWS) | A_NUMBER(X_STRIDE) | A_NUMBER(Y_STRIDE);
    describe_read(d, QDNN_OPERAND_X, element_of(spec->copy.from),
                  rule_span(is_gather ? table : m, rule_number(NUMBER_X_STRIDE), columns));
    describe_read(d, QDNN_OPERAND_ROW_INDEX, element_of(spec->index_type), m);
    describe_write(d, QDNN_OPERAND_Y, element_of(spec->copy.to),
                   rule_span(is_gather ? m : table, rule_number(NUMBER_Y_STRIDE), columns));
}
