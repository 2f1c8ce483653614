/* A libcuda.so.1 that stands for a GPU's driver: it forwards to ptxvm's, but does not say so, and the library takes it for a
 * GPU. So the tests of a GPU run without one:
 *
 *   QDNN_LIBCUDA=build/tests/doubles/gpu/libcuda.so.1 QDNN_REQUIRE_GPU=1 ./run test -R OnGpu
 *
 * PTXVM_SM is its SM. TEST_GPU_DAMAGE=N flips one bit of what the N-th launch of the process (counted from 1) has written, or
 * the first one after it that changes a byte: a test that does not fail then proves nothing on a GPU. Not for threads. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda/cuda.h"

#define EXPORTED __attribute__((visibility("default")))

enum { NOT_INITIALIZED = 3, MEMORY_MAX = 4096 };

typedef CUresult get_fn(const char *name, void **function, int version, unsigned long long flags, int *found);

/* ptxvm's functions, as cuda.def lists them. */
static cuda_api vm;

/* What is allocated now. */
static struct {
    CUdeviceptr at;
    size_t bytes;
    uint8_t *before; /* a copy */
} memory[MEMORY_MAX];
static int n_memory;

static CUresult device_name(char *name, int size, CUdevice device)
{
    int major = 0, minor = 0;
    vm.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    vm.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    snprintf(name, (size_t)size, "the tests' own GPU %d.%d", major, minor);
    return 0;
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes)
{
    CUresult code = vm.cuMemAlloc(pointer, bytes);
    if (code == 0 && n_memory < MEMORY_MAX) {
        memory[n_memory].at = *pointer;
        memory[n_memory++].bytes = bytes;
    }
    return code;
}

static CUresult release(CUdeviceptr pointer)
{
    for (int i = 0; i < n_memory; i++)
        if (memory[i].at == pointer) {
            memory[i] = memory[--n_memory];
            break;
        }
    return vm.cuMemFree(pointer);
}

/* ---- Damage ---- */

static void copy_to_host(void *to, CUdeviceptr from, size_t bytes)
{
    vm.cuMemcpyDtoHAsync(to, from, bytes, NULL);
    vm.cuStreamSynchronize(NULL);
}

static void remember(void)
{
    vm.cuCtxSynchronize();
    for (int i = 0; i < n_memory; i++) {
        memory[i].before = malloc(memory[i].bytes + 1);
        if (memory[i].before)
            copy_to_host(memory[i].before, memory[i].at, memory[i].bytes);
    }
}

/* Flips a bit of the byte in the middle of those that changed in an allocation; returns whether any did. */
static bool damage_one(int i)
{
    uint8_t *after = malloc(memory[i].bytes + 1);
    size_t changed = 0, wanted = 0;
    if (!after || !memory[i].before)
        abort();
    copy_to_host(after, memory[i].at, memory[i].bytes);
    for (size_t k = 0; k < memory[i].bytes; k++)
        changed += after[k] != memory[i].before[k];
    for (size_t k = 0; k < memory[i].bytes && changed; k++)
        if (after[k] != memory[i].before[k] && wanted++ == changed / 2) {
            const uint8_t damaged = after[k] ^ 0x10;
            vm.cuMemcpyHtoDAsync(memory[i].at + k, &damaged, 1, NULL);
            vm.cuStreamSynchronize(NULL);
        }
    free(after);
    return changed > 0;
}

static bool damage(void)
{
    bool done = false;
    vm.cuCtxSynchronize();
    for (int i = 0; i < n_memory; i++) {
        done = done || damage_one(i);
        free(memory[i].before);
        memory[i].before = NULL;
    }
    return done;
}

static bool done;

/* Whether the launch that follows is to be damaged. */
static bool damages_next(void)
{
    static long launches;
    const char *text = getenv("TEST_GPU_DAMAGE");
    const long from = text ? atol(text) : 0;
    const bool damages = !done && from > 0 && ++launches >= from;
    if (damages)
        remember();
    return damages;
}

static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
                       void **params, void **extra)
{
    const bool damages = damages_next();
    CUresult code = vm.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                      stream, params, extra);
    if (damages)
        done = damage();
    return code;
}

static CUresult launch_behind(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    const bool damages = damages_next();
    CUresult code = vm.cuLaunchKernelEx(config, function, params, extra);
    if (damages)
        done = damage();
    return code;
}

/* ---- Functions by name ---- */

static bool open_ptxvm(get_fn **get)
{
    static get_fn *found;
    void *library = found ? NULL : dlopen(PTXVM_LIBCUDA, RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (function)
        memcpy(&found, &function, sizeof function);
    *get = found;
    return found != NULL;
}

static bool fill(get_fn *get)
{
    bool ok = true;
    int found;
#define FUNCTION(name, suffix, since, params)                                                                \
    {                                                                                                        \
        void *function = NULL;                                                                               \
        ok = get(#name, &function, since, 0, &found) == 0 && function && ok;                                 \
        memcpy(&vm.name, &function, sizeof function);                                                        \
    }
#include "driver/cuda/cuda.def"
#undef FUNCTION
    return ok;
}

EXPORTED CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                      unsigned long long flags, int *found);
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                             int *found)
{
    static const struct {
        const char *name;
        uintptr_t function;
    } ours[] = {{"cuDeviceGetName", (uintptr_t)device_name},
                {"cuMemAlloc", (uintptr_t)allocate},
                {"cuMemFree", (uintptr_t)release},
                {"cuLaunchKernel", (uintptr_t)launch},
                {"cuLaunchKernelEx", (uintptr_t)launch_behind}};
    get_fn *get = NULL;
    if (!open_ptxvm(&get) || (!vm.cuInit && !fill(get)))
        return NOT_INITIALIZED;
    CUresult code = get(name, function, version, flags, found);
    for (size_t i = 0; i < sizeof ours / sizeof *ours && code == 0; i++)
        if (strcmp(ours[i].name, name) == 0)
            *function = (void *)ours[i].function;
    return code;
}
