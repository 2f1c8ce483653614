/* Translates failed calls of the CUDA driver to a status and a message. */
#ifndef QDNN_DRIVER_CUDA_ERROR_H
#define QDNN_DRIVER_CUDA_ERROR_H

#include <stdbool.h>

#include <qdnn/types.h>

#include "driver/cuda/cuda.h"

/* The status of a code; 0 is success. */
qdnnStatus_t cuda_status(CUresult code);
/* Whether every later call in the context must fail. */
bool cuda_is_sticky(CUresult code);

/* "cuMemAlloc returned 2 (CUDA_ERROR_OUT_OF_MEMORY): the device has too little free memory". api (may be
 * null) names codes that we do not know. */
void cuda_describe(const cuda_api *api, CUresult code, const char *call, char *text, size_t size);

/* Keeps the message as the thread's last error and returns the status. what: a printf format that tells what
 * the call was for ("the workspace of %zu bytes"); it comes first. */
qdnnStatus_t cuda_failed(const cuda_api *api, CUresult code, const char *call, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

#endif
