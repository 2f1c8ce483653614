/* CUDA C to PTX by NVRTC, where it is found at run time (QDNN_NVRTC may name the library). */
#ifndef QDNN_DRIVER_NVRTC_H
#define QDNN_DRIVER_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include <qdnn/types.h>

/* A header that the text may include by name. */
typedef struct nvrtc_header {
    const char *name, *text;
} nvrtc_header;

/* PTX, zero-terminated, and what NVRTC had to say; nvrtc_free frees both. */
typedef struct nvrtc_result {
    char *data;
    size_t bytes; /* without the zero */
    char *log;
} nvrtc_result;

bool nvrtc_found(void);

/* Compiles; options are NVRTC's ("--gpu-architecture=compute_90"). The result may hold a log either way.
 * Returns QDNN_STATUS_SUCCESS; _NOT_SUPPORTED_LIBRARY_MISSING; _BAD_PARAM_OUT_OF_BOUND for more than
 * NVRTC_HEADERS_MAX headers; _INTERNAL_ERROR_COMPILATION_FAILED, with the beginning of the log as the
 * sentence; _INTERNAL_ERROR_ALLOCATION_FAILED. */
enum { NVRTC_HEADERS_MAX = 8 };
qdnnStatus_t nvrtc_compile(const char *source, const nvrtc_header *headers, int n_headers,
                           const char *const *options, int n_options, nvrtc_result *result);
void nvrtc_free(nvrtc_result *result);

/* For tests: the library is looked for anew. */
void nvrtc_forget(void);

#endif
