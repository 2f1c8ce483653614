/* Launches on a handle's stream. */
#include "driver/api/launch.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(offsetof(CUlaunchConfig, blockDimX) == 12 && offsetof(CUlaunchConfig, sharedMemBytes) == 24 &&
                   offsetof(CUlaunchConfig, hStream) == 32 && offsetof(CUlaunchConfig, attrs) == 40 &&
                   offsetof(CUlaunchConfig, numAttrs) == 48 && sizeof(CUlaunchConfig) == 56 &&
                   offsetof(CUlaunchAttribute, value) == 8 && sizeof(CUlaunchAttribute) == 72,
               "the driver takes launches in this layout");

/* Older drivers cannot capture such launches into a graph. */
enum { DRIVER_THAT_CAPTURES = 12030 };

bool launch_overlaps(const context *c)
{
    const char *text = getenv("QDNN_DEPENDENT_LAUNCH");
    return c->target->number >= 90 && c->device.api->cuLaunchKernelEx &&
           c->device.driver_version >= DRIVER_THAT_CAPTURES && !(text && strcmp(text, "0") == 0);
}

static CUresult launch_behind(qdnnHandle_t handle, const launch *l, void **params)
{
    CUlaunchAttribute overlap = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                 .value.programmaticStreamSerializationAllowed = 1};
    const CUlaunchConfig config = {.gridDimX = l->grid[0],
                                   .gridDimY = l->grid[1],
                                   .gridDimZ = l->grid[2],
                                   .blockDimX = l->block[0],
                                   .blockDimY = l->block[1],
                                   .blockDimZ = l->block[2],
                                   .sharedMemBytes = l->shared,
                                   .hStream = handle->stream,
                                   .attrs = &overlap,
                                   .numAttrs = 1};
    return handle->context->device.api->cuLaunchKernelEx(&config, l->function, params, NULL);
}

static CUresult launch_plainly(qdnnHandle_t handle, const launch *l, void **params)
{
    return handle->context->device.api->cuLaunchKernel(l->function, l->grid[0], l->grid[1], l->grid[2],
                                                       l->block[0], l->block[1], l->block[2], l->shared,
                                                       handle->stream, params, NULL);
}

qdnnStatus_t launch_kernel(qdnnHandle_t handle, launch_chain *chain, const launch *l, void **params)
{
    const bool behind = chain->kernel && l->waits && handle->overlaps;
    CUresult result = (behind ? launch_behind : launch_plainly)(handle, l, params);
    chain->kernel = true;
    return result
               ? handle_failed(handle, result, behind ? "cuLaunchKernelEx" : "cuLaunchKernel", "%s", l->what)
               : QDNN_STATUS_SUCCESS;
}
