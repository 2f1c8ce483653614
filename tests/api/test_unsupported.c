/* What a descriptor can express but no kernel implements, what does not fit together, tensors that are empty
 * or far too large: each has its status and a message that names a working alternative. */
#include <string.h>

#include "kernels/kernels.h"
#include "scene.h"

#define P(n) (INT64_C(1) << (n))

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
    vm_end();
}

typedef qdnnStatus_t create_fn(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnQuantDescriptor_t, qdnnPlan_t *);
static create_fn *const creators[] = {qdnnCreateScalePlan, qdnnCreateQuantizePlan, qdnnCreateDequantizePlan};

/* Every call that takes the two descriptors refuses them in the same way; nothing is written. */
static void check_refused(qdnnStatus_t status, const char *part)
{
    void *d = (void *)(uintptr_t)4096;
    size_t sizes[3] = {77, 77, 77};
    for (int i = 0; i < 3; i++) {
        qdnnPlan_t plan = (qdnnPlan_t)d;
        CHECK_STATUS_IS(creators[i](handle, tensor, quant, &plan), status);
        CHECK_HAS(last_sentence(), part);
        CHECK(plan == (qdnnPlan_t)d);
    }
    CHECK_STATUS_IS(qdnnComputeScales(handle, tensor, d, quant, d, d), status);
    CHECK_HAS(last_sentence(), part);
    CHECK_STATUS_IS(qdnnQuantize(handle, tensor, d, quant, d, d, d), status);
    CHECK_HAS(last_sentence(), part);
    CHECK_STATUS_IS(qdnnDequantize(handle, quant, d, d, d, tensor, d), status);
    CHECK_HAS(last_sentence(), part);
    if (status == QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND)
        return; /* too large for a launch, but it has sizes */
    CHECK_STATUS_IS(qdnnGetQuantizedSizes(quant, tensor, &sizes[0], &sizes[1], &sizes[2]), status);
    CHECK(sizes[0] == 77 && sizes[1] == 77 && sizes[2] == 77);
}

/* ---- Combinations ---- */

static const struct {
    qdnnQuantAttribute_t attribute;
    int64_t value;
    const char *part; /* of the sentence */
} unsupported[] = {
    {QDNN_QUANT_GLOBAL_SCALE, 1, "a global scale needs floating-point codes and scales of type e4m3"},
    {QDNN_QUANT_SCALE_TYPE, QDNN_SCALE_E8M0, "scale is e8m0, which needs floating-point codes"},
    {QDNN_QUANT_CODE_BITS, 7,
     "QDNN_QUANT_STORAGE is QDNN_DATA_I4, QDNN_QUANT_CODE_BITS is 7: no kernel; the formats of that storage "
     "are: int4, "
     "int4_zp, int4_min"},
    {QDNN_QUANT_CODE_KIND, QDNN_CODE_FP4_BNB, "QDNN_QUANT_CODE_KIND is QDNN_CODE_FP4_BNB: no kernel"},
};

TEST_CASE(ApiUnsupported, AttributesWithoutAKernel)
{
    NEED_PTXVM;
    REQUIRE(begin());
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) {
        test_push_note("row %zu", i);
        OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 64));
        OK(qdnnSetQuantAttribute(quant, unsupported[i].attribute, unsupported[i].value));
        check_refused(QDNN_STATUS_NOT_SUPPORTED, unsupported[i].part);
        test_pop_note();
    }
    OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_NF4, QDNN_GRANULARITY_GROUP, 64));
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_ZERO_KIND, QDNN_ZERO_POINT));
    check_refused(QDNN_STATUS_NOT_SUPPORTED, "QDNN_QUANT_STORAGE is QDNN_DATA_NF4, QDNN_QUANT_ZERO_KIND is "
                                             "QDNN_ZERO_POINT: no kernel; the formats of "
                                             "that storage are: nf4");
    end();
}

static const struct {
    qdnnDataType_t type;
    int rank;
    int64_t dims[3], strides[3];
    const char *part;
} strange[] = {
    {QDNN_DATA_U16, 1, {4}, {1}, "of type u16; it must be f32, f16, bf16 or f64"},
    {QDNN_DATA_I4, 1, {4}, {1}, "of type i4"},
    {QDNN_DATA_I8, 1, {4}, {1}, "of type i8"},
    {QDNN_DATA_VEC4_U32, 1, {4}, {1}, "of type vec4<u32>"},
    {QDNN_DATA_F32, 2, {4, 8}, {9, 1}, "must be packed"},
    {QDNN_DATA_F32, 2, {4, 8}, {1, 4}, "must be packed"},
    {QDNN_DATA_F32, 2, {4, 8}, {0, 1}, "must be packed"},
    {QDNN_DATA_F32, 1, {4}, {2}, "must be packed"},
    {QDNN_DATA_F32, 3, {2, 1, 8}, {16, 8, 1}, "must be packed"},
};

TEST_CASE(ApiUnsupported, TensorsWithoutAKernel)
{
    NEED_PTXVM;
    REQUIRE(begin());
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        test_push_note("row %zu", i);
        OK(qdnnSetTensorDescriptor(tensor, strange[i].type, strange[i].rank, strange[i].dims,
                                   strange[i].strides));
        check_refused(QDNN_STATUS_NOT_SUPPORTED, strange[i].part);
        test_pop_note();
    }
    end();
}

TEST_CASE(ApiUnsupported, AnAxisThatTheTensorDoesNotHave)
{
    NEED_PTXVM;
    REQUIRE(begin());
    OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 2, (int64_t[]){4, 8}, NULL));
    for (int axis = 2; axis < QDNN_DIMS_MAX; axis++) {
        OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_I4, QDNN_GRANULARITY_CHANNEL, axis));
        check_refused(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "the tensor has 2 dimensions");
    }
    end();
}

/* A format that can be decoded but not encoded: the error lists what it has. */
TEST_CASE(ApiUnsupported, OperationsThatAFormatDoesNotHave)
{
    NEED_PTXVM;
    qdnnPlan_t plan = NULL;
    REQUIRE(begin());
    OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 2, (int64_t[]){4, 256}, NULL));
    OK(qdnnSetQuantWeights(quant, QDNN_WEIGHTS_GGUF_IQ4_XS, 0));
    bool can_be_read =
        kernel_find_format(QDNN_DATA_U8, 0, QDNN_ZERO_NONE, QDNN_CODE_DEFAULT, QDNN_BLOCK_IQ4_XS);
    CHECK_STATUS_IS(qdnnCreateQuantizePlan(handle, tensor, quant, &plan), QDNN_STATUS_NOT_SUPPORTED);
    CHECK_HAS(last_sentence(), can_be_read ? " does not have this operation; it has: quant."
                                           : "QDNN_QUANT_BLOCK_FORMAT is QDNN_BLOCK_IQ4_XS: no kernel");
    end();
}

/* Zeros with groups of their own can be described, so that they can be refused. */
TEST_CASE(ApiUnsupported, ZerosGroupedOtherwise)
{
    NEED_PTXVM;
    REQUIRE(begin());
    OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 2, (int64_t[]){4, 32}, NULL));
    OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 8));
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_ZERO_GROUP_SIZE, 16));
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_ZERO_GRANULARITY, QDNN_GRANULARITY_TENSOR));
    size_t bytes = 0;
    OK(qdnnGetOperandSize(quant, tensor, QDNN_OPERAND_CODES, &bytes)); /* without zeros it does not matter */
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_ZERO_KIND, QDNN_ZERO_POINT));
    check_refused(QDNN_STATUS_NOT_SUPPORTED, "QDNN_QUANT_ZERO_GRANULARITY is QDNN_GRANULARITY_TENSOR, with "
                                             "scales of QDNN_GRANULARITY_GROUP; fix: use "
                                             "equal granularities");
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_ZERO_GRANULARITY, QDNN_GRANULARITY_GROUP));
    check_refused(QDNN_STATUS_NOT_SUPPORTED,
                  ", scale groups of 8 with zero groups of 16; fix: use equal group sizes");
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_ZERO_GROUP_SIZE, 8));
    OK(qdnnGetOperandSize(quant, tensor, QDNN_OPERAND_ZERO, &bytes));
    CHECK_EQ_U64(bytes, 16);
    end();
}

/* ---- Products ---- */

static const struct {
    qdnnDataType_t x_type, w_type, y_type;
    int64_t x[2], w[3], y[2];
    int w_rank, algorithm;
    qdnnStatus_t status;
    const char *part;
} products[] = {
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, 8},
     {4, 8},
     {2, 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_NOT_SUPPORTED,
     "needs a GPU"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, 7},
     {4, 8},
     {2, 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
     "x has rows of 7"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, 8},
     {4, 8},
     {3, 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
     "it must be [2, 4]"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, 8},
     {2, 2, 8},
     {2, 4},
     3,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
     "it must have 2"},
    {QDNN_DATA_F16,
     QDNN_DATA_F32,
     QDNN_DATA_F16,
     {2, 8},
     {4, 8},
     {2, 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_NOT_SUPPORTED,
     "w must have the type of x"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_BF16,
     {2, 8},
     {4, 8},
     {2, 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_NOT_SUPPORTED,
     "y must have the type of x, or f32"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {P(31) - P(16) + 1, 8},
     {4, 8},
     {P(31) - P(16) + 1, 4},
     2,
     QDNN_MATMUL_TENSOR,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "M is 2147418113; on tensor cores it must be at most 2^31 - 2^16"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, 8},
     {P(31) - P(16) + 1, 8},
     {2, P(31) - P(16) + 1},
     2,
     QDNN_MATMUL_TENSOR,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "N is 2147418113; on tensor cores it must be at most 2^31 - 2^16"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, P(31) - P(16) + 1},
     {4, P(31) - P(16) + 1},
     {2, 4},
     2,
     QDNN_MATMUL_TENSOR,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "K is 2147418113; on tensor cores it must be at most 2^31 - 2^16"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {P(31), 8},
     {4, 8},
     {P(31), 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "M is 2147483648"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, 8},
     {P(31), 8},
     {2, P(31)},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "N is 2147483648"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, P(31)},
     {4, P(31)},
     {2, 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "K is 2147483648"},
    {QDNN_DATA_F16,
     QDNN_DATA_F16,
     QDNN_DATA_F16,
     {2, 0},
     {4, 0},
     {2, 4},
     2,
     QDNN_MATMUL_CUBLAS,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "K is 0"},
};

TEST_CASE(ApiUnsupported, Products)
{
    NEED_PTXVM;
    qdnnTensorDescriptor_t x = NULL, y = NULL;
    qdnnMatmulDescriptor_t m = NULL;
    REQUIRE(begin());
    OK(qdnnCreateTensorDescriptor(&x));
    OK(qdnnCreateTensorDescriptor(&y));
    OK(qdnnCreateMatmulDescriptor(&m));
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        qdnnPlan_t plan = NULL;
        test_push_note("row %zu", i);
        OK(qdnnSetTensorDescriptor(x, products[i].x_type, 2, products[i].x, NULL));
        OK(qdnnSetTensorDescriptor(tensor, products[i].w_type, products[i].w_rank, products[i].w, NULL));
        OK(qdnnSetTensorDescriptor(y, products[i].y_type, 2, products[i].y, NULL));
        OK(qdnnSetMatmulAttribute(m, QDNN_MATMUL_ALGORITHM, products[i].algorithm));
        CHECK_STATUS_IS(qdnnCreateMatmulPlan(handle, m, x, tensor, quant, y, &plan), products[i].status);
        CHECK_HAS(last_sentence(), products[i].part);
        CHECK(!plan);
        test_pop_note();
    }
    OK(qdnnDestroyMatmulDescriptor(m));
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTensorDescriptor(y));
    end();
}

/* ---- Nothing at all, and far too much ---- */

static void check_empty(void)
{
    size_t codes = 1, scales = 1, zeros = 1;
    OK(qdnnGetQuantizedSizes(quant, tensor, &codes, &scales, &zeros));
    CHECK_EQ_I64((int64_t)(codes + scales + zeros), 0);
    for (int i = 0; i < 3; i++) {
        qdnnPlan_t plan = NULL;
        qdnnPlanInfo_t info = {.size = sizeof info};
        size_t bytes = 1;
        const qdnnBinding_t null = {QDNN_OPERAND_SCALE, NULL, 0};
        if (!OK(creators[i](handle, tensor, quant, &plan)))
            continue;
        OK(qdnnGetPlanInfo(plan, &info));
        CHECK_EQ_I64(info.kernels, 0);
        CHECK_EQ_I64((int64_t)info.blocks, 0);
        CHECK_HAS(info.operation, "quant.int4_zp.");
        OK(qdnnGetPlanWorkspaceSize(plan, &bytes));
        CHECK_EQ_I64((int64_t)bytes, 0);
        OK(qdnnExecute(handle, plan, NULL, 0, NULL, 0));
        OK(qdnnExecute(handle, plan, &null, 1, NULL, 0));
        OK(qdnnDestroyPlan(plan));
    }
    OK(qdnnComputeScales(handle, tensor, NULL, quant, NULL, NULL));
    OK(qdnnQuantize(handle, tensor, NULL, quant, NULL, NULL, NULL));
    OK(qdnnDequantize(handle, quant, NULL, NULL, NULL, tensor, NULL));
}

TEST_CASE(ApiUnsupported, EmptyTensorsNeedNoPointers)
{
    NEED_PTXVM;
    static const int64_t shapes[][3] = {{0, 1, 1}, {4, 0, 5}, {0, 0, 0}, {3, 4, 0}, {0, P(30), P(20)}};
    static const int64_t extents[] = {0, 1, 64}; /* by granularity */
    REQUIRE(begin());
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int granularity = 0; granularity < 3; granularity++) {
            test_push_note("shape %zu, granularity %d", i, granularity);
            OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 3, shapes[i], NULL));
            OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_I4, (qdnnGranularity_t)granularity,
                                      extents[granularity]));
            OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_ZERO_KIND, QDNN_ZERO_POINT));
            check_empty();
            test_pop_note();
        }
    end();
}

/* Sizes are right whatever the numbers; launches have limits. */
static const struct {
    qdnnDataType_t type;
    int64_t n, group;
    uint64_t codes, scales;
    bool launches;
} large[] = {
    {QDNN_DATA_F32, P(31) - 1, 128, P(30), (P(24)) * 4, true},
    {QDNN_DATA_F32, P(31) + 1, 128, P(30) + 1, (P(24) + 1) * 4, true},
    {QDNN_DATA_F32, P(32) + 1, 1, P(31) + 1, (P(32) + 1) * 4, true},
    {QDNN_DATA_F32, P(58) - 1, 128, P(57), P(51) * 4, false},
    {QDNN_DATA_F16, P(59) - 1, 1, P(58), (P(59) - 1) * 4, false},
    {QDNN_DATA_F16, P(59) - 1, P(40), P(58), P(19) * 4, false},
    {QDNN_DATA_BF16, P(50), P(40), P(49), P(10) * 4, false},
};

TEST_CASE(ApiUnsupported, VeryLargeTensors)
{
    NEED_PTXVM;
    REQUIRE(begin());
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        size_t codes = 0, scales = 0, zeros = 1;
        qdnnPlan_t plan = NULL;
        test_push_note("row %zu", i);
        OK(qdnnSetTensorDescriptor(tensor, large[i].type, 1, &large[i].n, NULL));
        OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, large[i].group));
        OK(qdnnGetQuantizedSizes(quant, tensor, &codes, &scales, &zeros));
        CHECK_EQ_U64(codes, large[i].codes);
        CHECK_EQ_U64(scales, large[i].scales);
        CHECK_EQ_U64(zeros, 0);
        qdnnStatus_t status = qdnnCreateQuantizePlan(handle, tensor, quant, &plan);
        CHECK_STATUS_IS(status, large[i].launches ? QDNN_STATUS_SUCCESS : QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        if (!large[i].launches)
            CHECK_HAS(last_sentence(), "too many for one launch; split it");
        OK(qdnnDestroyPlan(plan));
        test_pop_note();
    }
    end();
}

/* ---- Transposed matrices ---- */

static void check_transposed(const int64_t *w_dims, const int64_t *y_dims, int rank, qdnnDataType_t type,
                             qdnnStatus_t status, const char *part)
{
    qdnnTensorDescriptor_t y = NULL;
    qdnnPlan_t plan = NULL;
    OK(qdnnCreateTensorDescriptor(&y));
    OK(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, rank, w_dims, NULL));
    OK(qdnnSetTensorDescriptor(y, type, rank, y_dims, NULL));
    CHECK_STATUS_IS(qdnnCreateDequantizeTransposedPlan(handle, tensor, quant, y, &plan), status);
    CHECK_HAS(status == QDNN_STATUS_SUCCESS ? "" : last_sentence(), part);
    CHECK((plan != NULL) == (status == QDNN_STATUS_SUCCESS));
    qdnnDestroyPlan(plan);
    OK(qdnnDestroyTensorDescriptor(y));
}

TEST_CASE(ApiUnsupported, TransposedMatrices)
{
    const int64_t w[] = {2, 5, 64}, y[] = {2, 64, 5}, other[] = {2, 5, 64}, odd[] = {2, 5, 33},
                  odd_y[] = {2, 33, 5}, none[] = {0, 5, 64}, none_y[] = {0, 64, 5};
    if (begin()) {
        check_transposed(
            w, y, 3, QDNN_DATA_F16, QDNN_STATUS_NOT_SUPPORTED,
            "only weights in blocks are dequantized to the transposed matrix; fix: qdnnCreateDequantizePlan");
        OK(qdnnSetQuantWeights(quant, QDNN_WEIGHTS_GGUF_Q4_0, 0));
        check_transposed(w, y, 3, QDNN_DATA_F16, QDNN_STATUS_SUCCESS, "");
        check_transposed(none, none_y, 3, QDNN_DATA_F16, QDNN_STATUS_SUCCESS, "");
        check_transposed(w, other, 3, QDNN_DATA_F16, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                         "y is not w with its last two dimensions exchanged; fix: w [experts, N, K]");
        check_transposed(w + 2, w + 2, 1, QDNN_DATA_F16, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                         "last two dimensions");
        check_transposed(odd, odd_y, 3, QDNN_DATA_F16, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "32");
        check_transposed(w, y, 3, QDNN_DATA_I8, QDNN_STATUS_NOT_SUPPORTED, "i8");
    }
    end();
}
