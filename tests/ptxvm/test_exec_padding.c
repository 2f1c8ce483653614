/* Accesses past the end of an allocation: what a GPU's padding lets pass, and what the memory check does. The
 * allocation has 44 bytes, 11 floats, so that nvcc's ld.v4.f32 of the elements 8 to 10 ends 4 bytes past it. */
#include "test_exec.h"

enum { BYTES = 44 };

typedef struct padding_test {
    const char *name, *lines;
    bool checked_ok, unchecked_ok;
} padding_test;

static const padding_test tests[] = {
    {"v4_over_the_end", "ld.global.v4.f32 {f1, f2, f3, f4}, [d0+32];", true, true},
    {"v4_generic", "ld.v4.u32 {r1, r2, r3, r4}, [d0+32];", true, true},
    {"v4_nc", "ld.global.nc.v4.u32 {r1, r2, r3, r4}, [d0+32];", true, true},
    {"v2_over_the_end", "ld.global.v2.f32 {f1, f2}, [d0+40];", true, true},
    {"v4_behind_the_end", "ld.global.v4.f32 {f1, f2, f3, f4}, [d0+48];", false, true},
    {"scalar_behind_the_end", "ld.global.u32 r1, [d0+44];", false, true},
    {"wide_scalar_over_the_end", "ld.global.u64 d1, [d0+40];", false, true},
    {"store_over_the_end", "st.global.v4.f32 [d0+32], {f1, f2, f3, f4};", false, true},
    {"atomic_behind_the_end", "atom.global.add.u32 r1, [d0+44], 1;", false, true},
    {"end_of_the_padding", "ld.global.u32 r1, [d0+508];", false, true},
    {"behind_the_padding", "ld.global.u32 r1, [d0+512];", false, false},
    {"before_the_start", "ld.global.v4.f32 {f1, f2, f3, f4}, [d0+-16];", false, false},
    /* 4 bytes of .shared, given out in pieces of 128. */
    {"shared_in_the_piece", "ld.shared.u32 r1, [s+124]; st.shared.u32 [s+4], r2;", false, true},
    {"shared_behind_the_piece", "ld.shared.u32 r1, [s+128];", false, false},
    {"shared_v2_over_the_end", "ld.shared.v2.u32 {r1, r2}, [s];", false, true},
};

static ptxvm_status run(const padding_test *t, unsigned checks, char *error, size_t size)
{
    static char text[2048];
    snprintf(text, sizeof text,
             EXEC_HEADER
             ".visible .entry k(.param .u64 out)\n{\n.reg .b32 r<9>; .reg .b64 d<9>; .reg .f32 f<9>; "
             ".shared .align 8 .b8 s[4];\nld.param.u64 d0, [out]; mov.u32 r2, s; mov.f32 f1, "
             "0f00000000; mov.f32 f2, f1; mov.f32 f3, f1; mov.f32 f4, f1; mov.u32 r2, 1;\n%s\nret;\n}\n",
             t->lines);
    ptxvm_config config = {.sm = "sm_80", .checks = checks, .threads = 1};
    exec_run r = exec_open(&config, text);
    uint32_t data[BYTES / 4] = {0};
    ptxvm_status status = exec_launch(&r, exec_grid(1, 1), data, BYTES / 4);
    snprintf(error, size, "%s", ptxvm_last_error(r.vm));
    exec_close(&r);
    return status;
}

TEST_ROWS(PtxvmPadding, Accesses, tests)
{
    const padding_test *t = &tests[index];
    static const unsigned without[] = {0, PTXVM_CHECK_RACE | PTXVM_CHECK_SYNC | PTXVM_CHECK_INIT};
    static const unsigned with[] = {PTXVM_CHECK_MEMORY, PTXVM_CHECK_ALL & ~PTXVM_CHECK_INIT};
    char error[1024];
    for (int i = 0; i < 2; i++) {
        ptxvm_status checked = run(t, with[i], error, sizeof error);
        CHECK_EQ_I64(checked, t->checked_ok ? PTXVM_OK : PTXVM_ERROR_ADDRESS);
        if (checked)
            CHECK_HAS(error, strstr(t->lines, "shared") ? "which is outside" : "which no allocation holds");
        ptxvm_status unchecked = run(t, without[i], error, sizeof error);
        CHECK_EQ_I64(unchecked, t->unchecked_ok ? PTXVM_OK : PTXVM_ERROR_ADDRESS);
    }
}

/* The elements past the end count as unwritten: loading them is fine, computing with them is not. */
TEST_CASE(PtxvmPadding, WhatIsBehindTheEndIsUnwritten)
{
    static const char format[] = EXEC_KERNEL(
        "ld.global.v4.f32 {f1, f2, f3, f4}, [d0+32]; add.rn.f32 f5, f2, %s; st.global.f32 [d0], f5;");
    for (int i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof text, format, i ? "f4" : "f3");
        ptxvm_config config = {.checks = PTXVM_CHECK_ALL};
        exec_run r = exec_open(&config, text);
        uint32_t data[BYTES / 4] = {[9] = 0x3F800000, [10] = 0x40000000};
        CHECK_EQ_I64(exec_launch(&r, exec_grid(1, 1), data, BYTES / 4), i ? PTXVM_ERROR_CHECK : PTXVM_OK);
        int n;
        uint64_t total;
        const ptxvm_finding *f = ptxvm_findings(r.vm, &n, &total);
        CHECK_EQ_I64(n, i);
        if (n == 1)
            CHECK_EQ_I64(f->kind, PTXVM_FINDING_UNINITIALISED);
        if (!i)
            CHECK_EQ_U32(data[0], 0x40400000);
        exec_close(&r);
    }
}

/* Zeros would hide a result that depends on them. */
TEST_CASE(PtxvmPadding, IsNotZero)
{
    exec_run r =
        exec_open(NULL, EXEC_KERNEL("ld.global.v4.u32 {r1, r2, r3, r4}, [d0+32]; ld.global.u32 r5, [d0+508];"
                                    "st.global.u32 [d0], r4; st.global.u32 [d0+4], r5;"));
    uint32_t data[BYTES / 4] = {0};
    CHECK_EQ_I64(exec_launch(&r, exec_grid(1, 1), data, BYTES / 4), PTXVM_OK);
    CHECK_EQ_U32(data[0], 0x5A5A5A5A);
    CHECK_EQ_U32(data[1], 0x5A5A5A5A);
    exec_close(&r);
}

/* Vector loads of 32 bytes, which sm_100 has, are aligned to 32. */
TEST_CASE(PtxvmPadding, LoadsOf32Bytes)
{
    static const char format[] = ".version 8.8\n.target sm_100\n.address_size 64\n.visible .entry k(.param "
                                 ".u64 out)\n{\n.reg .b32 r<9>; "
                                 ".reg .b64 d0;\nld.param.u64 d0, [out]; ld.global.v8.b32 {r0, r1, r2, r3, "
                                 "r4, r5, r6, r7}, [d0+%d];\nret;\n}\n";
    for (int at = 0; at <= 64; at += 32) {
        char text[512];
        snprintf(text, sizeof text, format, at);
        ptxvm_config config = {.sm = "sm_100", .checks = PTXVM_CHECK_MEMORY};
        exec_run r = exec_open(&config, text);
        uint32_t data[BYTES / 4] = {0};
        CHECK_EQ_I64(exec_launch(&r, exec_grid(1, 1), data, BYTES / 4),
                     at < BYTES ? PTXVM_OK : PTXVM_ERROR_ADDRESS);
        exec_close(&r);
    }
}

/* Programs take the upper bits of a large allocation for their own. */
TEST_CASE(PtxvmPadding, LargeAllocationsAreAlignedTo2MiB)
{
    ptxvm *vm;
    ptxvm_address small, large, page, last;
    REQUIRE(ptxvm_create(NULL, &vm) == PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, 1000, &small), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, UINT64_C(64) << 20, &large), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, UINT64_C(2) << 20, &page), PTXVM_OK);
    CHECK_EQ_I64(ptxvm_alloc(vm, (UINT64_C(2) << 20) - 1, &last), PTXVM_OK);
    CHECK_EQ_U64(large % (2 << 20), 0);
    CHECK_EQ_U64(page % (2 << 20), 0);
    CHECK_EQ_U64(small % PTXVM_PADDING, 0);
    CHECK_EQ_U64(last % PTXVM_PADDING, 0);
    ptxvm_destroy(vm);
}
