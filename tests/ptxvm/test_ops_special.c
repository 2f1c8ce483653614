/* Special registers, addresses as numbers, the stack, and the functions that nvcc leaves to the system. */
#include <stdio.h>
#include <string.h>

#include "test_ops.h"

#define EXPECT(name, expression)                                                                             \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        (void)t;                                                                                             \
        return expression;                                                                                   \
    }

EXPECT(zero, 0)
EXPECT(one, 1)
EXPECT(thread, t % 64)
EXPECT(block, t / 64)
EXPECT(lane, t % 32)
EXPECT(warp, t % 64 / 32)
EXPECT(sixty_four, 64)
EXPECT(three, 3)
EXPECT(eq, UINT32_C(1) << t % 32)
EXPECT(lt, (UINT32_C(1) << t % 32) - 1)
EXPECT(le, (UINT64_C(2) << t % 32) - 1)
EXPECT(gt, (uint32_t) ~((UINT64_C(2) << t % 32) - 1))
EXPECT(ge, (uint32_t) ~((UINT32_C(1) << t % 32) - 1))
EXPECT(shared_window, UINT64_C(0x100000000))
EXPECT(local_window, UINT64_C(0x180000000))
EXPECT(spaces_of_shared, 1)
EXPECT(spaces_of_local, 2)
EXPECT(spaces_of_global, 4)
EXPECT(spaces_of_const, 8)
EXPECT(spaces_of_param, 20) /* the window of parameters is part of the global one */
EXPECT(number, t % 64 + 5)
EXPECT(total_shared, 4096)

#define OUT        "\ncvt.u64.u32 %rd9, %r9;"
#define SREG(name) "mov.u32 %r9, " name ";" OUT
#define TWO_WARPS  .threads = 64, .blocks = 3
/* One bit for each space that says yes: shared 1, local 2, global 4, const 8, param 16. */
#define SPACES                                                                                               \
    "isspacep.shared %p1, %rd4; isspacep.local %p2, %rd4; isspacep.global %p3, %rd4; isspacep.const %p4, "   \
    "%rd4;\n"                                                                                                \
    "isspacep.param %p5, %rd4; selp.u32 %r9, 1, 0, %p1; @%p2 or.b32 %r9, %r9, 2; @%p3 or.b32 %r9, %r9, 4;\n" \
    "@%p4 or.b32 %r9, %r9, 8; @%p5 or.b32 %r9, %r9, 16;" OUT

/* clang-format off */
static const ops_test Special[] = {
    {"tid", SREG("%tid.x"), thread, TWO_WARPS},
    {"tid_y", SREG("%tid.y"), zero, TWO_WARPS},
    {"ntid", SREG("%ntid.x"), sixty_four, TWO_WARPS},
    {"ntid_z", SREG("%ntid.z"), one, TWO_WARPS},
    {"ctaid", SREG("%ctaid.x"), block, TWO_WARPS},
    {"nctaid", SREG("%nctaid.x"), three, TWO_WARPS},
    {"laneid", SREG("%laneid"), lane, TWO_WARPS},
    {"warpid", SREG("%warpid"), warp, TWO_WARPS},
    {"nwarpid", SREG("%nwarpid"), sixty_four},
    {"smid_below_nsmid", "mov.u32 %r1, %smid; mov.u32 %r2, %nsmid; setp.lt.u32 %p1, %r1, %r2; "
        "selp.u64 %rd9, 1, 0, %p1;", one, TWO_WARPS},
    {"lanemask_eq", SREG("%lanemask_eq"), eq, TWO_WARPS},
    {"lanemask_lt", SREG("%lanemask_lt"), lt, TWO_WARPS},
    {"lanemask_le", SREG("%lanemask_le"), le, TWO_WARPS},
    {"lanemask_gt", SREG("%lanemask_gt"), gt, TWO_WARPS},
    {"lanemask_ge", SREG("%lanemask_ge"), ge, TWO_WARPS},
    {"clusterid", SREG("%clusterid.x"), block, TWO_WARPS},
    {"cluster_nctaid", SREG("%cluster_nctaid.x"), one},
    {"cluster_ctarank", SREG("%cluster_ctarank"), zero},
    {"cluster_nctarank", SREG("%cluster_nctarank"), one},
    {"dynamic_smem_size", SREG("%dynamic_smem_size"), zero},
    {"total_smem_size", "st.shared.u32 [sm], %r0;" SREG("%total_smem_size"), total_shared},
    {"envreg", SREG("%envreg3"), zero},
    {"clock_moves", "mov.u64 %rd4, %clock64; mov.u32 %r3, %clock; mov.u64 %rd5, %globaltimer; "
        "mov.u64 %rd6, %clock64;\n"
        "setp.gt.u64 %p1, %rd6, %rd4; selp.u64 %rd9, 1, 0, %p1;", one},
    {"cvta_shared", "mov.u64 %rd4, sm; cvta.shared.u64 %rd9, %rd4; sub.u64 %rd9, %rd9, %rd4;", shared_window},
    {"cvta_to_shared", "cvta.shared.u64 %rd4, sm; cvta.to.shared.u64 %rd5, %rd4; mov.u64 %rd6, sm; "
        "sub.u64 %rd9, %rd5, %rd6;", zero},
    {"cvta_local", "mov.u64 %rd4, lo; cvta.local.u64 %rd9, %rd4; sub.u64 %rd9, %rd9, %rd4;", local_window},
    {"cvta_global", "cvta.global.u64 %rd9, %rd1; sub.u64 %rd9, %rd9, %rd1;", zero},
    {"isspacep_shared", "cvta.shared.u64 %rd4, sm;\n" SPACES, spaces_of_shared},
    {"isspacep_local", "cvta.local.u64 %rd4, lo;\n" SPACES, spaces_of_local},
    {"isspacep_global", "mov.u64 %rd4, %rd1;\n" SPACES, spaces_of_global},
    {"isspacep_const", "cvta.const.u64 %rd4, c;\n" SPACES, spaces_of_const, .decls = ".const .u32 c = 5;"},
    {"isspacep_param", "mov.b64 %rd4, out; cvta.param.u64 %rd4, %rd4;\n" SPACES, spaces_of_param},
    {"mapa", "mov.u32 %r4, sm; mapa.shared::cluster.u32 %r9, %r4, 0; sub.u32 %r9, %r9, %r4;" OUT, zero},
    {"mapa_of_another", "mov.u32 %r4, sm; mapa.shared::cluster.u32 %r9, %r4, 1;",
        .status = PTXVM_ERROR_EXECUTION, .error = "cluster of 1"},
    {"getctarank", "mov.u32 %r4, sm; getctarank.shared::cluster.u32 %r9, %r4;" OUT, zero},
    {"alloca", "add.u32 %r1, %r0, 5; mov.u64 %rd4, 64; alloca.u64 %rd5, %rd4, 16; "
        "st.local.u32 [%rd5+60], %r1; bar.sync 0;\n"
        "ld.local.u32 %rd9, [%rd5+60];", number, TWO_WARPS},
    {"stackrestore", "stacksave.u64 %rd3; mov.u64 %rd4, 64; alloca.u64 %rd5, %rd4; stackrestore.u64 %rd3; "
        "alloca.u64 %rd6, %rd4;\n"
        "sub.u64 %rd9, %rd6, %rd5;", zero},
    {"after_stackrestore_it_is_gone", "stacksave.u64 %rd3; mov.u64 %rd4, 4096; alloca.u64 %rd5, %rd4; "
        "stackrestore.u64 %rd3;\n"
        "ld.local.u32 %rd9, [%rd5+4092];", .status = PTXVM_ERROR_ADDRESS},
    {"nanosleep_and_kin", "nanosleep.u32 100; pmevent 3; griddepcontrol.wait; "
        "griddepcontrol.launch_dependents; mov.u64 %rd9, 1;", one},
    {"brkpt", "brkpt;", .status = PTXVM_ERROR_TRAP},
};
/* clang-format on */

OPS_TESTS(OpsSpecial, Special)

/* ---- vprintf, __assertfail, malloc ---- */

/* A string as an initialised variable. */
static void append_string(char *text, size_t size, const char *name, const char *string)
{
    size_t at = strlen(text), length = strlen(string);
    at += (size_t)snprintf(text + at, size - at, ".global .align 1 .b8 %s[%zu] = {", name, length + 1);
    for (size_t i = 0; i <= length; i++)
        at += (size_t)snprintf(text + at, size - at, "%d%s", (unsigned char)string[i],
                               i < length ? "," : "};\n");
}

typedef struct print_case {
    const char *name, *format, *arguments, *expected;
} print_case;

/* clang-format off */
static const print_case prints[] = {
    {"plain", "hello\n", "", "hello\n"},
    {"percent", "100%%\n", "", "100%\n"},
    {"ints", "%d %i %u %x %X %o\n", "st.local.v2.u32 [lo], {%r50, %r51}; "
        "st.local.v2.u32 [lo+8], {%r51, %r52}; st.local.v2.u32 [lo+16], {%r52, %r53};",
        "-7 42 42 beef BEEF 17\n"},
    {"long_after_int_is_aligned", "%d %lld %lu\n", "st.local.u32 [lo], %r50; st.local.u64 [lo+8], %rd50; "
        "st.local.u64 [lo+16], %rd51;",
        "-7 -5000000000 12345678901234567890\n"},
    {"double", "%f %.3e %g|%8.2f|%-8.1f|\n", "st.local.f64 [lo], %fd10; st.local.f64 [lo+8], %fd10; "
        "st.local.f64 [lo+16], %fd10;\n"
        "st.local.f64 [lo+24], %fd10; st.local.f64 [lo+32], %fd10;",
        "1.500000 1.500e+00 1.5|    1.50|1.5     |\n"},
    {"widths", "[%5d][%-5d][%05d][%+d][%*d]\n", "st.local.v4.u32 [lo], {%r51, %r51, %r51, %r51}; "
        "st.local.v2.u32 [lo+16], {%r53, %r51};",
        "[   42][42   ][00042][+42][             42]\n"},
    {"string_and_char", "%s|%6s|%.2s|%c\n", "st.local.u64 [lo], %rd52; st.local.u64 [lo+8], %rd52; "
        "st.local.u64 [lo+16], %rd52; st.local.u32 [lo+24], 65;",
        "word|  word|wo|A\n"},
    {"short", "%hd %hhu\n", "st.local.v2.u32 [lo], {%r52, %r52};", "-16657 239\n"},
    {"pointer", "%p\n", "st.local.u64 [lo], %rd53;", "0x123456789a\n"},
    {"null_string", "%s\n", "mov.u64 %rd54, 0; st.local.u64 [lo], %rd54;", "(null)\n"},
};
/* clang-format on */

#define VPRINTF_DECL ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
#define CALL_VPRINTF(format)                                                                                 \
    "cvta.local.u64 %rd60, lo; cvta.global.u64 %rd61, " format                                               \
    ";\n{ .param .b64 a; .param .b64 b; .param .b32 r;\n"                                                    \
    "st.param.b64 [a], %rd61; st.param.b64 [b], %rd60; call.uni (r), vprintf, (a, b); ld.param.b32 %r9, "    \
    "[r]; }\n"

TEST_ROWS(OpsBuiltin, Vprintf, prints)
{
    const print_case *c = &prints[index];
    char decls[4096] = VPRINTF_DECL, lines[4096];
    append_string(decls, sizeof decls, "fmt", c->format);
    append_string(decls, sizeof decls, "word", "word");
    snprintf(
        lines, sizeof lines,
        "mov.u32 %%r50, -7; mov.u32 %%r51, 42; mov.u32 %%r52, 0xBEEF; mov.u32 %%r53, 15;\n"
        "mov.u64 %%rd50, -5000000000; mov.u64 %%rd51, 12345678901234567890; cvta.global.u64 %%rd52, word;\n"
        "mov.u64 %%rd53, 0x123456789A; mov.f64 %%fd10, 0d3FF8000000000000;\n%s\n%s",
        c->arguments, CALL_VPRINTF("fmt"));
    ops_run(&(ops_test){c->name, lines, .threads = 1, .decls = decls, .printed = c->expected});
}

/* Blocks may run in parallel; what they print comes in their order. */
TEST_CASE(OpsBuiltin, PrintsInTheOrderOfBlocks)
{
    char decls[4096] = VPRINTF_DECL, expected[4096] = "";
    append_string(decls, sizeof decls, "fmt", "%d.%d ");
    for (int b = 0; b < 20; b++)
        for (int t = 0; t < 3; t++)
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d.%d ", b, t);
    ops_run(&(ops_test){"order",
                        "mov.u32 %r1, %ctaid.x; st.local.v2.u32 [lo], {%r1, %r0};\n" CALL_VPRINTF("fmt"),
                        .threads = 3, .blocks = 20, .decls = decls, .printed = expected});
}

TEST_CASE(OpsBuiltin, AssertNamesItsPlace)
{
    char decls[4096] = ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 "
                       "d, .param .b64 e);\n";
    append_string(decls, sizeof decls, "msg", "x > 0");
    append_string(decls, sizeof decls, "file", "a.cu");
    append_string(decls, sizeof decls, "fun", "kernel");
    ops_run(&(ops_test){
        "assert",
        "setp.eq.u32 %p1, %r0, 3; @!%p1 bra FINE;\n"
        "cvta.global.u64 %rd4, msg; cvta.global.u64 %rd5, file; cvta.global.u64 %rd6, fun;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
        "st.param.b64 [a], %rd4; st.param.b64 [b], %rd5; st.param.b32 [c], 17; st.param.b64 [d], %rd6;\n"
        "st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); } FINE:",
        .decls = decls, .status = PTXVM_ERROR_ASSERT, .error = "a.cu:17: kernel: Assertion `x > 0` failed"});
}

#define HEAP_DECLS                                                                                           \
    ".extern .func (.param .b64 r) malloc (.param .b64 a);\n.extern .func free (.param .b64 a);\n"
#define CALL_MALLOC                                                                                          \
    "{ .param .b64 a; .param .b64 r; st.param.b64 [a], %rd4; call.uni (r), malloc, (a); ld.param.b64 %rd5, " \
    "[r]; }\n"
#define CALL_FREE "{ .param .b64 a; st.param.b64 [a], %rd5; call.uni free, (a); }\n"

/* clang-format off */
static const ops_test Heap[] = {
    {"malloc_gives_each_its_own", "mov.u64 %rd4, 64;\n" CALL_MALLOC "add.u32 %r1, %r0, 5; "
        "st.u32 [%rd5+60], %r1; bar.sync 0;\n"
        "ld.u32 %rd9, [%rd5+60];\n" CALL_FREE, number, TWO_WARPS, .decls = HEAP_DECLS},
    {"after_free_it_is_gone", "mov.u64 %rd4, 64;\n" CALL_MALLOC CALL_FREE "ld.u32 %rd9, [%rd5];",
        .threads = 1,
        .status = PTXVM_ERROR_ADDRESS, .decls = HEAP_DECLS},
    {"past_the_end", "mov.u64 %rd4, 62;\n" CALL_MALLOC "ld.u32 %rd9, [%rd5+60];", .threads = 1,
        .status = PTXVM_ERROR_ADDRESS, .decls = HEAP_DECLS},
    {"too_much_is_null", "mov.u64 %rd4, 0x7FFFFFFFFFFF;\n" CALL_MALLOC "mov.u64 %rd9, %rd5;", zero,
        .decls = HEAP_DECLS},
    {"free_of_null", "mov.u64 %rd5, 0;\n" CALL_FREE, zero, .decls = HEAP_DECLS},
    {"free_of_another", "mov.u64 %rd5, %rd1;\n" CALL_FREE, .status = PTXVM_ERROR_ADDRESS,
        .error = "malloc", .decls = HEAP_DECLS},
};
/* clang-format on */
OPS_TESTS(OpsBuiltin, Heap)
