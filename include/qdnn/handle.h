/* Handles. A handle stands for a device, a CUDA context on it, and a stream.
 *
 * Only one thread may use a handle at a time; threads with handles of their own need no locking. When the
 * device fails permanently (after an illegal address in a kernel, for example: a sticky error in CUDA's
 * terms), every later call with the handle returns QDNN_STATUS_EXECUTION_FAILED_STICKY: destroy it. After any
 * other error the handle remains usable. */
#ifndef QDNN_HANDLE_H
#define QDNN_HANDLE_H

#include <qdnn/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnHandle *qdnnHandle_t;

/* A CUDA stream, that is, a CUstream or a cudaStream_t; null is the default stream. */
typedef struct CUstream_st *qdnnStream_t;

/* Creates a handle on the device that the environment variable QDNN_DEVICE names:
 *   auto        a GPU if there is one, else ptxvm, the interpreter (the default)
 *   cuda[:N]    a GPU, or GPU number N
 *   vm[:sm_XX]  ptxvm, emulating that SM, or what PTXVM_GPU or PTXVM_SM names
 *   vm:BOARD    ptxvm, emulating a board: vm:a100, vm:rtx4090 (boards/boards.def lists them)
 * If the calling thread has a current CUDA context, auto and cuda work in it (cuda:N only if it belongs to
 * that GPU), so that pointers and streams of the caller's own CUDA code can be used; otherwise they work in
 * the device's primary context, which the CUDA runtime uses too. The thread's current context is not changed.
 * A context of the caller's must outlive the handle. CUDA does not work in a child of fork: if the parent has
 * created a handle, this call, and every call with a handle, plan or schedule of the parent, returns
 * _NOT_SUPPORTED in the child; descriptors and functions of the host go on working.
 *   handle   receives it; qdnnDestroy frees it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME if QDNN_DEVICE is not of this form, or QDNN_MATH
 * is neither family nor exact;
 * _NOT_SUPPORTED_NO_DRIVER, _NO_DEVICE, _DRIVER_TOO_OLD or _SM if there is no such device;
 * _NOT_SUPPORTED if ptxvm already emulates another SM in this process, or in a child as described above;
 * _INTERNAL_ERROR_ALLOCATION_FAILED; _EXECUTION_FAILED or _EXECUTION_FAILED_STICKY if the driver fails. Thread-safe. */
QDNN_API qdnnStatus_t qdnnCreate(qdnnHandle_t *handle);

/* Creates a handle on a device named by the caller.
 *   handle   receives it
 *   device   as in QDNN_DEVICE: "cuda:1", "vm:sm_75", "vm:a100"; null: use QDNN_DEVICE
 * Returns what qdnnCreate does. Thread-safe. */
QDNN_API qdnnStatus_t qdnnCreateOn(qdnnHandle_t *handle, const char *device);

/* Waits for all work in the handle's context, then frees the handle. Its plans must have been destroyed
 * before; memory from qdnnMalloc lives on with its context. Do not call it while a stream of the context is
 * being captured: CUDA would invalidate the capture.
 *   handle   may be null
 * Returns _SUCCESS; _BAD_PARAM while plans of the handle exist; _EXECUTION_FAILED_STICKY if the device turns
 * out to have failed (the handle is freed nevertheless). */
QDNN_API qdnnStatus_t qdnnDestroy(qdnnHandle_t handle);

/* Sets the stream that later calls with the handle use.
 *   handle
 *   stream   of the handle's context; null: the default stream
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _EXECUTION_FAILED_STICKY if the device has failed. */
QDNN_API qdnnStatus_t qdnnSetStream(qdnnHandle_t handle, qdnnStream_t stream);

/* Gets the stream that calls with the handle use.
 *   handle
 *   stream   receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetStream(qdnnHandle_t handle, qdnnStream_t *stream);

/* Which bits products with QDNN_MATMUL_AUTO give. The numbers never change. */
typedef enum {
    /* Those of tensor cores where x is f16, bf16 or FP8: the same in every batch and on every SM of a family. */
    QDNN_MATH_FAMILY = 0,
    /* One answer on every SM: AUTO is QDNN_MATMUL_EXACT. Prepacked weights and x in FP8 are then refused. */
    QDNN_MATH_EXACT = 1
} qdnnMath_t;

/* Sets which bits later plans of the handle promise, where their algorithm is QDNN_MATMUL_AUTO; plans that exist stay as they
 * are. A handle begins with what the environment variable QDNN_MATH says: family (the default) or exact.
 *   handle
 *   math
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown value. */
QDNN_API qdnnStatus_t qdnnSetMath(qdnnHandle_t handle, qdnnMath_t math);

/* Gets what qdnnSetMath or QDNN_MATH set.
 *   handle
 *   math     receives it
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER. */
QDNN_API qdnnStatus_t qdnnGetMath(qdnnHandle_t handle, qdnnMath_t *math);

/* Waits until all work on the handle's stream is done. Kernel errors are reported here at the latest.
 *   handle
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnSynchronize(qdnnHandle_t handle);

/* The numbers never change. */
typedef enum {
    QDNN_DEVICE_GPU = 0,
    QDNN_DEVICE_PTXVM = 1 /* the interpreter, linked in or loaded as a libcuda.so.1 */
} qdnnDeviceKind_t;

typedef struct {
    size_t size; /* sizeof(qdnnDeviceInfo_t): set it before the call */
    qdnnDeviceKind_t kind;
    int ordinal;          /* its number among the devices of its driver */
    int smMajor, smMinor; /* compute capability: 9, 0 */
    int driverVersion;    /* as CUDA counts: 13000 is 13.0 */
    int multiprocessors;
    uint64_t memoryBytes;
    char target[16]; /* what its kernels are compiled for: "sm_90" */
    char name[256];
    double memoryBytesPerSecond; /* peak bandwidth of the memory; 0 if the driver does not report it */
} qdnnDeviceInfo_t;

/* Describes the handle's device.
 *   handle
 *   info     receives it; the caller sets its size
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND if size is not set; _EXECUTION_FAILED or
 * _EXECUTION_FAILED_STICKY if the driver fails. */
QDNN_API qdnnStatus_t qdnnGetDeviceInfo(qdnnHandle_t handle, qdnnDeviceInfo_t *info);

/* Sets the bundle: a folder of kernels written ahead of time by `ptxgen --all` (docs/bundles.md), which
 * replace emitting kernels and, with cubins, compiling them in the driver. Each file is checked against
 * manifest.json before use; files that are damaged or made for other settings are logged as a warning, and
 * the kernel is emitted as if the file were missing. qdnnCreate takes the bundle from the environment
 * variable QDNN_BUNDLE_DIR.
 *   handle
 *   directory  null: none
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM if the folder has no usable manifest (the handle then
 * has no bundle); _INTERNAL_ERROR_ALLOCATION_FAILED. */
QDNN_API qdnnStatus_t qdnnSetBundle(qdnnHandle_t handle, const char *directory);

#ifdef __cplusplus
}
#endif
#endif
