/* How scales are computed: in one pass or, where few groups are long, in two. */
#include "kernels/operations.h"

#include "kernels/formats/format.h"
#include "kernels/quant/quant.h"

enum {
    ROUNDS_MAX = 32,   /* elements that a lane of a single pass takes one after another at most */
    RUN_MAX = 1 << 15, /* a run that one team reduces as fast as two passes would */
    MANY_RUNS = 128    /* enough to keep a GPU busy, however long they are */
};

static bool one_pass(const kernel_spec *spec, uint64_t n)
{
    if (spec->channels == 0)
        return spec->group_size <= RUN_MAX || n / spec->group_size >= MANY_RUNS;
    return n / spec->channels <= ROUNDS_MAX * scale_lanes(spec);
}

/* A flat grouping of so many elements in the form that has the fewest kernels. */
static kernel_spec simplest(const kernel_spec *spec, uint64_t n)
{
    kernel_spec whole = *spec;
    if (whole.channels > 1 && n == whole.group_size * whole.channels)
        whole.channels = 0; /* one turn: a channel is a run */
    if (whole.channels == 0 && whole.group_size > RUN_MAX && whole.group_size >= n)
        whole.group_size = whole.channels = 1; /* one run: split by its elements, not by what it might have */
    return whole;
}

void scale_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
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
    lists.group_size = kernel_range_list(range, &parts);
    uint64_t count = kernel_range_count(range, &parts, n);
    steps->workspace = count * sizeof(float);
    steps_add(steps, range, &parts, problem);
    kernel_step *last = steps_add(steps, row, &lists, &(kernel_problem){1, count});
    step_from_workspace(last, QDNN_OPERAND_X, 0);
}
