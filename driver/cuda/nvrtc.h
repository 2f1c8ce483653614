/* CUDA C to PTX by NVRTC, if it is found at run time (QDNN_NVRTC may name the library). */
#ifndef QDNN_DRIVER_NVRTC_H
#define QDNN_DRIVER_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include <qdnn/types.h>

/* A header that the source may include by name. */
typedef struct nvrtc_header {
    const char *name, *text;
} nvrtc_header;

/* PTX, zero-terminated, and NVRTC's log; nvrtc_free frees both. */
typedef struct nvrtc_result {
    char *data;
    size_t bytes; /* without the terminating zero */
    char *log;
} nvrtc_result;

bool nvrtc_found(void);

/* Compiles; options are NVRTC's ("--gpu-architecture=compute_90"). The result may contain a log in either
 * case. Returns QDNN_STATUS_SUCCESS; _NOT_SUPPORTED_LIBRARY_MISSING; _BAD_PARAM_OUT_OF_BOUND for more than
 * NVRTC_HEADERS_MAX headers; _INTERNAL_ERROR_COMPILATION_FAILED, with the beginning of the log as the
 * message; _INTERNAL_ERROR_ALLOCATION_FAILED. */
enum { NVRTC_HEADERS_MAX = 8 };
qdnnStatus_t nvrtc_compile(const char *source, const nvrtc_header *headers, int n_headers,
                           const char *const *options, int n_options, nvrtc_result *result);
void nvrtc_free(nvrtc_result *result);

/* For tests: the next compilation searches for the library again. */
void nvrtc_forget(void);

#endif
