/* Softmax, top-k and sampling through the public API against host_ref, on ptxvm: as six SMs, with every check on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/integer_case.h"
#include "device/under_test.h"
#include "host_ref/host_ref.h"
#include "support/random.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0] };

/* ---- Data ---- */

typedef enum {
    ROWS_SMOOTH, /* numbers around 0 */
    ROWS_TIES,   /* few values, zeros of both signs, NaN and infinities */
    ROWS_EQUAL,  /* all the same */
    ROWS_RISING, /* each larger than all before: every one is among the largest so far */
    ROWS_MASKED  /* most are -Inf */
} rows_kind;

/* In [-1, 1). */
static float unit(uint64_t *state)
{
    return (float)(random_next(state) >> 40) * 0x1p-23f - 1.0f;
}

static float number_of(rows_kind kind, uint64_t *state, int64_t i)
{
    static const float few[] = {-0.0f, 0.0f, 3, 3, -2, NAN, 1.5f, 3.5f, -INFINITY, 0.0f, 3, 1.5f};
    const float smooth = 6 * unit(state);
    switch (kind) {
    case ROWS_TIES:
        return few[random_next(state) % 12];
    case ROWS_EQUAL:
        return -1.25f;
    case ROWS_RISING:
        return (float)i * 0.01f;
    case ROWS_MASKED:
        return random_next(state) % 16 ? -INFINITY : smooth;
    default:
        return smooth;
    }
}

/* m rows of different kinds: kind, then the next ones. */
static void fill_rows(qdnnDataType_t type, rows_kind kind, uint64_t seed, int64_t m, int64_t n, void *x)
{
    uint64_t state = seed;
    for (int64_t row = 0; row < m; row++)
        for (int64_t i = 0; i < n; i++)
            ref_scalar_store(type, x, row * n + i,
                             number_of((rows_kind)((kind + row) % (ROWS_MASKED + 1)), &state, i));
}

/* ---- Calls ---- */

static qdnnTensorDescriptor_t tensor_of(qdnnDataType_t type, int64_t m, int64_t n)
{
    qdnnTensorDescriptor_t t = NULL;
    const int64_t dims[2] = {m, n};
    return integer_tensor(&t, type, 2, dims) ? t : NULL;
}

static bool set(qdnnSelectDescriptor_t select, qdnnSelectAttribute_t attribute, int64_t value)
{
    return CHECK_QDNN(qdnnSetSelectAttribute(select, attribute, value));
}

/* ---- Top-k ---- */

typedef struct top_case {
    const char *name;
    qdnnDataType_t type;
    int64_t m, n, k;
    rows_kind kind;
    size_t shift; /* elements */
    int kernels;
} top_case;

static const top_case top_cases[] = {
    {"one_of_one", QDNN_DATA_F32, 2, 1, 1, ROWS_SMOOTH, 0, 1},
    {"all_of_seven", QDNN_DATA_F32, 5, 7, 7, ROWS_SMOOTH, 1, 1},
    {"ragged", QDNN_DATA_F32, 5, 1021, 50, ROWS_TIES, 3, 1},
    {"halves", QDNN_DATA_F16, 5, 1023, 64, ROWS_SMOOTH, 5, 1},
    {"bf16", QDNN_DATA_BF16, 5, 2050, 33, ROWS_TIES, 1, 1},
    {"many_of_many", QDNN_DATA_F32, 5, 6000, 1024, ROWS_SMOOTH, 0, 1},
    {"many_halves", QDNN_DATA_F16, 3, 7001, 1000, ROWS_RISING, 1, 1},
    {"parts", QDNN_DATA_F32, 2, 20011, 40, ROWS_TIES, 1, 2},
    {"parts_of_halves", QDNN_DATA_F16, 1, 16384, 8, ROWS_SMOOTH, 0, 2},
    {"parts_of_many", QDNN_DATA_BF16, 1, 20000, 1024, ROWS_EQUAL, 0, 2},
};

static bool run_top(qdnnHandle_t handle, const top_case *c)
{
    const size_t bytes = ref_scalar_size(c->type);
    integer_buffers b = {0};
    char *x = integer_buffer(&b, QDNN_OPERAND_X, (size_t)(c->m * c->n) * bytes, false);
    char *y = integer_buffer(&b, QDNN_OPERAND_Y, (size_t)(c->m * c->k) * bytes, true);
    int32_t *index = integer_buffer(&b, QDNN_OPERAND_INDEX, (size_t)(c->m * c->k) * 4, true);
    b.shift[QDNN_OPERAND_X] = b.shift[QDNN_OPERAND_Y] = c->shift * bytes;
    fill_rows(c->type, c->kind, 5, c->m, c->n, x);
    for (int64_t row = 0; row < c->m; row++)
        ref_top_k(c->type, x + (size_t)(row * c->n) * bytes, c->n, c->k, y + (size_t)(row * c->k) * bytes,
                  index + row * c->k);
    qdnnTensorDescriptor_t t = tensor_of(c->type, c->m, c->n);
    qdnnSelectDescriptor_t select = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    bool ok = CHECK_QDNN(qdnnCreateSelectDescriptor(&select)) && set(select, QDNN_SELECT_TOP, c->k) &&
              CHECK_QDNN(qdnnCreateTopKPlan(handle, t, select, &plan)) &&
              CHECK_QDNN(qdnnGetPlanInfo(plan, &info));
    if (ok) {
        CHECK_EQ_I64(info.kernels, c->kernels);
        CHECK_EQ_STR(info.operation, "select.top_k");
        ok = integer_execute(handle, plan, &b, -1);
    }
    qdnnDestroySelectDescriptor(select);
    integer_tensors_destroy(&t, 1);
    integer_buffers_free(&b);
    return ok;
}

DEVICE_ROWS(ParitySelect, TopK, top_cases)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    if (handle)
        run_top(handle, &top_cases[index]);
    device_end(handle);
}

/* ---- Softmax ---- */

typedef struct softmax_case {
    const char *name;
    qdnnDataType_t x, y, mask; /* mask 0: none */
    int64_t m, n, mask_rows;
    bool slope, sink;
    float scale;
    rows_kind kind;
    size_t shift;
    int64_t rows; /* to execute; 0: all */
} softmax_case;

static const softmax_case softmax_cases[] = {
    {"one", QDNN_DATA_F32, QDNN_DATA_F32, 0, 9, 1, 0, false, false, 1, ROWS_SMOOTH, 0, 0},
    {"a_warp", QDNN_DATA_F32, QDNN_DATA_F16, 0, 21, 256, 0, false, false, 0.5f, ROWS_SMOOTH, 0, 0},
    {"two_rounds", QDNN_DATA_F16, QDNN_DATA_F16, QDNN_DATA_F16, 12, 300, 6, true, true, 0.125f, ROWS_SMOOTH,
     3, 0},
    {"three_rounds", QDNN_DATA_BF16, QDNN_DATA_F32, QDNN_DATA_F32, 10, 767, 0, false, true, -1, ROWS_TIES, 1,
     0},
    {"four_rounds", QDNN_DATA_F32, QDNN_DATA_BF16, QDNN_DATA_BF16, 8, 1024, 4, true, false, 1, ROWS_MASKED, 0,
     0},
    {"fewer_rows", QDNN_DATA_F32, QDNN_DATA_F32, 0, 20, 72, 0, false, false, 1, ROWS_SMOOTH, 0, 11},
    {"staged", QDNN_DATA_F32, QDNN_DATA_F32, 0, 5, 1025, 0, false, false, 2, ROWS_SMOOTH, 1, 0},
    {"two_segments", QDNN_DATA_F16, QDNN_DATA_F32, QDNN_DATA_F16, 4, 8192, 2, true, true, 1, ROWS_SMOOTH, 0,
     3},
    {"read_again", QDNN_DATA_F32, QDNN_DATA_F16, 0, 2, 9001, 0, false, true, 1, ROWS_SMOOTH, 3, 0},
    {"masked_again", QDNN_DATA_BF16, QDNN_DATA_BF16, QDNN_DATA_F32, 2, 12290, 1, true, false, 1, ROWS_MASKED,
     0, 0},
};

static void softmax_reference(const softmax_case *c, integer_buffers *b)
{
    const ref_softmax_spec spec = {c->x, c->y, c->scale, c->mask ? c->mask : QDNN_DATA_F32};
    const size_t x_row = (size_t)c->n * ref_scalar_size(c->x), y_row = (size_t)c->n * ref_scalar_size(c->y),
                 mask_row = (size_t)c->n * ref_scalar_size(spec.mask);
    const int64_t mask_rows = c->mask_rows ? c->mask_rows : c->m;
    char *x = integer_buffer(b, QDNN_OPERAND_X, (size_t)c->m * x_row, false), *mask = NULL;
    char *y = integer_buffer(b, QDNN_OPERAND_Y, (size_t)c->m * y_row, true);
    float *slope = NULL, *sink = NULL;
    const int64_t heads = c->m / mask_rows;
    fill_rows(c->x, c->kind, 17, c->m, c->n, x);
    if (c->mask) {
        mask = integer_buffer(b, QDNN_OPERAND_MASK, (size_t)mask_rows * mask_row, false);
        fill_rows(c->mask, ROWS_MASKED, 23, mask_rows, c->n, mask);
    }
    if (c->slope)
        slope = integer_buffer(b, QDNN_OPERAND_SLOPE, (size_t)heads * 4, false);
    if (c->sink)
        sink = integer_buffer(b, QDNN_OPERAND_SINK, (size_t)heads * 4, false);
    static const float sinks[] = {1, -INFINITY, 30, NAN, INFINITY, -2};
    for (int64_t i = 0; i < heads; i++) {
        if (slope)
            slope[i] = 0.25f * (float)(i + 1);
        if (sink)
            sink[i] = sinks[i % 6];
    }
    b->shift[QDNN_OPERAND_X] = c->shift * ref_scalar_size(c->x);
    b->shift[QDNN_OPERAND_Y] = c->shift * ref_scalar_size(c->y);
    for (int64_t row = 0; row < c->m; row++)
        ref_softmax(&spec, c->n, x + (size_t)row * x_row,
                    mask ? mask + (size_t)(row % mask_rows) * mask_row : NULL,
                    slope ? slope + row / mask_rows : NULL, sink ? sink + row / mask_rows : NULL,
                    y + (size_t)row * y_row);
    b->written = (size_t)c->rows * y_row;
}

static bool run_softmax(qdnnHandle_t handle, const softmax_case *c)
{
    integer_buffers b = {0};
    softmax_reference(c, &b);
    qdnnTensorDescriptor_t t[2] = {tensor_of(c->x, c->m, c->n), tensor_of(c->y, c->m, c->n)};
    qdnnSelectDescriptor_t select = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    bool ok = CHECK_QDNN(qdnnCreateSelectDescriptor(&select)) && set(select, QDNN_SELECT_MASK, c->mask) &&
              set(select, QDNN_SELECT_MASK_ROWS, c->mask_rows) && set(select, QDNN_SELECT_SLOPE, c->slope) &&
              set(select, QDNN_SELECT_SINK, c->sink) && CHECK_QDNN(qdnnSetSelectScale(select, c->scale)) &&
              CHECK_QDNN(qdnnCreateSoftmaxPlan(handle, t[0], select, t[1], &plan)) &&
              CHECK_QDNN(qdnnGetPlanInfo(plan, &info));
    if (ok) {
        CHECK_EQ_I64(info.kernels, 1);
        ok = integer_execute(handle, plan, &b, c->rows ? c->rows : -1);
    }
    qdnnDestroySelectDescriptor(select);
    integer_tensors_destroy(t, 2);
    integer_buffers_free(&b);
    return ok;
}

DEVICE_ROWS(ParitySelect, Softmax, softmax_cases)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    if (handle)
        run_softmax(handle, &softmax_cases[index]);
    device_end(handle);
}

/* ---- Sampling ---- */

/* Rows with these settings in turn. */
static const qdnnSampling_t settings[] = {
    {0, 1, 0, 0, 1, 0, 0, 0},          {1, 1, 0, 0, 1, 0, 0, 0},
    {0.7f, 1, 0, 40, 1, 0, 0, 0},      {1, 0.9f, 0, 0, 1, 0, 0, 0},
    {1.5f, 1, 0.05f, 0, 1, 0, 0, 0},   {0.8f, 0.95f, 0.02f, 64, 1.1f, 0.2f, 0.1f, 0},
    {1, 0, 0, 0, 1, 0, 0, 0},          {1, 1, 2, 0, 1, 0, 0, 0},
    {2, 0.5f, 0, 5000, 1.3f, 0, 0, 0}, {NAN, NAN, NAN, -1, 1, 0, 0, 0},
    {1, NAN, NAN, -3, 1, 0, 0.5f, 0},  {INFINITY, 1, 0, 0, 1, 0, 0, 0},
    {0.01f, 1, 0, 1, 0.5f, -1, -1, 0}, {3, 1, 0, 1, 1, 0, 0, 0}};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

typedef struct sample_case {
    const char *name;
    qdnnDataType_t type;
    int64_t m, n;
    rows_kind kind;
    bool greedy, counts;
    int first; /* of the settings */
    size_t shift;
    int kernels;
    int64_t rows;
} sample_case;

static const sample_case sample_cases[] = {
    {"one_token", QDNN_DATA_F32, 3, 1, ROWS_SMOOTH, false, false, 0, 0, 1, 0},
    {"greedy_few", QDNN_DATA_F32, 12, 5, ROWS_TIES, true, false, 0, 1, 1, 0},
    {"greedy", QDNN_DATA_F32, 6, 3000, ROWS_TIES, true, false, 0, 3, 1, 0},
    {"greedy_halves", QDNN_DATA_F16, 6, 4095, ROWS_SMOOTH, true, false, 0, 5, 1, 4},
    {"greedy_parts", QDNN_DATA_F32, 3, 33001, ROWS_SMOOTH, true, false, 0, 0, 2, 0},
    {"greedy_parts_of_halves", QDNN_DATA_BF16, 2, 20000, ROWS_EQUAL, true, false, 0, 1, 2, 0},
    {"few_tokens", QDNN_DATA_F32, SETTINGS, 11, ROWS_SMOOTH, false, true, 0, 1, 1, 0},
    {"tokens", QDNN_DATA_F32, SETTINGS, 2047, ROWS_SMOOTH, false, false, 0, 3, 1, 9},
    {"other_tokens", QDNN_DATA_F32, SETTINGS, 2052, ROWS_TIES, false, true, 3, 0, 1, 0},
    {"halves", QDNN_DATA_F16, SETTINGS, 1500, ROWS_RISING, false, true, 5, 1, 1, 0},
    {"bf16", QDNN_DATA_BF16, SETTINGS, 1040, ROWS_MASKED, false, false, 2, 0, 1, 0},
    {"parts", QDNN_DATA_F32, 7, 9001, ROWS_SMOOTH, false, true, 0, 1, 3, 0},
    {"parts_of_halves", QDNN_DATA_F16, 7, 12000, ROWS_TIES, false, false, 7, 0, 3, 6},
};

static void sample_reference(const sample_case *c, integer_buffers *b)
{
    const size_t bytes = ref_scalar_size(c->type);
    uint64_t state = 99;
    char *l = integer_buffer(b, QDNN_OPERAND_LOGITS, (size_t)(c->m * c->n) * bytes, false);
    int32_t *index = integer_buffer(b, QDNN_OPERAND_INDEX, (size_t)c->m * 4, true), *counts = NULL;
    qdnnSampling_t *sampling = NULL;
    uint64_t *seed = NULL, *step = NULL;
    fill_rows(c->type, c->kind, 31, c->m, c->n, l);
    if (!c->greedy) {
        sampling = integer_buffer(b, QDNN_OPERAND_SAMPLING, (size_t)c->m * sizeof *sampling, false);
        seed = integer_buffer(b, QDNN_OPERAND_SEED, (size_t)c->m * 8, false);
        step = integer_buffer(b, QDNN_OPERAND_STEP, (size_t)c->m * 8, false);
    }
    if (c->counts)
        counts = integer_buffer(b, QDNN_OPERAND_TOKEN_COUNT, (size_t)(c->m * c->n) * 4, false);
    for (int64_t i = 0; i < c->m * c->n && counts; i++)
        counts[i] = random_next(&state) % 5 ? 0 : (int32_t)(random_next(&state) % 7) - 2;
    b->shift[QDNN_OPERAND_LOGITS] = c->shift * bytes;
    b->written = (size_t)c->rows * 4;
    for (int64_t row = 0; row < c->m; row++) {
        ref_sampling s = {.temperature = 0};
        if (!c->greedy) {
            const qdnnSampling_t *q = &settings[(c->first + row) % SETTINGS];
            sampling[row] = *q;
            seed[row] = random_next(&state);
            step[row] = random_next(&state);
            s = (ref_sampling){q->temperature, q->topP,      q->minP,    q->topK,
                               q->repetition,  q->frequency, q->presence};
        }
        index[row] =
            ref_sample(&s, c->type, l + (size_t)(row * c->n) * bytes, c->n,
                       counts ? counts + row * c->n : NULL, seed ? seed[row] : 0, step ? step[row] : 0);
    }
}

static bool run_sample(qdnnHandle_t handle, const sample_case *c)
{
    integer_buffers b = {0};
    sample_reference(c, &b);
    qdnnTensorDescriptor_t t = tensor_of(c->type, c->m, c->n);
    qdnnSelectDescriptor_t select = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    bool ok = CHECK_QDNN(qdnnCreateSelectDescriptor(&select)) && set(select, QDNN_SELECT_GREEDY, c->greedy) &&
              set(select, QDNN_SELECT_COUNTS, c->counts) &&
              CHECK_QDNN(qdnnCreateSamplePlan(handle, t, select, &plan)) &&
              CHECK_QDNN(qdnnGetPlanInfo(plan, &info));
    if (ok) {
        CHECK_EQ_I64(info.kernels, c->kernels);
        ok = integer_execute(handle, plan, &b, c->rows ? c->rows : -1);
    }
    qdnnDestroySelectDescriptor(select);
    integer_tensors_destroy(&t, 1);
    integer_buffers_free(&b);
    return ok;
}

DEVICE_ROWS(ParitySelect, Sample, sample_cases)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    if (handle)
        run_sample(handle, &sample_cases[index]);
    device_end(handle);
}
