/* Softmax, the largest of each row. */
#include <string.h>

#include "bodies.h"
#include "engine.h"

enum { S_ROWS, S_COLUMNS, S_MASK, S_MASK_ROWS, S_SINK, S_SLOPE, S_SCALE, S_TOP };

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
    status = set(select, QDNN_SELECT_SLOPE, number[S_SLOPE], status);
    status = set(select, QDNN_SELECT_SINK, number[S_SINK], status);
    if (s.status == QDNN_STATUS_SUCCESS && status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateSoftmaxPlan(handle, x, select, x, plan);
    qdnnDestroySelectDescriptor(select);
    return shapes_free(&s, status);
}

/* A mask may have more rows than there are queries, and be one for all heads or one for each. */
static bool mask_fits(const struct ggml_tensor *x, const struct ggml_tensor *mask)
{
    return ggml_is_contiguous(mask) && mask->ne[0] == x->ne[0] && mask->ne[1] >= x->ne[1] &&
           x->ne[2] % mask->ne[2] == 0 && x->ne[3] % mask->ne[3] == 0;
}

/* The operands of a softmax of `heads` heads from head i2 of sequence i3 on. */
typedef struct heads {
    const struct ggml_tensor *t;
    const char *x; /* without gaps */
    const void *slopes;
    int64_t i2, i3;
} heads;

static bool softmax_of(run *r, const plan_request *request, const heads *h)
{
    const struct ggml_tensor *t = h->t, *mask = t->src[1], *sinks = t->src[2];
    if (r->dry)
        return run_plan(r, request, ALL_ROWS, NULL, 0);
    const size_t row = (size_t)((h->i3 * t->ne[2] + h->i2) * t->ne[1]);
    qdnnBinding_t bindings[5] = {{QDNN_OPERAND_X, h->x + row * (size_t)t->ne[0] * sizeof(float), 0},
                                 {QDNN_OPERAND_Y, row_at(t, 0, h->i2, h->i3), 0}};
    int n = 2;
    if (mask)
        bindings[n++] =
            (qdnnBinding_t){QDNN_OPERAND_MASK, row_at(mask, 0, h->i2 % mask->ne[2], h->i3 % mask->ne[3]), 0};
    if (h->slopes)
        bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_SLOPE, (const float *)h->slopes + h->i2, 0};
    if (sinks)
        bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_SINK, (const float *)sinks->data + h->i2, 0};
    return run_plan(r, request, ALL_ROWS, bindings, n);
}

bool op_soft_max(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *mask = t->src[1], *sinks = t->src[2];
    qdnnDataType_t mask_type = 0;
    float most;
    place x;
    memcpy(&most, (const char *)t->op_params + sizeof(float), sizeof most);
    if (t->src[0]->type != GGML_TYPE_F32 || t->type != GGML_TYPE_F32 || !ggml_is_contiguous(t))
        return run_declines(r, "softmax of rows that are not f32, or a result with gaps");
    if (mask && (!plain_type(mask->type, &mask_type) || !mask_fits(t, mask)))
        return run_declines(r, "a mask of type %s, or whose rows do not fit", ggml_type_name(mask->type));
    if (!packed_place(r, t->src[0], SCRATCH_X, &x))
        return false;
    const bool is_sloped = mask && most > 0;
    if (is_sloped && t->ne[2] > 1024)
        return run_declines(r, "ALiBi for more than 1024 heads");
    /* What belongs to a head repeats with the mask: without one for all heads, a head is a launch. */
    const int64_t together = (mask ? mask->ne[2] == 1 : !sinks) ? t->ne[2] : 1;
    plan_request request = {.make = make_softmax,
                            .number = {[S_ROWS] = t->ne[1] * together,
                                       [S_COLUMNS] = t->ne[0],
                                       [S_MASK] = mask_type,
                                       [S_MASK_ROWS] = mask ? t->ne[1] : 0,
                                       [S_SLOPE] = is_sloped,
                                       [S_SINK] = sinks != NULL,
                                       [S_SCALE] = (uint32_t)t->op_params[0]}};
    heads h = {.t = t, .x = x.data, .slopes = is_sloped ? run_slopes(r, most, t->ne[2]) : NULL};
    for (h.i3 = 0; h.i3 < t->ne[3]; h.i3++)
        for (h.i2 = 0; h.i2 < t->ne[2]; h.i2 += together) {
            if (!softmax_of(r, &request, &h))
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
static bool largest(run *r, const struct ggml_tensor *t, const void *x, int64_t top)
{
    const struct ggml_tensor *from = t->src[0];
    plan_request request = {
        .make = make_top, .number = {[S_ROWS] = ggml_nrows(from), [S_COLUMNS] = from->ne[0], [S_TOP] = top}};
    void *values = run_scratch(r, SCRATCH_Y, (size_t)(ggml_nrows(from) * top) * sizeof(float));
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_Y, values, 0}, {QDNN_OPERAND_INDEX, t->data, 0}};
    return run_plan(r, &request, ALL_ROWS, bindings, 3);
}

static bool take_rows(run *r, const struct ggml_tensor *t, place *x)
{
    if (t->src[0]->type != GGML_TYPE_F32 || !ggml_is_contiguous(t))
        return run_declines(r, "rows that are not f32, or a result with gaps");
    return packed_place(r, t->src[0], SCRATCH_X, x);
}

bool op_top_k(run *r, const struct ggml_tensor *t)
{
    place x;
    return take_rows(r, t, &x) && largest(r, t, x.data, t->ne[0]);
}

bool op_argmax(run *r, const struct ggml_tensor *t)
{
    place x;
    return take_rows(r, t, &x) && largest(r, t, x.data, 1);
}

/* Rows that top-k takes as a whole; in ascending order, those of -x. */
bool op_argsort(run *r, const struct ggml_tensor *t)
{
    place x;
    if (!take_rows(r, t, &x))
        return false;
    if (t->op_params[0] == GGML_SORT_ORDER_DESC)
        return largest(r, t, x.data, t->ne[0]);
    place negated = place_packed(&x, GGML_TYPE_F32, NULL);
    negated.data = run_scratch(r, SCRATCH_W, (size_t)place_elements(&x) * sizeof(float));
    return run_each(r, &body_neg, NULL, &negated, &x, NULL) && largest(r, t, negated.data, t->ne[0]);
}
