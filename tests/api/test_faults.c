/* Every function of the driver fails once, at its first, second and last call in the scene, with every kind
 * of code: the public call says so, nothing leaks, and the handle goes on or is dead, as the code demands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blocks.h"
#include "calls.h"
#include "driver/cuda/cuda_error.h"
#include "driver/cuda/open.h"
#include "scene.h"
#include "support/process.h"

static const CUresult codes[] = {2, 100, 201, 209, 218, 222, 700, 719, 900};
enum { CODES = sizeof codes / sizeof codes[0] };

/* Functions whose failure never makes a call fail: they undo something, and nothing can be done about it.
 */
static const char *const tolerated[] = {
    "cuThreadExchangeStreamCaptureMode", "cuCtxPopCurrent_v2", "cuModuleUnload",
    "cuDevicePrimaryCtxRelease_v2",      "cuEventDestroy_v2",  "cuGetErrorName"};

static char log_folder[512], log_path[544];
static cuda_device outer; /* whose context the scene borrows, where it does */
static CUcontext outer_context;

/* ---- A run ---- */

static void open_vm(const char *fault, bool checks_buffers)
{
    char settings[800];
    snprintf(settings, sizeof settings,
             "QDNN_CHECK_BUFFERS=%d QDNN_TRACE=/dev/null PTXVM_CHECK=leak PTXVM_LOG=%s PTXVM_FAULT=%s",
             checks_buffers, log_path, fault);
    vm_begin(settings);
}

/* A context of the caller's, current in this thread: the handle then works in it. */
static bool borrow_begin(void)
{
    return CHECK(cuda_device_choose("vm", &outer) == QDNN_STATUS_SUCCESS) &&
           CHECK(outer.api->cuDevicePrimaryCtxRetain(&outer_context, outer.device) == 0) &&
           CHECK(outer.api->cuCtxPushCurrent(outer_context) == 0);
}

static void borrow_end(void)
{
    CUcontext popped = NULL;
    CHECK(outer.api->cuCtxPopCurrent(&popped) == 0 && popped == outer_context);
    CHECK(outer.api->cuDevicePrimaryCtxRelease(outer.device) == 0);
}

static bool is_tolerated(const char *function)
{
    for (size_t i = 0; i < sizeof tolerated / sizeof tolerated[0]; i++)
        if (!strcmp(tolerated[i], function))
            return true;
    return false;
}

/* The first functions that a process calls say more about the driver than about the call. */
static qdnnStatus_t expected_status(const char *function, const scene_step *step, CUresult code)
{
    bool starts = !strcmp(function, "cuInit") || !strcmp(function, "cuDriverGetVersion");
    qdnnStatus_t status = cuda_status(code);
    if (starts && status == QDNN_STATUS_EXECUTION_FAILED)
        return QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER;
    if (is_tolerated(function) || (step->place == ON_DESTROY && !cuda_is_sticky(code)))
        return QDNN_STATUS_SUCCESS;
    return status;
}

typedef struct run {
    const char *function;
    CUresult code;
    bool dead;        /* the handle is lost */
    int failures;     /* public calls that failed, before the handle died */
    int left_to_leak; /* buffers that a dead handle could not free */
} run;

/* Every call that goes to the device, with arguments that look valid. */
static void check_dead(scene *s)
{
    qdnnHandle_t h = s->handle;
    qdnnPlan_t plan = NULL;
    qdnnSchedule_t schedule = NULL;
    qdnnDeviceInfo_t info = {.size = sizeof info};
    char host[8] = "abcdefg";
    void *p = NULL, *device = (void *)(uintptr_t)4096, *zero = s->bytes[QDNN_OPERAND_ZERO] ? device : NULL;
    const qdnnStatus_t statuses[] = {
        qdnnSetStream(h, NULL),
        qdnnSynchronize(h),
        qdnnGetDeviceInfo(h, &info),
        qdnnMalloc(h, &p, 8),
        qdnnMalloc(h, &p, 0),
        qdnnFree(h, device),
        qdnnCopyToDevice(h, device, host, 8),
        qdnnCopyToHost(h, host, device, 8),
        qdnnCopyOnDevice(h, device, device, 8),
        qdnnFill(h, device, 0, 8),
        qdnnCreateScalePlan(h, s->tensor, s->quant, &plan),
        qdnnCreateQuantizePlan(h, s->tensor, s->quant, &plan),
        qdnnCreateDequantizePlan(h, s->tensor, s->quant, &plan),
        qdnnComputeScales(h, s->tensor, device, s->quant, device, zero),
        qdnnQuantize(h, s->tensor, device, s->quant, device, zero, device),
        qdnnDequantize(h, s->quant, device, device, zero, s->tensor, device),
        qdnnCreateSchedule(h, &schedule),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        test_push_note("call %zu of a dead handle", i);
        CHECK_STATUS_IS(statuses[i], QDNN_STATUS_EXECUTION_FAILED_STICKY);
        test_pop_note();
    }
    CHECK_HAS(last_sentence(), "the handle is dead");
    CHECK(!p && !plan && !schedule);
    CHECK_EQ_STR(host, "abcdefg");
}

/* A step that failed: it has the right status and message; when repeated, it succeeds unless the handle is dead. */
static void after_failure(run *r, scene *s, const scene_step *step, qdnnStatus_t status)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(r->function, "_"), r->function);
    r->failures++;
    CHECK_STATUS_IS(status, expected_status(r->function, step, r->code));
    if (step->place == ON_DESTROY)
        return;
    CHECK_HAS(last_sentence(), name);
    r->dead = cuda_is_sticky(r->code) && step->place == ON_DEVICE;
    if (r->dead)
        check_dead(s);
    else
        scene_run(s, step);
}

/* The thread's current context is what it was. */
static void check_current(bool borrows)
{
    cuda_device d;
    CUcontext current = NULL;
    if (CHECK(cuda_device_choose("vm", &d) == QDNN_STATUS_SUCCESS) &&
        CHECK(d.api->cuCtxGetCurrent(&current) == 0))
        CHECK(current == (borrows ? outer_context : NULL));
}

static void take_step(run *r, scene *s, const scene_step *step)
{
    test_push_note("%s", step->name);
    if (step->place == ON_DESTROY)
        r->left_to_leak = scene_held(s);
    bool was_dead = r->dead && step->place == ON_DEVICE;
    qdnnStatus_t status = step->run(s, step->which);
    if (was_dead) { /* what an earlier step did not make is missing now */
        CHECK(status == QDNN_STATUS_EXECUTION_FAILED_STICKY || status == QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    } else if (status != QDNN_STATUS_SUCCESS) {
        after_failure(r, s, step, status);
    }
    if (!strcmp(r->function, "cuCtxPopCurrent_v2"))
        check_current(false);
    test_pop_note();
}

/* Leaks that the driver's log reports. */
static int count_leaks(void)
{
    char line[512];
    int leaks = 0;
    FILE *file = fopen(log_path, "r");
    while (file && fgets(line, sizeof line, file))
        leaks += strstr(line, "leak:") != NULL;
    if (file)
        fclose(file);
    remove(log_path);
    return leaks;
}

static void run_scene(run *r, const scene_kind *kind)
{
    scene s;
    scene_begin(&s, kind, NULL, 7);
    for (int i = 0; i < scene_step_count; i++)
        take_step(r, &s, &scene_steps[i]);
    if (!r->dead)
        scene_compare(&s);
    scene_end(&s);
}

/* ---- Where it runs ---- */

typedef struct call_counts {
    bool known;
    int before[CALL_COUNT]; /* the scene */
    int before_destroy[CALL_COUNT];
    int all[CALL_COUNT];
} call_counts;

typedef struct stage {
    const char *name;
    int kind;     /* of the scene */
    bool borrows; /* the handle works in a context of the caller's */
    bool checks;  /* QDNN_CHECK_BUFFERS */
    call_counts counts;
} stage;

static stage stages[] = {
    {"small", SCENE_INT4, false, false, {0}},
    {"with a workspace", SCENE_TENSOR, false, false, {0}},
    {"in a context of the caller's, with checks", SCENE_ZERO_POINT, true, true, {0}},
};
enum { STAGES = sizeof stages / sizeof stages[0] };

/* must_fail: the call that is hit is not one of qdnnDestroy, which goes on to its end whatever happens. */
static void run_with_fault(const stage *on, const char *function, int nth, CUresult code, bool must_fail)
{
    char fault[96];
    run r = {.function = function, .code = code};
    snprintf(fault, sizeof fault, "%s:%d=%d", function, nth, code);
    test_push_note("PTXVM_FAULT=%s, %s", fault, on->name);
    open_vm(fault, on->checks);
    blocks_begin();
    if (!on->borrows || borrow_begin()) {
        run_scene(&r, &scene_kinds[on->kind]);
        check_current(on->borrows);
        if (on->borrows)
            borrow_end();
    }
    CHECK_EQ_I64(blocks_live(), 0);
    blocks_end();
    CHECK(r.failures <= 1);
    CHECK(r.failures == 1 || is_tolerated(function) || !must_fail);
    cuda_close_all();
    CHECK_EQ_I64(count_leaks(), r.left_to_leak);
    test_pop_note();
}

static void copy_counts(int *to)
{
    for (int call = 0; call < CALL_COUNT; call++)
        to[call] = calls_of(call);
}

/* Runs the scene once, and counts. */
static void count(call_counts *c, const scene_kind *kind, bool borrows)
{
    scene s;
    scene_begin(&s, kind, NULL, 7);
    copy_counts(c->before);
    for (int i = 0; i < scene_step_count; i++) {
        if (scene_steps[i].place == ON_DESTROY)
            copy_counts(c->before_destroy);
        scene_run(&s, &scene_steps[i]);
    }
    copy_counts(c->all);
    scene_compare(&s);
    scene_end(&s);
    /* when the driver is opened, which was before we could count */
    static const int opening[] = {CALL_cuInit, CALL_cuDriverGetVersion};
    for (int i = 0; i < 2; i++) {
        c->before[opening[i]] = borrows;
        c->all[opening[i]] = c->before_destroy[opening[i]] = 1;
    }
    c->known = true;
}

static const call_counts *count_calls(stage *on)
{
    if (on->counts.known)
        return &on->counts;
    open_vm("", on->checks);
    if (CHECK(calls_watch("vm")) && (!on->borrows || borrow_begin())) {
        count(&on->counts, &scene_kinds[on->kind], on->borrows);
        if (on->borrows)
            borrow_end();
    }
    cuda_close_all();
    return &on->counts;
}

static void begin(void)
{
    temp_dir_make(log_folder, sizeof log_folder);
    snprintf(log_path, sizeof log_path, "%s/log", log_folder);
}

static void end(void)
{
    vm_end();
    temp_dir_remove(log_folder);
}

static int function_count(void)
{
    return CALL_COUNT;
}

static void function_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", call_names[index]);
}

/* The function at its first, second and last call; whether there is any. */
static bool fail_calls(stage *on, int function)
{
    const call_counts *counts = count_calls(on);
    int before = counts->before[function], last = counts->all[function];
    const int nth[] = {before + 1, before + 2, last};
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < CODES; c++)
            if (nth[i] <= last && (i == 0 || nth[i] > nth[i - 1]))
                run_with_fault(on, call_names[function], nth[i], codes[c],
                               nth[i] <= counts->before_destroy[function]);
    return last > before;
}

/* Some functions are called on one stage only; the one that names errors is asked for codes that we do not
 * know, and may fail (test_driver_error.c). */
TEST_EACH(ApiFaults, EveryFunctionFails, function_count, function_name)
{
    NEED_PTXVM;
    begin();
    bool called = false;
    for (int i = 0; i < STAGES; i++)
        called = fail_calls(&stages[i], index) || called;
    end();
    CHECK(called != (strcmp(call_names[index], "cuGetErrorName") == 0));
}

/* A larger workspace of one-shot calls replaces the old one, which is not lost if it cannot be freed. */
TEST_CASE(ApiFaults, AWorkspaceThatCannotBeFreed)
{
    NEED_PTXVM;
    static const int64_t sizes[] = {8200, 60000};
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    void *x = NULL, *scale = NULL;
    begin();
    open_vm("cuMemFree_v2:1=2", false);
    REQUIRE(basics_create(&handle, &t, &q));
    OK(qdnnSetQuantDescriptor(q, QDNN_DATA_I4, QDNN_GRANULARITY_TENSOR, 0));
    OK(qdnnMalloc(handle, &x, (size_t)sizes[1] * sizeof(float)));
    OK(qdnnFill(handle, x, 0, (size_t)sizes[1] * sizeof(float)));
    OK(qdnnMalloc(handle, &scale, sizeof(float)));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, &sizes[0], NULL));
    OK(qdnnComputeScales(handle, t, x, q, scale, NULL));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, &sizes[1], NULL));
    CHECK_STATUS_IS(qdnnComputeScales(handle, t, x, q, scale, NULL),
                    QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    CHECK_HAS(last_sentence(), "a workspace of ");
    OK(qdnnComputeScales(handle, t, x, q, scale, NULL));
    OK(qdnnFree(handle, x));
    OK(qdnnFree(handle, scale));
    basics_destroy(handle, t, q);
    end();
    CHECK_EQ_I64(count_leaks(), 0);
}

/* The statuses above are compared with the table of codes itself, so the table is pinned here. */
TEST_CASE(ApiFaults, CodesBecomeStatuses)
{
    static const struct {
        CUresult code;
        qdnnStatus_t status;
    } rows[] = {
        {2, QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED},
        {100, QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE},
        {201, QDNN_STATUS_EXECUTION_FAILED},
        {209, QDNN_STATUS_NOT_SUPPORTED_SM},
        {218, QDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED},
        {222, QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD},
        {700, QDNN_STATUS_EXECUTION_FAILED_STICKY},
        {719, QDNN_STATUS_EXECUTION_FAILED_STICKY},
        {900, QDNN_STATUS_EXECUTION_FAILED},
        {12345, QDNN_STATUS_EXECUTION_FAILED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_STATUS_IS(cuda_status(rows[i].code), rows[i].status);
}
