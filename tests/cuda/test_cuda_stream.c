/* Streams and events: order, waiting, host functions, values. A stream is held back by a wait for a value, so
 * that what is queued behind it stays pending until the test lets it go. */
#include <pthread.h>
#include <string.h>

#include "driver.h"

typedef struct scene {
    CUmodule module;
    CUfunction bump;
    CUdeviceptr out; /* bump(out, digit): out = 10 * out + digit, so that the digits tell the order */
    CUdeviceptr gate;
    CUstream a, b, free_one;
} scene;

static bool begin(scene *s, const char *settings)
{
    *s = (scene){0};
    if (!driver_open_context(settings))
        return false;
    s->bump = test_function(&s->module, "bump");
    s->out = new_u32(1, 0);
    s->gate = new_u32(2, 0);
    CU(cu.cuStreamCreate(&s->a, CU_STREAM_DEFAULT));
    CU(cu.cuStreamCreateWithPriority(&s->b, CU_STREAM_DEFAULT, -2));
    return CU(cu.cuStreamCreate(&s->free_one, CU_STREAM_NON_BLOCKING));
}

static void bump(scene *s, CUstream stream, uint32_t digit)
{
    void *params[] = {&s->out, &digit};
    CU(launch_one(s->bump, stream, params));
}

static void hold(scene *s, CUstream stream)
{
    CU(cu.cuStreamWaitValue32_v2(stream, s->gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void release(scene *s)
{
    CU(cu.cuStreamWriteValue32_v2(s->free_one, s->gate, 1, 0));
}

/* The value without waiting for anything. */
static uint32_t peek(scene *s)
{
    uint32_t value = 0;
    CU(cu.cuMemcpyDtoHAsync_v2(&value, s->out, 4, s->free_one));
    return value;
}

TEST_CASE(CudaStream, WorkWaitsItsTurn)
{
    scene s;
    REQUIRE(begin(&s, NULL));
    hold(&s, s.a);
    bump(&s, s.a, 1);
    bump(&s, s.a, 2);
    bump(&s, s.b, 3); /* another stream goes ahead */
    CHECK_EQ_U32(peek(&s), 3);
    CU_IS(cu.cuStreamQuery(s.a), CUDA_ERROR_NOT_READY);
    CU(cu.cuStreamQuery(s.b));
    release(&s);
    CU(cu.cuStreamSynchronize(s.a));
    CU(cu.cuStreamQuery(s.a));
    CHECK_EQ_U32(peek(&s), 312);
    driver_close();
}

TEST_CASE(CudaStream, TheLegacyStreamWaitsForBlockingOnes)
{
    scene s;
    REQUIRE(begin(&s, NULL));
    hold(&s, s.a);
    bump(&s, s.a, 1);
    bump(&s, NULL, 2);       /* after all that was queued on a */
    bump(&s, s.b, 3);        /* after the legacy stream's */
    bump(&s, s.free_one, 4); /* waits for nobody */
    CHECK_EQ_U32(peek(&s), 4);
    CU_IS(cu.cuStreamQuery(s.b), CUDA_ERROR_NOT_READY);
    CU_IS(cu.cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    release(&s);
    CU(cu.cuCtxSynchronize());
    CHECK_EQ_U32(peek(&s), 4123);
    driver_close();
}

TEST_CASE(CudaStream, TheThreadsOwnDefaultStream)
{
    scene s;
    CUstream mine;
    uint32_t digit = 2;
    REQUIRE(begin(&s, NULL));
    void *params[] = {&s.out, &digit};
    hold(&s, s.a);
    bump(&s, s.a, 1);
    CU(cu.cuLaunchKernel_ptsz(s.bump, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)); /* not the legacy stream */
    CHECK_EQ_U32(peek(&s), 2);
    bump(&s, CU_STREAM_PER_THREAD, 3);
    CU(cu.cuStreamSynchronize_ptsz(NULL));
    CHECK_EQ_U32(peek(&s), 23);
    bump(&s, CU_STREAM_LEGACY, 4);
    bump(&s, CU_STREAM_PER_THREAD, 5); /* behind the legacy stream */
    CHECK_EQ_U32(peek(&s), 23);
    mine = NULL;
    CU_IS(cu.cuStreamDestroy_v2(mine), CUDA_ERROR_INVALID_HANDLE);
    CU_IS(cu.cuStreamDestroy_v2(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
    release(&s);
    CU(cu.cuCtxSynchronize());
    CHECK_EQ_U32(peek(&s), 23145);
    driver_close();
}

TEST_CASE(CudaStream, EventsOrderStreams)
{
    scene s;
    CUevent e, other;
    float ms = -1;
    REQUIRE(begin(&s, NULL));
    CU(cu.cuEventCreate(&e, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    CU(cu.cuEventQuery(e)); /* never recorded */
    CU(cu.cuStreamWaitEvent(s.b, e, 0));
    hold(&s, s.a);
    bump(&s, s.a, 1);
    CU(cu.cuEventRecord(e, s.a));
    CU(cu.cuStreamWaitEvent(s.b, e, 0));
    bump(&s, s.b, 2);
    bump(&s, s.free_one, 3);
    CU_IS(cu.cuEventQuery(e), CUDA_ERROR_NOT_READY);
    CHECK_EQ_U32(peek(&s), 3);
    CU(cu.cuStreamDestroy_v2(s.a)); /* its work goes on */
    release(&s);
    CU(cu.cuEventSynchronize(e));
    CU(cu.cuStreamSynchronize(s.b));
    CHECK_EQ_U32(peek(&s), 312);
    CU_IS(cu.cuStreamQuery(s.a), CUDA_ERROR_INVALID_HANDLE);
    CUevent second;
    CU(cu.cuEventCreate(&second, CU_EVENT_DEFAULT));
    CU(cu.cuEventRecord(second, s.b));
    CU(cu.cuEventElapsedTime_v2(&ms, e, second));
    CHECK(ms >= 0);
    CU(cu.cuEventRecord(other, s.b));
    CU_IS(cu.cuEventElapsedTime_v2(&ms, e, other), CUDA_ERROR_INVALID_HANDLE);
    CU(cu.cuEventDestroy_v2(e));
    CU_IS(cu.cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
    CU_IS(cu.cuEventCreate(&e, 64), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

static void *write_gate(void *gate)
{
    __atomic_store_n((uint32_t *)gate, 5, __ATOMIC_RELEASE);
    return NULL;
}

TEST_CASE(CudaStream, AThreadOfTheHostWritesTheValue)
{
    scene s;
    pthread_t thread;
    uint32_t *gate;
    REQUIRE(begin(&s, NULL));
    CU(cu.cuMemAllocHost_v2((void **)&gate, 4));
    *gate = 0;
    CU(cu.cuStreamWaitValue32_v2(s.a, (CUdeviceptr)(uintptr_t)gate, 5, CU_STREAM_WAIT_VALUE_EQ));
    bump(&s, s.a, 1);
    CHECK_EQ_U32(peek(&s), 0);
    pthread_create(&thread, NULL, write_gate, gate);
    CU(cu.cuStreamSynchronize(s.a));
    pthread_join(thread, NULL);
    CHECK_EQ_U32(peek(&s), 1);
    driver_close();
}

TEST_CASE(CudaStream, AWaitThatNobodyEndsIsAnError)
{
    scene s;
    REQUIRE(begin(&s, "PTXVM_WAIT=1"));
    hold(&s, s.a);
    CU_IS(cu.cuStreamSynchronize(s.a), CUDA_ERROR_LAUNCH_TIMEOUT);
    CU_IS(cu.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
    driver_close();
}

TEST_CASE(CudaStream, ValuesOfEveryKind)
{
    scene s;
    REQUIRE(begin(&s, NULL));
    CUdeviceptr p = new_u32(4, 0);
    CU(cu.cuStreamWriteValue64_v2(s.a, p, UINT64_C(0x1122334455667788), 0));
    CHECK_EQ_U32(read_u32(p), 0x55667788);
    CHECK_EQ_U32(read_u32(p + 4), 0x11223344);
    CU(cu.cuStreamWaitValue64_v2(s.a, p, UINT64_C(0x1122334455667788), CU_STREAM_WAIT_VALUE_EQ));
    CU(cu.cuStreamWaitValue32_v2(s.a, p, 8, CU_STREAM_WAIT_VALUE_AND));
    CU(cu.cuStreamWaitValue32_v2(s.a, p, 0, CU_STREAM_WAIT_VALUE_NOR));
    CU(cu.cuStreamQuery(s.a));
    CU_IS(cu.cuStreamWaitValue64_v2(s.a, p + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuStreamWriteValue32_v2(s.a, 0x1000, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CUstreamBatchMemOpParams ops[3] = {
        {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = p, .value = 1}},
        {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = s.gate, .value = 1}},
        {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = p, .value = 2}}};
    CU(cu.cuStreamBatchMemOp_v2(s.a, 3, ops, 0));
    uint32_t value;
    CU(cu.cuMemcpyDtoHAsync_v2(&value, p, 4, s.free_one));
    CHECK_EQ_U32(value, 1);
    release(&s);
    CU(cu.cuStreamSynchronize(s.a));
    CHECK_EQ_U32(read_u32(p), 2);
    driver_close();
}

/* ---- Host functions ---- */

typedef struct host_scene {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool go;
    int calls;
    CUresult inside, status;
    CUstream stream;
} host_scene;

static void on_host(void *user)
{
    host_scene *h = user;
    CUcontext context;
    pthread_mutex_lock(&h->lock);
    while (!h->go) /* the program frees it after it was queued */
        pthread_cond_wait(&h->moved, &h->lock);
    h->calls++;
    h->inside = cu.cuCtxGetCurrent(&context);
    pthread_mutex_unlock(&h->lock);
}

static void on_callback(CUstream stream, CUresult status, void *user)
{
    host_scene *h = user;
    h->stream = stream;
    h->status = status;
    h->calls++;
}

TEST_CASE(CudaStream, HostFunctions)
{
    scene s;
    host_scene h = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    REQUIRE(begin(&s, NULL));
    CU(cu.cuLaunchHostFunc(s.a, on_host, &h));
    bump(&s, s.a, 1);
    CHECK_EQ_U32(peek(&s), 0);
    CU_IS(cu.cuStreamQuery(s.a), CUDA_ERROR_NOT_READY);
    pthread_mutex_lock(&h.lock);
    h.go = true;
    pthread_cond_signal(&h.moved);
    pthread_mutex_unlock(&h.lock);
    CU(cu.cuStreamSynchronize(s.a));
    CHECK_EQ_U32(peek(&s), 1);
    CHECK_EQ_I64(h.calls, 1);
    CHECK_EQ_I64(h.inside, CUDA_ERROR_NOT_PERMITTED);
    CU(cu.cuStreamAddCallback(s.b, on_callback, &h, 0));
    CU(cu.cuStreamSynchronize(s.b));
    CHECK_EQ_I64(h.calls, 2);
    CHECK(h.stream == s.b && h.status == CUDA_SUCCESS);
    CU_IS(cu.cuLaunchHostFunc(s.a, NULL, &h), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

TEST_CASE(CudaStream, WhatAStreamSays)
{
    scene s;
    int priority = 9, least, greatest;
    unsigned flags = 9;
    unsigned long long a = 0, b = 0;
    CUcontext context = NULL;
    CUdevice device = -1;
    REQUIRE(begin(&s, NULL));
    CU(cu.cuStreamGetPriority(s.b, &priority));
    CHECK_EQ_I64(priority, -2);
    CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(greatest < least);
    CU(cu.cuStreamGetFlags(s.free_one, &flags));
    CHECK_EQ_U32(flags, CU_STREAM_NON_BLOCKING);
    CU(cu.cuStreamGetId(s.a, &a));
    CU(cu.cuStreamGetId(NULL, &b));
    CHECK(a != b);
    CU(cu.cuStreamGetCtx(s.a, &context));
    CHECK(context == driver_context);
    CU(cu.cuStreamGetDevice(s.a, &device));
    CHECK_EQ_I64(device, 0);
    CU_IS(cu.cuStreamGetFlags((CUstream)&s, &flags), CUDA_ERROR_INVALID_HANDLE);
    CU_IS(cu.cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuStreamCreate(&s.a, 7), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}
