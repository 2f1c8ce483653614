/* The device itself: modules, names, memory, output, errors. */
#include "test_exec.h"

#include <stdio.h>

/* ---- Modules ---- */

static ptxvm_status load(const char *sm, const char *text, char *error, size_t size)
{
    ptxvm_config config = {.sm = sm};
    ptxvm *vm = NULL;
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel;
    ptxvm_status status = ptxvm_create(&config, &vm);
    if (!status)
        status = ptxvm_module_load(vm, text, strlen(text), &module);
    if (!status)
        status = ptxvm_module_kernel(module, "k", &kernel);
    snprintf(error, size, "%s", ptxvm_last_error(vm));
    ptxvm_destroy(vm);
    return status;
}

static const struct {
    const char *name, *sm, *target;
    ptxvm_status status;
} targets[] = {
    {"older", "sm_90", "sm_80", PTXVM_OK},
    {"same", "sm_80", "sm_80", PTXVM_OK},
    {"newer", "sm_80", "sm_90", PTXVM_ERROR_TARGET},
    {"a_on_a", "sm_90a", "sm_90a", PTXVM_OK},
    {"a_on_newer", "sm_100a", "sm_90a", PTXVM_ERROR_TARGET},
};

TEST_ROWS(PtxvmDevice, Targets, targets)
{
    char text[256], error[512];
    snprintf(text, sizeof text,
             ".version 8.0\n.target %s\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n",
             targets[index].target);
    CHECK_EQ_I64(load(targets[index].sm, text, error, sizeof error), targets[index].status);
    if (targets[index].status)
        CHECK_HAS(error, "does not run on");
}

TEST_CASE(PtxvmDevice, RefusesWhatIsNotDefined)
{
    char error[512];
    CHECK_EQ_I64(
        load(NULL, EXEC_HEADER ".extern .func missing();\n.visible .entry k()\n{\ncall missing;\nret;\n}\n",
             error, sizeof error),
        PTXVM_ERROR_PTX);
    CHECK_HAS(error, "missing is called but not defined");
    CHECK_EQ_I64(
        load(NULL,
             EXEC_HEADER
             ".extern .global .u32 v;\n.visible .entry k()\n{\n.reg .b32 r; ld.global.u32 r, [v];\nret;\n}\n",
             error, sizeof error),
        PTXVM_ERROR_PTX);
    CHECK_HAS(error, "v, which k uses, is not defined");
    CHECK_EQ_I64(load(NULL, EXEC_HEADER ".visible .entry other()\n{\nret;\n}\n", error, sizeof error),
                 PTXVM_ERROR_NOT_FOUND);
    CHECK_HAS(error, "no kernel k");
    CHECK_EQ_I64(load("sm_42", EXEC_HEADER, error, sizeof error), PTXVM_ERROR_TARGET);
    CHECK_EQ_I64(load(NULL, "hello", error, sizeof error), PTXVM_ERROR_PTX);
}

TEST_CASE(PtxvmDevice, WrongArguments)
{
    ptxvm *vm = NULL;
    REQUIRE(ptxvm_create(NULL, &vm) == PTXVM_OK);
    CHECK_EQ_I64(ptxvm_create(NULL, NULL), PTXVM_ERROR_ARGUMENT);
    ptxvm *other = NULL;
    CHECK_EQ_I64(ptxvm_create(&(ptxvm_config){.address_base = 0x212345678}, &other), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(ptxvm_create(&(ptxvm_config){.address_base = UINT64_C(1) << 32}, &other),
                 PTXVM_ERROR_ARGUMENT);
    CHECK(!other && !ptxvm_last_report(NULL)->inexact);
    CHECK_EQ_I64(ptxvm_module_load(vm, NULL, 0, NULL), PTXVM_ERROR_ARGUMENT);
    ptxvm_module *module = (ptxvm_module *)(void *)vm;
    CHECK_EQ_I64(ptxvm_module_load(vm, "hello", 5, &module), PTXVM_ERROR_PTX);
    CHECK(module == NULL);
    CHECK_EQ_I64(ptxvm_alloc(vm, 4, NULL), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(ptxvm_write(vm, 0, NULL, 1), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(ptxvm_launch(vm, NULL, NULL, NULL, 0), PTXVM_ERROR_ARGUMENT);
    ptxvm_module_unload(NULL);
    ptxvm_destroy(vm);
    ptxvm_destroy(NULL);
}

/* ---- Variables ---- */

#define VARIABLES                                                                                            \
    EXEC_HEADER                                                                                              \
    ".global .align 8 .u32 numbers[4] = {11, 22, 33};\n.const .align 8 .b8 bytes[8] = {1, 2, 3, 4, 5, "      \
    "6, 7, 8};\n"                                                                                            \
    ".global .align 8 .u64 where[2] = {numbers+4, bytes};\n"                                                 \
    ".visible .entry k(.param .u64 out)\n{\n.reg .b32 r<4>; .reg .b64 d<4>;\n"                               \
    "ld.param.u64 d0, [out]; ld.global.u64 d1, [where]; ld.global.u32 r0, [d1]; ld.global.u64 d2, "          \
    "[where+8];\n"                                                                                           \
    "ld.const.u32 r1, [bytes+4]; ld.const.u8 r2, [d2+2]; st.global.u32 [d0], r0; st.global.u32 [d0+4], "     \
    "r1;\n"                                                                                                  \
    "st.global.u32 [d0+8], r2; ld.global.u32 r3, [numbers+12]; st.global.u32 [d0+12], r3; ret;\n}\n"

TEST_CASE(PtxvmDevice, VariablesWithInitialisers)
{
    uint32_t out[4] = {9, 9, 9, 9}, value = 0;
    exec_run run = exec_open(NULL, VARIABLES);
    CHECK_EQ_I64(exec_launch(&run, exec_grid(1, 1), out, 4), PTXVM_OK);
    CHECK_EQ_U32(out[0], 22);
    CHECK_EQ_U32(out[1], 0x08070605);
    CHECK_EQ_U32(out[2], 3);
    CHECK_EQ_U32(out[3], 0);
    ptxvm_address address = 0;
    uint64_t bytes = 0;
    CHECK_EQ_I64(ptxvm_module_global(run.module, "numbers", &address, &bytes), PTXVM_OK);
    CHECK_EQ_U64(bytes, 16);
    CHECK_EQ_I64(ptxvm_read(run.vm, &value, address + 8, 4), PTXVM_OK);
    CHECK_EQ_U32(value, 33);
    value = 44;
    CHECK_EQ_I64(ptxvm_write(run.vm, address + 12, &value, 4), PTXVM_OK);
    CHECK_EQ_I64(exec_launch(&run, exec_grid(1, 1), out, 4), PTXVM_OK);
    CHECK_EQ_U32(out[3], 44);
    CHECK_EQ_I64(ptxvm_module_global(run.module, "nothing", &address, &bytes), PTXVM_ERROR_NOT_FOUND);
    CHECK_EQ_I64(ptxvm_free(run.vm, address), PTXVM_ERROR_ADDRESS);
    exec_close(&run);
}

TEST_CASE(PtxvmDevice, KernelsAreDescribed)
{
    exec_run run = exec_open(
        NULL, EXEC_HEADER
        ".visible .entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20]) .maxntid 128, 2\n{\n"
        ".shared .u32 s[10]; .local .b8 l[40]; .reg .b32 r; .reg .b64 d; mov.u64 d, l; ld.shared.u32 r, [s]; "
        "st.local.u32 [d], r; ret;\n}\n"
        ".entry second()\n{\nret;\n}\n");
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(run.kernel, &info);
    CHECK_EQ_STR(info.name, "k");
    CHECK_EQ_I64(info.n_params, 3);
    CHECK_EQ_U64(info.param_bytes, 36);
    CHECK_EQ_U64(info.static_shared_bytes, 40);
    CHECK(info.local_bytes >= 40);
    CHECK_EQ_I64(info.max_threads, 256);
    uint64_t offset = 0, bytes = 0;
    CHECK(ptxvm_kernel_param(run.kernel, 2, &offset, &bytes));
    CHECK_EQ_U64(offset, 16);
    CHECK_EQ_U64(bytes, 20);
    CHECK(!ptxvm_kernel_param(run.kernel, 3, &offset, &bytes));
    CHECK_EQ_I64(ptxvm_module_kernel_count(run.module), 2);
    CHECK(ptxvm_module_kernel_at(run.module, 2) == NULL);
    CHECK(ptxvm_module_kernel_at(run.module, 1) != NULL);
    exec_close(&run);
}

/* ---- Memory ---- */

TEST_CASE(PtxvmDevice, MemoryIsLimitedAndChecked)
{
    ptxvm_config config = {.memory_bytes = 1 << 20};
    ptxvm *vm = NULL;
    ptxvm_address a = 0, b = 0, again = 0;
    uint8_t data[4] = {1, 2, 3, 4};
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, 1000, &a), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, 2 << 20, &b), PTXVM_ERROR_MEMORY);
    CHECK_EQ_I64(ptxvm_write(vm, a + 996, data, 4), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_write(vm, a + 997, data, 4), PTXVM_ERROR_ADDRESS);
    CHECK_EQ_I64(ptxvm_fill(vm, a, 7, 1000), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_read(vm, data, a + 996, 4), PTXVM_OK);
    CHECK_EQ_U32(data[3], 7);
    CHECK_EQ_I64(ptxvm_free(vm, a + 256), PTXVM_ERROR_ADDRESS);
    CHECK_EQ_I64(ptxvm_free(vm, a), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_free(vm, a), PTXVM_ERROR_ADDRESS);
    CHECK_EQ_I64(ptxvm_alloc(vm, 1000, &again), PTXVM_OK);
    CHECK_EQ_U64(again, a);
    ptxvm_destroy(vm);
}

/* Loading and unloading gives everything back: a thousand modules fit where one does. */
/* A mapping may touch its neighbours, and may not lie over them by one byte. */
TEST_CASE(PtxvmDevice, MappingsDoNotOverlap)
{
    static uint8_t host[3][64];
    ptxvm *vm = NULL;
    const ptxvm_address at = UINT64_C(0x100000000000);
    REQUIRE(ptxvm_create(NULL, &vm) == PTXVM_OK);
    CHECK_EQ_I64(ptxvm_map(vm, at, host[0], 64, 64), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_map(vm, at + 128, host[1], 64, 64), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_map(vm, at + 63, host[2], 64, 64), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(ptxvm_map(vm, at + 65, host[2], 64, 64), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(ptxvm_map(vm, at + 64, host[2], 64, 65), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(ptxvm_map(vm, at + 64, host[2], 64, 64), PTXVM_OK);
    ptxvm_destroy(vm);
}

TEST_CASE(PtxvmDevice, ModulesGiveTheirMemoryBack)
{
    ptxvm_config config = {.memory_bytes = 1 << 16};
    ptxvm *vm = NULL;
    static const char text[] = EXEC_HEADER ".global .b8 big[40000];\n.visible .entry k()\n{\nret;\n}\n";
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    for (int i = 0; i < 20; i++) {
        ptxvm_module *module = NULL, *second = NULL;
        CHECK_EQ_I64(ptxvm_module_load(vm, text, strlen(text), &module), PTXVM_OK);
        CHECK_EQ_I64(ptxvm_module_load(vm, text, strlen(text), &second), PTXVM_ERROR_MEMORY);
        ptxvm_module_unload(module);
    }
    ptxvm_destroy(vm);
}

/* ---- Printing ---- */

typedef struct printed {
    char text[4096];
    size_t length;
} printed;

static void keep_text(void *user, const char *text, size_t length)
{
    printed *p = user;
    if (p->length + length < sizeof p->text) {
        memcpy(p->text + p->length, text, length);
        p->length += length;
    }
}

/* vprintf as nvcc calls it: the text comes in the order of the blocks, whatever the host threads do. */
TEST_CASE(PtxvmDevice, PrintsInTheOrderOfBlocks)
{
    for (int threads = 1; threads <= 3; threads++) {
        printed p = {.length = 0};
        uint32_t out[1] = {0};
        ptxvm_config config = {.threads = threads, .print = keep_text, .print_user = &p};
        exec_run run = exec_open(&config, EXEC_HEADER
                                 ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 "
                                 "b);\n.global .align 1 .b8 format[4] = {37, 100, 32, 0};\n"
                                 ".visible .entry k(.param .u64 out)\n{\n.local .align 8 .b8 args[8]; .reg "
                                 ".pred p; .reg .b32 r<4>; .reg .b64 d<6>;\n"
                                 "mov.u32 r0, %ctaid.x; mov.u32 r1, %tid.x; setp.ne.u32 p, r1, 5; @p ret; "
                                 "mov.u64 d0, args; st.local.u32 [d0], r0; cvta.local.u64 d1, d0;\n"
                                 "mov.u64 d2, format; cvta.global.u64 d3, d2;\n"
                                 "{ .param .b64 a; st.param.b64 [a], d3; .param .b64 b; st.param.b64 [b], "
                                 "d1; .param .b32 r; call.uni (r), vprintf, (a, b); }\nret;\n}\n");
        CHECK_EQ_I64(exec_launch(&run, exec_grid(30, 32), out, 1), PTXVM_OK);
        exec_close(&run);
        char expected[256] = "";
        for (int i = 0; i < 30; i++)
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d ", i);
        CHECK_EQ_STR(p.text, expected);
    }
}
