/* Events: recorded in a stream, waited for by others or by the host. An event counts its records; a wait
 * refers to the record that was the last one when the wait was queued. */
#include "internal.h"

#include <stdlib.h>
#include <time.h>

static double now_milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

void event_retain(CUevent event)
{
    event->refs++;
}

void event_release(CUevent event)
{
    if (--event->refs || !event->destroyed)
        return;
    object_forget(event);
    free(event->tips);
    free(event);
}

void event_complete(CUevent event, uint64_t record)
{
    if (record <= event->done)
        return;
    event->done = record;
    event->time = now_milliseconds();
}

CUresult event_get(CUevent event)
{
    return object_is(event, OBJECT_EVENT) && !event->destroyed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult do_cuEventCreate(CUevent *event, unsigned flags)
{
    if (!event || flags > 7 || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_INTERPROCESS)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUevent e = object_new(OBJECT_EVENT, sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->context = context_current();
    e->flags = flags;
    *event = e;
    return CUDA_SUCCESS;
}

CUresult do_cuEventDestroy_v2(CUevent event)
{
    CUresult result = event_get(event);
    if (result)
        return result;
    event->destroyed = true;
    event_retain(event);
    event_release(event);
    return CUDA_SUCCESS;
}

static CUresult event_and_stream(CUevent event, CUstream handle, CUstream *stream)
{
    CUresult result = event_get(event);
    return result ? result : stream_get(handle, stream);
}

CUresult do_cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags)
{
    CUstream s;
    CUresult result = event_and_stream(event, handle, &s);
    if (result)
        return result;
    if (flags > CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->context != event->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture && !flags)
        return capture_record(s, event);
    if (flags && !s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    cuda_work work = {
        .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .context = s->context, .event = {.event = event}};
    event_retain(event);
    if (!s->capture) {
        event->capture = NULL;
        work.event.record = ++event->recorded;
    }
    return stream_submit(s, &work);
}

CUresult do_cuEventRecord(CUevent event, CUstream stream)
{
    return do_cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult do_cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    CUstream s;
    CUresult result = event_and_stream(event, handle, &s);
    if (result)
        return result;
    if (flags > CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!flags && (s->capture || capture_alive(event->capture, event->capture_id)))
        return capture_wait(s, event);
    if (flags && !s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    cuda_work work = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                      .context = s->context,
                      .event = {.event = event, .record = event->recorded}};
    event_retain(event);
    return stream_submit(s, &work);
}

static bool is_over(void *user)
{
    CUevent event = user;
    return !object_is(event, OBJECT_EVENT) || event->done >= event->recorded;
}

CUresult do_cuEventQuery(CUevent event)
{
    CUresult result = event_get(event);
    if (!result)
        result = capture_check_event(event);
    if (result)
        return result;
    queue_pump();
    if (event->context->error)
        return event->context->error;
    return is_over(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult do_cuEventSynchronize(CUevent event)
{
    CUresult result = event_get(event);
    if (!result)
        result = capture_check_event(event);
    return result ? result : queue_wait(is_over, event, event->context);
}

CUresult do_cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (event_get(start) || event_get(end))
        return CUDA_ERROR_INVALID_HANDLE;
    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->recorded || !end->recorded ||
        start->context != end->context)
        return CUDA_ERROR_INVALID_HANDLE;
    queue_pump();
    if (!is_over(start) || !is_over(end))
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)(end->time - start->time);
    return CUDA_SUCCESS;
}
