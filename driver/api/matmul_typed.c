/* The typed call: a product whose weights are described by a quantized type. Its errors end with a remedy. */
#include "driver/api/matmul.h"

static const char *granularity_name(qdnnGranularity_t granularity)
{
    const char *name = quant_value_name(QDNN_QUANT_GRANULARITY, granularity);
    return name ? name : "unknown";
}

static qdnnStatus_t check_group_size(const char *name, qdnnGranularity_t granularity, int64_t size)
{
    if (granularity == QDNN_GRANULARITY_GROUP && size < 1)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "type->%s is %lld; fix: use a group size of at least 1", name, (long long)size);
    if (granularity != QDNN_GRANULARITY_GROUP && size != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "type->%s is %lld without groups; fix: use 0",
                          name, (long long)size);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_granularity(const char *name, qdnnGranularity_t granularity)
{
    if (granularity == QDNN_GRANULARITY_NONE || granularity == QDNN_GRANULARITY_GROUP)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "type->%s is %s (%d); fix: use QDNN_GRANULARITY_GROUP or QDNN_GRANULARITY_NONE", name,
                      granularity_name(granularity), (int)granularity);
}

static qdnnStatus_t check_type(const qdnnQuantizedType_t *type)
{
    if (type->storage != QDNN_DATA_I4)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "type->storage is %s, and the products described by a type have integer codes of 4 "
                          "bits; fix: use "
                          "storage QDNN_DATA_I4, or qdnnCreateMatmulPlan",
                          qdnnGetDataTypeName(type->storage));
    CHECK_STATUS(check_granularity("scale", type->scale));
    CHECK_STATUS(check_granularity("zero", type->zero));
    if (type->scale != type->zero)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "type->scale is %s with type->zero %s; fix: use equal granularities",
                          granularity_name(type->scale), granularity_name(type->zero));
    CHECK_STATUS(check_group_size("scaleGroupSize", type->scale, type->scaleGroupSize));
    CHECK_STATUS(check_group_size("zeroGroupSize", type->zero, type->zeroGroupSize));
    if (type->scaleGroupSize == type->zeroGroupSize)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "type->zeroGroupSize is %lld, scale groups of %lld with zero groups of %lld; fix: use equal group "
        "sizes",
        (long long)type->zeroGroupSize, (long long)type->scaleGroupSize, (long long)type->zeroGroupSize);
}

static qdnnStatus_t check_size(const char *name, int64_t size)
{
    if (size >= 1)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "%s is %lld; fix: use weights with at least one row and column", name, (long long)size);
}

/* The shape [K, N], or a stack of them. */
static qdnnStatus_t set_weights(const struct qdnnMatmulDescriptor *matmul, int64_t k, int64_t n,
                                struct qdnnTensorDescriptor *w)
{
    const int64_t experts = matmul->values[QDNN_MATMUL_EXPERTS], dims[] = {experts, k, n};
    int64_t elements;
    if (__builtin_mul_overflow(k, n, &elements) ||
        __builtin_mul_overflow(elements, experts ? experts : 1, &elements) || elements >= INT64_C(1) << 58)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "K is %lld and n %lld, whose product overflows; fix: use weights of fewer than 2^58 elements",
            (long long)k, (long long)n);
    return tensor_set(w, QDNN_DATA_F32, experts ? 3 : 2, experts ? dims : dims + 1, NULL);
}

/* The format that a valid type selects. */
static qdnnStatus_t set_quant(const qdnnQuantizedType_t *type, struct qdnnQuantDescriptor *quant)
{
    return type->scale == QDNN_GRANULARITY_NONE
               ? quant_set_weights(quant, QDNN_WEIGHTS_INT4_LINEAR, 0)
               : quant_set_weights(quant, QDNN_WEIGHTS_INT4_AFFINE, type->scaleGroupSize);
}

static qdnnStatus_t create(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul, qdnnTensorDescriptor_t x,
                           const qdnnQuantizedType_t *type, int64_t n, qdnnTensorDescriptor_t y,
                           qdnnPlan_t *plan)
{
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(matmul);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(type);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    const int64_t k = x->dims[x->rank - 1];
    struct qdnnMatmulDescriptor by_columns = *matmul;
    struct qdnnTensorDescriptor w;
    struct qdnnQuantDescriptor quant;
    CHECK_STATUS(check_type(type));
    CHECK_STATUS(check_size("K", k));
    CHECK_STATUS(check_size("n", n));
    CHECK_STATUS(set_weights(matmul, k, n, &w));
    CHECK_STATUS(set_quant(type, &quant));
    by_columns.values[QDNN_MATMUL_TRANSPOSE_W] = 0;
    matmul_call call = {.matmul = &by_columns, .x = x, .w = &w, .y = y, .quant = &quant};
    return matmul_create_plan(handle, &call, plan);
}

qdnnStatus_t qdnnCreateTypedMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                       qdnnTensorDescriptor_t x, const qdnnQuantizedType_t *type, int64_t n,
                                       qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, matmul, x, type, n, y, plan);
    return error_with_remedy(create(handle, matmul, x, type, n, y, plan));
}
