/* The SM table, and the lowest .version that a module gets. */
#include "test.h"
#include "ptxgen/ptx.h"

#include <stdlib.h>
#include <string.h>

TEST_CASE(PtxSm, FindsByName)
{
    CHECK_EQ_STR(ptx_sm_find("90")->name, "sm_90");
    CHECK_EQ_STR(ptx_sm_find("sm_90a")->name, "sm_90a");
    CHECK_EQ_STR(ptx_sm_find("compute_120f")->name, "sm_120f");
    static const char *const unknown[] = {"", "sm_", "sm_70", "9", "90b", "sm_sm_90", "SM_90", "90 "};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        CHECK(!ptx_sm_find(unknown[i]));
    CHECK(!ptx_sm_find(NULL));
    CHECK_EQ_I64(ptx_sm_count(), 23);
    CHECK(!ptx_sm_get(-1));
    CHECK(!ptx_sm_get(23));
    for (int i = 0; i < ptx_sm_count(); i++)
        CHECK(ptx_sm_find(ptx_sm_get(i)->name) == ptx_sm_get(i));
}

TEST_CASE(PtxSm, KnowsWhatRunsWhere)
{
    static const struct {
        const char *target;
        int major, minor;
        bool runs;
    } cases[] = {
        {"sm_75", 7, 5, true},     {"sm_75", 12, 1, true},    {"sm_80", 7, 5, false},
        {"sm_86", 8, 0, false},    {"sm_90", 10, 0, true},    {"sm_90a", 9, 0, true},
        {"sm_90a", 10, 0, false},  {"sm_100a", 10, 3, false}, {"sm_100f", 10, 0, true},
        {"sm_100f", 10, 3, true},  {"sm_100f", 11, 0, false}, {"sm_100f", 12, 0, false},
        {"sm_103f", 10, 0, false}, {"sm_103f", 10, 3, true},  {"sm_120f", 12, 1, true},
        {"sm_121f", 12, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_push_note("%s on %d.%d", cases[i].target, cases[i].major, cases[i].minor);
        CHECK(ptx_sm_runs_on(ptx_sm_find(cases[i].target), cases[i].major, cases[i].minor) == cases[i].runs);
        test_pop_note();
    }
}

TEST_CASE(PtxSm, PicksTheBestTargetForADevice)
{
    CHECK_EQ_STR(ptx_sm_for_device(7, 5)->name, "sm_75");
    CHECK_EQ_STR(ptx_sm_for_device(8, 6)->name, "sm_86");
    CHECK_EQ_STR(ptx_sm_for_device(9, 0)->name, "sm_90a");
    CHECK_EQ_STR(ptx_sm_for_device(10, 3)->name, "sm_103a");
    CHECK_EQ_STR(ptx_sm_for_device(12, 1)->name, "sm_121a");
    CHECK_EQ_STR(ptx_sm_for_device(13, 0)->name, "sm_121");
    CHECK(!ptx_sm_for_device(7, 0));
}

TEST_CASE(PtxSm, SizesAreSane)
{
    for (int i = 0; i < ptx_sm_count(); i++) {
        const ptx_sm *sm = ptx_sm_get(i);
        CHECK(sm->shared_block >= PTX_SHARED_DEFAULT && sm->shared_block <= sm->shared_sm);
        CHECK(sm->shared_sm == sm->shared_block || sm->shared_sm == sm->shared_block + 1024);
        CHECK_EQ_I64(sm->registers_sm, 65536);
        CHECK(sm->threads_sm >= PTX_THREADS_BLOCK);
    }
    CHECK_EQ_I64(ptx_sm_find("90")->shared_block, 232448);
    CHECK_EQ_I64(ptx_sm_find("86")->shared_block, 101376);
}

static void nothing(ptx_builder *b)
{
    (void)b;
}

static void no_allocate(ptx_builder *b)
{
    ptx_ld(b, PTX_GLOBAL, PTX_L1_NO_ALLOCATE, PTX_U32, ptx_param(b, PTX_U64, "x"), 0);
}

static void fp8(ptx_builder *b)
{
    ptx_val x = ptx_param(b, PTX_F32, "x");
    ptx_cvt_pair(b, PTX_E4M3X2, x, x);
}

static void fp8_mma(ptx_builder *b)
{
    ptx_val u = ptx_param(b, PTX_U32, "u"), f = ptx_param(b, PTX_F32, "f"), d[4];
    ptx_mma(b, PTX_MMA_m16n8k32_f32_e4m3, d, (ptx_val[]){u, u, u, u}, (ptx_val[]){u, u},
            (ptx_val[]){f, f, f, f});
}

static void fp4(ptx_builder *b)
{
    ptx_val x = ptx_param(b, PTX_F32, "x");
    ptx_cvt_pair(b, PTX_E2M1X2, x, x);
}

/* The version, or the end of the error. */
TEST_CASE(PtxVersion, IsTheLowestThatServes)
{
    static const struct {
        const char *sm;
        void (*write)(ptx_builder *b);
        const char *expected;
    } cases[] = {
        {"75", nothing, ".version 6.3\n"},
        {"80", nothing, ".version 7.0\n"},
        {"88", nothing, ".version 9.0\n"},
        {"120f", nothing, ".version 8.8\n"},
        {"75", no_allocate, ".version 7.4\n"},
        {"90", no_allocate, ".version 7.8\n"},
        {"90", fp8, ".version 7.8\n"},
        {"89", fp8, ".version 8.1\n"},
        {"80", fp8, "instruction 2: cvt.rn.satfinite.e4m3x2.f32 needs sm_89 or later; the target is sm_80"},
        {"89", fp8_mma, ".version 8.4\n"},
        {"100", fp8_mma, ".version 8.6\n"},
        {"86", fp8_mma,
         "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 needs sm_89 or later; the target is sm_86"},
        {"100a", fp4, ".version 8.6\n"},
        {"120f", fp4, ".version 8.8\n"},
        {"100", fp4,
         "needs an a or f target of sm_100 or later (sm_100a, sm_120f ...); the target is sm_100"},
        {"90a", fp4,
         "needs an a or f target of sm_100 or later (sm_100a, sm_120f ...); the target is sm_90a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptx_builder *b = ptx_open(ptx_sm_find(cases[i].sm), NULL);
        ptx_error error;
        char *text;
        ptx_kernel(b, "k");
        cases[i].write(b);
        bool ok = ptx_close(b, &text, &error);
        CHECK_HAS(ok ? text : error.text, cases[i].expected);
        free(text);
    }
    CHECK(ptx_mma_has(ptx_sm_find("89"), PTX_MMA_m16n8k32_f32_e4m3));
    CHECK(!ptx_mma_has(ptx_sm_find("86"), PTX_MMA_m16n8k32_f32_e4m3));
    CHECK(!ptx_mma_has(NULL, PTX_MMA_m16n8k32_f32_e4m3));
}
