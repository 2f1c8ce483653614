/* A fake driver: its version and devices, and how its functions are looked up. */
#include "doubles/libcuda.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_VALUE = 1, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

/* Device i is of compute capability 8.i; its contexts are addresses in here. */
static char contexts[16];
static CUcontext current;

CUresult cuInit(unsigned int flags)
{
    return flags ? INVALID_VALUE : FAKE_INIT;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = FAKE_VERSION;
    return 0;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = FAKE_COUNT;
    return 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal < FAKE_COUNT ? 0 : INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, "fake GPU %d", device);
    return 0;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8 : device;
    return 0;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return 0;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    if (current)
        *device = (CUdevice)((char *)current - contexts);
    return current ? 0 : INVALID_CONTEXT;
}

/* As a program's own CUDA code would: a context of the device becomes current, or none for a negative number.
 */
EXPORTED CUcontext fake_set_current(int device);
CUcontext fake_set_current(int device)
{
    return current = device < 0 ? NULL : (CUcontext)(void *)&contexts[device];
}

#if FAKE_FIND
static CUresult find(const char *name, void **function, int version, unsigned long long flags)
{
    static const struct {
        const char *name;
        int since;
        uintptr_t function;
    } rows[] = {
#define FUNCTION(name, suffix, since, params) {#name, since, (uintptr_t)name##suffix},
#include "driver/cuda/cuda.def"
#undef FUNCTION
    };
    *function = NULL;
    if (flags)
        return INVALID_VALUE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name) && rows[i].since == version && strcmp(name, FAKE_LACKS) != 0)
            *function = (void *)rows[i].function;
    return *function ? 0 : NOT_FOUND;
}
#endif

#if FAKE_FIND == 4
EXPORTED CUresult cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags);
CUresult cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    return find(name, function, version, flags);
}
#elif FAKE_FIND == 5
EXPORTED CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                      unsigned long long flags, int *found);
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                             int *found)
{
    CUresult code = find(name, function, version, flags);
    *found = code ? 1 : 0;
    return code;
}
#endif
