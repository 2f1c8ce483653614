/* Corners of the language that ptxas accepts but few compilers use: what they compute. Expected values were read
 * off the SASS that ptxas makes of the same lines. */
#include "test_exec.h"

/* One word per row: the lines leave it in r9. */
typedef struct line_test {
    const char *name, *module, *lines;
    uint32_t expect;
} line_test;

#define TAB ".global .align 8 .u64 tab[4] = {10, 20, 30, 40};\n"

static const line_test tests[] = {
    /* After a subtraction the carry flag means "no borrow". */
    {"sub_cc_addc", "", "sub.cc.u32 r4, 1, 2; addc.u32 r9, 0, 0;", 0},
    {"sub_cc_addc_none", "", "sub.cc.u32 r4, 2, 1; addc.u32 r9, 0, 0;", 1},
    {"add_cc_carry_subc", "", "add.cc.u32 r4, 1, -1; subc.u32 r9, 5, 3;", 2},
    {"add_cc_subc", "", "add.cc.u32 r4, 1, 1; subc.u32 r9, 5, 3;", 1},
    {"mad_cc_subc", "", "mad.lo.cc.u32 r4, 1, 1, -1; subc.u32 r9, 5, 3;", 2},
    {"chain_of_subtractions", "", "sub.cc.u32 r4, 0, 1; subc.cc.u32 r5, 0, 0; subc.u32 r9, 7, 0;", 6},
    /* A register and a number. */
    {"sum_64", "", "mov.u64 d3, 0xffffffff; st.u64 [d0], d3 + 1; ld.u32 r9, [d0+4];", 1},
    {"sum_negative", "", "mov.u32 r4, 7; mov.u32 r9, r4 + -9;", 0xfffffffe},
    {"sum_32_wraps", "", "mov.u32 r4, 0xffffffff; cvt.u64.u32 d3, r4+2; cvt.u32.u64 r9, d3;", 1},
    {"sum_16", "", ".reg .u16 h; mov.u16 h, 0xffff; cvt.u32.u16 r9, h+3;", 2},
    {"sum_in_the_middle", "", "mov.u32 r4, 7; mad.lo.u32 r9, r4+1, r4+2, r4;", 79},
    {"sum_guarded", "", "mov.u32 r4, 7; mov.u32 r9, 5; setp.eq.u32 p0, r4, 8; @p0 mov.u32 r9, r4+1;", 5},
    {"sum_of_a_wider_register", "", "mov.u64 d3, 0x100000005; st.u32 [d0], d3+1; ld.u32 r9, [d0];", 6},
    /* An index counts scalar elements, in 32 bits. */
    {"index_number", TAB, "ld.global.u64 d3, tab[2]; cvt.u32.u64 r9, d3;", 30},
    {"index_register", TAB, "mov.u32 r4, 3; ld.global.u64 d3, tab[r4]; cvt.u32.u64 r9, d3;", 40},
    {"index_sum", TAB, "mov.u32 r4, 0; ld.global.u64 d3, tab[r4+1]; cvt.u32.u64 r9, d3;", 20},
    {"index_of_64_bits", TAB, "mov.u64 d4, 0x500000001; ld.global.u64 d3, tab[d4]; cvt.u32.u64 r9, d3;", 20},
    {"index_of_16_bits", TAB, ".reg .s16 h; mov.u16 h, 2; ld.global.u64 d3, tab[h]; cvt.u32.u64 r9, d3;", 30},
    {"index_generic", TAB, "mov.u32 r4, 1; ld.u64 d3, tab[r4]; cvt.u32.u64 r9, d3;", 20},
    {"index_mov", TAB, "mov.u32 r4, 2; mov.u64 d3, tab[r4]; ld.global.u32 r9, [d3];", 30},
    {"index_mov_number", TAB, "mov.u64 d3, tab[3]; ld.global.u32 r9, [d3];", 40},
    {"index_cvta", TAB, "mov.u32 r4, 2; cvta.global.u64 d3, tab[r4]; ld.u32 r9, [d3];", 30},
    {"index_of_rows", ".global .u32 t[2][2] = {{1, 2}, {3, 4}};\n", "mov.u32 r4, 2; ld.global.u32 r9, t[r4];",
     3},
    {"index_of_vectors", ".global .v2 .u32 t[2] = {{1, 2}, {3, 4}};\n", "ld.global.u32 r9, t[3];", 4},
    {"index_const", ".const .u32 t[2] = {1, 2};\n", "mov.u32 r4, 1; ld.const.u32 r9, t[r4];", 2},
    {"index_shared", ".shared .u32 t[8];\n",
     "mov.u32 r4, 5; st.shared.u32 t[r4], 77; ld.shared.u32 r9, [t+20];", 77},
    {"index_local", "", ".local .u64 l[4]; mov.u32 r4, 3; st.local.u64 l[r4], 8; ld.local.u32 r9, [l+24];",
     8},
    /* a<2> defines a0 and a1 alone. */
    {"prefix_after", "",
     ".reg .b32 a; .reg .b16 a<2>; mov.b32 a, 5; mov.b16 a1, 3; cvt.u32.u16 r9, a1; "
     "mad.lo.u32 r9, r9, 10, a;",
     35},
    {"prefix_before", "", ".reg .b16 a<2>; .reg .b32 a; mov.b32 a, 5; mov.b16 a0, 3; mov.b32 r9, a;", 5},
    {"prefix_label", "", ".reg .b16 a<2>; mov.u32 r9, 4; bra.uni a; mov.u32 r9, 3; a:", 4},
    {"prefix_inside", "", ".reg .b32 a<4>; mov.b32 a3, 8; { .reg .b16 a<2>; mov.b16 a1, 1; mov.b32 r9, a3; }",
     8},
    /* Vectors of registers as parameters and results. */
    {"vector_parameter",
     ".func (.reg .v2 .b32 r) f(.reg .v2 .b32 a, .reg .b32 b) { mov.b32 r.x, a.y; add.u32 r.y, a.x, b; ret; "
     "}\n",
     ".reg .v2 .b32 v; mov.b32 v.x, 3; mov.b32 v.y, 4; call (v), f, (v, 10); mad.lo.u32 r9, v.x, 100, v.y;",
     413},
    {"vector_declared_first",
     ".func (.reg .v4 .f32 r) f(.reg .v4 .f32 a);\n"
     ".func (.reg .v4 .f32 r) f(.reg .v4 .f32 a) { mov.v4.f32 r, {a.w, a.z, a.y, a.x}; ret; }\n",
     ".reg .v4 .f32 v; mov.v4.f32 v, {0f00000000, 0f3F800000, 0f40000000, 0f40400000}; call (v), f, (v); "
     "cvt.rni.u32.f32 r9, v.x;",
     3},
    /* A parameter of a function through a register. */
    {"param_by_register",
     ".func (.param .b32 r) f(.param .align 8 .b8 a[16], .param .b32 i) { .reg .b64 d, e; .reg .b32 i1; "
     "ld.param.u32 i1, [i]; cvt.u64.u32 e, i1; mov.b64 d, a; add.u64 d, d, e; ld.param.u32 i1, [d+4]; "
     "st.param.b32 [r], i1; ret; }\n",
     "{ .param .align 8 .b8 a[16]; .param .b32 i; .param .b32 r; st.param.b64 [a], 1; st.param.b32 [a+8], 2; "
     "st.param.b32 [a+12], 6; st.param.b32 [i], 8; call (r), f, (a, i); ld.param.b32 r9, [r]; }",
     6},
    {"param_by_index",
     ".func (.param .b32 r) f(.param .b32 a[4], .param .b32 i) { .reg .b32 i1; ld.param.u32 i1, [i]; "
     "ld.param.u32 i1, a[i1]; st.param.b32 [r], i1; ret; }\n",
     "{ .param .b32 a[4]; .param .b32 i; .param .b32 r; st.param.b32 a[2], 9; st.param.b32 [i], 2; "
     "call (r), f, (a, i); ld.param.b32 r9, [r]; }",
     9},
};

TEST_ROWS(PtxvmLanguage, Computes, tests)
{
    static char text[8192];
    uint32_t out[4] = {0};
    const line_test *t = &tests[index];
    snprintf(text, sizeof text,
             "%s%s.visible .entry k(.param .u64 out)\n{\n.reg .pred p<10>; .reg .b32 r<40>; .reg .b64 d<20>; "
             ".reg .f32 f<20>;\nld.param.u64 d0, [out];\n%s\nst.global.u32 [d0], r9;\nret;\n}\n",
             EXEC_HEADER, t->module, t->lines);
    exec_simple(text, 1, 1, out, 4);
    CHECK_EQ_U32(out[0], t->expect);
}
