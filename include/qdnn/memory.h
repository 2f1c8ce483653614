/* Device memory for programs that use nothing else of CUDA. Those that do may pass their own pointers
 * everywhere. */
#ifndef QDNN_MEMORY_H
#define QDNN_MEMORY_H

#include <qdnn/handle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates device memory in the handle's context. Its content is undefined.
 *   handle
 *   pointer  receives an address of the device, aligned to at least 256; null for 0 bytes
 *   bytes
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED where there is not so
 * much; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnMalloc(qdnnHandle_t handle, void **pointer, size_t bytes);

/* Frees what qdnnMalloc gave, once the device is done with it.
 *   handle   of the same context
 *   pointer  null is fine
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER for a null handle; _EXECUTION_FAILED for a pointer that is none;
 * _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnFree(qdnnHandle_t handle, void *pointer);

/* Copies to the device, behind the work of the handle's stream, and waits for it.
 *   handle
 *   device   where to: of the device
 *   host     where from
 *   bytes    0 is fine, with any pointers
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnCopyToDevice(qdnnHandle_t handle, void *device, const void *host, size_t bytes);

/* Copies to the host, behind the work of the handle's stream, and waits for it: results are there when it
 * returns.
 *   handle
 *   host     where to
 *   device   where from: of the device
 *   bytes    0 is fine, with any pointers
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnCopyToHost(qdnnHandle_t handle, void *host, const void *device, size_t bytes);

/* Copies within the device, in the order of the handle's stream; does not wait.
 *   handle
 *   to, from  of the device; must not overlap
 *   bytes     0 is fine, with any pointers
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnCopyOnDevice(qdnnHandle_t handle, void *to, const void *from, size_t bytes);

/* Sets every byte, in the order of the handle's stream; does not wait.
 *   handle
 *   device   of the device
 *   byte
 *   bytes    0 is fine, with any pointer
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnFill(qdnnHandle_t handle, void *device, unsigned char byte, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
