/* Products by the exact contract: one kernel, whatever M is. */
#include "driver/api/matmul.h"

/* What the descriptor says, in the kernels' terms. */
static void set_choices(const matmul_call *c, kernel_spec *spec)
{
    const int64_t *value = c->matmul->values;
    spec->data = c->x->type;
    spec->output = c->y->type;
    spec->reduction = value[QDNN_MATMUL_TRANSPOSE_W] ? KERNEL_K_COLUMNS : KERNEL_K_ROWS;
    spec->alpha = (qdnnAlpha_t)value[QDNN_MATMUL_ALPHA];
    spec->bias = (int)value[QDNN_MATMUL_BIAS_TYPE];
    spec->activation = (qdnnActivation_t)value[QDNN_MATMUL_ACTIVATION];
    spec->gated = (int)value[QDNN_MATMUL_GATED];
    spec->residual = (int)value[QDNN_MATMUL_RESIDUAL];
}

static kernel_problem problem_of(const matmul_call *c)
{
    return (kernel_problem){.rows = (uint64_t)c->w->dims[0],
                            .columns = (uint64_t)c->w->dims[1],
                            .m = (uint64_t)c->shape.m,
                            .x_stride = (uint64_t)c->shape.x_stride,
                            .y_stride = (uint64_t)c->shape.y_stride,
                            .alpha = c->matmul->alpha};
}

/* Few rows, and a format and shape that a kernel for them serves. */
static bool choose_gemv(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec)
{
    enum { ROWS_MAX = 16 };
    spec->product = KERNEL_PRODUCT_GEMV;
    spec->tile_rows = 1;
    while (spec->tile_rows < ROWS_MAX && spec->tile_rows < problem->m)
        spec->tile_rows *= 2;
    return problem->m <= ROWS_MAX && kernel_product_fits(row, spec, problem);
}

/* Which kernel: the bits do not depend on it. */
static void choose_kernel(const matmul_call *c, const kernel_row *row, kernel_spec *spec)
{
    kernel_problem problem = problem_of(c);
    if (choose_gemv(row, &problem, spec))
        return;
    spec->product = KERNEL_PRODUCT_STAGED;
    spec->tile_rows = 1;
    while (spec->tile_rows < 8 && spec->tile_rows < (uint64_t)c->shape.m)
        spec->tile_rows *= 2;
}

/* Blocks lie along K. */
static qdnnStatus_t check_blocks(const matmul_call *c, const request *r)
{
    if (kernel_columns_multiple(r->row) == 1 || c->matmul->values[QDNN_MATMUL_TRANSPOSE_W])
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "%s has blocks along K, and QDNN_MATMUL_TRANSPOSE_W is 0; fix: set it to 1 and give w as [N, K]",
        kernel_format(r->row)->name);
}

qdnnStatus_t matmul_prepare(const matmul_call *c, matmul_choice *choose, request *out)
{
    CHECK_STATUS(request_make(KERNEL_MATMUL, c->w, c->quant, out));
    CHECK_STATUS(check_blocks(c, out));
    set_choices(c, &out->spec);
    choose(c, out->row, &out->spec);
    out->problem = problem_of(c);
    char reason[256];
    if (!kernel_is_emitted(out->row, &out->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    out->spec = kernel_spec_normal(out->row, &out->spec);
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t prepare(const matmul_call *c, request *out)
{
    return matmul_prepare(c, choose_kernel, out);
}

qdnnStatus_t matmul_fill(qdnnPlan_t plan, const matmul_call *c, const request *r)
{
    (void)c;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        plan_needs(plan, (qdnnOperand_t)i, r->operands[i].align, r->operands[i].bytes);
    return plan_add(plan, r, PLAN_PLACES);
}

const matmul_way matmul_exact = {
    .choice = "exact: the same bits on every SM and in every batch", .prepare = prepare, .fill = matmul_fill};
