/* Contexts: creation and destruction, the stack of each thread, their settings. Primary contexts are in
 * primary.c. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Creation and destruction ---- */

bool context_is(CUcontext context)
{
    return object_is(context, OBJECT_CONTEXT);
}

typedef struct heap_sum {
    const cuda_device *device;
    uint64_t bytes;
} heap_sum;

static void add_heap(void *object, void *user)
{
    heap_sum *sum = user;
    const CUcontext c = object;
    if (c->device == sum->device && c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] <= UINT64_MAX - sum->bytes)
        sum->bytes += c->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
}

/* A device has one heap, as large as those of its contexts together. */
static void set_heap(cuda_device *device)
{
    heap_sum sum = {.device = device};
    object_each(OBJECT_CONTEXT, add_heap, &sum);
    ptxvm_heap_resize(device->vm, sum.bytes);
}

static void set_defaults(CUcontext c)
{
    c->limits[CU_LIMIT_STACK_SIZE] = 1024;
    c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = c->device->heap_bytes;
    c->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    c->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    c->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    c->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
}

CUcontext context_new(cuda_device *device, unsigned flags, bool primary)
{
    CUcontext c = object_new(OBJECT_CONTEXT, sizeof *c);
    if (!c)
        return NULL;
    c->id = object_id(c);
    c->device = device;
    c->flags = flags;
    c->api_version = 3020;
    c->refs = 1;
    c->primary = primary;
    set_defaults(c);
    c->legacy = stream_new(c, CU_STREAM_DEFAULT, 0);
    if (!c->legacy) {
        object_forget(c);
        free(c);
        return NULL;
    }
    c->legacy->legacy = true;
    set_heap(device);
    return c;
}

static void unload_of(void *object, void *user)
{
    CUmodule module = object;
    if (module->context == user)
        module_unload(module);
}

static void destroy_event_of(void *object, void *user)
{
    CUevent event = object;
    if (event->context == user && !event->destroyed) {
        event->destroyed = true;
        event->refs++;
        event_release(event);
    }
}

static void disable_peers(CUcontext c)
{
    unsigned had = c->peers;
    c->peers = 0;
    for (int i = 0; i < cuda.n_devices; i++)
        if (had >> i & 1)
            memory_peer(c->device->ordinal, i, false);
}

void context_destroy(CUcontext c)
{
    if (!c->error)
        context_wait(c);
    queue_drop(c, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    while (c->streams)
        stream_delete(c->streams);
    object_each(OBJECT_EVENT, destroy_event_of, c);
    libraries_forget_context(c);
    object_each(OBJECT_MODULE, unload_of, c);
    disable_peers(c);
    memory_free_context(c);
    object_forget(c);
    set_heap(c->device);
    free(c);
}

CUresult context_take_missed(CUcontext c)
{
    CUresult missed = c->missed;
    c->missed = CUDA_SUCCESS;
    return missed;
}

void context_fail(CUcontext c, CUresult error)
{
    if (c->error)
        return;
    c->error = error;
    queue_drop(c, error);
}

/* ---- The stack of a thread ---- */

CUcontext context_current(void)
{
    const cuda_thread *t = cuda_self();
    if (!t->depth)
        return NULL;
    CUcontext c = t->stack[t->depth - 1].context;
    return context_is(c) && c->id == t->stack[t->depth - 1].id ? c : NULL;
}

static CUresult push(CUcontext context)
{
    cuda_thread *t = cuda_self();
    if (t->depth == CONTEXT_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    t->stack[t->depth].context = context;
    t->stack[t->depth++].id = context ? context->id : 0;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device)
{
    if (!context || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_device *d = device_at(device);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = context_new(d, flags, false);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = push(c);
    if (result)
        context_destroy(c);
    else
        *context = c;
    return result;
}

CUresult do_cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    return create(context, flags, device);
}

CUresult do_cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int n, unsigned flags,
                           CUdevice device)
{
    if (n < 0 || (n && !affinity))
        return CUDA_ERROR_INVALID_VALUE;
    return n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(context, flags, device);
}

CUresult do_cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
    if (params && params->numExecAffinityParams)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (params && params->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device);
}

CUresult do_cuCtxDestroy_v2(CUcontext context)
{
    if (!context_is(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    cuda_thread *t = cuda_self();
    if (context_current() == context)
        t->depth--;
    context_destroy(context);
    return CUDA_SUCCESS;
}

CUresult do_cuCtxPushCurrent_v2(CUcontext context)
{
    return context_is(context) ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult do_cuCtxPopCurrent_v2(CUcontext *context)
{
    cuda_thread *t = cuda_self();
    if (!t->depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = t->stack[t->depth - 1].context;
    t->depth--;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetCurrent(CUcontext context)
{
    cuda_thread *t = cuda_self();
    if (context && !context_is(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (t->depth)
        t->depth--;
    return context ? push(context) : CUDA_SUCCESS;
}

CUresult do_cuCtxGetCurrent(CUcontext *context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = context_current();
    return CUDA_SUCCESS;
}

CUresult do_cuCtxAttach(CUcontext *context, unsigned flags)
{
    if (!context || flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext c = context_current();
    if (!c || c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    c->refs++;
    *context = c;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxDetach(CUcontext context)
{
    if (!context_is(context) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    return --context->refs ? CUDA_SUCCESS : do_cuCtxDestroy_v2(context);
}

/* ---- Settings ---- */

static CUcontext given_or_current(CUcontext context)
{
    return context ? (context_is(context) ? context : NULL) : context_current();
}

CUresult do_cuCtxGetDevice(CUdevice *device)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context_current()->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    CUcontext c = given_or_current(context);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = c->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetId(CUcontext context, unsigned long long *id)
{
    CUcontext c = given_or_current(context);
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    if (!c)
        return context ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    *id = c->id;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    CUcontext c = given_or_current(context);
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = c->api_version;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetFlags(unsigned *flags)
{
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context_current()->flags | CU_CTX_MAP_HOST;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetFlags(unsigned flags)
{
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    context_current()->flags = flags;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetLimit(size_t *value, CUlimit limit)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if ((int)limit < 0 || limit >= CU_LIMIT_SHMEM_SIZE)
        return (int)limit < 0 || limit >= CU_LIMIT_MAX ? CUDA_ERROR_INVALID_VALUE
                                                       : CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context_current()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUcontext c = context_current();
    if ((int)limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit >= CU_LIMIT_SHMEM_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_STACK_SIZE && value > (512 << 10))
        return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
        size_t most = (size_t)device_attribute(c->device, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
        value = value < most ? value : most;
    }
    c->limits[limit] = value;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        set_heap(c->device);
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetCacheConfig(CUfunc_cache *config)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context_current()->cache;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetCacheConfig(CUfunc_cache config)
{
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    context_current()->cache = config;
    return CUDA_SUCCESS;
}

/* Banks are four bytes wide on every SM supported here: other settings are accepted and have no effect. */
CUresult do_cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                        : CUDA_SUCCESS;
}

CUresult do_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult do_cuCtxResetPersistingL2Cache(void)
{
    return CUDA_SUCCESS;
}

CUresult do_cuCtxGetExecAffinity(CUexecAffinityParam *affinity, CUexecAffinityType type)
{
    if (!affinity || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

/* ---- Waiting and peers ---- */

CUresult do_cuCtxSynchronize(void)
{
    return do_cuCtxSynchronize_v2(context_current());
}

CUresult do_cuCtxSynchronize_v2(CUcontext context)
{
    CUcontext c = given_or_current(context);
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = c->error ? c->error : context_wait(c);
    return result ? result : context_take_missed(c);
}

CUresult do_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CUcontext c = context_current();
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_is(peer) || peer == c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (peer->device == c->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    unsigned bit = 1u << peer->device->ordinal;
    if (c->peers & bit)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    CUresult result = memory_peer(c->device->ordinal, peer->device->ordinal, true);
    if (!result)
        c->peers |= bit;
    return result;
}

CUresult do_cuCtxDisablePeerAccess(CUcontext peer)
{
    CUcontext c = context_current();
    if (!context_is(peer))
        return CUDA_ERROR_INVALID_CONTEXT;
    unsigned bit = 1u << peer->device->ordinal;
    if (!(c->peers & bit))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    c->peers &= ~bit;
    return memory_peer(c->device->ordinal, peer->device->ordinal, false);
}
