/* The driver as a program finds it: libcuda.so.1 of the build, opened by name, its functions looked up with
 * cuGetProcAddress. Every test opens it anew, with the settings it wants, and closes it. */
#ifndef TEST_CUDA_DRIVER_H
#define TEST_CUDA_DRIVER_H

#include "ptxvm/cuda/cuda_abi.h"
#include "test.h"

/* Every function, under its full name. */
typedef struct driver_functions {
#define F(base, v, since, needs, params, args)     CUresult(*base##v) params;
#define S(base, v, pt, since, needs, params, args) CUresult(*base##v) params, (*base##v##_##pt)params;
#define U(base, v, since)
#define UP(base, v, pt, since)
#include "ptxvm/cuda/functions.def"
#undef F
#undef S
#undef U
#undef UP
} driver_functions;
extern driver_functions cu;

/* Opens the driver and calls cuInit. settings: "PTXVM_SM=sm_80 PTXVM_DEVICES=2", or null. False: reported. */
bool driver_open(const char *settings);
/* The same, and a context on device 0 that is current. */
bool driver_open_context(const char *settings);
void driver_close(void);
void *driver_symbol(const char *name); /* by dlsym */
extern CUcontext driver_context;

/* A call that must succeed, and one that must fail with a code. */
#define CU(call)          CHECK_EQ_I64((int64_t)(call), 0)
#define CU_IS(call, code) CHECK_EQ_I64((int64_t)(call), (int64_t)(code))

/* Kernels in PTX: out[i] = in[i] + value for i < n ("add"); out[0] += value ("bump", one thread); a store to
 * an address
 * ("poke"); a trap ("die"); a loop without end ("spin"); static and dynamic shared memory ("share"). */
extern const char test_ptx[];
CUfunction test_function(CUmodule *module, const char *name);
/* Launches one block of one thread with the parameters. */
CUresult launch_one(CUfunction function, CUstream stream, void **params);
CUdeviceptr new_u32(size_t n, uint32_t value);
uint32_t read_u32(CUdeviceptr address);

#endif
