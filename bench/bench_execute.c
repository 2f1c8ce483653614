/* What the library adds to a launch: a warm qdnnExecute, or one-shot call, on a driver whose functions do
 * nothing, above a bare call of cuLaunchKernel there. */
#include <stdio.h>

#include <qdnn/qdnn.h>

#include "bench/bench.h"
#include "driver/handle.h"

/* ---- A driver that does nothing ---- */

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

static const cuda_api idle = {.cuCtxGetCurrent = get_current,
                              .cuThreadExchangeStreamCaptureMode = exchange,
                              .cuModuleLoadDataEx = load,
                              .cuModuleUnload = unload,
                              .cuModuleGetFunction = get_function,
                              .cuLaunchKernel = launch,
                              .cuStreamIsCapturing = is_capturing,
                              .cuCtxSynchronize = synchronize};

/* ---- The calls ---- */

enum { CALLS = 1000, N = 1 << 20 };

typedef struct scene {
    const cuda_api *volatile api; /* so that the bare call is not optimised away */
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan;
    qdnnStatus_t status; /* of the first call that failed */
} scene;

static char *const x = (char *)4096, *const scale = (char *)8192, *const codes = (char *)16384;

static void keep(scene *s, qdnnStatus_t status)
{
    if (s->status == QDNN_STATUS_SUCCESS)
        s->status = status;
}

static void launch_bare(void *argument)
{
    scene *s = argument;
    CUdeviceptr pointers[3] = {4096, 8192, 16384};
    uint64_t n = N;
    void *params[] = {&pointers[0], &pointers[1], &pointers[2], &n};
    for (int i = 0; i < CALLS; i++)
        s->api->cuLaunchKernel((CUfunction)64, 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
}

static void execute(void *argument)
{
    scene *s = argument;
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_X, x}, {QDNN_OPERAND_SCALE, scale}, {QDNN_OPERAND_CODES, codes}};
    for (int i = 0; i < CALLS; i++)
        keep(s, qdnnExecute(s->handle, s->plan, bindings, 3, NULL, 0));
}

static void one_shot(void *argument)
{
    scene *s = argument;
    for (int i = 0; i < CALLS; i++)
        keep(s, qdnnQuantize(s->handle, s->tensor, x, s->quant, scale, NULL, codes));
}

static void begin(scene *s)
{
    const cuda_device device = {.api = &idle, .context = only_context, .major = 9, .driver_version = 13000};
    keep(s, handle_create(&device, &s->handle));
    keep(s, qdnnCreateTensorDescriptor(&s->tensor));
    keep(s, qdnnCreateQuantDescriptor(&s->quant));
    if (s->status == QDNN_STATUS_SUCCESS)
        keep(s, qdnnSetTensorDescriptor(s->tensor, QDNN_DATA_F32, 1, (const int64_t[]){N}, NULL));
    if (s->status == QDNN_STATUS_SUCCESS)
        keep(s, qdnnCreateQuantizePlan(s->handle, s->tensor, s->quant, &s->plan));
}

static void end(scene *s)
{
    qdnnDestroyPlan(s->plan);
    qdnnDestroyTensorDescriptor(s->tensor);
    qdnnDestroyQuantDescriptor(s->quant);
    qdnnDestroy(s->handle);
}

static double nanoseconds(void (*work)(void *), scene *s)
{
    return bench_best(work, s, 0.3) / CALLS * 1e9;
}

void bench_execute(void)
{
    scene s = {.api = &idle};
    bench_progress("measuring execute");
    begin(&s);
    if (s.status == QDNN_STATUS_SUCCESS) {
        double bare = nanoseconds(launch_bare, &s);
        bench_report("execute.plan.ns", nanoseconds(execute, &s) - bare, "ns",
                     "host time of a warm qdnnExecute above a bare launch");
        bench_report("execute.one_shot.ns", nanoseconds(one_shot, &s) - bare, "ns",
                     "the same of qdnnQuantize");
    }
    if (s.status != QDNN_STATUS_SUCCESS)
        fprintf(stderr, "bench: execute: %s\n", qdnnGetErrorString(s.status));
    end(&s);
}
