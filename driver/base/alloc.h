/* Host memory of the library: base/alloc.h, and the same for the PTX builder. */
#ifndef QDNN_DRIVER_ALLOC_H
#define QDNN_DRIVER_ALLOC_H

#include "base/alloc.h"
#include "ptxgen/ptx.h"

extern const ptx_options alloc_for_ptx;

/* alloc_use, once what the library keeps of destroyed objects is freed by the allocator that it came from. */
void alloc_set_hook(alloc_hook hook, void *user);

#endif
