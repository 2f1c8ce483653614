/* The primary context of a device, and the shutdown of the driver. */
#include "internal.h"

#include <stdlib.h>

CUresult do_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    cuda_device *d = device_at(device);
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!d->primary)
        d->primary = context_new(d, d->primary_flags, true);
    if (!d->primary)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->primary_refs++;
    *context = d->primary;
    return CUDA_SUCCESS;
}

static void drop(cuda_device *d)
{
    CUcontext c = d->primary;
    d->primary = NULL;
    d->primary_refs = 0;
    if (c)
        context_destroy(c);
}

CUresult do_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    cuda_device *d = device_at(device);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!d->primary_refs)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--d->primary_refs == 0)
        drop(d);
    return CUDA_SUCCESS;
}

CUresult do_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    cuda_device *d = device_at(device);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    drop(d);
    return CUDA_SUCCESS;
}

CUresult do_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    cuda_device *d = device_at(device);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    d->primary_flags = flags;
    if (d->primary)
        d->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult do_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    cuda_device *d = device_at(device);
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = d->primary_flags;
    *active = d->primary != NULL;
    return CUDA_SUCCESS;
}

/* ---- Shutdown ---- */

static void destroy_context(void *object, void *user)
{
    (void)user;
    CUcontext c = object;
    if (!c->error)
        c->error = CUDA_ERROR_DEINITIALIZED; /* do not wait for anything */
    context_destroy(c);
}

static void destroy_exec(void *object, void *user)
{
    (void)user;
    do_cuGraphExecDestroy(object);
}

static void destroy_graph(void *object, void *user)
{
    (void)user;
    CUgraph graph = object;
    if (!graph->parent && object_is(graph, OBJECT_GRAPH))
        graph_delete(graph);
}

static void unload_library(void *object, void *user)
{
    (void)user;
    do_cuLibraryUnload(object);
}

static void destroy_link(void *object, void *user)
{
    (void)user;
    do_cuLinkDestroy(object);
}

static void free_object(void *object, void *user)
{
    (void)user;
    object_forget(object);
    free(object);
}

void ptxvm_cuda_shutdown(void)
{
    cuda_lock();
    if (cuda.initialised) {
        queue_quiet();
        captures_clear();
        object_each(OBJECT_EXEC, destroy_exec, NULL);
        object_each(OBJECT_GRAPH, destroy_graph, NULL);
        object_each(OBJECT_CONTEXT, destroy_context, NULL);
        object_each(OBJECT_LIBRARY, unload_library, NULL);
        object_each(OBJECT_LINK, destroy_link, NULL);
        object_each(OBJECT_EVENT, free_object, NULL);
        object_each(OBJECT_POOL, free_object, NULL);
        object_each(OBJECT_USER, free_object, NULL);
        memory_clear();
        objects_clear();
        devices_destroy();
    }
    settings_clear();
    faults_forget();
    counters_close();
    cuda_log_close();
    cuda_unlock();
}
