/* Paths: warps that execute every line equally often. */
#include "test_check.h"

static exec_run run_paths(const char *text, uint32_t blocks, uint32_t threads, int host_threads)
{
    ptxvm_config config = {.counters = PTXVM_COUNTERS_PATHS, .threads = host_threads};
    exec_run run = exec_open(&config, text);
    uint32_t words[CHECK_WORDS] = {0};
    exec_launch(&run, exec_grid(blocks, threads), words, CHECK_WORDS);
    CHECK_EQ_I64(run.status, PTXVM_OK);
    return run;
}

/* Blocks of two warps: the second warp of each skips line FIRST + 3; the last of 8 blocks skips line FIRST + 5. */
#define WAYS                                                                                                 \
    CHECK_KERNEL("setp.ge.u32 p0, r0, 32;\nmov.u32 r4, %ctaid.x;\n@p0 bra A;\nadd.u32 r5, r0, 1;\nA: "       \
                 "setp.eq.u32 p0, r4, 7;\n@p0 bra B;\n"                                                      \
                 "add.u32 r5, r0, 1;\nB: bar.sync 0;")

TEST_CASE(CounterPaths, FourWays)
{
    static const uint8_t of[] = {0, 1, 2, 3};
    for (int threads = 1; threads <= 4; threads *= 2) {
        exec_run run = run_paths(WAYS, 8, 64, threads);
        const ptxvm_counters *c = ptxvm_last_counters(run.vm);
        REQUIRE(c != NULL);
        REQUIRE(c->n_paths == 4 && c->n_warps == 16);
        CHECK_EQ_U64(c->paths[0].warps, 7);
        CHECK_EQ_U64(c->paths[1].warps, 7);
        CHECK_EQ_U64(c->paths[2].warps, 1);
        CHECK_EQ_U64(c->paths[3].warps, 1);
        CHECK_EQ_U64(c->paths[1].first, 1);
        CHECK_EQ_U64(c->paths[2].first, 14);
        CHECK_EQ_U64(c->paths[0].lines[CHECK_FIRST + 3], 7);
        CHECK_EQ_U64(c->paths[1].lines[CHECK_FIRST + 3], 0);
        CHECK_EQ_U64(c->paths[0].lines[CHECK_FIRST + 6], 7);
        CHECK_EQ_U64(c->paths[2].lines[CHECK_FIRST + 3], 1);
        CHECK_EQ_U64(c->paths[2].lines[CHECK_FIRST + 6], 0);
        for (int w = 0; w < 16; w++)
            CHECK_EQ_I64(c->path_of[w], of[w < 14 ? w % 2 : 2 + w % 2]);
        for (int line = 1; line < c->n_lines; line++) {
            uint64_t sum = 0;
            for (int p = 0; p < c->n_paths; p++) {
                sum += c->paths[p].lines[line];
                CHECK(!c->paths[p].merged);
            }
            CHECK_EQ_U64(sum, c->lines[line].instructions);
        }
        exec_close(&run);
    }
}

/* Block b goes round b + 1 times: more paths than are told apart. Every warp counts. */
TEST_CASE(CounterPaths, ManyAreMerged)
{
    enum { BLOCKS = PTXVM_PATHS + 40 };
    exec_run run = run_paths(
        CHECK_KERNEL(
            "mov.u32 r4, %ctaid.x;\nAGAIN: sub.u32 r4, r4, 1;\nsetp.ge.s32 p0, r4, 0;\n@p0 bra AGAIN;"),
        BLOCKS, 32, 2);
    const ptxvm_counters *c = ptxvm_last_counters(run.vm);
    uint64_t warps = 0, rounds = 0;
    int merged = 0;
    REQUIRE(c && c->n_paths == PTXVM_PATHS && c->n_warps == BLOCKS);
    for (int p = 0; p < c->n_paths; p++) {
        warps += c->paths[p].warps;
        rounds += c->paths[p].lines[CHECK_FIRST + 1];
        merged += c->paths[p].merged;
    }
    CHECK_EQ_U64(warps, BLOCKS);
    CHECK_EQ_U64(rounds, BLOCKS * (BLOCKS + 1) / 2);
    CHECK(merged > 0);
    for (int w = 0; w < BLOCKS; w++) { /* what is merged is alike */
        const ptxvm_path *path = &c->paths[c->path_of[w]];
        double mean = (double)path->lines[CHECK_FIRST + 1] / (double)path->warps;
        CHECK(mean > w + 1 - 6 && mean < w + 1 + 6);
    }
    exec_close(&run);
}

TEST_CASE(CounterPaths, OnlyWhenAskedFor)
{
    ptxvm_config config = {.counters = PTXVM_COUNTERS_LINES};
    exec_run run = exec_open(&config, WAYS);
    uint32_t words[CHECK_WORDS] = {0};
    exec_launch(&run, exec_grid(8, 64), words, CHECK_WORDS);
    const ptxvm_counters *c = ptxvm_last_counters(run.vm);
    REQUIRE(c != NULL);
    CHECK(c->n_paths == 0 && !c->paths && c->n_warps == 0);
    exec_close(&run);
}
