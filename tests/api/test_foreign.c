/* The caller's floating-point environment: it changes no bit of a result, and no call changes it. */
#include <stdlib.h>
#include <string.h>

#include "device/small_product.h"
#include "host_ref/host_ref.h"
#include "scene.h"
#include "support/foreign.h"

static int scenes(void)
{
    return foreign_count() * scene_kind_count();
}

static void scene_name(int index, char *text, size_t size)
{
    char environment[32], kind[64];
    foreign_name(index % foreign_count(), environment, sizeof environment);
    scene_kind_name(index / foreign_count(), kind, sizeof kind);
    snprintf(text, size, "%s_%s", kind, environment);
}

/* Each step by itself, so that no step of the test computes in it. */
TEST_EACH(ApiForeign, EveryCallOfTheScene, scenes, scene_name)
{
    NEED_PTXVM;
    const int environment = index % foreign_count();
    scene s;
    vm_begin(NULL);
    scene_begin(&s, &scene_kinds[index / foreign_count()], "vm", 7);
    bool ok = true;
    for (int i = 0; i < scene_step_count && ok; i++) {
        foreign_begin(environment);
        qdnnStatus_t status = scene_steps[i].run(&s, scene_steps[i].which);
        foreign_end(environment);
        test_push_note("%s", scene_steps[i].name);
        ok = OK(status);
        test_pop_note();
    }
    if (ok)
        scene_compare(&s);
    scene_end(&s);
    vm_end();
}

/* ---- Products ---- */

enum { M = 3, N = 40, K = 256, BLOCKS = N * K / 32 };

typedef struct block {
    uint16_t scale;
    uint8_t codes[32]; /* Q4_0 uses 16 of them */
} block;

static const struct {
    const char *name;
    qdnnWeights_t weights;
    qdnnBlockFormat_t block;
    size_t bytes;
} blocks[] = {
    {"q4_0", QDNN_WEIGHTS_GGUF_Q4_0, QDNN_BLOCK_Q4_0, 18},
    {"q8_0", QDNN_WEIGHTS_GGUF_Q8_0, QDNN_BLOCK_Q8_0, 34},
};

/* Scales of all sizes, also subnormal ones; x such that products are subnormal, too. */
static void fill(uint8_t *w, size_t bytes, float *x)
{
    srand(7);
    for (size_t i = 0; i < BLOCKS * bytes; i++)
        w[i] = (uint8_t)rand();
    for (size_t i = 0; i < BLOCKS; i++) {
        const uint16_t scale = (uint16_t)(rand() % 0x4000);
        memcpy(w + i * bytes, &scale, sizeof scale);
    }
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(rand() % 2001 - 1000) / (i / K == 1 ? 3e38f : 777.0f);
}

static void reference(const uint8_t *w, qdnnBlockFormat_t format, const float *x, float *y)
{
    const ref_product p = {.m = M,
                           .k = K,
                           .outputs = N,
                           .weights = {.data = QDNN_DATA_F32, .block = format},
                           .x = QDNN_DATA_F32,
                           .y = QDNN_DATA_F32,
                           .x_stride = K,
                           .y_stride = N};
    const ref_product_arrays a = {.x = x, .weights = {.codes = (void *)w}, .y = y};
    ref_product_exact(&p, &a);
}

static int products(void)
{
    return foreign_count() * 2;
}

static void product_name(int index, char *text, size_t size)
{
    char environment[32];
    foreign_name(index % foreign_count(), environment, sizeof environment);
    snprintf(text, size, "%s_%s", blocks[index / foreign_count()].name, environment);
}

TEST_EACH(ApiForeign, Products, products, product_name)
{
    NEED_PTXVM;
    static float x[M * K], expected[M * N], got[M * N], by_reference[M * N];
    static uint8_t w[BLOCKS * sizeof(block)];
    const int environment = index % foreign_count(), which = index / foreign_count();
    qdnnHandle_t handle = NULL;
    small_product p;
    fill(w, blocks[which].bytes, x);
    reference(w, blocks[which].block, x, expected);
    vm_begin("PTXVM_THREADS=3"); /* blocks run in threads that inherit the environment */
    foreign_begin(environment);
    bool ok = qdnnCreate(&handle) == QDNN_STATUS_SUCCESS;
    ok = small_product_begin(&p, handle, (const int64_t[]){M, N, K}, 0,
                             (small_weights){blocks[which].weights, 0, false}) &&
         small_product_plan(&p) && small_product_put(&p, QDNN_OPERAND_X, x, sizeof x) &&
         small_product_put(&p, QDNN_OPERAND_CODES, w, BLOCKS * blocks[which].bytes) &&
         small_product_run(&p, got) && ok;
    reference(w, blocks[which].block, x, by_reference);
    foreign_end(environment);
    CHECK(ok);
    CHECK_EQ_MEM(got, expected, sizeof got);
    CHECK_EQ_MEM(by_reference, expected, sizeof expected);
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* An error leaves by another path. */
TEST_EACH(ApiForeign, Errors, foreign_count, foreign_name)
{
    qdnnTensorDescriptor_t t = NULL;
    OK(qdnnCreateTensorDescriptor(&t));
    foreign_begin(index);
    qdnnStatus_t null = qdnnCreateTensorDescriptor(NULL);
    qdnnStatus_t rank = qdnnSetTensorDescriptor(t, QDNN_DATA_F32, -1, (const int64_t[]){1}, NULL);
    foreign_end(index);
    CHECK_STATUS_IS(null, QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_STATUS_IS(rank, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    OK(qdnnDestroyTensorDescriptor(t));
}
