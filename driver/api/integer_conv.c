/* Plans of integer convolutions. */
#include "driver/api/integer.h"

#include "driver/base/check.h"

/* The dimensions of a tensor in the order N, C, H, W, whichever order it has. */
static void dims_of(const struct qdnnTensorDescriptor *t, bool nhwc, uint64_t dims[4])
{
    static const int orders[2][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}};
    for (int i = 0; i < 4; i++)
        dims[i] = (uint64_t)t->dims[orders[nhwc][i]];
}

static qdnnStatus_t check_tensor(const char *name, const struct qdnnTensorDescriptor *t, bool is_codes)
{
    if (t->rank != 4)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "%s has %d dimensions; it must have 4", name,
                          t->rank);
    if (is_codes && t->type != QDNN_DATA_I8 && t->type != QDNN_DATA_U8)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s is %s; it must be i8 or u8", name,
                          qdnnGetDataTypeName(t->type));
    return request_check_packed(t);
}

static qdnnStatus_t check_types(const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *w,
                                const struct qdnnTensorDescriptor *y)
{
    CHECK_STATUS(check_tensor("x", x, true));
    CHECK_STATUS(check_tensor("w", w, false));
    CHECK_STATUS(check_tensor("y", y, y->type != QDNN_DATA_I32));
    if (w->type != QDNN_DATA_I8)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "w is %s; it must be i8", qdnnGetDataTypeName(w->type));
    return QDNN_STATUS_SUCCESS;
}

/* Sets channels and groups, and the window of w. */
static qdnnStatus_t set_channels(const struct qdnnIntegerDescriptor *integer, const uint64_t x[4],
                                 const uint64_t w[4], request *out)
{
    const uint64_t groups = (uint64_t)integer->values[QDNN_INTEGER_GROUPS];
    if (x[1] % groups || w[0] % groups)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s is %llu; it must divide the %llu channels of x and the %llu of y",
                          integer_attribute_name(QDNN_INTEGER_GROUPS), (unsigned long long)groups,
                          (unsigned long long)x[1], (unsigned long long)w[0]);
    if (w[1] != x[1] / groups)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "w has %llu channels; it must have %llu, those of a group",
                          (unsigned long long)w[1], (unsigned long long)(x[1] / groups));
    if (w[1] == 0 || w[1] > 1 << 20 || w[2] == 0 || w[3] == 0 || w[2] > 1 << 15 || w[3] > 1 << 15)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "w has windows of %llu x %llu x %llu; channels must be 1 to 2^20, height and width 1 to 2^15",
            (unsigned long long)w[1], (unsigned long long)w[2], (unsigned long long)w[3]);
    out->spec.conv.window_c = w[1];
    out->spec.conv.window_h = w[2];
    out->spec.conv.window_w = w[3];
    out->problem.conv.groups = groups;
    out->problem.conv.channels = x[1];
    out->problem.conv.outputs = w[0];
    out->problem.conv.images = x[0];
    return QDNN_STATUS_SUCCESS;
}

/* Sets one direction: 0 is the height, 1 the width. */
static qdnnStatus_t set_direction(const struct qdnnIntegerDescriptor *integer, int i, uint64_t size,
                                  uint64_t window, uint64_t result, kernel_conv *conv)
{
    const int64_t *value = integer->values;
    conv->in[i] = size;
    conv->stride[i] = (uint64_t)value[QDNN_INTEGER_STRIDE_H + i];
    conv->padding[i] = (uint64_t)value[QDNN_INTEGER_PADDING_H + i];
    conv->dilation[i] = (uint64_t)value[QDNN_INTEGER_DILATION_H + i];
    const uint64_t reach = conv->dilation[i] * (window - 1) + 1, padded = size + 2 * conv->padding[i];
    if (reach > padded)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "the window's %s is %llu, more than the %llu of the padded image; it must not be larger",
            i ? "width" : "height", (unsigned long long)reach, (unsigned long long)padded);
    conv->out[i] = (padded - reach) / conv->stride[i] + 1;
    if (result != conv->out[i])
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "y has a %s of %llu; it must be %llu",
                          i ? "width" : "height", (unsigned long long)result,
                          (unsigned long long)conv->out[i]);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t set_shape(const struct qdnnIntegerDescriptor *integer,
                              const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *w,
                              const struct qdnnTensorDescriptor *y, request *out)
{
    const bool nhwc = integer->values[QDNN_INTEGER_NHWC];
    kernel_problem *p = &out->problem;
    uint64_t of_x[4], of_w[4], of_y[4];
    dims_of(x, nhwc, of_x);
    dims_of(w, nhwc, of_w);
    dims_of(y, nhwc, of_y);
    CHECK_STATUS(set_channels(integer, of_x, of_w, out));
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(set_direction(integer, i, of_x[2 + i], of_w[2 + i], of_y[2 + i], &p->conv));
    if (of_y[0] != of_x[0] || of_y[1] != of_w[0])
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "y has %llu images of %llu channels; it must have %llu of %llu",
                          (unsigned long long)of_y[0], (unsigned long long)of_y[1],
                          (unsigned long long)of_x[0], (unsigned long long)of_w[0]);
    p->m = of_x[0] * p->conv.out[0] * p->conv.out[1];
    p->rows = of_w[0];
    p->columns = of_w[1] * of_w[2] * of_w[3];
    CHECK_STATUS(integer_check_size("the number of y's positions", (int64_t)p->m));
    CHECK_STATUS(integer_check_size("the number of y's channels", (int64_t)p->rows));
    CHECK_STATUS(integer_check_size("the size of a window", (int64_t)p->columns));
    return integer_check_size("the size of an image", (int64_t)(of_x[1] * of_x[2] * of_x[3]));
}

qdnnStatus_t qdnnCreateIntegerConvPlan(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                       qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                       qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, integer, x, w, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(integer);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    request r = {.row = kernel_find("int8_conv2d"), .spec = kernel_spec_default()};
    static const qdnnIntegerAttribute_t others[] = {QDNN_INTEGER_ALPHA,    QDNN_INTEGER_ACTIVATION,
                                                    QDNN_INTEGER_RESIDUAL, QDNN_INTEGER_GATED,
                                                    QDNN_INTEGER_EXPERTS,  QDNN_INTEGER_SLOTS,
                                                    QDNN_INTEGER_ROW_WEIGHT};
    CHECK_STATUS(check_types(x, w, y));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CHECK_STATUS(integer_refuse(integer, others[i], r.row->operation_name));
    CHECK_STATUS(set_shape(integer, x, w, y, &r));
    CHECK_STATUS(integer_set_codes(integer, x->type, y->type, &r));
    r.spec.conv.nhwc = (int)integer->values[QDNN_INTEGER_NHWC];
    return integer_plan(handle, &r, false, plan);
}
