/* atom and red: every operation and type, order of lanes, several blocks. */
#include <stdio.h>

#include "test_ops.h"

#define EXPECT(name, expression)                                                                             \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        (void)t;                                                                                             \
        return expression;                                                                                   \
    }

/* Sums of 0..t-1 and the like: what lane t finds when the lanes before it have acted. */
EXPECT(sum_before, t *(t - 1) / 2)
EXPECT(total_496, 496)
EXPECT(or_before, (UINT64_C(1) << t) - 1)
EXPECT(xor_all, UINT32_MAX)
EXPECT(and_all, 0xFFFFFFFE00000000)
EXPECT(before, t == 0 ? 100 : t - 1)
EXPECT(wrapped, t % 5)
EXPECT(counted_down, 3 - t % 4)
EXPECT(counted_down_from_above, t == 0 ? 9 : 3 - (t - 1) % 4)
EXPECT(least, (uint64_t)(uint32_t)-31)
EXPECT(least_unsigned, 0)
EXPECT(most, 0)
EXPECT(most_unsigned, (uint32_t)-1)
EXPECT(least_64, (uint64_t)-31)
EXPECT(cas_chain, t)
EXPECT(cas_64, t == 0 ? 0 : UINT64_C(0x100000001))
EXPECT(f32_32, 0x42000000)
EXPECT(f64_32, 0x4040000000000000)
EXPECT(f16_32, 0x5000)
EXPECT(bf16_32, 0x4200)
EXPECT(f16x2_both, 0x50005400)
EXPECT(bf16x2_both, 0x42004280)
EXPECT(zero, 0)
EXPECT(subnormal, 32)
EXPECT(blocks_total, 8 * 64)
EXPECT(seven, 7)
EXPECT(odd_sum, 256)
EXPECT(vector_f32, 0x4280000042000000)
EXPECT(half_max, 0x401F)
EXPECT(half_min, 0xC01FC01F)
EXPECT(b128_last, 31)
EXPECT(nan_f32, 0x7FFFFFFF)

/* The place of an atomic: sm, cleared by thread 0; %r4 its address. */
#define CLEAR(value)                                                                                         \
    "mov.u32 %r4, sm; mov.u64 %rd8, " value                                                                  \
    ";\nst.shared.u64 [%r4], %rd8; st.shared.u64 [%r4+8], %rd8; bar.sync 0;\n"
#define SHOW32 "\nbar.sync 0; ld.shared.u32 %rd9, [%r4];"
#define SHOW64 "\nbar.sync 0; ld.shared.u64 %rd9, [%r4];"
#define OLD    "\ncvt.u64.u32 %rd9, %r9;"
/* The same in global memory: `in` of one block, cleared. */
#define GCLEAR  "mov.u64 %rd8, 0; st.global.u64 [%rd1], %rd8; st.global.u64 [%rd1+8], %rd8; bar.sync 0;\n"
#define GSHOW32 "\nbar.sync 0; ld.global.u32 %rd9, [%rd1];"
#define GSHOW64 "\nbar.sync 0; ld.global.u64 %rd9, [%rd1];"

/* clang-format off */
static const ops_test Atomic[] = {
    {"add_u32_returns_in_lane_order", CLEAR("0") "atom.shared.add.u32 %r9, [%r4], %r0;" OLD, sum_before},
    {"add_s32", CLEAR("0") "red.shared.add.s32 [%r4], %r0;" SHOW32, total_496},
    {"add_u64", CLEAR("0") "cvt.u64.u32 %rd5, %r0; red.shared.add.u64 [%r4], %rd5;" SHOW64, total_496},
    {"or_b32", CLEAR("0") "mov.u32 %r1, 1; shl.b32 %r1, %r1, %r0; atom.shared.or.b32 %r9, [%r4], %r1;" OLD,
        or_before},
    {"xor_b32", CLEAR("0") "mov.u32 %r1, 1; shl.b32 %r1, %r1, %r0; red.shared.xor.b32 [%r4], %r1;" SHOW32,
        xor_all},
    {"and_b64", CLEAR("-1") "mov.u64 %rd5, 2; shl.b64 %rd5, %rd5, %r0; not.b64 %rd5, %rd5; "
        "and.b64 %rd5, %rd5, -2;\n"
        "red.shared.and.b64 [%r4], %rd5;" SHOW64, and_all},
    {"exch_b32", CLEAR("100") "atom.shared.exch.b32 %r9, [%r4], %r0;" OLD, before},
    {"exch_b64", CLEAR("100") "cvt.u64.u32 %rd5, %r0; atom.shared.exch.b64 %rd9, [%r4], %rd5;", before},
    {"inc_wraps_at_bound", CLEAR("0") "atom.shared.inc.u32 %r9, [%r4], 4;" OLD, wrapped},
    {"dec_wraps_at_zero", CLEAR("3") "atom.shared.dec.u32 %r9, [%r4], 3;" OLD, counted_down},
    {"dec_begins_above_its_bound", CLEAR("9") "atom.shared.dec.u32 %r9, [%r4], 3;" OLD, counted_down_from_above},
    {"min_s32", CLEAR("0") "neg.s32 %r1, %r0; red.shared.min.s32 [%r4], %r1;" SHOW32, least},
    {"min_u32", CLEAR("0") "neg.s32 %r1, %r0; red.shared.min.u32 [%r4], %r1;" SHOW32, least_unsigned},
    {"max_s32", CLEAR("0") "neg.s32 %r1, %r0; red.shared.max.s32 [%r4], %r1;" SHOW32, most},
    {"max_u32", CLEAR("0") "neg.s32 %r1, %r0; red.shared.max.u32 [%r4], %r1;" SHOW32, most_unsigned},
    {"min_s64", CLEAR("0") "cvt.s64.s32 %rd5, %r0; neg.s64 %rd5, %rd5; red.shared.min.s64 [%r4], %rd5;"
        SHOW64, least_64},
    {"max_u64", CLEAR("0") "cvt.u64.u32 %rd5, %r0; red.shared.max.u64 [%r4], %rd5;" SHOW64, b128_last},
    {"cas_b32_chain", CLEAR("0") "add.u32 %r2, %r0, 1; atom.shared.cas.b32 %r9, [%r4], %r0, %r2;" OLD,
        cas_chain},
    {"cas_b64", CLEAR("0") "mov.u64 %rd5, 0; mov.u64 %rd6, 0x100000001; "
        "atom.shared.cas.b64 %rd9, [%r4], %rd5, %rd6;", cas_64},
    {"cas_b16_chain", CLEAR("0") "cvt.u16.u32 %h1, %r0; add.u16 %h2, %h1, 1; "
        "atom.shared.cas.b16 %h9, [%r4+2], %h1, %h2;\n"
        "cvt.u64.u16 %rd9, %h9;", cas_chain},
    {"exch_b128", CLEAR("0") "cvt.u64.u32 %rd5, %r0; mov.b128 %q1, {%rd5, %rd5}; "
        "atom.shared.exch.b128 %q2, [%r4], %q1;\n"
        "bar.sync 0; ld.shared.u64 %rd9, [%r4+8];", b128_last},
    {"cas_b128", CLEAR("0") "cvt.u64.u32 %rd5, %r0; add.u64 %rd6, %rd5, 1; mov.b128 %q1, {%rd5, %rd5}; "
        "mov.b128 %q2, {%rd6, %rd6};\n"
        "atom.shared.cas.b128 %q3, [%r4], %q1, %q2; mov.b128 {%rd9, %rd7}, %q3;", cas_chain},
    {"add_f32_shared", CLEAR("0") "mov.f32 %f1, 0f3F800000; red.shared.add.f32 [%r4], %f1;" SHOW32, f32_32},
    {"add_f32_shared_keeps_subnormals", CLEAR("0") "mov.b32 %f1, 1; red.shared.add.f32 [%r4], %f1;" SHOW32,
        subnormal},
    {"add_f32_global_flushes_subnormals", GCLEAR "mov.b32 %f1, 1; red.global.add.f32 [%rd1], %f1;" GSHOW32,
        zero},
    {"add_f32_generic_in_shared", CLEAR("0") "mov.u64 %rd4, sm; cvta.shared.u64 %rd4, %rd4; mov.b32 %f1, 1; "
        "red.add.f32 [%rd4], %f1;"
        SHOW32, subnormal},
    {"add_f32_nan", CLEAR("0") "mov.b32 %f1, 0xFFC12345; red.shared.add.f32 [%r4], %f1;" SHOW32, nan_f32},
    {"add_f64", CLEAR("0") "mov.f64 %fd1, 0d3FF0000000000000; red.shared.add.f64 [%r4], %fd1;" SHOW64,
        f64_32},
    {"add_f16", CLEAR("0") "mov.b16 %h1, 0x3C00; red.shared.add.noftz.f16 [%r4], %h1;" SHOW32, f16_32},
    {"add_bf16", CLEAR("0") "mov.b16 %h1, 0x3F80; red.shared.add.noftz.bf16 [%r4], %h1;" SHOW32, bf16_32},
    {"add_f16x2", CLEAR("0") "mov.b32 %r1, 0x3C004000; red.shared.add.noftz.f16x2 [%r4], %r1;" SHOW32,
        f16x2_both},
    {"add_bf16x2", CLEAR("0") "mov.b32 %r1, 0x3F804000; red.shared.add.noftz.bf16x2 [%r4], %r1;" SHOW32,
        bf16x2_both},
    {"vector_add_f32", GCLEAR "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;\n"
        "red.global.add.v2.f32 [%rd1], {%f1, %f2};" GSHOW64, vector_f32},
    {"vector_add_f32_atom", GCLEAR "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;\n"
        "atom.global.add.v2.f32 {%f3, %f4}, [%rd1], {%f1, %f2};" GSHOW64, vector_f32},
    {"vector_max_f16", GCLEAR "cvt.u16.u32 %h1, %r0; add.u16 %h1, %h1, 0x4000; mov.b16 %h2, 0;\n"
        "red.global.max.noftz.v2.f16 [%rd1], {%h1, %h2};" GSHOW32, half_max},
    {"vector_min_f16x2", GCLEAR "cvt.u16.u32 %h1, %r0; add.u16 %h1, %h1, 0xC000; mov.b32 %r1, {%h1, %h1};\n"
        "red.global.min.noftz.v2.f16x2 [%rd1], {%r1, %r1};" GSHOW32, half_min},
    {"some_lanes", CLEAR("0") "and.b32 %r1, %r0, 1; setp.ne.u32 %p1, %r1, 0; "
        "@%p1 red.shared.add.u32 [%r4], %r0;" SHOW32, odd_sum},
    {"scopes", GCLEAR "red.relaxed.gpu.global.add.u32 [%rd1], 1; "
        "atom.acq_rel.sys.global.add.u32 %r9, [%rd1], 0;\n"
        "atom.acquire.cta.global.or.b32 %r9, [%rd1], 0; mov.u64 %rd9, 0;", zero},
};

/* Eight blocks of 64 threads add to one place; the second kernel would see the total,
        so each thread spins until it is there. */
static const ops_test Blocks[] = {
    {"red_of_parallel_blocks", "red.global.add.u32 [counter], 1;\n"
        "WAIT: ld.volatile.global.u32 %r9, [counter]; setp.lt.u32 %p1, %r9, 512; @%p1 bra WAIT; "
        "cvt.u64.u32 %rd9, %r9;",
        blocks_total, .threads = 64, .blocks = 8, .decls = ".global .u32 counter;"},
    {"blocks_that_race", "mov.u32 %r1, 7; st.global.u32 [counter], %r1; ld.global.u32 %rd9, [counter]; "
        "st.global.v2.u32 [counter+8], {%r1, %r1};",
        seven, .threads = 64, .blocks = 40, .decls = ".global .align 8 .u32 counter[4];"},
    {"red_of_many_blocks", "red.global.add.u32 [counter], 1; red.global.max.s64 [counter+8], %rd2; "
        "red.global.or.b32 [counter+16], %r0;",
        .threads = 64, .blocks = 40, .decls = ".global .align 8 .u32 counter[8];"},
    {"atom_of_blocks", "atom.global.add.u32 %r8, [counter], 1;\n"
        "WAIT: ld.volatile.global.u32 %r9, [counter]; setp.lt.u32 %p1, %r9, 512; @%p1 bra WAIT; "
        "cvt.u64.u32 %rd9, %r9;",
        blocks_total, .threads = 64, .blocks = 8, .decls = ".global .u32 counter;"},
};
/* clang-format on */

OPS_TESTS(OpsAtomic, Atomic)
OPS_TESTS(OpsAtomic, Blocks)
