/* Libraries that qdnn can use and does not need: NVRTC and cuBLAS. Opened when they are first asked for, once
 * in a process; where one is missing, that is said, and nothing else changes. Any thread. */
#ifndef QDNN_DRIVER_LIBRARY_H
#define QDNN_DRIVER_LIBRARY_H

#include <stdbool.h>

#include <qdnn/types.h>

typedef struct runtime_library {
    const char *title;          /* "cuBLAS" */
    const char *variable;       /* an environment variable that has its path: "QDNN_CUBLAS" */
    const char *const *files;   /* names to try, ending with null: "libcublas.so.13", ... */
    const char *const *symbols; /* its functions, ending with null ... */
    void *table;                /* ... and the struct of their pointers, in that order */
    void *handle;               /* null: not open */
} runtime_library;

/* Opens it and fills its table, where that was not done yet. Returns QDNN_STATUS_SUCCESS, or
 * _NOT_SUPPORTED_LIBRARY_MISSING with a sentence; the next call tries anew. */
qdnnStatus_t library_use(runtime_library *library);

/* Whether library_use would succeed, without an error kept. */
bool library_found(runtime_library *library);

/* For tests: the next use looks for it anew. It stays loaded: NVIDIA's libraries leave memory behind when
 * they are unloaded. */
void library_forget(runtime_library *library);

#endif
