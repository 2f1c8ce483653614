/* The launches of operations for training, and the operands that the caller binds. */
#include "kernels/formats/quantized.h"
#include "kernels/train/train.h"

enum { ALIGN = 16 }; /* alignment of the parts of the workspace */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- Operands ---- */

void fake_quantize_bound(const kernel_spec *spec, const kernel_problem *problem,
                         kernel_operand operands[QDNN_OPERAND_COUNT])
{
    (void)problem;
    if (spec->train.scale_mode == QDNN_SCALE_MODE_BATCH)
        operands[QDNN_OPERAND_STATE] = (kernel_operand){0};
    else if (spec->train.scale_mode == QDNN_SCALE_MODE_EMA)
        operands[QDNN_OPERAND_STATE].writes = true;
}

void backward_bound(const kernel_spec *spec, const kernel_problem *problem,
                    kernel_operand operands[QDNN_OPERAND_COUNT])
{
    (void)problem;
    if (spec->train.scale_mode == QDNN_SCALE_MODE_BATCH)
        operands[QDNN_OPERAND_STATE] = (kernel_operand){0};
}

/* y, or dx, from x and the states of scales. */
static void describe_sweep(kernel_description *d, const kernel_spec *spec, bool has_state, bool is_backward)
{
    const element_type element = element_type_of(spec->data);
    const kernel_rule n = rule_number(NUMBER_N);
    d->numbers = A_NUMBER(N);
    if (!is_backward || spec->train.backward != QDNN_BACKWARD_IDENTITY)
        describe_read(d, QDNN_OPERAND_X, element, n);
    if (is_backward)
        describe_read(d, QDNN_OPERAND_DY, element, n);
    if (has_state)
        describe_read(d, QDNN_OPERAND_STATE, element_type_of(QDNN_DATA_F32), describe_groups(d, spec))
            ->is_per_group = true;
    describe_write(d, is_backward ? QDNN_OPERAND_DX : QDNN_OPERAND_Y, element, n);
}

void describe_fake_quantize(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    describe_sweep(d, spec, true, false);
}

void describe_fake_quantize_backward(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    describe_sweep(d, spec, train_backward_needs_scale(spec), true);
}

void describe_lsq(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    d->numbers = A_NUMBER(N);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data), rule_number(NUMBER_N));
    describe_stored(d, row, spec, false, STORED_LIST(QDNN_OPERAND_SCALE));
    describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->data), rule_number(NUMBER_N));
}

void describe_lsq_backward(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const element_type element = element_type_of(spec->data);
    const kernel_rule n = rule_number(NUMBER_N);
    d->numbers = A_NUMBER(N);
    describe_read(d, QDNN_OPERAND_X, element, n);
    describe_stored(d, row, spec, false, STORED_LIST(QDNN_OPERAND_SCALE));
    describe_read(d, QDNN_OPERAND_DY, element, n);
    describe_write(d, QDNN_OPERAND_DX, element, n);
    describe_write(d, QDNN_OPERAND_DSCALE, element_type_of(QDNN_DATA_F32), describe_groups(d, spec))
        ->is_per_group = true;
}

/* x has the absmax of each group. */
void describe_train_scale(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    (void)row, (void)spec;
    d->numbers = A_NUMBER(N);
    describe_read(d, QDNN_OPERAND_X, f32, rule_number(NUMBER_N));
    describe_write(d, QDNN_OPERAND_STATE, f32, rule_number(NUMBER_N));
}

/* The sums of the segments of rows of x; n is the number of elements of the tensor. */
void describe_long_sum(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    (void)row, (void)spec;
    d->numbers = A_NUMBER(N) | A_NUMBER(ROWS) | A_NUMBER(COLUMNS);
    describe_read(d, QDNN_OPERAND_X, f32, describe_elements(d));
    describe_write(d, QDNN_OPERAND_DSCALE, f32,
                   rule_times(rule_number(NUMBER_ROWS), rule_parts(NUMBER_COLUMNS, SUM_SEGMENT)));
}

/* ---- Normal specifications ---- */

void fix_decay(kernel_spec *spec)
{
    if (spec->train.scale_mode != QDNN_SCALE_MODE_EMA)
        spec->train.decay = kernel_spec_default().train.decay;
}

void fix_unscaled(kernel_spec *spec)
{
    const qdnnBackward_t backward = spec->train.backward;
    if (train_backward_needs_scale(spec))
        return;
    *spec = kernel_spec_default();
    spec->train.backward = backward;
    spec->stored.group_size = spec->stored.channels = 1;
}

void fix_sum(kernel_spec *spec)
{
    if (!spec->train.gradient_factor)
        *spec = kernel_spec_default();
}

/* ---- Scales from x ---- */

/* The scale of NF4 with floor 0 is the absmax of a group, so its kernels are used here. */
static void add_absmax(const kernel_spec *spec, const kernel_problem *problem, uint64_t groups,
                       kernel_steps *steps, uint64_t *at)
{
    const kernel_row *row = kernel_find("scale_nf4");
    kernel_spec absmax = kernel_spec_default();
    absmax.stored.group_size = spec->stored.group_size;
    absmax.stored.channels = spec->stored.channels;
    absmax.quantize.floor = 0;
    steps_add_operation(steps, row, &absmax, problem);
    *at = aligned(steps->workspace);
    steps->workspace = *at + aligned(groups * sizeof(float));
    step_from_workspace(&steps->at[steps->count - 1], QDNN_OPERAND_SCALE, *at);
}

/* In scale mode BATCH, the scales go to the workspace, at the offset returned; in EMA, they are the caller's
 * state. */
static uint64_t add_scales(const kernel_spec *spec, const kernel_problem *problem, kernel_steps *steps)
{
    uint64_t groups = kernel_groups(spec, problem), absmax;
    add_absmax(spec, problem, groups, steps, &absmax);
    uint64_t scales = steps->workspace;
    kernel_step *step =
        steps_add(steps, kernel_find("train_scale"), spec, &(kernel_problem){.rows = 1, .columns = groups});
    step_from_workspace(step, QDNN_OPERAND_X, absmax);
    if (spec->train.scale_mode == QDNN_SCALE_MODE_BATCH) {
        steps->workspace += aligned(groups * sizeof(float));
        step_from_workspace(step, QDNN_OPERAND_STATE, scales);
    }
    return scales;
}

/* The pass over all elements. */
static void add_sweep(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                      uint64_t scales, kernel_steps *steps)
{
    kernel_spec sweep = *spec;
    sweep.train.decay = kernel_spec_default().train.decay; /* already applied to the state */
    kernel_step *step = steps_add(steps, row, &sweep, problem);
    if (spec->train.scale_mode == QDNN_SCALE_MODE_BATCH)
        step_from_workspace(step, QDNN_OPERAND_STATE, scales);
}

void fake_quantize_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                         kernel_steps *steps)
{
    uint64_t scales = 0;
    if (spec->train.scale_mode != QDNN_SCALE_MODE_FIXED)
        scales = add_scales(spec, problem, steps);
    add_sweep(row, spec, problem, scales, steps);
}

void fake_quantize_backward_steps(const kernel_row *row, const kernel_spec *spec,
                                  const kernel_problem *problem, kernel_steps *steps)
{
    uint64_t scales = 0;
    if (spec->train.scale_mode == QDNN_SCALE_MODE_BATCH && train_backward_needs_scale(spec))
        scales = add_scales(spec, problem, steps);
    add_sweep(row, spec, problem, scales, steps);
}

/* ---- LSQ's backward ---- */

/* An equivalent grouping of n elements in the form that the kernel expects: a group is not larger than the
 * tensor. */
static kernel_spec simplest(const kernel_spec *spec, uint64_t n)
{
    kernel_spec whole = *spec;
    if (whole.stored.channels == 0 && whole.stored.group_size >= n)
        whole.stored.group_size = whole.stored.channels = 1;
    return whole;
}

/* Each step makes the lists shorter by a factor of 4,096; in the workspace, each list follows the one that it
 * is computed from. */
static void add_sums(const kernel_spec *spec, uint64_t n, uint64_t groups, uint64_t entries,
                     kernel_steps *steps)
{
    const kernel_row *row = kernel_find("long_sum");
    uint64_t from = 0, to = aligned(groups * entries * sizeof(float));
    kernel_spec between = *spec;
    between.train.gradient_factor = 0;
    steps->workspace = to;
    while (entries > 1 && steps->count < KERNEL_STEPS_MAX) {
        uint64_t next = (entries - 1) / SUM_SEGMENT + 1;
        const kernel_problem lists = {.rows = groups, .columns = entries};
        kernel_step *step = steps_add(steps, row, next > 1 ? &between : spec, &lists);
        step_from_workspace(step, QDNN_OPERAND_X, from);
        step_set_number(step, NUMBER_N, n);
        if (next > 1) {
            step_from_workspace(step, QDNN_OPERAND_DSCALE, to);
            steps->workspace = to + aligned(groups * next * sizeof(float));
        }
        from = to;
        to = steps->workspace;
        entries = next;
    }
}

void lsq_backward_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_steps *steps)
{
    uint64_t n = problem->rows * problem->columns, groups = kernel_groups(spec, problem);
    kernel_spec whole = simplest(spec, n), first = whole;
    uint64_t segments = lsq_backward_segments(&whole, n);
    if (segments > 1)
        first.train.gradient_factor = 0; /* it is applied in the last step */
    kernel_step *step = steps_add(steps, row, &first, problem);
    if (segments == 1)
        return;
    step_from_workspace(step, QDNN_OPERAND_DSCALE, 0);
    add_sums(&whole, n, groups, segments, steps);
}
