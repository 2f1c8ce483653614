/* Bundles and old drivers through the public API: which image a plan loads, and what happens if the driver
 * rejects it. */
#include <stdlib.h>
#include <string.h>

#include "bench/idle_driver.h"
#include "driver/api/handle.h"
#include "driver/api/modules.h"
#include "scene.h"
#include "support/assemble.h"
#include "support/environment.h"
#include "support/process.h"

/* A bundle of every kernel in its default types and groups for sm_90. */
static void write_bundle(char *directory, size_t size, const char *form)
{
    temp_dir_make(directory, size);
    process_result made = process_run(
        "%s/ptxgen/ptxgen --all --sm 90 --set data=f32,scale=f32,group_size=128 --emit %s --outdir %s",
        QDNN_BINARY_DIR, form, directory);
    CHECK_EQ_I64(made.status, 0);
    process_free(&made);
}

static char warnings[4096];

static void listen(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    (void)severity, (void)user, (void)debug;
    strncat(warnings, message, sizeof warnings - strlen(warnings) - 1);
}

/* A plan on ptxvm with the bundle, and whether its kernel came from there. */
static void check_plan(const char *settings, const char *directory, bool from_bundle)
{
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    vm_begin(settings);
    if (basics_create(&handle, &t, &q)) {
        OK(qdnnSetBundle(handle, directory));
        OK(qdnnSetCallback(QDNN_SEVERITY_WARNING_BIT, NULL, listen));
        OK(qdnnCreateQuantizePlan(handle, t, q, &plan));
        OK(qdnnSetCallback(0, NULL, NULL));
        OK(qdnnGetPlanInfo(plan, &info));
        CHECK(info.fromBundle == from_bundle);
        OK(qdnnDestroyPlan(plan));
    }
    basics_destroy(handle, t, q);
    vm_end();
}

TEST_CASE(ApiBundles, KernelsThatTheDriverRefusesAreEmitted)
{
    NEED_PTXVM;
    char directory[256];
    write_bundle(directory, sizeof directory, "ptx");
    warnings[0] = 0;
    check_plan("PTXVM_SM=sm_90", directory, true);
    CHECK_EQ_STR(warnings, "");
    check_plan("PTXVM_SM=sm_90 PTXVM_FAULT=cuModuleLoadDataEx:1=218", directory, false);
    CHECK_HAS(warnings, "quantize_int4 sm_90");
    CHECK_HAS(warnings, "the bundle's kernel is not used");
    temp_dir_remove(directory);
}

/* The kernel for sm_90 is PTX 7.8, which a driver of CUDA 11.0 cannot read: it is not even tried. */
TEST_CASE(ApiBundles, OldDriversAreNotAskedToReadNewPtx)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    qdnnPlan_t plan = NULL;
    vm_begin("PTXVM_SM=sm_90 PTXVM_DRIVER_VERSION=11000 PTXVM_FAULT=cuModuleLoadDataEx:1=700");
    if (basics_create(&handle, &t, &q)) {
        CHECK_STATUS_IS(qdnnCreateQuantizePlan(handle, t, q, &plan),
                        QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD);
        CHECK_HAS(last_sentence(), "7.8");
        CHECK_HAS(last_sentence(), "7.0");
        CHECK(!plan);
    }
    basics_destroy(handle, t, q);
    vm_end();
}

/* ---- Which image a GPU gets: a driver that only remembers it ---- */

static bool got_cubin;

static CUresult load(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                     void **values)
{
    (void)count, (void)options, (void)values;
    got_cubin = memcmp(image, "\177ELF", 4) == 0;
    *module = (CUmodule)64;
    return 0;
}

static void check_device(const char *directory, int minor, bool is_vm, bool cubin)
{
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    cuda_api remembering = idle_driver;
    remembering.cuModuleLoadDataEx = load;
    cuda_device device = idle_device(&remembering);
    device.minor = minor;
    device.is_vm = is_vm;
    OK(handle_create(&device, &handle));
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnSetBundle(handle, directory));
    OK(qdnnCreateQuantizePlan(handle, t, q, &plan));
    OK(qdnnGetPlanInfo(plan, &info));
    CHECK(got_cubin == cubin);
    CHECK(info.fromBundle == cubin);
    OK(qdnnDestroyPlan(plan));
    basics_destroy(handle, t, q);
}

/* A cubin is for one compute capability: 9.1, which runs the PTX of 9.0, must not get it, and neither must ptxvm. */
TEST_CASE(ApiBundles, CubinsAreForTheirDevice)
{
    char directory[256], toolkit[256], settings[300];
    temp_dir_make(toolkit, sizeof toolkit);
    stand_in_ptxas(toolkit);
    snprintf(settings, sizeof settings, "CUDA_HOME=%s", toolkit);
    environment_set(settings);
    write_bundle(directory, sizeof directory, "cubin");
    environment_restore();
    check_device(directory, 0, false, true);
    check_device(directory, 1, false, false);
    check_device(directory, 0, true, false);
    temp_dir_remove(toolkit);
    temp_dir_remove(directory);
}
