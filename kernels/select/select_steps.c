/* Operands and launches. */
#include "kernels/select/select.h"

bool select_is_empty(const kernel_problem *problem)
{
    return problem->m == 0 || problem->columns == 0;
}

static kernel_rule tokens(kernel_number columns)
{
    return rule_times(rule_number(NUMBER_M), rule_number(columns));
}

/* A block per row along x, and per part of a row along y. */
kernel_geometry select_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    const bool is_parted =
        spec->select.phase == KERNEL_PHASE_PARTS || spec->select.phase == KERNEL_PHASE_SUMS;
    return (kernel_geometry){
        .block = SELECT_BLOCK,
        .grid = {rule_number(NUMBER_M), is_parted ? rule_number(NUMBER_PARTS) : rule_constant(1)}};
}

/* Few rows do not fill a GPU with blocks: then each is divided, as long as its parts are worth a block. */
static uint64_t parts_of(const kernel_problem *p, uint64_t least)
{
    enum { MANY_BLOCKS = 160, PARTS_MAX = 128 };
    uint64_t parts = ceil_div(MANY_BLOCKS, p->m), most = p->columns / least;
    parts = parts < most ? parts : most;
    parts = parts < PARTS_MAX ? parts : PARTS_MAX;
    if (parts <= 1)
        return 1;
    const uint64_t each = ceil_div(ceil_div(p->columns, parts), SAMPLE_SEGMENT) * SAMPLE_SEGMENT;
    return ceil_div(p->columns, each);
}

static kernel_step *add_phase(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                              kernel_phase phase, kernel_steps *steps)
{
    kernel_spec of_phase = *spec;
    of_phase.select.phase = phase;
    return steps_add(steps, row, &of_phase, problem);
}

/* ---- Top-k ---- */

/* The keys of the largest elements of parts are handed on. */
static void describe_keys(kernel_description *d, const kernel_spec *spec)
{
    if (spec->select.phase != KERNEL_PHASE_WHOLE)
        describe_workspace(d, "partials", WORKSPACE_PARTIALS, element_type_of(QDNN_DATA_U64),
                           spec->select.phase == KERNEL_PHASE_PARTS);
}

void describe_top_k(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    d->numbers = A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(TOP) | A_NUMBER(PARTS);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data), tokens(NUMBER_COLUMNS));
    if (spec->select.phase != KERNEL_PHASE_PARTS) {
        describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->data), tokens(NUMBER_TOP));
        describe_write(d, QDNN_OPERAND_INDEX, element_type_of(QDNN_DATA_I32), tokens(NUMBER_TOP));
    }
    describe_keys(d, spec);
}

void top_k_fix(kernel_spec *spec)
{
    if (spec->select.phase == KERNEL_PHASE_SUMS || spec->select.phase == KERNEL_PHASE_LAST)
        spec->select.phase = KERNEL_PHASE_PARTS;
}

void top_k_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                 kernel_steps *steps)
{
    enum { LEAST = 4096 };
    kernel_problem p = *problem;
    p.parts = parts_of(&p, p.top * 8 > LEAST ? p.top * 8 : LEAST);
    if (p.parts == 1) {
        add_phase(row, spec, &p, KERNEL_PHASE_WHOLE, steps);
        return;
    }
    const uint64_t keys = steps_take(steps, p.m * p.parts * p.top * 8);
    step_with_partials(add_phase(row, spec, &p, KERNEL_PHASE_PARTS, steps), keys);
    step_with_partials(add_phase(row, spec, &p, KERNEL_PHASE_JOIN, steps), keys);
}

/* ---- Sampling ---- */

void describe_sample(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const int phase = spec->select.phase;
    const bool is_greedy = spec->select.greedy,
               chooses = phase == KERNEL_PHASE_WHOLE || phase == KERNEL_PHASE_JOIN;
    const kernel_rule m = rule_number(NUMBER_M);
    const element_type u64 = element_type_of(QDNN_DATA_U64), f32 = element_type_of(QDNN_DATA_F32),
                       i32 = element_type_of(QDNN_DATA_I32);
    (void)row;
    d->numbers = A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(PARTS);
    if (!is_greedy || phase != KERNEL_PHASE_JOIN)
        describe_read(d, QDNN_OPERAND_LOGITS, element_type_of(spec->data), tokens(NUMBER_COLUMNS));
    if (!is_greedy && chooses) {
        describe_read(d, QDNN_OPERAND_SEED, u64, m);
        describe_read(d, QDNN_OPERAND_STEP, u64, m);
    }
    if (spec->select.counts)
        describe_read(d, QDNN_OPERAND_TOKEN_COUNT, i32, tokens(NUMBER_COLUMNS));
    if (!is_greedy)
        describe_read(d, QDNN_OPERAND_SAMPLING, f32, rule_times(m, rule_constant(SAMPLE_SETTINGS / 4)));
    if (chooses)
        describe_write(d, QDNN_OPERAND_INDEX, i32, m);
    describe_keys(d, spec);
    if (!is_greedy && phase >= KERNEL_PHASE_SUMS)
        describe_workspace(d, "sums", WORKSPACE_OWN, f32, phase == KERNEL_PHASE_SUMS);
}

void sample_fix(kernel_spec *spec)
{
    if (spec->select.phase == KERNEL_PHASE_LAST)
        spec->select.phase = KERNEL_PHASE_PARTS;
    if (!spec->select.greedy)
        return;
    spec->select.counts = 0;
    top_k_fix(spec);
}

void sample_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps)
{
    enum { LEAST = 4096, LEAST_GREEDY = 2048 };
    kernel_problem p = *problem;
    p.parts = parts_of(&p, spec->select.greedy ? LEAST_GREEDY : LEAST);
    if (p.parts == 1) {
        add_phase(row, spec, &p, KERNEL_PHASE_WHOLE, steps);
        return;
    }
    const uint64_t each = spec->select.greedy ? 1 : TOP_MAX;
    const uint64_t keys = steps_take(steps, p.m * p.parts * each * 8);
    step_with_partials(add_phase(row, spec, &p, KERNEL_PHASE_PARTS, steps), keys);
    if (spec->select.greedy) {
        step_with_partials(add_phase(row, spec, &p, KERNEL_PHASE_JOIN, steps), keys);
        return;
    }
    const uint64_t sums = steps_take(steps, p.m * ceil_div(p.columns, SAMPLE_SEGMENT) * 4);
    for (kernel_phase phase = KERNEL_PHASE_SUMS; phase <= KERNEL_PHASE_JOIN; phase++) {
        kernel_step *step = add_phase(row, spec, &p, phase, steps);
        step_in_workspace(step, sums);
        step_with_partials(step, keys);
    }
}

/* ---- Softmax ---- */

void describe_softmax(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_rule n = tokens(NUMBER_COLUMNS), rows = rule_number(NUMBER_TABLE_ROWS),
                      heads = rule_over(rule_number(NUMBER_M), rows);
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    (void)row;
    d->numbers = A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(TABLE_ROWS) | A_NUMBER(ALPHA);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data), n);
    if (spec->select.mask)
        describe_read(d, QDNN_OPERAND_MASK, element_type_of((qdnnDataType_t)spec->select.mask),
                      rule_times(rows, rule_number(NUMBER_COLUMNS)));
    if (spec->select.slope)
        describe_read(d, QDNN_OPERAND_SLOPE, f32, heads);
    if (spec->select.sink)
        describe_read(d, QDNN_OPERAND_SINK, f32, heads);
    describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->epilogue.output), n);
}

void softmax_fix(kernel_spec *spec)
{
    if (!spec->select.mask)
        spec->select.slope = 0;
    if (spec->select.rounds)
        spec->select.staged = 0;
}

/* ---- Routing ---- */

bool route_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const kernel_routing *r = &spec->route;
    (void)row;
    if (r->experts % r->groups != 0)
        return kernel_refuse(error, error_size,
                             "expert_groups is %llu; it must divide expert_count, which is %llu",
                             (unsigned long long)r->groups, (unsigned long long)r->experts);
    if (r->kept > r->groups)
        return kernel_refuse(error, error_size, "kept_groups is %llu; there are %llu groups",
                             (unsigned long long)r->kept, (unsigned long long)r->groups);
    if (r->slots > r->experts / r->groups * r->kept)
        return kernel_refuse(error, error_size, "chosen is %llu; the groups that are kept have %llu experts",
                             (unsigned long long)r->slots,
                             (unsigned long long)(r->experts / r->groups * r->kept));
    return true;
}

/* Groups that are all kept are none. */
void route_fix(kernel_spec *spec)
{
    if (spec->route.kept == spec->route.groups)
        spec->route.groups = spec->route.kept = 1;
    if (spec->route.groups == 1)
        spec->route.group_score = QDNN_GROUP_SCORE_LARGEST;
}

void describe_route(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_routing *r = &spec->route;
    const kernel_rule m = rule_number(NUMBER_M), experts = rule_constant(r->experts),
                      chosen = rule_times(m, rule_constant(r->slots));
    (void)row;
    d->numbers = A_NUMBER(M) | A_NUMBER(FACTOR) | (r->renormalize ? A_NUMBER(EPS) : 0);
    describe_read(d, QDNN_OPERAND_LOGITS, element_type_of(spec->data), rule_times(m, experts));
    if (r->bias)
        describe_read(d, QDNN_OPERAND_EXPERT_BIAS, element_type_of(QDNN_DATA_F32), experts);
    describe_write(d, QDNN_OPERAND_INDEX, element_type_of(QDNN_DATA_I32), chosen);
    describe_write(d, QDNN_OPERAND_WEIGHT_OUT, element_type_of(QDNN_DATA_F32), chosen);
}

void route_complete(const kernel_spec *spec, kernel_problem *problem)
{
    problem->columns = spec->route.experts;
    problem->rows = problem->m;
}

/* ---- Combining ---- */

void describe_combine(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_rule n = tokens(NUMBER_COLUMNS), slots = rule_constant(spec->route.slots);
    (void)row;
    d->numbers = A_NUMBER(M) | A_NUMBER(COLUMNS);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data), rule_times(n, slots));
    if (spec->epilogue.residual)
        describe_read(d, QDNN_OPERAND_RESIDUAL, element_type_of(spec->epilogue.output), n);
    describe_read(d, QDNN_OPERAND_ROW_WEIGHT, element_type_of(QDNN_DATA_F32),
                  rule_times(rule_number(NUMBER_M), slots));
    describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->epilogue.output), n);
}
