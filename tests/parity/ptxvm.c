/* ptxvm for the time of a test. The interpreter is one for the whole process and reads its settings when it
 * starts, so each test closes it and starts it anew. */
#include "parity/ptxvm.h"

#include <stdio.h>
#include <string.h>

#include "device/device_buffer.h"
#include "driver/cuda/open.h"
#include "support/environment.h"

qdnnHandle_t ptxvm_begin(const char *sm, int seed, const char *checks, const char *log)
{
    char device[32], settings[512];
    qdnnHandle_t handle = NULL;
    snprintf(device, sizeof device, "vm:%s", sm);
    snprintf(settings, sizeof settings,
             "QDNN_REQUIRE_GPU= QDNN_BUNDLE_DIR= PTXVM_FAULT= PTXVM_SEED=%d PTXVM_CHECK=%s PTXVM_LOG=%s",
             seed, strcmp(checks, "all") == 0 ? "all,same" : checks, log);
    cuda_close_all();
    environment_set(settings);
    return CHECK_QDNN(qdnnCreateOn(&handle, device)) ? handle : NULL;
}

void ptxvm_end(qdnnHandle_t handle)
{
    qdnnDestroy(handle);
    cuda_close_all();
    environment_restore();
}
