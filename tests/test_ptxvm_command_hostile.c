/* The ptxvm command with small files that ask for much: they are run, or refused, within 1.5 GB and 20 seconds of the
 * processor's time. Under a sanitizer, which takes more of both, the result alone is checked. */
#include "test_ptxvm_command.h"

#include <stdlib.h>
#include <string.h>

#define HEADER ".version 9.0\n.target sm_90\n.address_size 64\n"

static void put_entries(FILE *file)
{
    for (int i = 0; i < 20000; i++)
        fprintf(file, ".entry e%d(){.shared .b8 s[16]; st.shared.u8 [s], 1; ret;}\n", i);
}

/* Each entry can call the function, and has it decoded for itself. */
static void put_entries_that_share(FILE *file)
{
    fprintf(file, ".func f{.reg .b32 r; mov.u32 r, 0;\n");
    for (int i = 0; i < 20000; i++)
        fprintf(file, "add.u32 r,r,1;\n");
    fprintf(file, "ret;}\n");
    for (int i = 0; i < 4000; i++)
        fprintf(file, ".entry e%d(){call f; ret;}\n", i);
}

/* Each entry reaches all shared variables, through one function. */
static void put_entries_that_share_variables(FILE *file)
{
    for (int i = 0; i < 10000; i++)
        fprintf(file, ".shared .b8 s%d[4];\n", i);
    fprintf(file, ".func f{\n");
    for (int i = 0; i < 10000; i++)
        fprintf(file, "st.shared.u8 [s%d],1;\n", i);
    fprintf(file, "ret;}\n");
    for (int i = 0; i < 60000; i++)
        fprintf(file, ".entry e%d(){call f; ret;}\n", i);
}

/* 160,000 allocations, none of which is freed. */
static void put_allocations(FILE *file)
{
    fprintf(file, ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
                  ".entry k(){.reg .b32 r; .reg .pred p; mov.u32 r,0;\n"
                  "L: {.param .b64 n; .param .b64 r; st.param.b64 [n],16; call (r),malloc,(n);}\n"
                  "add.u32 r,r,1; setp.lt.u32 p,r,5000; @p bra L; ret;}\n");
}

/* Names of one FNV-1a hash: each pair of parts leads to the same state from the one before. */
static void put_colliding_names(FILE *file)
{
    static const char *const parts[16][2] = {
        {"oaysvct", "gldiswm"}, {"hmtotms", "gqgmxft"}, {"adwkbyh", "dfojfze"}, {"xfnloxy", "yrelwgr"},
        {"wsrwrii", "kiqbeyd"}, {"urmroml", "ncexfiw"}, {"bsemenu", "vjwyyhv"}, {"aywkwfv", "txudrsa"},
        {"ienqepj", "wtfplvs"}, {"eraranc", "wvwetsp"}, {"klflxwu", "qyyrxwa"}, {"bmncrwj", "wjmsxlz"},
        {"kvamfvt", "vdurwvo"}, {"hvsrqqm", "elclyvq"}, {"klohqnv", "dvsnvnz"}, {"klflxwu", "qyyrxwa"},
    };
    fprintf(file, ".entry k(){.reg .b32 r");
    for (unsigned i = 0; i < 1u << 16; i++) {
        fputs(",", file);
        for (int k = 0; k < 16; k++)
            fputs(parts[k][i >> k & 1], file);
    }
    fprintf(file, "; mov.u32 r,0; ret;}\n");
}

static void put_jump_table(FILE *file)
{
    fprintf(file, ".entry k(){.reg .b32 r; mov.u32 r,0;\nT: .branchtargets L0");
    for (int i = 1; i < 20000; i++)
        fprintf(file, ",L%d", i);
    fprintf(file, ";\n");
    for (int i = 0; i < 4000; i++)
        fprintf(file, "brx.idx r,T;\n");
    for (int i = 0; i < 20000; i++)
        fprintf(file, "L%d: add.u32 r,r,1;\n", i);
    fprintf(file, "ret;}\n");
}

static void put_endless_loops(FILE *file)
{
    fprintf(file, ".entry k(){\n");
    for (int i = 0; i < 150000; i++)
        fprintf(file, "L%d: bra L%d;\n", i, i);
    fprintf(file, "ret;}\n");
}

/* A long chain of post-dominators, and many branches between its ends. */
static void put_far_branches(FILE *file)
{
    enum { CHAIN = 100000 };
    fprintf(file, ".entry k(){.reg .pred p; .reg .b32 r; mov.u32 r, 0; setp.eq.u32 p,r,0;\n");
    for (int i = 0; i < 50000; i++)
        fprintf(file, "@p bra C%d; @!p bra C0;\n", CHAIN - 1);
    for (int i = 0; i < CHAIN; i++)
        fprintf(file, "C%d: @p bra C%d; add.u32 r,r,1;\n", i, i + 1);
    fprintf(file, "C%d: ret;}\n", CHAIN);
}

static void put_approximations(FILE *file)
{
    fprintf(file, ".entry k(){.reg .f32 f; mov.f32 f, 0f00000000;\n");
    for (int i = 0; i < 100000; i++)
        fprintf(file, "ex2.approx.f32 f,f;\n");
    fprintf(file, "ret;}\n");
}

static void put_commits(FILE *file)
{
    fprintf(file, ".entry k(){ L: cp.async.commit_group; bra L; }\n");
}

static void put_data(FILE *file)
{
    for (int i = 0; i < 40; i++)
        fprintf(file, ".global .b8 x%d[268435456]={1};\n", i);
}

/* Calls itself without end, with a large frame. */
static void put_recursion(FILE *file)
{
    fprintf(file, ".func f { .reg .b32 r<9000>;\n");
    for (int i = 0; i < 9000; i++)
        fprintf(file, "mov.u32 r%d, 1;\n", i);
    fprintf(file, "call f; ret; }\n.entry k(){ call f; ret; }\n");
}

static const struct {
    const char *name;
    void (*put)(FILE *file);
    const char *options;
    int status;
    const char *output; /* a part of it */
} cases[] = {
    {"ManyEntries", put_entries, "", 0, "e19999: 0 parameters, 0 bytes; shared 16,"},
    {"EntriesThatShare", put_entries_that_share, "--run e10 --block 32 --check none", 0,
     "20004 warp instructions"},
    {"ListOfEntriesThatShare", put_entries_that_share, "", 0, "e3999: 0 parameters"},
    {"EntriesThatShareVariables", put_entries_that_share_variables, "", 1,
     "the limit is PTXVM_LIMIT_REACHED"},
    {"Allocations", put_allocations, "--run k --block 32 --check none", 0, "25002 warp instructions"},
    {"CollidingNames", put_colliding_names, "--run k --block 32", 0, "2 warp instructions"},
    {"JumpTable", put_jump_table, "--run k --block 32", 0, "20003 warp instructions"},
    {"EndlessLoops", put_endless_loops, "--run k --block 32 --steps 100", 1,
     "the limit is 100; it is in a loop"},
    {"FarBranches", put_far_branches, "--run k --block 32", 0, "5 warp instructions"},
    {"Approximations", put_approximations, "--run k --block 32", 0, ":100003: .approx: ex2.approx.f32"},
    {"Commits", put_commits, "--run k --block 32 --steps 20000000", 1, "the limit is 20000000"},
    {"Data", put_data, "", 1, "PTXVM_LIMIT_DATA"},
    {"Recursion", put_recursion, "--run k --block 32 --check none", 1, "the limit is PTXVM_LIMIT_BLOCKS"},
};

TEST_ROWS(PtxvmCommandHostile, Files, cases)
{
    char folder[256], path[300];
    const char *limits =
        strlen(QDNN_SANITIZE) && strcmp(QDNN_SANITIZE, "OFF") ? "" : "ulimit -v 1500000; ulimit -t 20;";
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/hostile.ptx", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fprintf(file, HEADER);
    cases[index].put(file);
    REQUIRE(fclose(file) == 0);
    process_result r =
        process_run("%s PTXVM_LIMIT_BLOCKS=1G %s %s %s", limits, PTXVM, path, cases[index].options);
    CHECK_EQ_I64(r.status, cases[index].status);
    if (!strstr(r.output, cases[index].output))
        FAIL("\"%.300s\" lacks \"%s\"", r.output, cases[index].output);
    process_free(&r);
    temp_dir_remove(folder);
}

/* ---- limits ---- */

TEST_CASE(PtxvmCommandHostile, LimitsAreSettings)
{
    static const struct {
        const char *set, *arguments;
        int status;
        const char *output;
    } limits[] = {
        {"PTXVM_LIMIT_TEXT=100", "scale.ptx", 1,
         "scale.ptx: more than 100 bytes of PTX text in a module: the limit is PTXVM_LIMIT_TEXT"},
        {"PTXVM_LIMIT_INSTRUCTIONS=2", "scale.ptx --sm 90", 1, "more than 2 instructions in a module"},
        {"PTXVM_LIMIT_REGISTERS=1K", "scale.ptx --run scale --block 1 buf:4=0 1 1", 1,
         "ptxvm: scale: scale has more than 1024 bytes of registers"},
        {"PTXVM_LIMIT_TEXT=much", "scale.ptx", 2,
         "PTXVM_LIMIT_TEXT=much is out of range: it is a number from 1 to"},
        {"PTXVM_STEPS=70", "types.ptx --run spins --block 1", 1, "the limit is 70;"},
        {"PTXVM_STEPS=70", "types.ptx --run spins --block 1 --steps 90", 1, "the limit is 90;"},
        {"PTXVM_STEPS=few", "scale.ptx", 2, "PTXVM_STEPS=few is out of range"},
        {"PTXVM_MEMORY=1K", "scale.ptx --run scale --block 1 buf:2000=0 1 1", 2,
         "the device has no room for 2000 bytes"},
        {"PTXVM_MEMORY=1T", "scale.ptx", 2,
         "PTXVM_MEMORY=1T is out of range: it is a number from 0 to 549755813888"},
        {"PTXVM_HEAP=big", "scale.ptx", 2, "PTXVM_HEAP=big is out of range"},
        {"PTXVM_LIMIT_ASYNC=0", "scale.ptx", 2, "PTXVM_LIMIT_ASYNC=0 is out of range"},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        process_result r =
            process_run("cd %s && %s %s %s", PTXVM_KERNELS, limits[i].set, PTXVM, limits[i].arguments);
        CHECK_EQ_I64(r.status, limits[i].status);
        CHECK_HAS(r.output, limits[i].output);
        process_free(&r);
    }
}

/* ---- long arguments ---- */

/* One behind 200 zeros is not 1e126, and neither is any other number cut. */
TEST_CASE(PtxvmCommandHostile, LongArgumentsAreNotCut)
{
    char zeros[201];
    memset(zeros, '0', 200);
    zeros[200] = 0;
    process_result r =
        process_run("cd %s && %s scale.ptx --run scale --block 1 'buf:2xf64=1%s,0.%s1>f64' 1 1 --check none "
                    "--quiet",
                    PTXVM_KERNELS, PTXVM, zeros, zeros);
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, "1e+200 1e-201");
    process_free(&r);
    r = process_run(
        "cd %s && %s scale.ptx --run scale --block %s1 --grid 1,%s1 buf:4=0 %s1.5 %s1 --check none --quiet",
        PTXVM_KERNELS, PTXVM, zeros, zeros, zeros, zeros);
    CHECK_EQ_STR(r.output, "");
    CHECK_EQ_I64(r.status, 0);
    process_free(&r);
}

/* ---- JSON and terminals ---- */

static const char escapes[] = HEADER ".file 1 \"a\033]0;title\007\xff\\\\.cu\"\n"
                                     ".visible .entry k() {\n.loc 1 7 1\n// \033[31m\x9b\n"
                                     ".reg .f32 f; mov.f32 f, 0f00000000; ex2.approx.f32 f, f; ret;\n}\n";

static void check_printable(const process_result *r)
{
    for (size_t i = 0; i < r->length; i++)
        if ((r->output[i] < ' ' && r->output[i] != '\n') || r->output[i] == 127)
            FAIL("byte %zu is 0x%02x", i, (unsigned char)r->output[i]);
}

TEST_CASE(PtxvmCommandHostile, OutputIsPrintable)
{
    static const char *const options[] = {"--listing", "--json -"};
    char folder[256], path[300];
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/e\033[1m.ptx", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL && fwrite(escapes, 1, sizeof escapes - 1, file) == sizeof escapes - 1);
    fclose(file);
    for (int i = 0; i < 2; i++) {
        process_result r = process_run("cd %s && %s e*.ptx --run k --block 32 %s", folder, PTXVM, options[i]);
        CHECK_EQ_I64(r.status, 0);
        check_printable(&r);
        CHECK_HAS(r.output,
                  i ? "\"file\": \"e\\\\x1b[1m.ptx\"" : "e\\x1b[1m.ptx:8: (a\\x1b]0;title\\x07\\xff");
        CHECK_HAS(r.output, i ? "\"source_file\": \"a\\\\x1b]0;title\\\\x07\\\\xff" : "// ?[31m?");
        process_free(&r);
    }
    temp_dir_remove(folder);
}
