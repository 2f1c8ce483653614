/* How operations on rows are launched, and the sizes of their operands. */
#include "kernels/rows/rows.h"

#include <stdio.h>

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

void rows_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps)
{
    const kernel_operation operation = kernel_operation_of(row);
    const bool is_norm = operation == KERNEL_NORM || operation == KERNEL_NORM_QUANTIZED;
    const row_shape s = row_shape_of(spec, is_norm || rows_have_one_scale(spec));
    step_follows_rows(steps_add(steps, row, spec, problem), 0, spec->rows.heads * s.parts, s.block / s.lanes);
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

static bool quantized_takes(const kernel_spec *spec, int operand)
{
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_Y:
        return !rows_are_quantized(spec);
    case QDNN_OPERAND_CODES:
    case QDNN_OPERAND_SCALE:
        return rows_are_quantized(spec);
    case QDNN_OPERAND_GLOBAL_SCALE:
        return rows_are_quantized(spec) && spec->stored.global_scale;
    default:
        return true;
    }
}

bool norm_takes(const kernel_spec *spec, int operand)
{
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_WEIGHT:
        return spec->norm.weight;
    case QDNN_OPERAND_BIAS:
        return spec->epilogue.bias;
    case QDNN_OPERAND_RESIDUAL:
    case QDNN_OPERAND_SUM:
        return spec->norm.sum;
    default:
        return quantized_takes(spec, operand);
    }
}

bool pointwise_takes(const kernel_spec *spec, int operand)
{
    if (operand == QDNN_OPERAND_B)
        return spec->pointwise.b == KERNEL_B_SAME || spec->pointwise.b == KERNEL_B_ROW;
    return quantized_takes(spec, operand);
}

/* What an operand holds: its type, elements for each row (0: one row for all), and elements from token to token. Type 0: it
 * follows from the format. */
typedef struct extent {
    int type;
    uint64_t in_row, stride;
} extent;

static extent norm_extent(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    const uint64_t columns = spec->rows.columns;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        return (extent){(int)spec->data, columns, p->x_stride};
    case QDNN_OPERAND_Y:
        return (extent){(int)spec->epilogue.output, columns, p->y_stride};
    case QDNN_OPERAND_WEIGHT:
        return (extent){spec->norm.weight, 0, 0};
    case QDNN_OPERAND_BIAS:
        return (extent){spec->epilogue.bias, 0, 0};
    case QDNN_OPERAND_RESIDUAL:
    case QDNN_OPERAND_SUM:
        return (extent){spec->norm.sum, columns, columns * spec->rows.heads};
    default:
        return (extent){0};
    }
}

static extent pointwise_extent(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    const uint64_t columns = spec->rows.columns;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        return (extent){(int)spec->data, columns * (spec->pointwise.b >= KERNEL_B_SECOND_HALF ? 2 : 1),
                        p->x_stride};
    case QDNN_OPERAND_Y:
        return (extent){(int)spec->epilogue.output, columns, p->y_stride};
    case QDNN_OPERAND_B:
        return (extent){(int)spec->pointwise.b_type, spec->pointwise.b == KERNEL_B_ROW ? 0 : columns,
                        p->b_stride};
    default:
        return (extent){0};
    }
}

static kernel_operand size_of(const kernel_spec *spec, const kernel_problem *p, extent e)
{
    if (!e.type)
        return (kernel_operand){0};
    const unsigned bytes = element_bytes((qdnnDataType_t)e.type);
    const uint64_t token = e.in_row * spec->rows.heads, elements = e.in_row == 0 ? spec->rows.columns
                                                                   : p->m ? (p->m - 1) * e.stride + token
                                                                          : 0;
    return (kernel_operand){.align = bytes, .bytes = elements * bytes};
}

kernel_operand norm_size(const kernel_spec *spec, const kernel_problem *problem, int operand)
{
    return size_of(spec, problem, norm_extent(spec, problem, operand));
}

kernel_operand pointwise_size(const kernel_spec *spec, const kernel_problem *problem, int operand)
{
    return size_of(spec, problem, pointwise_extent(spec, problem, operand));
}

static const char *type_name(int type)
{
    return type == QDNN_DATA_F16 ? "f16" : type == QDNN_DATA_BF16 ? "bf16" : "f32";
}

/* The codes and scales of a quantized result. */
static kernel_operand_text quantized_text(const kernel_row *row, const kernel_spec *spec, int operand)
{
    static const char *const scales[] = {[QDNN_SCALE_F32] = "f32",
                                         [QDNN_SCALE_F16] = "f16",
                                         [QDNN_SCALE_BF16] = "bf16",
                                         [QDNN_SCALE_E4M3] = "u8",
                                         [QDNN_SCALE_E8M0] = "u8"};
    const uint64_t token = spec->rows.heads * spec->rows.columns;
    kernel_operand_text text = {.element = "f32", .count = "1"};
    if (operand == QDNN_OPERAND_CODES) {
        snprintf(text.element, sizeof text.element, "u8");
        snprintf(text.count, sizeof text.count, "m * %llu",
                 (unsigned long long)(token * row->format->facts.bits / 8));
    } else if (operand == QDNN_OPERAND_SCALE) {
        snprintf(text.element, sizeof text.element, "%s", scales[spec->stored.scale]);
        snprintf(text.count, sizeof text.count, "m * %llu",
                 (unsigned long long)(token / spec->stored.group_size));
    }
    return text;
}

static kernel_operand_text text_of(const kernel_row *row, const kernel_spec *spec, extent e, int operand,
                                   const char *stride)
{
    kernel_operand_text text = {0};
    if (!e.type)
        return quantized_text(row, spec, operand);
    snprintf(text.element, sizeof text.element, "%s", type_name(e.type));
    if (e.in_row == 0)
        snprintf(text.count, sizeof text.count, "%llu", (unsigned long long)spec->rows.columns);
    else if (stride)
        snprintf(text.count, sizeof text.count, "((m - 1) * %s + %llu)", stride,
                 (unsigned long long)(e.in_row * spec->rows.heads));
    else
        snprintf(text.count, sizeof text.count, "m * %llu",
                 (unsigned long long)(e.in_row * spec->rows.heads));
    return text;
}

static const char *stride_name(int operand)
{
    return operand == QDNN_OPERAND_X   ? "x_stride"
           : operand == QDNN_OPERAND_Y ? "y_stride"
           : operand == QDNN_OPERAND_B ? "b_stride"
                                       : NULL;
}

kernel_operand_text norm_text(const kernel_row *row, const kernel_spec *spec, int operand)
{
    return text_of(row, spec, norm_extent(spec, &(kernel_problem){0}, operand), operand,
                   stride_name(operand));
}

kernel_operand_text pointwise_text(const kernel_row *row, const kernel_spec *spec, int operand)
{
    return text_of(row, spec, pointwise_extent(spec, &(kernel_problem){0}, operand), operand,
                   stride_name(operand));
}
