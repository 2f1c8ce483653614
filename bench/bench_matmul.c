/* Products on a GPU: cuBLAS on weights that are dequantized for every call, the baseline for fused products.
 * If there is no GPU or no cuBLAS, prints that and measures nothing. */
#include <stdio.h>

#include <qdnn/qdnn.h>

#include "bench/bench.h"

enum { N = 4096, K = 4096, GROUP = 128, REPEATS = 20 };

typedef struct scene {
    qdnnHandle_t handle;
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, w, y;
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan;
    void *device_x, *codes, *scale, *device_y, *workspace;
    size_t workspace_bytes;
    qdnnStatus_t status; /* status of the first call that failed; no calls are made after it */
} scene;

#define TRY(s, call)                                                                                         \
    do {                                                                                                     \
        if ((s)->status == QDNN_STATUS_SUCCESS)                                                              \
            (s)->status = (call);                                                                            \
    } while (0)

static void set(scene *s, qdnnTensorDescriptor_t *tensor, int64_t rows, int64_t columns)
{
    TRY(s, qdnnCreateTensorDescriptor(tensor));
    TRY(s, qdnnSetTensorDescriptor(*tensor, QDNN_DATA_F16, 2, (const int64_t[]){rows, columns}, NULL));
}

/* The contents of the buffers do not affect the time: zeros. */
static void take(scene *s, void **pointer, size_t bytes)
{
    TRY(s, qdnnMalloc(s->handle, pointer, bytes));
    TRY(s, qdnnFill(s->handle, *pointer, 0, bytes));
}

static void begin(scene *s, int64_t m)
{
    TRY(s, qdnnCreateMatmulDescriptor(&s->matmul));
    TRY(s, qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_CUBLAS));
    set(s, &s->x, m, K);
    set(s, &s->w, N, K);
    set(s, &s->y, m, N);
    TRY(s, qdnnCreateQuantDescriptor(&s->quant));
    TRY(s, qdnnSetQuantDescriptor(s->quant, QDNN_DATA_NF4, QDNN_GRANULARITY_GROUP, GROUP));
    TRY(s, qdnnCreateMatmulPlan(s->handle, s->matmul, s->x, s->w, s->quant, s->y, &s->plan));
    TRY(s, qdnnGetPlanWorkspaceSize(s->plan, &s->workspace_bytes));
    take(s, &s->device_x, (size_t)m * K * 2);
    take(s, &s->codes, (size_t)N * K / 2);
    take(s, &s->scale, (size_t)N * K / GROUP * 4);
    take(s, &s->device_y, (size_t)m * N * 2);
    take(s, &s->workspace, s->workspace_bytes);
}

static void end(scene *s)
{
    void *buffers[] = {s->device_x, s->codes, s->scale, s->device_y, s->workspace};
    for (int i = 0; i < 5; i++)
        qdnnFree(s->handle, buffers[i]);
    qdnnDestroyPlan(s->plan);
    qdnnDestroyMatmulDescriptor(s->matmul);
    qdnnDestroyTensorDescriptor(s->x);
    qdnnDestroyTensorDescriptor(s->w);
    qdnnDestroyTensorDescriptor(s->y);
    qdnnDestroyQuantDescriptor(s->quant);
}

static void run(void *argument)
{
    scene *s = argument;
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, s->device_x, 0},
                                      {QDNN_OPERAND_CODES, s->codes, 0},
                                      {QDNN_OPERAND_SCALE, s->scale, 0},
                                      {QDNN_OPERAND_Y, s->device_y, 0}};
    for (int i = 0; i < REPEATS; i++)
        TRY(s, qdnnExecute(s->handle, s->plan, bindings, 4, s->workspace, s->workspace_bytes));
    TRY(s, qdnnSynchronize(s->handle));
}

static void measure(qdnnHandle_t handle, int64_t m)
{
    char name[64];
    scene s = {.handle = handle};
    snprintf(name, sizeof name, "matmul.cublas.m%d.us", (int)m);
    bench_progress("measuring %s", name);
    begin(&s, m);
    double seconds = s.status == QDNN_STATUS_SUCCESS ? bench_best(run, &s, 0.3) / REPEATS : 0;
    if (s.status == QDNN_STATUS_SUCCESS) {
        bench_report(name, seconds * 1e6, "us", "dequantize NF4 [4096, 4096] to f16, then cuBLAS");
    } else {
        char why[512];
        qdnnGetLastErrorString(why, sizeof why);
        fprintf(stderr, "bench: matmul: %s\n", why);
    }
    end(&s);
}

void bench_matmul(void)
{
    static const int rows[] = {1, 16, 256, 4096};
    qdnnHandle_t handle;
    if (qdnnCreateOn(&handle, "cuda") != QDNN_STATUS_SUCCESS) {
        char why[512];
        qdnnGetLastErrorString(why, sizeof why);
        fprintf(stderr, "bench: matmul is not measured: %s\n", why);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        measure(handle, rows[i]);
    qdnnDestroy(handle);
}
