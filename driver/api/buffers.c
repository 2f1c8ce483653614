/* QDNN_CHECK_BUFFERS=1: the driver is asked about every buffer of a call before anything is launched. A
 * mistake that would end the context, or silently corrupt other data, is reported as an error instead. */
#include "driver/api/plan.h"

/* A buffer as the kernels access it. */
typedef struct span {
    int place;
    const char *name;
    CUdeviceptr at;
    uint64_t bytes;
} span;

static int list_spans(const struct qdnnPlan *plan, const CUdeviceptr at[PLAN_PLACES], plan_caller by,
                      span spans[PLAN_PLACES])
{
    int n = 0;
    for (int i = 0; i < PLAN_PLACES; i++) {
        uint64_t bytes = i == PLAN_WORKSPACE ? plan->workspace_bytes : plan->bytes[i];
        if (at[i] && bytes)
            spans[n++] = (span){i, plan_place_name(by, i), at[i], bytes};
    }
    return n;
}

/* Codes by which the driver reports that it does not know the memory. */
static bool is_unknown(CUresult result)
{
    enum { INVALID_VALUE = 1, NOT_FOUND = 500 };
    return result == INVALID_VALUE || result == NOT_FOUND;
}

static qdnnStatus_t driver_failed(qdnnHandle_t handle, const span *s, CUresult result, const char *call)
{
    if (!is_unknown(result))
        return handle_failed(handle, result, call, "looking %s up", s->name);
    return qdnn_error(QDNN_STATUS_BAD_PARAM,
                      "%s is 0x%llx, which is not device memory that the driver knows: a host pointer, or "
                      "freed memory; allocate it with qdnnMalloc or cuMemAlloc and copy the data there",
                      s->name, s->at);
}

static qdnnStatus_t check_allocation(qdnnPlan_t plan, const span *s)
{
    const cuda_api *api = plan->handle->context->device.api;
    unsigned type = 0;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult result = api->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, s->at);
    if (result)
        return driver_failed(plan->handle, s, result, "cuPointerGetAttribute");
    if (type == CU_MEMORYTYPE_HOST)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "%s is 0x%llx, which is host memory; copy it to device memory (qdnnMalloc, "
                          "qdnnCopyToDevice) and pass that",
                          s->name, s->at);
    result = api->cuMemGetAddressRange(&base, &bytes, s->at);
    if (result)
        return driver_failed(plan->handle, s, result, "cuMemGetAddressRange");
    uint64_t left = bytes - (s->at - base);
    if (left < s->bytes)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
            "%s is 0x%llx, with %llu bytes to the end of its allocation; %s needs %llu: allocate that many",
            s->name, s->at, (unsigned long long)left, plan->info.operation, (unsigned long long)s->bytes);
    return QDNN_STATUS_SUCCESS;
}

/* A residual may be the sum that is written of it, or y itself: each element is read by the thread that writes it. */
static bool takes_its_place(int result, int residual)
{
    return (result == QDNN_OPERAND_Y || result == QDNN_OPERAND_SUM) && residual == QDNN_OPERAND_RESIDUAL;
}

bool plan_may_coincide(int place, int other)
{
    return takes_its_place(place, other) || takes_its_place(other, place);
}

static bool may_coincide(const span *a, const span *b)
{
    return a->at == b->at && a->bytes == b->bytes && plan_may_coincide(a->place, b->place);
}

static qdnnStatus_t check_apart(const span *a, const span *b)
{
    if (a->at + a->bytes <= b->at || b->at + b->bytes <= a->at || may_coincide(a, b))
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_BAD_PARAM,
        "%s (0x%llx, %llu bytes) and %s (0x%llx, %llu bytes) overlap; give each a buffer of its own", a->name,
        a->at, (unsigned long long)a->bytes, b->name, b->at, (unsigned long long)b->bytes);
}

qdnnStatus_t plan_check_buffers(qdnnPlan_t plan, const CUdeviceptr at[PLAN_PLACES], plan_caller by)
{
    span spans[PLAN_PLACES];
    int n = list_spans(plan, at, by, spans);
    for (int i = 0; i < n; i++)
        CHECK_STATUS(check_allocation(plan, &spans[i]));
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            CHECK_STATUS(check_apart(&spans[i], &spans[k]));
    return QDNN_STATUS_SUCCESS;
}
