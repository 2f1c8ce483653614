/* Programmatic dependent launch through the driver: by attribute, by edges of graphs, by capture; what comes between two launches
 * ends it. */
#include <string.h>

#include "driver.h"

/* first: x[i] = 1000 + i. early: y[i] = x[i], without waiting for it; late: after waiting. */
#define KERNEL(name, first, body)                                                                            \
    ".visible .entry " name "(.param .u64 x, .param .u64 y)\n{\n.reg .b32 r<4>; .reg .b64 d<6>;\n"           \
    "ld.param.u64 d0, [x]; ld.param.u64 d1, [y]; mov.u32 r0, %tid.x; mul.wide.u32 d2, r0, 4; add.u64 d0, "   \
    "d0, d2; add.u64 d1, d1, d2;\n" first "\n" body "\nret;\n}\n"
#define COPY "ld.global.u32 r1, [d0]; st.global.u32 [d1], r1;"
static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n" KERNEL(
    "first", "griddepcontrol.launch_dependents;", "add.u32 r1, r0, 1000; st.global.u32 [d0], r1;")
    KERNEL("early", "", COPY) KERNEL("late", "griddepcontrol.wait;", COPY);

enum { N = 64, LOST = 0x7FBADBAD };

typedef struct scene {
    CUmodule module;
    CUfunction first, early, late;
    CUdeviceptr x, y;
    CUlaunchAttribute attribute;
    CUlaunchConfig config;
    CUstream stream;
    void *params[2];
} scene;

static bool scene_open(scene *s, const char *environment)
{
    memset(s, 0, sizeof *s);
    if (!CHECK(driver_open_context(environment)))
        return false;
    CU(cu.cuModuleLoadData(&s->module, text));
    CU(cu.cuModuleGetFunction(&s->first, s->module, "first"));
    CU(cu.cuModuleGetFunction(&s->early, s->module, "early"));
    CU(cu.cuModuleGetFunction(&s->late, s->module, "late"));
    CU(cu.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
    s->x = new_u32(N, 0);
    s->y = new_u32(N, 0);
    s->attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    s->attribute.value.programmaticStreamSerializationAllowed = 1;
    s->config = (CUlaunchConfig){.gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = N,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = s->stream,
                                 .attrs = &s->attribute,
                                 .numAttrs = 1};
    s->params[0] = &s->x;
    s->params[1] = &s->y;
    return true;
}

static CUresult launch(scene *s, CUfunction function, bool programmatic)
{
    s->attribute.value.programmaticStreamSerializationAllowed = programmatic;
    return cu.cuLaunchKernelEx(&s->config, function, s->params, NULL);
}

/* y: what the first kernel wrote, or what an early reader gets instead; zero in the end. */
static void check_y(const scene *s, bool lost)
{
    uint32_t y[N];
    CU(cu.cuStreamSynchronize(s->stream));
    CU(cu.cuMemcpyDtoH_v2(y, s->y, sizeof y));
    for (uint32_t i = 0; i < N; i++)
        CHECK_EQ_U32(y[i], lost ? LOST : i + 1000);
    CU(cu.cuMemsetD32_v2(s->x, 0, N));
    CU(cu.cuMemsetD32_v2(s->y, 0, N));
}

TEST_CASE(CudaOverlap, ByAttribute)
{
    scene s;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    CU(launch(&s, s.first, false));
    CU(launch(&s, s.late, true));
    check_y(&s, false);
    CU(launch(&s, s.first, false));
    CU(launch(&s, s.early, true));
    check_y(&s, true);
    CU(launch(&s, s.first, false));
    CU(launch(&s, s.early, false));
    check_y(&s, false);
    driver_close();
}

/* Something that the second kernel waits for, or that follows the first in another way. */
TEST_CASE(CudaOverlap, NotAcrossOtherWork)
{
    scene s;
    CUstream other;
    CUevent event;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    CU(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU(cu.cuEventCreate(&event, 0));
    CU(launch(&s, s.first, false));
    CU(cu.cuEventRecord(event, s.stream));
    CU(launch(&s, s.early, true));
    check_y(&s, false);
    CU(launch(&s, s.first, false));
    CU(cu.cuMemsetD32Async(s.y, 0, 1, s.stream));
    CU(launch(&s, s.early, true));
    check_y(&s, false);
    CU(launch(&s, s.first, false));
    s.config.hStream = other;
    CU(launch(&s, s.early, true)); /* another stream: not behind it at all */
    s.config.hStream = s.stream;
    CU(cu.cuStreamSynchronize(other));
    check_y(&s, false);
    CU(launch(&s, s.first, false));
    s.config.hStream = other;
    CU(launch(&s, s.first, false)); /* the last one on the device, but not the one in front */
    s.config.hStream = s.stream;
    CU(launch(&s, s.early, true));
    check_y(&s, false);
    driver_close();
}

TEST_CASE(CudaOverlap, WithoutTriggerAtItsEnd)
{
    static const char old[] = ".version 8.0\n.target sm_80\n.address_size 64\n" KERNEL(
        "first", "", "add.u32 r1, r0, 1000; st.global.u32 [d0], r1;") KERNEL("early", "", COPY);
    scene s;
    CUmodule module;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    CU(cu.cuModuleLoadData(&module, old));
    CU(cu.cuModuleGetFunction(&s.first, module, "first"));
    CU(cu.cuModuleGetFunction(&s.early, module, "early"));
    CU(launch(&s, s.first, false));
    CU(launch(&s, s.early, true));
    check_y(&s, false);
    driver_close();
}

/* The race check names both kernels, and the launch fails. */
TEST_CASE(CudaOverlap, IsFound)
{
    scene s;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90 PTXVM_CHECK=all"));
    CU(launch(&s, s.first, false));
    CU(launch(&s, s.late, true));
    CU(cu.cuStreamSynchronize(s.stream));
    CU(launch(&s, s.first, false));
    CU(launch(&s, s.early, true));
    CU_IS(cu.cuStreamSynchronize(s.stream), CUDA_ERROR_LAUNCH_FAILED);
    driver_close();
}

/* ---- Graphs ---- */

static CUDA_KERNEL_NODE_PARAMS_v2 node_params(scene *s, CUfunction function)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = function,
                                        .gridDimX = 1,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = N,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = s->params};
}

static void run_graph(const scene *s, CUgraph graph)
{
    CUgraphExec exec;
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CU(cu.cuGraphLaunch(exec, s->stream));
    CU(cu.cuStreamSynchronize(s->stream));
    CU(cu.cuGraphExecDestroy(exec));
}

TEST_CASE(CudaOverlap, ByEdge)
{
    static const CUgraphEdgeData programmatic = {.from_port = 1, .type = 1}, plain = {0};
    static const CUgraphEdgeData wrong[] = {{.type = 1},
                                            {.from_port = 3, .type = 1},
                                            {.from_port = 1},
                                            {.to_port = 1},
                                            {.from_port = 1, .type = 1, .reserved = {1}}};
    scene s;
    CUgraph graph, copy;
    CUgraphNode first, second, empty, from[2], to[2];
    CUgraphEdgeData edges[2];
    size_t n = 2;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    CU(cu.cuGraphCreate(&graph, 0));
    CUDA_KERNEL_NODE_PARAMS_v2 a = node_params(&s, s.first), b = node_params(&s, s.early);
    CU(cu.cuGraphAddKernelNode_v2(&first, graph, NULL, 0, &a));
    CU(cu.cuGraphAddKernelNode_v2(&second, graph, NULL, 0, &b));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_IS(cu.cuGraphAddDependencies_v2(graph, &first, &second, &wrong[i], 1), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuGraphAddDependencies_v2(graph, &first, &second, &programmatic, 1));
    run_graph(&s, graph);
    check_y(&s, true);
    CU(cu.cuGraphGetEdges_v2(graph, from, to, edges, &n));
    CHECK_EQ_U64(n, 1);
    CHECK(from[0] == first && to[0] == second && !memcmp(edges, &programmatic, sizeof programmatic));
    CHECK(!from[1] && !to[1] && !memcmp(&edges[1], &plain, sizeof plain));
    n = 2;
    CU_IS(cu.cuGraphGetEdges(graph, from, to, &n), CUDA_ERROR_LOSSY_QUERY);
    CU(cu.cuGraphClone(&copy, graph));
    run_graph(&s, copy);
    check_y(&s, true);
    CU(cu.cuGraphRemoveDependencies_v2(graph, &first, &second, &programmatic, 1));
    CU(cu.cuGraphAddDependencies_v2(graph, &first, &second, &plain, 1));
    run_graph(&s, graph);
    check_y(&s, false);
    CU(cu.cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    CU_IS(cu.cuGraphAddDependencies_v2(graph, &empty, &second, &programmatic, 1), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

TEST_CASE(CudaOverlap, ByCapture)
{
    scene s;
    CUgraph graph;
    CUgraphNode from, to;
    CUgraphEdgeData edge;
    size_t n = 1;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    CU(cu.cuStreamBeginCapture_v2(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(launch(&s, s.first, false));
    CU(launch(&s, s.early, true));
    CU(cu.cuStreamEndCapture(s.stream, &graph));
    CU(cu.cuGraphGetEdges_v2(graph, &from, &to, &edge, &n));
    CHECK_EQ_U64(n, 1);
    CHECK_EQ_I64(edge.from_port, 1);
    CHECK_EQ_I64(edge.type, 1);
    run_graph(&s, graph);
    check_y(&s, true);
    driver_close();
}
