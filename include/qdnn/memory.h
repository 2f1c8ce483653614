/* Device memory for programs that do not use CUDA themselves. Those that do may pass their own pointers
 * everywhere. */
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
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED if the device has too
 * little memory left; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnMalloc(qdnnHandle_t handle, void **pointer, size_t bytes);

/* Frees memory from qdnnMalloc, once the device is done with it.
 *   handle   any of the same context
 *   pointer  may be null
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER for a null handle; _BAD_PARAM for an invalid pointer; _EXECUTION_FAILED;
 * _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnFree(qdnnHandle_t handle, void *pointer);

/* Copies to the device after the work already on the handle's stream, and waits for the copy.
 *   handle
 *   device   destination, device memory
 *   host     source
 *   bytes    may be 0; the pointers are then ignored
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_SIZE_INSUFFICIENT if the allocation ends before so many bytes, and
 * _BAD_PARAM if it is no device memory, where the driver refuses such a copy; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnCopyToDevice(qdnnHandle_t handle, void *device, const void *host, size_t bytes);

/* Copies to the host after the work already on the handle's stream, and waits for the copy.
 *   handle
 *   host     destination
 *   device   source, device memory
 *   bytes    may be 0; the pointers are then ignored
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnCopyToHost(qdnnHandle_t handle, void *host, const void *device, size_t bytes);

/* Copies within the device, in the order of the handle's stream; does not wait.
 *   handle
 *   to, from  device memory; must not overlap
 *   bytes     may be 0; the pointers are then ignored
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnCopyOnDevice(qdnnHandle_t handle, void *to, const void *from, size_t bytes);

/* Sets every byte, in the order of the handle's stream; does not wait.
 *   handle
 *   device   device memory
 *   byte
 *   bytes    may be 0; the pointer is then ignored
 * Returns what qdnnCopyToDevice does. */
QDNN_API qdnnStatus_t qdnnFill(qdnnHandle_t handle, void *device, unsigned char byte, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
