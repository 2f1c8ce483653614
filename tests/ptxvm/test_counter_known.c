/* Counters of kernels whose numbers can be worked out by hand. */
#include "test_check.h"

#include <stdio.h>

typedef struct expected_traffic {
    uint64_t requests, sectors, least_sectors, bytes;
} expected_traffic;

/* One warp runs the body; what its last line is expected to cost. */
typedef struct known {
    const char *name, *body;
    expected_traffic load, store;
    uint64_t shared, wavefronts, conflicts;
} known;

/* clang-format off */
static const known kernels[] = {
    {"coalesced", CHECK_KERNEL("ld.global.u32 r4, [d1];"), {1, 4, 4, 128}, {0}, 0, 0, 0},
    {"coalesced_off_by_4", CHECK_KERNEL("ld.global.u32 r4, [d1+4];"), {1, 5, 4, 128}, {0}, 0, 0, 0},
    {"strided_32", CHECK_KERNEL("mul.wide.u32 d5, r0, 32; add.u64 d5, d0, d5; ld.global.u32 r4, [d5];"), {1, 32, 4, 128}, {0}, 0, 0, 0},
    {"strided_8", CHECK_KERNEL("mul.wide.u32 d5, r0, 8; add.u64 d5, d0, d5; st.global.u32 [d5], r0;"), {0}, {1, 8, 4, 128}, 0, 0, 0},
    {"broadcast", CHECK_KERNEL("ld.global.u32 r4, [d0];"), {1, 1, 1, 128}, {0}, 0, 0, 0},
    {"backwards", CHECK_KERNEL("sub.u32 r4, 31, r0; mul.wide.u32 d5, r4, 4; add.u64 d5, d0, d5; ld.global.u32 r4, [d5];"), {1, 4, 4, 128}, {0}, 0, 0, 0},
    {"vector_4", CHECK_KERNEL("mul.wide.u32 d5, r0, 16; add.u64 d5, d0, d5; ld.global.v4.u32 {r4,r5,r6,r7}, [d5];"), {1, 16, 16, 512}, {0}, 0, 0, 0},
    {"half_of_the_lanes", CHECK_KERNEL("setp.lt.u32 p0, r0, 16; @p0 st.global.u32 [d1], r0;"), {0}, {1, 2, 2, 64}, 0, 0, 0},
    {"bytes", CHECK_KERNEL("cvt.u64.u32 d5, r0; add.u64 d5, d0, d5; ld.global.u8 r4, [d5];"), {1, 1, 1, 32}, {0}, 0, 0, 0},
    {"shared_no_conflict", CHECK_KERNEL("st.shared.u32 [r3], r0;"), {0}, {0}, 1, 1, 0},
    {"shared_broadcast", CHECK_KERNEL("ld.shared.u32 r4, [tile];"), {0}, {0}, 1, 1, 0},
    {"shared_2_way", CHECK_KERNEL("shl.b32 r4, r0, 3; st.shared.u32 [r4], r0;"), {0}, {0}, 1, 2, 1},
    {"shared_32_way", CHECK_KERNEL("shl.b32 r4, r0, 7; st.shared.u32 [r4], r0;"), {0}, {0}, 1, 32, 31},
    {"shared_64_bit", CHECK_KERNEL("shl.b32 r4, r0, 3; st.shared.u64 [r4], d1;"), {0}, {0}, 1, 2, 0},
    {"shared_128_bit", CHECK_KERNEL("shl.b32 r4, r0, 4; st.shared.v4.u32 [r4], {r0,r0,r0,r0};"), {0}, {0}, 1, 4, 0},
    {"shared_128_bit_8_way", CHECK_KERNEL("shl.b32 r4, r0, 7; st.shared.v4.u32 [r4], {r0,r0,r0,r0};"), {0}, {0}, 1, 32, 28},
};
/* clang-format on */

static exec_run count_run(const char *text, uint32_t blocks, uint32_t threads, int host_threads)
{
    ptxvm_config config = {.counters = PTXVM_COUNTERS_LINES, .threads = host_threads};
    exec_run run = exec_open(&config, text);
    uint32_t words[CHECK_WORDS] = {0};
    exec_launch(&run, exec_grid(blocks, threads), words, CHECK_WORDS);
    CHECK_EQ_I64(run.status, PTXVM_OK);
    return run;
}

static void check_traffic(const ptxvm_traffic *t, const expected_traffic *expected)
{
    CHECK_EQ_U64(t->requests, expected->requests);
    CHECK_EQ_U64(t->sectors, expected->sectors);
    CHECK_EQ_U64(t->least_sectors, expected->least_sectors);
    CHECK_EQ_U64(t->bytes, expected->bytes);
}

TEST_ROWS(CounterKnown, Access, kernels)
{
    const known *k = &kernels[index];
    exec_run run = count_run(k->body, 1, 32, 1);
    const ptxvm_counters *c = ptxvm_last_counters(run.vm);
    if (CHECK(c != NULL) && CHECK(c->n_lines > CHECK_FIRST)) {
        check_traffic(&c->total.load, &k->load);
        check_traffic(&c->total.store, &k->store);
        check_traffic(&c->lines[CHECK_FIRST].load, &k->load);
        CHECK_EQ_U64(c->total.shared_accesses, k->shared);
        CHECK_EQ_U64(c->total.shared_wavefronts, k->wavefronts);
        CHECK_EQ_U64(c->total.bank_conflicts, k->conflicts);
        CHECK_EQ_U64(c->unique_sectors, k->load.sectors + k->store.sectors);
        CHECK_EQ_U64(c->total.load.first_sectors, k->load.sectors);
        CHECK_EQ_U64(c->total.store.block_sectors, k->store.sectors);
    }
    exec_close(&run);
}

/* Each of three blocks loads the same 128 bytes twice: L1 would have them the second time, L2 in the other blocks. */
TEST_CASE(CounterKnown, SectorsThatWereTouchedBefore)
{
    for (int host_threads = 1; host_threads <= 2; host_threads++) {
        exec_run run =
            count_run(CHECK_KERNEL("ld.global.u32 r4, [d1];\nld.global.u32 r5, [d1];"), 3, 32, host_threads);
        const ptxvm_counters *c = ptxvm_last_counters(run.vm);
        if (CHECK(c != NULL)) {
            CHECK_EQ_U64(c->total.load.sectors, 3 * 2 * 4);
            CHECK_EQ_U64(c->total.load.block_sectors, 3 * 4);
            CHECK_EQ_U64(c->total.load.first_sectors, 4);
            CHECK_EQ_U64(c->lines[CHECK_FIRST].load.block_sectors, 3 * 4);
            CHECK_EQ_U64(c->lines[CHECK_FIRST + 1].load.block_sectors, 0);
        }
        exec_close(&run);
    }
}

/* Ten instructions before the body; blocks of two warps; the first half of each block goes another way. */
#define MIXED                                                                                                \
    CHECK_KERNEL("cvt.rn.f32.u32 f1, r0;\nfma.rn.f32 f2, f1, f1, f1;\nsetp.lt.u32 p0, r0, 16;\n"             \
                 "@p0 bra HALF;\nadd.u32 r4, r0, 1;\nHALF:\nbar.sync 0;\nred.global.add.u32 [d0], 1;\n"      \
                 "shfl.sync.bfly.b32 r5, r0, 1, 31, -1;\nld.global.u32 r6, [d0+64];")

static void check_mixed(const ptxvm_counters *c, uint64_t warps)
{
    /* Ten, the nine of the body, ret. Of a block the branch is taken by 16 lanes of 64, and the add by 48. */
    CHECK_EQ_U64(c->total.instructions, warps * 20);
    CHECK_EQ_U64(c->total.lanes, warps * 20 * 32 - warps / 2 * (48 + 16));
    CHECK_EQ_U64(c->by_class[PTXVM_CLASS_F32].instructions, warps);
    CHECK_EQ_U64(c->by_class[PTXVM_CLASS_CONVERSION].instructions, warps);
    CHECK_EQ_U64(c->by_class[PTXVM_CLASS_WARP].instructions, warps);
    CHECK_EQ_U64(c->by_class[PTXVM_CLASS_MEMORY].instructions, warps * 3);
    CHECK_EQ_U64(c->by_class[PTXVM_CLASS_CONTROL].instructions, warps * 3);
    CHECK_EQ_U64(c->by_class[PTXVM_CLASS_OTHER].instructions, warps * 3);
    CHECK_EQ_U64(c->total.barriers, warps);
    CHECK_EQ_U64(c->total.atomics, warps);
    CHECK_EQ_U64(c->total.branches, warps);
    CHECK_EQ_U64(c->total.divergent_branches, warps / 2);
    CHECK_EQ_U64(c->unique_sectors, 2);
    CHECK_EQ_U64(c->total.atomic.sectors, warps);
}

TEST_CASE(CounterKnown, MixedOnAnyNumberOfThreads)
{
    for (int threads = 1; threads <= 4; threads *= 2) {
        exec_run run = count_run(MIXED, 40, 64, threads);
        const ptxvm_counters *c = ptxvm_last_counters(run.vm);
        if (CHECK(c != NULL))
            check_mixed(c, 80);
        exec_close(&run);
    }
}

TEST_CASE(CounterKnown, NamesOfMma)
{
    exec_run run = count_run(
        CHECK_KERNEL(
            "mov.f32 f0, 0f00000000;\n"
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f4,f5,f6,f7}, {r0,r0}, {r0}, {f0,f0,f0,f0};\n"
            "mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {r4,r5}, {r0}, {r0}, {r0,r0};\n"
            "mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {r4,r5}, {r0}, {r0}, {r4,r5};"),
        1, 32, 1);
    const ptxvm_counters *c = ptxvm_last_counters(run.vm);
    REQUIRE(c && c->n_mma == 2);
    CHECK_EQ_STR(c->mma[0].name, "m16n8k8.f32.f16.f16.f32");
    CHECK_EQ_U64(c->mma[0].count, 1);
    CHECK_EQ_STR(c->mma[1].name, "m8n8k16.s32.u8.s8.s32");
    CHECK_EQ_U64(c->mma[1].count, 2);
    exec_close(&run);
}

/* Models that are not measured are named, each once; sm_90's f16 is measured, its f64 published. */
TEST_CASE(CounterPrint, ModelsThatResultsRestOn)
{
#define F64_MMA "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d8,d9}, {d10}, {d11}, {d8,d9};\n"
    char text[20000];
    exec_run run = count_run(
        CHECK_KERNEL("mov.f64 d8, 0d0000000000000000; mov.f64 d9, d8; mov.f64 d10, d8; mov.f64 d11, "
                     "d8;\nmov.f32 f0, 0f00000000;\n"
                     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f4,f5,f6,f7}, {r0,r0,r0,r0}, "
                     "{r0,r0}, {f0,f0,f0,f0};\n" F64_MMA F64_MMA),
        1, 32, 1);
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    CHECK(ptxvm_counters_json(run.vm, file));
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    CHECK_HAS(text, "\"rests_on\": [\"f64: published\"]");
    exec_close(&run);
}

TEST_CASE(CounterPrint, JsonAndListing)
{
    char text[20000];
    exec_run run = count_run(MIXED, 1, 64, 1);
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    CHECK(ptxvm_counters_json(run.vm, file) && ptxvm_counters_listing(run.vm, file));
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    fclose(file);
    CHECK(strstr(text, "{\"kernel\": \"k\"") == text);
    CHECK(strstr(text, "\"barriers\": 2") != NULL);
    CHECK_HAS(text, "\"rests_on\": []");
    CHECK(strstr(text, "diverged 1 times") != NULL);
    CHECK(strstr(text, "*            2   32.00    14  bar.sync 0;") != NULL);
    exec_close(&run);
    CHECK(!ptxvm_last_counters(NULL));
}
