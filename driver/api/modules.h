/* Loaded kernels, shared by the handles of a context: one cache of bounded size per process. */
#ifndef QDNN_DRIVER_MODULES_H
#define QDNN_DRIVER_MODULES_H

#include "driver/api/handle.h"
#include "kernels/kernels.h"

enum { MODULES_MAX = 256 };

typedef struct module {
    const kernel_row *row; /* identified by row, specification and context (with its SM) */
    kernel_spec spec;
    const context *context;
    CUmodule cuda;
    CUfunction function;
    int version; /* of its PTX, times ten */
    bool from_bundle;
    double emit_seconds, load_seconds;
    int users;
    bool cached;    /* it stays loaded when its last user releases it */
    uint64_t stamp; /* when it was last requested */
} module;

/* Gets the loaded kernel of a normal specification: from the cache, from the handle's bundle, or emitted now.
 * The handle's context is current. *was_loaded tells whether it was in the cache. */
qdnnStatus_t module_acquire(qdnnHandle_t handle, const kernel_row *row, const kernel_spec *spec, module **out,
                            bool *was_loaded);
void module_release(module *m);

/* An image that is none of the cache's: PTX or a cubin, one kernel of it, and the dynamic shared memory that its
 * launches take. */
typedef struct module_image {
    const void *data;
    const char *entry;
    unsigned shared;
} module_image;

/* Loads it; `name` names it in messages. The handle's context is current. */
qdnnStatus_t module_load_image(qdnnHandle_t handle, const char *name, const module_image *image,
                               CUmodule *cuda, CUfunction *function);
void module_unload_image(const context *c, CUmodule cuda);

/* Unloads the modules of a context when its last handle is destroyed; none of them is in use. */
void modules_drop(const context *c);

/* The number of modules in the cache. */
int modules_count(void);

#endif
