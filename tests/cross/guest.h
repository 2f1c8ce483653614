/* PTX that other compilers wrote, running on ptxvm: a device with one module on it, and what tests need of it. */
#ifndef QDNN_CROSS_GUEST_H
#define QDNN_CROSS_GUEST_H

#include "ptxvm/ptxvm.h"

enum { GUEST_PRINTED_MAX = 1 << 16 };

/* How ptxvm runs: results may not depend on seed, threads and checks. */
typedef struct guest_setting {
    const char *sm;
    uint64_t seed;
    int threads;
    unsigned checks; /* PTXVM_CHECK_*: a finding makes a run fail */
} guest_setting;

typedef struct guest {
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_status status;             /* of the last launch */
    char printed[GUEST_PRINTED_MAX]; /* what the guest printed so far */
    size_t n_printed;
} guest;

/* Loads the text; false, with a failure reported, when it cannot. guest_close is needed either way. */
bool guest_open(guest *g, const guest_setting *setting, const char *ptx, size_t length);
void guest_close(guest *g);

/* Memory of the device with these bytes in it (zeros where from is null). It lives until guest_close. */
ptxvm_address guest_put(guest *g, const void *from, uint64_t bytes);
void guest_get(guest *g, void *to, ptxvm_address from, uint64_t bytes);
/* The address of a global variable, which has to be of that size. */
ptxvm_address guest_global(guest *g, const char *name, uint64_t bytes);

typedef struct guest_shape {
    uint32_t blocks, threads;
    uint64_t shared_bytes;
    bool cooperative;
} guest_shape;

/* Runs a kernel to its end, whatever that is; it is in g->status. */
void guest_try(guest *g, const char *kernel, guest_shape shape, const void *params, uint64_t bytes);
/* Runs a kernel that has to end well. False, with a failure reported, when it does not. */
bool guest_run(guest *g, const char *kernel, guest_shape shape, const void *params, uint64_t bytes);

#endif
