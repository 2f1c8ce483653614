/* Capture and graphs. */
#include <string.h>

#include "driver.h"

typedef struct scene {
    CUmodule module;
    CUfunction bump;
    CUdeviceptr out; /* bump(out, digit): out = 10 * out + digit */
    CUstream a, b;
    CUgraph graph;
    CUgraphExec exec;
} scene;

static bool begin(scene *s)
{
    *s = (scene){0};
    if (!driver_open_context(NULL))
        return false;
    s->bump = test_function(&s->module, "bump");
    s->out = new_u32(1, 0);
    CU(cu.cuStreamCreate(&s->a, CU_STREAM_NON_BLOCKING));
    return CU(cu.cuStreamCreate(&s->b, CU_STREAM_NON_BLOCKING));
}

static CUresult bump(scene *s, CUstream stream, uint32_t digit)
{
    void *params[] = {&s->out, &digit};
    return launch_one(s->bump, stream, params);
}

static CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(scene *s, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = s->bump,
                                        .gridDimX = 1,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = 1,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = params};
}

static uint32_t run(scene *s)
{
    CU(cu.cuMemsetD32_v2(s->out, 0, 1));
    CU(cu.cuGraphLaunch(s->exec, s->a));
    CU(cu.cuStreamSynchronize(s->a));
    return read_u32(s->out);
}

/* Work 1 in a, work 2 in the forked b, whose end is recorded. */
static void fork_and_record(scene *s, CUevent end)
{
    CUevent fork;
    CU(cu.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CU(cu.cuStreamBeginCapture_v2(s->a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(bump(s, s->a, 1));
    CU(cu.cuEventRecord(fork, s->a));
    CU(cu.cuStreamWaitEvent(s->b, fork, 0));
    CU(bump(s, s->b, 2));
    CU(cu.cuEventRecord(end, s->b));
}

TEST_CASE(CudaCapture, AForkedStreamMayBeDestroyed)
{
    for (int order = 0; order < 3; order++) { /* after its join, before it, and without one */
        scene s;
        CUevent end;
        REQUIRE(begin(&s));
        CU(cu.cuEventCreate(&end, CU_EVENT_DISABLE_TIMING));
        fork_and_record(&s, end);
        if (order == 0)
            CU(cu.cuStreamWaitEvent(s.a, end, 0));
        CU(cu.cuStreamDestroy_v2(s.b));
        if (order == 1)
            CU(cu.cuStreamWaitEvent(s.a, end, 0));
        CU(bump(&s, s.a, 3));
        CU_IS(cu.cuStreamEndCapture(s.a, NULL), CUDA_ERROR_INVALID_VALUE); /* and the capture goes on */
        CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), order == 2 ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : 0);
        if (order < 2) {
            CU(cu.cuGraphInstantiateWithFlags(&s.exec, s.graph, 0));
            CHECK_EQ_U32(run(&s), 123);
        }
        driver_close();
    }
}

/* Whether b is joined is asked of the last of many works: not by recursion, which needs a large stack. */
TEST_CASE(CudaCapture, ALongStreamAfterAJoin)
{
    enum { WORKS = 300000 };
    scene s;
    CUevent end;
    size_t n = 0;
    REQUIRE(begin(&s));
    CU(cu.cuEventCreate(&end, CU_EVENT_DISABLE_TIMING));
    fork_and_record(&s, end);
    CU(cu.cuStreamWaitEvent(s.a, end, 0));
    for (int i = 0; i < WORKS; i++)
        if (cu.cuMemsetD32Async(s.out, 0, 1, s.a))
            FAIL("work %d is not captured", i);
    CU(cu.cuStreamEndCapture(s.a, &s.graph));
    CU(cu.cuGraphGetNodes(s.graph, NULL, &n));
    CHECK_EQ_U64(n, WORKS + 2);
    driver_close();
}

TEST_CASE(CudaCapture, DependenciesHaveEdgeData)
{
    static const CUgraphEdgeData plain;
    scene s;
    CUevent end;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *needs;
    const CUgraphEdgeData *edges = NULL;
    size_t n = 0;
    REQUIRE(begin(&s));
    CU(cu.cuEventCreate(&end, CU_EVENT_DISABLE_TIMING));
    fork_and_record(&s, end);
    CU(bump(&s, s.a, 3));
    CU(cu.cuStreamWaitEvent(s.a, end, 0));
    CU(cu.cuStreamGetCaptureInfo_v3(s.a, &status, &id, &graph, &needs, &edges, &n));
    CHECK_EQ_U64(n, 2);
    REQUIRE(edges != NULL);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ_MEM(&edges[i], &plain, sizeof plain);
    CU(cu.cuStreamEndCapture(s.a, &s.graph));
    driver_close();
}

TEST_CASE(CudaCapture, ForksAndJoins)
{
    scene s;
    CUevent fork, join;
    size_t n = 0, edges = 0;
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;
    REQUIRE(begin(&s));
    CU(cu.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CU(cu.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(bump(&s, s.a, 1));
    CU(cu.cuEventRecord(fork, s.a));
    CU(cu.cuStreamWaitEvent(s.b, fork, 0));
    CU(cu.cuStreamIsCapturing(s.b, &status));
    CHECK_EQ_I64(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CU(bump(&s, s.b, 2));
    CU(cu.cuMemsetD8Async(s.out, 0, 0, s.a));
    CU(cu.cuEventRecord(join, s.b));
    CU(cu.cuStreamWaitEvent(s.a, join, 0));
    CU(bump(&s, s.a, 3));
    CU(cu.cuStreamGetCaptureInfo(s.a, &status, &id));
    CHECK(id != 0);
    CU(cu.cuStreamEndCapture(s.a, &s.graph));
    CU(cu.cuStreamIsCapturing(s.b, &status));
    CHECK_EQ_I64(status, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_EQ_U32(read_u32(s.out), 0); /* nothing has run */
    CU(cu.cuGraphGetNodes(s.graph, NULL, &n));
    CHECK_EQ_U64(n, 4);
    CU(cu.cuGraphGetEdges(s.graph, NULL, NULL, &edges));
    CHECK_EQ_U64(edges, 4);
    CU(cu.cuGraphInstantiateWithFlags(&s.exec, s.graph, 0));
    CHECK_EQ_U32(run(&s), 123);
    CHECK_EQ_U32(run(&s), 123);
    CU(cu.cuGraphExecDestroy(s.exec));
    CU(cu.cuGraphDestroy(s.graph));
    CU_IS(cu.cuGraphDestroy(s.graph), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

TEST_CASE(CudaCapture, WhatIsNotAllowed)
{
    scene s;
    CUdeviceptr p;
    CUevent e;
    CUstream blocking;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    REQUIRE(begin(&s));
    CU(cu.cuEventCreate(&e, 0));
    CU(cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CU_IS(cu.cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_ILLEGAL_STATE);
    /* an allocation, while a capture of the global mode goes on */
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_IS(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    CU_IS(cu.cuMemAlloc_v2(&p, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CU_IS(bump(&s, s.a, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU_IS(cu.cuStreamUpdateCaptureDependencies(s.a, NULL, 0, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(s.graph == NULL);
    /* the relaxed mode allows it, but not waiting for the stream itself */
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
    CU(cu.cuMemAlloc_v2(&p, 4));
    CU_IS(cu.cuStreamSynchronize(s.a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* the legacy stream would wait for a blocking stream that is capturing */
    CU(cu.cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU_IS(bump(&s, NULL, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CU_IS(cu.cuStreamEndCapture(blocking, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* an event that was captured, asked from outside */
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cu.cuEventRecord(e, s.a));
    CU_IS(cu.cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT);
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* work outside the capture */
    CU(cu.cuEventRecord(e, s.b));
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU_IS(cu.cuStreamWaitEvent(s.a, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* a fork that never joins, and one that ends in the wrong stream */
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(bump(&s, s.a, 1));
    CU(cu.cuEventRecord(e, s.a));
    CU(cu.cuStreamWaitEvent(s.b, e, 0));
    CU(bump(&s, s.b, 1));
    CU_IS(cu.cuStreamEndCapture(s.b, &s.graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cu.cuEventRecord(e, s.a));
    CU(cu.cuStreamWaitEvent(s.b, e, 0));
    CU(bump(&s, s.b, 1));
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    /* two captures do not become one */
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cu.cuStreamBeginCapture_v2(s.b, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(cu.cuEventRecord(e, s.a));
    CU_IS(cu.cuStreamWaitEvent(s.b, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    CU_IS(cu.cuStreamEndCapture(s.a, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU_IS(cu.cuStreamEndCapture(s.b, &s.graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    driver_close();
}

static void add_one(void *user)
{
    ++*(int *)user;
}

TEST_CASE(CudaGraph, NodesOfEveryKind)
{
    scene s;
    CUgraphNode set, first, second, host, empty, child, copy, list[8];
    CUgraph inner;
    CUgraphNodeType type;
    int calls = 0;
    uint32_t one = 1, two = 2, three = 3, got = 0;
    size_t n = 8;
    REQUIRE(begin(&s));
    void *p1[] = {&s.out, &one}, *p2[] = {&s.out, &two}, *p3[] = {&s.out, &three};
    CUDA_KERNEL_NODE_PARAMS_v2 k1 = kernel_params(&s, p1), k2 = kernel_params(&s, p2),
                               k3 = kernel_params(&s, p3), back;
    CU(cu.cuGraphCreate(&s.graph, 0));
    CU(cu.cuGraphCreate(&inner, 0));
    CU(cu.cuGraphAddKernelNode_v2(&first, inner, NULL, 0, &k3));
    CUDA_MEMSET_NODE_PARAMS zero = {.dst = s.out, .value = 7, .elementSize = 4, .width = 1, .height = 1};
    CU(cu.cuGraphAddMemsetNode(&set, s.graph, NULL, 0, &zero, driver_context));
    CU(cu.cuGraphAddKernelNode_v2(&first, s.graph, &set, 1, &k1));
    CU(cu.cuGraphAddKernelNode_v2(&second, s.graph, NULL, 0, &k2)); /* its edge comes later */
    CUDA_HOST_NODE_PARAMS call = {add_one, &calls};
    CU(cu.cuGraphAddHostNode(&host, s.graph, &second, 1, &call));
    CU(cu.cuGraphAddEmptyNode(&empty, s.graph, &host, 1));
    CU(cu.cuGraphAddChildGraphNode(&child, s.graph, &empty, 1, inner));
    CU(cu.cuGraphDestroy(inner)); /* the node has a copy */
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = s.out,
                       .dstMemoryType = CU_MEMORYTYPE_HOST,
                       .dstHost = &got,
                       .WidthInBytes = 4,
                       .Height = 1,
                       .Depth = 1};
    CU(cu.cuGraphAddMemcpyNode(&copy, s.graph, &child, 1, &c, driver_context));
    CU(cu.cuGraphAddDependencies(s.graph, &first, &second, 1));
    CU_IS(cu.cuGraphAddDependencies(s.graph, &first, &second, 1), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuGraphGetNodes(s.graph, list, &n));
    CHECK_EQ_U64(n, 7);
    CHECK(list[0] == set && list[7] == NULL);
    n = 8;
    CU(cu.cuGraphGetRootNodes(s.graph, list, &n));
    CHECK_EQ_U64(n, 1);
    n = 8;
    CU(cu.cuGraphNodeGetDependentNodes(first, list, &n));
    CHECK(n == 1 && list[0] == second);
    CU(cu.cuGraphNodeGetType(child, &type));
    CHECK_EQ_I64(type, CU_GRAPH_NODE_TYPE_GRAPH);
    CU(cu.cuGraphKernelNodeGetParams_v2(first, &back));
    CHECK(back.func == s.bump && *(uint32_t *)back.kernelParams[1] == 1);
    CU_IS(cu.cuGraphKernelNodeGetParams_v2(set, &back), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuGraphInstantiateWithFlags(&s.exec, s.graph, 0));
    CU(cu.cuGraphUpload(s.exec, s.a));
    CHECK_EQ_U32(run(&s), 7123);
    CHECK_EQ_U32(got, 7123);
    CHECK_EQ_I64(calls, 1);
    /* other parameters, for the instantiated graph alone */
    one = 5;
    CU(cu.cuGraphExecKernelNodeSetParams_v2(s.exec, first, &k1));
    zero.value = 8;
    CU(cu.cuGraphExecMemsetNodeSetParams(s.exec, set, &zero, driver_context));
    CHECK_EQ_U32(run(&s), 8523);
    CU(cu.cuGraphNodeSetEnabled(s.exec, second, 0));
    CHECK_EQ_U32(run(&s), 853);
    CU_IS(cu.cuGraphExecMemsetNodeSetParams(s.exec, first, &zero, driver_context), CUDA_ERROR_INVALID_VALUE);
    /* the graph itself is as it was; changed, it updates the instantiated one */
    CUgraphExecUpdateResultInfo info;
    CU(cu.cuGraphNodeSetEnabled(s.exec, second, 1));
    two = 9;
    CU(cu.cuGraphKernelNodeSetParams_v2(second, &k2));
    CU(cu.cuGraphExecUpdate_v2(s.exec, s.graph, &info));
    CHECK_EQ_U32(run(&s), 7193);
    CU(cu.cuGraphDestroyNode(copy));
    CU_IS(cu.cuGraphExecUpdate_v2(s.exec, s.graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_EQ_I64(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    CHECK_EQ_U32(run(&s), 7193);
    /* a circle */
    CU(cu.cuGraphAddDependencies(s.graph, &second, &set, 1));
    CUgraphExec bad;
    CU_IS(cu.cuGraphInstantiateWithFlags(&bad, s.graph, 0), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

/* Each node needs the one that is added after it. They are put in order one by one: not by as many passes as there are nodes, nor by
 * recursion. */
TEST_CASE(CudaGraph, ManyNodesInReverse)
{
    enum { NODES = 200000 };
    scene s;
    CUgraphNode node, last = NULL;
    uint32_t digits[] = {3, 2, 1};
    REQUIRE(begin(&s));
    CU(cu.cuGraphCreate(&s.graph, 0));
    for (int i = 0; i < NODES; i++) {
        void *p[] = {&s.out, &digits[i < 3 ? i : 0]};
        CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_params(&s, p);
        CUresult result = i < 3 ? cu.cuGraphAddKernelNode_v2(&node, s.graph, NULL, 0, &kernel)
                                : cu.cuGraphAddEmptyNode(&node, s.graph, NULL, 0);
        if (result || (last && cu.cuGraphAddDependencies(s.graph, &node, &last, 1)))
            FAIL("node %d is not added", i);
        last = node;
    }
    CU(cu.cuGraphInstantiateWithFlags(&s.exec, s.graph, 0));
    CHECK_EQ_U32(run(&s), 123);
    driver_close();
}

TEST_CASE(CudaGraph, ClonesAndMemoryOfGraphs)
{
    scene s;
    CUgraph clone;
    CUgraphNode nodes[8], found;
    size_t n = 8, before, after, total;
    CUdeviceptr p = 0;
    REQUIRE(begin(&s));
    CU(cu.cuMemGetInfo_v2(&before, &total));
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cu.cuMemAllocAsync(&p, 64, s.a));
    CU(cu.cuMemsetD32Async(p, 6, 16, s.a));
    CU(cu.cuMemcpyDtoDAsync_v2(s.out, p + 60, 4, s.a));
    CU(cu.cuMemFreeAsync(p, s.a));
    CU(cu.cuStreamEndCapture(s.a, &s.graph));
    CU(cu.cuGraphGetNodes(s.graph, nodes, &n));
    CHECK_EQ_U64(n, 4);
    CU(cu.cuGraphClone(&clone, s.graph));
    CU(cu.cuGraphNodeFindInClone(&found, nodes[1], clone));
    CU_IS(cu.cuGraphNodeFindInClone(&found, found, s.graph), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuGraphInstantiateWithFlags(&s.exec, clone, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    CHECK_EQ_U32(run(&s), 6);
    CHECK_EQ_U32(run(&s), 6);
    CU(cu.cuGraphExecDestroy(s.exec));
    CU(cu.cuGraphDestroy(clone));
    CU(cu.cuGraphDestroy(s.graph));
    CU(cu.cuMemGetInfo_v2(&after, &total));
    CHECK_EQ_U64(after, before);
    driver_close();
}

static uint64_t graph_memory(CUgraphMem_attribute attribute)
{
    cuuint64_t value = 99;
    CU(cu.cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

/* What graphs hold now, and the most that was seen; the latter is reset by 0, and nothing else can be set. */
TEST_CASE(CudaGraph, MemoryIsCounted)
{
    static const CUgraphMem_attribute now[] = {CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                                               CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT},
                                      most[] = {CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
                                                CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH};
    scene s;
    CUdeviceptr p = 0;
    cuuint64_t zero = 0, one = 1;
    REQUIRE(begin(&s));
    CU(cu.cuStreamBeginCapture_v2(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(cu.cuMemAllocAsync(&p, 4096, s.a));
    CU(cu.cuMemFreeAsync(p, s.a));
    CU(cu.cuStreamEndCapture(s.a, &s.graph));
    for (int i = 0; i < 2; i++) {
        CHECK(graph_memory(now[i]) >= 4096);
        CHECK_EQ_U64(graph_memory(most[i]), graph_memory(now[i]));
    }
    CU(cu.cuGraphDestroy(s.graph));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_U64(graph_memory(now[i]), 0);
        CHECK(graph_memory(most[i]) >= 4096);
        CU_IS(cu.cuDeviceSetGraphMemAttribute(0, now[i], &zero), CUDA_ERROR_INVALID_VALUE);
        CU_IS(cu.cuDeviceSetGraphMemAttribute(0, most[i], &one), CUDA_ERROR_INVALID_VALUE);
        CHECK(graph_memory(most[i]) >= 4096);
    }
    for (int i = 0; i < 2; i++) {
        CU(cu.cuDeviceSetGraphMemAttribute(0, most[i], &zero));
        CHECK_EQ_U64(graph_memory(most[i]), 0);
    }
    CU(cu.cuDeviceGraphMemTrim(0));
    CU_IS(cu.cuDeviceGraphMemTrim(9), CUDA_ERROR_INVALID_DEVICE);
    driver_close();
}

TEST_CASE(CudaGraph, UserObjectsEndWithTheGraph)
{
    scene s;
    CUuserObject object;
    int calls = 0;
    REQUIRE(begin(&s));
    CU(cu.cuGraphCreate(&s.graph, 0));
    CU(cu.cuUserObjectCreate(&object, &calls, add_one, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CU(cu.cuGraphRetainUserObject(s.graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CHECK_EQ_I64(calls, 0);
    CU(cu.cuGraphDestroy(s.graph));
    CHECK_EQ_I64(calls, 1);
    driver_close();
}

/* A graph of one node that holds a user object alone. */
static CUgraph graph_with_object(int *calls)
{
    CUgraph graph = NULL;
    CUgraphNode node;
    CUuserObject object;
    *calls = 0;
    CU(cu.cuGraphCreate(&graph, 0));
    CU(cu.cuUserObjectCreate(&object, calls, add_one, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CU(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CU(cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
    return graph;
}

TEST_CASE(CudaGraph, UserObjectsLiveAsLongAsAnyHolder)
{
    scene s;
    CUgraph graph, other;
    CUgraphNode node;
    int calls;
    REQUIRE(begin(&s));
    graph = graph_with_object(&calls); /* a clone */
    CU(cu.cuGraphClone(&other, graph));
    CU(cu.cuGraphDestroy(graph));
    CHECK_EQ_I64(calls, 0);
    CU(cu.cuGraphDestroy(other));
    CHECK_EQ_I64(calls, 1);
    graph = graph_with_object(&calls); /* an executable graph */
    CU(cu.cuGraphInstantiateWithFlags(&s.exec, graph, 0));
    CU(cu.cuGraphDestroy(graph));
    CHECK_EQ_I64(calls, 0);
    CU(cu.cuGraphExecDestroy(s.exec));
    CHECK_EQ_I64(calls, 1);
    graph = graph_with_object(&calls); /* a child node */
    CU(cu.cuGraphCreate(&other, 0));
    CU(cu.cuGraphAddChildGraphNode(&node, other, NULL, 0, graph));
    CU(cu.cuGraphDestroy(graph));
    CHECK_EQ_I64(calls, 0);
    CU(cu.cuGraphDestroy(other));
    CHECK_EQ_I64(calls, 1);
    driver_close();
}

/* A launch that waits for a value holds the objects, though nothing else does. */
TEST_CASE(CudaGraph, UserObjectsLiveUntilTheLaunchEnds)
{
    scene s;
    int calls;
    REQUIRE(begin(&s));
    CUgraph graph = graph_with_object(&calls);
    CU(cu.cuGraphInstantiateWithFlags(&s.exec, graph, 0));
    CU(cu.cuStreamWaitValue32_v2(s.a, s.out, 1, CU_STREAM_WAIT_VALUE_EQ));
    CU(cu.cuGraphLaunch(s.exec, s.a));
    CU(cu.cuGraphExecDestroy(s.exec));
    CU(cu.cuGraphDestroy(graph));
    CHECK_EQ_I64(calls, 0);
    CU(cu.cuStreamWriteValue32_v2(s.b, s.out, 1, 0));
    CU(cu.cuStreamSynchronize(s.a));
    CHECK_EQ_I64(calls, 1);
    driver_close();
}
