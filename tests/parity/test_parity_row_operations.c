/* Norms and operations on each element through the public API against host_ref: every type, ragged rows, quantized
 * results, strides, fewer rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/row_case.h"
#include "device/under_test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

static size_t size_of(qdnnDataType_t type)
{
    return (size_t)ref_scalar_size(type);
}

/* A tensor [rows, heads, columns] whose tokens lie `gap` elements further apart than they have to. */
static bool make_tensor(qdnnDataType_t type, int64_t rows, int64_t heads, int64_t columns, int64_t gap,
                        qdnnTensorDescriptor_t *tensor)
{
    const int64_t dims[] = {rows, heads, columns}, strides[] = {heads * columns + gap, columns, 1};
    return CHECK_QDNN(qdnnCreateTensorDescriptor(tensor)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(*tensor, type, 3, dims, strides));
}

/* The rows of x as host_ref takes them, without gaps. */
static void *packed(qdnnDataType_t type, const uint8_t *x, int64_t rows, int64_t token, int64_t gap)
{
    const size_t size = size_of(type), bytes = (size_t)token * size;
    uint8_t *out = malloc((size_t)rows * bytes + 1);
    for (int64_t m = 0; out && m < rows; m++)
        memcpy(out + (size_t)m * bytes, x + (size_t)(m * (token + gap)) * size, bytes);
    return out;
}

/* ---- Norms ---- */

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16

typedef struct norm_case {
    const char *name;
    qdnnNormKind_t kind;
    qdnnDataType_t x, y, weight, bias, sum;
    int64_t rows, heads, columns, gap;
    int plus_one;
    row_behind behind;
    size_t shift; /* elements from an aligned address */
    bool special;
} norm_case;

static const norm_case norms[] = {
    {"One", QDNN_NORM_RMS, F32, F32, 0, 0, 0, 3, 1, 1, 0, 0, 0, 0, false},
    {"Seven", QDNN_NORM_LAYER, F16, BF16, F32, F16, 0, 5, 1, 7, 0, 0, 0, 0, false},
    {"Head64", QDNN_NORM_RMS, BF16, BF16, BF16, 0, 0, 5, 3, 64, 128, 0, 0, 0, false},
    {"Head128PlusOne", QDNN_NORM_RMS, F16, F16, F16, 0, 0, 4, 5, 128, 0, 1, 0, 0, false},
    {"Head72Layer", QDNN_NORM_LAYER, F32, F16, F32, F32, 0, 4, 5, 72, 0, 0, 0, 0, false},
    {"N576", QDNN_NORM_RMS, F32, F32, F32, 0, F32, 7, 1, 576, 0, 0, 0, 0, false},
    {"N576Shifted", QDNN_NORM_LAYER, BF16, F32, F32, BF16, F32, 3, 1, 576, 0, 0, 0, 1, false},
    {"N577", QDNN_NORM_RMS, BF16, BF16, F16, 0, BF16, 4, 1, 577, 0, 1, 0, 0, false},
    {"N1025Gap", QDNN_NORM_LAYER, F16, F32, 0, 0, 0, 3, 1, 1025, 3, 0, 0, 0, false},
    {"N4096", QDNN_NORM_RMS, BF16, BF16, BF16, 0, F32, 3, 1, 4096, 0, 0, 0, 0, false},
    {"N4096Special", QDNN_NORM_LAYER, F32, F32, F32, F32, 0, 3, 1, 4096, 0, 0, 0, 0, true},
    {"N4097", QDNN_NORM_RMS, F16, F16, F16, 0, F16, 2, 1, 4097, 0, 0, 0, 0, false},
    {"N5120Layer", QDNN_NORM_LAYER, F16, F16, F16, F16, 0, 2, 1, 5120, 8, 0, 0, 0, false},
    {"N10000", QDNN_NORM_LAYER, F32, BF16, F32, F32, F32, 2, 1, 10000, 0, 0, 0, 0, false},
    {"N16384", QDNN_NORM_RMS, F32, F32, F32, 0, 0, 2, 1, 16384, 0, 0, 0, 0, false},
    {"N20001", QDNN_NORM_LAYER, BF16, BF16, BF16, BF16, 0, 1, 1, 20001, 0, 0, 0, 0, false},
    {"N32768", QDNN_NORM_RMS, F16, F32, F32, 0, F16, 1, 1, 32768, 0, 0, 0, 0, false},
    {"Int8", QDNN_NORM_RMS, BF16, BF16, BF16, 0, BF16, 5, 1, 4096, 0, 0, BEHIND_INT8, 0, false},
    {"Int8Of576", QDNN_NORM_LAYER, F32, F32, F32, F32, 0, 5, 1, 576, 0, 0, BEHIND_INT8, 0, false},
    {"Fp8", QDNN_NORM_RMS, F16, F16, F16, 0, 0, 3, 1, 2056, 0, 0, BEHIND_FP8, 0, true},
    {"Nvfp4", QDNN_NORM_RMS, BF16, BF16, BF16, 0, F32, 3, 1, 2048, 0, 0, BEHIND_NVFP4, 0, false},
    {"Mxfp8", QDNN_NORM_RMS, F16, BF16, 0, 0, 0, 3, 1, 4128, 0, 0, BEHIND_MXFP8, 0, false},
    {"Fp8Of128", QDNN_NORM_LAYER, BF16, F16, F32, F32, 0, 3, 1, 5120, 0, 0, BEHIND_FP8_128, 0, false},
    {"Int4", QDNN_NORM_RMS, F32, F32, F32, 0, 0, 3, 2, 192, 0, 0, BEHIND_INT4, 0, false},
    {"Int8Shifted", QDNN_NORM_RMS, BF16, BF16, BF16, 0, 0, 3, 1, 1024, 0, 0, BEHIND_INT8, 1, false},
    {"Nvfp4Special", QDNN_NORM_RMS, F32, F32, 0, 0, 0, 4, 1, 512, 0, 0, BEHIND_NVFP4, 1, true},
    {"Fp8Of20480", QDNN_NORM_RMS, BF16, BF16, BF16, 0, 0, 1, 1, 20480, 0, 0, BEHIND_FP8, 0, false},
    {"NoRows", QDNN_NORM_RMS, BF16, BF16, BF16, 0, BF16, 0, 1, 64, 0, 0, 0, 0, false},
};

/* Fills the operands in, with what host_ref makes of them. */
static void fill_norm(const norm_case *c, uint64_t seed, row_operands *all)
{
    const int64_t rows = c->rows, token = c->heads * c->columns;
    const ref_norm_spec spec = {.columns = c->columns,
                                .is_layer = c->kind == QDNN_NORM_LAYER,
                                .plus_one = c->plus_one,
                                .x = c->x,
                                .y = c->y,
                                .weight = c->weight,
                                .bias = c->bias,
                                .sum = c->sum,
                                .eps = 1e-5f};
    ref_norm_arrays a = {0};
    const size_t x_size = (size_t)(rows ? (rows - 1) * (token + c->gap) + token : 0) * size_of(c->x);
    uint8_t *x = row_operands_add(all, QDNN_OPERAND_X, x_size);
    row_fill(c->x, x, (int64_t)(x_size / size_of(c->x)), seed, c->special);
    void *x_packed = packed(c->x, x, rows, token, c->gap), *y_alone = NULL;
    a.x = x_packed;
    if (c->weight) {
        uint8_t *w = row_operands_add(all, QDNN_OPERAND_WEIGHT, (size_t)c->columns * size_of(c->weight));
        row_fill(c->weight, w, c->columns, seed + 1, false);
        a.weight = w;
    }
    if (c->bias) {
        uint8_t *bias = row_operands_add(all, QDNN_OPERAND_BIAS, (size_t)c->columns * size_of(c->bias));
        row_fill(c->bias, bias, c->columns, seed + 2, false);
        a.bias = bias;
    }
    if (c->sum) {
        uint8_t *residual =
            row_operands_add(all, QDNN_OPERAND_RESIDUAL, (size_t)(rows * token) * size_of(c->sum));
        row_fill(c->sum, residual, rows * token, seed + 3, c->special);
        a.residual = residual;
        a.sum = row_operands_result(all, QDNN_OPERAND_SUM, (size_t)rows, (size_t)token * size_of(c->sum));
    }
    const size_t y_row = (size_t)token * size_of(c->y);
    y_alone = calloc((size_t)rows * y_row + 1, 1);
    a.y = c->behind ? y_alone : row_operands_result(all, QDNN_OPERAND_Y, (size_t)rows, y_row);
    ref_norm(&spec, rows * c->heads, &a);
    if (c->behind) {
        row_behind_result(all, c->behind, c->y, rows * c->heads, c->columns, y_alone);
        for (int i = all->count - 2; i < all->count; i++)
            all->at[i].in_row *= (size_t)c->heads; /* rows of heads become rows of tokens */
    }
    for (int i = 0; i < all->count; i++)
        all->at[i].shift = c->shift * (all->at[i].operand == QDNN_OPERAND_CODES ? 1 : 4);
    free(x_packed);
    free(y_alone);
}

static void run_norm(qdnnHandle_t handle, const norm_case *c, uint64_t seed)
{
    const qdnnNorm_t norm = {.size = sizeof norm,
                             .kind = c->kind,
                             .eps = 1e-5f,
                             .weightType = c->weight,
                             .weightPlusOne = c->plus_one,
                             .biasType = c->bias,
                             .sumType = c->sum};
    qdnnTensorDescriptor_t x = NULL, y = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    row_operands all = {0};
    fill_norm(c, seed, &all);
    if (make_tensor(c->x, c->rows, c->heads, c->columns, c->gap, &x) &&
        make_tensor(c->y, c->rows, c->heads, c->columns, 0, &y) &&
        row_behind_make(c->behind, c->columns, &quant) &&
        CHECK_QDNN(qdnnCreateNormPlan(handle, &norm, x, y, quant, &plan)) &&
        row_operands_check(handle, plan, &all, c->rows))
        row_operands_check(handle, plan, &all, c->rows / 2);
    row_operands_free(&all);
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(quant);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(y);
}

DEVICE_ROWS(ParityNorm, HostRef, norms)
{
    if (norms[index].rows == 0)
        device_launches_nothing();
    qdnnHandle_t handle = device_begin(sms[index % 6], 1, "all");
    if (handle)
        run_norm(handle, &norms[index], (uint64_t)index + 1);
    device_end(handle);
}

/* ---- Operations on each element ---- */

typedef struct pointwise_case {
    const char *name;
    qdnnPointwiseKind_t kind;
    qdnnActivation_t function;
    qdnnSecond_t second;
    qdnnDataType_t x, b, y;
    int64_t rows, columns, gap;
    row_behind behind;
    size_t shift;
    bool special;
} pointwise_case;

#define ADD      QDNN_POINTWISE_ADD, QDNN_ACTIVATION_NONE
#define MUL      QDNN_POINTWISE_MUL, QDNN_ACTIVATION_NONE
#define F(name)  QDNN_POINTWISE_FUNCTION, QDNN_ACTIVATION_##name, QDNN_SECOND_NONE
#define GATED(f) QDNN_POINTWISE_GATED, QDNN_ACTIVATION_##f
static const pointwise_case pointwises[] = {
    {"Add", ADD, QDNN_SECOND_TENSOR, F32, F16, BF16, 5, 1000, 0, 0, 0, true},
    {"AddOdd", ADD, QDNN_SECOND_TENSOR, BF16, F32, F16, 5, 577, 5, 0, 0, true},
    {"AddRow", ADD, QDNN_SECOND_ROW, F16, F16, F16, 7, 4096, 0, 0, 0, false},
    {"AddNumber", ADD, QDNN_SECOND_NUMBER, BF16, F32, F32, 3, 10000, 0, 0, 0, false},
    {"Mul", MUL, QDNN_SECOND_TENSOR, F16, BF16, F32, 2, 4097, 0, 0, 0, true},
    {"MulRow", MUL, QDNN_SECOND_ROW, F32, BF16, BF16, 3, 64, 64, 0, 0, false},
    {"MulNumber", MUL, QDNN_SECOND_NUMBER, F32, F32, F32, 9, 1, 0, 0, 0, true},
    {"None", F(NONE), F32, F32, BF16, 3, 16, 0, 0, 0, false},
    {"Relu", F(RELU), F32, F32, F32, 3, 333, 0, 0, 0, true},
    {"GeluTanh", F(GELU_TANH), BF16, F32, BF16, 2, 2048, 0, 0, 0, true},
    {"GeluErf", F(GELU_ERF), F16, F32, F32, 2, 512, 0, 0, 0, true},
    {"Silu", F(SILU), F32, F32, F16, 2, 256, 0, 0, 1, true},
    {"Tanh", F(TANH), F32, F32, F32, 2, 248, 0, 0, 0, true},
    {"Sigmoid", F(SIGMOID), BF16, F32, BF16, 2, 7, 0, 0, 0, true},
    {"ReluSquared", F(RELU_SQUARED), F16, F32, F16, 2, 640, 0, 0, 0, true},
    {"Softcap", F(SOFTCAP), F32, F32, F32, 2, 500, 0, 0, 0, true},
    {"GatedTwo", GATED(SILU), QDNN_SECOND_TENSOR, BF16, BF16, BF16, 4, 1536, 0, 0, 0, true},
    {"GatedLast", GATED(SILU), QDNN_SECOND_LAST_HALF, F16, F16, F16, 3, 1000, 0, 0, 0, false},
    {"GatedFirst", GATED(GELU_TANH), QDNN_SECOND_FIRST_HALF, F32, F32, BF16, 3, 576, 32, 0, 0, false},
    {"GatedOdd", GATED(NONE), QDNN_SECOND_LAST_HALF, BF16, F32, F32, 3, 7, 0, 0, 0, false},
    {"Interleaved", GATED(SIGMOID), QDNN_SECOND_INTERLEAVED, F32, F32, F32, 3, 320, 0, 0, 0, true},
    {"InterleavedF16", GATED(RELU), QDNN_SECOND_INTERLEAVED, F16, F32, F16, 3, 2880, 0, 0, 0, true},
    {"InterleavedOdd", GATED(SILU), QDNN_SECOND_INTERLEAVED, BF16, F32, BF16, 3, 333, 0, 0, 0, false},
    {"Clamped", GATED(CLAMPED_SILU), QDNN_SECOND_INTERLEAVED, BF16, F32, BF16, 2, 2880, 0, 0, 0, true},
    {"ClampedHalves", GATED(CLAMPED_SILU), QDNN_SECOND_LAST_HALF, F32, F32, F32, 2, 100, 0, 0, 0, true},
    {"Int8", GATED(SILU), QDNN_SECOND_LAST_HALF, BF16, BF16, BF16, 3, 14336, 0, BEHIND_INT8, 0, false},
    {"Fp8", F(SILU), F16, F32, F32, 3, 2000, 0, BEHIND_FP8, 0, true},
    {"Nvfp4", GATED(SILU), QDNN_SECOND_TENSOR, F16, F16, F16, 2, 5136, 0, BEHIND_NVFP4, 0, false},
    {"Mxfp8", ADD, QDNN_SECOND_TENSOR, F32, F32, F32, 3, 96, 0, BEHIND_MXFP8, 1, true},
    {"Fp8Of128", GATED(GELU_ERF), QDNN_SECOND_INTERLEAVED, BF16, F32, F16, 2, 6144, 0, BEHIND_FP8_128, 0,
     false},
    {"Int4", MUL, QDNN_SECOND_NUMBER, F32, F32, BF16, 3, 64, 0, BEHIND_INT4, 1, false},
    {"NoRows", ADD, QDNN_SECOND_TENSOR, F32, F16, BF16, 0, 1000, 0, 0, 0, false},
};

static ref_pointwise_b reference_place(qdnnSecond_t second)
{
    static const ref_pointwise_b places[] = {REF_B_NONE,       REF_B_SAME,        REF_B_ROW,
                                             REF_B_NUMBER,     REF_B_SECOND_HALF, REF_B_FIRST_HALF,
                                             REF_B_INTERLEAVED};
    return places[second];
}

enum { LIMIT = 7 };
static const float number = -1.37f, factor = 1.702f;

static void fill_pointwise(const pointwise_case *c, uint64_t seed, row_operands *all)
{
    static const ref_pointwise_kind kinds[] = {REF_ADD, REF_MUL, REF_FUNCTION, REF_GATED};
    const int64_t rows = c->rows, token = c->columns * (c->second >= QDNN_SECOND_LAST_HALF ? 2 : 1);
    const ref_pointwise_spec spec = {.columns = c->columns,
                                     .kind = kinds[c->kind],
                                     .function = c->function,
                                     .b = reference_place(c->second),
                                     .number = number,
                                     .limit = LIMIT,
                                     .factor = factor,
                                     .x = c->x,
                                     .b_type = c->b,
                                     .y = c->y};
    const int64_t x_elements = rows ? (rows - 1) * (token + c->gap) + token : 0;
    uint8_t *x = row_operands_add(all, QDNN_OPERAND_X, (size_t)x_elements * size_of(c->x)), *b = NULL;
    row_fill(c->x, x, x_elements, seed, c->special);
    if (c->second == QDNN_SECOND_TENSOR || c->second == QDNN_SECOND_ROW) {
        const int64_t elements = c->columns * (c->second == QDNN_SECOND_ROW ? 1 : rows);
        b = row_operands_add(all, QDNN_OPERAND_B, (size_t)elements * size_of(c->b));
        row_fill(c->b, b, elements, seed + 1, c->special);
    }
    void *x_packed = packed(c->x, x, rows, token, c->gap);
    const size_t y_row = (size_t)c->columns * size_of(c->y);
    void *y_alone = calloc((size_t)rows * y_row + 1, 1);
    void *y = c->behind ? y_alone : row_operands_result(all, QDNN_OPERAND_Y, (size_t)rows, y_row);
    ref_pointwise(&spec, rows, x_packed, b, y);
    if (c->behind)
        row_behind_result(all, c->behind, c->y, rows, c->columns, y_alone);
    for (int i = 0; i < all->count; i++)
        all->at[i].shift = c->shift * (all->at[i].operand == QDNN_OPERAND_CODES ? 1 : 4);
    free(x_packed);
    free(y_alone);
}

static void run_pointwise(qdnnHandle_t handle, const pointwise_case *c, uint64_t seed)
{
    const qdnnPointwise_t pointwise = {.size = sizeof pointwise,
                                       .kind = c->kind,
                                       .function = c->function,
                                       .second = c->second,
                                       .secondType = c->b,
                                       .number = number,
                                       .limit = LIMIT,
                                       .factor = factor};
    const int64_t token = c->columns * (c->second >= QDNN_SECOND_LAST_HALF ? 2 : 1);
    qdnnTensorDescriptor_t x = NULL, y = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    row_operands all = {0};
    fill_pointwise(c, seed, &all);
    if (make_tensor(c->x, c->rows, 1, token, c->gap, &x) &&
        make_tensor(c->y, c->rows, 1, c->columns, 0, &y) && row_behind_make(c->behind, c->columns, &quant) &&
        CHECK_QDNN(qdnnCreatePointwisePlan(handle, &pointwise, x, NULL, y, quant, &plan)) &&
        row_operands_check(handle, plan, &all, c->rows))
        row_operands_check(handle, plan, &all, c->rows / 2);
    row_operands_free(&all);
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(quant);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyTensorDescriptor(y);
}

DEVICE_ROWS(ParityPointwise, HostRef, pointwises)
{
    if (pointwises[index].rows == 0)
        device_launches_nothing();
    qdnnHandle_t handle = device_begin(sms[index % 6], 1, "all");
    if (handle)
        run_pointwise(handle, &pointwises[index], (uint64_t)index + 1);
    device_end(handle);
}

/* ---- Answers worked out by hand (docs/numerics.md) ---- */

TEST_CASE(RefRows, KnownAnswers)
{
    const float x[] = {3, 4}, z[] = {1, 3}, w[] = {2, 4}, b[] = {1, 1}, limits[] = {9, -9};
    float y[2];
    ref_norm(&(ref_norm_spec){.columns = 2, .x = F32, .y = F32}, 1, &(ref_norm_arrays){.x = x, .y = y});
    CHECK(y[0] == 0x1.b27248p-1f && y[1] == 0x1.21a186p+0f);
    ref_norm(&(ref_norm_spec){.columns = 2, .is_layer = true, .x = F32, .y = F32, .weight = F32, .bias = F32}, 1,
             &(ref_norm_arrays){.x = z, .weight = w, .bias = b, .y = y});
    CHECK(y[0] == -1 && y[1] == 5);
    ref_pointwise(&(ref_pointwise_spec){.columns = 1,
                                        .kind = REF_GATED,
                                        .function = QDNN_ACTIVATION_CLAMPED_SILU,
                                        .b = REF_B_INTERLEAVED,
                                        .limit = 7,
                                        .factor = 1.702f,
                                        .x = F32,
                                        .y = F32},
                  1, limits, NULL, y);
    CHECK(y[0] == 7 * ref_sigmoid(1.702f * 7) * -6);
}
