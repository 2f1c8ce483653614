/* Boards: ptxvm acts as each of them, and everything that counts multiprocessors counts the same. */
#include <stdio.h>

#include "boards/boards.h"
#include "driver.h"
#include "ptxgen/sm.h"

TEST_CASE(Boards, EachSmHasOneUsualBoardAndItsLatencies)
{
    for (int i = 0; i < ptx_sm_count(); i++) {
        int sm = ptx_sm_get(i)->number, usual = 0;
        for (int j = 0; j < board_count(); j++)
            usual += board_at(j)->sm == sm && board_at(j)->is_default;
        test_push_note("sm_%d", sm);
        CHECK_EQ_I64(usual, 1);
        CHECK(generation_of_sm(sm) != NULL);
        test_pop_note();
    }
    CHECK(board_at(board_count()) == NULL && board_at(-1) == NULL && board_find("a99") == NULL);
    CHECK_EQ_STR(board_find("A100")->name, "a100");
    CHECK_HAS(board_names(), "t4, rtx2080ti, a100,");
}

static bool is_range(published_range r)
{
    return r.low > 0 && r.low <= r.high;
}

/* A data sheet's bandwidth follows from its clock and bus: a slip in one of the three shows. LPDDR5X clocks
 * are given as transfers (GB10). */
TEST_CASE(Boards, NumbersAgreeWithEachOther)
{
    for (int i = 0; i < board_count(); i++) {
        const board *b = board_at(i);
        const generation *m = generation_of_sm(b->sm);
        double gbs = 2.0 * b->memory_khz * b->bus_bits / 8e6;
        test_push_note("%s", b->name);
        CHECK(gbs / b->dram_gbs > 0.97 && (gbs / b->dram_gbs < 1.03 || b->integrated));
        CHECK(b->source && *b->source && b->memory_gb > 0 && b->l2_kib >= 4096 && b->tensor_tflops > 0);
        if (CHECK(m != NULL)) {
            CHECK(is_range(m->shared) && is_range(m->l1) && is_range(m->l2) && is_range(m->dram));
            CHECK(is_range(m->tensor) && is_range(m->dram_percent) && m->dram_percent.high < 100);
            CHECK(m->shared.high <= m->l1.high && m->l1.high < m->l2.low && m->l2.high < m->dram.high);
        }
        test_pop_note();
    }
}

static const char count_ptx[] = ".version 6.5\n.target sm_75\n.address_size 64\n"
                                ".visible .entry count(.param .u64 out)\n{\n"
                                "    .reg .b32 %r<3>;\n    .reg .b64 %a;\n"
                                "    ld.param.u64 %a, [out];\n    mov.u32 %r1, %nsmid;\n"
                                "    mov.u32 %r2, %nwarpid;\n    st.global.v2.u32 [%a], {%r1, %r2};\n"
                                "    ret;\n}\n";

static int attribute(CUdevice_attribute which)
{
    int value = -1;
    CU(cu.cuDeviceGetAttribute(&value, which, 0));
    return value;
}

/* The device that is open now is this board, in each place that tells. */
static void check_board(const board *b)
{
    CUmodule m = NULL;
    CUfunction f = NULL;
    CUdeviceptr out = new_u32(2, 0);
    void *params[] = {&out};
    CU(cu.cuModuleLoadData(&m, count_ptx));
    CU(cu.cuModuleGetFunction(&f, m, "count"));
    CU(launch_one(f, NULL, params));
    CHECK_EQ_U32(read_u32(out), (uint32_t)b->multiprocessors);
    CHECK_EQ_I64(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), b->multiprocessors);
    CHECK_EQ_I64((int)read_u32(out + 4) * 32, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
    CHECK_EQ_I64(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE), b->l2_kib * 1024);
    CHECK_EQ_I64(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE), b->clock_mhz * 1000);
    CHECK_EQ_I64(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                     attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                 b->sm);
}

TEST_CASE(Boards, PtxvmActsAsEach)
{
    for (int i = 0; i < board_count(); i++) {
        const board *b = board_at(i);
        char settings[64];
        size_t bytes = 0;
        test_push_note("%s", b->name);
        snprintf(settings, sizeof settings, "PTXVM_GPU=%s", b->name);
        if (driver_open_context(settings)) {
            check_board(b);
            CU(cu.cuDeviceTotalMem_v2(&bytes, 0));
            CHECK_EQ_U64(bytes, (uint64_t)b->memory_gb << 30);
        }
        driver_close();
        test_pop_note();
    }
}

TEST_CASE(Boards, AnSmAloneIsItsUsualBoard)
{
    for (int i = 0; i < board_count(); i++) {
        const board *b = board_at(i);
        char settings[64];
        test_push_note("sm_%d", b->sm);
        snprintf(settings, sizeof settings, "PTXVM_SM=sm_%d", b->sm);
        if (b->is_default && driver_open_context(settings))
            check_board(b);
        driver_close();
        test_pop_note();
    }
}

TEST_CASE(Boards, AnSmBesideABoardMustBeItsOwn)
{
    REQUIRE(driver_open_context("PTXVM_GPU=rtx4090 PTXVM_SM=sm_89 PTXVM_MEMORY=1G"));
    size_t bytes = 0;
    check_board(board_find("rtx4090"));
    CU(cu.cuDeviceTotalMem_v2(&bytes, 0));
    CHECK_EQ_U64(bytes, UINT64_C(1) << 30);
    driver_close();
}
