/* Descriptors of integer products, and the code that their plans share. */
#include "driver/api/integer.h"

#include "driver/api/attributes.h"
#include "driver/base/alloc.h"
#include "driver/base/check.h"
#include "driver/base/object.h"

/* ---- Descriptors ---- */

static const attribute rows[QDNN_INTEGER_ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(constant, default_, ...)                                                                   \
    [QDNN_INTEGER_##constant] = {.name = "QDNN_INTEGER_" #constant, .preset = (default_), __VA_ARGS__},
#include "driver/api/integer_attributes.def"
#undef ATTRIBUTE
};
static const attribute_table attributes = {rows, QDNN_INTEGER_ATTRIBUTE_COUNT};

qdnnStatus_t qdnnCreateIntegerDescriptor(qdnnIntegerDescriptor_t *integer)
{
    CALL_BEGIN_WITH(integer);
    CHECK_NOT_NULL(integer);
    qdnnIntegerDescriptor_t made = object_create(OBJECT_INTEGER, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    attributes_preset(&attributes, made->values);
    made->multiplier = made->alpha = 1;
    *integer = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetIntegerAttribute(qdnnIntegerDescriptor_t integer, qdnnIntegerAttribute_t attribute,
                                     int64_t value)
{
    CALL_BEGIN_WITH(integer, attribute, value);
    CHECK_NOT_NULL(integer);
    return attribute_set(&attributes, integer->values, (int)attribute, value);
}

qdnnStatus_t qdnnGetIntegerAttribute(qdnnIntegerDescriptor_t integer, qdnnIntegerAttribute_t attribute,
                                     int64_t *value)
{
    CALL_BEGIN_WITH(integer, attribute, value);
    CHECK_NOT_NULL(integer);
    CHECK_NOT_NULL(value);
    return attribute_get(&attributes, integer->values, (int)attribute, value);
}

qdnnStatus_t qdnnSetIntegerMultiplier(qdnnIntegerDescriptor_t integer, float multiplier)
{
    CALL_BEGIN_WITH(integer, multiplier);
    CHECK_NOT_NULL(integer);
    integer->multiplier = multiplier;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetIntegerAlpha(qdnnIntegerDescriptor_t integer, float alpha)
{
    CALL_BEGIN_WITH(integer, alpha);
    CHECK_NOT_NULL(integer);
    integer->alpha = alpha;
    integer->values[QDNN_INTEGER_ALPHA] = QDNN_ALPHA_NUMBER;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnDestroyIntegerDescriptor(qdnnIntegerDescriptor_t integer)
{
    CALL_BEGIN_WITH(integer);
    if (integer)
        CHECK_NOT_NULL(integer);
    object_destroy(integer);
    return QDNN_STATUS_SUCCESS;
}

const char *integer_attribute_name(qdnnIntegerAttribute_t attribute)
{
    return rows[attribute].name;
}

/* ---- Shared by plans ---- */

qdnnStatus_t integer_refuse(const struct qdnnIntegerDescriptor *integer, qdnnIntegerAttribute_t attribute,
                            const char *operation)
{
    if (integer->values[attribute] == rows[attribute].preset)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s is %lld, which %s does not have; it must be %lld",
                      rows[attribute].name, (long long)integer->values[attribute], operation,
                      (long long)rows[attribute].preset);
}

qdnnStatus_t integer_check_size(const char *name, int64_t size)
{
    if (size <= KERNEL_SIZE_32)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %lld; it must be at most 2^31 - 2^16", name,
                      (long long)size);
}

/* A zero point must be in the range of its tensor's type. */
static qdnnStatus_t check_zero(const struct qdnnIntegerDescriptor *integer, qdnnIntegerAttribute_t attribute,
                               qdnnDataType_t type)
{
    const int64_t least = type == QDNN_DATA_U8 ? 0 : -128, value = integer->values[attribute];
    if (value >= least && value <= least + 255)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                      "%s is %lld, with codes of type %s; it must be %lld to %lld", rows[attribute].name,
                      (long long)value, qdnnGetDataTypeName(type), (long long)least, (long long)least + 255);
}

qdnnStatus_t integer_set_codes(const struct qdnnIntegerDescriptor *integer, qdnnDataType_t x,
                               qdnnDataType_t y, request *out)
{
    const int64_t *value = integer->values;
    CHECK_STATUS(check_zero(integer, QDNN_INTEGER_X_ZERO, x));
    out->spec.integer.x_codes = x;
    out->spec.integer.x_zero = value[QDNN_INTEGER_X_ZERO] != 0;
    out->spec.integer.w_zero = value[QDNN_INTEGER_W_ZERO] != 0;
    out->problem.x_zero = (int32_t)value[QDNN_INTEGER_X_ZERO];
    out->problem.w_zero = (int32_t)value[QDNN_INTEGER_W_ZERO];
    if (y != QDNN_DATA_I8 && y != QDNN_DATA_U8 && y != QDNN_DATA_I32)
        return QDNN_STATUS_SUCCESS;
    if (y != QDNN_DATA_I32)
        CHECK_STATUS(check_zero(integer, QDNN_INTEGER_Y_ZERO, y));
    out->spec.integer.result = y;
    out->spec.integer.bias_i32 = value[QDNN_INTEGER_BIAS_TYPE] == QDNN_DATA_I32;
    out->spec.integer.multipliers = value[QDNN_INTEGER_MULTIPLIERS] == QDNN_GRANULARITY_CHANNEL;
    out->spec.quantize.rounding = (qdnnRounding_t)value[QDNN_INTEGER_ROUNDING];
    out->problem.y_zero = (int32_t)value[QDNN_INTEGER_Y_ZERO];
    out->problem.multiplier = integer->multiplier;
    if (value[QDNN_INTEGER_BIAS_TYPE] && !out->spec.integer.bias_i32)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s is %s, and y %s; the bias of codes and sums must be QDNN_DATA_I32",
                          rows[QDNN_INTEGER_BIAS_TYPE].name,
                          attribute_value_name(&rows[QDNN_INTEGER_BIAS_TYPE], value[QDNN_INTEGER_BIAS_TYPE]),
                          qdnnGetDataTypeName(y));
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t integer_plan(qdnnHandle_t handle, request *r, bool takes_rows, qdnnPlan_t *plan)
{
    char reason[256];
    if (!kernel_spec_settle(r->row, &r->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    kernel_operands_of(r->row, &r->spec, &r->problem, r->operands);
    r->takes_rows = takes_rows;
    return plan_create(handle, r, plan);
}
