/* Numbers that the driver and kernels see alike, and the floating-point environment of work that a host
 * function's thread goes on with. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "log_file.h"
#include "support/foreign.h"

static const char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry count(.param .u64 out)\n{\n.reg .b64 d; .reg .b32 r;\n"
    "ld.param.u64 d, [out]; mov.u32 r, %nsmid; st.global.u32 [d], r; mov.u32 r, %nwarpid;\n"
    "st.global.u32 [d+4], r; ret;\n}\n"
    ".visible .entry square(.param .u64 out)\n{\n.reg .b64 d; .reg .f32 f;\n"
    "ld.param.u64 d, [out]; ld.global.f32 f, [d]; mul.rn.f32 f, f, f; st.global.f32 [d], f;\n"
    "ld.global.f32 f, [d+4]; mul.rn.f32 f, f, f; st.global.f32 [d+4], f; ret;\n}\n";

static const struct {
    const char *name;
} sms[] = {{"sm_75"}, {"sm_80"},  {"sm_86"},  {"sm_87"},  {"sm_88"},  {"sm_89"},
           {"sm_90"}, {"sm_100"}, {"sm_103"}, {"sm_110"}, {"sm_120"}, {"sm_121"}};

TEST_ROWS(CudaNumbers, MultiprocessorsAndWarps, sms)
{
    char setting[32];
    CUmodule module = NULL;
    CUfunction f = NULL;
    int multiprocessors = -1, threads = -1;
    uint32_t seen[2];
    snprintf(setting, sizeof setting, "PTXVM_SM=%s", sms[index].name);
    REQUIRE(driver_open_context(setting));
    CU(cu.cuModuleLoadData(&module, ptx));
    CU(cu.cuModuleGetFunction(&f, module, "count"));
    CUdeviceptr out = new_u32(2, 0);
    CU(launch_one(f, NULL, (void *[]){&out}));
    CU(cu.cuMemcpyDtoH_v2(seen, out, sizeof seen));
    CU(cu.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    CU(cu.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    CHECK(multiprocessors > 0);
    CHECK_EQ_I64(seen[0], multiprocessors);
    CHECK_EQ_I64(seen[1] * 32, threads);
    driver_close();
}

/* ---- A host function that changes the environment of its thread ---- */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open;
    int environment;
} gate;

static void on_host(void *user)
{
    gate *g = user;
    pthread_mutex_lock(&g->lock);
    while (!g->open)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
    foreign_set(g->environment);
}

TEST_EACH(CudaNumbers, WorkAfterAHostFunction, foreign_count, foreign_name)
{
    CUmodule module = NULL;
    CUfunction f = NULL;
    CUstream stream = NULL;
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, index};
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuModuleLoadData(&module, ptx));
    CU(cu.cuModuleGetFunction(&f, module, "square"));
    CU(cu.cuStreamCreate(&stream, 0));
    /* Their squares are subnormal: 684023.599 and 684024.313 units in the last place. */
    static const uint32_t squared[2] = {0xA6FF8, 0xA6FF8};
    CUdeviceptr x = new_u32(2, 0x1F123456);
    CU(cu.cuMemsetD32_v2(x + 4, 0x1F12345B, 1));
    CU(cu.cuLaunchHostFunc(stream, on_host, &g));
    CU(launch_one(f, stream, (void *[]){&x})); /* run by the host function's thread */
    pthread_mutex_lock(&g.lock);
    g.open = true;
    pthread_cond_signal(&g.moved);
    pthread_mutex_unlock(&g.lock);
    CU(cu.cuStreamSynchronize(stream));
    CHECK_EQ_U32(read_u32(x), squared[0]);
    CHECK_EQ_U32(read_u32(x + 4), squared[1]);
    driver_close();
}

/* ---- Settings that nothing reads ---- */

TEST_CASE(CudaNumbers, UnknownVariablesAreLoggedOnce)
{
    REQUIRE(driver_open_logged("", "PTXVM_TREADS=2 PTXVM_LIMIT_TEX=100 PTXVM_LIMIT_DATA=1000000"));
    CU(cu.cuInit(0));
    char *text = driver_close_logged();
    CHECK_EQ_I64(text_count(text, "nothing reads it"), 2);
    CHECK_EQ_I64(text_count(text, "PTXVM_TREADS is set, and nothing reads it; did you mean PTXVM_THREADS?"),
                 1);
    CHECK_EQ_I64(
        text_count(text, "PTXVM_LIMIT_TEX is set, and nothing reads it; did you mean PTXVM_LIMIT_TEXT?"), 1);
    free(text);
}
