/* Streams: handles, settings, submitting and waiting. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Creation, lookup, deletion ---- */

CUstream stream_new(CUcontext context, unsigned flags, int priority)
{
    CUstream s = object_new(OBJECT_STREAM, sizeof *s);
    if (!s)
        return NULL;
    s->context = context;
    s->flags = flags;
    s->priority = priority;
    s->id = object_id(s);
    s->next = context->streams;
    context->streams = s;
    return s;
}

void stream_delete(CUstream stream)
{
    CUcontext context = stream->context;
    capture_forget_stream(stream);
    for (CUstream *p = &context->streams; *p; p = &(*p)->next)
        if (*p == stream) {
            *p = stream->next;
            break;
        }
    if (context->legacy == stream)
        context->legacy = NULL;
    object_forget(stream);
    free(stream->tips);
    free(stream->edges);
    free(stream);
}

static CUstream thread_stream(CUcontext context)
{
    uint64_t thread = cuda_self()->id;
    for (CUstream s = context->streams; s; s = s->next)
        if (s->thread == thread)
            return s;
    CUstream s = stream_new(context, CU_STREAM_DEFAULT, 0);
    if (s)
        s->thread = thread;
    return s;
}

CUresult stream_get(CUstream handle, CUstream *stream)
{
    CUcontext context = context_current();
    if (handle == CU_STREAM_PER_THREAD || (!handle && cuda_self()->per_thread))
        *stream = thread_stream(context);
    else if (!handle || handle == CU_STREAM_LEGACY)
        *stream = context->legacy;
    else if (!object_is(handle, OBJECT_STREAM) || handle->destroyed)
        return CUDA_ERROR_INVALID_HANDLE;
    else
        *stream = handle;
    if (!*stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return (*stream)->context->error;
}

/* A stream created by the program: the default ones cannot be destroyed. */
static bool is_own(CUstream s)
{
    return object_is(s, OBJECT_STREAM) && !s->legacy && !s->thread && !s->destroyed;
}

CUresult do_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    CUstream s = stream_new(context_current(), flags, priority);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = s;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamCreate(CUstream *stream, unsigned flags)
{
    return do_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult do_cuStreamDestroy_v2(CUstream stream)
{
    if (!is_own(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
        capture_forget_stream(stream);
    if (stream->first)
        stream->destroyed = true; /* it is freed when its work is done */
    else
        stream_delete(stream);
    return CUDA_SUCCESS;
}

/* ---- Submitting ---- */

static CUresult submit(CUstream stream, cuda_work *work)
{
    CUresult result = CUDA_SUCCESS;
    if (stream->capture)
        result = capture_add(stream, work, NULL);
    else if (stream->legacy)
        result = capture_check_legacy(stream->context);
    if (result || stream->capture) {
        work_clear(work);
        return result;
    }
    cuda_op *op = calloc(1, sizeof *op);
    if (!op) {
        work_clear(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->work = *work;
    queue_add(stream, op);
    queue_pump();
    return CUDA_SUCCESS;
}

CUresult stream_submit(CUstream stream, cuda_work *work)
{
    return submit(stream, work);
}

CUresult stream_submit_wait(CUstream stream, cuda_work *work)
{
    if (stream->capture) {
        work_clear(work);
        return capture_refuse(stream);
    }
    CUcontext context = stream->context;
    CUresult result = submit(stream, work);
    if (result)
        return result;
    return context->error ? context->error : stream_wait(stream);
}

/* ---- Waiting ---- */

/* The legacy stream is idle when everything that its next work would wait for is done. */
bool stream_idle(CUstream stream)
{
    if (stream->first)
        return false;
    for (CUstream s = stream->context->streams; s && stream->legacy; s = s->next)
        if (!(s->flags & CU_STREAM_NON_BLOCKING) && s->first)
            return false;
    return true;
}

static bool is_idle(void *user)
{
    CUstream stream = user;
    return !object_is(stream, OBJECT_STREAM) || stream_idle(stream);
}

CUresult stream_wait(CUstream stream)
{
    return queue_wait(is_idle, stream, stream->context);
}

static bool context_idle(void *user)
{
    CUcontext context = user;
    for (CUstream s = context->streams; s; s = s->next)
        if (s->first)
            return false;
    return true;
}

CUresult context_wait(CUcontext context)
{
    return queue_wait(context_idle, context, context);
}

/* A stream that can be waited for: no capture forbids it. */
static CUresult get_waitable(CUstream handle, CUstream *s)
{
    CUresult result = stream_get(handle, s);
    if (!result && (*s)->legacy)
        result = capture_check_legacy((*s)->context);
    return result ? result : capture_refuse(*s);
}

CUresult do_cuStreamSynchronize(CUstream handle)
{
    CUstream s;
    CUresult result = get_waitable(handle, &s);
    if (result)
        return result;
    CUcontext context = s->context;
    result = stream_wait(s);
    return result ? result : context_take_missed(context);
}

CUresult do_cuStreamQuery(CUstream handle)
{
    CUstream s;
    CUresult result = get_waitable(handle, &s);
    if (result)
        return result;
    CUcontext context = s->context;
    queue_pump();
    if (context->error)
        return context->error;
    return stream_idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* ---- Properties ---- */

#define STREAM_GET(name, type, member)                                                                       \
    CUresult do_cuStreamGet##name(CUstream handle, type *out)                                                \
    {                                                                                                        \
        CUstream s;                                                                                          \
        if (!out)                                                                                            \
            return CUDA_ERROR_INVALID_VALUE;                                                                 \
        CUresult result = stream_get(handle, &s);                                                            \
        if (!result)                                                                                         \
            *out = s->member;                                                                                \
        return result;                                                                                       \
    }
STREAM_GET(Priority, int, priority)
STREAM_GET(Flags, unsigned, flags)
STREAM_GET(Id, unsigned long long, id)
STREAM_GET(Ctx, CUcontext, context)

CUresult do_cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green)
{
    CUresult result = do_cuStreamGetCtx(handle, context);
    if (!result && green)
        *green = NULL;
    return result;
}

CUresult do_cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    CUstream s;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    if (!result)
        *device = s->context->device->ordinal;
    return result;
}

/* Attributes are stored and returned again; except for the priority they have no effect. */
static bool has_attribute(CUstreamAttrID id)
{
    return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
           id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

CUresult do_cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value)
{
    CUstream s;
    if (!value || !has_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    s->attributes[id] = *value;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        s->priority = value->priority;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue *value)
{
    CUstream s;
    if (!value || !has_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    *value = s->attributes[id];
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamCopyAttributes(CUstream to, CUstream from)
{
    CUstream a, b;
    CUresult result = stream_get(to, &a);
    if (!result)
        result = stream_get(from, &b);
    if (result)
        return result;
    memcpy(a->attributes, b->attributes, sizeof a->attributes);
    a->priority = b->priority;
    return CUDA_SUCCESS;
}

/* ---- Host functions ---- */

CUresult do_cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *user)
{
    CUstream s;
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    cuda_work work = {
        .type = CU_GRAPH_NODE_TYPE_HOST, .context = s->context, .host = {.fn = fn, .user = user}};
    return stream_submit(s, &work);
}

CUresult do_cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *user, unsigned flags)
{
    CUstream s;
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    if (!result)
        result = capture_refuse(s);
    if (result)
        return result;
    cuda_work work = {.type = WORK_CALLBACK,
                      .context = s->context,
                      .host = {.callback = callback, .stream = handle, .user = user}};
    return stream_submit(s, &work);
}

CUresult do_cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes, unsigned flags)
{
    CUstream s;
    const cuda_memory *m = memory_find(address);
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    if (!m || m->kind != MEMORY_MANAGED ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE))
        return CUDA_ERROR_INVALID_VALUE;
    return bytes && bytes != m->bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
