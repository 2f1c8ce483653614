/* Operands and launches of copies, gathers and scatters. */
#include "kernels/copy/copy.h"

#include <stdio.h>

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

number_set copy_numbers(const kernel_spec *spec)
{
    const number_set lines = A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(DIM_1) | A_NUMBER(DIM_2) |
                             A_NUMBER(X_STRIDE) | A_NUMBER(X_STRIDE_1) | A_NUMBER(Y_STRIDE) |
                             A_NUMBER(Y_STRIDE_1) | A_NUMBER(Y_STRIDE_2);
    switch (spec->copy.way) {
    case KERNEL_COPY_FLAT:
        return A_NUMBER(M) | A_NUMBER(COLUMNS);
    case KERNEL_COPY_LINES:
        return lines | A_NUMBER(X_STRIDE_2);
    case KERNEL_COPY_ELEMENTS:
        return lines | A_NUMBER(X_STRIDE_2) | A_NUMBER(X_STRIDE_3) | A_NUMBER(Y_STRIDE_3);
    case KERNEL_COPY_TILES:
        return lines | A_NUMBER(X_STRIDE_3);
    }
    missing_row("ways to copy", (int)spec->copy.way);
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

void copy_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p, kernel_steps *steps)
{
    kernel_step *step = steps_add(steps, row, spec, p);
    const kernel_lines *l = &p->lines;
    if (spec->copy.way == KERNEL_COPY_FLAT)
        step_follows_rows(step, 0, p->columns, copy_span(spec));
    else if (spec->copy.way == KERNEL_COPY_TILES)
        step_follows_rows(step, 0,
                          l->dims[0] * ceil_div(l->dims[1], COPY_SIDE) * ceil_div(p->columns, COPY_SIDE), 1);
    else
        step_follows_rows(step, 0, l->dims[0] * l->dims[1], COPY_BLOCK / spec->copy.lanes);
}

void move_rows_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                     kernel_steps *steps)
{
    step_follows_rows(steps_add(steps, row, spec, p), 0, 1, COPY_BLOCK / spec->copy.lanes);
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

/* From the first element to the last. */
static uint64_t span_of(const kernel_problem *p, uint64_t stride, const uint64_t strides[3])
{
    const kernel_lines *l = &p->lines;
    if (copy_is_empty(p))
        return 0;
    return (p->m - 1) * stride + (l->dims[0] - 1) * strides[0] + (l->dims[1] - 1) * strides[1] +
           (p->columns - 1) * strides[2] + 1;
}

kernel_operand copy_size(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    const bool is_x = operand == QDNN_OPERAND_X;
    const unsigned bytes = cast_bytes(is_x ? spec->copy.from : spec->copy.to);
    const uint64_t count = spec->copy.way == KERNEL_COPY_FLAT ? p->m * p->columns
                           : is_x                             ? span_of(p, p->x_stride, p->lines.x)
                                                              : span_of(p, p->y_stride, p->lines.y);
    return (kernel_operand){.align = bytes, .bytes = count * bytes};
}

static const char *element_name(int type)
{
    switch (type) {
    case QDNN_DATA_F32:
        return "f32";
    case QDNN_DATA_F16:
        return "f16";
    case QDNN_DATA_BF16:
        return "bf16";
    case QDNN_DATA_F64:
        return "f64";
    case QDNN_DATA_U16:
        return "u16";
    case QDNN_DATA_U32:
        return "u32";
    case QDNN_DATA_U64:
        return "u64";
    default: /* FP8 is bytes */
        return "u8";
    }
}

kernel_operand_text copy_text(const kernel_row *row, const kernel_spec *spec, int operand)
{
    static const char *const strides[2][4] = {{"y_stride", "y_stride_1", "y_stride_2", "y_stride_3"},
                                              {"x_stride", "x_stride_1", "x_stride_2", "x_stride_3"}};
    (void)row;
    const bool is_x = operand == QDNN_OPERAND_X, is_tile = spec->copy.way == KERNEL_COPY_TILES;
    const bool is_line = spec->copy.way == KERNEL_COPY_LINES;
    kernel_operand_text text;
    snprintf(text.element, sizeof text.element, "%s", element_name(is_x ? spec->copy.from : spec->copy.to));
    if (spec->copy.way == KERNEL_COPY_FLAT) {
        snprintf(text.count, sizeof text.count, "m * columns");
        return text;
    }
    const char *const *s = strides[is_x];
    const char *of_dim_2 = is_tile && is_x ? "1" : s[2],
               *of_columns = is_line || (is_tile && !is_x) ? "1" : s[3];
    snprintf(text.count, sizeof text.count,
             "((m - 1) * %s + (dim_1 - 1) * %s + (dim_2 - 1) * %s + (columns - 1) * %s + 1)", s[0], s[1],
             of_dim_2, of_columns);
    return text;
}

/* ---- Rows by index ---- */

/* Rows of the operand, and elements from one to the next: the table's, or those that the list has. */
static void rows_of(const kernel_row *row, const kernel_problem *p, bool is_x, uint64_t *rows,
                    uint64_t *stride)
{
    const bool is_table = is_x == (kernel_operation_of(row) == KERNEL_GATHER);
    *rows = is_table ? p->table_rows : p->m;
    *stride = is_x ? p->x_stride : p->y_stride;
}

kernel_operand move_rows_operand(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                                 int operand)
{
    const bool is_x = operand == QDNN_OPERAND_X;
    const unsigned index = spec->index_type == QDNN_DATA_I64 ? 8 : 4;
    uint64_t rows, stride;
    if (operand == QDNN_OPERAND_ROW_INDEX)
        return (kernel_operand){.reads = true, .align = index, .bytes = p->m * index};
    rows_of(row, p, is_x, &rows, &stride);
    const unsigned bytes = cast_bytes(is_x ? spec->copy.from : spec->copy.to);
    const uint64_t count = rows && p->columns ? (rows - 1) * stride + p->columns : 0;
    return (kernel_operand){.reads = is_x, .writes = !is_x, .align = bytes, .bytes = count * bytes};
}

kernel_operand_text move_rows_text(const kernel_row *row, const kernel_spec *spec, int operand)
{
    const bool is_x = operand == QDNN_OPERAND_X;
    kernel_operand_text text = {.count = "m"};
    if (operand == QDNN_OPERAND_ROW_INDEX) {
        snprintf(text.element, sizeof text.element, spec->index_type == QDNN_DATA_I64 ? "i64" : "i32");
        return text;
    }
    const bool is_table = is_x == (kernel_operation_of(row) == KERNEL_GATHER);
    snprintf(text.element, sizeof text.element, "%s", element_name(is_x ? spec->copy.from : spec->copy.to));
    snprintf(text.count, sizeof text.count, "((%s - 1) * %s + columns)", is_table ? "table_rows" : "m",
             is_x ? "x_stride" : "y_stride");
    return text;
}
