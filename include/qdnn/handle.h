/* A handle: the device that calls work on, in one CUDA context, with one stream.
 *
 * A handle is used by one thread at a time; different threads may use different handles without any locking. After a
 * failure that the device cannot recover from (an illegal address in a kernel, say; CUDA calls such errors sticky), every
 * later call with the handle returns QDNN_STATUS_EXECUTION_FAILED_STICKY: destroy it. After any other error the handle
 * remains usable. */
#ifndef QDNN_HANDLE_H
#define QDNN_HANDLE_H

#include <qdnn/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnHandle *qdnnHandle_t;

/* A CUDA stream: a CUstream or a cudaStream_t, unchanged; null is the default stream. */
typedef struct CUstream_st *qdnnStream_t;

/* Creates a handle on the device that the environment variable QDNN_DEVICE names:
 *   auto        a GPU if there is one, else ptxvm, the interpreter (the default)
 *   cuda[:N]    a GPU, or GPU number N
 *   vm[:sm_XX]  ptxvm, acting as that SM, or as PTXVM_SM says
 * Where the calling thread has a current CUDA context, auto and cuda work in it (cuda:N if it is of that
 * GPU), so that the pointers and streams of the caller's own CUDA code may be used; otherwise in the device's
 * primary context, which the CUDA runtime uses too. The thread's current context is left as it is. A context
 * that the caller made must outlive the handle. After fork, a child must not use its parent's handles, as with
 * CUDA itself.
 *   handle   receives it; qdnnDestroy frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME where QDNN_DEVICE is malformed;
 * _NOT_SUPPORTED_NO_DRIVER, _NO_DEVICE, _DRIVER_TOO_OLD or _SM where there is no such device;
 * _NOT_SUPPORTED where ptxvm acts as another SM in this process already; _INTERNAL_ERROR_ALLOCATION_FAILED;
 * _EXECUTION_FAILED or _EXECUTION_FAILED_STICKY where the driver fails. Any thread. */
QDNN_API qdnnStatus_t qdnnCreate(qdnnHandle_t *handle);

/* The same on a device named in the call: "cuda:1", "vm:sm_75" and so on. Null: as qdnnCreate.
 *   handle   receives it
 *   device   as QDNN_DEVICE
 * Returns what qdnnCreate does. Any thread. */
QDNN_API qdnnStatus_t qdnnCreateOn(qdnnHandle_t *handle, const char *device);

/* Waits for all work in the handle's context, then frees the handle. Its plans must have been destroyed before; memory
 * from qdnnMalloc remains valid as long as the context exists. Do not call it while a stream of the context is being
 * captured: that would invalidate the capture.
 *   handle   null is fine
 * Returns _SUCCESS; _BAD_PARAM while plans of it exist; _EXECUTION_FAILED_STICKY where the device turns out
 * to have failed (the handle is freed all the same). */
QDNN_API qdnnStatus_t qdnnDestroy(qdnnHandle_t handle);

/* Sets the stream that later calls with the handle use.
 *   handle
 *   stream   of the handle's context; null: the default stream
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _EXECUTION_FAILED_STICKY for a dead handle. */
QDNN_API qdnnStatus_t qdnnSetStream(qdnnHandle_t handle, qdnnStream_t stream);

/* The stream that calls with the handle use.
 *   handle
 *   stream   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetStream(qdnnHandle_t handle, qdnnStream_t *stream);

/* Waits until all work on the handle's stream is done. A kernel that failed is reported here at the latest.
 *   handle
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnSynchronize(qdnnHandle_t handle);

/* Numbers are frozen. */
typedef enum {
    QDNN_DEVICE_GPU = 0,
    QDNN_DEVICE_PTXVM = 1 /* the interpreter, linked in or as a libcuda.so.1 of its own */
} qdnnDeviceKind_t;

typedef struct {
    size_t size; /* sizeof(qdnnDeviceInfo_t): set it before the call */
    qdnnDeviceKind_t kind;
    int ordinal;          /* its number among the devices of its driver */
    int smMajor, smMinor; /* compute capability: 9, 0 */
    int driverVersion;    /* as CUDA counts: 13000 is 13.0 */
    int multiprocessors;
    uint64_t memoryBytes;
    char target[16]; /* what its kernels are written for: "sm_90" */
    char name[256];
    double memoryBytesPerSecond; /* peak, by clock and bus width; 0 where the driver does not report them */
} qdnnDeviceInfo_t;

/* Describes the device of a handle.
 *   handle
 *   info     receives it; its size is set by the caller
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for a size that is not set; _EXECUTION_FAILED or _EXECUTION_FAILED_STICKY where the driver
 * fails. */
QDNN_API qdnnStatus_t qdnnGetDeviceInfo(qdnnHandle_t handle, qdnnDeviceInfo_t *info);

/* A folder of kernels written ahead of time by `ptxgen --all` (docs/bundles.md), used instead of emitting
 * and, with cubins, instead of the driver's compiler. Each file is checked against manifest.json before use;
 * a kernel whose file is missing, damaged or made for other settings is emitted instead, and a warning logged.
 * qdnnCreate sets the folder that the environment variable QDNN_BUNDLE_DIR names.
 *   handle
 *   directory  null: none
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM where the folder has no manifest that can be used
 * (the handle then has no bundle); _INTERNAL_ERROR_ALLOCATION_FAILED. */
QDNN_API qdnnStatus_t qdnnSetBundle(qdnnHandle_t handle, const char *directory);

#ifdef __cplusplus
}
#endif
#endif
