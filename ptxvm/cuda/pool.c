/* Memory pools, and stream-ordered allocation. Memory is available as soon as it is requested; it is freed
 * when the stream reaches the cuMemFreeAsync. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

CUmemoryPool pool_new(int device)
{
    CUmemoryPool p = object_new(OBJECT_POOL, sizeof *p);
    if (!p)
        return NULL;
    p->device = device;
    p->props = (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    return p;
}

CUresult pool_alloc(CUmemoryPool pool, CUcontext context, size_t bytes, CUdeviceptr *address)
{
    if (pool->props.maxSize && bytes > pool->props.maxSize - pool->used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr made = 0;
    CUresult result = memory_new_in_pool(context, pool, bytes, &made);
    if (result)
        return result;
    pool->used += bytes;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    *address = made;
    return CUDA_SUCCESS;
}

CUresult pool_free(CUdeviceptr address)
{
    const cuda_memory *m = memory_find(address);
    if (!m || m->kind != MEMORY_POOL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (m->pool)
        m->pool->used -= m->bytes;
    return memory_free(address);
}

/* ---- Pools ---- */

CUresult do_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!device_at(props->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    CUmemoryPool p = pool_new(props->location.id);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->props = *props;
    *pool = p;
    return CUDA_SUCCESS;
}

static bool is_pool(CUmemoryPool pool)
{
    return object_is(pool, OBJECT_POOL);
}

CUresult do_cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!is_pool(pool))
        return CUDA_ERROR_INVALID_VALUE;
    cuda_device *d = &cuda.devices[pool->device];
    if (pool == d->default_pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->pool == pool)
        d->pool = d->default_pool;
    memory_forget_pool(pool);
    object_forget(pool);
    free(pool);
    return CUDA_SUCCESS;
}

CUresult do_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    (void)keep; /* no memory is held back */
    return is_pool(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (!is_pool(pool) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - 1] = *(int *)value != 0;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(cuuint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value)
            return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult do_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (!is_pool(pool) || !value || (int)attribute < 1 || attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        *(int *)value = pool->reuse[attribute - 1];
        return CUDA_SUCCESS;
    }
    bool high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    *(cuuint64_t *)value = attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? pool->threshold
                           : high                                         ? pool->used_high
                                                                          : pool->used;
    return CUDA_SUCCESS;
}

CUresult do_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t n)
{
    if (!is_pool(pool) || (n && !map))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (!device_at(map[i].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        if (map[i].location.id == pool->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < n; i++)
        memory_pool_access(pool, map[i].location.id, (uint8_t)map[i].flags);
    return CUDA_SUCCESS;
}

CUresult do_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    if (!flags || !location || !is_pool(pool) || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(location->id))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : pool->access[location->id];
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = device_at(device)->default_pool;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = device_at(device)->pool;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    if (!device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!is_pool(pool) || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    device_at(device)->pool = pool;
    return CUDA_SUCCESS;
}

/* ---- Stream-ordered allocation ---- */

static CUresult alloc_async(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream s)
{
    cuda_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .context = s->context};
    if (!bytes) { /* nothing to allocate, and cuMemFreeAsync accepts a null address */
        *address = 0;
        return CUDA_SUCCESS;
    }
    CUresult result = pool_alloc(pool, s->context, bytes, &work.memory.address);
    if (result)
        return result;
    work.memory.bytes = bytes;
    work.memory.props = pool->props;
    CUdeviceptr made = work.memory.address;
    if (s->capture) {
        work.memory.id = memory_find(made)->id;
        memory_find(made)->graph_refs = 1;
    }
    bool captured = s->capture;
    result = stream_submit(s, &work);
    if (result && !captured)
        pool_free(made);
    if (!result)
        *address = made;
    return result;
}

CUresult do_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream handle)
{
    CUstream s;
    if (!address || !is_pool(pool))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    return result ? result : alloc_async(address, bytes, pool, s);
}

CUresult do_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream handle)
{
    CUstream s;
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    return result ? result : alloc_async(address, bytes, s->context->device->pool, s);
}

CUresult do_cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
    CUstream s;
    CUresult result = stream_get(handle, &s);
    if (result || !address)
        return result;
    cuda_memory *m = memory_find(address);
    if (!m || m->address != address || m->freed || (m->kind != MEMORY_POOL && m->kind != MEMORY_DEVICE))
        return CUDA_ERROR_INVALID_VALUE;
    if (m->kind == MEMORY_DEVICE) { /* memory from cuMemAlloc is accepted as well */
        m->kind = MEMORY_POOL;
        m->pool = NULL;
    }
    m->freed = !s->capture && !m->graph_refs;
    cuda_work work = {
        .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .context = s->context, .memory = {.address = address}};
    result = stream_submit(s, &work);
    m = memory_find(address);
    if (result && m)
        m->freed = false;
    return result;
}

/* ---- Memory held by graphs: it is counted with its pool ---- */

static CUresult check_graph_attribute(CUdevice device, CUgraphMem_attribute attribute, const void *value)
{
    if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    return device_at(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult do_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult result = check_graph_attribute(device, attribute, value);
    if (result)
        return result;
    cuda_device *d = device_at(device);
    uint64_t now = memory_of_graphs(device);
    d->graph_high = now > d->graph_high ? now : d->graph_high;
    bool high =
        attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    *(cuuint64_t *)value = high ? d->graph_high : now;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult result = check_graph_attribute(device, attribute, value);
    if (result)
        return result;
    bool high =
        attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!high || *(cuuint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    device_at(device)->graph_high = 0;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGraphMemTrim(CUdevice device)
{
    return device_at(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
