/* Many threads with handles of their own, and the cache of modules that they share. */
#include <pthread.h>

#include "blocks.h"
#include "driver/api/handle.h"
#include "driver/api/modules.h"
#include "scene.h"

enum { THREADS = 16 };

/* ---- Threads ---- */

typedef struct worker {
    pthread_t thread;
    const char *device; /* as qdnnCreateOn takes it */
    int index;
    bool ok;
} worker;

/* Runs the work in all threads at once, on the two devices in turn; each returns whether it succeeded. */
static void run_threads(void *(*work)(void *worker), const char *even, const char *odd)
{
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.index = i, .device = i % 2 ? odd : even};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            FAIL("thread %d cannot be started", i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK(workers[i].ok);
    }
}

/* All kinds, beginning with different ones: the same kernels at the same time, and different ones. */
static void *play(void *pointer)
{
    worker *w = pointer;
    w->ok = true;
    for (int i = 0; i < scene_kind_count(); i++)
        w->ok = scene_plays(&scene_kinds[(i + w->index) % scene_kind_count()], w->device,
                            (uint32_t)(w->index + i)) &&
                w->ok;
    return NULL;
}

TEST_CASE(ApiThreads, GiveTheRightBits)
{
    NEED_PTXVM;
    vm_begin(NULL);
    run_threads(play, NULL, "vm:sm_90a");
    CHECK_EQ_I64(modules_count(), 0);
    vm_end();
}

/* Handles come and go, with a module or two each, of more kinds than the cache holds. */
static void *come_and_go(void *pointer)
{
    worker *w = pointer;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    w->ok = !qdnnCreateTensorDescriptor(&t) && !qdnnCreateQuantDescriptor(&q) &&
            !qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL);
    for (int i = 0; i < 24 && w->ok; i++) {
        qdnnHandle_t h = NULL;
        qdnnPlan_t shared = NULL, own = NULL;
        w->ok = !qdnnCreateOn(&h, w->device) && !qdnnSetQuantAttribute(q, QDNN_QUANT_GROUP_SIZE, 1 + i % 3) &&
                !qdnnCreateDequantizePlan(h, t, q, &shared) &&
                !qdnnSetQuantAttribute(q, QDNN_QUANT_GROUP_SIZE, 100 + THREADS * i + w->index) &&
                !qdnnCreateDequantizePlan(h, t, q, &own) && modules_count() <= MODULES_MAX;
        w->ok = !qdnnDestroyPlan(shared) && !qdnnDestroyPlan(own) && !qdnnDestroy(h) && w->ok;
    }
    qdnnDestroyTensorDescriptor(t);
    qdnnDestroyQuantDescriptor(q);
    return NULL;
}

TEST_CASE(ApiThreads, HandlesComeAndGo)
{
    NEED_PTXVM;
    qdnnHandle_t keeper = NULL;
    vm_begin(NULL);
    run_threads(come_and_go, NULL, NULL); /* the context comes and goes as well */
    CHECK_EQ_I64(modules_count(), 0);
    OK(qdnnCreate(&keeper));
    run_threads(come_and_go, NULL, NULL); /* the cache fills, and evicts */
    CHECK_EQ_I64(modules_count(), MODULES_MAX);
    OK(qdnnDestroy(keeper));
    CHECK_EQ_I64(modules_count(), 0);
    vm_end();
}

/* Contexts of two devices share the cache, and evict modules of each other while they come and go. */
TEST_CASE(ApiThreads, HandlesOfTwoDevicesComeAndGo)
{
    vm_begin("QDNN_LIBCUDA=" QDNN_BINARY_DIR "/ptxvm/libcuda.so.1 PTXVM_DEVICES=2");
    run_threads(play, "cuda:0", "cuda:1");
    qdnnHandle_t keeper = NULL;
    OK(qdnnCreateOn(&keeper, "cuda:0")); /* its modules stay, until those of the other device need the room */
    run_threads(come_and_go, "cuda:0", "cuda:1");
    run_threads(come_and_go, "cuda:0", "cuda:1");
    OK(qdnnDestroy(keeper));
    CHECK_EQ_I64(modules_count(), 0);
    vm_end();
}

/* ---- The cache ---- */

static qdnnHandle_t handle;
static qdnnTensorDescriptor_t tensor;
static qdnnQuantDescriptor_t quant;

static bool begin(void)
{
    vm_begin(NULL);
    return basics_create(&handle, &tensor, &quant);
}

static void end(void)
{
    basics_destroy(handle, tensor, quant);
    CHECK_EQ_I64(modules_count(), 0);
    vm_end();
}

/* A plan of a kernel for each number; whether it was loaded already. */
static qdnnPlan_t plan_of(qdnnHandle_t h, int number, bool *cached)
{
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_GROUP_SIZE, 1000 + number));
    if (!OK(qdnnCreateDequantizePlan(h, tensor, quant, &plan)))
        return NULL;
    OK(qdnnGetPlanInfo(plan, &info));
    CHECK(info.fromCache || (info.emitSeconds > 0 && info.loadSeconds > 0));
    CHECK(!info.fromCache || (info.emitSeconds == 0 && info.loadSeconds == 0));
    *cached = info.fromCache;
    return plan;
}

/* Whether the kernel is loaded, or was until now. */
static bool is_cached(int number)
{
    bool cached = false;
    OK(qdnnDestroyPlan(plan_of(handle, number, &cached)));
    return cached;
}

TEST_CASE(ApiModules, AreMadeOnce)
{
    NEED_PTXVM;
    qdnnHandle_t second = NULL;
    bool cached = true;
    REQUIRE(begin());
    CHECK(!is_cached(1));
    CHECK(is_cached(1));
    CHECK_EQ_I64(modules_count(), 1);
    CHECK(!is_cached(2));
    OK(qdnnCreate(&second)); /* of the same context */
    OK(qdnnDestroyPlan(plan_of(second, 1, &cached)));
    CHECK(cached);
    CHECK_EQ_I64(modules_count(), 2);
    OK(qdnnDestroy(second));
    CHECK_EQ_I64(modules_count(), 2);
    end();
}

/* Settings that a kernel does not read do not make it another kernel. */
TEST_CASE(ApiModules, AreMadeOfWhatTheyRead)
{
    NEED_PTXVM;
    static const struct {
        qdnnQuantAttribute_t attribute;
        int64_t value;
        bool read;
    } rows[] = {
        {QDNN_QUANT_ROUNDING, QDNN_ROUND_TIES_AWAY, false},
        {QDNN_QUANT_DIVISION, QDNN_DIVIDE_RECIPROCAL, false},
        {QDNN_QUANT_ZERO_TYPE, QDNN_DATA_F32, false},
        {QDNN_QUANT_AXIS, 3, false},
        {QDNN_QUANT_SCALE_TYPE, QDNN_SCALE_F16, true},
        {QDNN_QUANT_NIBBLE_ORDER, QDNN_NIBBLE_HIGH_FIRST, true},
    };
    REQUIRE(begin());
    CHECK(!is_cached(0));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        OK(qdnnSetQuantAttribute(quant, rows[i].attribute, rows[i].value));
        CHECK_EQ_I64(is_cached(0), !rows[i].read);
    }
    OK(qdnnSetQuantFloor(quant, 1));
    CHECK(is_cached(0));
    end();
}

/* The rows of a matrix are groups of as many elements: one kernel for any number of them. */
TEST_CASE(ApiModules, RowsShareAKernelWhateverTheirNumber)
{
    NEED_PTXVM;
    static const int64_t shapes[][3] = {{7, 4, 24}, {100, 4, 24}, {2, 96, 1}};
    REQUIRE(begin());
    OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_I4, QDNN_GRANULARITY_CHANNEL, 0));
    for (int i = 0; i < 3; i++) {
        OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 3, shapes[i], NULL));
        qdnnPlan_t plan = NULL;
        qdnnPlanInfo_t info = {.size = sizeof info};
        OK(qdnnCreateQuantizePlan(handle, tensor, quant, &plan));
        OK(qdnnGetPlanInfo(plan, &info));
        CHECK(info.fromCache == (i > 0));
        CHECK_HAS(info.settings, "group_size=96 channels=0");
        OK(qdnnDestroyPlan(plan));
    }
    CHECK_EQ_I64(modules_count(), 1);
    end();
}

TEST_CASE(ApiModules, ThoseNotAskedForLongestGoFirst)
{
    NEED_PTXVM;
    REQUIRE(begin());
    for (int i = 0; i < MODULES_MAX; i++)
        CHECK(!is_cached(i));
    CHECK_EQ_I64(modules_count(), MODULES_MAX);
    CHECK(is_cached(0)); /* now 1 is the oldest */
    CHECK(!is_cached(MODULES_MAX));
    CHECK_EQ_I64(modules_count(), MODULES_MAX);
    CHECK(is_cached(0));
    CHECK(is_cached(2));
    CHECK(!is_cached(1)); /* replaces 3 */
    CHECK(!is_cached(3));
    end();
}

/* A cache full of modules in use accepts no other, and evicts none. */
TEST_CASE(ApiModules, ThoseInUseStay)
{
    NEED_PTXVM;
    static qdnnPlan_t plans[MODULES_MAX];
    bool cached = false;
    REQUIRE(begin());
    for (int i = 0; i < MODULES_MAX; i++)
        plans[i] = plan_of(handle, i, &cached);
    CHECK(!is_cached(MODULES_MAX));
    CHECK(!is_cached(MODULES_MAX)); /* it went with its plan */
    CHECK_EQ_I64(modules_count(), MODULES_MAX);
    OK(qdnnDestroyPlan(plans[7]));
    CHECK(!is_cached(MODULES_MAX)); /* replaces 7 */
    CHECK(is_cached(MODULES_MAX));
    for (int i = 0; i < MODULES_MAX; i++)
        if (i != 7) {
            OK(qdnnDestroyPlan(plans[i]));
            CHECK(is_cached(i));
        }
    CHECK_EQ_I64(modules_count(), MODULES_MAX);
    end();
}

/* How many allocations a one-shot call with this group size makes: none where its plan is kept. */
static int scales_by(int group, void *x, void *scale)
{
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_GROUP_SIZE, group));
    blocks_fail(0);
    OK(qdnnComputeScales(handle, tensor, x, quant, scale, NULL));
    return blocks_asked();
}

/* One-shot calls keep a limited number of plans; the least recently used go first. */
TEST_CASE(ApiModules, OneShotCallsKeepSomePlans)
{
    NEED_PTXVM;
    enum { KEPT = 64 };
    void *x = NULL, *scale = NULL;
    blocks_begin();
    REQUIRE(begin());
    OK(qdnnMalloc(handle, &x, 64));
    OK(qdnnFill(handle, x, 0, 64));
    OK(qdnnMalloc(handle, &scale, 64));
    for (int i = 1; i <= 100; i++) {
        CHECK(scales_by(i, x, scale) > 0);
        CHECK_EQ_I64(handle->n_kept, i < KEPT ? i : KEPT);
    }
    CHECK_EQ_I64(scales_by(101 - KEPT, x, scale), 0); /* the oldest of them, which is the newest now */
    CHECK(scales_by(200, x, scale) > 0);
    CHECK_EQ_I64(scales_by(101 - KEPT, x, scale), 0);
    CHECK(scales_by(102 - KEPT, x, scale) > 0);
    CHECK_EQ_I64(handle->n_kept, KEPT);
    OK(qdnnFree(handle, x));
    OK(qdnnFree(handle, scale));
    end();
    CHECK_EQ_I64(blocks_live(), 0);
    blocks_end();
}
