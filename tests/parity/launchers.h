/* The launchers that ptxgen writes, all of them compiled into one library that runs on ptxvm's libcuda.so.1. */
#ifndef QDNN_TEST_LAUNCHERS_H
#define QDNN_TEST_LAUNCHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/integer_case.h"
#include "kernels/kernels.h"

/* A launcher to write. */
typedef struct launcher_case {
    const char *name;             /* --kernel */
    const char *settings, *sizes; /* --set and --size; "" for none */
    const kernel_row *row;
    kernel_spec spec;
    kernel_problem problem;
    integer_buffers buffers; /* inputs, and what host_ref says of outputs */
} launcher_case;

/* Writes, compiles and loads all launchers. False, with a failure reported, if one does not compile. */
bool launchers_build(launcher_case *cases, int count);
/* Launches one with the buffers of its case, and compares every output. */
void launchers_run(launcher_case *c, int number);
void launchers_end(void);

#endif
