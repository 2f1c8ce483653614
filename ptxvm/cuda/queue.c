/* The queues of all streams. Work runs as soon as it may, on the thread that queued it, always the oldest
 * first; host functions run on separate threads, so that one may wait for what the program does next.
 *
 * Order: an op waits for those before it in its stream. An op of the legacy stream also waits for every older
 * op of the blocking streams of its context, and an op of a blocking stream for every older op of the legacy
 * stream. */
#include "internal.h"
#include "ptxvm/environment.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static CUstream active; /* streams with queued work */
static uint64_t last_order;
static uint64_t progress; /* counts finished ops */
static int host_threads;  /* running host functions */

/* ---- What may run ---- */

static bool is_blocking(CUstream s)
{
    return !s->legacy && !(s->flags & CU_STREAM_NON_BLOCKING);
}

static bool in_order(CUstream stream, const cuda_op *op)
{
    if (is_blocking(stream)) {
        const cuda_op *first = stream->context->legacy ? stream->context->legacy->first : NULL;
        return !first || first->order > op->order;
    }
    if (!stream->legacy)
        return true;
    for (CUstream s = active; s; s = s->next_active)
        if (s->context == stream->context && is_blocking(s) && s->first && s->first->order < op->order)
            return false;
    return true;
}

static CUstream find_ready(void)
{
    CUstream best = NULL;
    for (CUstream s = active; s; s = s->next_active)
        if (s->first && !s->busy && (!best || s->first->order < best->first->order) &&
            in_order(s, s->first) && work_ready(&s->first->work))
            best = s;
    return best;
}

/* ---- Running ---- */

static void deactivate(CUstream stream)
{
    for (CUstream *p = &active; *p; p = &(*p)->next_active)
        if (*p == stream) {
            *p = stream->next_active;
            return;
        }
}

/* The first op is done. */
static void finish_first(CUstream stream)
{
    cuda_op *op = stream->first;
    stream->first = op->next;
    progress++;
    work_clear(&op->work);
    free(op);
    if (stream->first)
        return;
    stream->last = NULL;
    deactivate(stream);
    if (stream->destroyed && !stream->busy)
        stream_delete(stream);
}

static bool is_host(const cuda_work *work)
{
    return work->type == CU_GRAPH_NODE_TYPE_HOST || work->type == WORK_CALLBACK;
}

typedef struct host_call {
    CUstream stream;
    cuda_work work;
    CUresult status;
    pthread_t thread;
    struct host_call *next;
} host_call;

static host_call *finished; /* their threads are about to end, and must be joined */

static void call_host(const host_call *call)
{
    cuda_thread *self = cuda_self();
    self->in_callback = true;
    if (call->work.type == WORK_CALLBACK)
        call->work.host.callback(call->work.host.stream, call->status, call->work.host.user);
    else
        call->work.host.fn(call->work.host.user);
    self->in_callback = false;
}

static void *host_thread(void *argument)
{
    host_call *call = argument;
    call_host(call);
    PTXVM_DEFAULT_ENVIRONMENT(); /* the user's function may have changed it, and the work below computes */
    cuda_lock();
    call->stream->busy = false;
    finish_first(call->stream);
    queue_pump();
    host_threads--;
    call->next = finished;
    finished = call;
    cuda_signal();
    cuda_unlock();
    return NULL;
}

/* When a library is closed, no thread may be left in it: they are joined, not detached. */
static void join_finished(void)
{
    while (finished) {
        host_call *call = finished;
        finished = call->next;
        pthread_join(call->thread, NULL);
        free(call);
    }
}

static void run_host(CUstream stream)
{
    join_finished();
    host_call *call = calloc(1, sizeof *call);
    if (call) {
        call->stream = stream;
        call->work = stream->first->work;
        stream->busy = true;
        host_threads++;
        if (!pthread_create(&call->thread, NULL, host_thread, call))
            return;
        stream->busy = false;
        host_threads--;
        free(call);
    }
    CUcontext context = stream->context;
    finish_first(stream);
    context_fail(context, CUDA_ERROR_OUT_OF_MEMORY);
}

/* A kernel overlaps with the one in front of it if nothing came between them. */
static CUresult run_work(CUstream s, cuda_work *work)
{
    cuda_device *device = s->context->device;
    if (work->type != CU_GRAPH_NODE_TYPE_KERNEL) {
        s->last_launch = 0;
        return work_run(work);
    }
    work->kernel.programmatic &= s->last_launch && s->last_launch == device->launches;
    s->last_launch = ++device->launches;
    return work_run(work);
}

void queue_pump(void)
{
    for (CUstream s; (s = find_ready());) {
        if (is_host(&s->first->work)) {
            run_host(s);
            continue;
        }
        /* The op stays first while it runs, so that nothing overtakes it. */
        CUcontext context = s->context;
        CUresult result = run_work(s, &s->first->work);
        finish_first(s);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) /* the context is not affected */
            context->missed = result;
        else if (result)
            context_fail(context, result);
    }
    cuda_signal();
}

void queue_add(CUstream stream, cuda_op *op)
{
    op->order = ++last_order;
    op->next = NULL;
    if (stream->last)
        stream->last->next = op;
    else {
        stream->first = op;
        stream->next_active = active;
        active = stream;
    }
    stream->last = op;
}

/* ---- Dropping work ---- */

/* Events count as completed, so that nobody waits for them; callbacks are told the error. */
static void drop_op(CUstream stream, cuda_op *op, CUresult error)
{
    if (op->work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        event_complete(op->work.event.event, op->work.event.record);
    if (op->work.type == WORK_CALLBACK) {
        host_call call = {.stream = stream, .work = op->work, .status = error};
        cuda_unlock();
        call_host(&call);
        cuda_lock();
    }
    work_clear(&op->work);
    free(op);
    progress++;
}

static void drop_stream(CUstream stream, CUresult error)
{
    while (stream->busy)
        cuda_pause();
    cuda_op *op = stream->first;
    stream->first = stream->last = NULL;
    deactivate(stream);
    while (op) {
        cuda_op *next = op->next;
        drop_op(stream, op, error);
        op = next;
    }
}

void queue_drop(CUcontext context, CUresult error)
{
    bool again = true;
    while (again) {
        again = false;
        for (CUstream s = active; s && !again; s = s->next_active)
            if (s->context == context) {
                drop_stream(s, error);
                again = true;
            }
    }
    cuda_signal();
}

void queue_quiet(void)
{
    while (host_threads)
        cuda_pause();
    join_finished();
}

/* ---- Waiting ---- */

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

CUresult queue_wait(bool (*done)(void *user), void *user, CUcontext context)
{
    uint64_t id = context->id, seen = progress;
    double since = now_seconds();
    for (;;) {
        queue_pump();
        if (!context_is(context) || context->id != id)
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        if (context->error)
            return context->error;
        if (done(user))
            return CUDA_SUCCESS;
        cuda_pause();
        if (progress != seen || host_threads) {
            seen = progress;
            since = now_seconds();
        } else if (now_seconds() - since > (double)cuda.wait_seconds) {
            cuda_log(CUDA_ERROR_LAUNCH_TIMEOUT,
                     "a stream has waited for a value for %llu seconds, and nothing wrote it (PTXVM_WAIT)",
                     (unsigned long long)cuda.wait_seconds);
            context_fail(context, CUDA_ERROR_LAUNCH_TIMEOUT);
            return CUDA_ERROR_LAUNCH_TIMEOUT;
        }
    }
}
