/* Limits of the driver API, each at the limit and one beyond. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "log_file.h"

/* Closes the driver, whose log must say that. */
static void check_log(const char *says)
{
    char *log = driver_close_logged();
    CHECK_HAS(log, says);
    free(log);
}

/* ---- launches ---- */

static const struct {
    const char *name;
    unsigned grid[3], block[3], shared;
    CUresult result;
} launches[] = {
    {"BlockOf1024", {1, 1, 1}, {1024, 1, 1}, 0, CUDA_SUCCESS},
    {"BlockOf1025", {1, 1, 1}, {1025, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"BlockOf32x32", {1, 1, 1}, {32, 32, 1}, 0, CUDA_SUCCESS},
    {"BlockOf32x33", {1, 1, 1}, {32, 33, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"Block1024Deep", {1, 1, 1}, {1, 1024, 1}, 0, CUDA_SUCCESS},
    {"BlockOf64InZ", {1, 1, 1}, {1, 1, 64}, 0, CUDA_SUCCESS},
    {"BlockOf65InZ", {1, 1, 1}, {1, 1, 65}, 0, CUDA_ERROR_INVALID_VALUE},
    {"BlockOfNone", {1, 1, 1}, {0, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"BlockOfNoneInZ", {1, 1, 1}, {1, 1, 0}, 0, CUDA_ERROR_INVALID_VALUE},
    {"GridOfNone", {0, 1, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"GridOfNoneInY", {1, 0, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"GridOf65535InY", {1, 65535, 1}, {1, 1, 1}, 0, CUDA_SUCCESS},
    {"GridOf65536InY", {1, 65536, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"GridOf65535InZ", {1, 1, 65535}, {1, 1, 1}, 0, CUDA_SUCCESS},
    {"GridOf65536InZ", {1, 1, 65536}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"GridOf65536InX", {65536, 1, 1}, {1, 1, 1}, 0, CUDA_SUCCESS},
    {"GridOf2To31InX", {0x80000000u, 1, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
    {"SharedOf48K", {1, 1, 1}, {1, 1, 1}, 49152, CUDA_SUCCESS},
    {"SharedOf48KAnd1", {1, 1, 1}, {1, 1, 1}, 49153, CUDA_ERROR_INVALID_VALUE},
};

TEST_ROWS(CudaLimits, Launches, launches)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry none() { ret; }\n";
    CUmodule module;
    CUfunction f;
    if (!driver_open_context("PTXVM_SM=sm_80 PTXVM_CHECK=none"))
        return;
    const unsigned *g = launches[index].grid, *b = launches[index].block;
    CU(cu.cuModuleLoadData(&module, ptx));
    CU(cu.cuModuleGetFunction(&f, module, "none"));
    CU_IS(cu.cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], launches[index].shared, NULL, NULL, NULL),
          launches[index].result);
    CU(cu.cuCtxSynchronize());
    driver_close();
}

/* ---- memory ---- */

static const struct {
    const char *name;
    size_t bytes;
    CUresult result;
} allocations[] = {
    {"All", (size_t)64 << 20, CUDA_SUCCESS},
    {"OneMore", ((size_t)64 << 20) + 1, CUDA_ERROR_OUT_OF_MEMORY},
    {"One", 1, CUDA_SUCCESS},
    {"None", 0, CUDA_ERROR_INVALID_VALUE},
    {"Everything", SIZE_MAX, CUDA_ERROR_OUT_OF_MEMORY},
};

TEST_ROWS(CudaLimits, Allocations, allocations)
{
    CUdeviceptr p = 0;
    if (!driver_open_context("PTXVM_MEMORY=64M"))
        return;
    CU_IS(cu.cuMemAlloc_v2(&p, allocations[index].bytes), allocations[index].result);
    if (!allocations[index].result)
        CU(cu.cuMemFree_v2(p));
    driver_close();
}

/* The last byte of an allocation, and the one behind it; copies of 0 bytes are allowed anywhere. */
TEST_CASE(CudaLimits, CopiesEndWithTheAllocation)
{
    enum { BYTES = 512 }; /* no padding behind it belongs to the allocation */
    CUdeviceptr p;
    uint8_t data[BYTES + 1] = {0};
    if (!driver_open_context(NULL))
        return;
    CU(cu.cuMemAlloc_v2(&p, BYTES));
    CU(cu.cuMemcpyHtoD_v2(p, data, BYTES));
    CU_IS(cu.cuMemcpyHtoD_v2(p, data, BYTES + 1), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemcpyHtoD_v2(p + BYTES - 1, data, 1));
    CU_IS(cu.cuMemcpyHtoD_v2(p + BYTES - 1, data, 2), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemcpyDtoH_v2(data, p + 1, BYTES - 1));
    CU_IS(cu.cuMemcpyDtoH_v2(data, p + 1, BYTES), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemsetD8_v2(p, 1, BYTES + 1), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemsetD8_v2(p, 1, BYTES));
    CU(cu.cuMemFree_v2(p));
    CU_IS(cu.cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

/* Memory from a pool is freed once, whether the stream has come to it or not. */
TEST_CASE(CudaLimits, AsyncFreeOnce)
{
    CUdeviceptr p, q;
    CUstream s;
    if (!driver_open_context(NULL))
        return;
    CU(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CU(cu.cuMemAllocAsync(&p, 4096, s));
    CU(cu.cuMemAllocAsync(&q, 4096, s));
    CU_IS(cu.cuMemFreeAsync(p + 1, s), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemFreeAsync(p, s));
    CU_IS(cu.cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuStreamSynchronize(s));
    CU_IS(cu.cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemFreeAsync(q, s));
    CU(cu.cuStreamSynchronize(s));
    driver_close();
}

/* The second free fails while the first has not run yet, too: an event that is not recorded holds the stream up. */
TEST_CASE(CudaLimits, AsyncFreeOnceWhileTheStreamWaits)
{
    CUdeviceptr p, flag;
    CUstream s;
    if (!driver_open_context(NULL))
        return;
    CU(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    flag = new_u32(1, 0);
    CU(cu.cuMemAllocAsync(&p, 4096, s));
    CU(cu.cuStreamSynchronize(s));
    CU(cu.cuStreamWaitValue32_v2(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    CU(cu.cuMemFreeAsync(p, s));
    CU_IS(cu.cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemsetD32_v2(flag, 1, 1));
    CU(cu.cuStreamSynchronize(s));
    CU(cu.cuMemFree_v2(flag));
    driver_close();
}

/* ---- graphs ---- */

static CUgraph empty_nodes(int n)
{
    CUgraph graph;
    CUgraphNode node;
    CU(cu.cuGraphCreate(&graph, 0));
    for (int i = 0; i < n; i++)
        CU(cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
    return graph;
}

/* 16 nodes are the limit: a graph with two child graphs of 7 has as many. */
TEST_CASE(CudaLimits, NodesOfAGraph)
{
    CUgraphNode node, child;
    CUgraph inner;
    if (!driver_open_context("PTXVM_LIMIT_GRAPH=16"))
        return;
    CUgraph full = empty_nodes(16), seven = empty_nodes(7), outer = empty_nodes(0);
    CU_IS(cu.cuGraphAddEmptyNode(&node, full, NULL, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuGraphAddChildGraphNode(&node, outer, NULL, 0, seven));
    CU(cu.cuGraphAddChildGraphNode(&child, outer, NULL, 0, seven));
    CU_IS(cu.cuGraphAddEmptyNode(&node, outer, NULL, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuGraphChildGraphNodeGetGraph(child, &inner));
    CU_IS(cu.cuGraphAddEmptyNode(&node, inner, NULL, 0), CUDA_ERROR_OUT_OF_MEMORY);
    /* room that was given back can be used again, once */
    CUgraphNode nodes[7];
    size_t n = 7;
    CU(cu.cuGraphGetNodes(inner, nodes, &n));
    CU(cu.cuGraphDestroyNode(nodes[0]));
    CU(cu.cuGraphAddEmptyNode(&node, outer, NULL, 0));
    CU_IS(cu.cuGraphAddEmptyNode(&node, outer, NULL, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuGraphDestroyNode(child));
    CU(cu.cuGraphAddChildGraphNode(&child, outer, NULL, 0, empty_nodes(6)));
    CU_IS(cu.cuGraphAddEmptyNode(&node, outer, NULL, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuGraphDestroy(outer));
    driver_close();
}

/* A graph that holds itself twice, 40 times: 2^40 nodes without a limit. */
TEST_CASE(CudaLimits, GraphsThatDouble)
{
    CUgraphNode node;
    if (!driver_open_logged("", "PTXVM_LIMIT_GRAPH=1000"))
        return;
    CUgraph graph = empty_nodes(1);
    CUresult result = CUDA_SUCCESS;
    int doubled = 0;
    for (; doubled < 40 && !result; doubled++) {
        CUgraph twice = empty_nodes(0);
        for (int i = 0; i < 2 && !result; i++)
            result = cu.cuGraphAddChildGraphNode(&node, twice, NULL, 0, graph);
        CU(cu.cuGraphDestroy(graph));
        graph = twice;
    }
    CU_IS(result, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ_I64(doubled, 9); /* 3 * 2^8 - 2 = 766 nodes fit, 1534 do not */
    CU(cu.cuGraphDestroy(graph));
    check_log("a graph of more than 1000 nodes with its child graphs: the limit is PTXVM_LIMIT_GRAPH");
}

TEST_CASE(CudaLimits, NestedGraphs)
{
    CUgraphNode node;
    CUgraphExec exec;
    if (!driver_open_context(NULL))
        return;
    CUgraph graph = empty_nodes(1), outer = NULL;
    for (int i = 0; i < 64; i++, graph = outer) {
        outer = empty_nodes(0);
        CU(cu.cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
        CU(cu.cuGraphDestroy(graph));
    }
    outer = empty_nodes(0);
    CU_IS(cu.cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CU(cu.cuGraphLaunch(exec, NULL));
    CU(cu.cuCtxSynchronize());
    CU(cu.cuGraphExecDestroy(exec));
    CU(cu.cuGraphDestroy(graph));
    CU(cu.cuGraphDestroy(outer));
    driver_close();
}

static void count_call(void *calls)
{
    ++*(int *)calls;
}

/* 2^32 references and more are not none. */
TEST_CASE(CudaLimits, ReferencesOfAUserObject)
{
    int calls = 0;
    CUuserObject object;
    if (!driver_open_context(NULL))
        return;
    CU(cu.cuUserObjectCreate(&object, &calls, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CU_IS(cu.cuUserObjectRetain(object, 0x80000000u), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuUserObjectRetain(object, 0), CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 2; i++)
        CU(cu.cuUserObjectRetain(object, 0x7fffffff));
    CU(cu.cuUserObjectRetain(object, 2));
    CU(cu.cuUserObjectRelease(object, 1));
    CHECK_EQ_I64(calls, 0);
    for (int i = 0; i < 2; i++)
        CU(cu.cuUserObjectRelease(object, 0x7fffffff));
    CHECK_EQ_I64(calls, 0);
    CU(cu.cuUserObjectRelease(object, 1));
    CHECK_EQ_I64(calls, 0);
    CU(cu.cuUserObjectRelease(object, 1));
    CHECK_EQ_I64(calls, 1);
    driver_close();
}

/* ---- fat binaries ---- */

/* n entries of stored PTX for an SM that is not the device's, with `bytes` of text each. */
static uint8_t *stored_entries(int n, size_t bytes, size_t *size)
{
    enum { HEAD = 16, ENTRY = 64 };
    *size = HEAD + (size_t)n * (ENTRY + bytes);
    uint8_t *data = calloc(1, *size);
    const uint64_t length = *size - HEAD, payload = bytes;
    memcpy(data, &(uint32_t){0xba55ed50}, 4);
    memcpy(data + 4, &(uint16_t[2]){1, HEAD}, 4);
    memcpy(data + 8, &length, 8);
    for (int i = 0; i < n; i++) {
        uint8_t *at = data + HEAD + (size_t)i * (ENTRY + bytes);
        memcpy(at, &(uint16_t[2]){1, 0x101}, 4);
        memcpy(at + 4, &(uint32_t){ENTRY}, 4);
        memcpy(at + 8, &payload, 8);
        memcpy(at + 28, &(uint32_t){75}, 4);
        memset(at + ENTRY, '\n', bytes);
        memcpy(at + ENTRY, ".version 7.0 .target sm_99", 26);
    }
    return data;
}

/* Four entries of 1000 bytes are looked at; a fifth is beyond the limit of them all. */
TEST_CASE(CudaLimits, TextOfAFatBinary)
{
    for (int n = 4; n <= 5; n++) {
        CUmodule module;
        size_t size;
        if (!driver_open_logged("", "PTXVM_LIMIT_TEXT=4000 PTXVM_SM=sm_80"))
            return;
        uint8_t *data = stored_entries(n, 1000, &size);
        CU_IS(cu.cuModuleLoadData(&module, data),
              n == 4 ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE);
        check_log(
            n == 4
                ? "none of which runs on sm_80"
                : "1000 bytes of PTX text in a fat binary that has expanded to as many before: the limit is "
                  "PTXVM_LIMIT_TEXT");
        free(data);
    }
}
