/* PTX as an attack: text that would use up the host's memory or time, or write to its user's terminal. */
#include "test_hostile.h"
#include "tools/toolkit.h"

/* ---- Limits ---- */

static const struct {
    const char *name, *text;
    ptxvm_limit limit;
    uint64_t too_little, enough;
    ptxvm_status status;
} limits[] = {
    {"Text", ".entry k(.param .u64 p) { ret; }", PTXVM_LIMIT_TEXT, 70, 200, PTXVM_ERROR_UNSUPPORTED},
    {"Instructions", ".entry k(.param .u64 p) { .reg .b32 r; mov.u32 r, 0; mov.u32 r, 1; ret; }",
     PTXVM_LIMIT_INSTRUCTIONS, 2, 3, PTXVM_ERROR_UNSUPPORTED},
    {"Decoded", ".func f { ret; }\n.entry k(.param .u64 p) { call f; call f; ret; }", PTXVM_LIMIT_DECODED, 5,
     6, PTXVM_ERROR_UNSUPPORTED},
    {"Reached", ".func f { ret; }\n.entry k(.param .u64 p) { call f; call f; ret; }", PTXVM_LIMIT_REACHED, 2,
     3, PTXVM_ERROR_UNSUPPORTED},
    {"ReachedVariables",
     ".shared .b8 s, t;\n.func f { st.shared.u8 [s], 1; ret; }\n"
     ".entry k(.param .u64 p) { st.shared.u8 [s], 1; st.shared.u8 [t], 1; call f; ret; }",
     PTXVM_LIMIT_REACHED, 5, 6, PTXVM_ERROR_UNSUPPORTED},
    {"ReachedByPrototype",
     ".func f { ret; }\n.entry l() { ret; }\n.entry k(.param .u64 p) { .reg .b64 t; mov.u64 t, f;\n"
     "P: .callprototype _; call t, P; ret; }",
     PTXVM_LIMIT_REACHED, 5, 6, PTXVM_ERROR_UNSUPPORTED},
    {"Functions", ".func f; .func f; .func h; .entry k(.param .u64 p) { ret; }", PTXVM_LIMIT_FUNCTIONS, 3, 4,
     PTXVM_ERROR_UNSUPPORTED},
    {"Prototypes", ".entry k(.param .u64 p) { P: .callprototype _; ret; }", PTXVM_LIMIT_FUNCTIONS, 1, 2,
     PTXVM_ERROR_UNSUPPORTED},
    {"Variables", ".global .b8 a, b, c; .entry k(.param .u64 p) { ret; }", PTXVM_LIMIT_VARIABLES, 2, 3,
     PTXVM_ERROR_UNSUPPORTED},
    {"Parameters", ".entry k(.param .u64 p) { ret; }\n.entry l(.param .u64 p, .param .u16 b) { ret; }",
     PTXVM_LIMIT_PARAMETERS, 9, 10, PTXVM_ERROR_UNSUPPORTED},
    {"ParametersThatWrap",
     ".entry k(.param .u64 p) { ret; }\n.func l(.param .b8 a[140737488355328], .param .u16 b) { ret; }",
     PTXVM_LIMIT_PARAMETERS, 1 << 20, 0, PTXVM_ERROR_UNSUPPORTED},
    {"Data", ".global .b8 a[60] = {1}; .global .b8 b[60] = {1}; .entry k(.param .u64 p) { ret; }",
     PTXVM_LIMIT_DATA, 119, 120, PTXVM_ERROR_UNSUPPORTED},
    {"DataOfAddresses", ".global .b8 a; .global .u64 b[2] = {a, a}; .entry k(.param .u64 p) { ret; }",
     PTXVM_LIMIT_DATA, 2 * sizeof(pvm_reloc) + 15, 2 * sizeof(pvm_reloc) + 16, PTXVM_ERROR_UNSUPPORTED},
    {"Blocks", ".func f { call f; ret; }\n.entry k(.param .u64 p) { call f; ret; }", PTXVM_LIMIT_BLOCKS,
     1 << 20, 0, PTXVM_ERROR_EXECUTION},
    {"BlocksOfLocalMemory",
     ".entry k(.param .u64 p) { .local .b8 a[8192]; .reg .b64 d; mov.u64 d, a; st.local.u8 [d], 1; ret; }",
     PTXVM_LIMIT_BLOCKS, 32 * 8192, 64 * 8192, PTXVM_ERROR_EXECUTION},
    {"BlocksOfSharedMemory", ".entry k(.param .u64 p) { .shared .b8 a[30000]; st.shared.u8 [a], 1; ret; }",
     PTXVM_LIMIT_BLOCKS, 30000, 60000, PTXVM_ERROR_EXECUTION},
    {"Async",
     ".entry k(.param .u64 p) { .shared .align 16 .b8 s[16]; .reg .b32 r; .reg .b64 d; ld.param.u64 d, [p];\n"
     "mov.u32 r, s; cp.async.ca.shared.global [r], [d], 16; cp.async.ca.shared.global [r], [d], 16;\n"
     "cp.async.wait_all; ret; }",
     PTXVM_LIMIT_ASYNC, 1, 2, PTXVM_ERROR_EXECUTION},
};

TEST_ROWS(HostileLimit, Each, limits)
{
    char text[1024];
    ptxvm_config config = {.threads = 1};
    snprintf(text, sizeof text, HEADER "%s", limits[index].text);
    config.limits[limits[index].limit] = limits[index].too_little;
    check_refused(&config, text, limits[index].status, ptxvm_limit_name(limits[index].limit));
    config.limits[limits[index].limit] = limits[index].enough;
    if (limits[index].enough)
        check_runs(&config, text);
}

TEST_CASE(HostileLimit, InitialisedDataOfAModuleByDefault)
{
    hostile h = {0};
    add(&h, HEADER);
    for (int i = 0; i < 40; i++)
        add(&h, ".global .b8 x%d[268435456]={1};\n", i);
    check_refused(NULL, h.text, PTXVM_ERROR_UNSUPPORTED,
                  "5:29: more than 268435456 bytes of initialised variables in a module: the limit is "
                  "PTXVM_LIMIT_DATA");
    free(h.text);
}

/* Sums of sizes that each are allowed must not wrap. */
TEST_CASE(HostileLimit, SharedMemoryOfManyVariables)
{
    hostile h = {0};
    add(&h, HEADER);
    for (int i = 0; i < 1000; i++)
        add(&h, ".shared .b8 s%d[100000000000000];\n", i);
    add(&h, ".entry k(.param .u64 p) {\n");
    for (int i = 0; i < 1000; i++)
        add(&h, "st.shared.u8 [s%d], 1;\n", i);
    add(&h, "ret; }\n");
    check_refused(NULL, h.text, PTXVM_ERROR_UNSUPPORTED, "k needs more shared memory than any SM has");
    free(h.text);
}

/* Every limit has a default within its range, and another can be set by its variable. */
TEST_CASE(HostileLimit, TableAndEnvironment)
{
    uint64_t values[PTXVM_LIMITS] = {0};
    char why[256];
    REQUIRE(ptxvm_limits_read(values, why, sizeof why));
    for (int i = 0; i < PTXVM_LIMITS; i++) {
        const char *name = ptxvm_limit_name((ptxvm_limit)i);
        CHECK_EQ_U64(values[i], ptxvm_limit_default((ptxvm_limit)i));
        CHECK(strncmp(name, "PTXVM_LIMIT_", 12) == 0 && ptxvm_limit_what((ptxvm_limit)i)[0]);
        for (int wrong = 0; wrong < 4; wrong++) {
            static const char *const texts[] = {"0", "x", "-1", "99999999999T"};
            setenv(name, texts[wrong], 1);
            uint64_t other[PTXVM_LIMITS] = {0};
            CHECK(!ptxvm_limits_read(other, why, sizeof why));
            CHECK_HAS(why, name);
            CHECK_EQ_I64(ptxvm_create(NULL, &(ptxvm *){NULL}), PTXVM_ERROR_ARGUMENT);
        }
        setenv(name, "1K", 1);
        uint64_t other[PTXVM_LIMITS] = {0};
        CHECK(ptxvm_limits_read(other, why, sizeof why));
        CHECK_EQ_U64(other[i], 1024);
        other[i] = 5; /* what the caller sets goes first */
        CHECK(ptxvm_limits_read(other, why, sizeof why));
        CHECK_EQ_U64(other[i], 5);
        unsetenv(name);
    }
}

/* "64M" for 67108864. */
static void write_size(char *text, size_t size, uint64_t value)
{
    static const char units[] = " KMGT";
    int unit = 0;
    while (value >= 1024 && value % 1024 == 0) {
        value /= 1024;
        unit++;
    }
    snprintf(text, size, "%llu%.1s", (unsigned long long)value, unit ? &units[unit] : "");
}

TEST_CASE(HostileLimit, EachIsDocumentedWithItsDefault)
{
    size_t bytes;
    char *document = toolkit_read_file(QDNN_SOURCE_DIR "/docs/ptxvm.md", &bytes);
    REQUIRE(document != NULL);
    for (int i = 0; i < PTXVM_LIMITS; i++) {
        char size[32], row[128];
        write_size(size, sizeof size, ptxvm_limit_default((ptxvm_limit)i));
        snprintf(row, sizeof row, "\n| `%s` | %s | ", ptxvm_limit_name((ptxvm_limit)i), size);
        CHECK_HAS(document, row);
    }
    free(document);
}

/* ---- Asynchronous copies ---- */

/* Empty groups cost nothing, and count as groups all the same: the copy before the last three is waited for. */
TEST_CASE(Hostile, EmptyGroupsWithoutEnd)
{
    static const char loop[] = HEADER ".entry k(.param .u64 p) { L: cp.async.commit_group; bra L; }";
    check_refused(&(ptxvm_config){.step_limit = 100000, .limits = {[PTXVM_LIMIT_ASYNC] = 4}}, loop,
                  PTXVM_ERROR_STEP_LIMIT, "the limit is 100000");
    static const char groups[] =
        HEADER ".entry k(.param .u64 p) { .shared .align 16 .b8 s[32]; .reg .b64 d, v; .reg .b32 a, r; "
               "ld.param.u64 d, [p];\n"
               "st.global.u64 [d], 7; mov.u32 a, s; mov.u32 r, 0; cp.async.ca.shared.global [a], [d], 8;\n"
               "cp.async.commit_group; cp.async.ca.shared.global [a + 16], [d], 8; cp.async.commit_group;\n"
               "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group %d;\n"
               "ld.shared.u64 v, [s]; st.global.u64 [d + 8], v; ld.shared.u64 v, [s + 16]; st.global.u64 [d "
               "+ 16], v; ret; }";
    static const struct {
        int newer;
        uint64_t first, second;
    } expected[] = {{4, 0, 0}, {3, 7, 0}, {2, 7, 7}, {0, 7, 7}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        char text[1024], error[1024];
        uint64_t out[64] = {0};
        snprintf(text, sizeof text, groups, expected[i].newer);
        run_text(NULL, text, error, sizeof error, out);
        CHECK_EQ_STR(error, "");
        CHECK_EQ_U64(out[1], expected[i].first);
        CHECK_EQ_U64(out[2], expected[i].second);
    }
}

/* ---- printf ---- */

typedef struct printed {
    char text[512];
    size_t length; /* of all, also what does not fit */
} printed;

static void keep(void *user, const char *text, size_t length)
{
    printed *p = user;
    for (size_t i = 0; i < length; i++, p->length++)
        if (p->length < sizeof p->text - 1)
            p->text[p->length] = text[i];
}

/* One printf of one thread: the format, up to three arguments of 4 bytes. */
static ptxvm_status print_one(const char *format, const int32_t *arguments, printed *out, char *error,
                              size_t size)
{
    hostile h = {0};
    ptxvm *vm = NULL;
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel = NULL;
    ptxvm_launch_config launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    add(&h,
        HEADER ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .b8 fmt[] = {");
    for (const char *c = format; *c; c++)
        add(&h, "%d, ", *c);
    add(&h, "0};\n.entry k() { .local .align 8 .b8 buf[16]; .reg .b64 d<3>;\n");
    for (int i = 0; i < 3; i++)
        add(&h, "st.local.u32 [buf + %d], %d;\n", 4 * i, arguments[i]);
    add(&h, "mov.u64 d1, buf; cvta.local.u64 d1, d1; mov.u64 d2, fmt; cvta.global.u64 d2, d2;\n"
            "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], d2; st.param.b64 [b], d1;\n"
            "call.uni (r), vprintf, (a, b); } ret; }\n");
    *out = (printed){.length = 0};
    ptxvm_config config = {.print = keep, .print_user = out, .limits = {[PTXVM_LIMIT_PRINTF] = 300}};
    ptxvm_status status = ptxvm_create(&config, &vm);
    if (!status)
        status = ptxvm_module_load(vm, h.text, h.length, &module);
    if (!status)
        status = ptxvm_module_kernel(module, "k", &kernel);
    if (!status)
        status = ptxvm_launch(vm, kernel, &launch, NULL, 0);
    snprintf(error, size, "%s", status ? ptxvm_last_error(vm) : "");
    ptxvm_destroy(vm);
    free(h.text);
    return status;
}

static const struct {
    const char *name, *format;
    int32_t arguments[3];
    const char *text; /* null: more than a launch may print */
} prints[] = {
    {"Width", "[%*d]", {5, 42}, "[   42]"},
    {"NegativeWidth", "[%*d]", {-5, 42}, "[42   ]"},
    {"WidthMinusOne", "[%*d]", {-1, 42}, "[42]"},
    {"WidthZero", "[%*d]", {0, 42}, "[42]"},
    {"LargestWidth", "[%*d]", {INT32_MAX, 42}, NULL},
    {"LeastWidth", "[%*d]", {INT32_MIN, 42}, NULL},
    {"WrittenWidth", "[%2147483647d]", {1}, NULL},
    {"WidthBeyondIntegers", "[%99999999999999999999d]", {1}, NULL},
    {"Precision", "[%.*d]", {4, 42}, "[0042]"},
    {"NegativePrecision", "[%.*d]", {-4, 42}, "[42]"},
    {"LeastPrecision", "[%.*d]", {INT32_MIN, 42}, "[42]"},
    {"LargestPrecision", "[%.*d]", {INT32_MAX, 42}, NULL},
    {"LargestPrecisionOfDouble", "[%.*f]", {INT32_MAX, 0}, NULL},
    {"Both", "[%*.*d]", {6, 3, 42}, "[   042]"},
};

TEST_ROWS(HostilePrintf, Widths, prints)
{
    printed out;
    char error[1024];
    ptxvm_status status = print_one(prints[index].format, prints[index].arguments, &out, error, sizeof error);
    CHECK_EQ_I64(status, prints[index].text ? PTXVM_OK : PTXVM_ERROR_EXECUTION);
    if (prints[index].text)
        CHECK_EQ_STR(out.text, prints[index].text);
    else
        CHECK_EQ_I64((int64_t)out.length, 300); /* up to the limit */
    CHECK_HAS(error, prints[index].text
                         ? ""
                         : "more than 300 bytes that a launch prints: the limit is PTXVM_LIMIT_PRINTF");
}

/* Blocks print 10 bytes each. Whatever the number of host threads, all up to the limit is printed, and the error is
 * the same. */
TEST_CASE(HostilePrintf, LimitOfALaunchDoesNotDependOnThreads)
{
    static const char text[] = HEADER
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        ".global .b8 fmt[] = {37, 49, 48, 100, 0};\n"
        ".visible .entry k(.param .u64 out) { .local .align 8 .b8 buf[8]; .reg .b64 d<3>; .reg .b32 r;\n"
        "mov.u32 r, %ctaid.x; st.local.u32 [buf], r; mov.u64 d1, buf; cvta.local.u64 d1, d1; mov.u64 d2, "
        "fmt;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], d2; st.param.b64 [b], d1;\n"
        "call.uni (r), vprintf, (a, b); } ret; }\n";
    for (int threads = 1; threads <= 4; threads++) {
        printed out = {.length = 0};
        uint32_t data[4] = {0};
        ptxvm_config config = {
            .threads = threads, .print = keep, .print_user = &out, .limits = {[PTXVM_LIMIT_PRINTF] = 1005}};
        exec_run run = exec_open(&config, text);
        CHECK_EQ_I64(exec_launch(&run, exec_grid(100, 1), data, 4), PTXVM_OK);
        CHECK_EQ_I64((int64_t)out.length, 1000);
        run.status = PTXVM_OK;
        out.length = 0;
        CHECK_EQ_I64(exec_launch(&run, exec_grid(2000, 1), data, 4), PTXVM_ERROR_EXECUTION);
        CHECK_EQ_I64((int64_t)out.length, 1005);
        CHECK_EQ_STR(ptxvm_last_error(run.vm),
                     "kernel k: more than 1005 bytes that a launch prints: the limit is PTXVM_LIMIT_PRINTF");
        exec_close(&run);
    }
}

/* ---- Text of the guest in messages ---- */

TEST_CASE(HostileText, Escaping)
{
    static const struct {
        const char *text, *escaped;
    } cases[] = {
        {"kernel.cu", "kernel.cu"},
        {"a\033[31mred\007", "a\\x1b[31mred\\x07"},
        {"line\nline\ttab\x7f", "line\\x0aline\\x09tab\\x7f"},
        {"sch\xc3\xb6n \xe2\x82\xac \xf0\x9f\x98\x80", "sch\xc3\xb6n \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc3", "\\xc3"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"\xc0\xaf", "\\xc0\\xaf"},          /* '/' in two bytes */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* half of a pair */
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b"
         "31m"}, /* CSI as one character */
        {"\xe2\x80\xae"
         "txt",
         "\\xe2\\x80\\xae"
         "txt"}, /* right to left */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char escaped[128];
        size_t n = pvm_escape(escaped, sizeof escaped, cases[i].text, strlen(cases[i].text));
        CHECK_EQ_STR(escaped, cases[i].escaped);
        CHECK_EQ_U64(n, strlen(cases[i].escaped));
    }
    char small[8];
    CHECK_EQ_U64(pvm_escape(small, sizeof small, "ab\033\033", 4), 6);
    CHECK_EQ_STR(small, "ab\\x1b");
}

TEST_CASE(HostileText, FileNames)
{
    check_refused(NULL,
                  HEADER ".file 1 \"a\033]0;b\007\xff.cu\"\n.entry k(.param .u64 p) {\n.loc 1 7 1\ntrap; }\n",
                  PTXVM_ERROR_TRAP, "line 7 (a\\x1b]0;b\\x07\\xff.cu:7), block");
}

TEST_CASE(HostileText, ErrorsShowTheLine)
{
    check_refused(NULL, HEADER ".entry k() { \"\033[2Jstring\" }", PTXVM_ERROR_PTX,
                  "  .entry k() { \"?[2Jstring\" }");
    check_refused(NULL, HEADER ".entry k(.param .u64 \"\033\x80\")", PTXVM_ERROR_PTX, "u64 \"?\?\")");
    check_refused(NULL, HEADER ".pragma \"a\" \"\033[2J\";", PTXVM_ERROR_PTX, "expected before '?[2J'");
}

TEST_CASE(HostileText, Assertions)
{
    hostile h = {0};
    add(&h, HEADER ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
                   ".param .b64 e);\n"
                   ".global .b8 text[] = {27, 91, 50, 74, 10, 0};\n.entry k(.param .u64 p) { .reg .b64 d; "
                   "mov.u64 d, text;\n");
    add(&h,
        "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 e; .param .b64 f; st.param.b64 [a], d;\n"
        "st.param.b64 [b], d; st.param.b32 [c], 7; st.param.b64 [e], d; st.param.b64 [f], 1;\n"
        "call.uni __assertfail, (a, b, c, e, f); } ret; }\n");
    check_refused(NULL, h.text, PTXVM_ERROR_ASSERT,
                  "\\x1b[2J\\x0a:7: \\x1b[2J\\x0a: Assertion `\\x1b[2J\\x0a` failed.");
    free(h.text);
}
