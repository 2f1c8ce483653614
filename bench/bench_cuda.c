/* The cost of ptxvm's CUDA driver API: launches of an empty kernel, graphs of them, copies. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "ptxvm/cuda/internal.h"

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry empty(.param .u64 p) { ret; }\n";

typedef struct scene {
    CUcontext context;
    CUmodule module;
    CUfunction empty;
    CUgraphExec exec;
    CUdeviceptr a, b;
    void *host;
    size_t bytes;
    CUresult result; /* result of the first call that failed */
} scene;

static void keep(scene *s, CUresult result)
{
    if (!s->result)
        s->result = result;
}

static void launch(void *argument)
{
    scene *s = argument;
    void *params[] = {&s->a};
    for (int i = 0; i < 100; i++)
        keep(s, ptxvm_cuLaunchKernel(s->empty, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    keep(s, ptxvm_cuCtxSynchronize());
}

static void launch_graph(void *argument)
{
    scene *s = argument;
    keep(s, ptxvm_cuGraphLaunch(s->exec, NULL));
    keep(s, ptxvm_cuCtxSynchronize());
}

static void copy_in(void *argument)
{
    scene *s = argument;
    keep(s, ptxvm_cuMemcpyHtoD_v2(s->a, s->host, s->bytes));
}

static void copy_out(void *argument)
{
    scene *s = argument;
    keep(s, ptxvm_cuMemcpyDtoH_v2(s->host, s->a, s->bytes));
}

static void copy_over(void *argument)
{
    scene *s = argument;
    keep(s, ptxvm_cuMemcpyDtoD_v2(s->b, s->a, s->bytes));
}

/* A graph of a hundred launches. */
static void make_graph(scene *s)
{
    CUstream stream = NULL;
    CUgraph graph = NULL;
    void *params[] = {&s->a};
    keep(s, ptxvm_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    keep(s, ptxvm_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 100; i++)
        keep(s, ptxvm_cuLaunchKernel(s->empty, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    keep(s, ptxvm_cuStreamEndCapture(stream, &graph));
    keep(s, ptxvm_cuGraphInstantiateWithFlags(&s->exec, graph, 0));
}

static void begin(scene *s)
{
    keep(s, ptxvm_cuInit(0));
    keep(s, ptxvm_cuCtxCreate_v2(&s->context, 0, 0));
    keep(s, ptxvm_cuModuleLoadData(&s->module, ptx));
    keep(s, ptxvm_cuModuleGetFunction(&s->empty, s->module, "empty"));
    s->bytes = (size_t)16 << 20;
    s->host = calloc(1, s->bytes);
    keep(s, s->host ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
    keep(s, ptxvm_cuMemAlloc_v2(&s->a, s->bytes));
    keep(s, ptxvm_cuMemAlloc_v2(&s->b, s->bytes));
    make_graph(s);
}

static void report_copy(scene *s, const char *name, void (*work)(void *))
{
    bench_progress("measuring %s", name);
    work(s); /* warm up: touches the pages */
    bench_report(name, (double)s->bytes / bench_best(work, s, 0.2) * 1e-9, "GB/s", "16 MiB");
}

void bench_cuda(void)
{
    scene s = {0};
    begin(&s);
    if (!s.result) {
        bench_progress("measuring launches");
        bench_report("cuda.launch.us", bench_best(launch, &s, 0.3) * 1e6 / 100, "us",
                     "an empty kernel, one warp");
        bench_report("cuda.graph_node.us", bench_best(launch_graph, &s, 0.3) * 1e6 / 100, "us",
                     "the same as a node of a graph");
        report_copy(&s, "cuda.copy_in.GBps", copy_in);
        report_copy(&s, "cuda.copy_out.GBps", copy_out);
        report_copy(&s, "cuda.copy_over.GBps", copy_over);
    }
    if (s.result)
        fprintf(stderr, "bench: the driver API failed with code %d\n", (int)s.result);
    ptxvm_cuda_shutdown();
    free(s.host);
}
