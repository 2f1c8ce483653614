/* Dots, the largest scores and known answers of integer products, through the public API on ptxvm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/integer_case.h"
#include "formats/sample.h"
#include "parity/ptxvm.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

static int sm_count(void)
{
    return LENGTH(sms);
}

static void sm_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", sms[index]);
}

/* ---- Dots ---- */

static bool run_dot(qdnnHandle_t handle, int64_t k, qdnnDataType_t y, uint32_t seed, const uint32_t *a,
                    const uint32_t *b)
{
    const int64_t dims[] = {k}, one[] = {1};
    const size_t bytes = (size_t)ref_integer_row_bytes(QDNN_DATA_I4, k);
    qdnnTensorDescriptor_t t[3] = {NULL};
    qdnnPlan_t plan = NULL;
    integer_buffers buffers = {0};
    void *x = integer_buffer(&buffers, QDNN_OPERAND_X, bytes, false);
    void *codes = integer_buffer(&buffers, QDNN_OPERAND_CODES, bytes, false);
    integer_fill(CODES_ANY, QDNN_DATA_I4, seed, 1, k, x);
    integer_fill(CODES_ANY, QDNN_DATA_I4, seed + 1, 1, k, codes);
    if (a) {
        memcpy(x, a, bytes);
        memcpy(codes, b, bytes);
    }
    int32_t sum = ref_int4_dot(k, x, codes);
    void *out = integer_buffer(&buffers, QDNN_OPERAND_Y, y == QDNN_DATA_F16 ? 2 : 4, true);
    if (y == QDNN_DATA_I32) {
        memcpy(out, &sum, 4);
    } else {
        *(float *)integer_buffer(&buffers, QDNN_OPERAND_X_SCALE, 4, false) = 0.5f;
        *(float *)integer_buffer(&buffers, QDNN_OPERAND_SCALE, 4, false) = 0.25f;
        ref_scalar_store(y, out, 0, ref_integer_scaled(sum, 0.5f, 0.25f));
    }
    if (a && y == QDNN_DATA_F32)
        CHECK_EQ_F32(*(float *)out, 5.0f);
    if (a && y == QDNN_DATA_I32)
        CHECK_EQ_I64(sum, 40);
    bool ok = integer_tensor(&t[0], QDNN_DATA_I4, 1, dims) && integer_tensor(&t[1], QDNN_DATA_I4, 1, dims) &&
              integer_tensor(&t[2], y, 1, one) &&
              CHECK_QDNN(qdnnCreateIntegerDotPlan(handle, t[0], t[1], t[2], &plan)) &&
              integer_execute(handle, plan, &buffers, -1);
    integer_tensors_destroy(t, 3);
    integer_buffers_free(&buffers);
    return ok;
}

TEST_EACH(ParityInteger, Dots, sm_count, sm_name)
{
    NEED_PTXVM;
    static const int64_t lengths[] = {0, 1, 7, 8, 9, 31, 32, 1000, 1025, 70001};
    static const qdnnDataType_t types[] = {QDNN_DATA_I32, QDNN_DATA_F32, QDNN_DATA_F16};
    const uint32_t a = 0xCDEF4321, b = 0xFEDC1234;
    qdnnHandle_t handle = ptxvm_begin(sms[index], 3, "all", "stderr");
    bool alive = handle && run_dot(handle, 8, QDNN_DATA_I32, 1, &a, &b) &&
                 run_dot(handle, 8, QDNN_DATA_F32, 1, &a, &b);
    for (int i = 0; i < LENGTH(lengths) && alive; i++)
        for (int k = 0; k < LENGTH(types) && alive; k++)
            alive = run_dot(handle, lengths[i], types[k], (uint32_t)(10 * i + k), NULL, NULL);
    ptxvm_end(handle);
}

/* ---- The largest ---- */

typedef struct top_case {
    int64_t batch, rows, k, top;
    qdnnDataType_t indices;
    bool strange; /* scales that make NaNs, infinities and equal scores */
} top_case;

static void top_scales(const top_case *c, float *scales, int64_t n, uint32_t seed)
{
    static const float odd[] = {0.0f, -0.0f, INFINITY, NAN, 1, -1};
    for (int64_t i = 0; i < n; i++) {
        uint32_t r = integer_random(&seed);
        scales[i] = c->strange && r % 2 ? odd[r / 2 % 6] : (float)(r % 5) * 0.25f - 0.25f;
    }
}

static void top_expected(const top_case *c, integer_buffers *b)
{
    const ref_integer_spec s = {.m = c->batch, .n = c->rows, .k = c->k, .x = QDNN_DATA_I4, .w = QDNN_DATA_I4};
    const float *row_scale = b->host[QDNN_OPERAND_SCALE], *batch_scale = b->host[QDNN_OPERAND_X_SCALE];
    float *scores = calloc((size_t)c->rows + 1, 4), *best = b->host[QDNN_OPERAND_Y];
    for (int64_t m = 0; m < c->batch && CHECK(scores != NULL); m++) {
        int32_t places[64];
        for (int64_t n = 0; n < c->rows; n++)
            scores[n] = ref_integer_scaled(
                ref_integer_sum(&s, b->host[QDNN_OPERAND_X], b->host[QDNN_OPERAND_CODES], m, n), row_scale[n],
                batch_scale[m]);
        ref_top(c->rows, scores, c->top, best + m * c->top, places);
        for (int64_t i = 0; i < c->top; i++)
            if (c->indices == QDNN_DATA_I32)
                ((int32_t *)b->host[QDNN_OPERAND_TOP_INDEX])[m * c->top + i] = places[i];
            else
                ((float *)b->host[QDNN_OPERAND_TOP_INDEX])[m * c->top + i] = (float)places[i];
    }
    free(scores);
}

static bool run_top(qdnnHandle_t handle, const top_case *c, integer_buffers *b)
{
    const int64_t x[] = {c->batch, c->k}, w[] = {c->rows, c->k}, y[] = {c->batch, c->top};
    qdnnTensorDescriptor_t t[4] = {NULL};
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    const size_t results = (size_t)(c->batch * c->top) * 4;
    integer_buffer(b, QDNN_OPERAND_Y, results, true);
    integer_buffer(b, QDNN_OPERAND_TOP_INDEX, results, true);
    top_expected(c, b);
    bool ok = integer_tensor(&t[0], QDNN_DATA_I4, 2, x) && integer_tensor(&t[1], QDNN_DATA_I4, 2, w) &&
              integer_tensor(&t[2], QDNN_DATA_F32, 2, y) && integer_tensor(&t[3], c->indices, 2, y) &&
              CHECK_QDNN(qdnnCreateIntegerTopPlan(handle, t[0], t[1], t[2], t[3], &plan)) &&
              CHECK_QDNN(qdnnGetPlanInfo(plan, &info));
    if (ok)
        CHECK_EQ_STR(info.operation, c->top == 1 ? "quant.int4.batched_matmul.top1.scaled"
                                                 : "quant.int4.batched_matmul.topk.scaled");
    ok = ok && integer_execute(handle, plan, b, -1);
    integer_tensors_destroy(t, 4);
    integer_buffers_free(b);
    return ok;
}

static integer_buffers top_inputs(const top_case *c, uint32_t seed)
{
    integer_buffers b = {0};
    const size_t row = (size_t)ref_integer_row_bytes(QDNN_DATA_I4, c->k);
    integer_fill(CODES_ANY, QDNN_DATA_I4, seed, c->batch, c->k,
                 integer_buffer(&b, QDNN_OPERAND_X, (size_t)c->batch * row, false));
    integer_fill(CODES_ANY, QDNN_DATA_I4, seed + 1, c->rows, c->k,
                 integer_buffer(&b, QDNN_OPERAND_CODES, (size_t)c->rows * row, false));
    top_scales(c, integer_buffer(&b, QDNN_OPERAND_SCALE, (size_t)c->rows * 4, false), c->rows, seed + 2);
    top_scales(c, integer_buffer(&b, QDNN_OPERAND_X_SCALE, (size_t)c->batch * 4, false), c->batch, seed + 3);
    return b;
}

TEST_EACH(ParityInteger, TheLargest, sm_count, sm_name)
{
    NEED_PTXVM;
    static const top_case cases[] = {
        {1, 1, 1, 1, QDNN_DATA_I32, false},    {2, 3, 9, 1, QDNN_DATA_F32, false},
        {3, 700, 5, 64, QDNN_DATA_I32, false}, {5, 300, 20, 7, QDNN_DATA_F32, true},
        {6, 64, 3, 64, QDNN_DATA_I32, true},   {70, 33, 40, 2, QDNN_DATA_I32, true},
        {4, 1000, 2, 33, QDNN_DATA_I32, true}, {0, 10, 10, 3, QDNN_DATA_I32, false},
        {2, 257, 0, 5, QDNN_DATA_I32, false},  {9, 1500, 33, 1, QDNN_DATA_I32, false},
    };
    qdnnHandle_t handle = ptxvm_begin(sms[index], 5, "all", "stderr");
    bool alive = handle != NULL;
    for (int i = 0; i < LENGTH(cases) && alive; i++) {
        integer_buffers b = top_inputs(&cases[i], (uint32_t)(100 * i + index));
        test_push_note("case %d", i);
        alive = run_top(handle, &cases[i], &b);
        test_pop_note();
    }
    ptxvm_end(handle);
}

/* One text with many rows of scores, so that the largest are in every lane and every warp (docs/mutation.md). By default fewer rows. */
TEST_EACH(ParityInteger, TopTrials, sm_count, sm_name)
{
    NEED_PTXVM;
    static const top_case cases[] = {
        {200, 520, 16, 1, QDNN_DATA_I32, false}, {200, 520, 16, 1, QDNN_DATA_F32, false},
        {120, 300, 16, 4, QDNN_DATA_I32, false}, {120, 300, 16, 4, QDNN_DATA_F32, false},
        {40, 70, 3, 9, QDNN_DATA_F32, true},     {40, 70, 3, 1, QDNN_DATA_F32, true},
        {40, 300, 2, 1, QDNN_DATA_I32, true},    {5, 256, 4, 64, QDNN_DATA_F32, true},
        {6, 1, 4, 1, QDNN_DATA_F32, true},       {30, 257, 5, 3, QDNN_DATA_I32, true},
    };
    qdnnHandle_t handle = ptxvm_begin(sms[index], 5, "all", "stderr");
    bool alive = handle != NULL;
    for (int i = sample_is_full() ? 0 : index; i < LENGTH(cases) && alive;
         i += sample_is_full() ? 1 : LENGTH(sms)) {
        top_case c = cases[i];
        c.batch = sample_is_full() ? c.batch : 1 + c.batch / 20;
        integer_buffers b = top_inputs(&c, (uint32_t)(1000 + 100 * i));
        test_push_note("trial %d", i);
        alive = run_top(handle, &c, &b);
        test_pop_note();
    }
    ptxvm_end(handle);
}

/* ---- Known answers ---- */

static void pack(const int *numbers, int rows, int columns, uint32_t *words)
{
    int per_row = (columns + 7) / 8;
    memset(words, 0, (size_t)(rows * per_row) * 4);
    for (int i = 0; i < rows * columns; i++)
        words[i / columns * per_row + i % columns / 8] |= (uint32_t)(numbers[i] & 15) << i % columns % 8 * 4;
}

/* clang-format off */
static const int known_w[] = {1, 2, 3, 4, -1, -2, -3, -4, 5, 4, 3, 2, 1, -4, -3, -2, -1, -5, -8, -7, -6, -5, -4, -3, -2, -1, 0};
/* clang-format on */
static const int known_x[] = {1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 4, -4, 3, -3, 2, -2, 1, -1};
static const float known_rows[] = {0.5f, 0.25f, 0.125f}, known_batch[] = {0.75f, 0.375f};

static integer_buffers known_inputs(void)
{
    integer_buffers b = {0};
    pack(known_x, 2, 9, integer_buffer(&b, QDNN_OPERAND_X, 16, false));
    pack(known_w, 3, 9, integer_buffer(&b, QDNN_OPERAND_CODES, 24, false));
    memcpy(integer_buffer(&b, QDNN_OPERAND_SCALE, 12, false), known_rows, 12);
    memcpy(integer_buffer(&b, QDNN_OPERAND_X_SCALE, 8, false), known_batch, 8);
    return b;
}

TEST_EACH(ParityInteger, KnownProduct, sm_count, sm_name)
{
    NEED_PTXVM;
    static const float expected[] = {10.875f, -5.4375f, -0.9375f, -0.1875f, 0.09375f, 1.40625f};
    const int64_t x[] = {2, 9}, w[] = {3, 9}, y[] = {2, 3};
    qdnnTensorDescriptor_t t[3] = {NULL};
    qdnnIntegerDescriptor_t d = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    qdnnHandle_t handle = ptxvm_begin(sms[index], 1, "all", "stderr");
    integer_buffers b = known_inputs();
    memcpy(integer_buffer(&b, QDNN_OPERAND_Y, sizeof expected, true), expected, sizeof expected);
    if (handle && CHECK_QDNN(qdnnCreateIntegerDescriptor(&d)) &&
        CHECK_QDNN(qdnnSetIntegerAttribute(d, QDNN_INTEGER_W_SCALE_FIRST, 1)) &&
        integer_tensor(&t[0], QDNN_DATA_I4, 2, x) && integer_tensor(&t[1], QDNN_DATA_I4, 2, w) &&
        integer_tensor(&t[2], QDNN_DATA_F32, 2, y) &&
        CHECK_QDNN(qdnnCreateIntegerMatmulPlan(handle, d, t[0], t[1], t[2], &plan)) &&
        CHECK_QDNN(qdnnGetPlanInfo(plan, &info))) {
        CHECK_EQ_STR(info.operation, "quant.int4.batched_matmul.scaled");
        integer_execute(handle, plan, &b, -1);
    }
    integer_tensors_destroy(t, 3);
    qdnnDestroyIntegerDescriptor(d);
    integer_buffers_free(&b);
    ptxvm_end(handle);
}

TEST_EACH(ParityInteger, KnownTop, sm_count, sm_name)
{
    NEED_PTXVM;
    static const float scores[] = {10.875f, 1.40625f};
    static const int32_t places[] = {0, 2};
    qdnnHandle_t handle = ptxvm_begin(sms[index], 1, "all", "stderr");
    integer_buffers b = known_inputs();
    const top_case c = {2, 3, 9, 1, QDNN_DATA_I32, false};
    integer_buffer(&b, QDNN_OPERAND_Y, 8, true);
    integer_buffer(&b, QDNN_OPERAND_TOP_INDEX, 8, true);
    top_expected(&c, &b);
    CHECK_EQ_MEM(b.host[QDNN_OPERAND_Y], scores, sizeof scores);
    CHECK_EQ_MEM(b.host[QDNN_OPERAND_TOP_INDEX], places, sizeof places);
    free(b.host[QDNN_OPERAND_Y]);
    free(b.host[QDNN_OPERAND_TOP_INDEX]);
    if (handle)
        run_top(handle, &c, &b);
    ptxvm_end(handle);
}
