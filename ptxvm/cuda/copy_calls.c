/* The copy calls. Each describes its copy in the most general form; a call without Async waits for it to
 * finish. */
#include "internal.h"

static CUresult submit(const CUDA_MEMCPY3D_PEER *copy, CUstream handle, bool wait)
{
    CUstream stream;
    CUcontext context = context_current();
    CUresult result = stream_get(handle, &stream);
    if (!result)
        result = copy_check(context, copy);
    if (result)
        return result;
    cuda_work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .context = context, .copy = *copy};
    return wait ? stream_submit_wait(stream, &work) : stream_submit(stream, &work);
}

static CUDA_MEMCPY3D_PEER line(CUmemorytype to_type, CUdeviceptr to, CUmemorytype from_type, CUdeviceptr from,
                               size_t bytes)
{
    return (CUDA_MEMCPY3D_PEER){.dstMemoryType = to_type,
                                .dstDevice = to,
                                .dstHost = (void *)(uintptr_t)to,
                                .srcMemoryType = from_type,
                                .srcDevice = from,
                                .srcHost = (const void *)(uintptr_t)from,
                                .WidthInBytes = bytes,
                                .Height = 1,
                                .Depth = 1};
}

static CUresult copy_line(CUmemorytype to_type, CUdeviceptr to, CUmemorytype from_type, CUdeviceptr from,
                          size_t bytes, CUstream stream, bool wait)
{
    CUDA_MEMCPY3D_PEER c = line(to_type, to, from_type, from, bytes);
    return submit(&c, stream, wait);
}

static CUdeviceptr address_of(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

#define HOST    CU_MEMORYTYPE_HOST
#define DEVICE  CU_MEMORYTYPE_DEVICE
#define UNIFIED CU_MEMORYTYPE_UNIFIED

/* ---- One dimension ---- */

CUresult do_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_line(UNIFIED, to, UNIFIED, from, bytes, NULL, true);
}

CUresult do_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_line(UNIFIED, to, UNIFIED, from, bytes, stream, false);
}

CUresult do_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_line(DEVICE, to, HOST, address_of(from), bytes, NULL, true);
}

CUresult do_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_line(DEVICE, to, HOST, address_of(from), bytes, stream, false);
}

CUresult do_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy_line(HOST, address_of(to), DEVICE, from, bytes, NULL, true);
}

CUresult do_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_line(HOST, address_of(to), DEVICE, from, bytes, stream, false);
}

CUresult do_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_line(DEVICE, to, DEVICE, from, bytes, NULL, true);
}

CUresult do_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_line(DEVICE, to, DEVICE, from, bytes, stream, false);
}

/* ---- Between devices ---- */

static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                          size_t bytes, CUstream stream, bool wait)
{
    if (!context_is(to_context) || !context_is(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_line(DEVICE, to, DEVICE, from, bytes, stream, wait);
}

CUresult do_cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                         size_t bytes)
{
    return copy_peer(to, to_context, from, from_context, bytes, NULL, true);
}

CUresult do_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t bytes, CUstream stream)
{
    return copy_peer(to, to_context, from, from_context, bytes, stream, false);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream, bool wait)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_is(c->srcContext) || !context_is(c->dstContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    return submit(c, stream, wait);
}

CUresult do_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *c)
{
    return copy_3d_peer(c, NULL, true);
}

CUresult do_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream stream)
{
    return copy_3d_peer(c, stream, false);
}

/* ---- Two and three dimensions ---- */

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool wait)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D_PEER all = {.srcXInBytes = c->srcXInBytes,
                              .srcY = c->srcY,
                              .srcMemoryType = c->srcMemoryType,
                              .srcHost = c->srcHost,
                              .srcDevice = c->srcDevice,
                              .srcArray = c->srcArray,
                              .srcPitch = c->srcPitch,
                              .dstXInBytes = c->dstXInBytes,
                              .dstY = c->dstY,
                              .dstMemoryType = c->dstMemoryType,
                              .dstHost = c->dstHost,
                              .dstDevice = c->dstDevice,
                              .dstArray = c->dstArray,
                              .dstPitch = c->dstPitch,
                              .WidthInBytes = c->WidthInBytes,
                              .Height = c->Height,
                              .Depth = 1};
    return submit(&all, stream, wait);
}

CUresult do_cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
    return copy_2d(c, NULL, true);
}

CUresult do_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
    return copy_2d(c, stream, false);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool wait)
{
    CUDA_MEMCPY3D_PEER all;
    if (!c || c->srcLOD || c->dstLOD)
        return CUDA_ERROR_INVALID_VALUE;
    _Static_assert(sizeof all == sizeof *c, "the two descriptions of a copy have one layout");
    __builtin_memcpy(&all, c, sizeof all);
    all.srcContext = all.dstContext = NULL;
    return submit(&all, stream, wait);
}

CUresult do_cuMemcpy3D_v2(const CUDA_MEMCPY3D *c)
{
    return copy_3d(c, NULL, true);
}

CUresult do_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream)
{
    return copy_3d(c, stream, false);
}

/* ---- Many at once ---- */

static CUresult copy_batch(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n,
                           CUmemcpyAttributes *attributes, size_t *indices, size_t n_attributes,
                           size_t *failed, CUstream stream)
{
    if (failed)
        *failed = SIZE_MAX;
    if (!to || !from || !bytes || !n || !attributes || !indices || !n_attributes || n_attributes > n ||
        indices[0])
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        CUresult result = copy_line(UNIFIED, to[i], UNIFIED, from[i], bytes[i], stream, false);
        if (result) {
            if (failed)
                *failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult do_cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n,
                               CUmemcpyAttributes *attributes, size_t *indices, size_t n_attributes,
                               size_t *failed, CUstream stream)
{
    return copy_batch(to, from, bytes, n, attributes, indices, n_attributes, failed, stream);
}

CUresult do_cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n,
                                  CUmemcpyAttributes *attributes, size_t *indices, size_t n_attributes,
                                  CUstream stream)
{
    return copy_batch(to, from, bytes, n, attributes, indices, n_attributes, NULL, stream);
}
