/* Operations on each element of packed rows: the library's plans, which read and write whole vectors. */
#include "engine.h"

enum { W_KIND, W_FUNCTION, W_SECOND, W_SECOND_TYPE, W_X, W_Y, W_ROWS, W_X_COLUMNS, W_COLUMNS };

static qdnnStatus_t make_pointwise(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const qdnnPointwise_t what = {.size = sizeof what,
                                  .kind = (qdnnPointwiseKind_t)number[W_KIND],
                                  .function = (qdnnActivation_t)number[W_FUNCTION],
                                  .second = (qdnnSecond_t)number[W_SECOND],
                                  .secondType = (qdnnDataType_t)number[W_SECOND_TYPE]};
    qdnnTensorDescriptor_t x = shapes_matrix(&s, (qdnnDataType_t)number[W_X], number[W_ROWS],
                                             number[W_X_COLUMNS], number[W_X_COLUMNS]),
                           y = shapes_matrix(&s, (qdnnDataType_t)number[W_Y], number[W_ROWS],
                                             number[W_COLUMNS], number[W_COLUMNS]);
    return shapes_free(&s,
                       s.status ? s.status : qdnnCreatePointwisePlan(handle, &what, x, NULL, y, NULL, plan));
}

/* ---- Which plan ---- */

typedef struct what {
    qdnnPointwiseKind_t kind;
    qdnnActivation_t function;
} what;

static bool of_unary(enum ggml_unary_op op, what *out)
{
    static const struct {
        enum ggml_unary_op op;
        qdnnActivation_t function;
    } functions[] = {
        {GGML_UNARY_OP_TANH, QDNN_ACTIVATION_TANH},      {GGML_UNARY_OP_SIGMOID, QDNN_ACTIVATION_SIGMOID},
        {GGML_UNARY_OP_RELU, QDNN_ACTIVATION_RELU},      {GGML_UNARY_OP_SILU, QDNN_ACTIVATION_SILU},
        {GGML_UNARY_OP_GELU, QDNN_ACTIVATION_GELU_TANH}, {GGML_UNARY_OP_GELU_ERF, QDNN_ACTIVATION_GELU_ERF},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (functions[i].op == op) {
            *out = (what){QDNN_POINTWISE_FUNCTION, functions[i].function};
            return true;
        }
    return false;
}

static bool of_glu(enum ggml_glu_op op, what *out)
{
    static const struct {
        enum ggml_glu_op op;
        qdnnActivation_t function;
    } functions[] = {
        {GGML_GLU_OP_REGLU, QDNN_ACTIVATION_RELU},
        {GGML_GLU_OP_GEGLU, QDNN_ACTIVATION_GELU_TANH},
        {GGML_GLU_OP_SWIGLU, QDNN_ACTIVATION_SILU},
        {GGML_GLU_OP_GEGLU_ERF, QDNN_ACTIVATION_GELU_ERF},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (functions[i].op == op) {
            *out = (what){QDNN_POINTWISE_GATED, functions[i].function};
            return true;
        }
    return false;
}

static bool what_of(const struct ggml_tensor *t, what *out)
{
    switch (t->op) {
    case GGML_OP_ADD:
    case GGML_OP_MUL:
        *out = (what){t->op == GGML_OP_ADD ? QDNN_POINTWISE_ADD : QDNN_POINTWISE_MUL, QDNN_ACTIVATION_NONE};
        return true;
    case GGML_OP_UNARY:
        return of_unary(ggml_get_unary_op(t), out);
    case GGML_OP_GLU:
        return of_glu(ggml_get_glu_op(t), out);
    default:
        return false;
    }
}

/* ---- Where the second input is ---- */

static bool same_size(const struct ggml_tensor *a, const struct ggml_tensor *b)
{
    return ggml_are_same_shape(a, b) && ggml_is_contiguous(a) && ggml_is_contiguous(b);
}

static bool second_of(const struct ggml_tensor *t, qdnnSecond_t *out)
{
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    if (t->op == GGML_OP_GLU && !b) {
        *out = t->op_params[1] ? QDNN_SECOND_FIRST_HALF : QDNN_SECOND_LAST_HALF;
        return ggml_is_contiguous(a) && ggml_is_contiguous(t);
    }
    if (!same_size(t, a))
        return false;
    if (!b || t->op == GGML_OP_UNARY) {
        *out = QDNN_SECOND_NONE;
        return true;
    }
    *out = QDNN_SECOND_TENSOR;
    if (same_size(t, b))
        return true;
    *out = QDNN_SECOND_ROW;
    return t->op != GGML_OP_GLU && b->ne[0] == t->ne[0] && ggml_nrows(b) == 1 && is_packed_row(b);
}

bool run_pointwise(run *r, const struct ggml_tensor *t)
{
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    qdnnDataType_t x, y, second_type = 0;
    qdnnSecond_t second;
    what w;
    if (!what_of(t, &w) || !plain_type(a->type, &x) || !plain_type(t->type, &y) || !second_of(t, &second))
        return false;
    const bool has_operand = second == QDNN_SECOND_TENSOR || second == QDNN_SECOND_ROW;
    if (has_operand && !plain_type(b->type, &second_type))
        return false;
    const int64_t rows = ggml_nrows(t);
    plan_request request = {.make = make_pointwise,
                            .number = {[W_KIND] = w.kind,
                                       [W_FUNCTION] = w.function,
                                       [W_SECOND] = second,
                                       [W_SECOND_TYPE] = second_type,
                                       [W_X] = x,
                                       [W_Y] = y,
                                       [W_ROWS] = planned_rows(rows),
                                       [W_X_COLUMNS] = a->ne[0],
                                       [W_COLUMNS] = t->ne[0]}};
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, a->data, 0},
                                      {QDNN_OPERAND_Y, t->data, 0},
                                      {QDNN_OPERAND_B, has_operand ? b->data : NULL, 0}};
    return run_plan(r, &request, rows, bindings, has_operand ? 3 : 2);
}
