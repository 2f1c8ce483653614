/* Every host allocation of the library fails once, through every public call: the call says so, writes
 * nothing and leaks nothing, and the same call then succeeds. */
#include <string.h>

#include "blocks.h"
#include "driver/api/modules.h"
#include "kernels/kernels.h"
#include "qdnn/emit.h"
#include "formats/sample.h"
#include "scene.h"
#include "support/process.h"

/* A call on an object of that many bytes, which must not change if the call fails. */
typedef qdnnStatus_t call_fn(void *object, const void *argument);

/* Makes the call's first allocation fail, then its second, and so on until the call succeeds; returns how
 * many there were. Of very many allocations, all of the first and ever fewer of the later ones are made to
 * fail, except in the full build. */
static int fail_each(call_fn *call, void *object, size_t bytes, const void *argument)
{
    enum { MANY = 40000, EACH = 32 }; /* a bundle of all kernels takes more than 10000 */
    char before[sizeof(scene)];
    for (int nth = 1; nth < MANY; nth += sample_is_full() ? 1 : 1 + nth / EACH) {
        int live =
            blocks_live() - modules_count(); /* a kernel that is loaded stays, whatever comes after it */
        memcpy(before, object, bytes);
        blocks_fail(nth);
        qdnnStatus_t status = call(object, argument);
        if (blocks_failed() == 0) {
            OK(status);
            return nth - 1;
        }
        test_push_note("allocation %d", nth);
        CHECK_STATUS_IS(status, QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED);
        CHECK_HAS(last_sentence(), "memory");
        CHECK_EQ_I64(blocks_live() - modules_count(), live);
        bool same = CHECK_EQ_MEM(object, before, bytes);
        test_pop_note();
        if (status == QDNN_STATUS_SUCCESS || !same)
            return nth; /* reported; the next would add nothing */
    }
    FAIL("the call allocates without end");
    return MANY;
}

static void begin(void)
{
    vm_begin(NULL);
    blocks_begin();
}

static void end(void)
{
    blocks_fail(0);
    CHECK_EQ_I64(blocks_live(), 0);
    blocks_end();
    vm_end();
}

static qdnnStatus_t run_step(void *object, const void *argument)
{
    const scene_step *step = argument;
    return step->run(object, step->which);
}

/* Which steps allocate at all. */
static bool allocates(const scene_step *step)
{
    return strstr(step->name, "Create") || strstr(step->name, "Add") || strstr(step->name, "Compile") ||
           strstr(step->name, "With") || !strcmp(step->name, "qdnnComputeScales") ||
           !strcmp(step->name, "qdnnQuantize") || !strcmp(step->name, "qdnnDequantize");
}

TEST_EACH(ApiMemory, EveryStepFails, scene_kind_count, scene_kind_name)
{
    NEED_PTXVM;
    scene s;
    begin();
    scene_begin(&s, &scene_kinds[index], NULL, 3);
    for (int i = 0; i < scene_step_count; i++) {
        test_push_note("%s", scene_steps[i].name);
        int allocations = fail_each(run_step, &s, sizeof s, &scene_steps[i]);
        CHECK(allocates(&scene_steps[i]) == (allocations > 0));
        test_pop_note();
    }
    scene_compare(&s);
    scene_end(&s);
    end();
}

/* One-shot calls emit and load the first time: here nothing has been loaded by a plan before. */
TEST_CASE(ApiMemory, OneShotCallsFail)
{
    NEED_PTXVM;
    scene s;
    begin();
    scene_begin(&s, &scene_kinds[SCENE_ZERO_POINT], NULL, 4);
    for (int i = 0; i < scene_step_count; i++) {
        if (strstr(scene_steps[i].name, "Plan") || strstr(scene_steps[i].name, "Execute") ||
            strstr(scene_steps[i].name, "Schedule") || strstr(scene_steps[i].name, "workspace") ||
            strstr(scene_steps[i].name, "Program") || strstr(scene_steps[i].name, "arena"))
            continue;
        test_push_note("%s", scene_steps[i].name);
        int allocations = fail_each(run_step, &s, sizeof s, &scene_steps[i]);
        CHECK(!strstr(scene_steps[i].name, "uantize") || allocations > 3);
        test_pop_note();
    }
    CHECK_EQ_MEM(s.got[1][QDNN_OPERAND_CODES], s.expected[QDNN_OPERAND_CODES], s.bytes[QDNN_OPERAND_CODES]);
    scene_end(&s);
    end();
}

/* With settings that are not the defaults, as far as the kernel takes them. */
static qdnnStatus_t emit(void *object, const void *argument)
{
    kernel_spec spec;
    const kernel_row *row = kernel_open(argument, &spec);
    const char *settings[3] = {NULL};
    int count = 0;
    if (kernel_takes(row, "data"))
        settings[count++] = "data=f16";
    if (kernel_takes(row, "group_size") && !kernel_find_alias(argument)) /* which may fix it */
        settings[count++] = "group_size=64";
    return qdnnEmitPtx(argument, "sm_90", settings, object);
}

TEST_CASE(ApiMemory, EmittingFails)
{
    begin();
    for (int i = 0; qdnnGetOperationName(i); i++) {
        qdnnPtx_t text;
        memset(&text, 0x5a, sizeof text);
        test_push_note("%s", qdnnGetOperationName(i));
        bool emitted = CHECK(fail_each(emit, &text, sizeof text, qdnnGetOperationName(i)) > 2);
        test_pop_note();
        if (!emitted)
            continue;
        qdnnFreePtx(&text);
        CHECK(!text.ptx);
        qdnnFreePtx(&text);
    }
    end();
}

static qdnnStatus_t emit_operation(void *object, const void *argument)
{
    const char *const sizes[] = {"n=301", NULL};
    return qdnnEmitOperation(argument, "sm_90", NULL, sizes, object);
}

TEST_CASE(ApiMemory, EmittingOperationsFails)
{
    begin();
    qdnnEmitted_t *emitted = NULL;
    if (CHECK(fail_each(emit_operation, &emitted, sizeof emitted, "train.fake_quantize") > 6))
        CHECK_EQ_I64(emitted->launchCount, 3);
    qdnnFreeEmitted(emitted);
    end();
}

static qdnnStatus_t create_matmul(void *object, const void *argument)
{
    (void)argument;
    return qdnnCreateMatmulDescriptor(object);
}

TEST_CASE(ApiMemory, MatmulDescriptorsFail)
{
    qdnnMatmulDescriptor_t matmul = NULL;
    begin();
    CHECK_EQ_I64(fail_each(create_matmul, &matmul, sizeof matmul, NULL), 1);
    OK(qdnnDestroyMatmulDescriptor(matmul));
    end();
}

/* ---- Bundles ---- */

typedef struct bundle_call {
    qdnnHandle_t handle;
    char directory[128];
} bundle_call;

static qdnnStatus_t set_bundle(void *object, const void *argument)
{
    (void)argument;
    bundle_call *call = object;
    return qdnnSetBundle(call->handle, call->directory);
}

/* A bundle is optional: where there is no memory for one of its files, the kernel is emitted instead. */
static void fail_plans(qdnnHandle_t handle, qdnnTensorDescriptor_t t, qdnnQuantDescriptor_t q)
{
    qdnnPlanInfo_t info = {.size = sizeof info};
    int failed = 1, emitted = 0;
    for (int nth = 1; failed && nth < 1000; nth++) {
        qdnnPlan_t plan = NULL;
        blocks_fail(nth);
        qdnnStatus_t status = qdnnCreateQuantizePlan(handle, t, q, &plan);
        failed = blocks_failed();
        blocks_fail(0);
        if (status != QDNN_STATUS_SUCCESS) {
            CHECK_STATUS_IS(status, QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED);
            CHECK(failed && !plan);
            continue;
        }
        OK(qdnnGetPlanInfo(plan, &info));
        emitted += !info.fromBundle;
        CHECK(info.fromBundle || failed);
        OK(qdnnDestroyPlan(plan));
        modules_drop(handle->context); /* so that the next does not find it in the cache */
    }
    CHECK(info.fromBundle);
    CHECK(emitted > 0);
}

TEST_CASE(ApiMemory, BundlesFail)
{
    NEED_PTXVM;
    bundle_call call = {0};
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    begin();
    temp_dir_make(call.directory, sizeof call.directory);
    process_result made = process_run(
        "%s/ptxgen/ptxgen --all --sm 90 --set data=f32 --set scale=f32 --set group_size=128 --outdir %s",
        QDNN_BINARY_DIR, call.directory);
    CHECK_EQ_I64(made.status, 0);
    process_free(&made);
    OK(qdnnCreateOn(&call.handle, "vm:sm_90"));
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&q));
    CHECK(fail_each(set_bundle, &call, sizeof call, NULL) > 3);
    fail_plans(call.handle, t, q);
    blocks_fail(1);
    CHECK_STATUS_IS(qdnnSetBundle(call.handle, call.directory), QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED);
    blocks_fail(0);
    CHECK_STATUS_IS(qdnnSetBundle(call.handle, "/dev/null/no_folder"), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "/dev/null/no_folder");
    OK(qdnnSetBundle(call.handle, NULL));
    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyQuantDescriptor(q));
    OK(qdnnDestroy(call.handle));
    temp_dir_remove(call.directory);
    end();
}
