/* Clusters through the driver: by attribute, by the kernel's directive, in graphs; what they cost, and what is refused. */
#include <string.h>

#include "driver.h"

/* Each block adds 100 * its rank in the cluster + the blocks of a cluster to the word of its %ctaid.x. */
#define RANKS(name, directive)                                                                               \
    ".visible .entry " name "(.param .u64 out) " directive "\n{\n.reg .b32 r<4>; .reg .b64 d<4>;\n"          \
    "ld.param.u64 d0, [out]; mov.u32 r0, %cluster_ctarank; mov.u32 r1, %cluster_nctarank; mad.lo.u32 r0, "   \
    "r0, 100, r1; mov.u32 r2, %ctaid.x; mul.wide.u32 d1, r2, 4; add.u64 d0, d0, d1; st.global.u32 [d0], "    \
    "r0;\nret;\n}\n"
static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n" RANKS("ranks", "")
    RANKS("pairs", ".reqnctapercluster 2");

enum { BLOCKS = 16 };

typedef struct scene {
    CUmodule module;
    CUfunction ranks, pairs;
    CUdeviceptr out;
    CUlaunchAttribute attribute;
    CUlaunchConfig config;
} scene;

static bool scene_open(scene *s, const char *environment)
{
    memset(s, 0, sizeof *s);
    if (!CHECK(driver_open_context(environment)))
        return false;
    CU(cu.cuModuleLoadData(&s->module, text));
    CU(cu.cuModuleGetFunction(&s->ranks, s->module, "ranks"));
    CU(cu.cuModuleGetFunction(&s->pairs, s->module, "pairs"));
    CU(cu.cuMemAlloc_v2(&s->out, BLOCKS * 4));
    s->attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    s->config = (CUlaunchConfig){.gridDimX = BLOCKS,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .attrs = &s->attribute,
                                 .numAttrs = 1};
    return true;
}

static void set_cluster(scene *s, unsigned x)
{
    s->attribute.value.clusterDim.x = x;
    s->attribute.value.clusterDim.y = s->attribute.value.clusterDim.z = 1;
}

static void check_ranks(const scene *s, uint32_t cluster)
{
    uint32_t out[BLOCKS];
    CU(cu.cuMemcpyDtoH_v2(out, s->out, sizeof out));
    for (uint32_t i = 0; i < BLOCKS; i++)
        CHECK_EQ_U32(out[i], i % cluster * 100 + cluster);
    CU(cu.cuMemsetD32_v2(s->out, 0, BLOCKS));
}

TEST_CASE(CudaCluster, ByAttributeAndByDirective)
{
    scene s;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    void *params[] = {&s.out};
    set_cluster(&s, 4);
    CU(cu.cuLaunchKernelEx(&s.config, s.ranks, params, NULL));
    check_ranks(&s, 4);
    CU(cu.cuLaunchKernel(s.pairs, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    check_ranks(&s, 2);
    CU(cu.cuLaunchKernel(s.ranks, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    check_ranks(&s, 1);
    driver_close();
}

TEST_CASE(CudaCluster, MoreThanEightNeedLeave)
{
    scene s;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    void *params[] = {&s.out};
    int most = 0;
    set_cluster(&s, 16);
    CU_IS(cu.cuLaunchKernelEx(&s.config, s.ranks, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CU(cu.cuOccupancyMaxPotentialClusterSize(&most, s.ranks, &s.config));
    CHECK_EQ_I64(most, 8);
    CU(cu.cuFuncSetAttribute(s.ranks, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    CU(cu.cuOccupancyMaxPotentialClusterSize(&most, s.ranks, &s.config));
    CHECK_EQ_I64(most, 16);
    CU(cu.cuLaunchKernelEx(&s.config, s.ranks, params, NULL));
    check_ranks(&s, 16);
    set_cluster(&s, 3);
    CU_IS(cu.cuLaunchKernelEx(&s.config, s.ranks, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    set_cluster(&s, 0);
    CU_IS(cu.cuLaunchKernelEx(&s.config, s.ranks, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    driver_close();
}

TEST_CASE(CudaCluster, Occupancy)
{
    scene s;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_90"));
    int clusters = 0, single = 0, value = 0;
    set_cluster(&s, 1);
    CU(cu.cuOccupancyMaxActiveClusters(&single, s.ranks, &s.config));
    set_cluster(&s, 4);
    CU(cu.cuOccupancyMaxActiveClusters(&clusters, s.ranks, &s.config));
    CHECK_EQ_I64(clusters, single / 4);
    CU(cu.cuOccupancyMaxActiveClusters(
        &clusters, s.pairs,
        &(CUlaunchConfig){
            .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1}));
    CHECK_EQ_I64(clusters, single / 2);
    CU(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, s.pairs));
    CHECK_EQ_I64(value, 2);
    driver_close();
}

TEST_CASE(CudaCluster, InGraphs)
{
    scene s;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;
    CUkernelNodeAttrValue value = {.clusterDim = {8, 1, 1}}, read;
    REQUIRE(scene_open(&s, "PTXVM_SM=sm_100"));
    void *params[] = {&s.out};
    CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.func = s.ranks,
                                         .gridDimX = BLOCKS,
                                         .gridDimY = 1,
                                         .gridDimZ = 1,
                                         .blockDimX = 1,
                                         .blockDimY = 1,
                                         .blockDimZ = 1,
                                         .kernelParams = params};
    CU(cu.cuGraphCreate(&graph, 0));
    CU(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel));
    CU(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    CU(cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &read));
    CHECK_EQ_U32(read.clusterDim.x, 8);
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CU(cu.cuGraphLaunch(exec, NULL));
    check_ranks(&s, 8);
    driver_close();
}

TEST_CASE(CudaCluster, OlderSmsHaveNone)
{
    int value = 1;
    REQUIRE(driver_open_context("PTXVM_SM=sm_89"));
    CU(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    CHECK_EQ_I64(value, 0);
    driver_close();
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    CU(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
    CHECK_EQ_I64(value, 1);
    driver_close();
}
