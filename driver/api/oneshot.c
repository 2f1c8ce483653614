/* One-shot calls: a plan that the handle caches, and an execute. */
#include "driver/api/oneshot.h"

#include <assert.h>
#include <string.h>

#include "driver/base/alloc.h"

enum { KEPT_MAX = 64 };

/* A cached plan and its key. */
struct kept {
    struct kept *next;
    qdnnPlan_t plan;
    size_t size;
    unsigned char key[];
};

/* ---- Keys ---- */

void key_add(oneshot_key *key, const void *data, size_t size)
{
    assert(size <= ONESHOT_KEY_MAX - key->size);
    memcpy(key->bytes + key->size, data, size);
    key->size += size;
}

void key_add_tensor(oneshot_key *key, const struct qdnnTensorDescriptor *tensor)
{
    key_add(key, &tensor->type, sizeof tensor->type);
    key_add(key, &tensor->rank, sizeof tensor->rank);
    key_add(key, tensor->dims, sizeof tensor->dims);
    key_add(key, tensor->strides, sizeof tensor->strides);
}

void key_add_quant(oneshot_key *key, const struct qdnnQuantDescriptor *quant)
{
    const char given = quant != NULL;
    key_add(key, &given, sizeof given);
    if (!quant)
        return;
    key_add(key, quant->values, sizeof quant->values);
    key_add(key, &quant->floor, sizeof quant->floor);
}

/* ---- The plans of a handle ---- */

static bool is_for(const struct kept *k, const oneshot_key *key)
{
    return k->size == key->size && memcmp(k->key, key->bytes, key->size) == 0;
}

/* The pointer to a cached plan; if there is none, the pointer to the last one. */
static struct kept **find(qdnnHandle_t handle, const oneshot_key *key, bool *found)
{
    struct kept **at = &handle->kept;
    *found = false;
    for (; *at; at = &(*at)->next) {
        *found = is_for(*at, key);
        if (*found || !(*at)->next)
            break;
    }
    return at;
}

static void move_to_front(qdnnHandle_t handle, struct kept **at)
{
    struct kept *k = *at;
    *at = k->next;
    k->next = handle->kept;
    handle->kept = k;
}

static void drop(qdnnHandle_t handle, struct kept **at)
{
    struct kept *k = *at;
    *at = k->next;
    plan_free(k->plan);
    alloc_free(k);
    handle->n_kept--;
}

static qdnnStatus_t keep(qdnnHandle_t handle, const oneshot_key *key, oneshot_maker make,
                         const void *arguments)
{
    struct kept *k = alloc_new(sizeof *k + key->size);
    if (!k)
        return OUT_OF_MEMORY();
    qdnnStatus_t status = make(handle, arguments, &k->plan);
    if (status != QDNN_STATUS_SUCCESS) {
        alloc_free(k);
        return status;
    }
    k->size = key->size;
    memcpy(k->key, key->bytes, key->size);
    k->next = handle->kept;
    handle->kept = k;
    handle->n_kept++;
    return QDNN_STATUS_SUCCESS;
}

/* If there are too many, the least recently used one is dropped. */
qdnnStatus_t oneshot_plan(qdnnHandle_t handle, const oneshot_key *key, oneshot_maker make,
                          const void *arguments, qdnnPlan_t *plan)
{
    bool found;
    struct kept **at = find(handle, key, &found);
    if (found) {
        move_to_front(handle, at);
    } else {
        if (handle->n_kept == KEPT_MAX)
            drop(handle, at);
        CHECK_STATUS(keep(handle, key, make, arguments));
    }
    *plan = handle->kept->plan;
    return QDNN_STATUS_SUCCESS;
}

/* ---- The workspace ---- */

static CUresult free_workspace(qdnnHandle_t handle)
{
    CUresult result = handle->workspace ? handle->context->device.api->cuMemFree(handle->workspace) : 0;
    if (result)
        return result; /* it still exists; the next call tries again */
    handle->workspace = 0;
    handle->workspace_bytes = 0;
    return 0;
}

/* Makes sure that the workspace is large enough and may be used on the stream. Work on another stream may
 * still be using the old one: cuMemFree waits for it. */
static qdnnStatus_t need_workspace(qdnnHandle_t handle, size_t bytes)
{
    if (bytes == 0 || (bytes <= handle->workspace_bytes && handle->workspace_stream == handle->stream))
        return QDNN_STATUS_SUCCESS;
    bool pushed;
    const char *call = "cuMemFree";
    CHECK_STATUS(handle_enter(handle, &pushed));
    CUdeviceptr made = 0;
    CUresult result = free_workspace(handle);
    if (!result) {
        call = "cuMemAlloc";
        result = handle->context->device.api->cuMemAlloc(&made, bytes);
    }
    handle_leave(handle, pushed);
    if (result)
        return handle_failed(handle, result, call, "a workspace of %zu bytes", bytes);
    handle->workspace = made;
    handle->workspace_bytes = bytes;
    handle->workspace_stream = handle->stream;
    return QDNN_STATUS_SUCCESS;
}

void handle_forget(qdnnHandle_t handle)
{
    bool pushed;
    while (handle->kept)
        drop(handle, &handle->kept);
    if (handle->workspace && !context_enter(handle->context, &pushed)) {
        if (free_workspace(handle))
            free_workspace(handle); /* a driver may have reported an earlier error instead of freeing */
        context_leave(handle->context, pushed);
    }
}

/* ---- The calls ---- */

/* What a call computes; `name` is that of the tensor descriptor in the public function. */
typedef struct one_shot {
    kernel_operation operation;
    const char *name;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
} one_shot;

static qdnnStatus_t make_plan(qdnnHandle_t handle, const void *arguments, qdnnPlan_t *plan)
{
    const one_shot *call = arguments;
    request r;
    bool pushed;
    CHECK_STATUS(request_make(call->operation, call->tensor, call->quant, &r));
    CHECK_STATUS(handle_enter(handle, &pushed));
    qdnnStatus_t status = plan_make(handle, &r, plan);
    handle_leave(handle, pushed);
    return status;
}

static qdnnStatus_t find_plan(qdnnHandle_t handle, const one_shot *call, qdnnPlan_t *plan)
{
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR_AS(call->name, call->tensor);
    CHECK_NOT_NULL_AS("quant", call->quant);
    oneshot_key key = {0};
    key_add(&key, &call->operation, sizeof call->operation);
    key_add_tensor(&key, call->tensor);
    key_add_quant(&key, call->quant);
    return oneshot_plan(handle, &key, make_plan, call, plan);
}

qdnnStatus_t oneshot_run(qdnnPlan_t plan, const qdnnBinding_t *bindings, int count, plan_caller by)
{
    qdnnHandle_t handle = plan->handle;
    CHECK_STATUS(need_workspace(handle, plan->workspace_bytes));
    return plan_execute(plan, plan->rows, bindings, count, (void *)(uintptr_t)handle->workspace,
                        handle->workspace_bytes, by);
}

/* With an argument for each operand: null pointers for operands that the plan lacks are skipped. */
static qdnnStatus_t run_arguments(qdnnHandle_t handle, one_shot call, const qdnnBinding_t *arguments,
                                  int count)
{
    enum { ARGUMENTS_MAX = 4 };
    qdnnPlan_t plan;
    qdnnBinding_t bound[ARGUMENTS_MAX];
    int n = 0;
    CHECK_STATUS(find_plan(handle, &call, &plan));
    for (int i = 0; i < count; i++)
        if (arguments[i].pointer || plan->operands >> arguments[i].operand & 1)
            bound[n++] = arguments[i];
    return oneshot_run(plan, bound, n, BY_ARGUMENTS);
}

static qdnnStatus_t run_bindings(qdnnHandle_t handle, one_shot call, const qdnnBinding_t *bindings, int count)
{
    qdnnPlan_t plan;
    CHECK_STATUS(find_plan(handle, &call, &plan));
    CHECK_STATUS(plan_check_bindings(plan, handle, bindings, count));
    return oneshot_run(plan, bindings, count, BY_BINDINGS);
}

qdnnStatus_t qdnnComputeScales(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc, const void *x,
                               qdnnQuantDescriptor_t quant, void *scale, void *zero)
{
    CALL_BEGIN_WITH(handle, xDesc, x, quant, scale, zero);
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_SCALE, scale, 0}, {QDNN_OPERAND_ZERO, zero, 0}};
    return run_arguments(handle, (one_shot){KERNEL_SCALE, "xDesc", xDesc, quant}, bindings, 3);
}

qdnnStatus_t qdnnQuantize(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc, const void *x,
                          qdnnQuantDescriptor_t quant, const void *scale, const void *zero, void *codes)
{
    CALL_BEGIN_WITH(handle, xDesc, x, quant, scale, zero, codes);
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, x, 0},
                                      {QDNN_OPERAND_SCALE, scale, 0},
                                      {QDNN_OPERAND_CODES, codes, 0},
                                      {QDNN_OPERAND_ZERO, zero, 0}};
    return run_arguments(handle, (one_shot){KERNEL_QUANTIZE, "xDesc", xDesc, quant}, bindings, 4);
}

qdnnStatus_t qdnnDequantize(qdnnHandle_t handle, qdnnQuantDescriptor_t quant, const void *codes,
                            const void *scale, const void *zero, qdnnTensorDescriptor_t yDesc, void *y)
{
    CALL_BEGIN_WITH(handle, quant, codes, scale, zero, yDesc, y);
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_CODES, codes, 0},
                                      {QDNN_OPERAND_SCALE, scale, 0},
                                      {QDNN_OPERAND_Y, y, 0},
                                      {QDNN_OPERAND_ZERO, zero, 0}};
    return run_arguments(handle, (one_shot){KERNEL_DEQUANTIZE, "yDesc", yDesc, quant}, bindings, 4);
}

qdnnStatus_t qdnnComputeScalesWith(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc,
                                   qdnnQuantDescriptor_t quant, const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, xDesc, quant, bindings, count);
    return run_bindings(handle, (one_shot){KERNEL_SCALE, "xDesc", xDesc, quant}, bindings, count);
}

qdnnStatus_t qdnnQuantizeWith(qdnnHandle_t handle, qdnnTensorDescriptor_t xDesc, qdnnQuantDescriptor_t quant,
                              const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, xDesc, quant, bindings, count);
    return run_bindings(handle, (one_shot){KERNEL_QUANTIZE, "xDesc", xDesc, quant}, bindings, count);
}

qdnnStatus_t qdnnDequantizeWith(qdnnHandle_t handle, qdnnTensorDescriptor_t yDesc,
                                qdnnQuantDescriptor_t quant, const qdnnBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(handle, yDesc, quant, bindings, count);
    return run_bindings(handle, (one_shot){KERNEL_DEQUANTIZE, "yDesc", yDesc, quant}, bindings, count);
}
