/* Plans of operations on each element. */
#include <qdnn/pointwise.h>

#include <math.h>

#include "driver/api/plan.h"
#include "driver/api/rows.h"
#include "driver/base/check.h"

static const kernel_pointwise_kind kinds[] = {[QDNN_POINTWISE_ADD] = KERNEL_POINTWISE_ADD,
                                              [QDNN_POINTWISE_MUL] = KERNEL_POINTWISE_MUL,
                                              [QDNN_POINTWISE_FUNCTION] = KERNEL_POINTWISE_FUNCTION,
                                              [QDNN_POINTWISE_GATED] = KERNEL_POINTWISE_GATED};
static const kernel_b places[] = {[QDNN_SECOND_NONE] = KERNEL_B_NONE,
                                  [QDNN_SECOND_TENSOR] = KERNEL_B_SAME,
                                  [QDNN_SECOND_ROW] = KERNEL_B_ROW,
                                  [QDNN_SECOND_NUMBER] = KERNEL_B_NUMBER,
                                  [QDNN_SECOND_LAST_HALF] = KERNEL_B_SECOND_HALF,
                                  [QDNN_SECOND_FIRST_HALF] = KERNEL_B_FIRST_HALF,
                                  [QDNN_SECOND_INTERLEAVED] = KERNEL_B_INTERLEAVED};
enum { KINDS = sizeof kinds / sizeof kinds[0], PLACES = sizeof places / sizeof places[0] };

static qdnnStatus_t check_range(const char *name, int value, int largest)
{
    if (value >= 0 && value <= largest)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "pointwise->%s is %d; it must be 0 to %d", name,
                      value, largest);
}

static bool has_function(const qdnnPointwise_t *p)
{
    return p->kind == QDNN_POINTWISE_FUNCTION || p->kind == QDNN_POINTWISE_GATED;
}

static qdnnStatus_t check_settings(const qdnnPointwise_t *p)
{
    const bool is_clamped = has_function(p) && p->function == QDNN_ACTIVATION_CLAMPED_SILU;
    CHECK_STATUS(check_range("kind", (int)p->kind, KINDS - 1));
    CHECK_STATUS(check_range("function", (int)p->function, QDNN_ACTIVATION_CLAMPED_SILU));
    CHECK_STATUS(check_range("second", (int)p->second, PLACES - 1));
    CHECK_STATUS(rows_check_type("pointwise->secondType", p->secondType));
    if ((is_clamped || (has_function(p) && p->function == QDNN_ACTIVATION_SOFTCAP)) && !(p->limit > 0))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "pointwise->limit is %g; this function needs one above 0", (double)p->limit);
    if (is_clamped && !isfinite(p->factor))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "pointwise->factor is %g; it must be finite",
                          (double)p->factor);
    return QDNN_STATUS_SUCCESS;
}

/* The stride of operand B; its shape is that of y, or one row. */
static qdnnStatus_t second_of(const qdnnPointwise_t *p, const struct qdnnTensorDescriptor *b,
                              const row_extent *y, request *r)
{
    row_extent second;
    r->problem.b_stride = y->heads * y->columns;
    if (!b)
        return QDNN_STATUS_SUCCESS;
    if (p->second != QDNN_SECOND_TENSOR && p->second != QDNN_SECOND_ROW)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "b is given, but pointwise->second is no operand; it must be null");
    CHECK_STATUS(rows_of("b", b, &second));
    const bool is_row = p->second == QDNN_SECOND_ROW;
    if (second.columns != y->columns ||
        (is_row ? second.tokens * second.heads != 1 : second.tokens != y->tokens || second.heads != y->heads))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "b does not have the shape of y, or of one row of it, as pointwise->second says; "
                          "fix: that shape");
    r->problem.b_stride = second.stride;
    r->spec.pointwise.b_type = b->type;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t make_request(const qdnnPointwise_t *p, const struct qdnnTensorDescriptor *x,
                                 const struct qdnnTensorDescriptor *b, const struct qdnnTensorDescriptor *y,
                                 const struct qdnnQuantDescriptor *quant, request *r)
{
    row_extent in, out;
    *r = (request){.spec = kernel_spec_default()};
    CHECK_STATUS(check_settings(p));
    CHECK_STATUS(rows_of("x", x, &in));
    CHECK_STATUS(rows_of("y", y, &out));
    const uint64_t parts = p->second >= QDNN_SECOND_LAST_HALF && out.tokens ? 2 : 1;
    if (in.tokens != out.tokens || in.heads != out.heads || in.columns != out.columns * parts)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "x has %llu rows of %llu x %llu, and y %llu of %llu x %llu; fix: the same shape%s",
                          (unsigned long long)in.tokens, (unsigned long long)in.heads,
                          (unsigned long long)in.columns, (unsigned long long)out.tokens,
                          (unsigned long long)out.heads, (unsigned long long)out.columns,
                          parts == 2 ? ", with twice as many columns in x" : "");
    r->spec.data = x->type;
    r->spec.epilogue.output = y->type;
    r->spec.rows = (kernel_row_extent){.columns = out.columns, .heads = out.heads};
    r->spec.pointwise = (kernel_pointwise){.kind = kinds[p->kind],
                                           .function = p->function,
                                           .b = places[p->second],
                                           .b_type = p->secondType ? p->secondType : x->type};
    r->problem = (kernel_problem){.m = out.tokens,
                                  .x_stride = in.stride,
                                  .y_stride = out.stride,
                                  .alpha = p->number,
                                  .limit = p->limit,
                                  .factor = p->factor};
    CHECK_STATUS(second_of(p, b, &out, r));
    return rows_settle(KERNEL_POINTWISE, KERNEL_POINTWISE_QUANTIZED, y, quant, r);
}

qdnnStatus_t qdnnCreatePointwisePlan(qdnnHandle_t handle, const qdnnPointwise_t *pointwise,
                                     qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t b,
                                     qdnnTensorDescriptor_t y, qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, pointwise, x, b, y, quant, plan);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(pointwise);
    CHECK_TENSOR(x);
    if (b)
        CHECK_TENSOR(b);
    CHECK_TENSOR(y);
    if (quant)
        CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(plan);
    qdnnPointwise_t settings;
    request r;
    CHECK_STATUS(rows_take_settings("pointwise", pointwise, &settings, sizeof settings));
    CHECK_STATUS(make_request(&settings, x, b, y, quant, &r));
    return plan_create(handle, &r, plan);
}
