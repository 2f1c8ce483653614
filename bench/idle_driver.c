/* A driver that does nothing. */
#include "bench/idle_driver.h"

static CUcontext const only_context = (CUcontext)64;

static CUresult get_current(CUcontext *context)
{
    *context = only_context;
    return 0;
}

static CUresult load(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                     void **values)
{
    (void)image, (void)count, (void)options, (void)values;
    *module = (CUmodule)64;
    return 0;
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
    (void)mode;
    return 0;
}

static CUresult unload(CUmodule module)
{
    (void)module;
    return 0;
}

static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
    (void)module, (void)name;
    *function = (CUfunction)64;
    return 0;
}

static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
                       void **params, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)stream, (void)params, (void)extra;
    return 0;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return 0;
}

static CUresult synchronize(void)
{
    return 0;
}

const cuda_api idle_driver = {.cuCtxGetCurrent = get_current,
                              .cuThreadExchangeStreamCaptureMode = exchange,
                              .cuModuleLoadDataEx = load,
                              .cuModuleUnload = unload,
                              .cuModuleGetFunction = get_function,
                              .cuLaunchKernel = launch,
                              .cuStreamIsCapturing = is_capturing,
                              .cuCtxSynchronize = synchronize};

cuda_device idle_device(const cuda_api *api)
{
    return (cuda_device){.api = api, .context = only_context, .major = 9, .driver_version = 13000};
}
