/* Device memory for programs that do not use CUDA themselves. */
#include "driver/api/handle.h"

#define API(handle) ((handle)->context->device.api)

enum { INVALID_VALUE = 1 }; /* CUDA_ERROR_INVALID_VALUE */

static CUdeviceptr address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

qdnnStatus_t qdnnMalloc(qdnnHandle_t handle, void **pointer, size_t bytes)
{
    CALL_BEGIN_WITH(handle, pointer, bytes);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(pointer);
    bool pushed;
    CUdeviceptr made = 0;
    CHECK_STATUS(handle_enter(handle, &pushed));
    CUresult result = bytes > 0 ? API(handle)->cuMemAlloc(&made, bytes) : 0;
    handle_leave(handle, pushed);
    if (result)
        return handle_failed(handle, result, "cuMemAlloc", "%zu bytes of device memory", bytes);
    *pointer = (void *)(uintptr_t)made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnFree(qdnnHandle_t handle, void *pointer)
{
    CALL_BEGIN_WITH(handle, pointer);
    CHECK_NOT_NULL(handle);
    bool pushed;
    CHECK_STATUS(handle_enter(handle, &pushed));
    CUresult result = pointer ? API(handle)->cuMemFree(address(pointer)) : 0;
    handle_leave(handle, pushed);
    if (result == INVALID_VALUE)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "pointer is %p, which is not the start of device memory of this context: it was "
                          "freed already, or is host memory; free each pointer that qdnnMalloc returned once",
                          pointer);
    return result ? handle_failed(handle, result, "cuMemFree", "pointer %p", pointer) : QDNN_STATUS_SUCCESS;
}

/* The ways to copy bytes, each queued on the handle's stream. */
static CUresult to_device(qdnnHandle_t handle, void *to, const void *from, size_t bytes)
{
    return API(handle)->cuMemcpyHtoDAsync(address(to), from, bytes, handle->stream);
}

static CUresult to_host(qdnnHandle_t handle, void *to, const void *from, size_t bytes)
{
    return API(handle)->cuMemcpyDtoHAsync(to, address(from), bytes, handle->stream);
}

static CUresult on_device(qdnnHandle_t handle, void *to, const void *from, size_t bytes)
{
    return API(handle)->cuMemcpyDtoDAsync(address(to), address(from), bytes, handle->stream);
}

/* What an access of so many bytes finds at an argument: whether it is device memory, and to its end. */
static qdnnStatus_t check_range(qdnnHandle_t handle, const char *name, const void *pointer, size_t bytes)
{
    CUdeviceptr base = 0;
    size_t size = 0;
    if (API(handle)->cuMemGetAddressRange(&base, &size, address(pointer)))
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "%s is %p, which is not device memory that the driver knows: a host pointer, or "
                          "freed memory; pass a pointer into memory from qdnnMalloc or cuMemAlloc",
                          name, pointer);
    const uint64_t left = size - (address(pointer) - base);
    if (left < bytes)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
            "%s is %p, with %llu bytes to the end of its allocation; this call needs %zu: pass at "
            "most %llu as bytes, or allocate more with qdnnMalloc",
            name, pointer, (unsigned long long)left, bytes, (unsigned long long)left);
    return QDNN_STATUS_SUCCESS;
}

typedef struct way {
    CUresult (*copy)(qdnnHandle_t handle, void *to, const void *from, size_t bytes);
    const char *call, *what;
    const char *to, *from; /* the arguments that are device memory, by name */
    bool waits;            /* for the copy to finish, since the host is involved */
} way;

/* The driver does not say which argument it rejects, and why. */
static qdnnStatus_t copy_failed(qdnnHandle_t handle, const way *by, CUresult result, const char *call,
                                const void *to, const void *from, size_t bytes)
{
    bool pushed;
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    if (result == INVALID_VALUE && !handle_enter(handle, &pushed)) {
        if (by->to)
            status = check_range(handle, by->to, to, bytes);
        if (by->from && status == QDNN_STATUS_SUCCESS)
            status = check_range(handle, by->from, from, bytes);
        handle_leave(handle, pushed);
    }
    return status ? status : handle_failed(handle, result, call, "%zu bytes %s", bytes, by->what);
}

static qdnnStatus_t copy(qdnnHandle_t handle, const way *by, void *to, const void *from, size_t bytes)
{
    bool pushed;
    const char *call = by->call;
    CHECK_STATUS(handle_enter(handle, &pushed));
    CUresult result = bytes > 0 ? by->copy(handle, to, from, bytes) : 0;
    if (!result && by->waits && bytes > 0) {
        call = "cuStreamSynchronize";
        result = API(handle)->cuStreamSynchronize(handle->stream);
    }
    handle_leave(handle, pushed);
    return result ? copy_failed(handle, by, result, call, to, from, bytes) : QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCopyToDevice(qdnnHandle_t handle, void *device, const void *host, size_t bytes)
{
    CALL_BEGIN_WITH(handle, device, host, bytes);
    static const way by = {to_device, "cuMemcpyHtoDAsync", "to the device", "device", NULL, true};
    CHECK_NOT_NULL(handle);
    CHECK_BUFFER(device, bytes);
    CHECK_BUFFER(host, bytes);
    return copy(handle, &by, device, host, bytes);
}

qdnnStatus_t qdnnCopyToHost(qdnnHandle_t handle, void *host, const void *device, size_t bytes)
{
    CALL_BEGIN_WITH(handle, host, device, bytes);
    static const way by = {to_host, "cuMemcpyDtoHAsync", "to the host", NULL, "device", true};
    CHECK_NOT_NULL(handle);
    CHECK_BUFFER(host, bytes);
    CHECK_BUFFER(device, bytes);
    return copy(handle, &by, host, device, bytes);
}

qdnnStatus_t qdnnCopyOnDevice(qdnnHandle_t handle, void *to, const void *from, size_t bytes)
{
    CALL_BEGIN_WITH(handle, to, from, bytes);
    static const way by = {on_device, "cuMemcpyDtoDAsync", "on the device", "to", "from", false};
    CHECK_NOT_NULL(handle);
    CHECK_BUFFER(to, bytes);
    CHECK_BUFFER(from, bytes);
    return copy(handle, &by, to, from, bytes);
}

qdnnStatus_t qdnnFill(qdnnHandle_t handle, void *device, unsigned char byte, size_t bytes)
{
    CALL_BEGIN_WITH(handle, device, byte, bytes);
    CHECK_NOT_NULL(handle);
    CHECK_BUFFER(device, bytes);
    static const way by = {NULL, "cuMemsetD8Async", "to fill", "device", NULL, false};
    bool pushed;
    CHECK_STATUS(handle_enter(handle, &pushed));
    CUresult result =
        bytes > 0 ? API(handle)->cuMemsetD8Async(address(device), byte, bytes, handle->stream) : 0;
    handle_leave(handle, pushed);
    return result ? copy_failed(handle, &by, result, by.call, device, NULL, bytes) : QDNN_STATUS_SUCCESS;
}
