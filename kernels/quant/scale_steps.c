/* How scales are computed: in one pass or, if there are few but long groups, in two. */
#include "kernels/operations.h"

#include "kernels/formats/format.h"
#include "kernels/quant/matrix.h"
#include "kernels/quant/quant.h"

enum {
    ROUNDS_MAX = 32,   /* maximum number of elements that a lane of a single pass reads in sequence */
    RUN_MAX = 1 << 15, /* a run that one team reduces as fast as two passes would */
    MANY_RUNS = 128    /* enough to keep a GPU busy, whatever their length */
};

static bool one_pass(const kernel_spec *spec, uint64_t n)
{
    if (spec->stored.channels == 0)
        return spec->stored.group_size <= RUN_MAX || n / spec->stored.group_size >= MANY_RUNS;
    return n / spec->stored.channels <= ROUNDS_MAX * scale_lanes(spec);
}

/* The equivalent flat grouping of n elements that needs the fewest different kernels. */
static kernel_spec simplest(const kernel_spec *spec, uint64_t n)
{
    kernel_spec whole = *spec;
    if (whole.stored.channels > 1 && n == whole.stored.group_size * whole.stored.channels)
        whole.stored.channels = 0; /* one turn: each channel is a single run */
    if (whole.stored.channels == 0 && whole.stored.group_size > RUN_MAX && whole.stored.group_size >= n)
        whole.stored.group_size = whole.stored.channels =
            1; /* a single run: independent of the nominal group size */
    return whole;
}

static void flat_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                       kernel_steps *steps)
{
    uint64_t n = problem->rows * problem->columns;
    kernel_spec whole = simplest(spec, n);
    if (one_pass(&whole, n)) {
        steps_add(steps, row, &whole, problem);
        return;
    }
    const kernel_row *range = kernel_find(format_has_zero(row->format) ? "range_lo_hi" : "range_absmax");
    kernel_spec parts = whole, lists = whole;
    lists.data = QDNN_DATA_F32;
    lists.stored.group_size = kernel_range_list(range, &parts);
    uint64_t count = kernel_range_count(range, &parts, n), offset = steps->workspace;
    steps->workspace += count * sizeof(float);
    step_in_workspace(steps_add(steps, range, &parts, problem), offset);
    kernel_step *last = steps_add(steps, row, &lists, &(kernel_problem){.rows = 1, .columns = count});
    step_from_workspace(last, QDNN_OPERAND_X, offset);
}

void scale_level_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                       kernel_steps *steps)
{
    if (kernel_is_matrix(row, spec))
        steps_add(steps, row, spec, problem);
    else
        flat_steps(row, spec, problem, steps);
}

/* The absmax of the tensor in parts, then the global scale from those. */
static void global_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps)
{
    const kernel_row *range = kernel_find("range_absmax");
    kernel_spec parts = *spec;
    parts.stored.group_size = parts.stored.channels = 1;
    uint64_t n = problem->rows * problem->columns, count = kernel_range_count(range, &parts, n),
             offset = steps->workspace;
    steps->workspace += count * sizeof(float);
    step_in_workspace(steps_add(steps, range, &parts, problem), offset);
    kernel_spec list = *spec;
    list.data = QDNN_DATA_F32;
    kernel_step *global =
        steps_add(steps, kernel_find("global_scale"), &list, &(kernel_problem){.rows = 1, .columns = count});
    union {
        float value;
        uint32_t bits;
    } largest = {row->format->number->largest * float_e4m3.largest};
    step_set_number(global, NUMBER_LARGEST, largest.bits);
    step_from_workspace(global, QDNN_OPERAND_X, offset);
}

/* Scales as f32 in the workspace, then bytes from those. */
static void nested_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps)
{
    kernel_spec plain = *spec;
    uint64_t groups = kernel_groups(spec, problem), offset = steps->workspace;
    plain.stored.nested = 0;
    steps->workspace += groups * sizeof(float);
    scale_level_steps(row, &plain, problem, steps);
    step_from_workspace(&steps->at[steps->count - 1], QDNN_OPERAND_SCALE, offset);
    kernel_spec list = *spec;
    list.data = QDNN_DATA_F32;
    kernel_step *nest =
        steps_add(steps, kernel_find("nest_scales"), &list, &(kernel_problem){.rows = 1, .columns = groups});
    step_from_workspace(nest, QDNN_OPERAND_X, offset);
}

/* Zeros are packed like codes without scales: those of a group down columns form a row of words, those of a
 * group along rows a column of words. */
void zero_packing_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_steps *steps)
{
    const format_facts *f = &row->format->facts;
    const format_row *plain =
        kernel_find_format(f->storage, f->bits, QDNN_ZERO_NONE, QDNN_CODE_DEFAULT, QDNN_BLOCK_NONE);
    uint64_t groups = kernel_groups(spec, problem), from = (steps->workspace + 15) / 16 * 16;
    kernel_problem zeros = {.rows = 1, .columns = groups};
    kernel_spec codes = kernel_spec_default();
    codes.stored.groups = QDNN_GROUPS_DEFAULT;
    codes.stored.code = spec->stored.code;
    codes.stored.layout = QDNN_LAYOUT_WORDS_ROWS;
    if (spec->stored.groups == QDNN_GROUPS_ROWS) {
        zeros.rows = (problem->rows - 1) / spec->stored.group_rows + 1;
        codes.stored.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
    } else if (spec->stored.groups == QDNN_GROUPS_COLUMNS) {
        zeros.rows = (problem->rows - 1) / spec->stored.group_size + 1;
        codes.stored.layout =
            spec->stored.layout == QDNN_LAYOUT_AWQ ? QDNN_LAYOUT_AWQ : QDNN_LAYOUT_WORDS_ROWS;
    }
    zeros.columns = groups / zeros.rows;
    steps->workspace = from + groups * sizeof(float);
    for (int i = 0; i < steps->count; i++)
        step_from_workspace(&steps->at[i], QDNN_OPERAND_ZERO, from);
    const kernel_row *quantize = kernel_find_operation(KERNEL_QUANTIZE, plain);
    steps_add_operation(steps, quantize, &codes, &zeros);
    kernel_step *last = &steps->at[steps->count - 1];
    step_from_workspace(last, QDNN_OPERAND_X, from);
    step_with_operand(last, QDNN_OPERAND_CODES, QDNN_OPERAND_ZERO);
}

void scale_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                 kernel_steps *steps)
{
    if (spec->stored.global_scale)
        global_steps(row, spec, problem, steps);
    if (spec->stored.nested)
        nested_steps(row, spec, problem, steps);
    else
        scale_level_steps(row, spec, problem, steps);
    if (spec->stored.zero_packed)
        zero_packing_steps(row, spec, problem, steps);
}
