/* What the model of time refuses, and how many blocks fit on an SM. Modelled times are not tested: they are estimates. */
#include "clock/model/model.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int sm, threads;
    uint32_t shared;
    int registers, blocks;
} fits[] = {
    {"Threads", 80, 256, 0, 0, 8},
    {"Blocks", 86, 32, 0, 16, 16},
    {"Registers", 80, 256, 0, 255, 1},
    {"RegistersOfSmallBlocks", 80, 128, 0, 168, 3},
    {"Shared", 80, 128, 100250, 0, 1},
    {"SharedOnTuring", 75, 128, 32768, 0, 2},
    {"TooLarge", 75, 128, 70000, 0, 0},
    {"UnknownSm", 70, 128, 0, 0, 0},
    /* 8 warps of 8,192 registers: a block need not have a warp for each scheduler to be placed */
    {"OneWarp", 80, 32, 0, 255, 8},
    {"TwoWarps", 89, 64, 0, 207, 4},
    {"FiveWarps", 80, 160, 0, 255, 1},
    {"NineWarps", 80, 288, 0, 200, 0},
};

TEST_ROWS(ClockModel, BlocksThatFit, fits)
{
    CHECK_EQ_I64(
        clock_blocks_per_sm(fits[index].sm, fits[index].threads, fits[index].shared, fits[index].registers),
        fits[index].blocks);
}

#define KERNEL(body)                                                                                         \
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"                   \
    ".reg .pred q;\n.reg .u32 r<4>;\n.reg .u64 l<2>;\nld.param.u64 l0, [p];\n" body "ret;\n}\n"

static const struct {
    const char *name, *ptx, *error; /* null: it is modelled */
} kernels[] = {
    {"Store", KERNEL("mov.u32 r0, %tid.x;\nst.global.u32 [l0], r0;\n"), NULL},
    {"Loop",
     KERNEL("mov.u32 r0, 0;\nLOOP:\nred.global.add.u32 [l0], r0;\nadd.u32 r0, r0, 1;\nsetp.lt.u32 q, r0, "
            "100;\n@q "
            "bra LOOP;\n"),
     NULL},
    {"Spin",
     KERNEL("WAIT:\nld.acquire.gpu.global.u32 r1, [l0];\nsetp.eq.u32 q, r1, 0;\n@q bra WAIT;\nst.global.u32 "
            "[l0], r1;\n"),
     "not modelled: it spins on memory"},
    {"Location", KERNEL("mov.u32 r0, 0;\n\t.loc 1 2 3\nst.global.u32 [l0], r0;\n"), "the PTX has .loc lines"},
    {"TwoOnALine", KERNEL("{ .reg .u32 t; mov.u32 r0, 0; }\nmov.u32 r0, 0; st.global.u32 [l0], r0;\n"),
     "line 11 of the PTX has several instructions"},
    {"OneOnALine", KERNEL("{ .reg .u32 t; mov.u32 t, 0; }\nst.global.u32 [l0], r0; // a; b;\n"), NULL},
    {"Mistake", KERNEL("mov.u32 r9;\n"), "ptxas"},
};

/* ptxvm's own run of a kernel that it accepts: one block, whose word is 1. */
static ptxvm *run(const char *text)
{
    ptxvm_config config = {.sm = "sm_75", .counters = PTXVM_COUNTERS_PATHS};
    ptxvm *vm = NULL;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    ptxvm_address address;
    uint32_t one = 1;
    if (ptxvm_create(&config, &vm) != PTXVM_OK ||
        ptxvm_module_load(vm, text, strlen(text), &module) != PTXVM_OK)
        return vm;
    ptxvm_launch_config launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    CHECK_EQ_I64(ptxvm_module_kernel(module, "k", &kernel), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, sizeof one, &address), PTXVM_OK);
    memcpy(ptxvm_host(vm, address, sizeof one), &one, sizeof one);
    CHECK_EQ_I64(ptxvm_launch(vm, kernel, &launch, &address, sizeof address), PTXVM_OK);
    return vm;
}

TEST_ROWS(ClockModel, WhatIsModelled, kernels)
{
    char error[512] = "";
    clock_estimate e;
    if (!sass_found(error, sizeof error))
        SKIP("%s", error);
    ptxvm *vm = run(kernels[index].ptx);
    clock_case what = {.ptx = kernels[index].ptx,
                       .on = board_find("t4"),
                       .counters = ptxvm_last_counters(vm),
                       .blocks = 1,
                       .threads = 32};
    bool ok = clock_time(&what, &e, error, sizeof error);
    CHECK(ok == !kernels[index].error);
    if (ok) {
        CHECK_EQ_I64(e.paths, 1);
        CHECK(e.misfit < 0.001);
        CHECK(e.at[CLOCK_LOW].issued == e.at[CLOCK_HIGH].issued);
        CHECK(e.at[CLOCK_LOW].us > 0);
        clock_estimate_free(&e);
    } else if (kernels[index].error)
        CHECK_HAS(error, kernels[index].error);
    ptxvm_destroy(vm);
}

/* ---- Blocks of several paths ---- */

/* Blocks of one warp: every other block loads 32 lines of 128 bytes, the others one. */
#define ALTERNATES                                                                                           \
    KERNEL("mov.u32 r0, %ctaid.x;\nmov.u32 r1, %tid.x;\nmul.wide.u32 l1, r1, 4;\nadd.u64 l0, l0, l1;\n"      \
           "mul.wide.u32 l1, r0, 4096;\nadd.u64 l0, l0, l1;\nand.b32 r1, r0, 1;\nmov.u32 r0, 0;\n"           \
           "setp.eq.u32 q, r1, 0;\n@q mov.u32 r0, 31;\nLOOP:\nld.global.u32 r1, [l0];\n"                     \
           "setp.eq.u32 q, r1, 77;\n@q st.global.u32 [l0], r1;\nadd.u64 l0, l0, 128;\n"                      \
           "setp.eq.u32 q, r0, 0;\nsub.u32 r0, r0, 1;\n@!q bra LOOP;\n")

static ptxvm *run_alternating(uint32_t blocks)
{
    ptxvm_config config = {.sm = "sm_75", .counters = PTXVM_COUNTERS_PATHS};
    ptxvm *vm = NULL;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    ptxvm_address address;
    if (ptxvm_create(&config, &vm) != PTXVM_OK)
        return NULL;
    CHECK_EQ_I64(ptxvm_module_load(vm, ALTERNATES, strlen(ALTERNATES), &module), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_module_kernel(module, "k", &kernel), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, blocks * 4096, &address), PTXVM_OK);
    memset(ptxvm_host(vm, address, blocks * 4096), 0, blocks * 4096);
    ptxvm_launch_config launch = {.grid = {blocks, 1, 1}, .block = {32, 1, 1}};
    CHECK_EQ_I64(ptxvm_launch(vm, kernel, &launch, &address, sizeof address), PTXVM_OK);
    return vm;
}

/* All of them are modelled, of the sample and of a launch 8 times as large: nothing that was counted is lost. */
TEST_CASE(ClockModel, BlocksOfTwoPathsThatAlternate)
{
    enum { BLOCKS = 16, TIMES = 8, LINE = 128 };
    const double bytes = BLOCKS / 2 * (32 + 1) * LINE;
    char error[512] = "";
    clock_estimate e;
    if (!sass_found(error, sizeof error))
        SKIP("%s", error);
    ptxvm *vm = run_alternating(BLOCKS);
    REQUIRE(vm != NULL);
    for (uint64_t times = 1; times <= TIMES; times += TIMES - 1) {
        clock_case what = {.ptx = ALTERNATES,
                           .on = board_find("t4"),
                           .counters = ptxvm_last_counters(vm),
                           .blocks = BLOCKS * times,
                           .counted_blocks = BLOCKS,
                           .threads = 32};
        REQUIRE(clock_time(&what, &e, error, sizeof error));
        CHECK_EQ_I64(e.paths, 2);
        CHECK_EQ_I64((int64_t)e.at[CLOCK_LOW].dram_bytes, (int64_t)(bytes * (double)times));
        clock_estimate_free(&e);
    }
    ptxvm_destroy(vm);
}

/* ---- Tensor cores ---- */

/* Work of the instruction, in 16-bit products with f32 sums; GeForce has half of the rate for those. */
static const struct {
    const char *name, *sass;
    double l40, rtx4090;
} products[] = {
    {"F32Sums", "HMMA.16816.F32 R4, R8, R10, R4", 2048, 2048},
    {"F16Sums", "HMMA.16816.F16 R4, R8, R10, R4", 2048, 1024},
    {"Int8", "IMMA.16832.S8.S8 R4, R8.ROW, R10.COL, R4", 2048, 1024},
    {"Tf32", "HMMA.1688.F32.TF32 R4, R8, R10, R4", 2048, 2048},
};

static double work_on(const char *board_name, const char *sass)
{
    char listing[256], error[256] = "";
    double counts[1] = {1}, edges[1] = {0}, work = 0;
    ptxvm_counts lines[1] = {{0}};
    ptxvm_counters counters = {.kernel = "k", .lines = lines, .n_lines = 1};
    const sass_path path = {.warps = 1, .blocks = counts, .edges = edges};
    const clock_case what = {.on = board_find(board_name), .counters = &counters, .blocks = 1, .threads = 32};
    clock_kernel kernel;
    sass_code code;
    snprintf(listing, sizeof listing, "\n.text.k:\n        /*0000*/    %s ;\n        /*0010*/    EXIT ;\n",
             sass);
    if (!CHECK(sass_parse(listing, "k", &code)))
        return 0;
    if (CHECK(clock_lower(&code, &path, 1, &what, &kernel, error, sizeof error))) {
        work = kernel.instructions[0].work;
        clock_kernel_free(&kernel);
    }
    sass_code_free(&code);
    return work;
}

TEST_ROWS(ClockModel, TensorWork, products)
{
    CHECK(work_on("l40", products[index].sass) == products[index].l40);
    CHECK(work_on("rtx4090", products[index].sass) == products[index].rtx4090);
}
