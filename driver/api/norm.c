/* Plans of norms. */
#include <qdnn/norm.h>

#include <math.h>

#include "driver/api/plan.h"
#include "driver/api/rows.h"
#include "driver/base/check.h"

static qdnnStatus_t check_settings(const qdnnNorm_t *norm)
{
    if (norm->kind != QDNN_NORM_RMS && norm->kind != QDNN_NORM_LAYER)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "norm->kind is %d; it must be QDNN_NORM_RMS or QDNN_NORM_LAYER", (int)norm->kind);
    if (!(norm->eps >= 0) || isinf(norm->eps))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "norm->eps is %g; it must be a finite number, not negative", (double)norm->eps);
    if (norm->weightPlusOne != 0 && norm->weightPlusOne != 1)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "norm->weightPlusOne is %d; it must be 0 or 1",
                          norm->weightPlusOne);
    CHECK_STATUS(rows_check_type("norm->weightType", norm->weightType));
    CHECK_STATUS(rows_check_type("norm->biasType", norm->biasType));
    return rows_check_type("norm->sumType", norm->sumType);
}

static qdnnStatus_t make_request(const qdnnNorm_t *norm, const struct qdnnTensorDescriptor *x,
                                 const struct qdnnTensorDescriptor *y,
                                 const struct qdnnQuantDescriptor *quant, request *r)
{
    row_extent in, out;
    *r = (request){.spec = kernel_spec_default()};
    CHECK_STATUS(check_settings(norm));
    CHECK_STATUS(rows_of("x", x, &in));
    CHECK_STATUS(rows_of("y", y, &out));
    if (in.tokens != out.tokens || in.heads != out.heads || in.columns != out.columns)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "x has %llu rows of %llu x %llu, and y %llu of %llu x %llu; fix: the same shape for both",
            (unsigned long long)in.tokens, (unsigned long long)in.heads, (unsigned long long)in.columns,
            (unsigned long long)out.tokens, (unsigned long long)out.heads, (unsigned long long)out.columns);
    r->spec.data = x->type;
    r->spec.epilogue.output = y->type;
    r->spec.epilogue.bias = (int)norm->biasType;
    r->spec.rows = (kernel_row_extent){.columns = in.columns, .heads = in.heads};
    r->spec.norm = (kernel_norm){.kind = norm->kind == QDNN_NORM_LAYER ? KERNEL_NORM_LAYER : KERNEL_NORM_RMS,
                                 .weight = (int)norm->weightType,
                                 .plus_one = norm->weightPlusOne,
                                 .sum = (int)norm->sumType};
    r->problem =
        (kernel_problem){.m = in.tokens, .x_stride = in.stride, .y_stride = out.stride, .eps = norm->eps};
    return rows_settle(KERNEL_NORM, KERNEL_NORM_QUANTIZED, y, quant, r);
}

qdnnStatus_t qdnnCreateNormPlan(qdnnHandle_t handle, const qdnnNorm_t *norm, qdnnTensorDescriptor_t x,
                                qdnnTensorDescriptor_t y, qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, norm, x, y, quant, plan);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(norm);
    CHECK_TENSOR(x);
    CHECK_TENSOR(y);
    if (quant)
        CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(plan);
    qdnnNorm_t settings;
    request r;
    CHECK_STATUS(rows_take_settings("norm", norm, &settings, sizeof settings));
    CHECK_STATUS(make_request(&settings, x, y, quant, &r));
    return plan_create(handle, &r, plan);
}
