/* The ptxvm command: what its checks find, what its counters count. */
#include "test_ptxvm_command.h"

#include "support/json.h"

#include <string.h>

static const struct {
    const char *arguments, *message; /* null: nothing is found */
} findings[] = {
    {"memory --block 1 buf:1024=0", "bugs.ptx:51: "},
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
    char value[64] = "";
    CHECK(json_value(r.output, "leaks", value, sizeof value));
    CHECK_EQ_STR(value, "2048");
    process_free(&r);
}
