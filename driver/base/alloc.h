/* Host memory of the library: base/alloc.h, also installed for the PTX builder. */
#ifndef QDNN_DRIVER_ALLOC_H
#define QDNN_DRIVER_ALLOC_H

#include "base/alloc.h"
#include "ptxgen/ptx.h"

extern const ptx_options alloc_for_ptx;

/* Calls alloc_use, after freeing the memory kept for destroyed objects with the allocator that it came
 * from. */
void alloc_set_hook(alloc_hook hook, void *user);

#endif
