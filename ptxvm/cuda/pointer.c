/* Queries about pointers: attributes, ranges, advice. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Attributes ---- */

static bool is_host_kind(const cuda_memory *m)
{
    return m->kind == MEMORY_HOST || m->kind == MEMORY_REGISTERED;
}

/* Writes the attribute; for an unknown pointer, the value that tells so. Returns false if there is no such
 * attribute. */
static bool write_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address,
                            const cuda_memory *m)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = m ? m->context : NULL;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = !m ? 0 : is_host_kind(m) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = m ? address : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out =
            m && m->kind != MEMORY_DEVICE && m->kind != MEMORY_POOL ? (void *)(uintptr_t)address : NULL;
        return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)out = m && m->sync_memops;
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)out = m ? m->id : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = m && m->kind == MEMORY_MANAGED;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = m ? m->device : CU_DEVICE_INVALID;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)out = m ? m->address : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)out = m ? m->bytes : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)out = m != NULL;
        return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(uint64_t *)out = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(unsigned *)out = 0;
        return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)out = m ? 3 : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = m ? m->pool : NULL;
        return true;
    default:
        return false;
    }
}

CUresult do_cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    const cuda_memory *m = memory_find(address);
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER &&
        (m->kind == MEMORY_DEVICE || m->kind == MEMORY_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    return write_attribute(out, attribute, address, m) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* For several attributes, an unknown pointer is not an error. */
CUresult do_cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **out,
                                   CUdeviceptr address)
{
    if (!n || !attributes || !out)
        return CUDA_ERROR_INVALID_VALUE;
    const cuda_memory *m = memory_find(address);
    for (unsigned i = 0; i < n; i++)
        if (!out[i] || !write_attribute(out[i], attributes[i], address, m))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult do_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    cuda_memory *m = memory_find(address);
    if (!value || !m || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    m->sync_memops = *(const unsigned *)value != 0;
    return CUDA_SUCCESS;
}

CUresult do_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    const cuda_memory *m = memory_find(address);
    if (!m)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = m->address;
    if (bytes)
        *bytes = m->bytes;
    return CUDA_SUCCESS;
}

/* ---- Managed memory: advice is stored and returned again ---- */

static cuda_memory *find_managed(CUdeviceptr address, size_t bytes)
{
    cuda_memory *m = memory_find(address);
    return m && m->kind == MEMORY_MANAGED && bytes && bytes <= m->bytes - (address - m->address) ? m : NULL;
}

static CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, int device)
{
    cuda_memory *m = find_managed(address, bytes);
    if (!m || (int)advice < 1 || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    bool about_device =
        advice > CU_MEM_ADVISE_UNSET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    if (about_device && device != CU_DEVICE_CPU && !device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    unsigned bit = 1u << (device == CU_DEVICE_CPU ? 31 : device & 31);
    if (advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY)
        m->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
    else if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
        m->preferred = device;
    else if (advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
        m->preferred = CU_DEVICE_INVALID;
    else if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY)
        m->accessed_by |= bit;
    else
        m->accessed_by &= ~bit;
    return CUDA_SUCCESS;
}

static bool location_device(CUmemLocation location, int *device)
{
    *device = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
    return location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult do_cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    return advise(address, bytes, advice, device);
}

CUresult do_cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    int device;
    return location_device(location, &device) ? advise(address, bytes, advice, device)
                                              : CUDA_ERROR_INVALID_VALUE;
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, int device, CUstream handle)
{
    CUstream s;
    cuda_memory *m = find_managed(address, bytes);
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != CU_DEVICE_CPU && !device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    m->prefetched = device;
    return CUDA_SUCCESS;
}

CUresult do_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    return prefetch(address, bytes, device, stream);
}

CUresult do_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                                  CUstream stream)
{
    int device;
    return !flags && location_device(location, &device) ? prefetch(address, bytes, device, stream)
                                                        : CUDA_ERROR_INVALID_VALUE;
}

static int location_type(int device)
{
    return device == CU_DEVICE_INVALID ? CU_MEM_LOCATION_TYPE_INVALID
           : device == CU_DEVICE_CPU   ? CU_MEM_LOCATION_TYPE_HOST
                                       : CU_MEM_LOCATION_TYPE_DEVICE;
}

static void list_accessors(const cuda_memory *m, int *out, size_t n)
{
    size_t k = 0;
    for (int d = 0; d < 32 && k < n; d++)
        if (m->accessed_by >> d & 1)
            out[k++] = d == 31 ? CU_DEVICE_CPU : d;
    while (k < n)
        out[k++] = CU_DEVICE_INVALID;
}

CUresult do_cuMemRangeGetAttribute(void *out, size_t size, CUmem_range_attribute attribute,
                                   CUdeviceptr address, size_t bytes)
{
    const cuda_memory *m = find_managed(address, bytes);
    if (!out || !m || size < 4 || size % 4 || (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && size != 4))
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *(int *)out = m->read_mostly;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *(int *)out = m->preferred;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        list_accessors(m, out, size / 4);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *(int *)out = m->prefetched;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *(int *)out = location_type(m->preferred);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *(int *)out = location_type(m->prefetched);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult do_cuMemRangeGetAttributes(void **out, size_t *sizes, CUmem_range_attribute *attributes, size_t n,
                                    CUdeviceptr address, size_t bytes)
{
    CUresult result = out && sizes && attributes && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n && !result; i++)
        result = do_cuMemRangeGetAttribute(out[i], sizes[i], attributes[i], address, bytes);
    return result;
}
