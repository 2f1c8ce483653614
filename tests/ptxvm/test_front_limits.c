/* What ptxas refuses is refused when the module is loaded, and what it accepts is accepted: sizes of memory, forms of
 * operands. Where ptxas is found it judges the same texts. */
#include "support/process.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ptxvm/ptxvm.h"

#define V80    ".version 8.0\n.target sm_90\n.address_size 64\n"
#define V81    ".version 8.1\n.target sm_90\n.address_size 64\n"
#define KERNEL ".visible .entry k() { ret; }\n"
/* A kernel with these lines, and registers to use. */
#define BODY(lines)                                                                                          \
    ".visible .entry k() { .reg .b32 r<9>; .reg .b64 d<9>; .reg .f32 f<9>; .reg .v2 .b32 v; mov.b32 r1, 1; " \
    "mov.b64 d1, 1; mov.b32 v.x, 1; mov.b32 v.y, 1; mov.f32 f1, 0f3F800000;\n" lines "\nret; }\n"
#define USE(name) "mov.b32 r2, " name "; st.shared.b32 [r2], r2;"
#define TAB       ".global .u64 tab[4];\n.global .u64 one;\n"
#define FN        ".func (.reg .b32 r) fn(.reg .b32 a) { mov.b32 r, a; ret; }\n"
#define FN2       ".func (.reg .v2 .b32 r) fn(.reg .v2 .b32 a) { mov.v2.b32 r, a; ret; }\n"

typedef struct limit_test {
    const char *name, *text;
    const char *error; /* null: it is accepted; else part of the message */
} limit_test;

static const limit_test tests[] = {
    {"param_4352", V80 ".visible .entry k(.param .b8 a[4352]) { ret; }\n", NULL},
    {"param_4353", V80 ".visible .entry k(.param .b8 a[4353]) { ret; }\n", "the most is 4352"},
    {"param_aligned", V80 ".visible .entry k(.param .u8 x, .param .align 16 .b8 a[4337]) { ret; }\n",
     "4353 bytes"},
    {"param_32764", V81 ".visible .entry k(.param .b8 a[32764]) { ret; }\n", NULL},
    {"param_32765", V81 ".visible .entry k(.param .b8 a[32765]) { ret; }\n", "the most is 32764"},
    {"param_of_a_function", V80 ".visible .func f(.param .b8 a[40000]) { ret; }\n" KERNEL, NULL},
    {"const_65536", V80 ".const .b8 c[65536];\n" KERNEL, NULL},
    {"const_65537", V80 ".const .b8 c[65537];\n" KERNEL, "65537 bytes of .const"},
    {"const_two", V80 ".const .b8 c[40000];\n.const .b8 d[40000];\n" KERNEL, "80000 bytes of .const"},
    {"const_aligned", V80 ".const .b8 a[1];\n.const .align 16 .b8 b[65520];\n.const .b8 c[15];\n" KERNEL,
     "65551 bytes of .const"},
    {"shared_49152", V80 ".visible .entry k() { .shared .b8 s[49152]; ret; }\n", NULL},
    {"shared_49153", V80 ".visible .entry k() { .shared .b8 s[49153]; ret; }\n", "the most is 49152"},
    {"shared_unused", V80 ".shared .b8 s[49153];\n" KERNEL, NULL},
    {"shared_used", V80 ".shared .b8 s[49153];\n" BODY(USE("s")),
     "k has 49153 bytes of static shared memory"},
    {"shared_called",
     V80 ".shared .b8 s[49153];\n.func f() { .reg .b32 r2; " USE("s") " ret; }\n" BODY("call f;"),
     "k has 49153 bytes of static shared memory"},
    {"shared_in_two_kernels",
     V80 ".shared .b8 s[30000];\n.shared .b8 t[30000];\n.visible .entry o() { .reg .b32 r2; " USE(
         "t") " ret; }\n" BODY(USE("s")),
     NULL},
    {"shared_together", V80 ".shared .b8 s[30000];\n.shared .b8 t[30000];\n" BODY(USE("s") USE("t")),
     "k has 60000 bytes of static shared memory"},
    {"shared_of_module_and_kernel",
     V80
     ".shared .align 4 .b8 s[4];\n.visible .entry k() { .shared .align 4 .b8 t[49148]; .reg .b32 r2; " USE(
         "s") " ret; }\n",
     NULL},
    {"call_element", V80 FN BODY("call (r2), fn, (v.x);"), "an element of a vector"},
    {"call_element_result", V80 FN BODY("call (v.x), fn, (r1);"), "an element of a vector"},
    {"call_vector", V80 FN2 BODY("call (v), fn, (v);"), NULL},
    {"call_braces", V80 FN2 BODY("call (v), fn, ({r1, r1});"), "brackets or braces"},
    {"call_scalar_for_vector", V80 FN2 BODY("call (v), fn, (r1);"), "the function has 2"},
    {"call_sum", V80 FN BODY("call (r2), fn, (r1 + 1);"), "expected before '+'"},
    {"call_index", V80 TAB FN BODY("call (r2), fn, (tab[1]);"), "an element of an array"},
    {"sum", V80 BODY("mov.b64 d2, d1 + 1;"), NULL},
    {"sum_minus", V80 BODY("mov.b64 d2, d1 - 1;"), "expected before '-'"},
    {"sum_result", V80 BODY("mov.b64 d2 + 1, d1;"), "is a result"},
    {"sum_element", V80 BODY("mov.b32 r2, v.x + 1;"), "expected before '+'"},
    {"sum_in_braces", V80 TAB BODY("st.global.v2.b32 [tab], {r1 + 1, r1};"), "expected before '+'"},
    {"sum_of_symbol", V80 TAB BODY("mov.b64 d2, d1 + tab;"), "a number is needed here"},
    {"vector_of_128_bits", V80 BODY(".reg .v2 .b64 w;"), NULL},
    {"vector_of_256_bits", V80 BODY(".reg .v4 .b64 w;"), "128 bits at most"},
    {"vector_of_eight", V80 BODY(".reg .v8 .b32 w;"), "128 bits at most"},
    {"vector_of_predicates", V80 BODY(".reg .v2 .pred w;"), "cannot be a vector"},
    {"index", V80 TAB BODY("ld.global.u64 d2, tab[r1];"), NULL},
    {"index_in_brackets", V80 TAB BODY("ld.global.u64 d2, [tab[r1]];"), "expected before '['"},
    {"index_without_array", V80 TAB BODY("ld.global.u64 d2, one[r1];"), "not an array"},
    {"index_of_register", V80 BODY("ld.global.u64 d2, d1[r1];"), "expected before '['"},
    {"index_float", V80 TAB BODY("ld.global.u64 d2, tab[f1];"), "not an integer"},
    {"index_minus", V80 TAB BODY("ld.global.u64 d2, tab[r1 - 1];"), "expected before '-'"},
    {"index_twice", V80 ".global .u64 t[2][2];\n" BODY("ld.global.u64 d2, t[r1][1];"), "expected before '['"},
    {"index_atom", V80 TAB BODY("atom.global.add.u64 d2, tab[r1], 1;"), "must be an address in brackets"},
    {"index_add", V80 TAB BODY("add.u64 d2, tab[1], d1;"), "must be a register"},
    {"offset_without_brackets", V80 TAB BODY("ld.global.u64 d2, tab + 8;"), "must be an address in brackets"},
    {"prefix_and_name", V80 BODY(".reg .b32 a; .reg .b16 a<2>; mov.b32 a, 1; mov.b16 a1, 1;"), NULL},
    {"prefix_twice", V80 BODY(".reg .b32 a<2>; .reg .b16 a<2>;"), "already defined"},
    {"prefix_and_number", V80 BODY(".reg .b32 a<2>; .reg .b16 a1;"), "already defined"},
    {"prefix_alone", V80 BODY(".reg .b32 a<2>; mov.b32 r2, a;"), "'a' is not defined"},
};

TEST_ROWS(FrontLimits, AsPtxas, tests)
{
    const limit_test *t = &tests[index];
    ptxvm_module *module;
    ptxvm *vm;
    ptxvm_config config = {.sm = "sm_90"};
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    ptxvm_status status = ptxvm_module_load(vm, t->text, strlen(t->text), &module);
    CHECK_EQ_I64(status, t->error ? PTXVM_ERROR_PTX : PTXVM_OK);
    if (status || t->error)
        CHECK_HAS(ptxvm_last_error(vm), t->error ? t->error : "");
    ptxvm_destroy(vm);
}

TEST_CASE(FrontLimits, PtxasAgrees)
{
    char dir[256], path[300];
    if (!*QDNN_PTXAS || access(QDNN_PTXAS, X_OK))
        SKIP("ptxas is not here");
    temp_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/t.ptx", dir);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        FILE *file = fopen(path, "w");
        if (!CHECK(file != NULL))
            break;
        fputs(tests[i].text, file);
        fclose(file);
        process_result ptxas = process_run("'%s' -O0 -arch=sm_90 '%s' -o /dev/null", QDNN_PTXAS, path);
        test_push_note("%s: %s", tests[i].name, ptxas.output);
        CHECK_EQ_I64(ptxas.status != 0, tests[i].error != NULL);
        test_pop_note();
        process_free(&ptxas);
    }
    temp_dir_remove(dir);
}
