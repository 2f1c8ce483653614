/* Instantiated graphs: a private copy, launched as the work of its nodes in a fixed order. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags,
                            CUgraphInstantiateResult *why)
{
    *why = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (!out || !object_is(graph, OBJECT_GRAPH) || graph->capturing || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUgraphExec e = object_new(OBJECT_EXEC, sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    e->context = context_current();
    e->graph = graph_clone(graph);
    e->order = e->graph ? graph_order(e->graph) : NULL;
    if (!e->order) {
        *why = e->graph ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE : CUDA_GRAPH_INSTANTIATE_ERROR;
        CUresult result = e->graph ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
        do_cuGraphExecDestroy(e);
        return result;
    }
    *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *out = e;
    return CUDA_SUCCESS;
}

CUresult do_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUgraphInstantiateResult unused;
    return instantiate(exec, graph, flags, &unused);
}

CUresult do_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error, char *log, size_t size)
{
    CUgraphInstantiateResult unused;
    if (error)
        *error = NULL;
    if (log && size)
        *log = 0;
    return instantiate(exec, graph, 0, &unused);
}

CUresult do_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    params->hErrNode_out = NULL;
    return instantiate(exec, graph, params->flags, &params->result_out);
}

CUresult do_cuGraphExecDestroy(CUgraphExec exec)
{
    if (!object_is(exec, OBJECT_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    object_forget(exec);
    if (exec->graph)
        graph_delete(exec->graph);
    free(exec->order);
    free(exec);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    if (!flags || !object_is(exec, OBJECT_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

/* ---- Launch ---- */

static CUresult submit_graph(CUgraph graph, CUgraphNode *order, CUstream stream);

/* `previous`: what the graph has submitted last; null: nothing yet. */
static CUresult submit_node(CUgraphNode node, CUgraphNode previous, CUstream stream)
{
    if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraphNode *order = graph_order(node->work.child);
        CUresult result = order ? submit_graph(node->work.child, order, stream) : CUDA_ERROR_INVALID_VALUE;
        free(order);
        return result;
    }
    cuda_work work;
    CUresult result = work_copy(&work, &node->work);
    if (result)
        return result;
    if (work.type == CU_GRAPH_NODE_TYPE_KERNEL)
        work.kernel.programmatic = previous && node_may_overlap(node, previous);
    if (!context_is(work.context))
        work.context = stream->context;
    if (work.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        work.event.record = ++work.event.event->recorded;
    else if (work.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        work.event.record = work.event.event->recorded;
    return stream_submit(stream, &work);
}

/* The graph may be destroyed before its launch has finished. */
static CUresult submit_hold(CUgraph graph, CUstream stream)
{
    cuda_work work = {.type = WORK_HOLD, .context = stream->context, .hold = {.n = graph->n_users}};
    CUresult result = user_objects_copy(graph->users, graph->n_users, &work.hold.users);
    return result ? result : stream_submit(stream, &work);
}

static CUresult submit_graph(CUgraph graph, CUgraphNode *order, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    CUgraphNode previous = NULL;
    for (size_t i = 0; i < graph->n_nodes && !result; i++)
        if (!order[i]->disabled) {
            result = submit_node(order[i], previous, stream);
            previous = order[i];
            result = result ? result : context_take_missed(stream->context);
        }
    return result || !graph->n_users ? result : submit_hold(graph, stream);
}

CUresult do_cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    CUstream s;
    if (!object_is(exec, OBJECT_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_get(handle, &s);
    if (result)
        return result;
    if (s->capture) { /* a captured launch becomes a child graph */
        cuda_work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .context = s->context, .child = exec->graph};
        return capture_add(s, &work, NULL);
    }
    return submit_graph(exec->graph, exec->order, s);
}

CUresult do_cuGraphUpload(CUgraphExec exec, CUstream handle)
{
    CUstream s;
    return object_is(exec, OBJECT_EXEC) ? stream_get(handle, &s) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Update ---- */

static CUgraphExecUpdateResult compare_nodes(CUgraphNode a, CUgraphNode b)
{
    if (a->work.type != b->work.type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (a->n_needs != b->n_needs)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < a->n_needs; i++)
        if (a->needs[i]->index != b->needs[i]->index ||
            memcmp(&a->edges[i], &b->edges[i], sizeof *a->edges) != 0)
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (a->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || a->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return a->work.memory.address == b->work.memory.address ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                                : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUgraphExecUpdateResult compare(CUgraph mine, CUgraph graph, CUgraphNode *error)
{
    *error = NULL;
    if (mine->n_nodes != graph->n_nodes)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < mine->n_nodes; i++) {
        CUgraphExecUpdateResult r = compare_nodes(mine->nodes[i], graph->nodes[i]);
        if (!r && mine->nodes[i]->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            r = compare(mine->nodes[i]->work.child, graph->nodes[i]->work.child, error);
        if (r) {
            *error = graph->nodes[i];
            return r;
        }
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* The new copy replaces the old one; nodes of the original graph are still mapped to theirs. */
static CUresult replace(CUgraphExec exec, CUgraph graph)
{
    CUgraph clone = graph_clone(graph);
    CUgraphNode *order = clone ? graph_order(clone) : NULL;
    if (!order) {
        if (clone)
            graph_delete(clone);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < clone->n_nodes; i++) {
        clone->nodes[i]->original = exec->graph->nodes[i]->original;
        clone->nodes[i]->original_id = exec->graph->nodes[i]->original_id;
        clone->nodes[i]->disabled = exec->graph->nodes[i]->disabled;
    }
    graph_delete(exec->graph);
    free(exec->order);
    exec->graph = clone;
    exec->order = order;
    return CUDA_SUCCESS;
}

static CUresult update(CUgraphExec exec, CUgraph graph, CUgraphNode *error, CUgraphExecUpdateResult *why)
{
    *why = CU_GRAPH_EXEC_UPDATE_ERROR;
    if (!object_is(exec, OBJECT_EXEC) || !object_is(graph, OBJECT_GRAPH) || graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    *why = compare(exec->graph, graph, error);
    if (*why)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    CUresult result = replace(exec, graph);
    if (result)
        *why = CU_GRAPH_EXEC_UPDATE_ERROR;
    return result;
}

CUresult do_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    if (!info)
        return CUDA_ERROR_INVALID_VALUE;
    *info = (CUgraphExecUpdateResultInfo){0};
    return update(exec, graph, &info->errorNode, &info->result);
}

CUresult do_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error,
                              CUgraphExecUpdateResult *why)
{
    if (!error || !why)
        return CUDA_ERROR_INVALID_VALUE;
    *error = NULL;
    return update(exec, graph, error, why);
}
