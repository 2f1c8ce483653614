/* Functions: parameters of every kind, recursion, indirect calls, stacks. */
#include "test_exec.h"

#define ENTRY(body)                                                                                          \
    ".visible .entry k(.param .u64 out)\n{\n.reg .pred p<8>; .reg .b32 r<20>; .reg .b64 d<20>; .reg .f64 "   \
    "e<4>;\n"                                                                                                \
    "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1;\n" body         \
    "\nret;\n}\n"

/* .param arguments as nvcc writes them, a struct by value, an 8-byte result. */
TEST_CASE(PtxvmCalls, ParametersInParamSpace)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_HEADER ".func (.param .b64 f_ret) f(.param .b32 f_0, .param .align 8 .b8 "
                            "f_1[16])\n{\n.reg .b32 r<4>; .reg .b64 d<6>;\n"
                            "ld.param.u32 r0, [f_0]; ld.param.u32 r1, [f_1]; ld.param.u64 d0, [f_1+8]; "
                            "mad.wide.u32 d1, r0, r1, d0;\n"
                            "st.param.b64 [f_ret+0], d1; ret;\n}\n" ENTRY(
                                "mov.u64 d3, 1000; add.u32 r1, r0, 1;\n"
                                "{ .param .b32 param0; st.param.b32 [param0+0], r0; .param .align 8 .b8 "
                                "param1[16]; st.param.b32 [param1+0], r1;\n"
                                "st.param.b64 [param1+8], d3; .param .b64 retval0; call.uni (retval0), f, "
                                "(param0, param1); ld.param.b64 d4, [retval0+0]; }\n"
                                "cvt.u32.u64 r2, d4; st.global.u32 [d1], r2;"),
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i * (i + 1) + 1000);
}

/* fib(tid % 8), each lane to its own depth. */
TEST_CASE(PtxvmCalls, RecursionWithDivergence)
{
    static const uint32_t fib[8] = {0, 1, 1, 2, 3, 5, 8, 13};
    uint32_t out[64] = {0};
    exec_simple(
        EXEC_HEADER
        ".func (.param .b32 ret) fib(.param .b32 n)\n{\n.reg .pred p<2>; .reg .b32 r<8>;\n"
        "ld.param.u32 r0, [n]; setp.lt.u32 p0, r0, 2; @p0 bra SMALL; sub.u32 r1, r0, 1; sub.u32 r2, r0, 2;\n"
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], r1; call (b), fib, (a); ld.param.b32 r3, [b]; }\n"
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], r2; call (b), fib, (a); ld.param.b32 r4, [b]; }\n"
        "add.u32 r0, r3, r4;\n"
        "SMALL: st.param.b32 [ret], r0; ret;\n}\n" ENTRY(
            "and.b32 r1, r0, 7; { .param .b32 a; .param .b32 b; st.param.b32 [a], r1; call (b), fib, (a); "
            "ld.param.b32 r2, [b]; }\n"
            "activemask.b32 r3; not.b32 r3, r3; add.u32 r2, r2, r3; st.global.u32 [d1], r2;"),
        1, 64, out, 64);
    for (uint32_t i = 0; i < 64; i++)
        CHECK_EQ_U32(out[i], fib[i & 7]);
}

/* A decimal number for a parameter of 32 bits is an f32; one for 64 bits an f64. */
TEST_CASE(PtxvmCalls, NumbersAsArguments)
{
    uint32_t out[1] = {0};
    exec_simple(EXEC_HEADER
                ".func (.param .b32 y) f(.param .b32 x, .param .b64 z)\n{\n.reg .b32 a, c; .reg .b64 b;\n"
                "ld.param.b32 a, [x]; ld.param.b64 b, [z]; mov.b64 {_, c}, b; xor.b32 a, a, c; "
                "st.param.b32 [y], a; ret;\n}\n" ENTRY(
                    "{ .param .b32 y; call (y), f, (1.5, 2.5); ld.param.b32 r2, [y]; } "
                    "st.global.u32 [d1], r2;"),
                1, 1, out, 1);
    CHECK_EQ_U32(out[0], 0x3FC00000 ^ 0x40040000);
}

/* A register parameter, a result in a register, a guarded call, and a return that only some lanes take. */
TEST_CASE(PtxvmCalls, GuardedCallsAndReturns)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_HEADER ".func (.reg .b32 y) f(.reg .b32 x)\n{\n.reg .pred p; setp.lt.u32 p, x, 8; "
                            "mov.u32 y, 5; @p ret; add.u32 y, x, 100; ret;\n}\n" ENTRY(
                                "mov.u32 r2, 77; setp.lt.u32 p0, r0, 20; @p0 call (r2), f, (r0); "
                                "activemask.b32 r4; setp.ne.u32 p1, r4, 0xffffffff;\n"
                                "@p1 mov.u32 r2, 0; st.global.u32 [d1], r2;"),
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i < 8 ? 5 : i < 20 ? i + 100 : 77);
}

/* Lanes call different functions through a table in global memory, and by .calltargets. */
TEST_CASE(PtxvmCalls, IndirectCalls)
{
    uint32_t out[32] = {0};
    exec_simple(
        EXEC_HEADER
        ".func (.param .b32 y) f0(.param .b32 x)\n{\n.reg .b32 r<2>; ld.param.u32 r0, [x]; add.u32 r0, r0, "
        "1; st.param.b32 [y], r0; ret;\n}\n"
        ".func (.param .b32 y) f1(.param .b32 x)\n{\n.reg .b32 r<2>; ld.param.u32 r0, [x]; mul.lo.u32 r0, "
        "r0, 2; st.param.b32 [y], r0; ret;\n}\n"
        ".func (.param .b32 y) f2(.param .b32 x)\n{\n.reg .b32 r<2>; ld.param.u32 r0, [x]; not.b32 r0, r0; "
        "st.param.b32 [y], r0; ret;\n}\n"
        ".global .align 8 .u64 table[3] = {f0, f1, f2};\n" ENTRY(
            "rem.u32 r1, r0, 3; mul.wide.u32 d3, r1, 8; mov.u64 d4, table; add.u64 d4, d4, d3; ld.global.u64 "
            "d5, [d4];\n"
            "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
            "{ .param .b32 a; .param .b32 b; st.param.b32 [a], r0; call (b), d5, (a), proto; ld.param.b32 "
            "r2, [b]; }\n"
            "activemask.b32 r3; setp.ne.u32 p0, r3, 0xffffffff; @p0 mov.u32 r2, 0; st.global.u32 [d1], r2;"),
        1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i % 3 == 0 ? i + 1 : i % 3 == 1 ? 2 * i : ~i);
}

/* Local arrays of a recursive function are each activation's own. */
TEST_CASE(PtxvmCalls, LocalMemoryOfEachActivation)
{
    uint32_t out[32] = {0};
    exec_simple(EXEC_HEADER
                ".func (.reg .b32 y) f(.reg .b32 n)\n{\n.local .align 4 .b8 buffer[16]; .reg .pred p; .reg "
                ".b32 r<8>; .reg .b64 d<4>;\n"
                "mov.u64 d0, buffer; st.local.u32 [d0+8], n; mov.u32 y, 0; setp.eq.u32 p, n, 0; @p bra END; "
                "sub.u32 r1, n, 1; call (y), f, (r1);\n"
                "END: ld.local.u32 r2, [buffer+8]; cvta.local.u64 d1, d0; ld.u32 r3, [d1+8]; add.u32 y, y, "
                "r2; add.u32 y, y, r3; ret;\n}\n" ENTRY("call (r2), f, (r0); st.global.u32 [d1], r2;"),
                1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i * (i + 1));
}

TEST_CASE(PtxvmCalls, EndlessRecursionIsAStackOverflow)
{
    char error[512];
    ptxvm_config config = {.stack_bytes = 65536};
    ptxvm_status status = exec_failing(
        &config,
        EXEC_HEADER
        ".func f(.reg .b32 n)\n{\n.reg .b32 r<2>; add.u32 r0, n, 1;\ncall f, (r0);\nret;\n}\n" ENTRY(
            "call f, (r0);"),
        1, 32, error, sizeof error);
    CHECK_EQ_I64(status, PTXVM_ERROR_EXECUTION);
    CHECK_HAS(error, "stack overflow");
    CHECK_HAS(error, "function f, line 7");
}

TEST_CASE(PtxvmCalls, IndirectCallOfNothing)
{
    char error[512];
    ptxvm_status status = exec_failing(
        NULL, EXEC_HEADER ENTRY("mov.u64 d5, 4096;\nproto: .callprototype _ ();\ncall d5, (), proto;"), 1, 32,
        error, sizeof error);
    CHECK_EQ_I64(status, PTXVM_ERROR_EXECUTION);
    CHECK_HAS(error, "indirect call of 0x1000");
}
