/* Dots, the largest scores and known answers of integer products, through the public API on ptxvm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/integer_case.h"
#include "formats/sample.h"
#include "device/under_test.h"
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

/* A turn has trials of its own, a case for an SM none. */
static void turn_name(int index, char *text, size_t size)
{
    snprintf(text, size, "turn_%d", index);
}

/* ---- Dots ---- */

/* Which of the three roundings to f32 (of the sum, and of its products with the scales) decides between two results. */
typedef enum { DOT_ANY, DOT_SUM, DOT_FIRST, DOT_SECOND } dot_exposes;

typedef struct dot_case {
    int64_t k;
    codes_fill x_fill, w_fill;
    size_t x_shift, w_shift; /* bytes */
    float x_scale, w_scale;
    dot_exposes exposes; /* scales that do are looked for */
} dot_case;

/* A number with few enough bits for f64, as f32. */
static float rounded(double x, bool toward_zero)
{
    const float near = (float)x;
    return toward_zero && fabs((double)near) > fabs(x) ? nextafterf(near, 0) : near;
}

/* The result with one of the roundings toward zero. */
static float dot_result(int32_t sum, float x_scale, float w_scale, dot_exposes toward_zero)
{
    const float number = rounded(sum, toward_zero == DOT_SUM);
    const float first = rounded((double)number * (double)x_scale, toward_zero == DOT_FIRST);
    return rounded((double)first * (double)w_scale, toward_zero == DOT_SECOND);
}

/* Scales around 1 with which the rounding shows in y. */
static void fit_scales(dot_case *c, qdnnDataType_t y, int32_t sum, uint32_t seed)
{
    enum { TRIED = 1 << 22 };
    for (int i = 0; i < TRIED && c->exposes != DOT_ANY; i++) {
        uint32_t usual = 0, other = 0;
        c->x_scale = 0x1p-10f * (1 + (float)integer_random(&seed) * 0x1p-24f);
        c->w_scale = 0x1p-10f * (1 + (float)integer_random(&seed) * 0x1p-24f);
        ref_scalar_store(y, &usual, 0, dot_result(sum, c->x_scale, c->w_scale, DOT_ANY));
        ref_scalar_store(y, &other, 0, dot_result(sum, c->x_scale, c->w_scale, c->exposes));
        if (usual != other)
            return;
    }
    CHECK(c->exposes == DOT_ANY);
}

static bool run_dot(qdnnHandle_t handle, const dot_case *given, qdnnDataType_t y, uint32_t seed,
                    const uint32_t *a, const uint32_t *b)
{
    dot_case chosen = *given, *c = &chosen;
    const int64_t dims[] = {c->k}, one[] = {1};
    const size_t bytes = (size_t)ref_integer_row_bytes(QDNN_DATA_I4, c->k);
    qdnnTensorDescriptor_t t[3] = {NULL};
    qdnnPlan_t plan = NULL;
    integer_buffers buffers = {.shift = {[QDNN_OPERAND_X] = c->x_shift, [QDNN_OPERAND_CODES] = c->w_shift}};
    void *x = integer_buffer(&buffers, QDNN_OPERAND_X, bytes, false);
    void *codes = integer_buffer(&buffers, QDNN_OPERAND_CODES, bytes, false);
    integer_fill(c->x_fill, QDNN_DATA_I4, seed, 1, c->k, x);
    integer_fill(c->w_fill, QDNN_DATA_I4, seed + 1, 1, c->k, codes);
    if (a) {
        memcpy(x, a, bytes);
        memcpy(codes, b, bytes);
    }
    int32_t sum = ref_int4_dot(c->k, x, codes);
    if (y != QDNN_DATA_I32)
        fit_scales(c, y, sum, seed);
    void *out =
        integer_buffer(&buffers, QDNN_OPERAND_Y, y == QDNN_DATA_F16 || y == QDNN_DATA_BF16 ? 2 : 4, true);
    if (y == QDNN_DATA_I32) {
        memcpy(out, &sum, 4);
    } else {
        *(float *)integer_buffer(&buffers, QDNN_OPERAND_X_SCALE, 4, false) = c->x_scale;
        *(float *)integer_buffer(&buffers, QDNN_OPERAND_SCALE, 4, false) = c->w_scale;
        ref_scalar_store(y, out, 0, ref_integer_scaled(sum, c->x_scale, c->w_scale));
    }
    if (a && y == QDNN_DATA_F32)
        CHECK_EQ_F32(*(float *)out, 5.0f);
    if (a && y == QDNN_DATA_I32)
        CHECK_EQ_I64(sum, 40);
    test_push_note("%lld nibbles, seed %u", (long long)c->k, (unsigned)seed);
    bool ok = integer_tensor(&t[0], QDNN_DATA_I4, 1, dims) && integer_tensor(&t[1], QDNN_DATA_I4, 1, dims) &&
              integer_tensor(&t[2], y, 1, one) &&
              CHECK_QDNN(qdnnCreateIntegerDotPlan(handle, t[0], t[1], t[2], &plan)) &&
              integer_execute(handle, plan, &buffers, -1);
    test_pop_note();
    integer_tensors_destroy(t, 3);
    integer_buffers_free(&buffers);
    return ok;
}

DEVICE_EACH(ParityInteger, Dots, sm_count, sm_name)
{
    NEED_SM(sms[index]);
    static const int64_t lengths[] = {0, 1, 7, 8, 9, 31, 32, 1000, 1025, 70001};
    static const qdnnDataType_t types[] = {QDNN_DATA_I32, QDNN_DATA_F32, QDNN_DATA_F16};
    const uint32_t a = 0xCDEF4321, b = 0xFEDC1234;
    const dot_case known = {8, CODES_ANY, CODES_ANY, 0, 0, 0.5f, 0.25f, DOT_ANY};
    qdnnHandle_t handle = device_begin(sms[index], 3, "all");
    bool alive = handle && run_dot(handle, &known, QDNN_DATA_I32, 1, &a, &b) &&
                 run_dot(handle, &known, QDNN_DATA_F32, 1, &a, &b);
    for (int i = 0; i < LENGTH(lengths) && alive; i++)
        for (int k = 0; k < LENGTH(types) && alive; k++) {
            const dot_case one = {lengths[i], CODES_ANY, CODES_ANY, 0, 0, 0.5f, 0.25f, DOT_ANY};
            alive = run_dot(handle, &one, types[k], (uint32_t)(10 * i + k), NULL, NULL);
        }
    device_end(handle);
}

/* Vectors that end within the first, second and third turn of the threads, within and right behind a word, read by words and by 16 bytes;
 * each of both out of line; sums below 0, and sums that f32 rounds up; scales whose order matters, that are rounded, that are infinite or
 * NaN, and with which a last bit shows in y. */
/* clang-format off */
static const dot_case dot_trials[] = {
    {20000,  CODES_ANY,   CODES_ANY,   0,  0,  0.3f,     1.1f,   DOT_ANY},
    {4096,   CODES_ANY,   CODES_ANY,   4,  0,  1.7f,     0.9f,   DOT_ANY},
    {17000,  CODES_SMALL, CODES_SMALL, 0,  0,  1.3f,     0.7f,   DOT_ANY},
    {8192,   CODES_ENDS,  CODES_ENDS,  0,  0,  1e-30f,   1e-14f, DOT_ANY},
    {8224,   CODES_ANY,   CODES_ANY,   0,  8,  -0.1f,    3.0f,   DOT_ANY},
    {400003, CODES_MOST,  CODES_MOST,  0,  0,  1.0f,     1.0f,   DOT_ANY},
    {16416,  CODES_LEAST, CODES_LEAST, 0,  0,  1e30f,    1e30f,  DOT_ANY},
    {32,     CODES_ANY,   CODES_ANY,   0,  0,  INFINITY, 0.0f,   DOT_ANY},
    {64,     CODES_ANY,   CODES_ANY,   12, 12, 0.1f,     -0.3f,  DOT_ANY},
    {2048,   CODES_SMALL, CODES_SMALL, 0,  4,  NAN,      1.0f,   DOT_ANY},
    {2064,   CODES_ANY,   CODES_ANY,   0,  0,  0.7f,     0.01f,  DOT_ANY},
    {1,      CODES_MOST,  CODES_MOST,  8,  4,  1e-38f,   0.1f,   DOT_ANY},
    {2049,   CODES_MOST,  CODES_LEAST, 0,  0,  0.1f,     0.3f,   DOT_ANY},
    {9,      CODES_LEAST, CODES_MOST,  0,  0,  1.1f,     0.3f,   DOT_ANY},
    {400003, CODES_MOST,  CODES_MOST,  0,  0,  1.0f,     1.0f,   DOT_SUM},
    {401,    CODES_MOST,  CODES_MOST,  0,  0,  1.0f,     1.0f,   DOT_FIRST},
    {402,    CODES_MOST,  CODES_MOST,  4,  0,  1.0f,     1.0f,   DOT_SECOND},
};
/* clang-format on */

DEVICE_EACH(ParityInteger, DotTrials, sm_count, turn_name)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_I32, QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
    qdnnHandle_t handle = device_begin(sms[index], 1, "all");
    bool alive = handle != NULL;
    for (int type = 0; type < LENGTH(types); type++)
        for (int i = 0; i < LENGTH(dot_trials) && alive; i++)
            if (sample_is_full() || (i + index) % LENGTH(types) == type)
                alive = run_dot(handle, &dot_trials[i], types[type], (uint32_t)(100 * type + i), NULL, NULL);
    device_end(handle);
}

/* ---- The largest ---- */

/* PLAIN: few different scores. STRANGE: NaNs, infinities and zeros among them. The others have the same sum in every row, so that the
 * scales make the scores, which are negative in some rows of the batch: RISING all different, STEPS equal in neighbouring lanes and in
 * different warps, MOSTLY_NAN, ZEROS of both signs, EDGES where a thread's next score may be missed.
 * EVERY: row i of x has its largest score at row i of w (by the number of bits in which their numbers agree), and so in each thread. */
typedef enum {
    TOP_PLAIN,
    TOP_STRANGE,
    TOP_RISING,
    TOP_STEPS,
    TOP_MOSTLY_NAN,
    TOP_ZEROS,
    TOP_EDGES,
    TOP_EVERY
} top_data;

typedef struct top_case {
    int64_t batch, rows, k, top;
    qdnnDataType_t indices;
    top_data data;
} top_case;

static float any_scale(top_data data, uint32_t r)
{
    static const float odd[] = {0.0f, -0.0f, INFINITY, NAN, 1, -1, -INFINITY, -NAN};
    return data == TOP_STRANGE && r % 2 ? odd[r / 2 % LENGTH(odd)] : (float)(r % 5) * 0.25f - 0.25f;
}

static float row_scale(top_data data, int64_t i, uint32_t r)
{
    switch (data) {
    case TOP_RISING:
        return 1 + (float)((i * 37 + 50) % 4099);
    case TOP_STEPS:
        return 1 + (float)(i / 5 % 9);
    case TOP_MOSTLY_NAN:
        return i % 41 == 7 ? (float)(r % 3) - 1 : i % 2 ? NAN : -NAN;
    case TOP_ZEROS:
        return i % 3 ? -0.0f : 0.0f;
    case TOP_EDGES:
        return i % 256 < 4 ? 1000 + (float)i : 1 + (float)(i % 97);
    case TOP_EVERY:
        return 1;
    default:
        return any_scale(data, r);
    }
}

static void top_scales(top_data data, float *rows, int64_t n, float *batch, int64_t m, uint32_t seed)
{
    static const float signs[] = {1, -0.5f, 0x1p-30f, -1};
    for (int64_t i = 0; i < n; i++)
        rows[i] = row_scale(data, i, integer_random(&seed));
    for (int64_t i = 0; i < m; i++) {
        const uint32_t r = integer_random(&seed);
        batch[i] = data <= TOP_STRANGE ? any_scale(data, r)
                   : data == TOP_EVERY ? 1
                                       : signs[i % LENGTH(signs)];
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

/* Scores never go to memory: one kernel without a workspace, or two with keys of the largest of each part. */
static void check_no_scores(const top_case *c, qdnnPlan_t plan, const qdnnPlanInfo_t *info)
{
    size_t workspace = 1;
    CHECK_QDNN(qdnnGetPlanWorkspaceSize(plan, &workspace));
    CHECK_EQ_I64(info->kernels, c->batch == 0 ? 0 : c->rows < 2048 ? 1 : 2);
    if (c->rows < 2048)
        CHECK_EQ_U64(workspace, 0);
    else
        CHECK(workspace <= (size_t)(c->batch * c->top) * 8 * 4 + 16);
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
    if (ok) {
        CHECK_EQ_STR(info.operation, c->top == 1 ? "quant.int4.batched_matmul.top1.scaled"
                                                 : "quant.int4.batched_matmul.topk.scaled");
        check_no_scores(c, plan, &info);
    }
    ok = ok && integer_execute(handle, plan, b, -1);
    integer_tensors_destroy(t, 4);
    integer_buffers_free(b);
    return ok;
}

/* Code k of row i is 1 or -1, by bit k of i. */
static void fill_bits(int64_t rows, int64_t k, uint8_t *codes)
{
    const int64_t row = ref_integer_row_bytes(QDNN_DATA_I4, k);
    memset(codes, 0, (size_t)(rows * row));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t bit = 0; bit < k; bit++)
            codes[i * row + bit / 2] |= (uint8_t)((i >> bit & 1 ? 0x1 : 0xF) << bit % 2 * 4);
}

static integer_buffers top_inputs(const top_case *c, uint32_t seed)
{
    integer_buffers b = {0};
    const size_t row = (size_t)ref_integer_row_bytes(QDNN_DATA_I4, c->k);
    const codes_fill fill = c->data <= TOP_STRANGE ? CODES_ANY : CODES_MOST;
    integer_fill(fill, QDNN_DATA_I4, seed, c->batch, c->k,
                 integer_buffer(&b, QDNN_OPERAND_X, (size_t)c->batch * row, false));
    integer_fill(fill, QDNN_DATA_I4, seed + 1, c->rows, c->k,
                 integer_buffer(&b, QDNN_OPERAND_CODES, (size_t)c->rows * row, false));
    if (c->data == TOP_EVERY) {
        fill_bits(c->batch, c->k, b.host[QDNN_OPERAND_X]);
        fill_bits(c->rows, c->k, b.host[QDNN_OPERAND_CODES]);
    }
    float *rows = integer_buffer(&b, QDNN_OPERAND_SCALE, (size_t)c->rows * 4, false);
    float *batch = integer_buffer(&b, QDNN_OPERAND_X_SCALE, (size_t)c->batch * 4, false);
    top_scales(c->data, rows, c->rows, batch, c->batch, seed + 2);
    return b;
}

DEVICE_EACH(ParityInteger, TheLargest, sm_count, sm_name)
{
    NEED_SM(sms[index]);
    static const top_case cases[] = {
        {1, 1, 1, 1, QDNN_DATA_I32, TOP_PLAIN},
        {2, 3, 9, 1, QDNN_DATA_F32, TOP_PLAIN},
        {3, 700, 5, 64, QDNN_DATA_I32, TOP_PLAIN},
        {5, 300, 20, 7, QDNN_DATA_F32, TOP_STRANGE},
        {6, 64, 3, 64, QDNN_DATA_I32, TOP_STRANGE},
        {70, 33, 40, 2, QDNN_DATA_I32, TOP_STRANGE},
        {4, 1000, 2, 33, QDNN_DATA_I32, TOP_STRANGE},
        {0, 10, 10, 3, QDNN_DATA_I32, TOP_PLAIN},
        {2, 257, 0, 5, QDNN_DATA_I32, TOP_PLAIN},
        {9, 1500, 33, 1, QDNN_DATA_I32, TOP_PLAIN},
        /* so many columns that blocks share them; ties and NaN on both sides of their borders */
        {1, 2048, 9, 64, QDNN_DATA_I32, TOP_STRANGE},
        {5, 4097, 3, 64, QDNN_DATA_F32, TOP_STEPS},
        {1, 2050, 1, 1, QDNN_DATA_I32, TOP_ZEROS},
        {6, 2049, 2, 33, QDNN_DATA_I32, TOP_MOSTLY_NAN},
    };
    qdnnHandle_t handle = device_begin(sms[index], 5, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < LENGTH(cases) && alive; i++) {
        integer_buffers b = top_inputs(&cases[i], (uint32_t)(100 * i + index));
        test_push_note("case %d", i);
        alive = run_top(handle, &cases[i], &b);
        test_pop_note();
    }
    device_end(handle);
}

/* The product by itself, on the same data: its scores, of which the test above takes the largest. */
static bool run_scores(qdnnHandle_t handle, const top_case *c)
{
    const int64_t x[] = {c->batch, c->k}, w[] = {c->rows, c->k}, y[] = {c->batch, c->rows};
    const ref_integer_spec s = {.m = c->batch, .n = c->rows, .k = c->k, .x = QDNN_DATA_I4, .w = QDNN_DATA_I4};
    qdnnTensorDescriptor_t t[3] = {NULL};
    qdnnIntegerDescriptor_t d = NULL;
    qdnnPlan_t plan = NULL;
    integer_buffers b = top_inputs(c, 77);
    const float *row_scale = b.host[QDNN_OPERAND_SCALE], *batch_scale = b.host[QDNN_OPERAND_X_SCALE];
    float *scores = integer_buffer(&b, QDNN_OPERAND_Y, (size_t)(c->batch * c->rows) * 4, true);
    for (int64_t i = 0; i < c->batch * c->rows; i++)
        scores[i] = ref_integer_scaled(
            ref_integer_sum(&s, b.host[QDNN_OPERAND_X], b.host[QDNN_OPERAND_CODES], i / c->rows, i % c->rows),
            row_scale[i % c->rows], batch_scale[i / c->rows]);
    bool ok = CHECK_QDNN(qdnnCreateIntegerDescriptor(&d)) &&
              CHECK_QDNN(qdnnSetIntegerAttribute(d, QDNN_INTEGER_W_SCALE_FIRST, 1)) &&
              integer_tensor(&t[0], QDNN_DATA_I4, 2, x) && integer_tensor(&t[1], QDNN_DATA_I4, 2, w) &&
              integer_tensor(&t[2], QDNN_DATA_F32, 2, y) &&
              CHECK_QDNN(qdnnCreateIntegerMatmulPlan(handle, d, t[0], t[1], t[2], &plan)) &&
              integer_execute(handle, plan, &b, -1);
    integer_tensors_destroy(t, 3);
    qdnnDestroyIntegerDescriptor(d);
    integer_buffers_free(&b);
    return ok;
}

/* Fused and in two operations: the product's scores have the bits of those among which the fused one finds the largest. */
DEVICE_EACH(ParityInteger, TheLargestOfTheProduct, sm_count, sm_name)
{
    NEED_SM(sms[index]);
    static const top_case cases[] = {{5, 301, 19, 64, QDNN_DATA_I32, TOP_STRANGE},
                                     {1, 2100, 7, 9, QDNN_DATA_I32, TOP_STRANGE},
                                     {3, 77, 40, 1, QDNN_DATA_F32, TOP_ZEROS}};
    qdnnHandle_t handle = device_begin(sms[index], 5, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < LENGTH(cases) && alive; i++) {
        integer_buffers b = top_inputs(&cases[i], 77);
        test_push_note("case %d", i);
        alive = run_scores(handle, &cases[i]) && run_top(handle, &cases[i], &b);
        test_pop_note();
    }
    device_end(handle);
}

/* One text with many rows of scores, so that the largest are in every lane and every warp (docs/mutation.md): each of these with either type
 * of index, in turn the largest, or several. By default fewer rows. */
/* clang-format off */
static const struct {
    int64_t batch, rows, k, top;
    top_data data;
} top_trials[] = {
    {200, 520, 16, 4, TOP_PLAIN},   {9, 1, 4, 1, TOP_STRANGE},       {40, 70, 3, 9, TOP_STRANGE},     {30, 257, 5, 3, TOP_STRANGE},
    {4, 1500, 2, 64, TOP_RISING},   {4, 700, 1, 40, TOP_STEPS},      {4, 300, 8, 9, TOP_MOSTLY_NAN},  {4, 600, 3, 20, TOP_ZEROS},
    {8, 256, 4, 64, TOP_STRANGE},   {12, 2047, 2, 3, TOP_RISING},    {6, 33, 2, 33, TOP_STEPS},       {3, 64, 2, 64, TOP_MOSTLY_NAN},
    {5, 40, 0, 7, TOP_PLAIN},       {20, 1025, 1, 5, TOP_MOSTLY_NAN}, {6, 255, 2, 64, TOP_RISING},    {16, 513, 7, 2, TOP_PLAIN},
    {1, 257, 3, 2, TOP_EDGES},      {2, 1540, 3, 30, TOP_EDGES},     {256, 256, 8, 3, TOP_EVERY},
};
/* clang-format on */

DEVICE_EACH(ParityInteger, TopTrials, sm_count, turn_name)
{
    const bool full = sample_is_full();
    qdnnHandle_t handle = device_begin(sms[index], 5, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < 4 * LENGTH(top_trials) && alive; i++) {
        const int trial = i % LENGTH(top_trials), turn = i / LENGTH(top_trials);
        top_case c = {top_trials[trial].batch,
                      top_trials[trial].rows,
                      top_trials[trial].k,
                      top_trials[trial].top,
                      turn % 2 ? QDNN_DATA_F32 : QDNN_DATA_I32,
                      top_trials[trial].data};
        if (!full && i % (2 * LENGTH(sms)) != 2 * index)
            continue;
        c.top = turn / 2 ? 1 : c.top;
        c.batch = full ? c.batch : 1 + c.batch / 4;
        integer_buffers b = top_inputs(&c, (uint32_t)(1000 + 100 * i));
        test_push_note("trial %d, turn %d", trial, turn);
        alive = run_top(handle, &c, &b);
        test_pop_note();
    }
    device_end(handle);
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

DEVICE_EACH(ParityInteger, KnownProduct, sm_count, sm_name)
{
    NEED_SM(sms[index]);
    static const float expected[] = {10.875f, -5.4375f, -0.9375f, -0.1875f, 0.09375f, 1.40625f};
    const int64_t x[] = {2, 9}, w[] = {3, 9}, y[] = {2, 3};
    qdnnTensorDescriptor_t t[3] = {NULL};
    qdnnIntegerDescriptor_t d = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    qdnnHandle_t handle = device_begin(sms[index], 1, "all");
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
    device_end(handle);
}

DEVICE_EACH(ParityInteger, KnownTop, sm_count, sm_name)
{
    NEED_SM(sms[index]);
    static const float scores[] = {10.875f, 1.40625f};
    static const int32_t places[] = {0, 2};
    qdnnHandle_t handle = device_begin(sms[index], 1, "all");
    integer_buffers b = known_inputs();
    const top_case c = {2, 3, 9, 1, QDNN_DATA_I32, TOP_PLAIN};
    integer_buffer(&b, QDNN_OPERAND_Y, 8, true);
    integer_buffer(&b, QDNN_OPERAND_TOP_INDEX, 8, true);
    top_expected(&c, &b);
    CHECK_EQ_MEM(b.host[QDNN_OPERAND_Y], scores, sizeof scores);
    CHECK_EQ_MEM(b.host[QDNN_OPERAND_TOP_INDEX], places, sizeof places);
    free(b.host[QDNN_OPERAND_Y]);
    free(b.host[QDNN_OPERAND_TOP_INDEX]);
    if (handle)
        run_top(handle, &c, &b);
    device_end(handle);
}
