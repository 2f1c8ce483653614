/* qdnn: quantization kernels for NVIDIA GPUs. The public interface. */
#ifndef QDNN_H
#define QDNN_H

#include <qdnn/types.h>

#define QDNN_MAJOR   0
#define QDNN_MINOR   1
#define QDNN_PATCH   0
#define QDNN_VERSION (QDNN_MAJOR * 10000 + QDNN_MINOR * 100 + QDNN_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is running, as QDNN_VERSION: compare it with the header's. Any thread. */
QDNN_API int qdnnGetVersion(void);

/* The name of a status, "QDNN_STATUS_BAD_PARAM"; "unknown status" for a number that is none. Any thread. */
QDNN_API const char *qdnnGetErrorString(qdnnStatus_t status);

/* What was wrong with the last call of this thread that failed: which argument, its value, and what would be
 * right. Copies at most size - 1 characters and a zero into message; an empty string if no call has failed.
 */
QDNN_API void qdnnGetLastErrorString(char *message, size_t size);

#ifdef __cplusplus
}
#endif
#endif
