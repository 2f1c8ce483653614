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

/* The number that an execute call may lower. */
static kernel_number rows_of(const kernel_step *step)
{
    return step->spec.row_index ? NUMBER_ROWS : NUMBER_M;
}

static void add_params(kernel_step *step, const kernel_description *d, const uint64_t numbers[NUMBERS])
{
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
                               .is_rows = i == (int)rows_of(step),
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
    step->block = d.launch.block;
    step->shared = d.launch.shared_dynamic;
    for (int i = 0; i < 3; i++) {
        step->grid[i] = rule_value(&d.launch.grid[i], numbers);
        if (!step->rows.per_block && rule_by_rows(&d.launch.grid[i], numbers, rows_of(step), &step->rows))
            step->rows.dimension = i;
    }
    return step;
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

void steps_add_operation(kernel_steps *steps, const kernel_row *row, const kernel_spec *spec,
                         const kernel_problem *problem)
{
    if (row->operation->steps)
        row->operation->steps(row, spec, problem, steps);
    else
        steps_add(steps, row, spec, problem);
}

void kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps)
{
    assert(kernel_spec_is_normal(row, spec));
    memset(steps, 0, sizeof *steps);
    if (row->operation->is_empty ? !row->operation->is_empty(problem)
                                 : problem->rows > 0 && problem->columns > 0)
        steps_add_operation(steps, row, spec, problem);
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
