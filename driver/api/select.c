/* Softmax, top-k, routing, combining and sampling: their descriptors, and their plans. */
#include <qdnn/select.h>

#include <math.h>
#include <string.h>

#include "driver/api/attributes.h"
#include "driver/api/plan.h"
#include "driver/base/alloc.h"
#include "driver/base/check.h"

/* ---- Descriptors ---- */

static const attribute rows[QDNN_SELECT_ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(constant, default_, ...)                                                                   \
    [QDNN_SELECT_##constant] = {.name = "QDNN_SELECT_" #constant, .preset = (default_), __VA_ARGS__},
#include "driver/api/select_attributes.def"
#undef ATTRIBUTE
};
static const attribute_table attributes = {rows, QDNN_SELECT_ATTRIBUTE_COUNT};

qdnnStatus_t qdnnCreateSelectDescriptor(qdnnSelectDescriptor_t *select)
{
    CALL_BEGIN_WITH(select);
    CHECK_NOT_NULL(select);
    qdnnSelectDescriptor_t made = object_create(OBJECT_SELECT, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    attributes_preset(&attributes, made->values);
    made->scale = made->factor = 1;
    *select = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetSelectAttribute(qdnnSelectDescriptor_t select, qdnnSelectAttribute_t attribute,
                                    int64_t value)
{
    CALL_BEGIN_WITH(select, attribute, value);
    CHECK_NOT_NULL(select);
    return attribute_set(&attributes, select->values, (int)attribute, value);
}

qdnnStatus_t qdnnGetSelectAttribute(qdnnSelectDescriptor_t select, qdnnSelectAttribute_t attribute,
                                    int64_t *value)
{
    CALL_BEGIN_WITH(select, attribute, value);
    CHECK_NOT_NULL(select);
    CHECK_NOT_NULL(value);
    return attribute_get(&attributes, select->values, (int)attribute, value);
}

static qdnnStatus_t check_finite(const char *name, float value)
{
    return isfinite(value) ? QDNN_STATUS_SUCCESS
                           : qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                                        "%s is %g; it must be a finite number", name, (double)value);
}

qdnnStatus_t qdnnSetSelectScale(qdnnSelectDescriptor_t select, float scale)
{
    CALL_BEGIN_WITH(select, scale);
    CHECK_NOT_NULL(select);
    CHECK_STATUS(check_finite("scale", scale));
    select->scale = scale;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetSelectScale(qdnnSelectDescriptor_t select, float *scale)
{
    CALL_BEGIN_WITH(select, scale);
    CHECK_NOT_NULL(select);
    CHECK_NOT_NULL(scale);
    *scale = select->scale;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetSelectEpsilon(qdnnSelectDescriptor_t select, float epsilon)
{
    CALL_BEGIN_WITH(select, epsilon);
    CHECK_NOT_NULL(select);
    CHECK_STATUS(check_finite("epsilon", epsilon));
    select->epsilon = epsilon;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetSelectEpsilon(qdnnSelectDescriptor_t select, float *epsilon)
{
    CALL_BEGIN_WITH(select, epsilon);
    CHECK_NOT_NULL(select);
    CHECK_NOT_NULL(epsilon);
    *epsilon = select->epsilon;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetSelectFactor(qdnnSelectDescriptor_t select, float factor)
{
    CALL_BEGIN_WITH(select, factor);
    CHECK_NOT_NULL(select);
    CHECK_STATUS(check_finite("factor", factor));
    select->factor = factor;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetSelectFactor(qdnnSelectDescriptor_t select, float *factor)
{
    CALL_BEGIN_WITH(select, factor);
    CHECK_NOT_NULL(select);
    CHECK_NOT_NULL(factor);
    *factor = select->factor;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnDestroySelectDescriptor(qdnnSelectDescriptor_t select)
{
    CALL_BEGIN_WITH(select);
    if (select)
        CHECK_NOT_NULL(select);
    object_destroy(select);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Requests ---- */

static qdnnStatus_t check_type(const char *name, const struct qdnnTensorDescriptor *tensor)
{
    if (tensor->type != QDNN_DATA_F32 && tensor->type != QDNN_DATA_F16 && tensor->type != QDNN_DATA_BF16)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s is of type %s; it must be f32, f16 or bf16; fix: convert it", name,
                          qdnnGetDataTypeName(tensor->type));
    return request_check_packed(tensor);
}

/* A request on the rows of a tensor, `most` being the largest row. */
static qdnnStatus_t begin(const char *kernel, const char *name, const struct qdnnTensorDescriptor *x,
                          int64_t most, request *out)
{
    const int64_t n = x->dims[x->rank - 1];
    CHECK_STATUS(check_type(name, x));
    if (n > most)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "the rows of %s have %lld elements; %s takes at most %lld", name, (long long)n,
                          kernel, (long long)most);
    *out = (request){.row = kernel_find(kernel),
                     .spec = kernel_spec_default(),
                     .problem = kernel_problem_default(),
                     .takes_rows = true};
    out->spec.data = x->type;
    out->problem.columns = (uint64_t)n;
    out->problem.rows = out->problem.m = n ? tensor_elements(x) / (uint64_t)n : 0;
    out->problem.parts = 1;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t finish(qdnnHandle_t handle, request *r, qdnnPlan_t *plan)
{
    char reason[256];
    if (!kernel_spec_settle(r->row, &r->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    kernel_operands_of(r->row, &r->spec, &r->problem, r->operands);
    return plan_create(handle, r, plan);
}

static bool same_shape(const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *y)
{
    return x->rank == y->rank && memcmp(x->dims, y->dims, sizeof x->dims) == 0;
}

/* ---- Plans ---- */

static qdnnStatus_t set_softmax(const struct qdnnSelectDescriptor *select,
                                const struct qdnnTensorDescriptor *y, request *r)
{
    const int64_t *value = select->values;
    const uint64_t m = r->problem.m, mask_rows = (uint64_t)value[QDNN_SELECT_MASK_ROWS];
    r->spec.epilogue.output = y->type;
    r->spec.select.mask = (int)value[QDNN_SELECT_MASK];
    r->spec.select.slope = (int)value[QDNN_SELECT_SLOPE];
    r->spec.select.sink = (int)value[QDNN_SELECT_SINK];
    r->problem.alpha = select->scale;
    r->problem.table_rows = mask_rows ? mask_rows : m;
    if (r->spec.select.slope && !r->spec.select.mask)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "QDNN_SELECT_SLOPE is 1, and there is no mask to multiply; fix: set QDNN_SELECT_MASK");
    if (mask_rows && m % mask_rows != 0)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "QDNN_SELECT_MASK_ROWS is %llu, and x has %llu rows; fix: a number that divides them",
            (unsigned long long)mask_rows, (unsigned long long)m);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateSoftmaxPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                   qdnnSelectDescriptor_t select, qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, select, y, plan);
    request r;
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(select);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(begin("softmax", "x", x, INT64_C(1) << 24, &r));
    CHECK_STATUS(check_type("y", y));
    if (!same_shape(x, y))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "y is not of the shape of x; fix: the same dimensions");
    CHECK_STATUS(set_softmax(select, y, &r));
    return finish(handle, &r, plan);
}

qdnnStatus_t qdnnCreateTopKPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnSelectDescriptor_t select,
                                qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, select, plan);
    request r;
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(select);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(begin("top_k", "x", x, INT32_MAX - UINT16_MAX, &r));
    r.problem.top = (uint64_t)select->values[QDNN_SELECT_TOP];
    if (r.problem.top > r.problem.columns && r.problem.columns > 0)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "QDNN_SELECT_TOP is %llu, and the rows of x have %llu elements; fix: at most as many",
            (unsigned long long)r.problem.top, (unsigned long long)r.problem.columns);
    return finish(handle, &r, plan);
}

qdnnStatus_t qdnnCreateSamplePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t logits,
                                  qdnnSelectDescriptor_t select, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, logits, select, plan);
    request r;
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(logits);
    CHECK_NOT_NULL(select);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(begin("sample", "logits", logits, INT64_C(1) << 22, &r));
    r.spec.select.greedy = (int)select->values[QDNN_SELECT_GREEDY];
    r.spec.select.counts = (int)select->values[QDNN_SELECT_COUNTS];
    if (r.spec.select.greedy && r.spec.select.counts)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "QDNN_SELECT_GREEDY and QDNN_SELECT_COUNTS are both 1: greedy rows have no penalties; "
            "fix: temperature 0 in SAMPLING instead of QDNN_SELECT_GREEDY");
    return finish(handle, &r, plan);
}

/* ---- Routing and combining ---- */

static qdnnStatus_t set_slots(const struct qdnnSelectDescriptor *select, request *r)
{
    const int64_t top = select->values[QDNN_SELECT_TOP];
    if (top > ROUTE_SLOTS_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "QDNN_SELECT_TOP is %lld; a token has at most %d experts", (long long)top,
                          ROUTE_SLOTS_MAX);
    r->spec.route.slots = (uint64_t)top;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_groups(const kernel_routing *route)
{
    if (route->experts % route->groups != 0)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "QDNN_SELECT_EXPERT_GROUPS is %llu, and logits has %llu experts; fix: a number that divides them",
            (unsigned long long)route->groups, (unsigned long long)route->experts);
    if (route->kept > route->groups)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "QDNN_SELECT_KEPT_GROUPS is %llu, and there are %llu groups; fix: at most as many",
                          (unsigned long long)route->kept, (unsigned long long)route->groups);
    const uint64_t candidates = route->experts / route->groups * route->kept;
    if (route->slots > candidates)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "QDNN_SELECT_TOP is %llu, and the groups that are kept have %llu experts; fix: at most as many",
            (unsigned long long)route->slots, (unsigned long long)candidates);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t set_route(const struct qdnnSelectDescriptor *select, request *r)
{
    const int64_t *value = select->values;
    kernel_routing *route = &r->spec.route;
    CHECK_STATUS(set_slots(select, r));
    if (r->problem.columns == 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "logits has rows of no experts; fix: at least one");
    route->experts = r->problem.columns;
    route->scores = (qdnnScores_t)value[QDNN_SELECT_SCORES];
    route->groups = (uint64_t)value[QDNN_SELECT_EXPERT_GROUPS];
    route->kept = (uint64_t)value[QDNN_SELECT_KEPT_GROUPS];
    route->group_score = (qdnnGroupScore_t)value[QDNN_SELECT_GROUP_SCORE];
    route->bias = (int)value[QDNN_SELECT_EXPERT_BIAS];
    route->renormalize = (int)value[QDNN_SELECT_RENORMALIZE];
    r->problem.eps = select->epsilon;
    r->problem.factor = select->factor;
    return check_groups(route);
}

qdnnStatus_t qdnnCreateRoutePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t logits,
                                 qdnnSelectDescriptor_t select, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, logits, select, plan);
    request r;
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(logits);
    CHECK_NOT_NULL(select);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(begin("route", "logits", logits, ROUTE_EXPERTS_MAX, &r));
    CHECK_STATUS(set_route(select, &r));
    return finish(handle, &r, plan);
}

qdnnStatus_t qdnnCreateCombinePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                   qdnnSelectDescriptor_t select, qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, select, y, plan);
    request r;
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(select);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(begin("combine", "y", y, INT64_C(1) << 24, &r));
    CHECK_STATUS(check_type("x", x));
    CHECK_STATUS(set_slots(select, &r));
    r.spec.data = x->type;
    r.spec.epilogue.output = y->type;
    r.spec.epilogue.residual = (int)select->values[QDNN_SELECT_RESIDUAL];
    if (x->dims[x->rank - 1] != y->dims[y->rank - 1] ||
        tensor_elements(x) != tensor_elements(y) * r.spec.route.slots)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "x has %llu elements; fix: rows like those of y, QDNN_SELECT_TOP = %llu for each",
                          (unsigned long long)tensor_elements(x), (unsigned long long)r.spec.route.slots);
    return finish(handle, &r, plan);
}
