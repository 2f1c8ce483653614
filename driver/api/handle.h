/* What a handle holds, and how calls go in and out of it. */
#ifndef QDNN_DRIVER_HANDLE_H
#define QDNN_DRIVER_HANDLE_H

#include <qdnn/handle.h>
#include <qdnn/plan.h>

#include "driver/bundle/bundle.h"
#include "driver/base/check.h"
#include "driver/cuda/context.h"

struct qdnnHandle {
    context *context;
    CUstream stream;
    CUresult lost;      /* the sticky error that ended it; 0 while it lives */
    const char *last_operation; /* that was launched, or null, and its operands */
    unsigned last_operands;
    bool check_buffers; /* QDNN_CHECK_BUFFERS */
    int plans;          /* that the user has of it */
    int schedules;      /* the same */
    bundle *bundle;     /* or null */
    struct kept *kept;  /* plans of one-shot calls, the last used first */
    int n_kept;
    struct cublasContext *cublas; /* once a plan needs it */
    CUdeviceptr workspace;        /* of one-shot calls */
    size_t workspace_bytes;
    CUstream workspace_stream; /* the last to use it */
};

/* A handle on a device that was found some way or other: tests and benchmarks bring tables of their own. */
qdnnStatus_t handle_create(const cuda_device *device, qdnnHandle_t *handle);

/* Whether the handle lives: else the status of every call with it. */
qdnnStatus_t handle_check(qdnnHandle_t handle);

/* A call that goes to the driver begins and ends with these: the handle lives, and its context is current
 * between them. */
qdnnStatus_t handle_enter(qdnnHandle_t handle, bool *pushed);
void handle_leave(qdnnHandle_t handle, bool pushed);

/* The status of a driver's call that failed; the handle is dead from then on if the error is sticky. what:
 * printf's, what the call was for. */
qdnnStatus_t handle_failed(qdnnHandle_t handle, CUresult result, const char *call, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/* matmul.c: lets go of cuBLAS. */
void handle_close_cublas(qdnnHandle_t handle);

/* oneshot.c: destroys the plans and the workspace that one-shot calls left. */
void handle_forget(qdnnHandle_t handle);

#endif
