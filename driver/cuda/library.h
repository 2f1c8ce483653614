/* Optional libraries: NVRTC and cuBLAS. Loaded when first needed, once per process; if one is missing, that
 * is an error only for calls that need it. Thread-safe. */
#ifndef QDNN_DRIVER_LIBRARY_H
#define QDNN_DRIVER_LIBRARY_H

#include <stdbool.h>

#include <qdnn/types.h>

typedef struct runtime_library {
    const char *title;          /* "cuBLAS" */
    const char *variable;       /* the environment variable for its path: "QDNN_CUBLAS" */
    const char *const *files;   /* names to try, null-terminated: "libcublas.so.13", ... */
    const char *const *symbols; /* its functions, null-terminated ... */
    void *table;                /* ... and the struct of their pointers, in the same order */
    void *handle;               /* null: not loaded */
} runtime_library;

/* Loads it and fills its table, unless that was done before. Returns QDNN_STATUS_SUCCESS, or
 * _NOT_SUPPORTED_LIBRARY_MISSING with a message; the next call tries again. */
qdnnStatus_t library_use(runtime_library *library);

/* Whether library_use would succeed; does not set the last error. */
bool library_found(runtime_library *library);

/* For tests: the next use searches for it again. It stays loaded: NVIDIA's libraries leak memory when they
 * are unloaded. */
void library_forget(runtime_library *library);

#endif
