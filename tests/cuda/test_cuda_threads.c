/* Sixteen threads of the host, on contexts of their own and on one that they share. */
#include <pthread.h>
#include <string.h>

#include "driver.h"

#define THREADS 16
#define ROUNDS  20

typedef struct worker {
    pthread_t thread;
    CUcontext shared; /* null: a context of its own */
    uint32_t number;
    CUresult failed;
    bool wrong;
} worker;

/* Checks in a thread are counted, and reported by the test's own thread. */
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        CUresult r_ = (call);                                                                                \
        if (r_ && !w->failed)                                                                                \
            w->failed = r_;                                                                                  \
    } while (0)

static void on_host(void *user)
{
    __atomic_add_fetch((uint32_t *)user, 1, __ATOMIC_RELAXED);
}

static void round_trip(worker *w, CUfunction add, CUstream stream, uint32_t value)
{
    CUdeviceptr in = 0, out = 0;
    CUevent event = NULL;
    uint32_t host[64], n = 64, calls = 0;
    TRY(cu.cuMemAlloc_v2(&in, sizeof host));
    TRY(cu.cuMemAllocAsync(&out, sizeof host, stream));
    TRY(cu.cuEventCreate(&event, 0));
    TRY(cu.cuMemsetD32Async(in, value, 64, stream));
    void *params[] = {&out, &in, &w->number, &n};
    TRY(cu.cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    TRY(cu.cuLaunchHostFunc(stream, on_host, &calls));
    TRY(cu.cuMemcpyDtoHAsync_v2(host, out, sizeof host, stream));
    TRY(cu.cuEventRecord(event, stream));
    TRY(cu.cuEventSynchronize(event));
    for (int i = 0; i < 64; i++)
        w->wrong |= host[i] != value + w->number;
    w->wrong |= calls != 1;
    TRY(cu.cuMemFreeAsync(out, stream));
    TRY(cu.cuMemFree_v2(in));
    TRY(cu.cuEventDestroy_v2(event));
}

static void *work(void *argument)
{
    worker *w = argument;
    CUcontext own = NULL;
    CUmodule module = NULL;
    CUfunction add = NULL;
    CUstream stream = NULL;
    if (w->shared)
        TRY(cu.cuCtxSetCurrent(w->shared));
    else
        TRY(cu.cuCtxCreate_v2(&own, 0, (CUdevice)(w->number % 2)));
    TRY(cu.cuModuleLoadData(&module, test_ptx));
    TRY(cu.cuModuleGetFunction(&add, module, "add"));
    TRY(cu.cuStreamCreate(&stream, w->number % 3 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    for (uint32_t i = 0; i < ROUNDS && !w->failed; i++)
        round_trip(w, add, i % 4 ? stream : CU_STREAM_PER_THREAD, 1000 * i);
    TRY(cu.cuStreamSynchronize(stream));
    TRY(cu.cuStreamDestroy_v2(stream));
    TRY(cu.cuModuleUnload(module));
    if (own)
        TRY(cu.cuCtxDestroy_v2(own));
    return NULL;
}

static void run_all(CUcontext shared)
{
    worker workers[THREADS];
    memset(workers, 0, sizeof workers);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].shared = shared;
        workers[i].number = i;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CU(workers[i].failed);
        CHECK(!workers[i].wrong);
    }
}

TEST_CASE(CudaThreads, ContextsOfTheirOwn)
{
    REQUIRE(driver_open("PTXVM_DEVICES=2 PTXVM_THREADS=2"));
    run_all(NULL);
    driver_close();
}

TEST_CASE(CudaThreads, OneContext)
{
    REQUIRE(driver_open_context("PTXVM_THREADS=2"));
    run_all(driver_context);
    driver_close();
}
