/* CUDA contexts shared by handles: the handles of one context share its modules, which the last handle
 * unloads. */
#ifndef QDNN_DRIVER_CONTEXT_H
#define QDNN_DRIVER_CONTEXT_H

#include "driver/cuda/cuda.h"
#include "driver/cuda/open.h"
#include "ptxgen/sm.h"

typedef struct context {
    cuda_device device;
    CUcontext cuda;
    const ptx_sm *target; /* what kernels are compiled for */
    bool is_primary;      /* retained by us, once, for any number of handles */
    int handles;
    struct context *next;
} context;

/* Acquires the device's context: the caller's current one if there was one, else its primary context. */
qdnnStatus_t context_acquire(const cuda_device *device, context **out);
/* `unload` is called for a context that no handle uses any more, while it still exists. */
void context_release(context *c, void (*unload)(const context *));

/* Makes the context current on this thread if it is not, and undoes that. */
CUresult context_enter(const context *c, bool *pushed);
void context_leave(const context *c, bool pushed);

#endif
