/* What the kernels of products take. */
#include "kernels/formats/quantized.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/routes.h"

static void describe_weights(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const int first = d->count;
    describe_stored(d, row, spec, false,
                    STORED_LIST(QDNN_OPERAND_CODES, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO,
                                QDNN_OPERAND_GLOBAL_SCALE, QDNN_OPERAND_GROUP_INDEX, QDNN_OPERAND_NESTED_MAP,
                                QDNN_OPERAND_NESTED_SCALE, QDNN_OPERAND_NESTED_OFFSET));
    if (spec->product.grouped)
        describe_stack(d, first);
}

/* What follows the sum, but for y. */
static void describe_epilogue(kernel_description *d, const kernel_spec *spec, kernel_rule outputs,
                              kernel_rule y)
{
    const kernel_epilogue *e = &spec->epilogue;
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    const kernel_rule m = rule_number(NUMBER_M), x_rows = rule_ceil(m, spec->product.x_share);
    if (spec->product.grouped)
        outputs = rule_times(rule_number(NUMBER_EXPERTS), outputs);
    if (e->alpha == QDNN_ALPHA_NUMBER)
        d->numbers |= A_NUMBER(ALPHA);
    else if (e->alpha != QDNN_ALPHA_NONE)
        describe_read(d, QDNN_OPERAND_ALPHA, f32, e->alpha == QDNN_ALPHA_COLUMN ? outputs : rule_constant(1));
    if (e->bias)
        describe_read(d, QDNN_OPERAND_BIAS, element_type_of((qdnnDataType_t)e->bias), outputs);
    if (e->residual)
        describe_read(d, QDNN_OPERAND_RESIDUAL, element_type_of(e->output), y);
    if (spec->product.grouped)
        describe_read(d, QDNN_OPERAND_EXPERT_INDEX, element_type_of(QDNN_DATA_I32), m);
    if (e->row_weight)
        describe_read(d, QDNN_OPERAND_ROW_WEIGHT, f32, m);
    if (spec->product.x_scale)
        describe_read(d, QDNN_OPERAND_X_SCALE, f32, x_rows);
}

static void describe_workspaces(kernel_description *d, const kernel_spec *spec)
{
    const kernel_product kernel = spec->product.kernel;
    const element_type f32 = element_type_of(QDNN_DATA_F32);
    if (spec->epilogue.addend)
        describe_workspace(d, "addend", WORKSPACE_OWN, f32, false);
    if (spec->product.grouped)
        describe_workspace(d, "routes", WORKSPACE_OWN, element_type_of(QDNN_DATA_I32), false);
    if (spec->product.split > 1 && kernel_product_splits(spec) == SPLITS_GRID)
        describe_workspace(d, "partials", WORKSPACE_PARTIALS, f32, kernel != KERNEL_PRODUCT_JOIN);
}

void describe_matmul(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const bool by_columns = spec->product.reduction == KERNEL_K_COLUMNS;
    const kernel_rule k = rule_number(by_columns ? NUMBER_COLUMNS : NUMBER_ROWS),
                      outputs = rule_number(by_columns ? NUMBER_ROWS : NUMBER_COLUMNS),
                      m = rule_number(NUMBER_M),
                      n = spec->epilogue.gated ? rule_over(outputs, rule_constant(2)) : outputs,
                      y = rule_span(m, rule_number(NUMBER_Y_STRIDE), n);
    const qdnnDataType_t x = spec->product.x_fp8 ? (qdnnDataType_t)spec->product.x_fp8 : spec->data;
    d->numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS) | A_NUMBER(M) | A_NUMBER(X_STRIDE) | A_NUMBER(Y_STRIDE);
    describe_read(d, QDNN_OPERAND_X, element_type_of(x),
                  rule_span(rule_ceil(m, spec->product.x_share), rule_number(NUMBER_X_STRIDE), k));
    describe_weights(d, row, spec);
    describe_epilogue(d, spec, outputs, y);
    describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->epilogue.output), y);
    describe_workspaces(d, spec);
}

/* The kernel that sorts rows by expert. */
void describe_route_rows(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const element_type i32 = element_type_of(QDNN_DATA_I32);
    (void)row, (void)spec;
    d->numbers = A_NUMBER(M) | A_NUMBER(EXPERTS);
    describe_read(d, QDNN_OPERAND_EXPERT_INDEX, i32, rule_number(NUMBER_M));
    describe_workspace(d, "routes", WORKSPACE_OWN, i32, true);
}
