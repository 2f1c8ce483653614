/* A table of the driver's functions in which each counts and then calls the real one. A new row of
 * driver/cuda/cuda.def needs one line here: the names of its parameters. */
#include "calls.h"

#include <string.h>

#include "driver/cuda/open.h"

#define ARGS_cuInit                            (flags)
#define ARGS_cuDriverGetVersion                (version)
#define ARGS_cuGetErrorName                    (code, name)
#define ARGS_cuDeviceGetCount                  (count)
#define ARGS_cuDeviceGet                       (device, ordinal)
#define ARGS_cuDeviceGetName                   (name, size, device)
#define ARGS_cuDeviceGetAttribute              (value, attribute, device)
#define ARGS_cuDeviceTotalMem                  (bytes, device)
#define ARGS_cuDevicePrimaryCtxRetain          (context, device)
#define ARGS_cuDevicePrimaryCtxRelease         (device)
#define ARGS_cuCtxGetCurrent                   (context)
#define ARGS_cuCtxPushCurrent                  (context)
#define ARGS_cuCtxPopCurrent                   (context)
#define ARGS_cuCtxGetDevice                    (device)
#define ARGS_cuCtxSynchronize                  ()
#define ARGS_cuStreamSynchronize               (stream)
#define ARGS_cuStreamIsCapturing               (stream, status)
#define ARGS_cuEventCreate                     (event, flags)
#define ARGS_cuEventDestroy                    (event)
#define ARGS_cuEventRecord                     (event, stream)
#define ARGS_cuEventSynchronize                (event)
#define ARGS_cuEventElapsedTime                (milliseconds, start, end)
#define ARGS_cuThreadExchangeStreamCaptureMode (mode)
#define ARGS_cuModuleLoadDataEx                (module, image, count, options, values)
#define ARGS_cuModuleUnload                    (module)
#define ARGS_cuModuleGetFunction               (function, module, name)
#define ARGS_cuFuncSetAttribute                (function, attribute, value)
#define ARGS_cuLaunchKernel                                                                                  \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params, extra)
#define ARGS_cuLaunchKernelEx      (config, function, params, extra)
#define ARGS_cuMemAlloc            (pointer, bytes)
#define ARGS_cuMemFree             (pointer)
#define ARGS_cuMemGetAddressRange  (base, bytes, pointer)
#define ARGS_cuPointerGetAttribute (value, attribute, pointer)
#define ARGS_cuMemcpyHtoDAsync     (to, from, bytes, stream)
#define ARGS_cuMemcpyDtoHAsync     (to, from, bytes, stream)
#define ARGS_cuMemcpyDtoDAsync     (to, from, bytes, stream)
#define ARGS_cuMemsetD8Async       (to, value, bytes, stream)

static cuda_api real;
static int counts[CALL_COUNT];

#define FUNCTION(name, suffix, since, parameters)                                                            \
    static CUresult count_##name parameters                                                                  \
    {                                                                                                        \
        counts[CALL_##name]++;                                                                               \
        return real.name ARGS_##name;                                                                        \
    }
#include "driver/cuda/cuda.def"
#undef FUNCTION

static const cuda_api counting = {
#define FUNCTION(name, suffix, since, params) .name = count_##name,
#include "driver/cuda/cuda.def"
#undef FUNCTION
};

const char *const call_names[CALL_COUNT] = {
#define FUNCTION(name, suffix, since, params) #name #suffix,
#include "driver/cuda/cuda.def"
#undef FUNCTION
};

bool calls_watch(const char *device)
{
    cuda_device found;
    if (cuda_device_choose(device, &found) != QDNN_STATUS_SUCCESS)
        return false;
    /* The table is the open driver's own, handed out as const. */
    cuda_api *table = (cuda_api *)found.api;
    if (table->cuInit != counting.cuInit) {
        real = *table;
        *table = counting;
    }
    calls_reset();
    return true;
}

int calls_of(int call)
{
    return counts[call];
}

int calls_total(void)
{
    int total = 0;
    for (int i = 0; i < CALL_COUNT; i++)
        total += counts[i];
    return total;
}

void calls_reset(void)
{
    memset(counts, 0, sizeof counts);
}
