/* The device under test. ptxvm is one for the whole process and reads its settings when it starts, so each test starts it
 * anew. A GPU is kept open between tests: its context and its modules take longer than most of them. */
#include "device/under_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boards/boards.h"
#include "device/device_buffer.h"
#include "driver/cuda/drivers.h"
#include "driver/cuda/open.h"
#include "host_ref/host_ref.h"
#include "ptxgen/sm.h"
#include "support/environment.h"

static struct {
    bool on_gpu;           /* the running test is one of SUITEOnGpu */
    bool launches_nothing; /* it says so itself */
    qdnnHandle_t kept;     /* keeps the GPU's context */
    qdnnDeviceInfo_t gpu;
    long launches; /* on it */
} under_test;

static const char *named_device(void)
{
    const char *device = getenv("QDNN_DEVICE");
    return device && *device ? device : "auto";
}

static bool gpu_required(void)
{
    const char *text = getenv("QDNN_REQUIRE_GPU");
    return text && *text && strcmp(text, "0") != 0;
}

static bool names_a_gpu(void)
{
    return strncmp(named_device(), "cuda", 4) == 0;
}

bool device_is_gpu(void)
{
    return under_test.on_gpu || gpu_required() || names_a_gpu();
}

/* ---- The GPU ---- */

static CUresult (*real_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, CUstream, void **, void **);

static CUresult counting_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                CUstream stream, void **params, void **extra)
{
    __atomic_fetch_add(&under_test.launches, 1, __ATOMIC_RELAXED);
    return real_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params,
                       extra);
}

/* Puts the counter into the library's table of the loaded driver. */
static void count_launches(void)
{
    const driver *loaded = NULL;
    driver_problem problem;
    if (driver_open_cuda(&loaded, &problem) != QDNN_STATUS_SUCCESS)
        return;
    cuda_api *api = (cuda_api *)(uintptr_t)&loaded->api;
    if (api->cuLaunchKernel != counting_launch)
        real_launch = api->cuLaunchKernel;
    api->cuLaunchKernel = counting_launch;
}

static void gpu_close(void)
{
    if (under_test.kept)
        qdnnDestroy(under_test.kept);
    under_test.kept = NULL;
    cuda_close_all();
}

/* Which driver it was is part of the result: a libcuda.so.1 may be ptxvm. */
static void gpu_found(void)
{
    static bool registered;
    if (!registered)
        registered = atexit(gpu_close) == 0;
    count_launches();
    under_test.gpu = (qdnnDeviceInfo_t){.size = sizeof under_test.gpu};
    if (CHECK_QDNN(qdnnGetDeviceInfo(under_test.kept, &under_test.gpu)))
        printf("device %d: %s, %s, CUDA %d\n", under_test.gpu.ordinal, under_test.gpu.name,
               under_test.gpu.target, under_test.gpu.driverVersion);
}

static bool gpu_open(char *reason, size_t size)
{
    if (under_test.kept)
        return true;
    if (!names_a_gpu() && strcmp(named_device(), "auto") != 0) {
        snprintf(reason, size, "QDNN_DEVICE is %s, which is no GPU", named_device());
        return false;
    }
    cuda_close_all(); /* other tests had settings of their own */
    if (qdnnCreateOn(&under_test.kept, names_a_gpu() ? named_device() : "cuda") != QDNN_STATUS_SUCCESS) {
        under_test.kept = NULL;
        qdnnGetLastErrorString(reason, size);
        return false;
    }
    gpu_found();
    return true;
}

/* ---- A test ---- */

#ifdef QDNN_PTXVM
static const bool has_ptxvm = true;
#else
static const bool has_ptxvm = false;
#endif

/* Reports what is missing. */
static bool device_is_there(void)
{
    char reason[512] = "";
    if (!device_is_gpu() && !has_ptxvm)
        test_skip("this build has no ptxvm in it");
    if (!device_is_gpu())
        return has_ptxvm;
    if (gpu_open(reason, sizeof reason))
        return true;
    if (gpu_required())
        FAIL("a GPU is required, and there is none: %s", reason);
    else
        test_skip("no GPU: %s", reason);
    return false;
}

void device_run(void (*body)(int), int index, bool on_gpu)
{
    under_test.on_gpu = on_gpu;
    under_test.launches_nothing = false;
    under_test.launches = 0;
    if (device_is_there()) {
        body(index);
        if (device_is_gpu() && !under_test.launches && !under_test.launches_nothing && !test_is_over())
            FAIL("the test launched nothing on the GPU");
    }
    under_test.on_gpu = false;
}

void device_launches_nothing(void)
{
    under_test.launches_nothing = true;
}

/* ---- A handle ---- */

/* "vm:sm_80" and "vm:a100" name the SM of all cases. */
static const char *named_sm(void)
{
    static char sm[16];
    const char *name = strncmp(named_device(), "vm:", 3) == 0 ? named_device() + 3 : NULL;
    const board *named = name ? board_find(name) : NULL;
    if (!named)
        return name;
    board_sm_name(named, sm, sizeof sm);
    return sm;
}

const char *device_sm(const char *sm)
{
    return device_is_gpu() ? under_test.gpu.target : named_sm() ? named_sm() : sm;
}

int device_sm_number(const char *sm)
{
    return atoi(device_sm(sm) + 3);
}

bool device_is_for(const char *sm)
{
    const int mine = device_sm_number(sm), wanted = atoi(sm + 3);
    return ref_tensor_family_of(mine) == ref_tensor_family_of(wanted) &&
           ref_tensor_has(mine, QDNN_DATA_F8E4M3) == ref_tensor_has(wanted, QDNN_DATA_F8E4M3);
}

static qdnnHandle_t begin_on_gpu(void)
{
    char reason[512] = "";
    qdnnHandle_t handle = NULL;
    test_push_note("on %s, %s", under_test.gpu.name, under_test.gpu.target);
    environment_set("QDNN_BUNDLE_DIR=");
    if (!gpu_open(reason, sizeof reason)) /* it was lost in the same test */
        FAIL("%s", reason);
    else
        CHECK_QDNN(qdnnCreateOn(&handle, names_a_gpu() ? named_device() : "cuda"));
    return handle;
}

qdnnHandle_t device_begin_logged(const char *sm, int seed, const char *checks, const char *log)
{
    char device[32], settings[512];
    qdnnHandle_t handle = NULL;
    if (device_is_gpu())
        return begin_on_gpu();
    test_push_note("on ptxvm, %s, seed %d", device_sm(sm), seed);
    snprintf(device, sizeof device, "%s%s", named_sm() ? "" : "vm:", named_sm() ? named_device() : sm);
    snprintf(settings, sizeof settings,
             "QDNN_BUNDLE_DIR= PTXVM_FAULT= PTXVM_SEED=%d PTXVM_CHECK=%s PTXVM_LOG=%s", seed,
             strcmp(checks, "all") == 0 ? "all,same" : checks, log);
    gpu_close();
    environment_set(settings);
    CHECK_QDNN(qdnnCreateOn(&handle, device));
    return handle;
}

qdnnHandle_t device_begin(const char *sm, int seed, const char *checks)
{
    return device_begin_logged(sm, seed, checks, "stderr");
}

/* A GPU that no longer responds is closed: the next test gets a new context. */
void device_end(qdnnHandle_t handle)
{
    const bool keeps = device_is_gpu() && handle && qdnnSynchronize(handle) == QDNN_STATUS_SUCCESS;
    qdnnDestroy(handle);
    if (!keeps)
        gpu_close();
    environment_restore();
    test_pop_note();
}
