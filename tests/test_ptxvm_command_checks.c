/* The ptxvm command: what its checks find, what its counters count. */
#include "test_ptxvm_command.h"

#include "clock/sass/sass.h"

#include "test_json.h"

#include <string.h>

static const struct {
    const char *arguments, *message; /* null: nothing is found */
} findings[] = {
    {"init --block 1 buf:4",
     "bugs.ptx:15: uninitialised: kernel init, line 15, block (0,0,0), thread (0,0,0): "},
    {"init --block 1 buf:4=0", NULL},
    {"init --block 1 buf:4 --check memory,race,sync", NULL},
    {"race --block 32 buf:4", "bugs.ptx:27: race: kernel race, line 27, block (0,0,0), thread (1,0,0): "},
    {"race --block 32 buf:4", "at line 27, with nothing between to order them (31 times)\n"},
    {"race --block 1 buf:4", NULL},
    {"race --block 32 buf:4 --check none", NULL},
    {"sync --block 32",
     "bugs.ptx:39: divergent barrier: kernel sync, line 39, block (0,0,0), thread (0,0,0): "},
    {"sync --block 16", NULL},
    {"memory --block 1 buf:1024=0",
     "bugs.ptx:51: out of bounds: kernel memory, line 51, block (0,0,0), thread (0,0,0): "},
    {"memory --block 1 buf:1024=0 --check none", "bugs.ptx:51: out of bounds: "},
    {"memory --block 1 buf:1028=0", NULL},
    {"leak --block 32 --check all", "ptxvm: leak: 24 bytes of the kernel's malloc at 0x"},
    {"leak --block 32", NULL},
};

TEST_CASE(PtxvmCommand, ChecksFindWhatTheyAreFor)
{
    for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++) {
        test_push_note("%s", findings[i].arguments);
        process_result r =
            process_run("cd %s && %s bugs.ptx --quiet --run %s", PTXVM_KERNELS, PTXVM, findings[i].arguments);
        CHECK_EQ_I64(r.status, findings[i].message ? 1 : 0);
        if (findings[i].message)
            CHECK_HAS(r.output, findings[i].message);
        else
            CHECK_EQ_STR(r.output, "");
        process_free(&r);
        test_pop_note();
    }
}

TEST_CASE(PtxvmCommand, ManyLeaksAreCounted)
{
    process_result r = run_ptxvm("bugs.ptx --run leak --grid 3 --block 32 --check leak --quiet");
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "ptxvm: and 80 more leaks\n");
    process_free(&r);
    r = run_ptxvm("bugs.ptx --run leak --grid 64 --block 32 --check leak --json - 2>/dev/null");
    CHECK_EQ_I64(r.status, 1);
    json *doc = read_json(r.output);
    check_json(doc, "leaks", "2048");
    json_free(doc);
    process_free(&r);
}

/* A finding that a GPU would not notice leaves the results to look at. */
TEST_CASE(PtxvmCommand, FindingsLeaveTheResults)
{
    process_result r = run_ptxvm("bugs.ptx --run init --block 1 'buf:4>u32' 2>/dev/null");
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "x, 1 u32:\n       0: 1\n");
    process_free(&r);
    r = run_ptxvm("bugs.ptx --run race --block 32 buf:4 --json - 2>/dev/null");
    CHECK_EQ_I64(r.status, 1);
    json *doc = read_json(r.output);
    CHECK_EQ_I64(json_count(doc, "findings"), 1);
    check_json(doc, "findings.0.kind", "race");
    check_json(doc, "findings_total", "31");
    check_json(doc, "cuda_error", "719");
    json_free(doc);
    process_free(&r);
}

/* ---- counters ---- */

#define SCALE "scale.ptx --run scale --grid 2 --block 128 buf:1K=0 2 256 --quiet "

/* Eight warps of 15 instructions; each loads and stores 128 bytes side by side. */
TEST_CASE(PtxvmCommand, CountersAsATable)
{
    static const command_case cases[] = {
        {SCALE "--counters", 0,
         "counters of scale\n"
         "  instructions                  warps        threads     guard held   lanes a warp\n"
         "  integer                          32           1024           1024          32.00\n"
         "  f32                               8            256            256          32.00\n"
         "  memory                           40           1280           1280          32.00\n"
         "  control                          16            512            256          16.00\n"
         "  other                            24            768            768          32.00\n"
         "  all                             120           3840           3584          29.87\n"
         "  global memory              requests          bytes        sectors  least sectors\n"
         "  loads                             8           1024             32             32\n"
         "  stores                            8           1024             32             32\n"
         "  unique sectors                   32\n"},
    };
    CHECK_COMMANDS(cases);
}

/* An interval and the line of the product, which waits for the load; without the tools, what is missing. */
TEST_CASE(PtxvmCommand, TimeOnABoard)
{
    char why[256];
    process_result r = run_ptxvm(SCALE "--time A100");
    if (sass_found(why, sizeof why)) {
        CHECK_EQ_I64(r.status, 0);
        CHECK_HAS(r.output, " us, modelled: cold L2, without the launch itself\n");
        CHECK_HAS(r.output, "global memory     line ");
    } else {
        CHECK_EQ_I64(r.status, 1);
        CHECK_HAS(r.output, why);
    }
    process_free(&r);
    r = run_ptxvm(SCALE "--time a1000");
    CHECK_EQ_I64(r.status, 2);
    CHECK_HAS(r.output, "unknown board 'a1000'; did you mean 'a100'?");
    process_free(&r);
    r = run_ptxvm("scale.ptx --time a100");
    CHECK_EQ_I64(r.status, 2);
    CHECK_HAS(r.output, "--run KERNEL");
    process_free(&r);
}

/* The report and the table count the same, also where lanes diverge, exit early or stand behind guards. */
TEST_CASE(PtxvmCommand, CountersAgreeWithTheReport)
{
    static const char *const runs[] = {
        "scale.ptx --run scale --grid 3 --block 100 buf:2K=0 2 260",
        "bugs.ptx --run race --block 33 buf:4",
        "source.ptx --run halves --grid 2 --block 50 buf:2K=1",
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        process_result r =
            process_run("cd %s && %s %s --check memory --json -", PTXVM_KERNELS, PTXVM, runs[i]);
        json *doc = read_json(r.output);
        uint64_t warps = 0, threads = 0, counted_warps = 0, counted = 0;
        test_push_note("ptxvm %s", runs[i]);
        CHECK(json_u64(json_root(doc), "warp_instructions", &warps) && warps > 0);
        CHECK(json_u64(json_root(doc), "thread_instructions", &threads));
        CHECK(json_u64(json_root(doc), "counters.total.instructions", &counted_warps));
        CHECK(json_u64(json_root(doc), "counters.total.threads", &counted));
        CHECK_EQ_U64(counted_warps, warps);
        CHECK_EQ_U64(counted, threads);
        test_pop_note();
        json_free(doc);
        process_free(&r);
    }
}

/* The cost of a run that ended with a fault; the last line says why it failed. */
TEST_CASE(PtxvmCommand, CountersOfAFailedRun)
{
    process_result r = run_ptxvm("scale.ptx --run scale --block 128 buf:508=0 2 128 --counters --threads 1");
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "counters of scale, up to where it failed\n");
    CHECK_HAS(r.output,
              "  loads                             3            384             12             12\n");
    CHECK_HAS(r.output, "scale.ptx:27: out of bounds: ");
    const char *last = "\nptxvm: scale failed: 1 out of bounds\n";
    CHECK(r.length > strlen(last) && strcmp(r.output + r.length - strlen(last), last) == 0);
    process_free(&r);
    r = run_ptxvm("scale.ptx --run scale --block 128 buf:508=0 2 128 --json - 2>/dev/null");
    json *doc = read_json(r.output);
    check_json(doc, "counters.complete", "false");
    json_free(doc);
    process_free(&r);
}

/* A run ends with how often each check found something, a list of files with how many failed. */
TEST_CASE(PtxvmCommand, TheLastLineIsASummary)
{
    static const struct {
        const char *arguments, *last;
    } cases[] = {
        {"bugs.ptx --run race --block 32 buf:4", "\nptxvm: race failed: 31 race\n"},
        {"bugs.ptx --run init --block 2 'buf:4>u32' --check all", "uninitialised"},
        {"types.ptx --run spins --block 1 --steps 100", "\nptxvm: spins failed: "},
        {"scale.ptx nothing.ptx /dev/null types.ptx --quiet", "\nptxvm: 2 of 4 files failed\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        process_result r =
            process_run("cd %s && %s %s 2>&1 | tail -n 2", PTXVM_KERNELS, PTXVM, cases[i].arguments);
        CHECK_HAS(r.output, cases[i].last);
        process_free(&r);
    }
}

/* Totals of the lines that .loc names, beside those of the PTX. Of 64 threads 16 branch and 48 store. */
TEST_CASE(PtxvmCommand, CountersBySourceLine)
{
    process_result r = run_ptxvm("source.ptx --run halves --block 64 buf:1K=1 --listing --quiet");
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, "  instructions   lanes  source line\n"
                        "*           14   32.00  halves.cu:3\n"
                        "*            6   21.33  halves.cu:4  // 6 sectors, 6 at least  // diverged 1 times\n"
                        "*            3   21.33  halves.cu:7\n");
    process_free(&r);
    r = run_ptxvm("source.ptx --run halves --block 64 buf:1K=1 --listing --json - 2>/dev/null");
    json *doc = read_json(r.output);
    CHECK_EQ_I64(json_count(doc, "counters.sources"), 3);
    check_json(doc, "counters.sources.1.file", "halves.cu");
    check_json(doc, "counters.sources.1.line", "4");
    check_json(doc, "counters.sources.1.instructions", "6");
    json_free(doc);
    process_free(&r);
}

/* ---- terminals ---- */

TEST_CASE(PtxvmCommand, ColoursOnATerminalAlone)
{
    const char *run = "TERM=xterm %s %s/scale.ptx --run scale --block 128 buf:508=0 2 128";
    process_result seen = process_run_on_terminal(run, PTXVM, PTXVM_KERNELS);
    CHECK_EQ_I64(seen.status, 1);
    CHECK_HAS(seen.output, ":27:\033[0m \033[1;31mout of bounds:\033[0m kernel scale");
    CHECK_HAS(seen.output, "\033[1;31mptxvm:\033[0m scale failed: 1 out of bounds");
    process_free(&seen);
    seen = process_run_on_terminal("sed 's/mul.rn/mul.rx/' %s/scale.ptx | TERM=xterm %s -", PTXVM_KERNELS,
                                   PTXVM);
    CHECK_EQ_I64(seen.status, 1);
    CHECK_HAS(seen.output, "\033[1m<stdin>:");
    CHECK_HAS(seen.output, "\033[1;32m\n");
    process_free(&seen);
    process_result plain[] = {
        process_run_on_terminal(
            "NO_COLOR=1 TERM=xterm %s %s/scale.ptx --run scale --block 128 buf:508=0 2 128", PTXVM,
            PTXVM_KERNELS),
        process_run_on_terminal("TERM=dumb %s %s/scale.ptx --run scale --block 128 buf:508=0 2 128", PTXVM,
                                PTXVM_KERNELS),
        process_run(run, PTXVM, PTXVM_KERNELS),
    };
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_I64(plain[i].status, 1);
        CHECK_HAS(plain[i].output, ":27: out of bounds: kernel scale");
        CHECK(strchr(plain[i].output, '\033') == NULL);
        process_free(&plain[i]);
    }
}

TEST_CASE(PtxvmCommand, CountersAsAListing)
{
    process_result r = run_ptxvm(SCALE "--listing");
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, "* marks lines with 5% of its instructions or more\n");
    CHECK_HAS(r.output,
              "*            8   32.00    27      ld.global.f32 %f, [%x];  // 32 sectors, 32 at least\n");
    process_free(&r);
}

TEST_CASE(PtxvmCommand, CountersAsJson)
{
    static const char *const values[][2] = {
        {"counters.kernel", "scale"},
        {"counters.total.instructions", "120"},
        {"counters.total.global_load.sectors", "32"},
        {"counters.total.unique_sectors", "32"},
        {"counters.lines.11.line", "27"},
    };
    process_result r = run_ptxvm(SCALE "--json - --listing 2>/dev/null");
    CHECK_EQ_I64(r.status, 0);
    json *doc = read_json(r.output);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        check_json(doc, values[i][0], values[i][1]);
    json_free(doc);
    process_free(&r);
}
