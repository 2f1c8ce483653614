/* The ptxvm command, run as its users run it, in tests/ptxvm_tool. */
#ifndef TEST_PTXVM_COMMAND_H
#define TEST_PTXVM_COMMAND_H

#include "support/process.h"
#include "test.h"

#define PTXVM_FOLDER  QDNN_BINARY_DIR "/ptxvm"
#define PTXVM         PTXVM_FOLDER "/ptxvm"
#define PTXVM_KERNELS QDNN_SOURCE_DIR "/tests/ptxvm_tool"

typedef struct command_case {
    const char *arguments;
    int status;
    const char *output; /* all of it, standard output and standard error */
} command_case;

static inline process_result run_ptxvm(const char *arguments)
{
    return process_run("cd %s && %s %s", PTXVM_KERNELS, PTXVM, arguments);
}

static inline void check_commands(const command_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        test_push_note("ptxvm %s", cases[i].arguments);
        process_result r = run_ptxvm(cases[i].arguments);
        CHECK_EQ_I64(r.status, cases[i].status);
        CHECK_EQ_STR(r.output, cases[i].output);
        process_free(&r);
        test_pop_note();
    }
}

#define CHECK_COMMANDS(cases) check_commands(cases, sizeof(cases) / sizeof(cases)[0])

#endif
