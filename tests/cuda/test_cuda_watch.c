/* What the driver watches: the heap of kernels' malloc and its leaks, counters by line of the PTX. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "tools/toolkit.h"

/* "keep" allocates two pieces of 40 bytes and frees one; "twice" runs its fourth line for n threads, two times. */
static const char watched_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
    ".extern .func free (.param .b64 p);\n"
    ".visible .entry keep(.param .u64 n) { .reg .b64 d<4>; ld.param.u64 d0, [n];\n"
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], d0; call (r), malloc, (n); "
    "ld.param.b64 d1, [r]; }\n"
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], d0; call (r), malloc, (n); "
    "ld.param.b64 d2, [r]; }\n"
    "{ .param .b64 p; st.param.b64 [p], d1; call free, (p); }\nret; }\n"
    ".visible .entry twice(.param .u64 n) { .reg .b32 r<4>; .reg .pred p;\n"
    "mov.u32 r0, 0;\n"
    "AGAIN:\n"
    "add.u32 r0, r0, 1;\n"
    "setp.lt.u32 p, r0, 2;\n"
    "@p bra AGAIN;\n"
    "ret; }\n";

static char folder[256];

static char *read_text(const char *name)
{
    char path[300];
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return toolkit_read_file(path, &bytes);
}

static bool open_in_folder(const char *format)
{
    char settings[800];
    temp_dir_make(folder, sizeof folder);
    snprintf(settings, sizeof settings, format, folder, folder);
    return driver_open_context(settings);
}

static void run_watched(const char *name, uint64_t n)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    void *params[] = {&n};
    CU(cu.cuModuleLoadData(&module, watched_ptx));
    CU(cu.cuModuleGetFunction(&function, module, name));
    CU(launch_one(function, NULL, params));
    CU(cu.cuCtxSynchronize());
    CU(cu.cuModuleUnload(module));
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

TEST_CASE(CudaWatch, LeaksOfAKernelsMalloc)
{
    REQUIRE(open_in_folder("PTXVM_CHECK=memory,leak PTXVM_LOG=%s/log"));
    CUcontext second = NULL;
    CU(cu.cuCtxCreate_v2(&second, 0, 0));
    run_watched("keep", 40);
    CU(cu.cuCtxDestroy_v2(second)); /* the other context of the device still has the heap */
    char *text = read_text("log");
    CHECK_EQ_I64(count_of(text, "leak:"), 0);
    free(text);
    CU(cu.cuCtxDestroy_v2(driver_context));
    text = read_text("log");
    CHECK_EQ_I64(count_of(text, "leak: 40 bytes of a kernel's malloc at 0x"), 1);
    free(text);
    CU(cu.cuCtxCreate_v2(&driver_context, 0, 0)); /* it is gone, and not reported again */
    for (int i = 0; i < 12; i++)
        run_watched("keep", 24);
    driver_close();
    text = read_text("log");
    CHECK_EQ_I64(count_of(text, "leak: 40 bytes"), 1);
    CHECK_EQ_I64(count_of(text, "leak: 24 bytes of a kernel's malloc"), 10);
    CHECK_HAS(text, "leak: and 2 more of kernels' malloc");
    free(text);
    temp_dir_remove(folder);
}

/* Allocates n bytes and does not free them; whether malloc had them. */
static const char taking_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
    ".visible .entry take(.param .u64 n, .param .u64 out) { .reg .b64 d<4>; .reg .b32 had; .reg .pred p;\n"
    "ld.param.u64 d0, [n];\nld.param.u64 d1, [out];\n"
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], d0; call (r), malloc, (n); ld.param.b64 d2, [r]; }\n"
    "setp.ne.u64 p, d2, 0;\nselp.u32 had, 1, 0, p;\nst.global.u32 [d1], had;\nret; }\n";

static bool can_take(uint64_t bytes)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr out = 0;
    uint32_t had = 7;
    void *params[] = {&bytes, &out};
    CU(cu.cuMemAlloc_v2(&out, 4));
    CU(cu.cuModuleLoadData(&module, taking_ptx));
    CU(cu.cuModuleGetFunction(&function, module, "take"));
    CU(launch_one(function, NULL, params));
    CU(cu.cuMemcpyDtoH_v2(&had, out, 4));
    CU(cu.cuModuleUnload(module));
    CU(cu.cuMemFree_v2(out));
    CHECK(had <= 1);
    return had == 1;
}

/* As on a GPU: 8 MiB for each context, or what it sets. */
TEST_CASE(CudaWatch, HeapOfAContext)
{
    const uint64_t mib = 1 << 20;
    size_t limit = 0;
    REQUIRE(driver_open_context(""));
    CU(cu.cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    CHECK_EQ_U64(limit, 8 * mib);
    CHECK(!can_take(8 * mib + 1));
    CHECK(can_take(8 * mib - 32));
    CHECK(can_take(17)); /* 32 bytes of the heap */
    CHECK(!can_take(1));
    CU(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * mib + 16));
    CHECK(can_take(1));
    CHECK(!can_take(1));
    CU(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, mib)); /* less than kernels have */
    CHECK(!can_take(1));
    CU(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, SIZE_MAX));
    CHECK(can_take(64 * mib));
    driver_close();
    REQUIRE(driver_open_context("PTXVM_HEAP=1M"));
    CU(cu.cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    CHECK_EQ_U64(limit, mib);
    CHECK(can_take(mib) && !can_take(1));
    CUcontext second = NULL;
    CU(cu.cuCtxCreate_v2(&second, 0, 0));
    CHECK(can_take(mib) && !can_take(1));
    driver_close();
}

TEST_CASE(CudaWatch, CountersByLine)
{
    REQUIRE(open_in_folder("PTXVM_COUNTERS=%s/counters PTXVM_COUNTERS_BY=line"));
    run_watched("twice", 1);
    run_watched("twice", 1);
    driver_close();
    char *text = read_text("counters");
    CHECK_EQ_I64(count_of(text, "{\"kernel\": \"twice\""), 2);
    CHECK_EQ_I64(count_of(text, "{\"line\": 12, \"instructions\": 1, \"threads\": 1, \"lanes\": 1,"), 2);
    CHECK_EQ_I64(count_of(text, "{\"line\": 14, \"instructions\": 2, \"threads\": 2, \"lanes\": 2,"), 2);
    CHECK_EQ_I64(count_of(text, "{\"line\": 16, \"instructions\": 2, \"threads\": 2, \"lanes\": 1,"), 2);
    free(text);
    temp_dir_remove(folder);
    REQUIRE(open_in_folder("PTXVM_COUNTERS=%s/counters PTXVM_COUNTERS_BY=kernel"));
    run_watched("twice", 1);
    driver_close();
    text = read_text("counters");
    CHECK_HAS(text, "{\"kernel\": \"twice\"");
    CHECK(!strstr(text, "\"lines\""));
    free(text);
    temp_dir_remove(folder);
}
