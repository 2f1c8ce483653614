/* The nodes of graphs, by kind: work created from the parameters of a call. The `..._work` functions serve
 * for adding a node, changing one, and changing one of an instantiated graph. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- From parameters to work ---- */

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2 *p, cuda_work *work)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->ctx && !context_is(p->ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUfunction f = p->func ? p->func : (CUfunction)(void *)p->kern;
    *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_KERNEL};
    return launch_fill(p->ctx ? p->ctx : context_current(), f,
                       (unsigned[]){p->gridDimX, p->gridDimY, p->gridDimZ},
                       (unsigned[]){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes,
                       p->kernelParams, p->extra, work);
}

static CUresult kernel_work_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p, cuda_work *work)
{
    CUDA_KERNEL_NODE_PARAMS_v2 all = {0};
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&all, p, sizeof *p);
    return kernel_work(&all, work);
}

static CUresult memcpy_work(const CUDA_MEMCPY3D *p, CUcontext context, cuda_work *work)
{
    if (!p || p->srcLOD || p->dstLOD)
        return CUDA_ERROR_INVALID_VALUE;
    if (context && !context_is(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .context = context ? context : context_current()};
    memcpy(&work->copy, p, sizeof *p);
    work->copy.srcContext = work->copy.dstContext = NULL;
    return copy_check(work->context, &work->copy);
}

static CUresult memset_work(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context, cuda_work *work)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (context && !context_is(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *work = (cuda_work){
        .type = CU_GRAPH_NODE_TYPE_MEMSET, .context = context ? context : context_current(), .memset = *p};
    return memset_check(work->context, p);
}

static CUresult host_work(const CUDA_HOST_NODE_PARAMS *p, cuda_work *work)
{
    if (!p || !p->fn)
        return CUDA_ERROR_INVALID_VALUE;
    *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = p->fn, .user = p->userData}};
    return CUDA_SUCCESS;
}

static CUresult child_work(CUgraph child, cuda_work *work)
{
    if (!object_is(child, OBJECT_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = graph_clone(child)};
    return work->child ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult event_work(CUevent event, int type, cuda_work *work)
{
    CUresult result = event_get(event);
    if (result)
        return result;
    event_retain(event);
    *work = (cuda_work){.type = type, .context = event->context, .event = {.event = event}};
    return CUDA_SUCCESS;
}

static CUresult batch_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, cuda_work *work)
{
    if (!p || !p->count || p->count > 256 || !p->paramArray || p->flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_is(p->ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    size_t bytes = p->count * sizeof *p->paramArray;
    *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                        .context = p->ctx,
                        .batch = {.count = p->count, .ops = malloc(bytes)}};
    if (!work->batch.ops)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(work->batch.ops, p->paramArray, bytes);
    return CUDA_SUCCESS;
}

static CUresult alloc_work(CUDA_MEM_ALLOC_NODE_PARAMS *p, cuda_work *work)
{
    if (!p || !p->bytesize || p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_device *d = device_at(p->poolProps.location.id);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                        .context = context_current(),
                        .memory = {.bytes = p->bytesize, .props = p->poolProps}};
    CUresult result = pool_alloc(d->default_pool, work->context, p->bytesize, &work->memory.address);
    if (result)
        return result;
    cuda_memory *m = memory_find(work->memory.address);
    m->graph_refs = 1;
    work->memory.id = m->id;
    p->dptr = work->memory.address;
    return CUDA_SUCCESS;
}

static CUresult free_work(CUdeviceptr address, cuda_work *work)
{
    const cuda_memory *m = memory_find(address);
    if (!m || m->address != address || m->kind != MEMORY_POOL)
        return CUDA_ERROR_INVALID_VALUE;
    *work = (cuda_work){
        .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .context = m->context, .memory = {.address = address}};
    return CUDA_SUCCESS;
}

static CUresult any_work(CUgraphNodeParams *p, cuda_work *work)
{
    CUDA_MEMSET_NODE_PARAMS set;
    switch ((int)p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_work(&p->kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return p->memcpy.flags ? CUDA_ERROR_INVALID_VALUE
                               : memcpy_work(&p->memcpy.copyParams, p->memcpy.copyCtx, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&set, &p->memset, sizeof set);
        return memset_work(&set, p->memset.ctx, work);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_work(&p->host, work);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return child_work(p->graph.graph, work);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *work = (cuda_work){.type = CU_GRAPH_NODE_TYPE_EMPTY};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return event_work(p->eventWait.event, p->type, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_work(p->eventRecord.event, p->type, work);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return alloc_work(&p->alloc, work);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return free_work(p->free.dptr, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return batch_work(&p->memOp, work);
    default:
        return (unsigned)p->type <= CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_NOT_SUPPORTED
                                                                   : CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- Adding ---- */

static CUresult add_edges(CUresult result, CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                          const CUgraphEdgeData *edges, size_t n, cuda_work *work)
{
    if (result)
        return result;
    CUgraphNode made;
    if (!node) {
        work_clear(work);
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = graph_add_edges(graph, needs, edges, n, work, &made);
    if (!result)
        *node = made;
    return result;
}

static CUresult add(CUresult result, CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                    cuda_work *work)
{
    return add_edges(result, node, graph, needs, NULL, n, work);
}

CUresult do_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                    const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    cuda_work work;
    return add(kernel_work(params, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                 const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    cuda_work work;
    return add(kernel_work_v1(params, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                 const CUDA_MEMCPY3D *params, CUcontext context)
{
    cuda_work work;
    return add(memcpy_work(params, context, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                 const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    cuda_work work;
    return add(memset_work(params, context, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                               const CUDA_HOST_NODE_PARAMS *params)
{
    cuda_work work;
    return add(host_work(params, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n)
{
    cuda_work work = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(CUDA_SUCCESS, node, graph, needs, n, &work);
}

CUresult do_cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                     CUgraph child)
{
    cuda_work work;
    return add(child_work(child, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                      CUevent event)
{
    cuda_work work;
    return add(event_work(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                    CUevent event)
{
    cuda_work work;
    return add(event_work(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                     const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    cuda_work work;
    return add(batch_work(params, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                   CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    cuda_work work;
    return add(alloc_work(params, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                                  CUdeviceptr address)
{
    cuda_work work;
    return add(free_work(address, &work), node, graph, needs, n, &work);
}

CUresult do_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                              const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *params)
{
    cuda_work work;
    return add_edges(params ? any_work(params, &work) : CUDA_ERROR_INVALID_VALUE, node, graph, needs, edges,
                     n, &work);
}

CUresult do_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t n,
                           CUgraphNodeParams *params)
{
    return do_cuGraphAddNode_v2(node, graph, needs, NULL, n, params);
}

/* ---- Changing a node, or the node that an instantiated graph has for it ---- */

static CUgraphNode exec_node(CUgraphExec exec, CUgraphNode node)
{
    for (size_t i = 0; i < exec->graph->n_nodes; i++)
        if (exec->graph->nodes[i]->original == node && exec->graph->nodes[i]->original_id == object_id(node))
            return exec->graph->nodes[i];
    return NULL;
}

static CUresult change(CUresult result, CUgraphNode node, cuda_work *work)
{
    if (result)
        return result;
    if (!object_is(node, OBJECT_NODE) || node->work.type != work->type) {
        work_clear(work);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (work->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        work->kernel.cooperative = node->work.kernel.cooperative;
        memcpy(work->kernel.cluster, node->work.kernel.cluster, sizeof work->kernel.cluster);
        work->kernel.priority = node->work.kernel.priority;
    }
    if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        size_t before = node->work.child ? node->work.child->total + 1 : 1;
        result = graph_check_room(node->graph, work, before);
        if (result) {
            work_clear(work);
            return result;
        }
        graph_count(node->graph, &node->work, false);
        graph_count(node->graph, work, true);
        work->child->parent = node->graph;
    }
    work_clear(&node->work);
    node->work = *work;
    return CUDA_SUCCESS;
}

static CUresult change_exec(CUresult result, CUgraphExec exec, CUgraphNode node, cuda_work *work)
{
    if (result)
        return result;
    CUgraphNode mine =
        object_is(exec, OBJECT_EXEC) && object_is(node, OBJECT_NODE) ? exec_node(exec, node) : NULL;
    if (!mine) {
        work_clear(work);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return change(CUDA_SUCCESS, mine, work);
}

CUresult do_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    cuda_work work;
    return change(kernel_work(params, &work), node, &work);
}

CUresult do_cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    cuda_work work;
    return change(kernel_work_v1(params, &work), node, &work);
}

CUresult do_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    cuda_work work;
    return change_exec(kernel_work(params, &work), exec, node, &work);
}

CUresult do_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    cuda_work work;
    return change_exec(kernel_work_v1(params, &work), exec, node, &work);
}

static CUcontext context_of(CUgraphNode node)
{
    CUcontext c = object_is(node, OBJECT_NODE) ? node->work.context : NULL;
    return context_is(c) ? c : context_current();
}

CUresult do_cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
    cuda_work work;
    CUcontext c = context_of(node);
    return change(c ? memcpy_work(params, c, &work) : CUDA_ERROR_INVALID_CONTEXT, node, &work);
}

CUresult do_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params,
                                           CUcontext context)
{
    cuda_work work;
    return change_exec(memcpy_work(params, context, &work), exec, node, &work);
}

CUresult do_cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    cuda_work work;
    CUcontext c = context_of(node);
    return change(c ? memset_work(params, c, &work) : CUDA_ERROR_INVALID_CONTEXT, node, &work);
}

CUresult do_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    cuda_work work;
    return change_exec(memset_work(params, context, &work), exec, node, &work);
}

CUresult do_cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
    cuda_work work;
    return change(host_work(params, &work), node, &work);
}

CUresult do_cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                         const CUDA_HOST_NODE_PARAMS *params)
{
    cuda_work work;
    return change_exec(host_work(params, &work), exec, node, &work);
}

CUresult do_cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
    cuda_work work;
    return change_exec(child_work(child, &work), exec, node, &work);
}

CUresult do_cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
    cuda_work work;
    return change(event_work(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &work), node, &work);
}

CUresult do_cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
    cuda_work work;
    return change(event_work(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &work), node, &work);
}

CUresult do_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    cuda_work work;
    return change_exec(event_work(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &work), exec, node, &work);
}

CUresult do_cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    cuda_work work;
    return change_exec(event_work(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &work), exec, node, &work);
}

CUresult do_cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    cuda_work work;
    return change(batch_work(params, &work), node, &work);
}

CUresult do_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    cuda_work work;
    return change_exec(batch_work(params, &work), exec, node, &work);
}

static CUresult changeable(CUgraphNodeParams *params, cuda_work *work)
{
    if (!params || params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_INVALID_VALUE;
    return any_work(params, work);
}

CUresult do_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
    cuda_work work;
    return change(changeable(params, &work), node, &work);
}

CUresult do_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
    cuda_work work;
    return change_exec(changeable(params, &work), exec, node, &work);
}

CUresult do_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
    CUgraphNode mine =
        object_is(exec, OBJECT_EXEC) && object_is(node, OBJECT_NODE) ? exec_node(exec, node) : NULL;
    if (!mine || mine->work.type > CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    mine->disabled = !enabled;
    return CUDA_SUCCESS;
}

CUresult do_cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *enabled)
{
    CUgraphNode mine =
        object_is(exec, OBJECT_EXEC) && object_is(node, OBJECT_NODE) ? exec_node(exec, node) : NULL;
    if (!enabled || !mine || mine->work.type > CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !mine->disabled;
    return CUDA_SUCCESS;
}
