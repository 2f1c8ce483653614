/* How operations on rows are launched, and the sizes of their operands. */
#include "kernels/rows/rows.h"

/* More blocks do not make it faster; each loads the weights of the columns once. */
enum { BLOCKS_MAX = 512 };

bool rows_are_empty(const kernel_problem *problem)
{
    return problem->m == 0;
}

static kernel_geometry geometry_of(const kernel_spec *spec, bool is_whole, bool has_columns)
{
    const row_shape s = row_shape_of(spec, is_whole);
    kernel_rule blocks = rule_ceil(
        rule_times(rule_number(NUMBER_M), rule_constant(spec->rows.heads * s.parts)), s.block / s.lanes);
    return (kernel_geometry){
        .block = s.block, .grid = {rule_least(blocks, rule_constant(has_columns ? BLOCKS_MAX : INT32_MAX))}};
}

kernel_geometry norm_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return geometry_of(spec, true, true);
}

kernel_geometry pointwise_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return geometry_of(spec, rows_have_one_scale(spec), false);
}

/* ---- What is possible ---- */

bool rows_can_quantize(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const uint64_t group = spec->stored.group_size, columns = spec->rows.columns;
    if (!rows_are_quantized(spec))
        return true;
    const bool is_power = group >= ROW_CHUNK && group <= WARP * ROW_CHUNK && (group & (group - 1)) == 0;
    if (spec->stored.groups != QDNN_GROUPS_FLAT || spec->stored.channels || columns % ROW_CHUNK != 0 ||
        (group != columns && (!is_power || columns % group != 0)))
        return kernel_refuse(
            error, error_size,
            "the result has rows of %llu and groups of %llu; one kernel quantizes groups of 8, 16, 32, "
            "64, 128 or 256 that divide the row, or whole rows of a multiple of 8; fix: such "
            "groups, or a plan of its own that quantizes",
            (unsigned long long)columns, (unsigned long long)group);
    if (row->format->facts.bits != 8 && row->format->facts.bits != 4)
        return kernel_refuse(error, error_size, "the codes have %u bits; it must be 4 or 8",
                             row->format->facts.bits);
    return true;
}

static bool fits(const kernel_row *row, const kernel_spec *spec, bool is_whole, char *error,
                 size_t error_size)
{
    if (is_whole && spec->rows.columns > ROW_LONGEST)
        return kernel_refuse(error, error_size, "a row has %llu elements; it may have up to %llu",
                             (unsigned long long)spec->rows.columns, (unsigned long long)ROW_LONGEST);
    return rows_can_quantize(row, spec, error, error_size);
}

bool norm_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    return fits(row, spec, true, error, error_size);
}

bool pointwise_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const bool has_two = spec->pointwise.kind != KERNEL_POINTWISE_FUNCTION;
    const int b = (int)spec->pointwise.b;
    if (has_two != (b != KERNEL_B_NONE))
        return kernel_refuse(error, error_size,
                             "a function takes no second input, and every other operation takes one");
    if (b >= KERNEL_B_SECOND_HALF && spec->pointwise.kind != KERNEL_POINTWISE_GATED)
        return kernel_refuse(error, error_size, "only gated operations take halves of a row");
    if ((b == KERNEL_B_ROW || b == KERNEL_B_NUMBER) && spec->pointwise.kind == KERNEL_POINTWISE_GATED)
        return kernel_refuse(error, error_size, "a gated operation takes two tensors, or parts of a row");
    if (spec->pointwise.function == QDNN_ACTIVATION_CLAMPED_SILU &&
        spec->pointwise.kind != KERNEL_POINTWISE_GATED)
        return kernel_refuse(error, error_size, "clamped_silu is a gated operation");
    if (b >= KERNEL_B_SECOND_HALF && spec->rows.heads != 1)
        return kernel_refuse(error, error_size, "rows with parts must not be divided into heads");
    return fits(row, spec, rows_have_one_scale(spec), error, error_size);
}

static void choose_norm(kernel_spec *spec)
{
    if (!spec->norm.weight)
        spec->norm.plus_one = 0;
}

static void choose_pointwise(kernel_spec *spec)
{
    const kernel_pointwise_kind kind = spec->pointwise.kind;
    if (kind == KERNEL_POINTWISE_ADD || kind == KERNEL_POINTWISE_MUL)
        spec->pointwise.function = QDNN_ACTIVATION_NONE;
    if (spec->pointwise.b != KERNEL_B_SAME && spec->pointwise.b != KERNEL_B_ROW)
        spec->pointwise.b_type = QDNN_DATA_F32;
}

static void leave_plain(kernel_spec *spec)
{
    spec->stored.groups = QDNN_GROUPS_DEFAULT;
    spec->stored.group_size = 1;
}

void fix_norm(kernel_spec *spec)
{
    leave_plain(spec);
    choose_norm(spec);
}

void fix_norm_quantized(kernel_spec *spec)
{
    choose_norm(spec);
}

void fix_pointwise(kernel_spec *spec)
{
    leave_plain(spec);
    choose_pointwise(spec);
}

void fix_pointwise_quantized(kernel_spec *spec)
{
    choose_pointwise(spec);
}

/* Packed rows. */
void rows_complete(const kernel_spec *spec, kernel_problem *problem)
{
    const uint64_t token = spec->rows.columns * spec->rows.heads;
    problem->columns = spec->rows.columns;
    problem->rows = problem->m * spec->rows.heads;
    problem->x_stride =
        problem->x_stride ? problem->x_stride : token * (spec->pointwise.b >= KERNEL_B_SECOND_HALF ? 2 : 1);
    problem->y_stride = problem->y_stride ? problem->y_stride : token;
    problem->b_stride = problem->b_stride ? problem->b_stride : token;
}

/* ---- Operands ---- */

/* Rows of so many heads of `columns` elements, with a distance from token to token. */
static kernel_rule strided(const kernel_spec *spec, kernel_number stride, uint64_t columns)
{
    return rule_span(rule_number(NUMBER_M), rule_number(stride), rule_constant(spec->rows.heads * columns));
}

static kernel_rule tokens(uint64_t each)
{
    return rule_times(rule_number(NUMBER_M), rule_constant(each));
}

static void describe_result(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const uint64_t token = spec->rows.heads * spec->rows.columns;
    if (!rows_are_quantized(spec)) {
        describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->epilogue.output),
                       strided(spec, NUMBER_Y_STRIDE, spec->rows.columns));
        return;
    }
    describe_write(d, QDNN_OPERAND_CODES, element_type_of(QDNN_DATA_U8),
                   tokens(token * row->format->facts.bits / 8));
    describe_write(d, QDNN_OPERAND_SCALE, element_type_of_scale(spec->stored.scale),
                   tokens(token / spec->stored.group_size));
}

static void describe_global_scale(kernel_description *d, const kernel_spec *spec)
{
    if (rows_are_quantized(spec) && spec->stored.global_scale)
        describe_read(d, QDNN_OPERAND_GLOBAL_SCALE, element_type_of(QDNN_DATA_F32), rule_constant(1));
}

void describe_norm(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const uint64_t columns = spec->rows.columns;
    const kernel_rule each = tokens(spec->rows.heads * columns);
    d->numbers = A_NUMBER(M) | A_NUMBER(X_STRIDE) | A_NUMBER(Y_STRIDE) | A_NUMBER(EPS);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data), strided(spec, NUMBER_X_STRIDE, columns));
    describe_global_scale(d, spec);
    if (spec->epilogue.bias)
        describe_read(d, QDNN_OPERAND_BIAS, element_type_of((qdnnDataType_t)spec->epilogue.bias),
                      rule_constant(columns));
    if (spec->norm.sum)
        describe_read(d, QDNN_OPERAND_RESIDUAL, element_type_of((qdnnDataType_t)spec->norm.sum), each);
    if (spec->norm.weight)
        describe_read(d, QDNN_OPERAND_WEIGHT, element_type_of((qdnnDataType_t)spec->norm.weight),
                      rule_constant(columns));
    describe_result(d, row, spec);
    if (spec->norm.sum)
        describe_write(d, QDNN_OPERAND_SUM, element_type_of((qdnnDataType_t)spec->norm.sum), each);
}

void describe_pointwise(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_b b = spec->pointwise.b;
    const uint64_t columns = spec->rows.columns;
    d->numbers = A_NUMBER(M) | A_NUMBER(X_STRIDE) | A_NUMBER(Y_STRIDE) | A_NUMBER(ALPHA) |
                 A_NUMBER(B_STRIDE) | A_NUMBER(LIMIT) | A_NUMBER(FACTOR);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data),
                  strided(spec, NUMBER_X_STRIDE, b >= KERNEL_B_SECOND_HALF ? 2 * columns : columns));
    describe_global_scale(d, spec);
    if (b == KERNEL_B_SAME || b == KERNEL_B_ROW)
        describe_read(d, QDNN_OPERAND_B, element_type_of(spec->pointwise.b_type),
                      b == KERNEL_B_ROW ? rule_constant(columns) : strided(spec, NUMBER_B_STRIDE, columns));
    describe_result(d, row, spec);
}
