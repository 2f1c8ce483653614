/* The ptxvm command: what its checks find, what its counters count. */
#include "test_ptxvm_command.h"

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
         "  instructions                  warps          lanes   lanes a warp\n"
         "  integer                          32           1024          32.00\n"
         "  f32                               8            256          32.00\n"
         "  memory                           40           1280          32.00\n"
         "  control                          16            256          16.00\n"
         "  other                            24            768          32.00\n"
         "  all                             120           3584          29.87\n"
         "  global memory              requests          bytes        sectors  least sectors\n"
         "  loads                             8           1024             32             32\n"
         "  stores                            8           1024             32             32\n"
         "  unique sectors                   32\n"},
    };
    CHECK_COMMANDS(cases);
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
