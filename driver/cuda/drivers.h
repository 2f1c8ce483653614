/* The two drivers of a process: libcuda.so.1, loaded at run time, and the linked-in ptxvm. For
 * driver/cuda/open.c, which holds a lock around every call. */
#ifndef QDNN_DRIVER_DRIVERS_H
#define QDNN_DRIVER_DRIVERS_H

#include <stdbool.h>

#include <qdnn/types.h>

#include "driver/cuda/cuda.h"

/* An initialised driver. */
typedef struct driver {
    cuda_api api;
    bool is_vm;
    int version; /* 12040 is CUDA 12.4 */
} driver;

/* Why something is not available. Not the thread's last error yet, because "auto" may continue without it. */
typedef struct driver_problem {
    qdnnStatus_t status;
    CUresult code; /* of a driver that failed to start; else 0 */
    char text[480];
} driver_problem;
qdnnStatus_t driver_problem_set(driver_problem *problem, qdnnStatus_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Gets the driver, loading and initialising it the first time. */
qdnnStatus_t driver_open_cuda(const driver **out, driver_problem *problem);
qdnnStatus_t driver_open_vm(const char *name, const driver **out,
                            driver_problem *problem); /* an SM or a board; null: any */

/* Whether the user named the library in QDNN_LIBCUDA. */
bool driver_is_named(void);
/* The name or path of the loaded library, or of the one that would be loaded. */
const char *driver_cuda_name(void);

/* Whether a library of that name was loaded, even if it failed to start. */
bool driver_cuda_found(void);
void drivers_close(void);

#endif
