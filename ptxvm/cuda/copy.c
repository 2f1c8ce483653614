/* Copies and fills of linear memory: moving the bytes. The calls are in copy_calls.c and memset_calls.c. */
#include "internal.h"

#include <string.h>

static bool is_const(CUdeviceptr address)
{
    return address >= CUDA_CONST_BASE && address < CUDA_CONST_END;
}

/* The vm that contains a device address; null: it is a host address. */
static ptxvm *vm_of(CUcontext context, CUdeviceptr address)
{
    int device;
    if (memory_is_device(address, &device))
        return cuda.devices[device].vm;
    /* A variable in the .const space, unless the host has memory there. */
    if (is_const(address) && ptxvm_holds(context->device->vm, address, 1))
        return context->device->vm;
    return NULL;
}

bool copy_reaches(CUcontext context, CUdeviceptr address, size_t bytes)
{
    ptxvm *vm = vm_of(context, address);
    if (vm)
        return bytes == 0 || ptxvm_holds(vm, address, bytes);
    const cuda_memory *m = memory_find(address);
    return m && bytes <= m->bytes - (address - m->address);
}

CUresult copy_bytes(CUcontext context, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    ptxvm *to_vm = vm_of(context, to), *from_vm = vm_of(context, from);
    ptxvm_status status = PTXVM_OK;
    if (to_vm && from_vm)
        status = ptxvm_copy(to_vm, to, from_vm, from, bytes);
    else if (to_vm)
        status = ptxvm_write(to_vm, to, (const void *)(uintptr_t)from, bytes);
    else if (from_vm)
        status = ptxvm_read(from_vm, (void *)(uintptr_t)to, from, bytes);
    else if (bytes)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return status ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

/* ---- Copies in three dimensions ---- */

typedef struct side {
    CUdeviceptr base; /* of the first byte that is copied */
    size_t pitch, slice;
    bool device; /* must be memory that a device can access */
    CUresult error;
} side;

static bool add_product(CUdeviceptr *sum, size_t a, size_t b)
{
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

static side make_side(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t z,
                      size_t pitch, size_t height, const CUDA_MEMCPY3D_PEER *c)
{
    side s = {.base = type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device,
              .pitch = pitch ? pitch : c->WidthInBytes,
              .device = type == CU_MEMORYTYPE_DEVICE};
    if (type == CU_MEMORYTYPE_ARRAY)
        s.error = CUDA_ERROR_NOT_SUPPORTED;
    else if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED || !s.base)
        s.error = CUDA_ERROR_INVALID_VALUE;
    else if ((c->Height > 1 || c->Depth > 1) && s.pitch < x + c->WidthInBytes)
        s.error = CUDA_ERROR_INVALID_VALUE;
    size_t rows = height ? height : c->Height;
    if (__builtin_mul_overflow(s.pitch, rows, &s.slice) || !add_product(&s.base, s.pitch, y) ||
        !add_product(&s.base, s.slice, z) || !add_product(&s.base, 1, x))
        s.error = s.error ? s.error : CUDA_ERROR_INVALID_VALUE;
    if (c->Depth > 1 && rows < y + c->Height)
        s.error = s.error ? s.error : CUDA_ERROR_INVALID_VALUE;
    return s;
}

static side source_of(const CUDA_MEMCPY3D_PEER *c)
{
    return make_side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ,
                     c->srcPitch, c->srcHeight, c);
}

static side target_of(const CUDA_MEMCPY3D_PEER *c)
{
    return make_side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ,
                     c->dstPitch, c->dstHeight, c);
}

static bool is_empty(const CUDA_MEMCPY3D_PEER *c)
{
    return !c->WidthInBytes || !c->Height || !c->Depth;
}

static CUresult check_side(CUcontext context, const side *s, const CUDA_MEMCPY3D_PEER *c)
{
    size_t last = 0;
    CUdeviceptr span = 0;
    if (s->error)
        return s->error;
    if (!add_product(&span, s->slice, c->Depth - 1) || !add_product(&span, s->pitch, c->Height - 1) ||
        !add_product(&span, 1, c->WidthInBytes) || __builtin_add_overflow(s->base, span, &last))
        return CUDA_ERROR_INVALID_VALUE;
    int device;
    bool ours = s->device || memory_is_device(s->base, &device) || memory_find(s->base);
    if (ours && !copy_reaches(context, s->base, span))
        return cuda_log(CUDA_ERROR_INVALID_VALUE,
                        "a copy: the %llu bytes from 0x%llx on are not inside one allocation", span, s->base);
    return CUDA_SUCCESS;
}

CUresult copy_check(CUcontext context, const CUDA_MEMCPY3D_PEER *c)
{
    if (is_empty(c))
        return CUDA_SUCCESS;
    side from = source_of(c), to = target_of(c);
    CUresult result = check_side(context, &from, c);
    return result ? result : check_side(context, &to, c);
}

CUresult copy_run(CUcontext context, const CUDA_MEMCPY3D_PEER *c)
{
    if (is_empty(c))
        return CUDA_SUCCESS;
    side from = source_of(c), to = target_of(c);
    CUresult result = from.error ? from.error : to.error;
    for (size_t z = 0; z < c->Depth; z++)
        for (size_t y = 0; y < c->Height && !result; y++)
            result = copy_bytes(context, to.base + z * to.slice + y * to.pitch,
                                from.base + z * from.slice + y * from.pitch, c->WidthInBytes);
    return result;
}

/* ---- Fills ---- */

static bool fill_span(const CUDA_MEMSET_NODE_PARAMS *s, size_t *row, size_t *span)
{
    if (__builtin_mul_overflow(s->width, (size_t)s->elementSize, row))
        return false;
    CUdeviceptr sum = 0;
    if (!add_product(&sum, s->height > 1 ? s->pitch : 0, s->height - 1) || !add_product(&sum, 1, *row))
        return false;
    *span = (size_t)sum;
    return true;
}

CUresult memset_check(CUcontext context, const CUDA_MEMSET_NODE_PARAMS *s)
{
    size_t row, span;
    if (s->elementSize != 1 && s->elementSize != 2 && s->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (!s->width || !s->height)
        return CUDA_SUCCESS;
    if (!s->dst || s->dst % s->elementSize || !fill_span(s, &row, &span))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->height > 1 && (s->pitch < row || s->pitch % s->elementSize))
        return CUDA_ERROR_INVALID_VALUE;
    if (!copy_reaches(context, s->dst, span))
        return cuda_log(CUDA_ERROR_INVALID_VALUE,
                        "a memset: the %zu bytes from 0x%llx on are not inside one allocation", span, s->dst);
    return CUDA_SUCCESS;
}

static CUresult fill_row(CUcontext context, CUdeviceptr to, const CUDA_MEMSET_NODE_PARAMS *s)
{
    uint8_t pattern[1024];
    size_t bytes = s->width * s->elementSize;
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(s->value >> 8 * (i % s->elementSize));
    ptxvm *vm = s->elementSize == 1 ? vm_of(context, to) : NULL;
    if (vm)
        return ptxvm_fill(vm, to, pattern[0], bytes) ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (size_t at = 0; at < bytes && !result; at += sizeof pattern)
        result = copy_bytes(context, to + at, (CUdeviceptr)(uintptr_t)pattern,
                            bytes - at < sizeof pattern ? bytes - at : sizeof pattern);
    return result;
}

CUresult memset_run(CUcontext context, const CUDA_MEMSET_NODE_PARAMS *s)
{
    CUresult result = memset_check(context, s);
    if (result)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (size_t y = 0; y < s->height && s->width && !result; y++)
        result = fill_row(context, s->dst + y * s->pitch, s);
    return result;
}
