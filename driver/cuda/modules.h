/* Loaded kernels, shared by the handles of a context: a cache of bounded size for the process. */
#ifndef QDNN_DRIVER_MODULES_H
#define QDNN_DRIVER_MODULES_H

#include "driver/api/handle.h"
#include "kernels/kernels.h"

enum { MODULES_MAX = 256 };

typedef struct module {
    const kernel_row *row; /* row, specification and context (with its SM) are its identity */
    kernel_spec spec;
    const context *context;
    CUmodule cuda;
    CUfunction function;
    int version; /* of its PTX, times ten */
    bool from_bundle;
    double emit_seconds, load_seconds;
    int users;
    bool cached;    /* it stays when its last user has gone */
    uint64_t stamp; /* when it was last asked for */
} module;

/* The kernel of a normal specification, loaded: from the cache, from the handle's bundle, or emitted now. The handle's context is
 * current. *was_loaded says whether it was in the cache. */
qdnnStatus_t module_acquire(qdnnHandle_t handle, const kernel_row *row, const kernel_spec *spec, module **out,
                            bool *was_loaded);
void module_release(module *m);

/* The last handle of a context goes, and nobody uses its modules any more: they are unloaded. */
void modules_drop(const context *c);

/* How many modules the cache holds. */
int modules_count(void);

#endif
