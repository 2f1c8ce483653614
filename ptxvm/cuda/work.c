/* One piece of work, of a queue or of a graph's node: copying, clearing, testing whether it may continue,
 * running. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Copying and clearing ---- */

static CUresult copy_kernel(cuda_work *to, const cuda_work *from)
{
    size_t n = 0;
    while (from->kernel.pointers && from->kernel.pointers[n])
        n++;
    to->kernel.params = from->kernel.param_bytes ? malloc(from->kernel.param_bytes) : NULL;
    to->kernel.pointers = from->kernel.pointers ? malloc((n + 1) * sizeof(void *)) : NULL;
    if ((from->kernel.param_bytes && !to->kernel.params) || (from->kernel.pointers && !to->kernel.pointers)) {
        free(to->kernel.params);
        free(to->kernel.pointers);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (to->kernel.params)
        memcpy(to->kernel.params, from->kernel.params, from->kernel.param_bytes);
    for (size_t i = 0; i < n; i++)
        to->kernel.pointers[i] =
            to->kernel.params + ((uint8_t *)from->kernel.pointers[i] - from->kernel.params);
    if (to->kernel.pointers)
        to->kernel.pointers[n] = NULL;
    return CUDA_SUCCESS;
}

CUresult work_copy(cuda_work *to, const cuda_work *from)
{
    cuda_work copy = *from;
    CUresult result = CUDA_SUCCESS;
    if (from->type == CU_GRAPH_NODE_TYPE_KERNEL)
        result = copy_kernel(&copy, from);
    else if (from->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
        size_t bytes = from->batch.count * sizeof *from->batch.ops;
        copy.batch.ops = malloc(bytes + 1);
        if (!copy.batch.ops)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(copy.batch.ops, from->batch.ops, bytes);
        copy.batch.next = 0;
    } else if (from->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        copy.child = graph_clone(from->child);
        if (!copy.child)
            return CUDA_ERROR_OUT_OF_MEMORY;
    } else if (from->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT || from->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        event_retain(from->event.event);
    if (from->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        memory_graph_ref(from->memory.address, from->memory.id, 1);
    if (!result)
        *to = copy;
    return result;
}

void work_clear(cuda_work *work)
{
    if (work->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        free(work->kernel.params);
        free(work->kernel.pointers);
    } else if (work->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        free(work->batch.ops);
    else if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        if (work->child)
            graph_delete(work->child);
    } else if (work->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT || work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        event_release(work->event.event);
    else if (work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        memory_graph_ref(work->memory.address, work->memory.id, -1);
    else if (work->type == WORK_HOLD)
        user_objects_release(work->hold.users, work->hold.n);
    memset(work, 0, sizeof *work);
    work->type = CU_GRAPH_NODE_TYPE_EMPTY;
}

/* ---- Values in memory ---- */

/* A value that another host thread may be writing at this moment. */
static bool load_value(CUcontext context, CUdeviceptr address, bool wide, uint64_t *value)
{
    int device;
    ptxvm *vm = memory_is_device(address, &device) ? cuda.devices[device].vm : context->device->vm;
    const void *host = ptxvm_host(vm, address, wide ? 8 : 4);
    if (!host)
        return false;
    *value = wide ? __atomic_load_n((const uint64_t *)host, __ATOMIC_ACQUIRE)
                  : __atomic_load_n((const uint32_t *)host, __ATOMIC_ACQUIRE);
    return true;
}

static bool store_value(CUcontext context, CUdeviceptr address, bool wide, uint64_t value)
{
    int device;
    ptxvm *vm = memory_is_device(address, &device) ? cuda.devices[device].vm : context->device->vm;
    void *host = ptxvm_host(vm, address, wide ? 8 : 4);
    if (!host)
        return false;
    if (wide)
        __atomic_store_n((uint64_t *)host, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)host, (uint32_t)value, __ATOMIC_RELEASE);
    return true;
}

static bool is_wide(const CUstreamBatchMemOpParams *op)
{
    return op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
           op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static bool is_wait(const CUstreamBatchMemOpParams *op)
{
    return op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_satisfied(CUcontext context, const CUstreamBatchMemOpParams *op)
{
    uint64_t now, want = is_wide(op) ? op->waitValue.value64 : op->waitValue.value;
    if (!load_value(context, op->waitValue.address, is_wide(op), &now))
        return true; /* running it will report the fault */
    switch (op->waitValue.flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic, because counters wrap */
        return is_wide(op) ? (int64_t)(now - want) >= 0 : (int32_t)((uint32_t)now - (uint32_t)want) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == want;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & want) != 0;
    default:
        return is_wide(op) ? ~(now | want) != 0 : (uint32_t) ~(now | want) != 0;
    }
}

static CUresult run_value(CUcontext context, const CUstreamBatchMemOpParams *op)
{
    uint64_t unused;
    bool ok = true;
    if (op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
        ok = store_value(context, op->writeValue.address, false, op->writeValue.value);
    else if (op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
        ok = store_value(context, op->writeValue.address, true, op->writeValue.value64);
    else if (is_wait(op))
        ok = load_value(context, op->waitValue.address, is_wide(op), &unused);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* Runs the ops of a batch in order, as far as the waits among them allow. */
static CUresult run_batch(cuda_work *work)
{
    CUresult result = CUDA_SUCCESS;
    while (work->batch.next < work->batch.count && !result) {
        const CUstreamBatchMemOpParams *op = &work->batch.ops[work->batch.next];
        if (is_wait(op) && !is_satisfied(work->context, op))
            break;
        result = run_value(work->context, op);
        work->batch.next++;
    }
    return result;
}

/* ---- Run ---- */

/* Memory of a graph is kept for its next launch. */
static CUresult free_memory(CUdeviceptr address)
{
    const cuda_memory *m = memory_find(address);
    return m && m->graph_refs ? CUDA_SUCCESS : pool_free(address);
}

bool work_ready(cuda_work *work)
{
    if (work->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        return work->event.event->done >= work->event.record;
    if (work->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        return true;
    return run_batch(work) || work->batch.next == work->batch.count;
}

CUresult work_run(cuda_work *work)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return launch_run(work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_run(work->context, &work->copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return memset_run(work->context, &work->memset);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        event_complete(work->event.event, work->event.record);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return free_memory(work->memory.address);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return run_batch(work);
    default: /* completed waits, empty nodes, allocations (made when they were queued) */
        return CUDA_SUCCESS;
    }
}
