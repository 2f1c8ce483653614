/* Products: weights in any format of ggml, x as it is or, in mode tensor, rounded to f16. */
#include "engine.h"

enum {
    P_WEIGHTS,
    P_OUTPUTS,
    P_DEPTH,
    P_ROWS,
    P_X_TYPE,
    P_X_STRIDE,
    P_Y_STRIDE,
    P_TENSOR,
    P_EXPERTS,
    P_SLOTS
};

static qdnnStatus_t make_product(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnMatmulDescriptor_t matmul;
    qdnnStatus_t status = qdnnCreateMatmulDescriptor(&matmul);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    const int64_t rows = number[P_ROWS], n = number[P_OUTPUTS], k = number[P_DEPTH], slots = number[P_SLOTS];
    const struct {
        qdnnMatmulAttribute_t attribute;
        int64_t value;
    } attributes[] = {{QDNN_MATMUL_ALGORITHM, number[P_TENSOR] ? QDNN_MATMUL_TENSOR : QDNN_MATMUL_EXACT},
                      {QDNN_MATMUL_EXPERTS, number[P_EXPERTS]},
                      {QDNN_MATMUL_SLOTS, slots}};
    qdnnTensorDescriptor_t x = shapes_matrix(&s, (qdnnDataType_t)number[P_X_TYPE], rows / slots, k,
                                             number[P_X_STRIDE]),
                           w = number[P_EXPERTS] ? shapes_add(&s, QDNN_DATA_F32, 3,
                                                              (int64_t[]){number[P_EXPERTS], n, k}, NULL)
                                                 : shapes_matrix(&s, QDNN_DATA_F32, n, k, k),
                           y = shapes_matrix(&s, QDNN_DATA_F32, rows, n, number[P_Y_STRIDE]);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[P_WEIGHTS]);
    status = s.status;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0] && status == QDNN_STATUS_SUCCESS; i++)
        status = qdnnSetMatmulAttribute(matmul, attributes[i].attribute, attributes[i].value);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateMatmulPlan(handle, matmul, x, w, quant, y, plan);
    qdnnDestroyMatmulDescriptor(matmul);
    return shapes_free(&s, status);
}

/* The rows of a product: those of y, how far apart they and those of x are, and how many share a row of x. */
typedef struct product_rows {
    int64_t count, x_stride, y_stride, slots;
} product_rows;

/* False: the library has no weights, or no x, of these types. */
static bool describe(run *r, const struct ggml_tensor *a, const place *x, const product_rows *rows,
                     plan_request *request)
{
    qdnnWeights_t weights;
    qdnnDataType_t type;
    if (!weights_type(a->type, &weights))
        return run_declines(r, "weights of type %s", ggml_type_name(a->type));
    if (!plain_type(x->type, &type))
        return run_declines(r, "x is of type %s", ggml_type_name(x->type));
    *request = (plan_request){.make = make_product,
                              .number = {[P_WEIGHTS] = weights,
                                         [P_OUTPUTS] = a->ne[1],
                                         [P_DEPTH] = a->ne[0],
                                         [P_ROWS] = planned_rows(rows->count / rows->slots) * rows->slots,
                                         [P_X_TYPE] = type,
                                         [P_X_STRIDE] = rows->x_stride,
                                         [P_Y_STRIDE] = rows->y_stride,
                                         [P_SLOTS] = rows->slots,
                                         [P_TENSOR] = engine_is_tensor(r->engine) && type != QDNN_DATA_F32}};
    return true;
}

/* Mode tensor rounds x to f16, unless the graph asks for f32, or the weights are f32 themselves. */
static bool rounds_x(const run *r, const struct ggml_tensor *t)
{
    return engine_is_tensor(r->engine) && t->src[1]->type == GGML_TYPE_F32 &&
           t->src[0]->type != GGML_TYPE_F32 && t->op_params[0] != GGML_PREC_F32;
}

/* A copy of x without gaps, rounded if that is asked for; `shape` may repeat it. */
static bool copy_x(run *r, const struct ggml_tensor *t, const place *shape, place *x)
{
    const place from = place_of(t->src[1]);
    const enum ggml_type type = rounds_x(r, t) ? GGML_TYPE_F16 : from.type;
    *x = place_packed(shape, type, NULL);
    x->data = run_scratch(r, SCRATCH_X, (size_t)place_elements(shape) * ggml_type_size(type));
    return copy_place(r, x, &from);
}

static bool rows_are_packed(const struct ggml_tensor *b)
{
    return is_packed_row(b) && b->nb[1] % ggml_type_size(b->type) == 0;
}

/* x as it is if products can read it. */
static bool take_x(run *r, const struct ggml_tensor *t, place *x)
{
    *x = place_of(t->src[1]);
    if (ggml_blck_size(x->type) > 1)
        return run_declines(r, "x is of type %s", ggml_type_name(x->type));
    if (rows_are_packed(t->src[1]) && !rounds_x(r, t))
        return true;
    const place shape = *x;
    return copy_x(r, t, &shape, x);
}

/* y = x W^T for one matrix W and rows of x; pointers are ignored in a dry run. */
static bool multiply(run *r, const plan_request *request, int64_t rows, const void *w, const void *x, void *y)
{
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_CODES, w, 0}, {QDNN_OPERAND_Y, y, 0}};
    return run_plan(r, request, rows, bindings, 3);
}

/* Rows of weights follow one another, as products read them; matrices may be apart. */
static bool is_packed_matrix(const struct ggml_tensor *a)
{
    return is_packed_row(a) && (a->ne[1] == 1 || a->nb[1] == ggml_row_size(a->type, a->ne[0]));
}

/* Each matrix of w serves ne2 / ne02 and ne3 / ne03 matrices of x that follow one another. */
static bool multiply_all(run *r, plan_request *request, const place *a, const place *b,
                         const struct ggml_tensor *t)
{
    const int64_t every2 = b->ne[2] / a->ne[2], every3 = b->ne[3] / a->ne[3];
    for (int64_t i3 = 0; i3 < b->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < b->ne[2]; i2++) {
            if (r->dry)
                return multiply(r, request, b->ne[1], NULL, NULL, NULL);
            if (!multiply(r, request, b->ne[1], place_row(a, i2 / every2, i3 / every3), place_row(b, i2, i3),
                          row_at(t, 0, i2, i3)))
                return false;
        }
    return true;
}

/* From one row of a matrix to the next, in elements. */
static int64_t row_stride(const place *p)
{
    return p->ne[1] == 1 ? p->ne[0] : (int64_t)(p->nb[1] / ggml_type_size(p->type));
}

bool op_mul_mat(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const place to = place_of(t);
    place w = place_of(a), x;
    product_rows rows = {.slots = 1};
    plan_request request;
    if (t->type != GGML_TYPE_F32 || !is_packed_row(t))
        return run_declines(r, "a result of type %s, or with gaps", ggml_type_name(t->type));
    if ((!is_packed_matrix(a) && !packed_place(r, a, SCRATCH_W, &w)) || !take_x(r, t, &x))
        return false;
    const bool one = a->ne[2] == 1 && a->ne[3] == 1 && rows_are_uniform(&x, &rows.x_stride) &&
                     rows_are_uniform(&to, &rows.y_stride);
    rows.count = one ? ggml_nrows(b) : b->ne[1];
    if (!one) {
        rows.x_stride = row_stride(&x);
        rows.y_stride = row_stride(&to);
    }
    if (!describe(r, a, &x, &rows, &request))
        return false;
    return one ? multiply(r, &request, rows.count, w.data, x.data, t->data)
               : multiply_all(r, &request, &w, &x, t);
}

/* ---- Mixtures of experts: rows of x by their experts ---- */

/* x has a row for each expert of a token, or one that all of its experts share: as it is, or a copy. */
static bool take_expert_rows(run *r, const struct ggml_tensor *t, place *x, product_rows *rows)
{
    enum { SLOTS_MAX = 32 };
    const struct ggml_tensor *b = t->src[1];
    const int64_t used = t->src[2]->ne[0];
    place shape = place_of(b);
    const bool shares = b->ne[1] == 1 && used <= SLOTS_MAX;
    rows->slots = shares ? used : 1;
    *x = shape;
    if ((shares || b->ne[1] == used) && rows_are_uniform(x, &rows->x_stride) && !rounds_x(r, t))
        return true;
    shape.ne[1] = shares ? 1 : used;
    rows->x_stride = b->ne[0];
    return copy_x(r, t, &shape, x);
}

bool op_mul_mat_id(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *experts = t->src[2];
    product_rows rows = {.count = experts->ne[0] * experts->ne[1], .y_stride = a->ne[1]};
    place w = place_of(a), x, index;
    plan_request request;
    if (t->type != GGML_TYPE_F32 || !ggml_is_contiguous(t) || ggml_blck_size(t->src[1]->type) > 1)
        return run_declines(r, "a result with gaps, or x of type %s", ggml_type_name(t->src[1]->type));
    if ((!ggml_is_contiguous(a) && !packed_place(r, a, SCRATCH_W, &w)) ||
        !packed_place(r, experts, SCRATCH_INDEX, &index) || !take_expert_rows(r, t, &x, &rows) ||
        !describe(r, a, &x, &rows, &request))
        return false;
    request.number[P_EXPERTS] = a->ne[2];
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, x.data, 0},
                                      {QDNN_OPERAND_CODES, w.data, 0},
                                      {QDNN_OPERAND_Y, t->data, 0},
                                      {QDNN_OPERAND_EXPERT_INDEX, index.data, 0}};
    return run_plan(r, &request, rows.count, bindings, 4);
}
