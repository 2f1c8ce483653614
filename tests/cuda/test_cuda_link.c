/* cuLink*: texts that share names, and libcudadevrt.a. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "log_file.h"
#include "tools/toolkit.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
/* A kernel that stores what an expression of %r gives. */
#define KERNEL(name, body)                                                                                   \
    ".visible .entry " name "(.param .u64 out) { .reg .u64 %rd<2>; .reg .u32 %r; ld.param.u64 %rd0, "        \
    "[out];\n" body "\n st.global.u32 [%rd0], %r; ret; }\n"
#define RETURNS(value) "{ mov.u32 r, " #value "; ret; }\n"

/* Links the texts; null: *result says why not. */
static CUmodule link_texts(const char *const *texts, int n, const char *archive, size_t archive_bytes,
                           CUresult *result, char *log, size_t size)
{
    CUlinkState state;
    CUmodule m = NULL;
    void *image;
    size_t bytes = 0;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)size};
    log[0] = 0;
    CU(cu.cuLinkCreate_v2(2, options, values, &state));
    for (int i = 0; i < n && texts[i]; i++) {
        char name[2] = {(char)('a' + i), 0};
        CU(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)texts[i], strlen(texts[i]), name,
                               0, NULL, NULL));
    }
    if (archive)
        CU(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, (void *)(uintptr_t)archive, archive_bytes,
                               "libcudadevrt.a", 0, NULL, NULL));
    *result = cu.cuLinkComplete(state, &image, &bytes);
    if (!*result) {
        CHECK_EQ_U64(bytes, strlen(image) + 1);
        CU(cu.cuModuleLoadData(&m, image));
    }
    CU(cu.cuLinkDestroy(state));
    return m;
}

static uint32_t run_kernel(CUmodule m, const char *name)
{
    CUfunction f = NULL;
    CUdeviceptr out = new_u32(1, 0);
    void *params[] = {&out};
    CU(cu.cuModuleGetFunction(&f, m, name));
    CU(launch_one(f, NULL, params));
    return read_u32(out);
}

#define CALL_VALUE "{ .reg .u32 t; call (t), value; mov.u32 %r, t; }"

static const struct {
    const char *name;
    const char *texts[3];
    uint32_t k, other; /* what the kernels k and (unless 0) other give */
} links[] = {
    {"WeakTwice",
     {HEAD ".weak .global .align 4 .u32 x = 7;\n.weak .func (.reg .u32 r) value() " RETURNS(1)
          KERNEL("other", "ld.global.u32 %r, [x];"),
      HEAD ".weak .global .align 4 .u32 x = 7;\n.weak .func (.reg .u32 r) value() " RETURNS(1)
          KERNEL("k", CALL_VALUE)},
     1,
     7},
    {"StrongAfterWeak",
     {HEAD ".weak .func (.reg .u32 r) value() " RETURNS(1) KERNEL("k", CALL_VALUE),
      HEAD ".visible .func (.reg .u32 r) value() " RETURNS(2)},
     2,
     0},
    {"StrongBeforeWeak",
     {HEAD ".visible .func (.reg .u32 r) value() " RETURNS(2),
      HEAD ".weak .func (.reg .u32 r) value() " RETURNS(1) KERNEL("k", CALL_VALUE)},
     2,
     0},
    {"WeakKernelsTwice",
     {HEAD ".weak .entry k(.param .u64 out) .maxntid 32, 1, 1 { .reg .u64 %rd; ld.param.u64 %rd, [out]; "
           "st.global.u32 [%rd], 5; ret; }\n",
      HEAD ".weak .entry k(.param .u64 out) .maxntid 32, 1, 1 { .reg .u64 %rd; ld.param.u64 %rd, [out]; "
           "st.global.u32 [%rd], 6; ret; }\n"},
     5,
     0},
    {"ExternBeforeItsDefinition",
     {HEAD ".extern .func (.reg .u32 r) value();\n.extern .global .align 4 .b32 x;\n" KERNEL("k", CALL_VALUE)
          KERNEL("other", "ld.global.u32 %r, [x];"),
      HEAD ".visible .func (.reg .u32 r) value() " RETURNS(3) ".visible .global .align 4 .u32 x = 8;\n"},
     3,
     8},
    {"ExternAfterItsDefinition",
     {HEAD
      ".visible .func (.reg .u32 r) value() " RETURNS(3) ".visible .global .align 4 .u32 x[2] = {8, 9};\n",
      HEAD ".extern .func (.reg .u32 r) value();\n.extern .global .align 4 .u32 x[];\n" KERNEL(
          "k", CALL_VALUE) KERNEL("other", "ld.global.u32 %r, [x+4];")},
     3,
     9},
    {"NamesOfTheirOwn",
     {HEAD
      ".global .align 4 .u32 $str = 1, two = 2; /* $str is mine */\n.func (.reg .u32 r) value() " RETURNS(11)
          KERNEL("k",
                 "{ .reg .u32 t, u; call (t), value; ld.global.u32 u, [$str]; mad.lo.u32 %r, t, 10, u; }"),
      HEAD ".global .align 4 .u32 $str = 3;\n.func (.reg .u32 r) value() " RETURNS(22) KERNEL(
          "other", "{ .reg .u32 t, u; call (t), value; ld.global.u32 u, [$str]; mad.lo.u32 %r, t, 10, u; }")},
     111,
     223},
    {"OwnNameAndASharedOne",
     {HEAD ".func (.reg .u32 r) value() " RETURNS(4) KERNEL("k", CALL_VALUE),
      HEAD ".visible .func (.reg .u32 r) value() " RETURNS(5),
      HEAD ".extern .func (.reg .u32 r) value();\n" KERNEL("other", CALL_VALUE)},
     4,
     5},
    {"ForwardDeclarations",
     {HEAD ".func (.reg .u32 r) value();\n" KERNEL("k", CALL_VALUE) ".func (.reg .u32 r) value() " RETURNS(6),
      HEAD
      ".func (.reg .u32 r) value();\n" KERNEL("other", CALL_VALUE) ".func (.reg .u32 r) value() " RETURNS(7)},
     6,
     7},
    {"CommonIsTheLargest", /* the pointer behind the array is within it only if that is the larger one */
     {HEAD
      ".common .global .align 4 .b8 x[8];\n" KERNEL("k", "st.global.u32 [x+4], 31; ld.global.u32 %r, [x+4];"),
      HEAD ".common .global .align 4 .u32 x[4];\n" KERNEL(
          "other", "st.global.u32 [x+12], 32; ld.global.u32 %r, [x+12];")},
     31,
     32},
    {"CommonGivesWayToADefinition",
     {HEAD ".common .global .align 4 .u32 x;\n" KERNEL("k", "ld.global.u32 %r, [x];"),
      HEAD ".visible .global .align 4 .u32 x = 33;\n"},
     33,
     0},
    {"DynamicSharedMemory",
     {HEAD ".extern .shared .align 4 .u32 s[];\n" KERNEL("k", "mov.u32 %r, %dynamic_smem_size;"),
      HEAD ".extern .shared .align 16 .b8 s[];\n" KERNEL("other", "mov.u32 %r, 1;")},
     0,
     1},
    {"NewestVersionAndTarget",
     {HEAD KERNEL("k", "mov.u32 %r, 41;"),
      ".version 7.8\n.target sm_80\n.address_size 64\n" KERNEL("other", "{ .reg .u32 t; mov.u32 t, 42; "
                                                                        "redux.sync.max.u32 %r, t, 1; }"),
      ".version 6.3\n.target sm_70\n.address_size 64\n" KERNEL("third", "mov.u32 %r, 43;")},
     41,
     42},
};

TEST_ROWS(CudaLink, Links, links)
{
    CUresult result;
    char log[600];
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    CUmodule m = link_texts(links[index].texts, 3, NULL, 0, &result, log, sizeof log);
    CU_IS(result, 0);
    CHECK_EQ_STR(log, "");
    if (m) {
        CHECK_EQ_U32(run_kernel(m, "k"), links[index].k);
        if (links[index].other)
            CHECK_EQ_U32(run_kernel(m, "other"), links[index].other);
    }
    driver_close();
}

static const struct {
    const char *name, *texts[2], *message;
} mistakes[] = {
    {"DefinedTwice",
     {HEAD ".visible .func f() { ret; }\n", HEAD ".visible .func f() { ret; }\n"},
     "'f' is defined in a and in b"},
    {"KernelTwice",
     {HEAD KERNEL("k", "mov.u32 %r, 1;"), HEAD KERNEL("k", "mov.u32 %r, 1;")},
     "'k' is defined in a and in b"},
    {"NotDefined",
     {HEAD ".extern .func (.reg .u32 r) value();\n" KERNEL("k", CALL_VALUE), HEAD},
     "value is called but not defined"},
    {"FunctionAndVariable",
     {HEAD ".extern .global .u32 f;\n", HEAD ".visible .func f() { ret; }\n"},
     "'f' is a function and a variable in a and in b"},
    {"OtherParameters",
     {HEAD
      ".extern .func f(.param .b32 a, .param .b32 b);\n.visible .entry k() { .param .b32 x; .param .b32 y; "
      "call f, (x, y); ret; }\n",
      HEAD ".visible .func f(.param .b32 a) { ret; }\n"},
     "f"},
};

TEST_ROWS(CudaLink, Mistakes, mistakes)
{
    CUresult result;
    char log[600];
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    CHECK(!link_texts(mistakes[index].texts, 2, NULL, 0, &result, log, sizeof log));
    CU_IS(result, CUDA_ERROR_INVALID_PTX);
    CHECK_HAS(log, mistakes[index].message);
    driver_close();
}

/* Both texts have a file 1; the fault is in the second one's. */
/* Each declaration is replaced by the definition's, which is long: 40 KB would become 400 KB, or 40 GB. */
TEST_CASE(CudaLink, TheResultIsLimited)
{
    enum { COMMENT = 20000, DECLARED = 1000 };
    static char definition[COMMENT + 200], uses[DECLARED * 20 + 200];
    static const char declaration[] = ".extern .func f;\n";
    char log[300];
    CUresult result;
    size_t at = strlen(strcpy(definition, HEAD ".visible .func f /*"));
    memset(definition + at, 'x', COMMENT);
    strcpy(definition + at + COMMENT, "*/ { ret; }\n");
    at = strlen(strcpy(uses, HEAD));
    for (int i = 0; i < DECLARED; i++, at += strlen(declaration))
        strcpy(uses + at, declaration);
    strcpy(uses + at, ".visible .entry k() { call f; ret; }\n");
    REQUIRE(driver_open_context("PTXVM_LIMIT_TEXT=64K"));
    link_texts((const char *const[]){definition, uses}, 2, NULL, 0, &result, log, sizeof log);
    CHECK_EQ_I64(result, CUDA_ERROR_INVALID_PTX);
    CHECK_HAS(log,
              "the result has more than 65536 bytes of PTX text in a module: the limit is PTXVM_LIMIT_TEXT");
    driver_close();
    REQUIRE(driver_open_context("PTXVM_LIMIT_TEXT=32M"));
    CHECK(link_texts((const char *const[]){definition, uses}, 2, NULL, 0, &result, log, sizeof log) != NULL);
    CU(result);
    driver_close();
}

/* The header of what is linked, to the digit: the text is loaded by others too. */
TEST_CASE(CudaLink, TheNewestVersionIsWritten)
{
    static const struct {
        const char *a, *b, *result;
    } versions[] = {
        {"7.0", "7.8", ".version 7.8\n"}, {"8.0", "7.8", ".version 8.0\n"}, {"6.5", "6.5", ".version 6.5\n"}};
    REQUIRE(driver_open_context(NULL));
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        const char *const pair[] = {versions[i].a, versions[i].b};
        CUlinkState state;
        void *image = NULL;
        size_t bytes = 0;
        CU(cu.cuLinkCreate_v2(0, NULL, NULL, &state));
        for (int k = 0; k < 2; k++) {
            char text[256];
            snprintf(text, sizeof text,
                     ".version %s\n.target sm_70\n.address_size 64\n.visible .entry k%d() { ret; }\n",
                     pair[k], k);
            CU(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, strlen(text), "a", 0, NULL, NULL));
        }
        CU(cu.cuLinkComplete(state, &image, &bytes));
        if (image)
            CHECK_HAS((const char *)image, versions[i].result);
        CU(cu.cuLinkDestroy(state));
    }
    driver_close();
}

/* Everything else about the calls is right. */
TEST_CASE(CudaLink, HandlesAreChecked)
{
    static const char text[] = HEAD KERNEL("k", "mov.u32 %r, 1;");
    CUlinkState dead;
    void *image;
    size_t bytes;
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuLinkCreate_v2(0, NULL, NULL, &dead));
    CU(cu.cuLinkDestroy(dead));
    for (int i = 0; i < 2; i++) {
        CUlinkState state = i ? dead : NULL;
        CU_IS(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, sizeof text, "a", 0, NULL,
                                  NULL),
              CUDA_ERROR_INVALID_HANDLE);
        CU_IS(cu.cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, "/no/such/file.ptx", 0, NULL, NULL),
              CUDA_ERROR_INVALID_HANDLE);
        CU_IS(cu.cuLinkComplete(state, &image, &bytes), CUDA_ERROR_INVALID_HANDLE);
        CU_IS(cu.cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
    }
    driver_close();
}

TEST_CASE(CudaLink, SourceLinesOfEachText)
{
    static const char *const texts[] = {
        HEAD ".file 1 \"first.cu\"\n.visible .entry a() {\n.loc 1 10 0\n ret; }\n",
        HEAD ".file 1 \"second.cu\"\n.visible .entry die() {\n.loc 1 20 0\n trap; }\n"};
    CUresult result;
    CUfunction f;
    char log[600];
    REQUIRE(driver_open_logged("", ""));
    CUmodule m = link_texts(texts, 2, NULL, 0, &result, log, sizeof log);
    CU_IS(result, 0);
    CU(cu.cuModuleGetFunction(&f, m, "die"));
    CU(launch_one(f, NULL, NULL));
    char *text = driver_close_logged();
    CHECK_HAS(text, "(second.cu:20)");
    free(text);
}

/* ---- libcudadevrt.a ---- */

/* Each block adds one to out[0], all meet, and each thread adds what it sees there to out[1]; its rank goes to
 * out[2 + rank]. */
static const char grid_ptx[] = HEAD
    ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    ".extern .func (.param .b32 r) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle);\n"
    ".visible .entry meet(.param .u64 out)\n"
    "{\n"
    "  .reg .u64 %rd<6>; .reg .u32 %r<8>; .reg .pred %p; .local .align 4 .u32 rank;\n"
    "  .param .b32 scope; .param .b64 h; .param .b64 h2; .param .b32 flags; .param .b32 ok;\n"
    "  .param .b64 t; .param .b64 g; .param .b64 h3; .param .b32 ok2;\n"
    "  ld.param.u64 %rd0, [out];\n"
    "  st.param.b32 [scope], 1; call (h), cudaCGGetIntrinsicHandle, (scope); ld.param.b64 %rd1, [h];\n"
    "  mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 0; @%p red.global.add.u32 [%rd0], 1;\n"
    "  st.param.b64 [h2], %rd1; st.param.b32 [flags], 0;\n"
    "  call (ok), cudaCGSynchronize, (h2, flags); ld.param.b32 %r1, [ok];\n"
    "  setp.ne.u32 %p, %r1, 0; @%p trap;\n"
    "  ld.volatile.global.u32 %r2, [%rd0]; red.global.add.u32 [%rd0+4], %r2;\n"
    "  mov.u64 %rd2, rank; cvta.local.u64 %rd3, %rd2;\n"
    "  st.param.b64 [t], %rd3; st.param.b64 [g], 0; st.param.b64 [h3], %rd1;\n"
    "  call (ok2), cudaCGGetRank, (t, g, h3);\n"
    "  ld.local.u32 %r3, [rank]; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd4, %rd0;\n"
    "  st.global.u32 [%rd4+8], %r3;\n"
    "  ret;\n"
    "}\n";

static void check_meeting(const char *archive, size_t bytes)
{
    enum { BLOCKS = 7, THREADS = 48 };
    static const char *const texts[] = {grid_ptx};
    uint32_t host[2 + BLOCKS * THREADS];
    CUresult result;
    CUfunction f = NULL;
    char log[600];
    CUmodule m = link_texts(texts, 1, archive, bytes, &result, log, sizeof log);
    CU_IS(result, 0);
    if (!m)
        return;
    CU(cu.cuModuleGetFunction(&f, m, "meet"));
    CUdeviceptr out = new_u32(2 + BLOCKS * THREADS, 0);
    void *params[] = {&out};
    CU(cu.cuLaunchCooperativeKernel(f, BLOCKS, 1, 1, 16, 3, 1, 0, NULL, params));
    CU(cu.cuMemcpyDtoH_v2(host, out, sizeof host));
    CHECK_EQ_U32(host[0], BLOCKS * 3); /* threads with tid.x of 0 */
    CHECK_EQ_U32(host[1], BLOCKS * 3 * BLOCKS * THREADS);
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        if (!CHECK_EQ_U32(host[2 + i], i))
            break;
}

/* The member "//" of an archive, padded to an even length. */
static const char small_archive[] = "!<arch>\n"
                                    "//                                              24        `\n"
                                    "cuda_device_runtime.o/\n\n";

TEST_CASE(CudaLink, CooperativeGroupsOfLibcudadevrt)
{
    static const char *const texts[] = {grid_ptx};
    CUresult result;
    char log[600];
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    CHECK(!link_texts(texts, 1, NULL, 0, &result, log, sizeof log)); /* nothing defines what it calls */
    CU_IS(result, CUDA_ERROR_INVALID_PTX);
    CHECK_HAS(log, "cudaCGGetIntrinsicHandle is called but not defined");
    check_meeting(small_archive, sizeof small_archive - 1);
    driver_close();
}

TEST_CASE(CudaLink, OtherLibrariesAreRefused)
{
    CUlinkState state;
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuLinkCreate_v2(0, NULL, NULL, &state));
    for (size_t n = 1; n < sizeof small_archive - 2; n++) { /* cut off */
        char *cut = malloc(n);
        memcpy(cut, small_archive, n);
        CU_IS(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, cut, n, "cut", 0, NULL, NULL),
              CUDA_ERROR_NO_BINARY_FOR_GPU);
        free(cut);
    }
    CU_IS(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_OBJECT, (void *)(uintptr_t)small_archive, 60, "o", 0, NULL,
                              NULL),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    CU(cu.cuLinkDestroy(state));
    driver_close();
}

TEST_CASE(CudaLink, LibcudadevrtOfTheToolkit)
{
    static const char *const folders[] = {"lib64", "lib", "targets/x86_64-linux/lib"};
    char ptxas[512], path[700];
    char *archive = NULL;
    size_t bytes = 0;
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("no toolkit was found");
    *strrchr(ptxas, '/') = 0;
    for (int i = 0; i < 3 && !archive; i++) {
        snprintf(path, sizeof path, "%s/../%s/libcudadevrt.a", ptxas, folders[i]);
        archive = toolkit_read_file(path, &bytes);
    }
    if (!archive)
        SKIP("no libcudadevrt.a was found");
    if (driver_open_context("PTXVM_SM=sm_90")) {
        check_meeting(archive, bytes);
        driver_close();
    }
    free(archive);
}
