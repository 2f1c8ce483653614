/* Descriptors and plans of integer products: defaults, what is refused and with which message, which operands
 * a plan takes. */
#include <string.h>

#include "scene.h"

static void check_refused(qdnnStatus_t status, qdnnStatus_t expected, const char *words)
{
    CHECK_STATUS_IS(status, expected);
    CHECK_HAS(last_sentence(), words);
}

TEST_CASE(ApiInteger, Defaults)
{
    static const int64_t presets[QDNN_INTEGER_ATTRIBUTE_COUNT] = {
        [QDNN_INTEGER_TRANSPOSE_W] = 1,  [QDNN_INTEGER_ROUNDING] = QDNN_ROUND_TIES_AWAY,
        [QDNN_INTEGER_GROUP_SIZE] = 128, [QDNN_INTEGER_STRIDE_H] = 1,
        [QDNN_INTEGER_STRIDE_W] = 1,     [QDNN_INTEGER_DILATION_H] = 1,
        [QDNN_INTEGER_DILATION_W] = 1,   [QDNN_INTEGER_GROUPS] = 1,
        [QDNN_INTEGER_SLOTS] = 1,
    };
    qdnnIntegerDescriptor_t d = NULL;
    OK(qdnnCreateIntegerDescriptor(&d));
    for (int i = 0; i < QDNN_INTEGER_ATTRIBUTE_COUNT; i++) {
        int64_t value = -1;
        OK(qdnnGetIntegerAttribute(d, (qdnnIntegerAttribute_t)i, &value));
        CHECK_EQ_I64(value, presets[i]);
    }
    OK(qdnnSetIntegerAlpha(d, 2));
    int64_t alpha = 0;
    OK(qdnnGetIntegerAttribute(d, QDNN_INTEGER_ALPHA, &alpha));
    CHECK_EQ_I64(alpha, QDNN_ALPHA_NUMBER);
    OK(qdnnDestroyIntegerDescriptor(d));
    check_refused(qdnnDestroyIntegerDescriptor(d), QDNN_STATUS_BAD_PARAM, "that was destroyed");
}

/* A refused value leaves the previous one in place. */
TEST_CASE(ApiInteger, ValuesOutOfBounds)
{
    static const struct {
        int attribute;
        int64_t good, bad[2];
        const char *words;
    } cases[] = {
        {QDNN_INTEGER_TRANSPOSE_W, 0, {-1, 2}, "QDNN_INTEGER_TRANSPOSE_W is"},
        {QDNN_INTEGER_X_ZERO, 255, {-129, 256}, "QDNN_INTEGER_X_ZERO is"},
        {QDNN_INTEGER_W_ZERO, -128, {-129, 128}, "QDNN_INTEGER_W_ZERO is"},
        {QDNN_INTEGER_Y_ZERO, -128, {-129, 256}, "QDNN_INTEGER_Y_ZERO is"},
        {QDNN_INTEGER_MULTIPLIERS,
         QDNN_GRANULARITY_CHANNEL,
         {QDNN_GRANULARITY_GROUP, 9},
         "QDNN_INTEGER_MULTIPLIERS is"},
        {QDNN_INTEGER_ROUNDING, QDNN_ROUND_TIES_TO_EVEN, {-1, 2}, "QDNN_INTEGER_ROUNDING is"},
        {QDNN_INTEGER_BIAS_TYPE, QDNN_DATA_I32, {QDNN_DATA_I8, QDNN_DATA_F64}, "QDNN_INTEGER_BIAS_TYPE is"},
        {QDNN_INTEGER_ALPHA, QDNN_ALPHA_COLUMN, {-1, 4}, "QDNN_INTEGER_ALPHA is"},
        {QDNN_INTEGER_ACTIVATION, QDNN_ACTIVATION_SILU, {-1, 5}, "QDNN_INTEGER_ACTIVATION is"},
        {QDNN_INTEGER_RESIDUAL, 1, {-1, 2}, "QDNN_INTEGER_RESIDUAL is"},
        {QDNN_INTEGER_GROUP_SIZE, 1, {0, (INT64_C(1) << 30) + 1}, "QDNN_INTEGER_GROUP_SIZE is"},
        {QDNN_INTEGER_SCALE_TYPE, QDNN_SCALE_BF16, {QDNN_SCALE_E4M3, -1}, "QDNN_INTEGER_SCALE_TYPE is"},
        {QDNN_INTEGER_W_SCALE_FIRST, 1, {-1, 2}, "QDNN_INTEGER_W_SCALE_FIRST is"},
        {QDNN_INTEGER_NHWC, 1, {-1, 2}, "QDNN_INTEGER_NHWC is"},
        {QDNN_INTEGER_STRIDE_H, 32767, {0, 32768}, "QDNN_INTEGER_STRIDE_H is"},
        {QDNN_INTEGER_STRIDE_W, 2, {0, 32768}, "QDNN_INTEGER_STRIDE_W is"},
        {QDNN_INTEGER_PADDING_H, 32767, {-1, 32768}, "QDNN_INTEGER_PADDING_H is"},
        {QDNN_INTEGER_PADDING_W, 2, {-1, 32768}, "QDNN_INTEGER_PADDING_W is"},
        {QDNN_INTEGER_DILATION_H, 32767, {0, 32768}, "QDNN_INTEGER_DILATION_H is"},
        {QDNN_INTEGER_DILATION_W, 2, {0, 32768}, "QDNN_INTEGER_DILATION_W is"},
        {QDNN_INTEGER_GROUPS, 4, {0, (1 << 20) + 1}, "QDNN_INTEGER_GROUPS is"},
        {QDNN_INTEGER_GATED, 1, {-1, 2}, "QDNN_INTEGER_GATED is"},
        {QDNN_INTEGER_EXPERTS, 8, {-1, (1 << 20) + 1}, "QDNN_INTEGER_EXPERTS is"},
        {QDNN_INTEGER_SLOTS, 32, {0, 33}, "QDNN_INTEGER_SLOTS is"},
        {QDNN_INTEGER_ROW_WEIGHT, 1, {-1, 2}, "QDNN_INTEGER_ROW_WEIGHT is"},
    };
    _Static_assert(sizeof cases / sizeof cases[0] == QDNN_INTEGER_ATTRIBUTE_COUNT, "every attribute");
    qdnnIntegerDescriptor_t d = NULL;
    OK(qdnnCreateIntegerDescriptor(&d));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qdnnIntegerAttribute_t attribute = (qdnnIntegerAttribute_t)cases[i].attribute;
        OK(qdnnSetIntegerAttribute(d, attribute, cases[i].good));
        for (int k = 0; k < 2; k++) {
            int64_t value = -99;
            check_refused(qdnnSetIntegerAttribute(d, attribute, cases[i].bad[k]),
                          QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, cases[i].words);
            OK(qdnnGetIntegerAttribute(d, attribute, &value));
            CHECK_EQ_I64(value, cases[i].good);
        }
    }
    check_refused(qdnnSetIntegerAttribute(d, QDNN_INTEGER_ATTRIBUTE_COUNT, 0),
                  QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute is 25");
    OK(qdnnDestroyIntegerDescriptor(d));
}

/* ---- Plans ---- */

/* clang-format off */
enum { I4 = QDNN_DATA_I4, I8 = QDNN_DATA_I8, U8 = QDNN_DATA_U8, I32 = QDNN_DATA_I32, F32 = QDNN_DATA_F32, F16 = QDNN_DATA_F16 };
/* clang-format on */
#define SHAPE QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH
#define BOUND QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND
#define NOT   QDNN_STATUS_NOT_SUPPORTED

static const int64_t LARGEST = 2147418112; /* 2^31 - 2^16 */

typedef struct matrix {
    int type;
    int64_t rows, columns;
} matrix;

typedef struct refused {
    const char *name;
    matrix x, w, y;
    int attribute;
    int64_t value;
    qdnnStatus_t status;
    const char *words;
} refused;

/* clang-format off */
static const refused products[] = {
    {"types", {I8, 4, 8}, {F32, 4, 8}, {F32, 4, 4}, 0, 1, NOT, "x is i8, w f32 and y f32; no integer product"},
    {"codes_from_numbers", {F32, 4, 8}, {I8, 4, 8}, {I8, 4, 4}, 0, 1, NOT, "no integer product"},
    {"u8_with_i4", {U8, 4, 8}, {I4, 4, 8}, {F32, 4, 4}, 0, 1, NOT, "no integer product"},
    {"k", {I8, 4, 8}, {I8, 4, 9}, {I8, 4, 4}, 0, 1, SHAPE, "x has rows of 8, w a K of 9"},
    {"n", {I8, 4, 8}, {I8, 5, 8}, {I8, 4, 4}, 0, 1, SHAPE, "y is [4, 4]; it must be [4, 5]"},
    {"m", {I8, 4, 8}, {I8, 4, 8}, {I8, 5, 4}, 0, 1, SHAPE, "y is [5, 4]; it must be [4, 4]"},
    {"x_zero_of_i8", {I8, 4, 8}, {I8, 4, 8}, {I8, 4, 4}, QDNN_INTEGER_X_ZERO, 128, SHAPE, "it must be -128 to 127"},
    {"x_zero_of_u8", {U8, 4, 8}, {I8, 4, 8}, {I8, 4, 4}, QDNN_INTEGER_X_ZERO, -1, SHAPE, "it must be 0 to 255"},
    {"y_zero_of_u8", {U8, 4, 8}, {I8, 4, 8}, {U8, 4, 4}, QDNN_INTEGER_Y_ZERO, -1, SHAPE, "it must be 0 to 255"},
    {"x_zero_of_i4", {I4, 4, 8}, {I4, 4, 8}, {F32, 4, 4}, QDNN_INTEGER_X_ZERO, 1, NOT, "which quant.w4a4.matmul does not have"},
    {"x_zero_of_numbers", {F16, 4, 8}, {I8, 4, 8}, {F16, 4, 4}, QDNN_INTEGER_X_ZERO, 1, NOT, "scale for each row"},
    {"bias_of_codes", {I8, 4, 8}, {I8, 4, 8}, {I8, 4, 4}, QDNN_INTEGER_BIAS_TYPE, F32, NOT, "must be QDNN_DATA_I32"},
    {"bias_of_numbers", {I8, 4, 8}, {I8, 4, 8}, {F32, 4, 4}, QDNN_INTEGER_BIAS_TYPE, I32, NOT, "must be f32, f16 or bf16"},
    {"activation_of_codes", {I8, 4, 8}, {I8, 4, 8}, {I8, 4, 4}, QDNN_INTEGER_ACTIVATION, 1, NOT, "quant.int8.qmatmul does not have"},
    {"multipliers_of_numbers", {I8, 4, 8}, {I8, 4, 8}, {F32, 4, 4}, QDNN_INTEGER_MULTIPLIERS, 1, NOT, "quant.w8a8.matmul does not"},
    {"experts_of_one_matrix", {I8, 4, 8}, {I8, 4, 8}, {F32, 4, 4}, QDNN_INTEGER_EXPERTS, 2, SHAPE, "w has 2 dimensions; it must have 3, the experts first"},
    {"slots_alone", {I8, 4, 8}, {I8, 4, 8}, {F32, 8, 4}, QDNN_INTEGER_SLOTS, 2, QDNN_STATUS_BAD_PARAM, "QDNN_INTEGER_SLOTS is 2, and QDNN_INTEGER_EXPERTS is 0"},
    {"odd_pairs", {I8, 4, 8}, {I8, 5, 8}, {F32, 4, 2}, QDNN_INTEGER_GATED, 1, SHAPE, "w has 5 outputs; it must have an even number"},
    {"y_of_pairs", {I8, 4, 8}, {I8, 6, 8}, {F32, 4, 6}, QDNN_INTEGER_GATED, 1, SHAPE, "y is [4, 6]; it must be [4, 3]"},
    {"experts_of_codes", {I8, 4, 8}, {I8, 4, 8}, {I8, 4, 4}, QDNN_INTEGER_EXPERTS, 2, NOT, "quant.int8.qmatmul does not have"},
    {"experts_of_i4", {I4, 4, 8}, {I4, 4, 8}, {F32, 4, 4}, QDNN_INTEGER_EXPERTS, 2, NOT, "quant.w4a4.matmul does not have"},
    {"pairs_of_i4", {I4, 4, 8}, {I4, 4, 8}, {F32, 4, 2}, QDNN_INTEGER_GATED, 1, NOT, "quant.w4a4.matmul does not have"},
    {"kn_of_i4", {I8, 4, 8}, {I4, 8, 4}, {F32, 4, 4}, QDNN_INTEGER_TRANSPOSE_W, 0, NOT, "takes w as [N, K]"},
    {"k_0_of_numbers", {F32, 4, 0}, {I8, 4, 0}, {F32, 4, 4}, 0, 1, BOUND, "K is 0"},
    {"k_too_large", {I8, 1, LARGEST + 1}, {I8, 1, LARGEST + 1}, {I8, 1, 1}, 0, 1, BOUND, "K is 2147418113; it must be at most 2^31 - 2^16"},
    {"m_too_large", {I8, LARGEST + 1, 1}, {I8, 1, 1}, {I8, LARGEST + 1, 1}, 0, 1, BOUND, "M is 2147418113"},
    {"n_too_large", {I8, 1, 1}, {I8, LARGEST + 1, 1}, {I8, 1, LARGEST + 1}, 0, 1, BOUND, "N is 2147418113"},
};
/* clang-format on */

static void describe(qdnnTensorDescriptor_t *t, const matrix *m)
{
    OK(qdnnCreateTensorDescriptor(t));
    OK(qdnnSetTensorDescriptor(*t, (qdnnDataType_t)m->type, 2, (const int64_t[]){m->rows, m->columns}, NULL));
}

TEST_ROWS(ApiInteger, ProductsRefused, products)
{
    NEED_PTXVM;
    const refused *r = &products[index];
    qdnnHandle_t handle = NULL;
    qdnnIntegerDescriptor_t d = NULL;
    qdnnTensorDescriptor_t x = NULL, w = NULL, y = NULL;
    qdnnPlan_t plan = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    OK(qdnnCreateIntegerDescriptor(&d));
    OK(qdnnSetIntegerAttribute(d, (qdnnIntegerAttribute_t)r->attribute, r->value));
    describe(&x, &r->x);
    describe(&w, &r->w);
    describe(&y, &r->y);
    check_refused(qdnnCreateIntegerMatmulPlan(handle, d, x, w, y, &plan), r->status, r->words);
    CHECK(plan == NULL);
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTensorDescriptor(w));
    OK(qdnnDestroyTensorDescriptor(y));
    OK(qdnnDestroyIntegerDescriptor(d));
    OK(qdnnDestroy(handle));
    vm_end();
}

TEST_CASE(ApiInteger, VectorsAndTopRefused)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t a = NULL, b = NULL, y = NULL, i = NULL;
    qdnnPlan_t plan = NULL;
    const int64_t eight[] = {8}, nine[] = {9}, one[] = {1}, two[] = {2};
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    describe(&a, &(matrix){I8, 1, 8});
    describe(&b, &(matrix){I4, 1, 8});
    describe(&y, &(matrix){I32, 1, 1});
    describe(&i, &(matrix){I32, 1, 1});
    check_refused(qdnnCreateIntegerDotPlan(handle, a, b, y, &plan), NOT, "a is i8 and b i4; both must be i4");
    check_refused(qdnnCreateIntegerTopPlan(handle, a, b, y, i, &plan), NOT,
                  "x is i8 and w i4; both must be i4");
    OK(qdnnSetTensorDescriptor(a, QDNN_DATA_I4, 1, eight, NULL));
    OK(qdnnSetTensorDescriptor(b, QDNN_DATA_I4, 1, nine, NULL));
    check_refused(qdnnCreateIntegerDotPlan(handle, a, b, y, &plan), SHAPE, "vectors of the same length");
    OK(qdnnSetTensorDescriptor(b, QDNN_DATA_I4, 1, eight, NULL));
    OK(qdnnSetTensorDescriptor(y, QDNN_DATA_I8, 1, one, NULL));
    check_refused(qdnnCreateIntegerDotPlan(handle, a, b, y, &plan), NOT,
                  "y is i8; it must be i32, f32, f16 or bf16");
    OK(qdnnSetTensorDescriptor(y, QDNN_DATA_F32, 1, two, NULL));
    check_refused(qdnnCreateIntegerDotPlan(handle, a, b, y, &plan), SHAPE,
                  "y has 2 elements; it must have 1");
    OK(qdnnSetTensorDescriptor(a, QDNN_DATA_I4, 2, (const int64_t[]){3, 8}, NULL));
    OK(qdnnSetTensorDescriptor(b, QDNN_DATA_I4, 2, (const int64_t[]){5, 8}, NULL));
    OK(qdnnSetTensorDescriptor(y, QDNN_DATA_F32, 2, (const int64_t[]){3, 6}, NULL));
    check_refused(qdnnCreateIntegerTopPlan(handle, a, b, y, i, &plan), BOUND, "at most the 5 rows of w");
    OK(qdnnSetTensorDescriptor(y, QDNN_DATA_F32, 2, (const int64_t[]){3, 2}, NULL));
    check_refused(qdnnCreateIntegerTopPlan(handle, a, b, y, i, &plan), SHAPE,
                  "indices is [1, 1]; it must be [3, 2]");
    OK(qdnnSetTensorDescriptor(y, QDNN_DATA_F16, 2, (const int64_t[]){3, 2}, NULL));
    check_refused(qdnnCreateIntegerTopPlan(handle, a, b, y, i, &plan), NOT, "scores is f16; it must be f32");
    CHECK(plan == NULL);
    OK(qdnnDestroyTensorDescriptor(a));
    OK(qdnnDestroyTensorDescriptor(b));
    OK(qdnnDestroyTensorDescriptor(y));
    OK(qdnnDestroyTensorDescriptor(i));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* ---- Convolutions ---- */

/* clang-format off */
static const struct {
    const char *name;
    int x_type, w_type, y_type;
    int64_t x[4], w[4], y[4];
    int attribute;
    int64_t value;
    qdnnStatus_t status;
    const char *words;
} convolutions[] = {
    {"types", F32, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, 0, 1, NOT, "x is f32; it must be i8 or u8"},
    {"w_type", I8, U8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, 0, 1, NOT, "w is u8; it must be i8"},
    {"groups", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, QDNN_INTEGER_GROUPS, 3, SHAPE, "it must divide the 4 channels"},
    {"channels", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, QDNN_INTEGER_GROUPS, 2, SHAPE, "it must have 2, those of a group"},
    {"window", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 6, 3}, {1, 2, 3, 3}, 0, 1, SHAPE, "the window's height is 6, more than the 5"},
    {"dilated", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, QDNN_INTEGER_DILATION_W, 3, SHAPE, "the window's width is 7"},
    {"size", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 4, 3}, 0, 1, SHAPE, "y has a height of 4; it must be 3"},
    {"outputs", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 3, 3, 3}, 0, 1, SHAPE, "y has 1 images of 3 channels; it must have 1 of 2"},
    {"nhwc", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, QDNN_INTEGER_NHWC, 1, SHAPE, "it must have 5"},
    {"activation", I8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, QDNN_INTEGER_ACTIVATION, 1, NOT, "quant.int8.qconv2d does not have"},
    {"x_zero", U8, I8, I8, {1, 4, 5, 5}, {2, 4, 3, 3}, {1, 2, 3, 3}, QDNN_INTEGER_X_ZERO, -5, SHAPE, "it must be 0 to 255"},
};
/* clang-format on */

TEST_ROWS(ApiInteger, ConvolutionsRefused, convolutions)
{
    NEED_PTXVM;
    const int64_t *dims[] = {convolutions[index].x, convolutions[index].w, convolutions[index].y};
    const int types[] = {convolutions[index].x_type, convolutions[index].w_type, convolutions[index].y_type};
    qdnnHandle_t handle = NULL;
    qdnnIntegerDescriptor_t d = NULL;
    qdnnTensorDescriptor_t t[3] = {NULL};
    qdnnPlan_t plan = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    OK(qdnnCreateIntegerDescriptor(&d));
    for (int i = 0; i < 3; i++) {
        OK(qdnnCreateTensorDescriptor(&t[i]));
        OK(qdnnSetTensorDescriptor(t[i], (qdnnDataType_t)types[i], 4, dims[i], NULL));
    }
    if (convolutions[index].attribute)
        OK(qdnnSetIntegerAttribute(d, (qdnnIntegerAttribute_t)convolutions[index].attribute,
                                   convolutions[index].value));
    check_refused(qdnnCreateIntegerConvPlan(handle, d, t[0], t[1], t[2], &plan), convolutions[index].status,
                  convolutions[index].words);
    OK(qdnnSetTensorDescriptor(t[1], QDNN_DATA_I8, 3, dims[1], NULL));
    if (index == 0)
        OK(qdnnSetTensorDescriptor(t[0], QDNN_DATA_I8, 4, dims[0], NULL));
    check_refused(qdnnCreateIntegerConvPlan(handle, d, t[0], t[1], t[2], &plan), SHAPE,
                  "w has 3 dimensions; it must have 4");
    CHECK(plan == NULL);
    for (int i = 0; i < 3; i++)
        OK(qdnnDestroyTensorDescriptor(t[i]));
    OK(qdnnDestroyIntegerDescriptor(d));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* ---- Names ---- */

TEST_CASE(ApiInteger, Names)
{
    static const char *const names[][2] = {{"quant.int4.dot", "int4_dot"},
                                           {"quant.int4.dot.scaled", "int4_dot_scaled"},
                                           {"quant.int4.batched_matmul.scaled", "int4_matmul"},
                                           {"quant.int4.batched_matmul.top1.scaled", "int4_top1"},
                                           {"quant.int4.batched_matmul.topk.scaled", "int4_topk"},
                                           {"quant.int8.qmatmul", "int8_qmatmul"},
                                           {"quant.w8a8.matmul", "w8a8_matmul"},
                                           {"quant.w4a8.matmul", "w4a8_matmul"},
                                           {"quant.w4a4.matmul", "w4a4_matmul"},
                                           {"quant.int8.qconv2d", "int8_conv2d"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *kernel = NULL;
        bool listed = false;
        OK(qdnnFindOperation(names[i][0], &kernel));
        CHECK_EQ_STR(kernel, names[i][1]);
        for (int k = 0; qdnnGetOperationName(k); k++)
            listed = listed || strcmp(qdnnGetOperationName(k), names[i][0]) == 0;
        CHECK(listed);
    }
}
