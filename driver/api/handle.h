/* The contents of a handle, and how calls enter and leave it. */
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
    CUresult lost;              /* the sticky error that ended the context; 0 as long as it works */
    const char *last_operation; /* the last one launched, or null, and its operands */
    uint64_t last_operands;
    bool check_buffers; /* QDNN_CHECK_BUFFERS */
    bool overlaps;      /* launch_overlaps */
    qdnnMath_t math;    /* qdnnSetMath, QDNN_MATH */
    int plans;          /* created by the user and not yet destroyed */
    int schedules;      /* likewise */
    int programs;       /* likewise */
    bundle *bundle;     /* or null */
    struct kept *kept;  /* plans of one-shot calls, most recently used first */
    int n_kept;
    struct cublasContext *cublas; /* created when a plan first needs it */
    CUdeviceptr workspace;        /* of one-shot calls */
    size_t workspace_bytes;
    CUstream workspace_stream; /* the last stream that used it */
};

/* Creates a handle on a device, however that was found: tests and benchmarks pass tables of their own. */
qdnnStatus_t handle_create(const cuda_device *device, qdnnHandle_t *handle);

/* Whether the handle is usable; if not, the status that every call with it returns. */
qdnnStatus_t handle_check(qdnnHandle_t handle);

/* A call that uses the driver begins and ends with these: the handle is usable, and its context is current in
 * between. */
qdnnStatus_t handle_enter(qdnnHandle_t handle, bool *pushed);
void handle_leave(qdnnHandle_t handle, bool pushed);

/* The status of a failed driver call; a sticky error makes the handle unusable. what: a printf format that
 * tells what the call was for. */
qdnnStatus_t handle_failed(qdnnHandle_t handle, CUresult result, const char *call, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/* matmul.c: releases cuBLAS. */
void handle_close_cublas(qdnnHandle_t handle);

/* oneshot.c: destroys the plans and the workspace of one-shot calls. */
void handle_forget(qdnnHandle_t handle);

#endif
