/* Handles: creation, streams, and what every call does first and last. */
#include "driver/api/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/base/alloc.h"
#include "driver/cuda/cuda_error.h"
#include "driver/base/log.h"
#include "driver/base/variables.h"

/* "; the last was quant.int4.scale: is one of X, SCALE a pointer of the host, or too short? ..." */
static void list_suspects(qdnnHandle_t handle, char *text, size_t size)
{
    size_t used =
        (size_t)snprintf(text, size, "; the last was %s: is one of its operands (", handle->last_operation);
    const char *comma = "";
    for (operand_set left = handle->last_operands; left && used < size; left &= left - 1, comma = ", ")
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", comma,
                             plan_place_name(BY_BINDINGS, __builtin_ctzll(left)) + strlen("QDNN_OPERAND_"));
    if (used < size)
        snprintf(text + used, size - used, ") host memory, or too short? QDNN_CHECK_BUFFERS=1 finds it");
}

qdnnStatus_t handle_failed(qdnnHandle_t handle, CUresult result, const char *call, const char *what, ...)
{
    const cuda_device *device = &handle->context->device;
    char purpose[256], sentence[384];
    va_list args;
    va_start(args, what);
    vsnprintf(purpose, sizeof purpose, what, args);
    va_end(args);
    if (cuda_is_sticky(result))
        handle->lost = result;
    cuda_describe(device->api, result, call, sentence, sizeof sentence);
    char suspects[256] = "";
    enum { ILLEGAL_ADDRESS = 700 };
    if (result == ILLEGAL_ADDRESS && handle->last_operation)
        list_suspects(handle, suspects, sizeof suspects);
    return qdnn_error(cuda_status(result), "%s: %s%s%s", purpose, sentence, suspects,
                      handle->lost && device->is_vm ? " (PTXVM_LOG=stderr tells where it failed)" : "");
}

qdnnStatus_t handle_check(qdnnHandle_t handle)
{
    if (!handle->lost)
        return QDNN_STATUS_SUCCESS;
    char text[256];
    cuda_describe(handle->context->device.api, handle->lost, "an earlier call", text, sizeof text);
    return qdnn_error(QDNN_STATUS_EXECUTION_FAILED_STICKY, "the handle is dead, destroy it: %s", text);
}

qdnnStatus_t handle_enter(qdnnHandle_t handle, bool *pushed)
{
    if (handle->lost)
        return handle_check(handle);
    CUresult result = context_enter(handle->context, pushed);
    return result
               ? handle_failed(handle, result, "cuCtxGetCurrent or cuCtxPushCurrent", "the handle's context")
               : QDNN_STATUS_SUCCESS;
}

void handle_leave(qdnnHandle_t handle, bool pushed)
{
    context_leave(handle->context, pushed);
}

qdnnStatus_t handle_create(const cuda_device *device, qdnnHandle_t *handle)
{
    qdnnHandle_t made = object_create(OBJECT_HANDLE, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    qdnnStatus_t status = context_acquire(device, &made->context);
    if (status != QDNN_STATUS_SUCCESS) {
        object_destroy(made);
        return status;
    }
    made->overlaps = launch_overlaps(made->context);
    *handle = made;
    return QDNN_STATUS_SUCCESS;
}

/* A bundle named in the environment is optional: without it, kernels are emitted. */
static void open_bundle(qdnnHandle_t handle)
{
    const char *directory = getenv("QDNN_BUNDLE_DIR");
    if (directory && *directory && bundle_open(directory, &handle->bundle) != QDNN_STATUS_SUCCESS)
        log_write(QDNN_SEVERITY_WARNING, "QDNN_BUNDLE_DIR=%s is not used", directory);
}

static const char *const math_names[] = {[QDNN_MATH_FAMILY] = "family", [QDNN_MATH_EXACT] = "exact"};
enum { MATH_COUNT = sizeof math_names / sizeof *math_names };

static qdnnStatus_t read_math(qdnnMath_t *math)
{
    const char *name = getenv("QDNN_MATH");
    *math = QDNN_MATH_FAMILY;
    if (!name || !*name)
        return QDNN_STATUS_SUCCESS;
    for (int i = 0; i < MATH_COUNT; i++)
        if (strcmp(name, math_names[i]) == 0) {
            *math = (qdnnMath_t)i;
            return QDNN_STATUS_SUCCESS;
        }
    return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                      "the environment variable QDNN_MATH is '%s'; it must be family or exact", name);
}

static qdnnStatus_t create(qdnnHandle_t *handle, const char *device)
{
    cuda_device found;
    qdnnMath_t math;
    qdnnHandle_t made = NULL;
    qdnn_variables_check();
    CHECK_STATUS(read_math(&math));
    CHECK_STATUS(cuda_device_choose(device, &found));
    CHECK_STATUS(handle_create(&found, &made));
    open_bundle(made);
    const char *check = getenv("QDNN_CHECK_BUFFERS");
    made->math = math;
    made->check_buffers = check && *check && strcmp(check, "0") != 0;
    *handle = made;
    if (log_on(QDNN_SEVERITY_INFO))
        log_write(QDNN_SEVERITY_INFO, "handle %p on %s (%s), kernels for %s", (void *)made, found.name,
                  found.is_vm ? "ptxvm" : "GPU", made->context->target->name);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreate(qdnnHandle_t *handle)
{
    CALL_BEGIN_WITH(handle);
    CHECK_NOT_NULL(handle);
    return create(handle, NULL);
}

qdnnStatus_t qdnnCreateOn(qdnnHandle_t *handle, const char *device)
{
    CALL_BEGIN_WITH(handle, device);
    CHECK_NOT_NULL(handle);
    return create(handle, device);
}

/* Waits for all work of the context: the handle may have used several streams, and some may no longer
 * exist. */
static void finish(qdnnHandle_t handle)
{
    bool pushed;
    if (handle_enter(handle, &pushed) != QDNN_STATUS_SUCCESS)
        return;
    CUresult result = handle->context->device.api->cuCtxSynchronize();
    handle_leave(handle, pushed);
    if (result)
        handle_failed(handle, result, "cuCtxSynchronize", "work of the handle");
}

qdnnStatus_t qdnnDestroy(qdnnHandle_t handle)
{
    CALL_BEGIN_WITH(handle);
    if (!handle)
        return QDNN_STATUS_SUCCESS;
    CHECK_NOT_NULL(handle);
    if (handle->plans > 0 || handle->schedules > 0 || handle->programs > 0)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "the handle still has plans (%d), schedules (%d) and programs (%d); destroy them before it",
            handle->plans, handle->schedules, handle->programs);
    bool was_alive = !handle->lost;
    if (was_alive)
        finish(handle);
    handle_forget(handle);
    handle_close_cublas(handle);
    qdnnStatus_t status = was_alive ? handle_check(handle) : QDNN_STATUS_SUCCESS;
    context_release(handle->context, modules_drop);
    bundle_close(handle->bundle);
    object_destroy(handle);
    return status;
}

qdnnStatus_t qdnnSetStream(qdnnHandle_t handle, qdnnStream_t stream)
{
    CALL_BEGIN_WITH(handle, stream);
    CHECK_NOT_NULL(handle);
    CHECK_STATUS(handle_check(handle));
    handle->stream = stream;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetStream(qdnnHandle_t handle, qdnnStream_t *stream)
{
    CALL_BEGIN_WITH(handle, stream);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(stream);
    *stream = handle->stream;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetMath(qdnnHandle_t handle, qdnnMath_t math)
{
    CALL_BEGIN_WITH(handle, math);
    CHECK_NOT_NULL(handle);
    if ((int)math < 0 || (int)math >= MATH_COUNT)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "math is %d; it must be QDNN_MATH_FAMILY or QDNN_MATH_EXACT", (int)math);
    handle->math = math;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetMath(qdnnHandle_t handle, qdnnMath_t *math)
{
    CALL_BEGIN_WITH(handle, math);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(math);
    *math = handle->math;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSynchronize(qdnnHandle_t handle)
{
    CALL_BEGIN_WITH(handle);
    CHECK_NOT_NULL(handle);
    bool pushed;
    CHECK_STATUS(handle_enter(handle, &pushed));
    CUresult result = handle->context->device.api->cuStreamSynchronize(handle->stream);
    handle_leave(handle, pushed);
    return result ? handle_failed(handle, result, "cuStreamSynchronize", "work that was put on the stream")
                  : QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetDeviceInfo(qdnnHandle_t handle, qdnnDeviceInfo_t *info)
{
    CALL_BEGIN_WITH(handle, info);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(info);
    CHECK_STATUS(handle_check(handle));
    const cuda_device *device = &handle->context->device;
    int clock_khz = 0, bus_bits = 0;
    size_t bytes = 0;
    CUresult result =
        device->api->cuDeviceGetAttribute(&clock_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device->device);
    if (!result)
        result = device->api->cuDeviceGetAttribute(&bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
                                                   device->device);
    if (!result)
        result = device->api->cuDeviceTotalMem(&bytes, device->device);
    if (result)
        return handle_failed(handle, result, "cuDeviceGetAttribute or cuDeviceTotalMem", "the device");
    qdnnDeviceInfo_t found = {.kind = device->is_vm ? QDNN_DEVICE_PTXVM : QDNN_DEVICE_GPU,
                              .ordinal = device->ordinal,
                              .smMajor = device->major,
                              .smMinor = device->minor,
                              .driverVersion = device->driver_version,
                              .multiprocessors = device->multiprocessors,
                              .memoryBytes = bytes,
                              .memoryBytesPerSecond = 2e3 * clock_khz * bus_bits / 8};
    snprintf(found.target, sizeof found.target, "%s", handle->context->target->name);
    snprintf(found.name, sizeof found.name, "%s", device->name);
    GIVE_INFO(info, &found);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetBundle(qdnnHandle_t handle, const char *directory)
{
    CALL_BEGIN_WITH(handle, directory);
    CHECK_NOT_NULL(handle);
    bundle *opened = NULL, *before = handle->bundle;
    qdnnStatus_t status = directory ? bundle_open(directory, &opened) : QDNN_STATUS_SUCCESS;
    handle->bundle = opened;
    bundle_close(before);
    return status;
}
