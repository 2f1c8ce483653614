/* The targets that PTX can be written for, and the resources of each GPU generation. */
#ifndef PTXGEN_SM_H
#define PTXGEN_SM_H

#include <stdbool.h>
#include <stdint.h>

/* sm_100 runs on all later GPUs; sm_100f on its family (10.0, 10.3); sm_100a only on 10.0. */
typedef enum ptx_flavour { PTX_PLAIN, PTX_FAMILY, PTX_ARCH } ptx_flavour;

typedef struct ptx_sm {
    const char *name;      /* "sm_90a" */
    uint16_t number;       /* 90 */
    uint8_t flavour;       /* ptx_flavour */
    uint8_t version;       /* lowest .version that supports it, times ten: 63 is 6.3 */
    uint32_t shared_block; /* shared memory per block with opt-in, bytes */
    uint32_t shared_sm;    /* shared memory per SM, bytes */
    uint32_t registers_sm; /* 32-bit registers per SM */
    uint16_t threads_sm;   /* resident threads per SM */
    uint8_t blocks_sm;     /* resident blocks per SM */
    bool has_fp8;          /* mma takes FP8 at the rate of tensor cores */
    bool has_f32x2;        /* fma on pairs of f32 is at full rate */
} ptx_sm;

/* Shared memory per block without opt-in, threads per block and registers per thread; the same on all SMs. */
enum { PTX_SHARED_DEFAULT = 48 * 1024, PTX_THREADS_BLOCK = 1024, PTX_REGISTERS_THREAD = 255 };

int ptx_sm_count(void);
const ptx_sm *ptx_sm_get(int index);
/* By name: "90", "sm_90a", "compute_90". Null if there is none. */
const ptx_sm *ptx_sm_find(const char *name);
/* The best target for a device of this compute capability (9, 0): the newest and most specific one that runs
 * on it. */
const ptx_sm *ptx_sm_for_device(int major, int minor);
/* Whether PTX for the target runs on a device of this compute capability. */
bool ptx_sm_runs_on(const ptx_sm *target, int major, int minor);

#endif
