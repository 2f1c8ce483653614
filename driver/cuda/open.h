/* Opening a CUDA driver and choosing a device of it: a GPU through libcuda.so.1, or the linked ptxvm.
 *
 *   QDNN_DEVICE       "auto" (default), "cuda", "cuda:1", "vm", "vm:sm_75"
 *   QDNN_LIBCUDA      the driver's library, where it is not libcuda.so.1 in the loader's path
 *   QDNN_REQUIRE_GPU  set and not 0: ptxvm, linked or as a libcuda.so.1, is refused
 *
 * Each driver is opened once in a process. What fails is tried anew by the next call. Any thread. */
#ifndef QDNN_DRIVER_OPEN_H
#define QDNN_DRIVER_OPEN_H

#include <stdbool.h>

#include <qdnn/types.h>

#include "driver/cuda/cuda.h"

/* The oldest driver that has all we call and reads the PTX of every SM that we support first: CUDA 11.0. */
enum { CUDA_OLDEST_DRIVER = 11000 };

typedef struct cuda_device {
    const cuda_api *api;
    bool is_vm;         /* it is ptxvm, linked or as libcuda.so.1 */
    int ordinal;        /* 0 is the first */
    CUdevice device;    /* the driver's number of it */
    CUcontext context;  /* the context current in this thread, if it is of this device: borrowed; else null */
    int major, minor;   /* compute capability */
    int driver_version; /* 12040 is CUDA 12.4 */
    char name[256];
} cuda_device;

/* Chooses a device.
 *   text  as QDNN_DEVICE; null or "": what QDNN_DEVICE says
 *   out   untouched unless the call succeeds
 * "auto": a GPU if there is one (one that fails is an error), else ptxvm; which and why is told once at level
 * info, or as a warning where a driver is there that cannot be used. "auto" and "cuda" take the device of the
 * context that is current in this thread, if there is one.
 * Returns QDNN_STATUS_SUCCESS; _NOT_SUPPORTED_NO_DRIVER: no library, one that is no driver, or one that does
 * not start; _NOT_SUPPORTED_DRIVER_TOO_OLD; _NOT_SUPPORTED_NO_DEVICE: no device, not that many, or
 * QDNN_REQUIRE_GPU and only ptxvm; _BAD_PARAM_UNKNOWN_NAME: the text, or its SM; _NOT_SUPPORTED: ptxvm runs
 * as another SM already; and what cuda_status makes of a failing call. */
qdnnStatus_t cuda_device_choose(const char *text, cuda_device *out);

/* For tests: closes both drivers, so that the next choice opens them anew, with other settings. Nothing of
 * them may be in use. */
void cuda_close_all(void);

#endif
