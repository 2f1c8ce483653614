/* ld, st, ldu: sizes and extension, vectors, spaces, generic addresses, faults. */
#include <stdio.h>

#include "test_ops.h"

/* ---- what threads should leave: the input at 64 * thread, or as named ---- */

#define EXPECT(name, expression)                                                                             \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        (void)t;                                                                                             \
        return expression;                                                                                   \
    }

EXPECT(in_u8, ops_in_at(64 * t, 1))
EXPECT(in_u16, ops_in_at(64 * t, 2))
EXPECT(in_u32, ops_in_at(64 * t, 4))
EXPECT(in_u64, ops_in_at(64 * t, 8))
EXPECT(swapped, __builtin_bswap64(ops_in_at(64 * t, 8)))
EXPECT(in_s8, (uint64_t)(int8_t)ops_in_at(64 * t, 1))
EXPECT(in_s16, (uint64_t)(int16_t)ops_in_at(64 * t, 2))
EXPECT(in_s32, (uint64_t)(int32_t)ops_in_at(64 * t, 4))
EXPECT(in_s8_32, (uint32_t)(int8_t)ops_in_at(64 * t, 1))
EXPECT(in_s8_16, (uint16_t)(int8_t)ops_in_at(64 * t, 1))
EXPECT(in_b128, ops_in_at(64 * t, 8) ^ ops_in_at(64 * t + 8, 8))
EXPECT(in_row, ops_in_at(4 * t, 4))
EXPECT(in_v2, ops_in_at(64 * t, 4) + ops_in_at(64 * t + 4, 4))
EXPECT(in_v4, ops_in_at(64 * t, 4) ^ ops_in_at(64 * t + 4, 4) << 8 ^ ops_in_at(64 * t + 8, 4) << 16 ^
                  ops_in_at(64 * t + 12, 4) << 24)
EXPECT(in_v4_u8, ops_in_at(4 * t, 1) + 2 * ops_in_at(4 * t + 1, 1) + 3 * ops_in_at(4 * t + 2, 1) +
                     4 * ops_in_at(4 * t + 3, 1))
EXPECT(in_v8_last, ops_in_at(64 * t + 28, 4))
EXPECT(half_only, t % 2 ? ops_in_at(64 * t, 4) : 77)
EXPECT(number, t + 5)
EXPECT(mirror, 31 - t)
EXPECT(low_byte, (t * 0x01010101u & 0xFF) | 0xAABBCC00u)
EXPECT(const_value, 0x100 + t % 4)
EXPECT(global_value, 1000 + t % 4)
EXPECT(param_high, 2) /* out is at 0x2_0000_0000 or above */
EXPECT(bits_1, 1)
EXPECT(five_values, 54321)

/* %rd3 = in + 64 * thread */
#define AT64 "mad.wide.u32 %rd3, %r0, 64, %rd1;\n"

/* clang-format off */
static const ops_test LdSt[] = {
    /* Each is found among several: the sum of their values times powers of ten. */
    {"SharedVariables",
     "st.shared.u32 [v0], 1;\nst.shared.u32 [v1+4], 2;\nst.shared.u32 [v2], 3;\nst.shared.u32 [v3+8], 4;\n"
     "st.shared.u32 [v4], 5;\nld.shared.u32 %r1, [v0];\nld.shared.u32 %r2, [v1+4];\nld.shared.u32 %r3, [v2];\n"
     "ld.shared.u32 %r4, [v3+8];\nld.shared.u32 %r5, [v4];\nmad.lo.u32 %r1, %r2, 10, %r1;\n"
     "mad.lo.u32 %r1, %r3, 100, %r1;\nmad.lo.u32 %r1, %r4, 1000, %r1;\nmad.lo.u32 %r1, %r5, 10000, %r1;\n"
     "cvt.u64.u32 %rd9, %r1;",
     five_values, .threads = 1,
     .decls = ".shared .align 4 .b8 v0[4];\n.shared .align 4 .b8 v1[8];\n.shared .align 4 .b8 v2[4];\n"
              ".shared .align 4 .b8 v3[12];\n.shared .align 4 .b8 v4[4];\n"},
    {"u8_into_64", AT64 "ld.global.u8 %rd9, [%rd3];", in_u8},
    {"v8_of_bytes", AT64 "ld.global.v8.u8 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd3]; st.shared.v8.u8 [sm], {%r8, %r7, %r6, %r5, %r4, %r3, %r2, %r1}; ld.shared.u64 %rd9, [sm];", swapped, .threads = 1},
    {"local_volatile", AT64 "ld.global.u32 %r1, [%rd3]; st.volatile.local.u32 [lo+8], %r1; ld.volatile.local.u32 %r9, [lo+8]; cvt.u64.u32 %rd9, %r9;", in_u32},
    {"mmio", AT64 "ld.mmio.acquire.sys.global.u32 %r1, [%rd3]; st.mmio.release.sys.global.u32 [%rd2], %r1; ld.mmio.relaxed.sys.global.u32 %r9, [%rd2]; cvt.u64.u32 %rd9, %r9;", in_u32},
    {"u16_into_64", AT64 "ld.global.u16 %rd9, [%rd3];", in_u16},
    {"u32_into_64", AT64 "ld.global.u32 %rd9, [%rd3];", in_u32},
    {"u64", AT64 "ld.global.u64 %rd9, [%rd3];", in_u64},
    {"b8_into_64", AT64 "ld.global.b8 %rd9, [%rd3];", in_u8},
    {"b16_into_32", AT64 "ld.global.b16 %r9, [%rd3]; cvt.u64.u32 %rd9, %r9;", in_u16},
    {"s8_into_64", AT64 "ld.global.s8 %rd9, [%rd3];", in_s8},
    {"s16_into_64", AT64 "ld.global.s16 %rd9, [%rd3];", in_s16},
    {"s32_into_64", AT64 "ld.global.s32 %rd9, [%rd3];", in_s32},
    {"s8_into_32", AT64 "ld.global.s8 %r9, [%rd3]; cvt.u64.u32 %rd9, %r9;", in_s8_32},
    {"s8_into_16", AT64 "ld.global.s8 %h9, [%rd3]; cvt.u64.u16 %rd9, %h9;", in_s8_16},
    {"f32", AT64 "ld.global.f32 %f9, [%rd3]; mov.b32 %r9, %f9; cvt.u64.u32 %rd9, %r9;", in_u32},
    {"f64", AT64 "ld.global.f64 %fd9, [%rd3]; mov.b64 %rd9, %fd9;", in_u64},
    {"b128", AT64 "ld.global.b128 %q1, [%rd3]; mov.b128 {%rd4, %rd5}, %q1; xor.b64 %rd9, %rd4, %rd5;",
        in_b128},
    {"contiguous", "mad.wide.u32 %rd3, %r0, 4, %rd1; ld.global.u32 %r9, [%rd3]; cvt.u64.u32 %rd9, %r9;",
        in_row},
    {"nc_and_hints", AT64 "createpolicy.fractional.L2::evict_last.b64 %rd7, 1.0;\n"
        "ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %r9, [%rd3], %rd7; cvt.u64.u32 %rd9, %r9;", in_u32},
    {"volatile_load", AT64 "ld.volatile.global.u32 %r9, [%rd3]; cvt.u64.u32 %rd9, %r9;", in_u32},
    {"acquire_load", AT64 "ld.acquire.gpu.global.u32 %r9, [%rd3]; cvt.u64.u32 %rd9, %r9;", in_u32},
    {"relaxed_store", "add.u32 %r9, %r0, 5; mad.wide.u32 %rd3, %r0, 8, %rd0; "
        "st.relaxed.sys.global.u32 [%rd3], %r9;\n"
        "ld.relaxed.sys.global.u32 %rd9, [%rd3];", number},
    {"ldu", AT64 "ldu.global.u32 %r9, [%rd3]; cvt.u64.u32 %rd9, %r9;", in_u32},
    {"v2", AT64 "ld.global.v2.u32 {%r4, %r5}, [%rd3]; cvt.u64.u32 %rd4, %r4; cvt.u64.u32 %rd5, %r5;\n"
        "add.u64 %rd9, %rd4, %rd5;", in_v2},
    {"v4_f32", AT64 "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd3]; cvt.u64.u32 %rd9, %r4;\n"
        "cvt.u64.u32 %rd5, %r5; shl.b64 %rd5, %rd5, 8; xor.b64 %rd9, %rd9, %rd5;\n"
        "cvt.u64.u32 %rd5, %r6; shl.b64 %rd5, %rd5, 16; xor.b64 %rd9, %rd9, %rd5;\n"
        "cvt.u64.u32 %rd5, %r7; shl.b64 %rd5, %rd5, 24; xor.b64 %rd9, %rd9, %rd5;", in_v4},
    {"v4_u8", "mad.wide.u32 %rd3, %r0, 4, %rd1; ld.global.v4.u8 {%r4, %r5, %r6, %r7}, [%rd3];\n"
        "mad.lo.u32 %r4, %r5, 2, %r4; mad.lo.u32 %r4, %r6, 3, %r4; mad.lo.u32 %r4, %r7, 4, %r4; "
        "cvt.u64.u32 %rd9, %r4;",
        in_v4_u8},
    {"v8_b32", AT64 "ld.global.v8.b32 {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}, [%rd3]; "
        "cvt.u64.u32 %rd9, %r11;",
        in_v8_last},
    {"sink_in_vector", AT64 "ld.global.v2.u32 {_, %r5}, [%rd3+24]; cvt.u64.u32 %rd9, %r5;", in_v8_last},
    {"negative_offset", AT64 "add.u64 %rd3, %rd3, 100; ld.global.u32 %rd9, [%rd3+-100];", in_u32},
    {"half_of_the_lanes", AT64 "mov.u64 %rd9, 77; and.b32 %r1, %r0, 1; setp.ne.u32 %p1, %r1, 0;\n"
        "@%p1 ld.global.u32 %rd9, [%rd3];", half_only},
    {"shared_reversed", "shl.b32 %r1, %r0, 2; mov.u32 %r2, sm; add.u32 %r1, %r1, %r2; "
        "st.shared.u32 [%r1], %r0;\n"
        "bar.sync 0; sub.u32 %r3, 31, %r0; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r2; "
        "ld.shared.u32 %rd9, [%r3];", mirror},
    {"shared_generic", "mov.u64 %rd4, sm; cvta.shared.u64 %rd4, %rd4; mad.wide.u32 %rd5, %r0, 4, %rd4; "
        "st.u32 [%rd5], %r0;\n"
        "bar.sync 0; sub.u32 %r3, 31, %r0; mad.wide.u32 %rd5, %r3, 4, %rd4; ld.u32 %rd9, [%rd5];", mirror},
    {"store_low_byte", "mov.u32 %r1, 0xAABBCCDD; shl.b32 %r2, %r0, 2; mov.u32 %r4, sm; "
        "add.u32 %r2, %r2, %r4;\n"
        "st.shared.u32 [%r2], %r1; mul.lo.u32 %r3, %r0, 0x01010101; st.shared.u8 [%r2], %r3; "
        "ld.shared.u32 %rd9, [%r2];",
        low_byte},
    {"store_vector", "mad.wide.u32 %rd3, %r0, 8, %rd0; add.u32 %r1, %r0, 5; mov.u32 %r2, 0; "
        "st.global.v2.u32 [%rd3], {%r1, %r2};\n"
        "ld.global.u64 %rd9, [%rd3];", number},
    {"store_b128", "shl.b32 %r1, %r0, 4; mov.u32 %r2, sm; add.u32 %r1, %r1, %r2; cvt.u64.u32 %rd4, %r0; "
        "add.u64 %rd5, %rd4, 5;\n"
        "mov.b128 %q1, {%rd4, %rd5}; st.shared.b128 [%r1], %q1; ld.shared.u64 %rd9, [%r1+8];", number},
    {"local_is_private", "add.u32 %r1, %r0, 5; st.local.u32 [lo+16], %r1; bar.sync 0; "
        "ld.local.u32 %rd9, [lo+16];", number},
    {"local_generic", "add.u32 %r1, %r0, 5; mov.u64 %rd4, lo; cvta.local.u64 %rd4, %rd4; "
        "st.u32 [%rd4+8], %r1;\n"
        "ld.local.u32 %rd9, [lo+8];", number},
    {"generic_in_three_places", /* lane % 3: shared, local, global */
        "mov.u64 %rd4, sm; cvta.shared.u64 %rd4, %rd4; mad.wide.u32 %rd4, %r0, 4, %rd4; mov.u64 %rd5, lo;\n"
        "cvta.local.u64 %rd5, %rd5; rem.u32 %r1, %r0, 3; setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, 2;\n"
        "selp.b64 %rd6, %rd5, %rd4, %p1; selp.b64 %rd6, %rd2, %rd6, %p2; add.u32 %r2, %r0, 5; "
        "st.u32 [%rd6], %r2;\n"
        "ld.u32 %rd9, [%rd6];", number},
    {"const_variable", "and.b32 %r1, %r0, 3; mul.wide.u32 %rd3, %r1, 4; mov.u64 %rd4, table; "
        "add.u64 %rd3, %rd3, %rd4;\n"
        "ld.const.u32 %rd9, [%rd3];", const_value,
        .decls = ".const .u32 table[4] = {0x100, 0x101, 0x102, 0x103};"},
    {"const_generic", "and.b32 %r1, %r0, 3; mul.wide.u32 %rd3, %r1, 4; mov.u64 %rd4, table; "
        "cvta.const.u64 %rd4, %rd4;\n"
        "add.u64 %rd3, %rd3, %rd4; ld.u32 %rd9, [%rd3];", const_value,
        .decls = ".const .u32 table[4] = {0x100, 0x101, 0x102, 0x103};"},
    {"global_variable", "and.b32 %r1, %r0, 3; mul.wide.u32 %rd3, %r1, 4; mov.u64 %rd4, table; "
        "add.u64 %rd3, %rd3, %rd4;\n"
        "ld.global.u32 %rd9, [%rd3];", global_value,
        .decls = ".global .u32 table[4] = {1000, 1001, 1002, 1003};"},
    {"param_generic", "mov.b64 %rd4, out; cvta.param.u64 %rd4, %rd4; ld.u32 %rd9, [%rd4+4];", param_high},
    {"param_offset", "ld.param.u32 %rd9, [out+4];", param_high},
    {"hints_do_nothing", AT64 "prefetch.global.L2 [%rd3]; prefetchu.L1 [%rd3]; "
        "prefetch.global.L2::evict_last [%rd3];\n"
        "applypriority.global.L2::evict_normal [%rd1], 128; ld.global.u32 %rd9, [%rd3];", in_u32},
    {"fences", "membar.cta; membar.gl; membar.sys; fence.sc.gpu; fence.acq_rel.cta; fence.proxy.async; "
        "mov.u64 %rd9, 1;", bits_1},
};

static const ops_test Faults[] = {
    {"null", "mov.u64 %rd3, 0; ld.global.u32 %rd9, [%rd3];", .status = PTXVM_ERROR_ADDRESS, .error = "0x0"},
    {"null_generic", "mov.u64 %rd3, 0; ld.u32 %rd9, [%rd3];", .status = PTXVM_ERROR_ADDRESS},
    {"one_byte_past", "ld.global.u8 %rd9, [%rd1+4096];", .status = PTXVM_ERROR_ADDRESS,
        .error = "4096 bytes"},
    {"last_bytes", "ld.global.u32 %rd9, [%rd1+4092];"},
    {"one_before", "ld.global.u8 %rd9, [%rd1+-1];", .status = PTXVM_ERROR_ADDRESS},
    {"only_lane_31", "mad.wide.u32 %rd3, %r0, 4, %rd1; ld.global.u32 %rd9, [%rd3+3972];",
        .status = PTXVM_ERROR_ADDRESS,
        .error = "(31"},
    {"guarded_lanes_may_be_wild", "mad.wide.u32 %rd3, %r0, 4, %rd1; setp.lt.u32 %p1, %r0, 31;\n"
        "@%p1 ld.global.u32 %rd9, [%rd3+3972];"},
    {"misaligned_4", "ld.global.u32 %rd9, [%rd1+2];", .status = PTXVM_ERROR_MISALIGNED,
        .error = "multiple of 4"},
    {"misaligned_8", "ld.global.u64 %rd9, [%rd1+4];", .status = PTXVM_ERROR_MISALIGNED},
    {"misaligned_vector", "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1+8];",
        .status = PTXVM_ERROR_MISALIGNED,
        .error = "multiple of 16"},
    {"misaligned_shared", "st.shared.u16 [sm+1], %h1;", .status = PTXVM_ERROR_MISALIGNED},
    {"store_past", "st.global.u8 [%rd1+4096], %r0;", .status = PTXVM_ERROR_ADDRESS, .error = "store"},
    {"shared_past", "mov.u32 %r1, 4096; ld.shared.u32 %rd9, [%r1];", .status = PTXVM_ERROR_ADDRESS,
        .error = "shared"},
    {"shared_past_generic", "mov.u64 %rd4, sm; cvta.shared.u64 %rd4, %rd4; ld.u32 %rd9, [%rd4+4096];",
        .status = PTXVM_ERROR_ADDRESS},
    {"local_past", "mov.u64 %rd4, lo; add.u64 %rd4, %rd4, 0x100000; ld.local.u32 %rd9, [%rd4];",
        .status = PTXVM_ERROR_ADDRESS, .error = "local"},
    {"global_at_shared_window", "mov.u64 %rd4, sm; cvta.shared.u64 %rd4, %rd4; ld.global.u32 %rd9, [%rd4];",
        .status = PTXVM_ERROR_ADDRESS},
    {"write_const", "mov.u64 %rd4, table; st.u32 [%rd4], %r0;", .status = PTXVM_ERROR_ADDRESS,
        .error = "read only",
        .decls = ".const .u32 table[4] = {1, 2, 3, 4};"},
    {"between_allocations", "ld.global.u32 %rd9, [%rd0+256];", .status = PTXVM_ERROR_ADDRESS},
    {"atomic_past", "atom.global.add.u32 %r1, [%rd1+4096], 1;", .status = PTXVM_ERROR_ADDRESS,
        .error = "atomic"},
    {"atomic_misaligned", "red.global.add.u64 [%rd1+4], 1;", .status = PTXVM_ERROR_MISALIGNED},
    {"trap", "setp.eq.u32 %p1, %r0, 5; @%p1 trap;", .status = PTXVM_ERROR_TRAP, .error = "trap"},
};
/* clang-format on */

OPS_TESTS(OpsLdSt, LdSt)
OPS_TESTS(OpsLdSt, Faults)
