/* Integer products with experts and gated pairs, against host_ref: W8A8 and W4A8, by dp4a and by tiles of both sizes, on six SMs. */
#include <stdlib.h>
#include <string.h>

#include "device/integer_case.h"
#include "device/under_test.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0] };

#define I8  QDNN_DATA_I8
#define U8  QDNN_DATA_U8
#define I4  QDNN_DATA_I4
#define F32 QDNN_DATA_F32
#define F16 QDNN_DATA_F16

typedef struct moe_case {
    const char *name;
    qdnnDataType_t x, w, y;
    int64_t m, outputs, k;  /* outputs: of one expert's weights */
    int64_t experts, slots; /* experts 0: one matrix */
    bool gated;
    int64_t group_size;
    qdnnScaleType_t scale_type;
    qdnnDataType_t quantizes; /* the type of x, if it is quantized in the plan */
    bool w_is_kn, everything; /* everything: alpha, bias, residual, row weights */
    int32_t x_zero, w_zero;
    int64_t rows; /* to execute; 0: all */
    bool one_expert;
    size_t shift; /* bytes of x and w */

} moe_case;

static const moe_case moe_cases[] = {
    /* dp4a: a row per expert, and a few */
    {"w8a8_one_row", I8, I8, F32, 1, 7, 40, 3, 1, false, 0, 0, 0, false, false, 0, 0, 0, false, 0},
    {"w8a8_one_row_each", I8, I8, F32, 6, 12, 64, 8, 2, true, 0, 0, 0, false, true, 0, 0, 0, false, 0},
    {"w8a8_few_rows", I8, I8, F16, 12, 10, 100, 4, 3, true, 0, 0, 0, false, true, 0, 0, 7, false, 0},
    {"w8a8_zeros", U8, I8, F32, 9, 6, 37, 3, 1, true, 0, 0, 0, false, false, 7, -5, 0, false, 1},
    {"w8a8_pairs_alone", I8, I8, F32, 3, 14, 48, 0, 1, true, 0, 0, 0, false, true, 0, 0, 0, false, 0},
    {"w8a8_quantized", I8, I8, F16, 12, 8, 64, 5, 4, true, 0, 0, F16, false, true, 0, 0, 0, false, 0},
    {"w8a8_transposed", I8, I8, F32, 8, 10, 33, 3, 2, true, 0, 0, 0, true, false, 0, 0, 0, false, 0},
    /* tensor cores */
    {"w8a8_tiles", I8, I8, F32, 90, 40, 96, 5, 2, false, 0, 0, 0, false, true, 0, 0, 0, false, 0},
    {"w8a8_tiles_of_pairs", I8, I8, F32, 72, 54, 80, 4, 4, true, 0, 0, 0, false, true, 0, 0, 61, false, 0},
    {"w8a8_tiles_ragged", I8, I8, F16, 77, 18, 61, 3, 7, true, 0, 0, 0, false, false, 0, 0, 0, false, 1},
    {"w8a8_tiles_zeros", U8, I8, F32, 66, 30, 64, 4, 1, true, 0, 0, 0, false, true, 130, 3, 0, false, 0},
    {"w8a8_tiles_one_expert", I8, I8, F32, 130, 70, 64, 2, 2, true, 0, 0, 0, false, false, 0, 0, 0, true, 0},
    {"w8a8_large_tiles", I8, I8, F32, 210, 146, 128, 2, 2, true, 0, 0, 0, false, true, 0, 0, 0, false, 0},
    {"w8a8_large_tiles_zeros",
     I8,
     I8,
     F16,
     150,
     80,
     40,
     2,
     1,
     true,
     0,
     0,
     0,
     false,
     false,
     -3,
     9,
     0,
     false,
     0},
    {"w8a8_large_tiles_alone",
     I8,
     I8,
     F32,
     133,
     132,
     64,
     0,
     1,
     true,
     0,
     0,
     0,
     false,
     true,
     0,
     0,
     0,
     false,
     0},
    {"w8a8_large_quantized",
     I8,
     I8,
     F32,
     140,
     96,
     64,
     2,
     4,
     false,
     0,
     0,
     F32,
     false,
     true,
     0,
     0,
     0,
     false,
     0},
    {"w4a8_one_row", I8, I4,    F32,   2, 9, 96, 4,     2, false, 32,
     QDNN_SCALE_F16, 0,  false, false, 0, 0, 0,  false, 0},
    {"w4a8_few_rows", I8, I4,    F32,  12, 14, 300, 5,     3, true, 64,
     QDNN_SCALE_F32,  0,  false, true, 0,  0,  10,  false, 0},
    {"w4a8_ragged",   I8, I4,    F16,  10, 6, 45, 3,     2, true, 20,
     QDNN_SCALE_BF16, 0,  false, true, 0,  0, 0,  false, 1},
    {"w4a8_pairs_alone", I8, I4,    F32,   5, 10, 128, 0,     1, true, 128,
     QDNN_SCALE_F32,     0,  false, false, 0, 0,  0,   false, 0},
    {"w4a8_quantized", I8,  I4,    F16,   8, 6, 64, 4,     2, true, 32,
     QDNN_SCALE_F32,   F16, false, false, 0, 0, 0,  false, 0},
    {"w4a8_tiles",   I8, I4,    F32,  80, 38, 320, 3,     4, false, 128,
     QDNN_SCALE_F16, 0,  false, true, 0,  0,  0,   false, 0},
    {"w4a8_tiles_of_pairs", I8, I4,    F32,  75, 70, 256, 4,     5, true, 64,
     QDNN_SCALE_F32,        0,  false, true, 0,  0,  66,  false, 0},
    {"w4a8_tiles_ragged", I8, I4,    F16,   66, 34, 100, 3,    2, true, 32,
     QDNN_SCALE_BF16,     0,  false, false, 0,  0,  0,   true, 1},
    {"w4a8_tiles_alone", I8, I4,    F32,  70, 50, 640, 0,     1, true, 256,
     QDNN_SCALE_F32,     0,  false, true, 0,  0,  0,   false, 0},
};

/* ---- Data ---- */

static int64_t x_rows(const moe_case *c)
{
    return c->m / c->slots;
}

static int64_t columns(const moe_case *c)
{
    return c->gated ? c->outputs / 2 : c->outputs;
}

static int64_t stack(const moe_case *c)
{
    return c->experts ? c->experts : 1;
}

/* Experts, some of which are out of range. */
static void fill_experts(const moe_case *c, int32_t *index)
{
    const int32_t strange[] = {-1, (int32_t)c->experts, INT32_MAX, INT32_MIN};
    uint32_t state = 77;
    for (int64_t i = 0; i < c->m; i++) {
        const uint32_t any = integer_random(&state);
        index[i] = c->one_expert  ? (int32_t)c->experts - 1
                   : any % 9 == 8 ? strange[any / 9 % 4]
                                  : (int32_t)(any % (uint32_t)c->experts);
    }
}

static float *numbers(integer_buffers *b, qdnnOperand_t operand, qdnnDataType_t type, uint32_t seed,
                      float middle, int64_t n)
{
    void *array = integer_buffer(b, operand, (size_t)n * ref_scalar_size(type), false);
    integer_fill_numbers(type, false, seed, middle, n, array);
    return array;
}

/* x as the caller gives it, and its codes and scales. */
static void make_x(const moe_case *c, integer_buffers *b, int8_t *codes, float *scales)
{
    const int64_t count = x_rows(c) * c->k;
    if (!c->quantizes) {
        integer_fill(CODES_ANY, c->x, 1, x_rows(c), c->k,
                     integer_buffer(b, QDNN_OPERAND_X, (size_t)count, false));
        integer_fill_numbers(F32, false, 2, 0.01f, x_rows(c), scales);
        memcpy(codes, b->host[QDNN_OPERAND_X], (size_t)count);
        memcpy(integer_buffer(b, QDNN_OPERAND_X_SCALE, (size_t)x_rows(c) * 4, false), scales,
               (size_t)x_rows(c) * 4);
        return;
    }
    const ref_quant_spec spec = {
        .data = c->quantizes, .storage = I8, .group_size = c->k, .floor = REF_DEFAULT_FLOOR};
    const ref_arrays arrays = {.codes = codes, .scale = scales};
    const void *x = numbers(b, QDNN_OPERAND_X, c->quantizes, 1, 3, count);
    ref_scale(&spec, 1, count, x, &arrays);
    ref_quantize(&spec, 1, count, x, &arrays);
}

static void make_case(const moe_case *c, integer_buffers *b, int8_t *codes, float *x_scale)
{
    const int64_t all = stack(c) * c->outputs,
                  groups = c->group_size ? (c->k + c->group_size - 1) / c->group_size : 1,
                  w_rows = c->w_is_kn ? c->k : c->outputs, w_columns = c->w_is_kn ? c->outputs : c->k;
    const qdnnDataType_t scale_type = c->group_size ? ref_scale_data_type(c->scale_type) : F32;
    const size_t w_bytes = (size_t)(stack(c) * w_rows * ref_integer_row_bytes(c->w, w_columns));
    make_x(c, b, codes, x_scale);
    integer_fill(CODES_ANY, c->w, 3, stack(c) * w_rows, w_columns,
                 integer_buffer(b, QDNN_OPERAND_CODES, w_bytes, false));
    const ref_integer_spec s = {.m = c->rows ? c->rows : c->m,
                                .n = c->outputs,
                                .k = c->k,
                                .x = c->x,
                                .w = c->w,
                                .w_is_kn = c->w_is_kn,
                                .x_zero = c->x_zero,
                                .w_zero = c->w_zero};
    const ref_integer_scales scales = {.x = x_scale,
                                       .w =
                                           numbers(b, QDNN_OPERAND_SCALE, scale_type, 4, 0.02f, all * groups),
                                       .group_size = c->group_size,
                                       .type = c->scale_type};
    ref_product law = {.y = c->y,
                       .gated = c->gated,
                       .experts = c->experts,
                       .slots = c->slots,
                       .activation = c->gated ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE};
    ref_product_arrays a = {0};
    if (c->everything) {
        law.alpha = QDNN_ALPHA_COLUMN;
        law.bias = F16;
        a.alpha = numbers(b, QDNN_OPERAND_ALPHA, F32, 5, 1, all);
        a.bias = numbers(b, QDNN_OPERAND_BIAS, F16, 6, 2, all);
        a.residual = numbers(b, QDNN_OPERAND_RESIDUAL, c->y, 7, 1, c->m * columns(c));
        a.row_weight = numbers(b, QDNN_OPERAND_ROW_WEIGHT, F32, 8, 1, c->m);
    }
    if (c->experts) {
        fill_experts(c, integer_buffer(b, QDNN_OPERAND_EXPERT_INDEX, (size_t)c->m * 4, false));
        a.expert_index = b->host[QDNN_OPERAND_EXPERT_INDEX];
    }
    a.y = integer_buffer(b, QDNN_OPERAND_Y, (size_t)(c->m * columns(c)) * ref_scalar_size(c->y), true);
    ref_integer_product(&s, &scales, &law, codes, b->host[QDNN_OPERAND_CODES], &a);
    b->written = (size_t)(c->rows * columns(c)) * ref_scalar_size(c->y);
    b->shift[QDNN_OPERAND_X] = c->shift;
    b->shift[QDNN_OPERAND_CODES] = c->w == I4 ? 4 * c->shift : c->shift;
}

/* ---- The call ---- */

static bool make_plan(qdnnHandle_t handle, const moe_case *c, qdnnPlan_t *plan)
{
    const int64_t values[][2] = {
        {QDNN_INTEGER_TRANSPOSE_W, !c->w_is_kn},
        {QDNN_INTEGER_X_ZERO, c->x_zero},
        {QDNN_INTEGER_W_ZERO, c->w_zero},
        {QDNN_INTEGER_BIAS_TYPE, c->everything ? F16 : 0},
        {QDNN_INTEGER_ALPHA, c->everything ? QDNN_ALPHA_COLUMN : QDNN_ALPHA_NONE},
        {QDNN_INTEGER_RESIDUAL, c->everything},
        {QDNN_INTEGER_ROW_WEIGHT, c->everything},
        {QDNN_INTEGER_ACTIVATION, c->gated ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE},
        {QDNN_INTEGER_GROUP_SIZE, c->group_size ? c->group_size : 128},
        {QDNN_INTEGER_SCALE_TYPE, c->scale_type},
        {QDNN_INTEGER_GATED, c->gated},
        {QDNN_INTEGER_EXPERTS, c->experts},
        {QDNN_INTEGER_SLOTS, c->slots}};
    const int64_t x[] = {x_rows(c), c->k}, y[] = {c->m, columns(c)};
    const int64_t w[] = {c->experts, c->w_is_kn ? c->k : c->outputs, c->w_is_kn ? c->outputs : c->k};
    qdnnIntegerDescriptor_t d = NULL;
    qdnnTensorDescriptor_t t[3] = {NULL};
    bool ok = CHECK_QDNN(qdnnCreateIntegerDescriptor(&d));
    for (size_t i = 0; i < sizeof values / sizeof values[0] && ok; i++)
        ok = CHECK_QDNN(qdnnSetIntegerAttribute(d, (qdnnIntegerAttribute_t)values[i][0], values[i][1]));
    ok = ok && integer_tensor(&t[0], c->quantizes ? c->quantizes : c->x, 2, x) &&
         integer_tensor(&t[1], c->w, c->experts ? 3 : 2, c->experts ? w : w + 1) &&
         integer_tensor(&t[2], c->y, 2, y) &&
         CHECK_QDNN(qdnnCreateIntegerMatmulPlan(handle, d, t[0], t[1], t[2], plan));
    qdnnDestroyIntegerDescriptor(d);
    integer_tensors_destroy(t, 3);
    return ok;
}

static void run_case(qdnnHandle_t handle, const moe_case *c)
{
    integer_buffers b = {0};
    qdnnPlan_t plan = NULL;
    int8_t *codes = calloc((size_t)(x_rows(c) * c->k) + 1, 1);
    float *x_scale = calloc((size_t)x_rows(c) + 1, sizeof *x_scale);
    if (CHECK(codes && x_scale)) {
        make_case(c, &b, codes, x_scale);
        if (make_plan(handle, c, &plan))
            integer_execute(handle, plan, &b, c->rows ? c->rows : -1);
    }
    integer_buffers_free(&b);
    free(codes);
    free(x_scale);
}

DEVICE_ROWS(ParityIntegerMoe, HostRef, moe_cases)
{
    for (int i = 0; i < SMS; i++) {
        qdnnHandle_t handle = device_begin(sms[i], index, "all");
        if (handle)
            run_case(handle, &moe_cases[index]);
        device_end(handle);
    }
}
