/* Device memory, for programs that do not use CUDA themselves. Those that do may pass their own pointers everywhere. */
#ifndef QDNN_MEMORY_H
#define QDNN_MEMORY_H

#include <qdnn/handle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates device memory in the handle's context. Its content is undefined.
 *   handle
 *   pointer  receives a device address, aligned to at least 256; null for 0 bytes
 *   bytes
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED where there is not
 * enough; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnMalloc(qdnnHandle_t handle, void **pointer, size_t bytes);

/* Frees what qdnnMalloc gave, once the device is done with it.
 *   handle   of the same context
 *   pointer  null is fine
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER for a null handle; _EXECUTION_FAILED for an invalid pointer;
 * _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnFree(qdnnHandle_t handle, void *pointer);

/* Copies to the device, after the work on the handle's stream, and waits until it is done.
 *   handle
 *   device   the destination, on the device
 *   host     the source
 *   bytes    0 is fine, with any pointers
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnCopyToDevice(qdnnHandle_t handle, void *device, const void *host, size_t bytes);

/* Copies to the host, after the work on the handle's stream, and waits until it is done: the data are there when it
 * returns.
 *   handle
 *   host     the destination
 *   device   the source, on the device
 *   bytes    0 is fine, with any pointers
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnCopyToHost(qdnnHandle_t handle, void *host, const void *device, size_t bytes);

/* Copies within the device, in the order of the handle's stream; does not wait.
 *   handle
 *   to, from  on the device; must not overlap
 *   bytes     0 is fine, with any pointers
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnCopyOnDevice(qdnnHandle_t handle, void *to, const void *from, size_t bytes);

/* Sets every byte, in the order of the handle's stream; does not wait.
 *   handle
 *   device   where, on the device
 *   byte
 *   bytes    0 is fine, with any pointer
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnFill(qdnnHandle_t handle, void *device, unsigned char byte, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
