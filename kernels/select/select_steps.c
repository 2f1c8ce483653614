/* Operands and launches. */
#include "kernels/select/select.h"

#include <stdio.h>

bool select_is_empty(const kernel_problem *problem)
{
    return problem->m == 0 || problem->columns == 0;
}

/* An operand: the type and size of its elements, and how many it has, as a number and for tools. */
typedef struct described {
    const char *element;
    unsigned bytes;
    uint64_t count;
    const char *text;
    uint64_t factor; /* of the text; 0: none */
} described;

static described of_type(qdnnDataType_t type, uint64_t count, const char *text)
{
    const char *name = type == QDNN_DATA_F16    ? "f16"
                       : type == QDNN_DATA_BF16 ? "bf16"
                       : type == QDNN_DATA_U64  ? "u64"
                       : type == QDNN_DATA_I32  ? "i32"
                                                : "f32";
    return (described){name, type == QDNN_DATA_U64 ? 8 : element_bytes(type), count, text, 0};
}

static kernel_operand size_of(described d)
{
    return (kernel_operand){.align = d.bytes, .bytes = d.count * d.bytes};
}

static kernel_operand_text text_of(described d)
{
    kernel_operand_text text;
    snprintf(text.element, sizeof text.element, "%s", d.element);
    if (d.factor)
        snprintf(text.count, sizeof text.count, "%s%llu", d.text, (unsigned long long)d.factor);
    else
        snprintf(text.count, sizeof text.count, "%s", d.text);
    return text;
}

/* The two functions of an operation that come from a third, which describes its operands. */
#define DESCRIBED_BY(operation)                                                                              \
    kernel_operand operation##_size(const kernel_spec *spec, const kernel_problem *problem, int operand)     \
    {                                                                                                        \
        return size_of(operation##_operand(spec, problem, operand));                                         \
    }                                                                                                        \
    kernel_operand_text operation##_text(const kernel_row *row, const kernel_spec *spec, int operand)        \
    {                                                                                                        \
        (void)row;                                                                                           \
        return text_of(operation##_operand(spec, &(kernel_problem){0}, operand));                            \
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
    kernel_step *step = steps_add(steps, row, &of_phase, problem);
    step_follows_rows(step, 0, 1, 1);
    return step;
}

/* ---- Top-k ---- */

bool top_k_takes(const kernel_spec *spec, int operand)
{
    return operand == QDNN_OPERAND_X || spec->select.phase != KERNEL_PHASE_PARTS;
}

static described top_k_operand(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    if (operand == QDNN_OPERAND_X)
        return of_type(spec->data, p->m * p->columns, "m * columns");
    return of_type(operand == QDNN_OPERAND_INDEX ? QDNN_DATA_I32 : spec->data, p->m * p->top, "m * top");
}
DESCRIBED_BY(top_k)

void top_k_fix(kernel_spec *spec)
{
    if (spec->select.phase == KERNEL_PHASE_SUMS)
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

bool sample_takes(const kernel_spec *spec, int operand)
{
    const int phase = spec->select.phase;
    const bool chooses = phase == KERNEL_PHASE_WHOLE || phase == KERNEL_PHASE_JOIN;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_LOGITS:
        return !spec->select.greedy || phase != KERNEL_PHASE_JOIN;
    case QDNN_OPERAND_INDEX:
        return chooses;
    case QDNN_OPERAND_SEED:
    case QDNN_OPERAND_STEP:
        return chooses && !spec->select.greedy;
    case QDNN_OPERAND_TOKEN_COUNT:
        return spec->select.counts;
    default:
        return !spec->select.greedy;
    }
}

static described sample_operand(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_LOGITS:
        return of_type(spec->data, p->m * p->columns, "m * columns");
    case QDNN_OPERAND_TOKEN_COUNT:
        return of_type(QDNN_DATA_I32, p->m * p->columns, "m * columns");
    case QDNN_OPERAND_SEED:
    case QDNN_OPERAND_STEP:
        return of_type(QDNN_DATA_U64, p->m, "m");
    case QDNN_OPERAND_SAMPLING:
        return of_type(QDNN_DATA_F32, p->m * (SAMPLE_SETTINGS / 4), "m * 8");
    default:
        return of_type(QDNN_DATA_I32, p->m, "m");
    }
}
DESCRIBED_BY(sample)
_Static_assert(SAMPLE_SETTINGS == 8 * 4, "the text says so");

void sample_fix(kernel_spec *spec)
{
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

bool softmax_takes(const kernel_spec *spec, int operand)
{
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_MASK:
        return spec->select.mask;
    case QDNN_OPERAND_SLOPE:
        return spec->select.slope;
    case QDNN_OPERAND_SINK:
        return spec->select.sink;
    default:
        return true;
    }
}

static described softmax_operand(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        return of_type(spec->data, p->m * p->columns, "m * columns");
    case QDNN_OPERAND_Y:
        return of_type(spec->epilogue.output, p->m * p->columns, "m * columns");
    case QDNN_OPERAND_MASK:
        return of_type((qdnnDataType_t)spec->select.mask, p->table_rows * p->columns, "table_rows * columns");
    default:
        return of_type(QDNN_DATA_F32, p->table_rows ? p->m / p->table_rows : 0, "m / table_rows");
    }
}
DESCRIBED_BY(softmax)

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

bool route_takes(const kernel_spec *spec, int operand)
{
    return operand != QDNN_OPERAND_EXPERT_BIAS || spec->route.bias;
}

number_set route_numbers(const kernel_spec *spec)
{
    return A_NUMBER(M) | A_NUMBER(FACTOR) | (number_set)(spec->route.renormalize != 0) << NUMBER_EPS;
}

static described route_operand(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    const kernel_routing *r = &spec->route;
    described d;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_LOGITS:
        d = of_type(spec->data, p->m * r->experts, "m * ");
        break;
    case QDNN_OPERAND_EXPERT_BIAS:
        d = of_type(QDNN_DATA_F32, r->experts, "");
        break;
    default:
        d = of_type(operand == QDNN_OPERAND_INDEX ? QDNN_DATA_I32 : QDNN_DATA_F32, p->m * r->slots, "m * ");
    }
    d.factor = operand == QDNN_OPERAND_LOGITS || operand == QDNN_OPERAND_EXPERT_BIAS ? r->experts : r->slots;
    return d;
}
DESCRIBED_BY(route)

void route_complete(const kernel_spec *spec, kernel_problem *problem)
{
    problem->columns = spec->route.experts;
    problem->rows = problem->m;
}

void route_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                 kernel_steps *steps)
{
    step_follows_rows(steps_add(steps, row, spec, problem), 0, 1, ROUTE_WARPS);
}

/* ---- Combining ---- */

bool combine_takes(const kernel_spec *spec, int operand)
{
    return operand != QDNN_OPERAND_RESIDUAL || spec->epilogue.residual;
}

static described combine_operand(const kernel_spec *spec, const kernel_problem *p, int operand)
{
    const uint64_t slots = spec->route.slots;
    described d = {0};
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        d = of_type(spec->data, p->m * slots * p->columns, "m * columns * ");
        d.factor = slots;
        return d;
    case QDNN_OPERAND_ROW_WEIGHT:
        d = of_type(QDNN_DATA_F32, p->m * slots, "m * ");
        d.factor = slots;
        return d;
    default:
        return of_type(spec->epilogue.output, p->m * p->columns, "m * columns");
    }
}
DESCRIBED_BY(combine)

void combine_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps)
{
    step_follows_rows(steps_add(steps, row, spec, problem), 0, 1, 1);
}
