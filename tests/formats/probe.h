/* Kernels of a test's own on ptxvm: what a function of the emitters makes of many inputs at once. */
#ifndef QDNN_TESTS_PROBE_H
#define QDNN_TESTS_PROBE_H

#include <stdbool.h>

#include "ptxgen/ptx.h"

typedef struct probe {
    const char *sm;
    /* Emits what one thread does; by all threads of a block of 256 before `thread`, may be null. */
    void (*open)(ptx_builder *b, void *user);
    /* `in` and `out` are pointers to global memory, i (u32) is the number of the thread. */
    void (*thread)(ptx_builder *b, void *user, ptx_val in, ptx_val out, ptx_val i);
    void *user;
    uint32_t threads;
    const void *in;
    size_t in_bytes;
    void *out;
    size_t out_bytes;
} probe;

/* Runs it with all checks; a failure is reported as the test's. */
bool probe_run(const probe *p);

#endif
