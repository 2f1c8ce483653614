/* Calls of the library that must succeed, and device memory. */
#include "common.h"

#include <stdlib.h>

void ok(qdnnStatus_t status)
{
    char why[1024] = "";
    if (status == QDNN_STATUS_SUCCESS)
        return;
    qdnnGetLastErrorString(why, sizeof why);
    fail("%s", *why ? why : qdnnGetErrorString(status));
}

void *device_take(qdnnHandle_t handle, size_t bytes)
{
    void *memory = NULL;
    ok(qdnnMalloc(handle, &memory, bytes));
    return memory;
}

void *device_copy(qdnnHandle_t handle, const void *host, size_t bytes)
{
    void *memory = device_take(handle, bytes);
    ok(qdnnCopyToDevice(handle, memory, host, bytes));
    return memory;
}

void *device_ramp(qdnnHandle_t handle, int bytes, uint64_t first, uint64_t step, int64_t count)
{
    uint32_t *small = take((size_t)(count * bytes));
    uint64_t *large = (uint64_t *)(void *)small;
    for (int64_t i = 0; i < count; i++, first += step) {
        if (bytes == 8)
            large[i] = first;
        else
            small[i] = (uint32_t)first;
    }
    void *memory = device_copy(handle, small, (size_t)(count * bytes));
    free(small);
    return memory;
}
