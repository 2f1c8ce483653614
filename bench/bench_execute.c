/* The overhead of the library per launch: a warm qdnnExecute or one-shot call on a driver that does nothing,
 * minus a bare call of its cuLaunchKernel. */
#include <stdio.h>

#include <qdnn/qdnn.h>

#include "bench/bench.h"
#include "bench/idle_driver.h"
#include "driver/api/handle.h"

/* ---- The calls ---- */

enum { CALLS = 1000, N = 1 << 20 };

typedef struct scene {
    const cuda_api *volatile api; /* volatile, so that the bare call is not optimised away */
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan;
    qdnnStatus_t status; /* status of the first call that failed */
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
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_SCALE, scale, 0}, {QDNN_OPERAND_CODES, codes, 0}};
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
    const cuda_device device = idle_device(&idle_driver);
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
    scene s = {.api = &idle_driver};
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
