/* Products: weights in any format of ggml, x as it is or, in mode tensor, rounded to f16. */
#include "engine.h"

enum { P_WEIGHTS, P_OUTPUTS, P_DEPTH, P_ROWS, P_X_TYPE, P_X_STRIDE, P_Y_STRIDE, P_TENSOR };

static qdnnStatus_t make_product(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnMatmulDescriptor_t matmul;
    qdnnStatus_t status = qdnnCreateMatmulDescriptor(&matmul);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    const int64_t rows = number[P_ROWS], n = number[P_OUTPUTS], k = number[P_DEPTH];
    qdnnTensorDescriptor_t x = shapes_matrix(&s, (qdnnDataType_t)number[P_X_TYPE], rows, k,
                                             number[P_X_STRIDE]),
                           w = shapes_matrix(&s, QDNN_DATA_F32, n, k, k),
                           y = shapes_matrix(&s, QDNN_DATA_F32, rows, n, number[P_Y_STRIDE]);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[P_WEIGHTS]);
    if (s.status == QDNN_STATUS_SUCCESS)
        status = qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ALGORITHM,
                                        number[P_TENSOR] ? QDNN_MATMUL_TENSOR : QDNN_MATMUL_EXACT);
    if (s.status == QDNN_STATUS_SUCCESS && status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateMatmulPlan(handle, matmul, x, w, quant, y, plan);
    qdnnDestroyMatmulDescriptor(matmul);
    return shapes_free(&s, status);
}

/* The x of a product: where its rows are, of which type, and how far apart. */
typedef struct rows_of_x {
    qdnnDataType_t type;
    int64_t stride; /* in elements */
} rows_of_x;

static bool describe_x(run *r, const struct ggml_tensor *b, rows_of_x *x)
{
    if (!plain_type(b->type, &x->type))
        return run_declines(r, "x is of type %s", ggml_type_name(b->type));
    const size_t size = ggml_type_size(b->type);
    if (b->nb[0] != size || b->nb[1] % size)
        return run_declines(r, "the elements of a row of x are not neighbours");
    x->stride = (int64_t)(b->nb[1] / size);
    return true;
}

/* y = x W^T for one matrix W and rows of x; pointers are ignored in a dry run. */
static bool multiply(run *r, const plan_request *request, int64_t rows, const void *w, const void *x, void *y)
{
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_CODES, w, 0}, {QDNN_OPERAND_Y, y, 0}};
    return run_plan(r, request, rows, bindings, 3);
}

static bool packed_matrix(const struct ggml_tensor *a)
{
    return is_packed_row(a) && a->nb[1] == ggml_row_size(a->type, a->ne[0]);
}

/* Each matrix of w serves ne2 / ne02 and ne3 / ne03 matrices of x that follow one another. */
static bool multiply_all(run *r, plan_request *request, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const int64_t every2 = b->ne[2] / a->ne[2], every3 = b->ne[3] / a->ne[3];
    for (int64_t i3 = 0; i3 < b->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < b->ne[2]; i2++) {
            if (!multiply(r, request, b->ne[1], row_at(a, 0, i2 / every2, i3 / every3), row_at(b, 0, i2, i3),
                          row_at(t, 0, i2, i3)))
                return false;
            if (r->dry)
                return true;
        }
    return true;
}

bool op_mul_mat(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    qdnnWeights_t weights;
    rows_of_x x;
    if (!weights_type(a->type, &weights))
        return run_declines(r, "weights of type %s", ggml_type_name(a->type));
    if (!packed_matrix(a))
        return run_declines(r, "rows of weights with gaps");
    if (t->type != GGML_TYPE_F32 || !is_packed_row(t))
        return run_declines(r, "a result of type %s, or with gaps", ggml_type_name(t->type));
    if (!describe_x(r, b, &x))
        return false;
    const bool one = a->ne[2] == 1 && a->ne[3] == 1 && rows_are_uniform(b) && rows_are_uniform(t);
    const int64_t rows = one ? ggml_nrows(b) : b->ne[1];
    plan_request request = {.make = make_product,
                            .number = {[P_WEIGHTS] = weights,
                                       [P_OUTPUTS] = a->ne[1],
                                       [P_DEPTH] = a->ne[0],
                                       [P_ROWS] = planned_rows(rows),
                                       [P_X_TYPE] = x.type,
                                       [P_X_STRIDE] = x.stride,
                                       [P_Y_STRIDE] = (int64_t)(t->nb[1] / sizeof(float)),
                                       [P_TENSOR] = engine_is_tensor(r->engine) && x.type != QDNN_DATA_F32}};
    return one ? multiply(r, &request, rows, a->data, b->data, t->data) : multiply_all(r, &request, t);
}

bool op_mul_mat_id(run *r, const struct ggml_tensor *t)
{
    (void)t;
    return run_declines(r, "mixtures of experts are not planned yet");
}
