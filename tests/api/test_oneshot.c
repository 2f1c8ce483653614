/* One-shot calls: a cached plan is used only for the call that it was made for, and a workspace only on its
 * stream. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "driver/api/handle.h"
#include "scene.h"

enum { ROWS = 8, COLUMNS = 64, ELEMENTS = ROWS * COLUMNS, ROOM = 16 * ELEMENTS, CALLS = 3, BUFFERS = 5 };
enum { X, SCALE, ZERO, CODES, Y };

typedef struct outcome {
    qdnnStatus_t status[CALLS];
    char sentence[CALLS][256];
    uint8_t bytes[BUFFERS][ROOM];
} outcome;

/* All three calls into buffers that are large enough for any descriptor. */
static void run(qdnnHandle_t handle, qdnnTensorDescriptor_t t, qdnnQuantDescriptor_t q, outcome *out)
{
    static uint8_t x[ROOM];
    void *at[BUFFERS];
    for (size_t i = 0; i < ROOM; i += 4) { /* numbers of usual size in every type; the first groups are 0 */
        const float number = i < 1024 ? 0 : (float)((int)(i * 2654435761u % 2001) - 1000) / 512;
        memcpy(x + i, &number, 4);
    }
    memset(out, 0, sizeof *out);
    for (int i = 0; i < BUFFERS; i++) {
        OK(qdnnMalloc(handle, &at[i], ROOM));
        OK(qdnnFill(handle, at[i], 0, ROOM));
    }
    OK(qdnnCopyToDevice(handle, at[X], x, ROOM));
    for (int call = 0; call < CALLS; call++) {
        out->status[call] = call == 0   ? qdnnComputeScales(handle, t, at[X], q, at[SCALE], at[ZERO])
                            : call == 1 ? qdnnQuantize(handle, t, at[X], q, at[SCALE], at[ZERO], at[CODES])
                                        : qdnnDequantize(handle, q, at[CODES], at[SCALE], at[ZERO], t, at[Y]);
        if (out->status[call] != QDNN_STATUS_SUCCESS)
            snprintf(out->sentence[call], sizeof out->sentence[call], "%s", last_sentence());
    }
    OK(qdnnSynchronize(handle));
    for (int i = 0; i < BUFFERS; i++) {
        OK(qdnnCopyToHost(handle, out->bytes[i], at[i], ROOM));
        OK(qdnnFree(handle, at[i]));
    }
}

typedef struct keys {
    qdnnHandle_t warm;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    int compared, refused, differ;
} keys;

static void reset(const keys *k)
{
    OK(qdnnSetTensorDescriptor(k->tensor, QDNN_DATA_F32, 2, (const int64_t[]){ROWS, COLUMNS}, NULL));
    OK(qdnnSetQuantWeights(k->quant, QDNN_WEIGHTS_INT4_BYTES_ZP, 32));
    OK(qdnnSetQuantFloor(k->quant, 1e-12f));
}

/* The changed descriptors on the warm handle, where the last call was with the plain ones, and on a new one. */
static void compare(keys *k, const outcome *plain)
{
    static outcome warm, fresh;
    qdnnHandle_t handle = NULL;
    run(k->warm, k->tensor, k->quant, &warm);
    OK(qdnnCreate(&handle));
    run(handle, k->tensor, k->quant, &fresh);
    OK(qdnnDestroy(handle));
    for (int i = 0; i < CALLS; i++) {
        CHECK_STATUS_IS(warm.status[i], fresh.status[i]);
        CHECK_EQ_STR(warm.sentence[i], fresh.sentence[i]);
    }
    CHECK_EQ_MEM(warm.bytes, fresh.bytes, sizeof warm.bytes);
    k->compared++;
    k->refused += fresh.status[1] != QDNN_STATUS_SUCCESS;
    k->differ += memcmp(&fresh, plain, sizeof fresh) != 0;
}

static void warm_up(const keys *k, outcome *plain)
{
    reset(k);
    run(k->warm, k->tensor, k->quant, plain);
    for (int i = 0; i < CALLS; i++)
        OK(plain->status[i]);
}

static bool keys_begin(keys *k)
{
    *k = (keys){0};
    vm_begin(NULL);
    return basics_create(&k->warm, &k->tensor, &k->quant);
}

static void keys_end(keys *k)
{
    basics_destroy(k->warm, k->tensor, k->quant);
    vm_end();
}

/* Every attribute, with every small value that its setter takes. */
TEST_CASE(ApiOneShot, AfterAChangeOfAnAttribute)
{
    NEED_PTXVM;
    static outcome plain;
    keys k;
    REQUIRE(keys_begin(&k));
    for (int attribute = 0; attribute < QDNN_QUANT_ATTRIBUTE_COUNT; attribute++)
        for (int64_t value = -1; value <= 64; value += value < 3 ? 1 : value < 4 ? 4 : 57) {
            int64_t before = 0;
            warm_up(&k, &plain);
            OK(qdnnGetQuantAttribute(k.quant, (qdnnQuantAttribute_t)attribute, &before));
            if (value == before ||
                qdnnSetQuantAttribute(k.quant, (qdnnQuantAttribute_t)attribute, value) != QDNN_STATUS_SUCCESS)
                continue;
            test_push_note("attribute %d is %lld", attribute, (long long)value);
            compare(&k, &plain);
            test_pop_note();
        }
    CHECK(k.compared > QDNN_QUANT_ATTRIBUTE_COUNT);
    CHECK(k.refused > 0 && k.refused < k.compared && k.differ > k.refused);
    keys_end(&k);
}

static const struct {
    const char *name;
    qdnnDataType_t type;
    int rank;
    int64_t dims[3], strides[3];
    float floor;
} changes[] = {
    {"type", QDNN_DATA_F16, 2, {ROWS, COLUMNS}, {COLUMNS, 1}, 1e-12f},
    {"rank", QDNN_DATA_F32, 1, {ELEMENTS}, {1}, 1e-12f},
    {"higher rank", QDNN_DATA_F32, 3, {1, ROWS, COLUMNS}, {ELEMENTS, COLUMNS, 1}, 1e-12f},
    {"rows", QDNN_DATA_F32, 2, {ROWS - 1, COLUMNS}, {COLUMNS, 1}, 1e-12f},
    {"columns", QDNN_DATA_F32, 2, {ROWS, COLUMNS / 2}, {COLUMNS / 2, 1}, 1e-12f},
    {"stride of rows", QDNN_DATA_F32, 2, {ROWS, COLUMNS}, {COLUMNS + 32, 1}, 1e-12f},
    {"stride of columns", QDNN_DATA_F32, 2, {ROWS, COLUMNS}, {1, ROWS}, 1e-12f},
    {"floor", QDNN_DATA_F32, 2, {ROWS, COLUMNS}, {COLUMNS, 1}, 0.5f},
};

TEST_ROWS(ApiOneShot, AfterAChangeOf, changes)
{
    NEED_PTXVM;
    static outcome plain;
    keys k;
    REQUIRE(keys_begin(&k));
    warm_up(&k, &plain);
    OK(qdnnSetTensorDescriptor(k.tensor, changes[index].type, changes[index].rank, changes[index].dims,
                               changes[index].strides));
    OK(qdnnSetQuantFloor(k.quant, changes[index].floor));
    compare(&k, &plain);
    if (changes[index].rank == 2)
        CHECK_EQ_I64(k.differ, 1); /* else the row would show nothing */
    keys_end(&k);
}

/* ---- The workspace ---- */

TEST_CASE(ApiOneShot, EachStreamHasItsWorkspace)
{
    NEED_PTXVM;
    scene s;
    vm_begin(NULL);
    REQUIRE(calls_watch("vm"));
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_TENSOR], NULL));
    REQUIRE(scene_step_run(&s, "qdnnComputeScales"));
    const CUdeviceptr first = s.handle->workspace;
    CHECK(first != 0);
    calls_reset();
    REQUIRE(scene_step_run(&s, "qdnnComputeScales"));
    CHECK_EQ_I64(calls_of(CALL_cuMemFree), 0); /* the same stream: the work before it is done first */
    CHECK_EQ_I64(calls_of(CALL_cuMemAlloc), 0);
    CHECK(s.handle->workspace == first);
    enum { PER_THREAD = 2 }; /* a stream that needs not be created: CU_STREAM_PER_THREAD */
    OK(qdnnSetStream(s.handle, (qdnnStream_t)PER_THREAD));
    REQUIRE(scene_step_run(&s, "qdnnComputeScales"));
    CHECK_EQ_I64(calls_of(CALL_cuMemFree), 1); /* waits for the other stream's work */
    CHECK_EQ_I64(calls_of(CALL_cuMemAlloc), 1);
    OK(qdnnSetStream(s.handle, NULL));
    scene_close(&s);
    vm_end();
}
