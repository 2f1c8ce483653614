/* Stores and reductions of sm_100: st.bulk, st.async and red.async to global memory, stores that leave out
 * elements; and mov between vectors. */
#include <stdio.h>

#include "test_ops.h"

#define EXPECT(name, expression)                                                                             \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        (void)t;                                                                                             \
        return expression;                                                                                   \
    }

EXPECT(zero_inside, t >= 8 && t < 24 ? 0 : 0x1111111111111111)
EXPECT(untouched, 0x1111111111111111)
EXPECT(number, 0x100 + t)
EXPECT(low_half, (0x100 + t) & 0xFFFF)
EXPECT(sum_of_all, 32 * 31 / 2)
EXPECT(highest, 31)
EXPECT(all_bits, 0xFFFFFFFF)
EXPECT(left_out, t % 8 == 1 || t % 8 == 6 ? 0x40 + t % 8 : 7)
EXPECT(left_out_64, t % 4 == 3 ? 0x43 : 7)
EXPECT(swapped, (uint64_t)(t + 1) << 32 | (t + 2))
EXPECT(swapped_64, 3 * t + 5)
EXPECT(rotated, (4 * t + 2) | (4 * t + 3) << 8 | (uint64_t)(4 * t) << 16 | (uint64_t)(4 * t + 1) << 24)
EXPECT(tid_and_one, (uint64_t)(t + 9) << 32 | t)
EXPECT(ntid_and_tid, 32 | (uint64_t)t << 32)

/* 32 words of 8 bytes at sm, all ones; thread t looks at word t afterwards. */
#define FILL                                                                                                 \
    "mov.u32 %r4, sm; mad.lo.u32 %r5, %r0, 8, %r4; mov.u64 %rd7, 0x1111111111111111;\n"                      \
    "st.shared.u64 [%r5], %rd7; bar.sync 0; setp.eq.u32 %p1, %r0, 0; cvt.u64.u32 %rd4, %r4;\n"
#define SHOW "\nbar.sync 0; ld.shared.u64 %rd9, [%r5];"

/* clang-format off */
static const ops_test StBulk[] = {
    {"range", FILL "@%p1 st.bulk.weak.shared::cta [%r4+64], 128, 0;" SHOW, zero_inside},
    {"size_in_a_register", FILL "mov.u64 %rd5, 128; @%p1 st.bulk.shared::cta [%rd4+64], %rd5, 0;" SHOW, zero_inside},
    {"generic", FILL "cvta.shared.u64 %rd4, %rd4; @%p1 st.bulk [%rd4+64], 128, 0;" SHOW, zero_inside},
    {"each_lane_its_own", FILL "setp.ge.u32 %p1, %r0, 8; setp.lt.and.u32 %p1, %r0, 24, %p1;\n"
        "@%p1 st.bulk.shared::cta [%r5], 8, 0;" SHOW, zero_inside, "sm_120a"},
    {"nothing", FILL "@%p1 st.bulk.shared::cta [%r4], 0, 0;" SHOW, untouched},
    {"not_global", FILL "@%p1 st.bulk [%rd0], 8, 0;" SHOW, .status = PTXVM_ERROR_ADDRESS,
        .error = "st.bulk writes shared memory"},
    {"outside", FILL "mov.u64 %rd5, 0x100000; @%p1 st.bulk.shared::cta [%r4], %rd5, 0;" SHOW,
        .status = PTXVM_ERROR_ADDRESS, .error = "shared"},
    {"size_not_of_8", FILL "mov.u64 %rd5, 12; @%p1 st.bulk.shared::cta [%r4], %rd5, 0;" SHOW,
        .status = PTXVM_ERROR_EXECUTION, .error = "st.bulk of 12 bytes"},
    {"address_not_of_8", FILL "@%p1 st.bulk.shared::cta [%r4+4], 8, 0;" SHOW, .status = PTXVM_ERROR_MISALIGNED},
};
OPS_TESTS(OpsBlackwell, StBulk)

/* The result goes to this thread's own word, or to the first one. */
#define OWN    "add.u32 %r1, %r0, 0x100; cvt.u64.u32 %rd3, %r1; cvt.u16.u32 %h1, %r1; mov.u64 %rd5, %rd2;\n"
#define OWN_IT "\nld.global.u64 %rd9, [%rd5];"
#define SUM    "mov.u64 %rd5, %rd0; cvt.u64.u32 %rd3, %r0;\n"
#define SUM_IT "\nbar.sync 0; ld.global.u64 %rd9, [%rd5];"

static const ops_test AsyncGlobal[] = {
    {"st_b32", OWN "st.async.release.gpu.global.b32 [%rd5], %r1;" OWN_IT, number},
    {"st_u64", OWN "st.async.release.sys.u64 [%rd5], %rd3;" OWN_IT, number},
    {"st_b16_mmio", OWN "st.async.mmio.release.sys.global.b16 [%rd5], %h1;" OWN_IT, low_half, "sm_120a"},
    {"red_add", SUM "red.async.release.gpu.global.add.u32 [%rd5], %r0;" SUM_IT, sum_of_all},
    {"red_add_s64", SUM "red.async.mmio.release.sys.add.s64 [%rd5], %rd3;" SUM_IT, sum_of_all},
    {"red_max", SUM "red.async.release.gpu.global.max.s32 [%rd5], %r0;" SUM_IT, highest},
    {"red_or", SUM "shl.b32 %r1, 1, %r0; red.async.release.gpu.global.or.b32 [%rd5], %r1;" SUM_IT, all_bits},
    {"red_inc", SUM "red.async.release.gpu.global.inc.u32 [%rd5], 31;" SUM_IT " add.u64 %rd9, %rd9, 31;", highest},
};
OPS_TESTS(OpsBlackwell, AsyncGlobal)

static const ops_test StSinks[] = {
    {"v8_b32", "mad.wide.u32 %rd5, %r0, 4, %rd0; mov.u32 %r1, 7; st.global.u32 [%rd5], %r1;\n"
        "bar.sync 0; mov.u32 %r2, 0x41; mov.u32 %r3, 0x46; shr.u32 %r4, %r0, 3; mad.wide.u32 %rd6, %r4, 32, %rd0;\n"
        "st.global.v8.b32 [%rd6], {_, %r2, _, _, _, _, %r3, _}; bar.sync 0; ld.global.u32 %rd9, [%rd5];", left_out},
    {"v4_b64", "mad.wide.u32 %rd5, %r0, 8, %rd0; mov.u64 %rd3, 7; st.global.u64 [%rd5], %rd3;\n"
        "bar.sync 0; mov.u64 %rd4, 0x43; shr.u32 %r4, %r0, 2; mad.wide.u32 %rd6, %r4, 32, %rd0;\n"
        "st.relaxed.gpu.v4.b64 [%rd6], {_, _, _, %rd4}; bar.sync 0; ld.global.u64 %rd9, [%rd5];", left_out_64},
};
OPS_TESTS(OpsBlackwell, StSinks)

static const ops_test MovVectors[] = {
    {"swap", "add.u32 %r1, %r0, 1; add.u32 %r2, %r0, 2; mov.v2.u32 {%r1, %r2}, {%r2, %r1}; mov.b64 %rd9, {%r1, %r2};",
        swapped, "sm_75"},
    {"swap_64", "cvt.u64.u32 %rd3, %r0; mul.lo.u64 %rd3, %rd3, 3; add.u64 %rd4, %rd3, 5;\n"
        "mov.v2.u64 {%rd3, %rd4}, {%rd4, %rd3}; mov.u64 %rd9, %rd3;", swapped_64, "sm_75"},
    {"v4_b16", "shl.b32 %r1, %r0, 2; cvt.u16.u32 %h0, %r1; add.u16 %h1, %h0, 1; add.u16 %h2, %h0, 2; add.u16 %h3, %h0, 3;\n"
        "mov.v4.b16 {%h0, %h1, %h2, %h3}, {%h2, %h3, %h0, %h1};\n"
        "cvt.u64.u16 %rd9, %h3; shl.b64 %rd9, %rd9, 8; cvt.u64.u16 %rd8, %h2; or.b64 %rd9, %rd9, %rd8;\n"
        "shl.b64 %rd9, %rd9, 8; cvt.u64.u16 %rd8, %h1; or.b64 %rd9, %rd9, %rd8;\n"
        "shl.b64 %rd9, %rd9, 8; cvt.u64.u16 %rd8, %h0; or.b64 %rd9, %rd9, %rd8;", rotated, "sm_75"},
    {"special_in_a_pack", "add.u32 %r1, %r0, 9; mov.b64 %rd9, {%tid.x, %r1};", tid_and_one, "sm_75"},
    {"specials", "mov.v2.u32 {%r1, %r2}, {%ntid.x, %tid.x}; mov.b64 %rd9, {%r1, %r2};", ntid_and_tid, "sm_75"},
    {"special_and_register", "mov.u32 %r3, 32; mov.v2.u32 {%r3, %r2}, {%r3, %laneid}; mov.b64 %rd9, {%r3, %r2};",
        ntid_and_tid, "sm_75"},
};
OPS_TESTS(OpsBlackwell, MovVectors)

/* As Triton writes loads and stores of one element. */
static const ops_test OneInBraces[] = {
    {"ld_st", "add.u32 %r1, %r0, 0x100; st.global.b32 [ %rd2 + 0 ], { %r1 }; ld.global.b32 { %r2 }, [ %rd2 + 0 ];\n"
        "mov.b32 {%r3}, %r2; mov.b32 %r4, {%r3}; cvt.u64.u32 %rd9, %r4;", number, "sm_75"},
};
OPS_TESTS(OpsBlackwell, OneInBraces)
/* clang-format on */
