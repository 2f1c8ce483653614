/* Broken PTX: each kind with the place and the words of its error. */
#include "test.h"

#include "ptxvm/front/front.h"

#include <stdio.h>
#include <string.h>

typedef struct broken {
    const char *name;
    const char *ptx; /* a whole module where it starts with '.' and ".version"; else the body of a kernel,
                        from line 6 on */
    int kind, line, column;
    const char *message;
} broken;

#define HEADER ".version 8.0\n.target sm_90a\n.address_size 64\n"
#define KERNEL_START                                                                                         \
    ".visible .entry k(.param .u64 in)\n"                                                                    \
    "{ .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .s32 %s<9>; .reg .f32 %f<9>; .reg .b64 "     \
    "%rd<9>;\n"

enum {
    SYNTAX = PVM_ERROR_SYNTAX,
    VERSION = PVM_ERROR_UNSUPPORTED_VERSION,
    UNSUPPORTED = PVM_ERROR_UNSUPPORTED,
    TARGET = PVM_ERROR_TARGET
};

/* clang-format off */
static const broken cases[] = {
    /* words */
    {"unknown opcode", "ad.u32 %r1, %r2, %r3;", SYNTAX, 6, 1, "unknown instruction 'ad': did you mean 'add'?"},
    {"nonsense opcode", "frobnicate %r1;", SYNTAX, 6, 1, "unknown instruction 'frobnicate'"},
    {"unknown modifier", "add.u3 %r1, %r2, %r3;", SYNTAX, 6, 4, "unknown modifier .u3"},
    {"wrong modifier", "add.col.u32 %r1, %r2, %r3;", SYNTAX, 6, 4, "add cannot have .col here"},
    {"modifier twice", "add.rn.rn.f32 %f1, %f2, %f3;", SYNTAX, 6, 7, "add cannot have .rn here"},
    {"no type", "add %r1, %r2, %r3;", SYNTAX, 6, 1, "add lacks a modifier"},
    {"no rounding", "fma.f32 %f1, %f2, %f3, %f4;", SYNTAX, 6, 1, "fma lacks a modifier: .rn .rz .rm .rp"},
    {"unsigned comparison of signed", "setp.lo.s32 %p1, %s1, %s2;", SYNTAX, 6, 8, "setp cannot have .s32 here"},
    /* operands */
    {"float register for integer", "add.s32 %s1, %f2, %s3;", SYNTAX, 6, 14, "add: operand 2 has type .f32, but .s32 is needed"},
    {"integer register for float", "add.f32 %f1, %f2, %s3;", SYNTAX, 6, 19, "add: operand 3 has type .s32, but .f32 is needed"},
    {"register too narrow", "add.u32 %r1, %h2, %r3;", SYNTAX, 6, 14, "operand 2 has type .b16, but .u32 is needed"},
    {"register too wide", "add.u32 %rd1, %r2, %r3;", SYNTAX, 6, 9, "operand 1 has type .b64, but .u32 is needed"},
    {"predicate as integer", "add.u32 %r1, %r2, %p1;", SYNTAX, 6, 19, "operand 3 has type .pred, but .u32 is needed"},
    {"integer for float", "add.f32 %f1, %f2, 1;", SYNTAX, 6, 19, "must be a floating-point number"},
    {"float for integer", "add.u32 %r1, %r2, 1.5;", SYNTAX, 6, 19, "cannot be a floating-point number"},
    {"number as result", "add.u32 5, %r2, %r3;", SYNTAX, 6, 9, "operand 1 must be a register"},
    {"result discarded", "add.u32 _, %r2, %r3;", SYNTAX, 6, 9, "cannot be discarded with '_'"},
    {"too few operands", "add.u32 %r1, %r2;", SYNTAX, 6, 1, "too few operands"},
    {"too many operands", "add.u32 %r1, %r2, %r3, %r4;", SYNTAX, 6, 24, "too many operands"},
    {"no brackets", "ld.global.u32 %r1, %rd1;", SYNTAX, 6, 20, "must be an address in brackets"},
    {"brackets", "mov.u32 %r1, [%rd1];", SYNTAX, 6, 14, "must not be in brackets"},
    {"float address", "ld.global.u32 %r1, [%f1];", SYNTAX, 6, 20, "an address needs a 32-bit or 64-bit integer"},
    {"other state space", "ld.global.u32 %r1, [in];", SYNTAX, 6, 20, "'in' is in .param, but the instruction accesses .global"},
    {"vector too short", "ld.global.v4.u32 {%r1, %r2}, [%rd1];", SYNTAX, 6, 18, "must be a vector of 4 in braces"},
    {"vector too wide", "ld.global.v4.f64 {%rd1, %rd2, %rd3, %rd4}, [%rd5];", TARGET, 6, 1, "256-bit accesses need .version 8.8 and sm_100"},
    {"vector for one", "add.u32 {%r1, %r2}, %r3, %r4;", SYNTAX, 6, 9, "must not be a vector"},
    {"special register", "add.u32 %r1, %tid.x, 1;", SYNTAX, 6, 14, "mov it to a register first"},
    {"no component", "mov.u32 %r1, %tid;", SYNTAX, 6, 14, "needs one of the components .x .y .z .w"},
    {"unknown component", "mov.u32 %r1, %tid.q;", SYNTAX, 6, 18, "%tid has no component .q"},
    {"barrier out of range", "bar.sync 16;", SYNTAX, 6, 10, "operand 1 is out of range"},
    {"odd thread count", "bar.sync 0, 33;", SYNTAX, 6, 1, "a multiple of the warp's 32"},
    {"write to parameter", "st.param.u32 [in], %r1;", SYNTAX, 6, 1, "a kernel cannot write its parameters"},
    {"copy size", "cp.async.cg.shared.global [%r1], [%rd1], 8;", SYNTAX, 6, 1, "cp.async.cg copies 16 bytes"},
    {"guard is no predicate", "@%r1 bra L; L:", SYNTAX, 6, 2, "'%r1' is not a predicate register"},
    {"joined results", "add.u32 %r1|%p1, %r2, %r3;", SYNTAX, 6, 13, "has only one result"},
    /* names */
    {"undefined register", "add.u32 %r1, %r2, %x3;", SYNTAX, 6, 19, "'%x3' is not defined"},
    {"register beyond its range", "add.u32 %r1, %r2, %r9;", SYNTAX, 6, 19, "'%r9' is not defined"},
    {"undefined label", "bra nowhere;", SYNTAX, 6, 5, "label 'nowhere' is not defined"},
    {"label of an inner block", "bra L; { L: ret; }", SYNTAX, 6, 5, "label 'L' is not defined"},
    {"label twice", "L: ret;\nL: ret;", SYNTAX, 7, 1, "'L' is already defined in line 6"},
    {"register twice", ".reg .u32 a;\n.reg .f32 a;", SYNTAX, 7, 11, "'a' is already defined in line 6"},
    {"register in a range", ".reg .u32 %r3;", SYNTAX, 6, 11, "'%r3' is already defined in line 5"},
    {"range over a register", ".reg .u32 x3; .reg .u32 x<9>;", SYNTAX, 6, 25, "'x3' is already defined"},
    {"function unknown", "call foo;", SYNTAX, 6, 6, "this is not a function"},
    {"jump table unknown", "brx.idx %r1, table;", SYNTAX, 6, 14, "must be the label of a .branchtargets list"},
    /* literals and expressions */
    {"short 0f", "mov.f32 %f1, 0f3F80;", SYNTAX, 6, 14, "a 0f literal has exactly 8 hexadecimal digits"},
    {"no digits", "mov.u32 %r1, 0x;", SYNTAX, 6, 14, "a number needs digits"},
    {"octal 8", "mov.u32 %r1, 08;", SYNTAX, 6, 14, "'8' cannot follow a number"},
    {"division by zero", "mov.u32 %r1, 5 / 0;", SYNTAX, 6, 19, "division by zero"},
    {"open parenthesis", "mov.u32 %r1, (1 + 2;", SYNTAX, 6, 20, "')' expected before ';'"},
    {"strange character", "mov.u32 %r1, `5;", SYNTAX, 6, 14, "PTX has no '`'"},
    {"no semicolon", "add.u32 %r1, %r2, %r3\nret;", SYNTAX, 7, 1, "';' expected before 'ret'"},
    {"open comment", "/* here", SYNTAX, 6, 1, "this comment does not end"},
    {"open string", ".pragma \"no;", SYNTAX, 6, 9, "this string does not end on its line"},
    /* targets */
    {"needs a later SM", "add.f32x2 %rd1, %rd2, %rd3;", TARGET, 6, 1, "add: this form needs .version 8.6"},
    {"old shuffle", "shfl.down.b32 %r1, %r2, 1, 31;", TARGET, 6, 1, "needs .sync on sm_70 and later"},
    /* what is refused by name */
    {"sparse wgmma", "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r1};", UNSUPPORTED, 6, 1, "wgmma.mma_async.sp (sparse wgmma)"},
    {"tcgen05 with stationary weights", "tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", UNSUPPORTED, 6, 1, "tcgen05.mma.ws is not supported"},
    {"sparse tcgen05", "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1;", UNSUPPORTED, 6, 1, "tcgen05.mma.sp (sparse tcgen05.mma) is not supported"},
    {"textures", "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1, %r2}];", UNSUPPORTED, 6, 1, "tex (textures)"},
    {"surfaces", "suld.b.1d.b32.trap %r1, [s, {%r2}];", UNSUPPORTED, 6, 1, "suld (surfaces)"},
    {"sparse mma", "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1};", UNSUPPORTED, 6, 1, "mma.sp (sparse mma)"},
    {"im2col", "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r1, %r1}], [%r1], {%h1};", UNSUPPORTED, 6, 1, "with .im2col"},
    {"scatter", "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {%r1}], [%r1];", UNSUPPORTED, 6, 1, "with .tile::scatter4"},
    {"coordinates are missing", "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], [%r1];", SYNTAX, 6, 92, "coordinates are needed in the brackets"},
    {"coordinates of a load", "ld.global.u32 %r1, [%rd1, {%r2}];", SYNTAX, 6, 27, "this address takes no coordinates"},
    {"too few coordinates", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1}], [%r1];", SYNTAX, 6, 91, "must be a vector of 2 in braces"},
    /* modules */
    {"empty", "", SYNTAX, 1, 1, "a module starts with .version and .target"},
    {"no version", ".target sm_90\n", SYNTAX, 1, 1, "a module starts with .version"},
    {"later version", ".version 9.5\n.target sm_90\n", VERSION, 1, 10, ".version 9.5 is later than 9.4"},
    {"much later version", ".version 12.0\n.target sm_90\n", VERSION, 1, 10, ".version 12.0 is later"},
    {"version no number", ".version new\n", SYNTAX, 1, 10, ".version needs a number"},
    {"unknown target", ".version 8.0\n.target sm_91\n", TARGET, 2, 9, "unknown target sm_91"},
    {"target too new", ".version 7.0\n.target sm_90\n", TARGET, 2, 9, "sm_90 needs .version 7.8 or later"},
    {"32-bit addresses", ".version 7.0\n.target sm_80\n.address_size 32\n", UNSUPPORTED, 3, 15, "32-bit addresses"},
    {"unknown directive", HEADER ".foo x;\n", SYNTAX, 4, 1, "unknown directive '.foo'"},
    {"code outside", HEADER "add.u32 %r1, %r2, %r3;\n", SYNTAX, 4, 1, "'add' is not allowed outside a function"},
    {"no body end", HEADER ".entry k() { ret;\n", SYNTAX, 5, 1, "'}' is missing at the end of the text"},
    {"variable twice", HEADER ".global .u32 a;\n.global .f32 a;\n", SYNTAX, 5, 14, "'a' is already defined in line 4"},
    {"body twice", HEADER ".func f() { ret; }\n.func f() { ret; }\n", SYNTAX, 5, 7, "'f' already has a body"},
    {"other parameters", HEADER ".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }\n", SYNTAX, 5, 7, "other parameters"},
    {"type for no variable", HEADER ".global .pred a;\n", SYNTAX, 4, 9, ".pred is not a type for a variable"},
    {"no type for variable", HEADER ".global a;\n", SYNTAX, 4, 9, "this declaration has no type"},
    {"alignment", HEADER ".global .align 3 .u32 a;\n", SYNTAX, 4, 16, "an alignment is a power of two"},
    {"too many values", HEADER ".global .u32 a[2] = {1, 2, 3};\n", SYNTAX, 4, 29, "too many initial values for 'a'"},
    {"no braces", HEADER ".global .u32 a[2] = 1;\n", SYNTAX, 4, 21, "'{' is needed here"},
    {"initialised shared", HEADER ".shared .u32 a = 1;\n", SYNTAX, 4, 18, "only .global and .const variables can be initialised"},
    {"array too large", HEADER ".global .b8 a[999999999][999999999];\n", SYNTAX, 4, 36, "this array is too large"},
    {"no length", HEADER ".global .u32 a[];\n", SYNTAX, 4, 14, "'a' needs a length, or .extern"},
    {"texture reference", HEADER ".global .texref t;\n", UNSUPPORTED, 4, 9, "textures and surfaces are not supported"},
    {"arguments", HEADER ".func f(.param .b32 a) { ret; }\n.entry k() { call f; }\n", SYNTAX, 5, 14, "call: 0 arguments, but the function has 1"},
    {"argument size", HEADER ".func f(.param .b32 a) { ret; }\n.entry k() { .reg .b64 d; call f, (d); }\n", SYNTAX, 5, 36, "does not have the size of the parameter"},
    {"indirect call without prototype", HEADER ".entry k() { .reg .b64 d; call d; }\n", SYNTAX, 4, 33, "an indirect call needs a .callprototype"},
};
/* clang-format on */

static int count_cases(void)
{
    return sizeof cases / sizeof cases[0];
}

static void name_case(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", cases[index].name);
    for (char *s = text; *s; s++)
        if (*s == ' ' || *s == '-')
            *s = '_';
}

TEST_EACH(FrontErrors, Broken, count_cases, name_case)
{
    const broken *c = &cases[index];
    char ptx[2048];
    bool whole = !*c->ptx || strncmp(c->ptx, ".version", 8) == 0 || strncmp(c->ptx, ".target", 7) == 0;
    snprintf(ptx, sizeof ptx, "%s%s%s", whole ? "" : HEADER KERNEL_START, c->ptx, whole ? "" : "\nret; }\n");
    pvm_error error;
    pvm_module *m = pvm_module_parse(ptx, strlen(ptx), &error);
    REQUIRE(m == NULL);
    CHECK_EQ_I64(error.kind, c->kind);
    CHECK_EQ_I64(error.line, c->line);
    CHECK_EQ_I64(error.column, c->column);
    CHECK_HAS(error.message, c->message);
    char place[40];
    snprintf(place, sizeof place, "%d:%d: ", c->line, c->column);
    CHECK(strncmp(error.message, place, strlen(place)) == 0);
    CHECK(strchr(error.message, '^') != NULL);
}

/* clang-format off */
/* Modifiers that came later than their instructions: the first version and SM that has them, and one less of each. */
static const struct {
    const char *name, *line, *message;
    int version, sm;
} modifiers[] = {
    {"cluster_scope", "fence.acq_rel.cluster;", "with .cluster needs .version 7.8 and sm_90 or later", 78, 90},
    {"cache_hint", "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;", "with .L2::cache_hint needs .version 7.4 and sm_80 or later", 74, 80},
    {"prefetch_64", "ld.global.L2::64B.u32 %r1, [%rd1];", "with .L2::64B needs .version 7.4 and sm_75 or later", 74, 75},
    {"prefetch_128", "ld.global.L2::128B.u32 %r1, [%rd1];", "with .L2::128B needs .version 7.4 and sm_75 or later", 74, 75},
    {"prefetch_256", "ld.global.L2::256B.u32 %r1, [%rd1];", "with .L2::256B needs .version 7.4 and sm_80 or later", 74, 80},
    {"evict_normal", "ld.global.L1::evict_normal.u32 %r1, [%rd1];", "with .L1::evict_normal needs .version 7.4 and sm_70 or later", 74, 70},
    {"evict_unchanged", "ld.global.L1::evict_unchanged.u32 %r1, [%rd1];", "with .L1::evict_unchanged needs .version 7.4 and sm_70 or later", 74, 70},
    {"evict_first", "ld.global.L1::evict_first.u32 %r1, [%rd1];", "with .L1::evict_first needs .version 7.4 and sm_70 or later", 74, 70},
    {"evict_last", "ld.global.L1::evict_last.u32 %r1, [%rd1];", "with .L1::evict_last needs .version 7.4 and sm_70 or later", 74, 70},
    {"no_allocate", "ld.global.L1::no_allocate.u32 %r1, [%rd1];", "with .L1::no_allocate needs .version 7.4 and sm_70 or later", 74, 70},
    {"shared_cluster", "ld.shared::cluster.u32 %r1, [%r2];", "with .shared::cluster needs .version 7.8 and sm_90 or later", 78, 90},
    {"shared_cta", "ld.shared::cta.u32 %r1, [%r2];", "with .shared::cta needs .version 7.8 and sm_30 or later", 78, 30},
    {"param_entry", "ld.param::entry.u64 %rd1, [in];", "with .param::entry needs .version 8.3 and sm_0 or later", 83, 0},
};
/* clang-format on */

static bool parses(const char *line, int version, int sm, pvm_error *error)
{
    char ptx[2048];
    snprintf(ptx, sizeof ptx, ".version %d.%d\n.target sm_%d\n.address_size 64\n%s%s\nret; }\n", version / 10,
             version % 10, sm, KERNEL_START, line);
    pvm_module *m = pvm_module_parse(ptx, strlen(ptx), error);
    pvm_module_free(m);
    return m != NULL;
}

TEST_ROWS(FrontErrors, ModifiersNeed, modifiers)
{
    static const int targets[] = {52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90};
    const char *line = modifiers[index].line;
    int before = 0, sm = modifiers[index].sm;
    pvm_error error;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0] && targets[i] < sm; i++)
        before = targets[i];
    sm = sm < 52 ? 52 : sm;
    if (!parses(line, modifiers[index].version, sm, &error))
        FAIL("%s", error.message);
    /* sm_90 itself needs the version that its modifiers do */
    if (sm < 90 && CHECK(!parses(line, modifiers[index].version - 1, sm, &error))) {
        CHECK_EQ_I64(error.kind, TARGET);
        CHECK_HAS(error.message, modifiers[index].message);
    }
    if (before && CHECK(!parses(line, 83, before, &error))) {
        CHECK_EQ_I64(error.kind, TARGET);
        CHECK_HAS(error.message, modifiers[index].message);
    }
}

TEST_CASE(FrontErrors, ShowsTheLineWithACaret)
{
    const char *ptx = HEADER ".global .u32 a;\n\t.global\t.f33 b;\n";
    pvm_error error;
    CHECK(pvm_module_parse(ptx, strlen(ptx), &error) == NULL);
    CHECK_EQ_STR(error.message,
                 "5:10: unknown word .f33 in a declaration\n  \t.global\t.f33 b;\n  \t       \t^");
}

TEST_CASE(FrontErrors, LongLinesAreShownAroundTheirPlace)
{
    char ptx[4096];
    int n = snprintf(ptx, sizeof ptx, HEADER);
    memset(ptx + n, ' ', 2000);
    snprintf(ptx + n + 2000, sizeof ptx - (size_t)n - 2000, ".nonsense x;\n");
    pvm_error error;
    CHECK(pvm_module_parse(ptx, strlen(ptx), &error) == NULL);
    CHECK_EQ_I64(error.column, 2001);
    CHECK_HAS(error.message, ".nonsense x;");
    CHECK_HAS(error.message, "^");
}
