/* PTX as an attack: text that would read host memory or overflow the host's stack. */
#include "test_hostile.h"

#include "ptxvm/hash.h"

/* ---- Registers ---- */

static const struct {
    const char *name, *declaration, *message; /* null: it is fine, as it is for ptxas */
} vectors[] = {
    {"v8_b128", ".reg .v8 .b128 x;", "128 bits at most"},
    {"v4_b64", ".reg .v4 .b64 x;", "128 bits at most"},
    {"v2_b128", ".reg .v2 .b128 x;", "128 bits at most"},
    {"v8_b32", ".reg .v8 .b32 x;", "128 bits at most"},
    {"v4_pred", ".reg .v4 .pred x;", "cannot be a vector"},
    {"v2_b64", ".reg .v2 .b64 x;", NULL},
    {"v4_f32", ".reg .v4 .f32 x;", NULL},
    {"range", ".reg .v4 .b64 x<4>;", "128 bits at most"},
};

TEST_ROWS(Hostile, VectorRegisters, vectors)
{
    char text[256];
    snprintf(text, sizeof text, HEADER ".entry k(.param .u64 p) { %s ret; }", vectors[index].declaration);
    if (vectors[index].message)
        check_refused(NULL, text, PTXVM_ERROR_PTX, vectors[index].message);
    else
        check_runs(NULL, text);
}

/* The bytes of a frame wrapped at 2^32: registers beyond that lay outside of it, in the host's memory. */
TEST_CASE(Hostile, RegistersOfAFunctionAreLimited)
{
    hostile h = {0};
    add(&h, HEADER ".entry k(.param .u64 p) {\n.reg .b128 ");
    for (int i = 0; i < 140000; i++)
        add(&h, "%sq%dx", i ? ", " : "", i);
    add(&h, ";\nret; }\n");
    check_refused(
        NULL, h.text, PTXVM_ERROR_UNSUPPORTED,
        "k has more than 67108864 bytes of registers and constants of a function, for 32 threads: the "
        "limit is PTXVM_LIMIT_REGISTERS");
    check_runs(&(ptxvm_config){.limits = {[PTXVM_LIMIT_REGISTERS] = 80 << 20}}, h.text);
    free(h.text);
}

TEST_CASE(Hostile, ConstantsOfAFunctionAreLimited)
{
    hostile h = {0};
    add(&h, HEADER ".entry k(.param .u64 p) {\n.reg .b64 d; mov.u64 d, 0;\n");
    for (int i = 1; i <= 5000; i++)
        add(&h, "add.u64 d, d, %d;\n", i);
    add(&h, "ret; }\n");
    check_refused(&(ptxvm_config){.limits = {[PTXVM_LIMIT_REGISTERS] = 1 << 20}}, h.text,
                  PTXVM_ERROR_UNSUPPORTED, "PTXVM_LIMIT_REGISTERS");
    check_runs(&(ptxvm_config){.limits = {[PTXVM_LIMIT_REGISTERS] = 2 << 20}}, h.text);
    free(h.text);
}

/* ---- Prototypes ---- */

static const struct {
    const char *name, *declared;
    bool fits;
} builtins[] = {
    {"assert_without_parameters", ".extern .func __assertfail;", false},
    {"assert_short",
     ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d);", false},
    {"assert_wrong_size",
     ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b64 c, .param .b64 d, .param .b64 e);",
     false},
    {"assert",
     ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);",
     true},
    {"printf_without_result", ".extern .func vprintf(.param .b64 a, .param .b64 b);", false},
    {"printf_one_parameter", ".extern .func (.param .b32 r) vprintf(.param .b64 a);", false},
    {"printf_predicate", ".extern .func (.param .b32 r) vprintf(.param .b64 a, .reg .pred b);", false},
    {"printf_wide_result", ".extern .func (.param .b64 r) vprintf(.param .b64 a, .param .b64 b);", false},
    {"printf", ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);", true},
    {"printf_registers", ".extern .func (.reg .b32 r) vprintf(.reg .b64 a, .reg .b64 b);", true},
    {"malloc_b32", ".extern .func (.param .b64 r) malloc(.param .b32 n);", false},
    {"malloc_b128", ".extern .func (.param .b128 r) malloc(.param .b64 n);", false},
    {"malloc_nothing", ".extern .func malloc;", false},
    {"malloc", ".extern .func (.param .b64 r) malloc(.param .b64 n);", true},
    {"free_result", ".extern .func (.param .b64 r) free(.param .b64 p);", false},
    {"free_nothing", ".extern .func free;", false},
    {"free", ".extern .func free(.param .b64 p);", true},
};

TEST_ROWS(Hostile, BuiltinsHaveTheirPrototype, builtins)
{
    char text[512];
    snprintf(text, sizeof text, HEADER "%s\n.entry k(.param .u64 p) { ret; }", builtins[index].declared);
    if (builtins[index].fits)
        check_runs(NULL, text);
    else
        check_refused(NULL, text, PTXVM_ERROR_PTX, "4:1: ");
}

/* A module may define a function of such a name itself. */
TEST_CASE(Hostile, OwnFunctionsMayHaveBuiltinNames)
{
    check_runs(NULL, HEADER ".func free { ret; }\n.entry k(.param .u64 p) { call free; ret; }");
}

TEST_CASE(Hostile, CallOfAssertWithoutArguments)
{
    check_refused(
        NULL, HEADER ".extern .func __assertfail;\n.entry k(){call __assertfail;}", PTXVM_ERROR_PTX,
        "__assertfail has other parameters or results than the system's: it is __assertfail (.param .b64, "
        ".param .b64, .param .b32, .param .b64, .param .b64)");
}

/* ---- Calls ---- */

/* The formals of f, the prototype of the call, its arguments; r is .b32, d .b64, q .b128, s .b16, p .pred, f .f32. */
static const struct {
    const char *name, *results, *formals, *prototype, *call;
    bool fits;
} indirect[] = {
    {"leak", "", "(.reg .b128 x)", "_ (.reg .b32 _)", "call t, (r), P;", false},
    {"narrower", "", "(.reg .b16 x)", "_ (.reg .b64 _)", "call t, (d), P;", false},
    {"param_size", "", "(.param .align 4 .b8 x[400])", "_ (.param .b32 _)", "call t, (r), P;", false},
    {"param_space", "", "(.param .b32 x)", "_ (.reg .b32 _)", "call t, (r), P;", false},
    {"float_for_integer", "", "(.reg .f32 x)", "_ (.reg .u32 _)", "call t, (r), P;", false},
    {"predicate_for_byte", "", "(.reg .b8 x)", "_ (.reg .pred _)", "call t, (p), P;", false},
    {"result_size", "(.reg .b128 y)", "", "(.reg .b32 _) _", "call (r), t, P;", false},
    {"result_missing", "", "(.reg .b32 x)", "(.reg .b32 _) _ (.reg .b32 _)", "call (r), t, (r), P;", false},
    {"result_unwanted", "(.reg .b32 y)", "(.reg .b32 x)", "_ (.reg .b32 _)", "call t, (r), P;", false},
    {"more_parameters", "", "(.reg .b32 x, .reg .b32 z)", "_ (.reg .b32 _)", "call t, (r), P;", false},
    {"bits_for_float", "", "(.reg .f32 x)", "_ (.reg .b32 _)", "call t, (r), P;", true},
    {"same", "(.reg .u32 y)", "(.reg .s32 x)", "(.reg .b32 _) _ (.reg .u32 _)", "call (r), t, (r), P;", true},
    {"wide", "", "(.reg .b128 x)", "_ (.reg .b128 _)", "call t, (q), P;", true},
    {"predicate", "", "(.reg .pred x)", "_ (.reg .pred _)", "call t, (p), P;", true},
};

TEST_ROWS(Hostile, IndirectCallsComparePrototypes, indirect)
{
    char text[1024];
    snprintf(text, sizeof text,
             HEADER ".func %s f%s { ret; }\n.entry k(.param .u64 out) {\n"
                    ".reg .b32 r; .reg .b64 d, t; .reg .b128 q; .reg .pred p;\n"
                    "mov.b32 r, 1; mov.b64 d, 2; mov.b128 q, {d, d}; setp.eq.u32 p, r, 0; mov.u64 t, f;\n"
                    "P: .callprototype %s;\n%s\nret; }\n",
             indirect[index].results, indirect[index].formals, indirect[index].prototype,
             indirect[index].call);
    if (indirect[index].fits)
        check_runs(NULL, text);
    else
        check_refused(NULL, text, PTXVM_ERROR_EXECUTION, "not a function of this kernel with that prototype");
}

/* The upper lanes of the wide formal were what lies after the caller's registers: addresses of the host. */
TEST_CASE(Hostile, IndirectCallReadsNothingOfTheHost)
{
    static const char leak[] = HEADER
        ".global .align 16 .b8 g[1024];\n"
        ".func f(.reg .b128 x) { .reg .b64 %a<9>; .reg .b32 %t;\n"
        " mov.b128 {%a1,%a2}, x; mov.u32 %t,%tid.x; mul.wide.u32 %a3,%t,16; mov.u64 %a4,g; add.u64 "
        "%a3,%a3,%a4;\n"
        " st.global.b64 [%a3],%a1; st.global.b64 [%a3+8],%a2; ret; }\n"
        ".visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<9>;\n"
        " mov.u64 %rd1, f; P: .callprototype _ (.reg .b32 _); mov.u32 %r1, 0; call %rd1, (%r1), P; ret; }\n";
    check_refused(NULL, leak, PTXVM_ERROR_EXECUTION, "not a function of this kernel with that prototype");
}

static const struct {
    const char *name, *text, *message;
} direct[] = {
    {"predicate_for_byte", ".func f(.reg .b8 x) { ret; }\n.entry k() { .reg .pred p; call f, (p); ret; }",
     "does not have the size of the parameter"},
    {"predicate_for_wide", ".func f(.reg .b128 x) { ret; }\n.entry k() { .reg .pred p; call f, (p); ret; }",
     "does not have the size of the parameter"},
    {"predicate_for_param", ".func f(.param .b8 x) { ret; }\n.entry k() { .reg .pred p; call f, (p); ret; }",
     "does not have the size of the parameter"},
    {"byte_for_predicate", ".func f(.reg .pred x) { ret; }\n.entry k() { .reg .b8 p; call f, (p); ret; }",
     "does not have the size of the parameter"},
    {"predicate_result",
     ".func (.reg .b32 y) f { mov.u32 y, 1; ret; }\n.entry k() { .reg .pred p; call (p), f; ret; }",
     "does not have the size of the parameter"},
    {"declared_otherwise", ".func f(.reg .pred x);\n.func f(.reg .b8 x) { ret; }\n.entry k() { ret; }",
     "has other parameters than where it is declared"},
    {"alias_of_another",
     ".func a(.reg .b32 x);\n.func f(.reg .b128 x) { ret; }\n.alias a, f;\n.entry k() { ret; }",
     "'f' has other parameters or results than 'a'"},
    {"targets_differ",
     ".func f(.reg .b32 x) { ret; }\n.func h(.reg .b128 x) { ret; }\n.entry k() { .reg .b64 t; .reg .b32 r;\n"
     "T: .calltargets f, h; mov.u64 t, h; call t, (r), T; ret; }",
     "'f' and 'h' have different parameters or results"},
};

TEST_ROWS(Hostile, DirectCallsCompareParameters, direct)
{
    char text[1024];
    snprintf(text, sizeof text, HEADER "%s", direct[index].text);
    check_refused(NULL, text, PTXVM_ERROR_PTX, direct[index].message);
}

/* ---- Depth ---- */

/* f0 calls f1 calls f2 ...: decoding must not follow them by recursion. */
TEST_CASE(Hostile, LongChainOfCalls)
{
    enum { N = 200000 };
    hostile h = {0};
    char error[1024];
    add(&h, HEADER);
    for (int i = 0; i < N; i++)
        add(&h, ".func f%d;\n", i);
    for (int i = 0; i < N; i++)
        add(&h, i + 1 < N ? ".func f%d { call f%d; ret; }\n" : ".func f%d { ret; }\n", i, i + 1);
    add(&h, ".entry k(.param .u64 p) { call f%d; ret; }\n", N - 100);
    CHECK_EQ_I64(run_text(NULL, h.text, error, sizeof error, NULL), PTXVM_OK);
    h.length -= strlen(".entry k(.param .u64 p) { call f199900; ret; }\n");
    add(&h, ".entry k(.param .u64 p) { call f0; ret; }\n");
    check_refused(NULL, h.text, PTXVM_ERROR_EXECUTION, "stack overflow");
    free(h.text);
}

/* ---- Hashes ---- */

enum { HASH_KEYS = 4096, HASH_SLOTS = 256 };

/* How many slots the hashes of a kind of text or numbers fill. */
static int slots_filled(const uint64_t key[2], int kind)
{
    const uint64_t inverse = UINT64_C(0xf1de83e19937733d); /* of 0x9e3779b97f4a7c15 */
    bool filled[HASH_SLOTS] = {0};
    int n = 0;
    for (uint32_t i = 0; i < HASH_KEYS; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "%%common_prefix_%u", i);
        uint32_t hash = kind == 0   ? pvm_hash_pair_keyed(key, i * inverse, 0)
                        : kind == 1 ? pvm_hash_pair_keyed(key, 1, (uint64_t)i << 20)
                                    : pvm_hash_text_keyed(key, name, (size_t)length);
        n += !filled[hash % HASH_SLOTS];
        filled[hash % HASH_SLOTS] = true;
    }
    return n;
}

/* Constants, registers and names that collided before: for every key of a fixed sequence, 4,096 of them in 256 slots
 * leave hardly any empty. */
TEST_CASE(Hostile, KeysOfHashTablesAreSpread)
{
    uint64_t state = 1;
    for (int i = 0; i < 400; i++) {
        uint64_t key[2];
        for (int k = 0; k < 2; k++) { /* splitmix64 */
            uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
            z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
            z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
            key[k] = z ^ z >> 31;
        }
        key[1] |= 1;
        for (int kind = 0; kind < 3; kind++)
            if (slots_filled(key, kind) <= HASH_SLOTS - 16)
                FAIL("key %d, kind %d: %d of %d slots", i, kind, slots_filled(key, kind), HASH_SLOTS);
    }
}

/* The hashes of a process have one key; bytes behind the end of a text do not count, and its length does. */
TEST_CASE(Hostile, HashesDependOnTheirTextAlone)
{
    const uint64_t key[2] = {3, 5};
    CHECK_EQ_U32(pvm_hash_text("%common", 7), pvm_hash_text("%common", 7));
    CHECK_EQ_U32(pvm_hash_pair(1, 2), pvm_hash_pair(1, 2));
    CHECK_EQ_U32(pvm_hash_text("abcdefghijk", 10), pvm_hash_text("abcdefghijX", 10));
    CHECK(pvm_hash_text_keyed(key, "a\0", 2) != pvm_hash_text_keyed(key, "a", 1));
    CHECK(pvm_hash_pair_keyed(key, 1, 2) != pvm_hash_pair_keyed(key, 2, 1));
}

/* ---- Control flow ---- */

/* Where branches meet, in shapes that hand-written code does not have: against a run of each lane by itself. */
TEST_CASE(Hostile, EndlessLoopsOfAllShapes)
{
    static const char *const bodies[] = {
        "L: bra L;",
        "L: bra M; M: bra L;",
        "setp.lt.u32 p1, r0, 16; @p1 bra M; L: bra L; M: bra M;",
        "T: .branchtargets L, M; L: brx.idx r0, T; M: bra L;",
        "setp.lt.u32 p1, r0, 16; L: @p1 ret; bra L;",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[1024], error[1024];
        snprintf(text, sizeof text, "%s%s%s",
                 EXEC_HEADER ".visible .entry k(.param .u64 out) { .reg .pred p<3>; .reg .b32 r<3>;\n"
                             "mov.u32 r0, %laneid; and.b32 r0, r0, 1;\n",
                 bodies[i], "\nret; }");
        ptxvm_status status =
            exec_failing(&(ptxvm_config){.step_limit = 1000, .threads = 1}, text, 1, 32, error, sizeof error);
        CHECK_EQ_I64(status, i == 4 ? PTXVM_OK : PTXVM_ERROR_STEP_LIMIT);
    }
}

/* Lanes jump by one table from two places, some guarded, and meet behind its targets. */
TEST_CASE(Hostile, TableSharedByTwoJumps)
{
    uint32_t out[32] = {0};
    exec_simple(
        EXEC_KERNEL(EXEC_INDEX
                    "T: .branchtargets A, B, C; and.b32 r4, r0, 3; setp.lt.u32 p1, r4, 3; mov.u32 r5, 0;\n"
                    "setp.gt.u32 p2, r0, 15; @p2 bra SECOND; @p1 brx.idx r4, T; mov.u32 r5, 1000; bra END;\n"
                    "SECOND: mov.u32 r5, 100; @p1 brx.idx r4, T; mov.u32 r5, 2000; bra END;\n"
                    "A: add.u32 r5, r5, 1; bra END; B: add.u32 r5, r5, 2; bra END; C: add.u32 r5, r5, 3;\n"
                    "END: activemask.b32 r6; setp.eq.u32 p3, r6, -1; selp.u32 r7, 0, 50000, p3;\n"
                    "add.u32 r5, r5, r7; st.global.u32 [d1], r5;"),
        1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ_U32(out[i], i % 4 == 3 ? (i > 15 ? 2000 : 1000) : i % 4 + 1 + (i > 15 ? 100 : 0));
}
