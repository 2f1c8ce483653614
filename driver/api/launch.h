/* Launches on a handle's stream. From sm_90 on, a kernel that follows another one of the same call begins before that has
 * ended (programmatic dependent launch): its blocks are in their places and wait when the last ones of the other end. All
 * kernels of the library wait before they touch memory (ptx_dependent), so the results are the same. */
#ifndef QDNN_DRIVER_LAUNCH_H
#define QDNN_DRIVER_LAUNCH_H

#include "driver/api/handle.h"

/* What a call has put on the stream so far; zero when it begins. */
typedef struct launch_chain {
    bool kernel; /* the last thing was a kernel */
} launch_chain;

typedef struct launch {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    bool waits;       /* it is a kernel of the library */
    const char *what; /* for errors */
} launch;

qdnnStatus_t launch_kernel(qdnnHandle_t handle, launch_chain *chain, const launch *l, void **params);

/* Whether kernels on the device may overlap: the SM and the driver can, and QDNN_DEPENDENT_LAUNCH is not 0. */
bool launch_overlaps(const context *c);

#endif
