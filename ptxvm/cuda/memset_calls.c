/* The fill calls: 8, 16 or 32 bits, one or two dimensions, synchronous or not. */
#include "internal.h"

static CUresult fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
                     size_t height, CUstream handle, bool wait)
{
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = to, .pitch = pitch, .value = value, .elementSize = element, .width = width, .height = height};
    CUstream stream;
    CUcontext context = context_current();
    CUresult result = stream_get(handle, &stream);
    if (!result)
        result = memset_check(context, &set);
    if (result)
        return result;
    cuda_work work = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .context = context, .memset = set};
    return wait ? stream_submit_wait(stream, &work) : stream_submit(stream, &work);
}

CUresult do_cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n)
{
    return fill(to, 0, value, 1, n, 1, NULL, true);
}

CUresult do_cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n)
{
    return fill(to, 0, value, 2, n, 1, NULL, true);
}

CUresult do_cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n)
{
    return fill(to, 0, value, 4, n, 1, NULL, true);
}

CUresult do_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream)
{
    return fill(to, 0, value, 1, n, 1, stream, false);
}

CUresult do_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream)
{
    return fill(to, 0, value, 2, n, 1, stream, false);
}

CUresult do_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream)
{
    return fill(to, 0, value, 4, n, 1, stream, false);
}

CUresult do_cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return fill(to, pitch, value, 1, width, height, NULL, true);
}

CUresult do_cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return fill(to, pitch, value, 2, width, height, NULL, true);
}

CUresult do_cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height)
{
    return fill(to, pitch, value, 4, width, height, NULL, true);
}

CUresult do_cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                              CUstream stream)
{
    return fill(to, pitch, value, 1, width, height, stream, false);
}

CUresult do_cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                               size_t height, CUstream stream)
{
    return fill(to, pitch, value, 2, width, height, stream, false);
}

CUresult do_cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                               CUstream stream)
{
    return fill(to, pitch, value, 4, width, height, stream, false);
}
