/* KV caches: dynamic quantization of keys or values with one scale per head and token, either in the order of
 * the tokens or into the slots of a cache. */
#include "driver/api/request.h"

#include "driver/api/plan.h"
#include "driver/base/check.h"

/* A token is the last two dimensions. */
static qdnnStatus_t token_of(const char *name, const struct qdnnTensorDescriptor *tensor, uint64_t *elements,
                             uint64_t *count)
{
    if (tensor->rank < 2)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "%s has %d dimension; it must have at least two, the last being heads and the head size", name,
            tensor->rank);
    *elements = (uint64_t)tensor->dims[tensor->rank - 1] * (uint64_t)tensor->dims[tensor->rank - 2];
    *count = 1;
    for (int i = 0; i < tensor->rank - 2; i++)
        *count *= (uint64_t)tensor->dims[i];
    return QDNN_STATUS_SUCCESS;
}

/* The same shape without gaps. */
static struct qdnnTensorDescriptor packed_form(const struct qdnnTensorDescriptor *tensor)
{
    struct qdnnTensorDescriptor t = *tensor;
    int64_t stride = 1;
    for (int i = t.rank; i-- > 0; stride *= t.dims[i] > 0 ? t.dims[i] : 1)
        t.strides[i] = stride;
    return t;
}

static int64_t stride_from_last(const struct qdnnTensorDescriptor *tensor, int i)
{
    return tensor->rank >= i ? tensor->strides[tensor->rank - i] : 0;
}

/* Tokens of x need not be contiguous: x may be a slice of a wider matrix. */
static qdnnStatus_t token_stride_of(const struct qdnnTensorDescriptor *x, uint64_t *stride)
{
    const int64_t head = x->dims[x->rank - 1], token = head * x->dims[x->rank - 2];
    *stride = (uint64_t)token;
    if (tensor_is_packed(x))
        return QDNN_STATUS_SUCCESS;
    if (x->rank != 3 || stride_from_last(x, 1) != 1 || stride_from_last(x, 2) != head ||
        stride_from_last(x, 3) < token || stride_from_last(x, 3) % 8 != 0)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "x has strides that are not packed; of [tokens, heads, head size] the stride of tokens may be "
            "larger, a multiple of 8, and the others must be packed");
    *stride = (uint64_t)stride_from_last(x, 3);
    return QDNN_STATUS_SUCCESS;
}

/* Pages, slots and heads may have any order and gaps between them. */
static qdnnStatus_t cache_strides_of(const struct qdnnTensorDescriptor *cache, kernel_cache *out)
{
    const int64_t head = cache->dims[cache->rank - 1], *strides = cache->strides;
    bool ok = (cache->rank == 3 || cache->rank == 4) && stride_from_last(cache, 1) == 1;
    for (int i = 0; i < cache->rank - 1; i++)
        ok = ok && head > 0 && strides[i] > 0 && strides[i] % head == 0;
    if (!ok)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "cache has strides that are not packed; it must be [slots, heads, head size] or [pages, slots, "
            "heads, head size], the last stride 1 and the others multiples of the head size");
    *out = (kernel_cache){
        .page_slots = 1, .page_stride = (uint64_t)strides[0], .head_stride = (uint64_t)strides[1]};
    if (cache->rank == 4)
        *out = (kernel_cache){.page_slots = (uint64_t)cache->dims[1],
                              .page_stride = (uint64_t)strides[0],
                              .slot_stride = (uint64_t)strides[1],
                              .head_stride = (uint64_t)strides[2]};
    return QDNN_STATUS_SUCCESS;
}

/* The strides of a cache without gaps. */
static kernel_cache packed_cache(uint64_t token, int64_t head)
{
    return (kernel_cache){.page_slots = 1, .page_stride = token, .head_stride = (uint64_t)head};
}

/* One scale per head and token means groups of the head size. */
static qdnnStatus_t check_groups(const struct qdnnTensorDescriptor *x,
                                 const struct qdnnQuantDescriptor *quant)
{
    const int64_t *value = quant->values, head = x->dims[x->rank - 1];
    if (value[QDNN_QUANT_GRANULARITY] != QDNN_GRANULARITY_GROUP || value[QDNN_QUANT_GROUP_SIZE] != head)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "QDNN_QUANT_GROUP_SIZE is %lld, and a head has %lld elements; a scale for each "
                          "head and token needs "
                          "QDNN_GRANULARITY_GROUP with the head size",
                          (long long)value[QDNN_QUANT_GROUP_SIZE], (long long)head);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_cache(const struct qdnnTensorDescriptor *x,
                                const struct qdnnTensorDescriptor *cache)
{
    for (int i = 1; i <= 2; i++)
        if (cache->dims[cache->rank - i] != x->dims[x->rank - i])
            return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                              "cache has %lld %s, and x has %lld; they must be the same",
                              (long long)cache->dims[cache->rank - i],
                              i == 1 ? "elements in a head" : "heads", (long long)x->dims[x->rank - i]);
    return QDNN_STATUS_SUCCESS;
}

/* Adds the strides to the request if x or the cache has gaps. */
static qdnnStatus_t add_strides(const struct qdnnTensorDescriptor *x,
                                const struct qdnnTensorDescriptor *cache, request *out)
{
    out->problem.cache = packed_cache(out->problem.columns, x->dims[x->rank - 1]);
    CHECK_STATUS(token_stride_of(x, &out->problem.x_stride));
    if (!tensor_is_packed(cache))
        CHECK_STATUS(cache_strides_of(cache, &out->problem.cache));
    out->spec.strided = !tensor_is_packed(x) || !tensor_is_packed(cache);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t request_make_kv(const struct qdnnTensorDescriptor *x, const struct qdnnQuantDescriptor *quant,
                             const struct qdnnTensorDescriptor *cache, request *out)
{
    uint64_t elements = 0, tokens = 0, slot = 0, slots = 0;
    char reason[256];
    CHECK_STATUS(token_of("x", x, &elements, &tokens));
    CHECK_STATUS(check_groups(x, quant));
    const struct qdnnTensorDescriptor packed = packed_form(x);
    CHECK_STATUS(request_make(KERNEL_DYNAMIC, cache ? &packed : x, quant, out));
    if (!kernel_is_emitted(out->row, &out->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "the head size is %lld: %s",
                          (long long)x->dims[x->rank - 1], reason);
    if (!cache)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(token_of("cache", cache, &slot, &slots));
    CHECK_STATUS(check_cache(x, cache));
    if (slots > INT32_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "cache has %llu slots; numbers of slots are i32: at most %d",
                          (unsigned long long)slots, INT32_MAX);
    out->problem = (kernel_problem){.rows = tokens, .columns = elements, .table_rows = slots};
    out->spec.row_index = 1;
    out->takes_rows = true;
    CHECK_STATUS(add_strides(x, cache, out));
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateQuantizeKvCachePlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x,
                                           qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t cache,
                                           qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, quant, cache, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_NOT_NULL(quant);
    if (cache)
        CHECK_TENSOR(cache);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(request_make_kv(x, quant, cache, &r));
    CHECK_STATUS(plan_create(handle, &r, plan));
    plan_typed(*plan, QDNN_OPERAND_X, x->type);
    return QDNN_STATUS_SUCCESS;
}
