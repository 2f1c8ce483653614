/* Loading a CUDA driver and choosing a device: a GPU through libcuda.so.1, or the linked-in ptxvm.
 *
 *   QDNN_DEVICE       "auto" (default), "cuda", "cuda:1", "vm", "vm:sm_75"
 *   QDNN_LIBCUDA      the driver's library, if it is not libcuda.so.1 in the loader's path
 *   QDNN_REQUIRE_GPU  set and not 0: ptxvm, linked in or as a libcuda.so.1, is rejected
 *
 * Each driver is loaded once per process. After a failure the next call tries again. Thread-safe. */
#ifndef QDNN_DRIVER_OPEN_H
#define QDNN_DRIVER_OPEN_H

#include <stdbool.h>

#include <qdnn/types.h>

#include "driver/cuda/cuda.h"

/* The oldest driver that has all functions we call and accepts the lowest PTX version of every SM we support:
 * CUDA 11.0. */
enum { CUDA_OLDEST_DRIVER = 11000 };

typedef struct cuda_device {
    const cuda_api *api;
    bool is_vm;        /* it is ptxvm, linked in or as libcuda.so.1 */
    int ordinal;       /* 0 is the first */
    CUdevice device;   /* as the driver numbers it */
    CUcontext context; /* the current context if it is on this device, not owned; else null */
    int major, minor;  /* compute capability */
    int multiprocessors;
    int driver_version; /* 12040 is CUDA 12.4 */
    char name[256];
} cuda_device;

/* Chooses a device.
 *   text  as in QDNN_DEVICE; null or "": use QDNN_DEVICE
 *   out   unchanged unless the call succeeds
 * "auto": a GPU if there is one (one that fails is an error), else ptxvm; the choice and the reason are logged
 * once as information, or as a warning if there is a driver that cannot be used. "auto" and "cuda" use the
 * device of the context that is current in this thread, if there is one.
 * Returns QDNN_STATUS_SUCCESS; _NOT_SUPPORTED_NO_DRIVER: no library, one that is not a driver, or one that does
 * not start; _NOT_SUPPORTED_DRIVER_TOO_OLD; _NOT_SUPPORTED_NO_DEVICE: no device, not that many, or
 * QDNN_REQUIRE_GPU is set and there is only ptxvm; _BAD_PARAM_UNKNOWN_NAME: the text, or its SM;
 * _NOT_SUPPORTED: ptxvm already emulates another SM; and what cuda_status returns for a failing call. */
qdnnStatus_t cuda_device_choose(const char *text, cuda_device *out);

/* For tests: closes both drivers, so that the next choice loads them again, with other settings. Neither may
 * be in use. */
void cuda_close_all(void);

#endif
