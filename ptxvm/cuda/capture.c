/* Capture: work submitted to streams becomes nodes of a graph. A capture begins in one stream and spreads to
 * others through events. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static cuda_capture *captures;
static uint64_t last_id;

/* ---- The tips: what the next node of a stream depends on ---- */

static bool grow_tips(CUstream s, size_t n)
{
    if (n <= s->tip_capacity)
        return true;
    size_t capacity = 2 * s->tip_capacity + 4 > n ? 2 * s->tip_capacity + 4 : n;
    CUgraphEdgeData *edges = calloc(capacity, sizeof *edges);
    CUgraphNode *tips = edges ? realloc(s->tips, capacity * sizeof *tips) : NULL;
    if (!tips) {
        free(edges);
        return false;
    }
    free(s->edges);
    s->edges = edges;
    s->tips = tips;
    s->tip_capacity = capacity;
    return true;
}

static CUresult set_tips(CUstream s, const CUgraphNode *tips, size_t n)
{
    if (!grow_tips(s, n))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (n)
        memmove(s->tips, tips, n * sizeof *tips);
    s->n_tips = n;
    return CUDA_SUCCESS;
}

static CUresult add_tip(CUstream s, CUgraphNode tip)
{
    for (size_t i = 0; i < s->n_tips; i++)
        if (s->tips[i] == tip)
            return CUDA_SUCCESS;
    if (!grow_tips(s, s->n_tips + 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->tips[s->n_tips++] = tip;
    return CUDA_SUCCESS;
}

/* ---- Which captures exist ---- */

bool capture_alive(const cuda_capture *capture, uint64_t id)
{
    for (const cuda_capture *c = captures; c && capture; c = c->next)
        if (c == capture && c->id == id)
            return true;
    return false;
}

static void leave_stream(void *object, void *user)
{
    CUstream s = object;
    if (s->capture == user) {
        s->capture = NULL;
        s->n_tips = 0;
    }
}

static void capture_delete(cuda_capture *capture)
{
    object_each(OBJECT_STREAM, leave_stream, capture);
    for (cuda_capture **p = &captures; *p; p = &(*p)->next)
        if (*p == capture) {
            *p = capture->next;
            break;
        }
    free(capture->loose);
    free(capture);
}

/* The stream's work must still be joined, through an event that was recorded before. */
static void add_unjoined(cuda_capture *c, CUstream stream)
{
    CUgraphNode *more = realloc(c->loose, (c->n_loose + stream->n_tips + 1) * sizeof *more);
    if (!more) {
        c->invalid = true;
        return;
    }
    c->loose = more;
    for (size_t i = 0; i < stream->n_tips; i++)
        more[c->n_loose++] = stream->tips[i];
}

void capture_forget_stream(CUstream stream)
{
    cuda_capture *c = stream->capture;
    if (!c)
        return;
    if (c->origin != stream) {
        add_unjoined(c, stream);
        stream->capture = NULL;
        return;
    }
    c->graph->capturing = false;
    if (c->own_graph)
        graph_delete(c->graph);
    capture_delete(c);
}

void captures_clear(void)
{
    while (captures)
        capture_forget_stream(captures->origin);
}

/* ---- What is rejected ---- */

CUresult capture_check_unsafe(void)
{
    const cuda_thread *self = cuda_self();
    CUresult result = CUDA_SUCCESS;
    if (self->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (cuda_capture *c = captures; c; c = c->next) {
        bool mine = c->thread == self->id && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool global =
            c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && self->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!mine && !global)
            continue;
        c->invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

bool capture_blocks_legacy(CUcontext context)
{
    for (CUstream s = captures ? context->streams : NULL; s; s = s->next)
        if (s->capture && !(s->flags & CU_STREAM_NON_BLOCKING))
            return true;
    return false;
}

CUresult capture_check_legacy(CUcontext context)
{
    CUresult result = CUDA_SUCCESS;
    for (CUstream s = captures ? context->streams : NULL; s; s = s->next)
        if (s->capture && !(s->flags & CU_STREAM_NON_BLOCKING)) {
            s->capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return result;
}

CUresult capture_refuse(CUstream stream)
{
    if (!stream->capture)
        return CUDA_SUCCESS;
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_check_event(CUevent event)
{
    if (!capture_alive(event->capture, event->capture_id))
        return CUDA_SUCCESS;
    event->capture->invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

/* ---- What is captured ---- */

/* A kernel that may begin early needs the kernel in front of it by a programmatic edge. */
static CUgraphEdgeData edge_of(CUgraphNode tip, const cuda_work *work)
{
    bool early = work->type == CU_GRAPH_NODE_TYPE_KERNEL && work->kernel.programmatic &&
                 tip->work.type == CU_GRAPH_NODE_TYPE_KERNEL;
    return early ? graph_programmatic_edge : (CUgraphEdgeData){0};
}

CUresult capture_add(CUstream stream, const cuda_work *work, CUgraphNode *node)
{
    cuda_capture *c = stream->capture;
    CUgraphNode made;
    cuda_work copy;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (size_t i = 0; i < stream->n_tips; i++)
        stream->edges[i] = edge_of(stream->tips[i], work);
    CUresult result = work_copy(&copy, work);
    if (!result)
        result = graph_add_edges(c->graph, stream->tips, stream->edges, stream->n_tips, &copy, &made);
    for (size_t i = 0; i < stream->n_tips; i++)
        stream->edges[i] = (CUgraphEdgeData){0};
    if (!result)
        result = set_tips(stream, &made, 1);
    if (result)
        c->invalid = true;
    else if (node)
        *node = made;
    return result;
}

CUresult capture_record(CUstream stream, CUevent event)
{
    cuda_capture *c = stream->capture;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraphNode *tips = malloc((stream->n_tips + 1) * sizeof *tips);
    if (!tips)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(tips, stream->tips ? stream->tips : tips, stream->n_tips * sizeof *tips);
    free(event->tips);
    event->tips = tips;
    event->n_tips = stream->n_tips;
    event->capture = c;
    event->capture_id = c->id;
    return CUDA_SUCCESS;
}

CUresult capture_wait(CUstream stream, CUevent event)
{
    cuda_capture *from = capture_alive(event->capture, event->capture_id) ? event->capture : NULL;
    if (stream->capture && stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!from) { /* a captured stream may not wait for work outside */
        if (!event->recorded)
            return CUDA_SUCCESS;
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (from->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != from) {
        stream->capture->invalid = from->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream->legacy) {
        from->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!stream->capture) {
        stream->capture = from;
        stream->n_tips = 0;
    }
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < event->n_tips && !result; i++)
        if (object_is(event->tips[i], OBJECT_NODE))
            result = add_tip(stream, event->tips[i]);
    return result;
}

/* ---- Begin and end ---- */

static CUresult begin(CUstream handle, CUgraph graph, const CUgraphNode *needs, size_t n,
                      CUstreamCaptureMode mode)
{
    CUstream s;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    cuda_capture *c = calloc(1, sizeof *c);
    if (c) {
        c->own_graph = !graph;
        c->graph = graph ? graph : graph_new();
    }
    if (!c || !c->graph || set_tips(s, needs, n)) {
        if (c && c->own_graph && c->graph)
            graph_delete(c->graph);
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->id = ++last_id;
    c->thread = cuda_self()->id;
    c->mode = mode;
    c->origin = s;
    c->graph->capturing = true;
    c->next = captures;
    captures = c;
    s->capture = c;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return begin(stream, NULL, NULL, 0, mode);
}

CUresult do_cuStreamBeginCapture(CUstream stream)
{
    return begin(stream, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult do_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *needs,
                                        const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode)
{
    (void)edges;
    if (!object_is(graph, OBJECT_GRAPH) || (n && !needs))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (!object_is(needs[i], OBJECT_NODE) || needs[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    return begin(stream, graph, needs, n, mode);
}

typedef struct join_query {
    cuda_capture *capture;
    bool unjoined;
} join_query;

static bool is_joined(CUstream origin, CUgraphNode node)
{
    for (size_t i = 0; i < origin->n_tips; i++)
        if (origin->tips[i] == node || node_depends(origin->tips[i], node))
            return true;
    return false;
}

static void ask_joined(void *object, void *user)
{
    CUstream s = object;
    join_query *q = user;
    if (s->capture != q->capture || s == q->capture->origin)
        return;
    for (size_t i = 0; i < s->n_tips; i++)
        q->unjoined |= !is_joined(q->capture->origin, s->tips[i]);
}

CUresult do_cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    CUstream s;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_capture *c = s->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != cuda_self()->id)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (c->origin != s) {
        c->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    join_query q = {c, false};
    if (!c->invalid)
        object_each(OBJECT_STREAM, ask_joined, &q);
    for (size_t i = 0; i < c->n_loose && !c->invalid; i++)
        q.unjoined |= !is_joined(s, c->loose[i]);
    result = c->invalid   ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
             : q.unjoined ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                          : CUDA_SUCCESS;
    c->graph->capturing = false;
    *graph = result ? NULL : c->graph;
    if (result && c->own_graph)
        graph_delete(c->graph);
    capture_delete(c);
    return result;
}

/* ---- Queries ---- */

static CUstreamCaptureStatus status_of(const cuda_capture *c)
{
    return !c           ? CU_STREAM_CAPTURE_STATUS_NONE
           : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult do_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUstream s;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    if (!result && s->legacy && capture_blocks_legacy(s->context)) /* the capture continues */
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (!result)
        *status = status_of(s->capture);
    return result;
}

CUresult do_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                      CUgraph *graph, const CUgraphNode **needs,
                                      const CUgraphEdgeData **edges, size_t *n)
{
    CUresult result = do_cuStreamIsCapturing(handle, status);
    CUstream s;
    if (!result)
        result = stream_get(handle, &s);
    if (result || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return result;
    if (id)
        *id = s->capture->id;
    if (graph)
        *graph = s->capture->graph;
    if (needs)
        *needs = s->tips;
    if (edges)
        *edges = s->edges;
    if (n)
        *n = s->n_tips;
    return CUDA_SUCCESS;
}

CUresult do_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                      CUgraph *graph, const CUgraphNode **needs, size_t *n)
{
    return do_cuStreamGetCaptureInfo_v3(stream, status, id, graph, needs, NULL, n);
}

CUresult do_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return do_cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

CUresult do_cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *needs,
                                                 const CUgraphEdgeData *edges, size_t n, unsigned flags)
{
    CUstream s;
    (void)edges;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    if (!s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if ((n && !needs) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (!object_is(needs[i], OBJECT_NODE) || needs[i]->graph != s->capture->graph)
            return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return set_tips(s, needs, n);
    for (size_t i = 0; i < n && !result; i++)
        result = add_tip(s, needs[i]);
    return result;
}

CUresult do_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *needs, size_t n, unsigned flags)
{
    return do_cuStreamUpdateCaptureDependencies_v2(stream, needs, NULL, n, flags);
}

CUresult do_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    cuda_thread *self = cuda_self();
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode old = self->capture_mode;
    self->capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
