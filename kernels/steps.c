/* Parameters of kernels, declared and filled from one description; launches; sizes of operands. */
#include "kernels/operations.h"

#include <assert.h>
#include <string.h>

#include "kernels/emit.h"

/* ---- Parameters: the pointers of the description, then the numbers ---- */

kernel_args kernel_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = {0};
    kernel_description d;
    kernel_describe(row, spec, &d);
    for (const kernel_pointer *p = d.pointers; p < d.pointers + d.count; p++)
        *(p->kind == KERNEL_OPERAND        ? &args.operand[p->which]
          : p->which == WORKSPACE_PARTIALS ? &args.partials
                                           : &args.workspace) =
            ptx_param_ptr(b, p->name, (int)p->element.align);
    for (int i = 0; i < NUMBERS; i++)
        if (d.numbers >> i & 1)
            args.number[i] = ptx_param(b, kernel_number_is_f32((kernel_number)i) ? PTX_F32 : PTX_U64,
                                       kernel_number_name((kernel_number)i));
    ptx_dependent(b);
    return args;
}

/* ---- Launches ---- */

static void add_params(kernel_step *step, const kernel_description *d, const uint64_t numbers[NUMBERS])
{
    const kernel_number rows = step->spec.row_index ? NUMBER_ROWS : NUMBER_M;
    for (int i = 0; i < d->count; i++)
        step->params[step->n_params++] = (kernel_param){.kind = d->pointers[i].kind,
                                                        .operand = d->pointers[i].which,
                                                        .bytes = (uint8_t)d->pointers[i].element.align};
    for (int i = 0; i < NUMBERS; i++)
        if (d->numbers >> i & 1)
            step->params[step->n_params++] =
                (kernel_param){.kind = KERNEL_NUMBER,
                               .operand = (uint8_t)i,
                               .bytes = kernel_number_is_f32((kernel_number)i) ? 4 : 8,
                               .is_rows = i == (int)rows,
                               .value = numbers[i]};
}

kernel_step *steps_add(kernel_steps *steps, const kernel_row *row, const kernel_spec *spec,
                       const kernel_problem *problem)
{
    kernel_step *step = &steps->at[steps->count++];
    kernel_description d;
    uint64_t numbers[NUMBERS];
    *step = (kernel_step){.row = row, .spec = kernel_spec_normal(row, spec)};
    kernel_describe(row, &step->spec, &d);
    description_numbers(&d, problem, numbers);
    add_params(step, &d, numbers);
    const kernel_geometry g = kernel_geometry_of(row, &step->spec);
    step->block = g.block;
    step->shared = g.shared_dynamic;
    for (int i = 0; i < 3; i++)
        step->grid[i] = rule_value(&g.grid[i], numbers);
    return step;
}

void step_follows_rows(kernel_step *step, int dimension, uint64_t work, uint64_t per_block)
{
    step->rows = (kernel_row_blocks){.dimension = dimension, .work = work, .per_block = per_block};
}

void step_set_number(kernel_step *step, kernel_number number, uint64_t bits)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_NUMBER && step->params[i].operand == number)
            step->params[i].value = bits;
}

void step_in_workspace(kernel_step *step, uint64_t offset)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_WORKSPACE)
            step->params[i].value = offset;
}

void step_with_partials(kernel_step *step, uint64_t offset)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_WORKSPACE && step->params[i].operand == WORKSPACE_PARTIALS)
            step->params[i].value = offset;
}

uint64_t steps_take(kernel_steps *steps, uint64_t bytes)
{
    const uint64_t at = ceil_div(steps->workspace, LOAD_BYTES) * LOAD_BYTES;
    steps->workspace = at + ceil_div(bytes, LOAD_BYTES) * LOAD_BYTES;
    return at;
}

void step_from_workspace(kernel_step *step, qdnnOperand_t operand, uint64_t offset)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_OPERAND && step->params[i].operand == operand)
            step->params[i] = (kernel_param){.kind = KERNEL_WORKSPACE, .value = offset};
}

void step_with_operand(kernel_step *step, qdnnOperand_t operand, qdnnOperand_t other)
{
    for (int i = 0; i < step->n_params; i++)
        if (step->params[i].kind == KERNEL_OPERAND && step->params[i].operand == operand)
            step->params[i].operand = (uint8_t)other;
}

void kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps)
{
    assert(kernel_spec_is_normal(row, spec));
    memset(steps, 0, sizeof *steps);
    if (row->operation->is_empty ? !row->operation->is_empty(problem)
                                 : problem->rows > 0 && problem->columns > 0)
        row->operation->steps(row, spec, problem, steps);
}

bool kernel_is_sequence(const kernel_row *row, const kernel_spec *spec)
{
    kernel_steps steps;
    kernel_problem small = kernel_problem_default();
    small.rows = small.table_rows = small.y_stride = small.conv.outputs = small.conv.groups = 1;
    small.columns = small.x_stride = kernel_columns_multiple(row);
    small.experts = spec->product.grouped ? 1 : 0;
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), &small, &steps);
    return steps.count > 1;
}

/* An operation that gives no rule has a grid along x: as many blocks as it says, or as its elements fill. */
kernel_geometry kernel_geometry_of(const kernel_row *row, const kernel_spec *spec)
{
    kernel_geometry g = row->operation->geometry(row, spec);
    if (!g.grid[0].count && g.blocks) {
        g.grid[0] = rule_constant(g.blocks < INT32_MAX ? g.blocks : INT32_MAX);
    } else if (!g.grid[0].count) {
        kernel_description d;
        kernel_describe(row, spec, &d);
        g.grid[0] = rule_ceil(describe_elements(&d), g.elements_per_block);
    }
    for (int i = 1; i < 3; i++)
        if (!g.grid[i].count)
            g.grid[i] = rule_constant(1);
    return g;
}

/* ---- Operands ---- */

void kernel_operands_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_operand operands[QDNN_OPERAND_COUNT])
{
    assert(kernel_spec_is_normal(row, spec));
    kernel_description d;
    uint64_t numbers[NUMBERS];
    kernel_describe(row, spec, &d);
    description_numbers(&d, problem, numbers);
    memset(operands, 0, QDNN_OPERAND_COUNT * sizeof *operands);
    for (const kernel_pointer *p = d.pointers; p < d.pointers + d.count; p++)
        if (p->kind == KERNEL_OPERAND)
            operands[p->which] = (kernel_operand){.reads = p->reads,
                                                  .writes = p->writes,
                                                  .align = p->element.align,
                                                  .bytes = pointer_bytes(p, numbers)};
    if (row->operation->bound)
        row->operation->bound(spec, problem, operands);
}
