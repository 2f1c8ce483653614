/* Launches: shapes, limits, faults and where they are, seeds, host threads, reports. */
#include "test_exec.h"

#include <pthread.h>
#include <stdio.h>

/* ---- Shapes ---- */

/* Each thread adds 1 to a cell of its own and writes its coordinates. */
#define COORDINATES                                                                                          \
    EXEC_KERNEL("mov.u32 r0, %tid.x; mov.u32 r1, %tid.y; mov.u32 r2, %tid.z; mov.u32 r3, %ctaid.x; mov.u32 " \
                "r4, %ctaid.y;\n"                                                                            \
                "mov.u32 r5, %ctaid.z; mov.u32 r6, %ntid.x; mov.u32 r7, %ntid.y; mov.u32 r8, %ntid.z; "      \
                "mov.u32 r9, %nctaid.x;\n"                                                                   \
                "mov.u32 r10, %nctaid.y; mad.lo.u32 r11, r5, r10, r4; mad.lo.u32 r11, r11, r9, r3;\n"        \
                "mad.lo.u32 r12, r2, r7, r1; mad.lo.u32 r12, r12, r6, r0; mul.lo.u32 r13, r6, r7; "          \
                "mul.lo.u32 r13, r13, r8;\n"                                                                 \
                "mad.lo.u32 r14, r11, r13, r12; mul.wide.u32 d2, r14, 4; add.u64 d2, d0, d2;\n"              \
                "shl.b32 r15, r0, 20; shl.b32 r16, r1, 16; or.b32 r15, r15, r16; shl.b32 r16, r2, 12; "      \
                "or.b32 r15, r15, r16;\n"                                                                    \
                "shl.b32 r16, r3, 8; or.b32 r15, r15, r16; shl.b32 r16, r4, 4; or.b32 r15, r15, r16; "       \
                "or.b32 r15, r15, r5;\n"                                                                     \
                "ld.global.u32 r17, [d2]; add.u32 r17, r17, r15; st.global.u32 [d2], r17;")

static const ptxvm_launch_config shapes[] = {
    {.grid = {1, 1, 1}, .block = {1, 1, 1}},   {.grid = {3, 1, 1}, .block = {33, 1, 1}},
    {.grid = {1, 5, 1}, .block = {7, 5, 1}},   {.grid = {2, 3, 4}, .block = {3, 4, 5}},
    {.grid = {1, 1, 7}, .block = {1, 1, 9}},   {.grid = {2, 1, 2}, .block = {1, 32, 2}},
    {.grid = {1, 2, 1}, .block = {31, 3, 11}},
};

static int shape_count(void)
{
    return (int)(sizeof shapes / sizeof *shapes);
}

static void shape_name(int index, char *text, size_t size)
{
    const ptxvm_launch_config *s = &shapes[index];
    snprintf(text, size, "grid_%u_%u_%u_block_%u_%u_%u", s->grid[0], s->grid[1], s->grid[2], s->block[0],
             s->block[1], s->block[2]);
}

TEST_EACH(PtxvmLaunch, Shapes, shape_count, shape_name)
{
    const ptxvm_launch_config *s = &shapes[index];
    uint32_t out[4096] = {0};
    size_t n = 1;
    for (int i = 0; i < 3; i++)
        n *= (size_t)s->grid[i] * s->block[i];
    exec_run run = exec_open(NULL, COORDINATES);
    REQUIRE(exec_launch(&run, *s, out, n) == PTXVM_OK);
    size_t at = 0;
    for (uint32_t bz = 0; bz < s->grid[2]; bz++)
        for (uint32_t by = 0; by < s->grid[1]; by++)
            for (uint32_t bx = 0; bx < s->grid[0]; bx++)
                for (uint32_t z = 0; z < s->block[2]; z++)
                    for (uint32_t y = 0; y < s->block[1]; y++)
                        for (uint32_t x = 0; x < s->block[0]; x++)
                            CHECK_EQ_U32(out[at++], x << 20 | y << 16 | z << 12 | bx << 8 | by << 4 | bz);
    exec_close(&run);
}

/* ---- Limits ---- */

#define NOTHING EXEC_KERNEL("")

static const struct {
    const char *name, *text;
    ptxvm_launch_config config;
    const char *error;
} bad_launches[] = {
    {"empty_grid", NOTHING, {.grid = {1, 0, 1}, .block = {1, 1, 1}}, "a grid of (1,0,1) blocks"},
    {"empty_block", NOTHING, {.grid = {1, 1, 1}, .block = {0, 1, 1}}, "a block of (0,1,1) threads"},
    {"wide_grid", NOTHING, {.grid = {1, 65536, 1}, .block = {1, 1, 1}}, "65535"},
    {"long_grid", NOTHING, {.grid = {2147483648u, 1, 1}, .block = {1, 1, 1}}, "2147483647"},
    {"deep_block", NOTHING, {.grid = {1, 1, 1}, .block = {1, 1, 65}}, "64"},
    {"big_block", NOTHING, {.grid = {1, 1, 1}, .block = {32, 33, 1}}, "a block of 1056 threads"},
    {"shared", NOTHING, {.grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 232449}, "sm_90 has 232448"},
    {"reqntid",
     EXEC_HEADER ".entry k(.param .u64 out) .reqntid 64, 2\n{\nret;\n}\n",
     {.grid = {1, 1, 1}, .block = {128, 1, 1}},
     ".reqntid 64, 2"},
    {"maxntid",
     EXEC_HEADER ".entry k(.param .u64 out) .maxntid 64\n{\nret;\n}\n",
     {.grid = {1, 1, 1}, .block = {65, 1, 1}},
     "takes up to 64"},
};

TEST_ROWS(PtxvmLaunch, Refuses, bad_launches)
{
    uint32_t out[1] = {0};
    exec_run run = exec_open(NULL, bad_launches[index].text);
    CHECK_EQ_I64(exec_launch(&run, bad_launches[index].config, out, 1), PTXVM_ERROR_LAUNCH_SIZE);
    CHECK_HAS(ptxvm_last_error(run.vm), bad_launches[index].error);
    exec_close(&run);
}

TEST_CASE(PtxvmLaunch, DynamicSharedMemoryFollowsStatic)
{
    uint32_t out[2] = {0};
    exec_run run =
        exec_open(NULL, EXEC_HEADER
                  ".shared .align 4 .b8 fixed[20]; .extern .shared .align 16 .b8 rest[];\n"
                  ".visible .entry k(.param .u64 out)\n{\n.reg .b32 r<4>; .reg .b64 d<4>;\n"
                  "ld.param.u64 d0, [out]; mov.u32 r0, rest; mov.u32 r1, %dynamic_smem_size; st.shared.u32 "
                  "[fixed], r0;\n"
                  "st.shared.u32 [rest+96], r1; ld.shared.u32 r2, [fixed]; ld.shared.u32 r3, [r0+96];\n"
                  "st.global.u32 [d0], r2; st.global.u32 [d0+4], r3; ret;\n}\n");
    ptxvm_launch_config config = exec_grid(1, 1);
    config.shared_bytes = 100;
    CHECK_EQ_I64(exec_launch(&run, config, out, 2), PTXVM_OK);
    CHECK_EQ_U32(out[0], 32);
    CHECK_EQ_U32(out[1], 100);
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(run.kernel, &info);
    CHECK_EQ_U64(info.static_shared_bytes, 20);
    exec_close(&run);
}

/* ---- Faults ---- */

/* The body begins at line 8 of the text. */
TEST_CASE(PtxvmFault, NamesKernelLineBlockAndThread)
{
    char error[512];
    ptxvm_status status = exec_failing(
        NULL, EXEC_KERNEL(EXEC_INDEX "setp.eq.u32 p0, r2, 77;\nmov.u64 d5, 64;\n@p0 st.global.u32 [d5], r0;"),
        4, 32, error, sizeof error);
    CHECK_EQ_I64(status, PTXVM_ERROR_ADDRESS);
    CHECK_HAS(error, "kernel k, line 12, block (2,0,0), thread (13,0,0)");
}

TEST_CASE(PtxvmFault, StepLimitNamesTheLoop)
{
    char error[512];
    ptxvm_config config = {.step_limit = 10000};
    ptxvm_status status =
        exec_failing(&config, EXEC_KERNEL("mov.u32 r0, 0;\nLOOP:\nadd.u32 r0, r0, 1;\nbra LOOP;"), 1, 32,
                     error, sizeof error);
    CHECK_EQ_I64(status, PTXVM_ERROR_STEP_LIMIT);
    CHECK_HAS(error, "kernel k, line 10");
    CHECK_HAS(error, "limit is 10000");
}

TEST_CASE(PtxvmFault, DeadlockAtABarrier)
{
    char error[512];
    ptxvm_status status = exec_failing(
        NULL, EXEC_KERNEL("mov.u32 r0, %tid.x; setp.lt.u32 p0, r0, 32;\n@p0 bar.sync 3, 96;\nbar.sync 1;"), 1,
        64, error, sizeof error);
    CHECK_EQ_I64(status, PTXVM_ERROR_DEADLOCK);
    CHECK_HAS(error, "no thread of the block can go on: 32 of 64 threads have arrived at barrier 1");
}

TEST_CASE(PtxvmFault, DeadlockOfMembers)
{
    char error[512];
    ptxvm_status status =
        exec_failing(NULL,
                     EXEC_KERNEL("mov.u32 r0, %tid.x; setp.lt.u32 p0, r0, 16;\n@p0 bra L;\nbar.warp.sync "
                                 "0x00ffffff;\nL:\n@p0 bar.warp.sync 0xffffffff;\n"),
                     1, 32, error, sizeof error);
    CHECK_EQ_I64(status, PTXVM_ERROR_DEADLOCK);
    CHECK_HAS(error, "line 10");
}

TEST_CASE(PtxvmFault, BarrierOutOfRange)
{
    char error[512];
    CHECK_EQ_I64(exec_failing(NULL, EXEC_KERNEL("mov.u32 r0, 16;\nbar.sync r0;"), 1, 32, error, sizeof error),
                 PTXVM_ERROR_EXECUTION);
    CHECK_HAS(error, "line 9");
    CHECK_EQ_I64(
        exec_failing(NULL, EXEC_KERNEL("mov.u32 r0, 33;\nbar.sync 1, r0;"), 1, 32, error, sizeof error),
        PTXVM_ERROR_EXECUTION);
}

/* Many blocks fault, each at a different place: the first in order counts, whatever the host threads do. */
TEST_CASE(PtxvmFault, FirstBlockInOrderCounts)
{
    for (int threads = 1; threads <= 4; threads++)
        for (int round = 0; round < 10; round++) {
            char error[512];
            ptxvm_config config = {.threads = threads};
            ptxvm_status status =
                exec_failing(&config,
                             EXEC_KERNEL(EXEC_INDEX "setp.lt.u32 p0, r1, 20; @p0 exit; mov.u32 r5, 0; "
                                                    "sub.u32 r6, 60, r1; mul.lo.u32 r6, r6, 100;\n"
                                                    "LOOP: add.u32 r5, r5, 1; setp.lt.u32 p1, r5, r6; @p1 "
                                                    "bra LOOP;\nmov.u64 d5, 64; st.global.u32 [d5], r0;"),
                             50, 64, error, sizeof error);
            CHECK_EQ_I64(status, PTXVM_ERROR_ADDRESS);
            CHECK_HAS(error, "block (20,0,0), thread (0,0,0)");
        }
}

/* After a fault the device still works. */
TEST_CASE(PtxvmFault, LeavesTheDeviceUsable)
{
    uint32_t out[1] = {5};
    exec_run run = exec_open(
        NULL, EXEC_KERNEL("ld.global.u32 r0, [d0]; setp.eq.u32 p0, r0, 5; @p0 trap; st.global.u32 [d0], 1;"));
    CHECK_EQ_I64(exec_launch(&run, exec_grid(1, 32), out, 1), PTXVM_ERROR_TRAP);
    run.status = PTXVM_OK;
    out[0] = 6;
    CHECK_EQ_I64(exec_launch(&run, exec_grid(1, 32), out, 1), PTXVM_OK);
    CHECK_EQ_U32(out[0], 1);
    exec_close(&run);
}

/* ---- Order ---- */

/* A tree of sums in shared memory, a float chain, red.add on one cell: nothing of it may depend on seed or
 * host threads. */
#define SUMS                                                                                                 \
    EXEC_KERNEL(EXEC_INDEX                                                                                   \
                ".shared .u32 part[64]; mov.u32 r10, part; shl.b32 r11, r0, 2; add.u32 r10, r10, r11; "      \
                "mul.lo.u32 r4, r2, r2;\n"                                                                   \
                "st.shared.u32 [r10], r4; bar.sync 0; mov.u32 r5, 32;\n"                                     \
                "TREE: setp.ge.u32 p0, r0, r5; @p0 bra NEXT; shl.b32 r6, r5, 2; add.u32 r7, r10, r6; "       \
                "ld.shared.u32 r8, [r7];\n"                                                                  \
                "ld.shared.u32 r9, [r10]; add.u32 r9, r9, r8; st.shared.u32 [r10], r9;\n"                    \
                "NEXT: bar.sync 0; shr.u32 r5, r5, 1; setp.ne.u32 p1, r5, 0; @p1 bra TREE;\n"                \
                "ld.shared.u32 r9, [part]; st.global.u32 [d1+4], r9; red.global.add.u32 [d0], r9;")

TEST_CASE(PtxvmOrder, ResultsDoNotDependOnSeedOrThreads)
{
    static uint32_t first[64 * 40 + 1];
    uint64_t instructions = 0;
    for (int i = 0; i < 12; i++) {
        static uint32_t out[64 * 40 + 1];
        ptxvm_config config = {.seed = (uint64_t)(i / 3 * 1234567), .threads = 1 + i % 3};
        exec_run run = exec_open(&config, SUMS);
        memset(out, 0, sizeof out);
        REQUIRE(exec_launch(&run, exec_grid(40, 64), out, 64 * 40 + 1) == PTXVM_OK);
        const ptxvm_report *report = ptxvm_last_report(run.vm);
        if (i == 0) {
            memcpy(first, out, sizeof out);
            instructions = report->thread_instructions;
        }
        CHECK_EQ_MEM(out, first, sizeof out);
        CHECK_EQ_U64(report->thread_instructions, instructions);
        exec_close(&run);
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < 64 * 40; i++)
        total += i * i;
    CHECK_EQ_U32(first[0], 64 * total); /* each thread adds its block's sum */
}

/* atom returns the order: the same for any number of host threads, another for another seed, and a
 * permutation always. */
TEST_CASE(PtxvmOrder, SeedShufflesBlocks)
{
    uint32_t orders[4][101];
    for (int i = 0; i < 4; i++) {
        ptxvm_config config = {.seed = i < 2 ? 0 : 99, .threads = 1 + i % 2 * 3};
        exec_run run = exec_open(
            &config, EXEC_KERNEL("mov.u32 r1, %ctaid.x; atom.global.add.u32 r2, [d0], 1; mul.wide.u32 d2, "
                                 "r1, 4; add.u64 d2, d0, d2; st.global.u32 [d2+4], r2;"));
        memset(orders[i], 0, sizeof orders[i]);
        CHECK_EQ_I64(exec_launch(&run, exec_grid(100, 1), orders[i], 101), PTXVM_OK);
        exec_close(&run);
    }
    CHECK_EQ_MEM(orders[0], orders[1], sizeof orders[0]);
    CHECK_EQ_MEM(orders[2], orders[3], sizeof orders[0]);
    CHECK(memcmp(orders[0], orders[2], sizeof orders[0]) != 0);
    bool seen[100] = {false};
    for (int i = 0; i < 100; i++) {
        CHECK_EQ_U32(orders[0][i + 1], (uint32_t)i);
        REQUIRE(orders[2][i + 1] < 100 && !seen[orders[2][i + 1]]);
        seen[orders[2][i + 1]] = true;
    }
}

/* Two kinds of red on one word do not commute, though each does with itself. */
TEST_CASE(PtxvmOrder, MixedRedDoesNotDependOnThreads)
{
    uint32_t expected = 0;
    for (uint32_t block = 0; block < 400; block++)
        for (uint32_t i = 0; i < 200; i++)
            expected = (expected + 1) ^ ((block ^ i) * 2654435761u);
    for (int threads = 1; threads <= 4; threads++) {
        uint32_t out[1] = {0};
        exec_run run = exec_open(
            &(ptxvm_config){.threads = threads},
            EXEC_KERNEL(
                "mov.u32 r1, %ctaid.x; mov.u32 r2, 0;\n"
                "L: red.global.add.u32 [d0], 1; xor.b32 r3, r1, r2; mul.lo.u32 r3, r3, 2654435761;\n"
                "red.global.xor.b32 [d0], r3; add.u32 r2, r2, 1; setp.lt.u32 p0, r2, 200; @p0 bra L;"));
        CHECK_EQ_I64(exec_launch(&run, exec_grid(400, 1), out, 1), PTXVM_OK);
        CHECK_EQ_U32(out[0], expected);
        exec_close(&run);
    }
}

/* Each block waits for the next one, which one host thread would never begin if it took them one by one. */
TEST_CASE(PtxvmOrder, CvLoadsWaitForOtherBlocks)
{
    uint32_t out[51] = {0};
    out[50] = 1;
    exec_run run = exec_open(&(ptxvm_config){.threads = 1, .step_limit = 1u << 30},
                             EXEC_KERNEL(EXEC_INDEX "L: ld.global.cv.u32 r4, [d1+4]; setp.eq.u32 p0, r4, 0;\n"
                                                    "@p0 bra L; add.u32 r4, r4, 1; st.global.u32 [d1], r4;"));
    CHECK_EQ_I64(exec_launch(&run, exec_grid(50, 1), out, 51), PTXVM_OK);
    CHECK_EQ_U32(out[0], 51);
    exec_close(&run);
}

/* A loop of atomics that change memory does not wait for anyone: no other block begins beside it. */
TEST_CASE(PtxvmOrder, BlocksThatWriteRunOneByOne)
{
    uint32_t out[33] = {0};
    exec_run run = exec_open(
        NULL, EXEC_KERNEL("mov.u32 r1, %ctaid.x; mov.u32 r2, 0; mul.wide.u32 d2, r1, 4; add.u64 d2, d0, d2;\n"
                          "L: atom.global.add.u32 r3, [d0], 1; add.u32 r2, r2, 1; setp.lt.u32 p0, r2, 1000;\n"
                          "@p0 bra L; st.global.u32 [d2+4], r3;"));
    CHECK_EQ_I64(exec_launch(&run, exec_grid(32, 1), out, 33), PTXVM_OK);
    for (uint32_t block = 0; block < 32; block++)
        CHECK_EQ_U32(out[1 + block], 1000 * (block + 1) - 1);
    exec_close(&run);
}

/* ---- Reports ---- */

TEST_CASE(PtxvmReport, NamesApproximationsAndPairs)
{
    uint32_t out[32] = {0};
    exec_run run =
        exec_open(NULL, EXEC_KERNEL(EXEC_INDEX "cvt.rn.f32.u32 f0, r0;\nex2.approx.ftz.f32 f1, "
                                               "f0;\nsetp.gt.u32 p0, r0, 100;\n@p0 rcp.approx.f32 f1, f1;\n"
                                               "mul.f32 f2, f0, f1;\nadd.f32 f3, f2, f0;\nmul.rn.f32 f4, f0, "
                                               "f1;\nadd.rn.f32 f3, f4, f3;\nst.global.f32 [d1], f3;"));
    CHECK_EQ_I64(exec_launch(&run, exec_grid(1, 32), out, 32), PTXVM_OK);
    const ptxvm_report *report = ptxvm_last_report(run.vm);
    CHECK(report->inexact);
    REQUIRE(report->n_approx == 1 && report->n_contractable == 1);
    CHECK_EQ_I64(report->approx[0].line, 11);
    CHECK_EQ_STR(report->approx[0].what, ".approx: ex2.approx.ftz.f32");
    CHECK_EQ_STR(report->approx[0].function, "k");
    CHECK_EQ_I64(report->contractable[0].line, 15);
    CHECK_HAS(report->contractable[0].what, "mul of line 14");
    CHECK_EQ_U64(report->warp_instructions, 17);
    CHECK_EQ_U64(report->thread_instructions, 17 * 32);
    exec_close(&run);
}

/* ---- Host threads ---- */

static void *run_device(void *argument)
{
    uint32_t *result = argument;
    static const char text[] = SUMS;
    ptxvm_config config = {.threads = 2, .seed = (uint64_t)(uintptr_t)result % 5};
    ptxvm *vm = NULL;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    ptxvm_address address;
    ptxvm_launch_config grid = exec_grid(6, 64);
    uint32_t sum = 0;
    if (ptxvm_create(&config, &vm) == PTXVM_OK &&
        ptxvm_module_load(vm, text, strlen(text), &module) == PTXVM_OK &&
        ptxvm_module_kernel(module, "k", &kernel) == PTXVM_OK &&
        ptxvm_alloc(vm, 4 * (6 * 64 + 1), &address) == PTXVM_OK &&
        ptxvm_launch(vm, kernel, &grid, &address, sizeof address) == PTXVM_OK)
        ptxvm_read(vm, &sum, address, sizeof sum);
    ptxvm_destroy(vm);
    *result = sum;
    return NULL;
}

TEST_CASE(PtxvmThreads, SixteenDevicesOnSixteenThreads)
{
    pthread_t threads[16];
    uint32_t results[16] = {0}, expected = 0;
    for (uint32_t i = 0; i < 6 * 64; i++)
        expected += i * i;
    for (int i = 0; i < 16; i++)
        REQUIRE(pthread_create(&threads[i], NULL, run_device, &results[i]) == 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 16; i++)
        CHECK_EQ_U32(results[i], 64 * expected);
}

/* Blocks race for the same cells on purpose: any of the values may win, and the host program must not be disturbed. */
TEST_CASE(PtxvmThreads, GuestRacesAreNotTheHosts)
{
    uint32_t out[64] = {0};
    ptxvm_config config = {.threads = 4};
    exec_run run = exec_open(
        &config,
        EXEC_KERNEL(EXEC_INDEX "mul.wide.u32 d3, r0, 4; add.u64 d3, d0, d3; mov.u32 r5, 0;\n"
                               "LOOP: ld.global.u32 r4, [d3]; max.u32 r4, r4, r1; st.global.u32 "
                               "[d3], r4; add.u32 r5, r5, 1; setp.lt.u32 p0, r5, 200; @p0 bra LOOP;"));
    CHECK_EQ_I64(exec_launch(&run, exec_grid(40, 64), out, 64), PTXVM_OK);
    for (int i = 0; i < 64; i++)
        CHECK(out[i] < 40);
    exec_close(&run);
}
