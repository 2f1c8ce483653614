/* Queries about a node of a graph: its parameters and its attributes. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_node(CUgraphNode node, int type)
{
    return object_is(node, OBJECT_NODE) && node->work.type == type;
}

CUresult do_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
    if (!out || !is_node(node, CU_GRAPH_NODE_TYPE_KERNEL))
        return CUDA_ERROR_INVALID_VALUE;
    const cuda_work *w = &node->work;
    bool kernel = object_is(w->kernel.function, OBJECT_KERNEL);
    *out = (CUDA_KERNEL_NODE_PARAMS_v2){.func = kernel ? NULL : w->kernel.function,
                                        .kern = kernel ? (CUkernel)(void *)w->kernel.function : NULL,
                                        .gridDimX = w->kernel.grid[0],
                                        .gridDimY = w->kernel.grid[1],
                                        .gridDimZ = w->kernel.grid[2],
                                        .blockDimX = w->kernel.block[0],
                                        .blockDimY = w->kernel.block[1],
                                        .blockDimZ = w->kernel.block[2],
                                        .sharedMemBytes = w->kernel.shared,
                                        .kernelParams = w->kernel.pointers,
                                        .ctx = w->context};
    return CUDA_SUCCESS;
}

CUresult do_cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
    CUDA_KERNEL_NODE_PARAMS_v2 all;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = do_cuGraphKernelNodeGetParams_v2(node, &all);
    if (!result)
        memcpy(out, &all, sizeof *out);
    return result;
}

CUresult do_cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *out)
{
    if (!out || !is_node(node, CU_GRAPH_NODE_TYPE_MEMCPY))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &node->work.copy, sizeof *out);
    out->reserved0 = out->reserved1 = NULL;
    return CUDA_SUCCESS;
}

/* cuGraphNAME: returns one property of a node of that type. */
#define NODE_GET(name, node_type, type, ...)                                                                 \
    CUresult do_cuGraph##name(CUgraphNode node, type *out)                                                   \
    {                                                                                                        \
        if (!out || !is_node(node, CU_GRAPH_NODE_TYPE_##node_type))                                          \
            return CUDA_ERROR_INVALID_VALUE;                                                                 \
        const cuda_work *w = &node->work;                                                                    \
        *out = (type)__VA_ARGS__;                                                                            \
        return CUDA_SUCCESS;                                                                                 \
    }
NODE_GET(HostNodeGetParams, HOST, CUDA_HOST_NODE_PARAMS, {w->host.fn, w->host.user})
NODE_GET(ChildGraphNodeGetGraph, GRAPH, CUgraph, w->child)
NODE_GET(EventRecordNodeGetEvent, EVENT_RECORD, CUevent, w->event.event)
NODE_GET(EventWaitNodeGetEvent, WAIT_EVENT, CUevent, w->event.event)
NODE_GET(MemAllocNodeGetParams, MEM_ALLOC, CUDA_MEM_ALLOC_NODE_PARAMS,
         {.poolProps = w->memory.props, .bytesize = w->memory.bytes, .dptr = w->memory.address})
NODE_GET(MemFreeNodeGetParams, MEM_FREE, CUdeviceptr, w->memory.address)
NODE_GET(BatchMemOpNodeGetParams, BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS,
         {.ctx = w->context, .count = w->batch.count, .paramArray = w->batch.ops})

CUresult do_cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
    if (!out || !is_node(node, CU_GRAPH_NODE_TYPE_MEMSET))
        return CUDA_ERROR_INVALID_VALUE;
    *out = node->work.memset;
    return CUDA_SUCCESS;
}

/* ---- Attributes of kernel nodes ---- */

CUresult do_cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                          const CUkernelNodeAttrValue *value)
{
    if (!value || !is_node(node, CU_GRAPH_NODE_TYPE_KERNEL))
        return CUDA_ERROR_INVALID_VALUE;
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        node->work.kernel.cooperative = value->cooperative != 0;
    else if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        node->work.kernel.priority = value->priority;
    else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        return launch_set_cluster(&node->work, value->clusterDim.x, value->clusterDim.y, value->clusterDim.z);
    else if ((unsigned)id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult do_cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                          CUkernelNodeAttrValue *value)
{
    if (!value || !is_node(node, CU_GRAPH_NODE_TYPE_KERNEL) ||
        (unsigned)id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        value->cooperative = node->work.kernel.cooperative;
    else if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = node->work.kernel.priority;
    else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        memcpy(&value->clusterDim, node->work.kernel.cluster, sizeof node->work.kernel.cluster);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
    if (!is_node(to, CU_GRAPH_NODE_TYPE_KERNEL) || !is_node(from, CU_GRAPH_NODE_TYPE_KERNEL))
        return CUDA_ERROR_INVALID_VALUE;
    to->work.kernel.cooperative = from->work.kernel.cooperative;
    to->work.kernel.priority = from->work.kernel.priority;
    memcpy(to->work.kernel.cluster, from->work.kernel.cluster, sizeof to->work.kernel.cluster);
    return CUDA_SUCCESS;
}

/* ---- User objects: a destructor that is called when the last graph that holds the object is gone ---- */

struct CUuserObject_st {
    void *pointer;
    CUhostFn destroy;
    uint64_t refs; /* no number of calls can make it wrap */
};

void user_object_release(CUuserObject object, unsigned count)
{
    if (!object_is(object, OBJECT_USER))
        return;
    object->refs -= count < object->refs ? count : object->refs;
    if (object->refs)
        return;
    object_forget(object);
    cuda_self()->in_callback = true;
    object->destroy(object->pointer);
    cuda_self()->in_callback = false;
    free(object);
}

CUresult user_objects_copy(const graph_user_object *from, size_t n, graph_user_object **to)
{
    graph_user_object *users = malloc((n + 1) * sizeof *users);
    if (!users)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n; i++) {
        users[i] = from[i];
        if (object_is(users[i].object, OBJECT_USER)) /* it may have been released too often */
            users[i].object->refs += users[i].count;
    }
    *to = users;
    return CUDA_SUCCESS;
}

void user_objects_release(graph_user_object *users, size_t n)
{
    for (size_t i = 0; i < n; i++)
        user_object_release(users[i].object, users[i].count);
    free(users);
}

CUresult do_cuUserObjectCreate(CUuserObject *object, void *pointer, CUhostFn destroy, unsigned refs,
                               unsigned flags)
{
    if (!object || !destroy || !refs || refs > INT32_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    CUuserObject o = object_new(OBJECT_USER, sizeof *o);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *o = (struct CUuserObject_st){pointer, destroy, refs};
    *object = o;
    return CUDA_SUCCESS;
}

CUresult do_cuUserObjectRetain(CUuserObject object, unsigned count)
{
    if (!object_is(object, OBJECT_USER) || !count || count > INT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    object->refs += count;
    return CUDA_SUCCESS;
}

CUresult do_cuUserObjectRelease(CUuserObject object, unsigned count)
{
    if (!object_is(object, OBJECT_USER) || !count || count > object->refs)
        return CUDA_ERROR_INVALID_VALUE;
    user_object_release(object, count);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
    if (!object_is(graph, OBJECT_GRAPH) || !object_is(object, OBJECT_USER) || !count ||
        flags > CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    graph_user_object *more = realloc(graph->users, (graph->n_users + 1) * sizeof *more);
    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->users = more;
    more[graph->n_users++] = (graph_user_object){object, count};
    if (flags != CU_GRAPH_USER_OBJECT_MOVE)
        object->refs += count;
    return CUDA_SUCCESS;
}

CUresult do_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count)
{
    if (!object_is(graph, OBJECT_GRAPH) || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->n_users; i++)
        if (graph->users[i].object == object && graph->users[i].count >= count) {
            graph->users[i].count -= count;
            user_object_release(object, count);
            if (!graph->users[i].count)
                graph->users[i] = graph->users[--graph->n_users];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
