/* CUDA contexts as handles share them: the handles of one context have its modules in common, and the last
 * one takes them along. */
#ifndef QDNN_DRIVER_CONTEXT_H
#define QDNN_DRIVER_CONTEXT_H

#include "driver/cuda/cuda.h"
#include "driver/cuda/open.h"
#include "ptxgen/sm.h"

typedef struct context {
    cuda_device device;
    CUcontext cuda;
    const ptx_sm *target; /* what kernels are written for */
    bool is_primary;      /* retained by us, once however many handles there are */
    int handles;
    struct context *next;
} context;

/* The device's context: the one it was found in, or its primary one. */
qdnnStatus_t context_acquire(const cuda_device *device, context **out);
void context_release(context *c);

/* Makes the context current on this thread where it is not, and undoes that. */
CUresult context_enter(const context *c, bool *pushed);
void context_leave(const context *c, bool pushed);

#endif
