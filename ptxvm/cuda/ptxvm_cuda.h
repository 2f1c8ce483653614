/* The CUDA driver API on ptxvm, for programs that link it. Every function of cuda.h is available as
 * ptxvm_cuNAME (ptxvm_cuMemAlloc_v2); libcuda.so.1 exports the same functions under their real names. */
#ifndef PTXVM_CUDA_H
#define PTXVM_CUDA_H

#include <stdbool.h>
#include <stdint.h>

/* Settings; a field that is 0 or null is taken from the PTXVM_* environment variable. */
typedef struct ptxvm_cuda_settings {
    const char *sm; /* PTXVM_SM: "sm_90a" */
    const char *
        gpu; /* PTXVM_GPU: "a100", a board of boards/boards.def; with its memory and its SM, unless they are set */
    int devices;           /* PTXVM_DEVICES */
    int driver_version;    /* PTXVM_DRIVER_VERSION: 13000 */
    uint64_t memory_bytes; /* PTXVM_MEMORY: "16G", per device */
    int threads;           /* PTXVM_THREADS */
    uint64_t seed;         /* PTXVM_SEED */
    uint64_t steps;        /* PTXVM_STEPS */
    const char *check;     /* PTXVM_CHECK: "none", "all" or a list of memory, init, race, sync, leak, same */
    const char *counters;  /* PTXVM_COUNTERS: a file */
    const char *counters_by; /* PTXVM_COUNTERS_BY: "kernel" (default), or "line": also by PTX line */
    const char *log;         /* PTXVM_LOG: "stderr", "stdout" or a file; for error messages. "trace", or
                              "trace:" and one of these: each call with its arguments and its result too */
    const char *fault;       /* PTXVM_FAULT: "cuMemAlloc_v2:3=2,...": the third call fails with code 2 */
    int wait_seconds; /* PTXVM_WAIT: a wait of a stream or kernel without progress fails (702); 0: 60 */
} ptxvm_cuda_settings;
/* PTXVM_LIMIT_*, the limits of a PTX file, come only from the environment: ptxvm.h lists them. */

/* Call it before cuInit; fields that are null or 0 are taken from the environment. The texts are copied.
 * Returns false after cuInit, or if a text is invalid. */
bool ptxvm_cuda_configure(const ptxvm_cuda_settings *settings);

/* A function by its full name ("cuMemAlloc_v2", "cuLaunchKernel_ptsz"), or null. */
void *ptxvm_cuda_symbol(const char *name);

/* The last error message of this thread, as in PTXVM_LOG; "" if there is none. */
const char *ptxvm_cuda_last_sentence(void);

/* Frees everything, as at the end of the process; cuInit may be called again. No other thread may be in a
 * call. */
void ptxvm_cuda_shutdown(void);

/* libcuda.so.1 also exports `int ptxvmGetVersion(void)`, 10000 * major + 100 * minor + patch, which
 * identifies this driver. */

#endif
