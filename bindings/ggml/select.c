/* Softmax, the largest of each row. */
#include "engine.h"

#include <string.h>

enum { S_ROWS, S_COLUMNS, S_MASK, S_MASK_ROWS, S_SINK, S_SCALE, S_TOP };

static qdnnStatus_t set(qdnnSelectDescriptor_t select, qdnnSelectAttribute_t attribute, int64_t value,
                        qdnnStatus_t before)
{
    return before == QDNN_STATUS_SUCCESS ? qdnnSetSelectAttribute(select, attribute, value) : before;
}

/* ---- SOFT_MAX ---- */

static qdnnStatus_t make_softmax(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnSelectDescriptor_t select;
    uint32_t bits = (uint32_t)number[S_SCALE];
    float scale;
    qdnnStatus_t status = qdnnCreateSelectDescriptor(&select);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    memcpy(&scale, &bits, sizeof scale);
    qdnnTensorDescriptor_t x =
        shapes_matrix(&s, QDNN_DATA_F32, number[S_ROWS], number[S_COLUMNS], number[S_COLUMNS]);
    status = qdnnSetSelectScale(select, scale);
    status = set(select, QDNN_SELECT_MASK, number[S_MASK], status);
    status = set(select, QDNN_SELECT_MASK_ROWS, number[S_MASK_ROWS], status);
    status = set(select, QDNN_SELECT_SINK, number[S_SINK], status);
    if (s.status == QDNN_STATUS_SUCCESS && status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateSoftmaxPlan(handle, x, select, x, plan);
    qdnnDestroySelectDescriptor(select);
    return shapes_free(&s, status);
}

/* A mask serves all heads of a sequence, and may have more rows than there are queries. */
static bool mask_fits(const struct ggml_tensor *x, const struct ggml_tensor *mask)
{
    return ggml_is_contiguous(mask) && mask->ne[0] == x->ne[0] && mask->ne[1] >= x->ne[1] && mask->ne[2] == 1;
}

bool op_soft_max(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *x = t->src[0], *mask = t->src[1], *sinks = t->src[2];
    qdnnDataType_t mask_type = 0;
    float slope;
    memcpy(&slope, (const char *)t->op_params + sizeof(float), sizeof slope);
    if (x->type != GGML_TYPE_F32 || t->type != GGML_TYPE_F32 || !ggml_is_contiguous(x) ||
        !ggml_is_contiguous(t))
        return run_declines(r, "softmax of rows that are not f32, or with gaps");
    if (slope != 0)
        return run_declines(r, "softmax with ALiBi");
    if (mask && (!plain_type(mask->type, &mask_type) || !mask_fits(x, mask)))
        return run_declines(r, "a mask of type %s, or for each head", ggml_type_name(mask->type));
    if (sinks && !mask)
        return run_declines(r, "sinks without a mask");
    const int64_t rows = x->ne[1] * x->ne[2];
    plan_request request = {.make = make_softmax,
                            .number = {[S_ROWS] = rows,
                                       [S_COLUMNS] = x->ne[0],
                                       [S_MASK] = mask ? mask_type : 0,
                                       [S_MASK_ROWS] = mask ? x->ne[1] : 0,
                                       [S_SINK] = sinks != NULL,
                                       [S_SCALE] = (uint32_t)t->op_params[0]}};
    for (int64_t i3 = 0; i3 < x->ne[3]; i3++) {
        qdnnBinding_t bindings[4] = {{QDNN_OPERAND_X, row_at(x, 0, 0, i3), 0},
                                     {QDNN_OPERAND_Y, row_at(t, 0, 0, i3), 0}};
        int n = 2;
        if (mask)
            bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_MASK, row_at(mask, 0, 0, i3 % mask->ne[3]), 0};
        if (sinks)
            bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_SINK, sinks->data, 0};
        if (!run_plan(r, &request, ALL_ROWS, bindings, n))
            return false;
        if (r->dry)
            return true;
    }
    return true;
}

/* ---- TOP_K, ARGSORT, ARGMAX ---- */

static qdnnStatus_t make_top(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnSelectDescriptor_t select;
    qdnnStatus_t status = qdnnCreateSelectDescriptor(&select);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    qdnnTensorDescriptor_t x =
        shapes_matrix(&s, QDNN_DATA_F32, number[S_ROWS], number[S_COLUMNS], number[S_COLUMNS]);
    status = set(select, QDNN_SELECT_TOP, number[S_TOP], s.status);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateTopKPlan(handle, x, select, plan);
    qdnnDestroySelectDescriptor(select);
    return shapes_free(&s, status);
}

/* The indices of the `top` largest of each row, in descending order; the values go to scratch memory. */
static bool largest(run *r, const struct ggml_tensor *t, int64_t top)
{
    const struct ggml_tensor *x = t->src[0];
    if (x->type != GGML_TYPE_F32 || !ggml_is_contiguous(x) || !ggml_is_contiguous(t))
        return run_declines(r, "rows that are not f32, or with gaps");
    plan_request request = {.make = make_top,
                            .number = {[S_ROWS] = ggml_nrows(x), [S_COLUMNS] = x->ne[0], [S_TOP] = top}};
    void *values = run_scratch(r, SCRATCH_Y, (size_t)(ggml_nrows(x) * top) * sizeof(float));
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_X, x->data, 0}, {QDNN_OPERAND_Y, values, 0}, {QDNN_OPERAND_INDEX, t->data, 0}};
    return run_plan(r, &request, ALL_ROWS, bindings, 3);
}

bool op_top_k(run *r, const struct ggml_tensor *t)
{
    return largest(r, t, t->ne[0]);
}

bool op_argmax(run *r, const struct ggml_tensor *t)
{
    return largest(r, t, 1);
}

/* Rows that top-k takes as a whole. */
bool op_argsort(run *r, const struct ggml_tensor *t)
{
    if (t->op_params[0] != GGML_SORT_ORDER_DESC)
        return run_declines(r, "sorting in ascending order");
    return largest(r, t, t->ne[0]);
}
