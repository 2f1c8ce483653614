/* Descriptors: every number at both ends of its range and beyond, products that overflow, and what was set
 * comes back. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "scene.h"

#define OUT_OF_BOUND QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND
#define P(n)         (INT64_C(1) << (n))

/* ---- Tensors ---- */

static const struct {
    const char *name;
    qdnnDataType_t type;
    int rank;
    int64_t dims[9], strides[9];
    bool has_strides;
    const char *part; /* of the message; null: it is accepted */
} tensors[] = {
    {"one", QDNN_DATA_F32, 1, {1}, {0}, false, NULL},
    {"empty", QDNN_DATA_F32, 1, {0}, {0}, false, NULL},
    {"all of eight", QDNN_DATA_BF16, 8, {1, 2, 3, 1, 2, 3, 1, 2}, {0}, false, NULL},
    {"2^31 - 1", QDNN_DATA_F32, 1, {P(31) - 1}, {0}, false, NULL},
    {"2^31", QDNN_DATA_F32, 1, {P(31)}, {0}, false, NULL},
    {"2^32 - 1", QDNN_DATA_F16, 1, {P(32) - 1}, {0}, false, NULL},
    {"2^32", QDNN_DATA_F16, 1, {P(32)}, {0}, false, NULL},
    {"2^32 + 1", QDNN_DATA_F16, 1, {P(32) + 1}, {0}, false, NULL},
    {"the largest of f32", QDNN_DATA_F32, 1, {P(58) - 1}, {0}, false, NULL},
    {"the largest of i4", QDNN_DATA_I4, 2, {P(61) - 1, 1}, {0}, false, NULL},
    {"rows as far apart as may be", QDNN_DATA_U8, 2, {2, 1}, {P(60) - 1, 1}, true, NULL},
    {"broadcast", QDNN_DATA_F32, 2, {4, 4}, {0, 1}, true, NULL},
    {"a stride that nobody walks", QDNN_DATA_F32, 2, {1, 4}, {INT64_MAX, 1}, true, NULL},

    {"rank 0", QDNN_DATA_F32, 0, {1}, {0}, false, "rank is 0; it must be 1 to 8"},
    {"rank 9", QDNN_DATA_F32, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {0}, false, "rank is 9"},
    {"rank -1", QDNN_DATA_F32, -1, {1}, {0}, false, "rank is -1"},
    {"rank of 2^31 - 1", QDNN_DATA_F32, INT32_MAX, {1}, {0}, false, "rank is 2147483647"},
    {"least rank", QDNN_DATA_F32, INT32_MIN, {1}, {0}, false, "rank is -2147483648"},
    {"no type", (qdnnDataType_t)0, 1, {1}, {0}, false, "type is 0 (unknown)"},
    {"reserved type", (qdnnDataType_t)0x1F, 1, {1}, {0}, false, "type is 31"},
    {"negative type", (qdnnDataType_t)-1, 1, {1}, {0}, false, "type is -1"},
    {"without a size", QDNN_DATA_TENSOR, 1, {1}, {0}, false, "type is 13 (tensor)"},
    {"opaque", QDNN_DATA_OPAQUE, 1, {1}, {0}, false, "elements must have a size"},
    {"negative size", QDNN_DATA_F32, 2, {4, -1}, {0}, false, "dims[1] is -1; it must not be negative"},
    {"least size", QDNN_DATA_F32, 1, {INT64_MIN}, {0}, false, "dims[0] is -9223372036854775808"},
    {"2^63 - 1", QDNN_DATA_F32, 1, {INT64_MAX}, {0}, false, "the product of dims is too large"},
    {"2^58 of f32", QDNN_DATA_F32, 1, {P(58)}, {0}, false, "fewer than 2^60 bytes"},
    {"2^61 of i4", QDNN_DATA_I4, 1, {P(61)}, {0}, false, "fewer than 2^60 bytes"},
    {"2^32 times 2^32", QDNN_DATA_U8, 2, {P(32), P(32)}, {0}, false, "the product of dims is too large"},
    {"product of 2^64",
     QDNN_DATA_U8,
     8,
     {256, 256, 256, 256, 256, 256, 256, 256},
     {0},
     false,
     "is too large"},
    {"overflow beside a 0",
     QDNN_DATA_F32,
     3,
     {P(40), 0, P(40)},
     {0},
     false,
     "the product of dims is too large"},
    {"negative stride", QDNN_DATA_F32, 2, {2, 2}, {-2, 1}, true, "strides[0] is -2; it must not be negative"},
    {"least stride", QDNN_DATA_F32, 2, {2, 2}, {2, INT64_MIN}, true, "strides[1] is -9223372036854775808"},
    {"largest stride", QDNN_DATA_F32, 2, {2, 2}, {INT64_MAX, 1}, true, "strides[0] is 9223372036854775807"},
    {"strides that add up", QDNN_DATA_U8, 2, {2, 2}, {P(60) - 1, P(60) - 1}, true, "strides[1]"},
};

static void check_tensor(qdnnTensorDescriptor_t t, qdnnDataType_t type, int rank, const int64_t *dims,
                         const int64_t *strides)
{
    qdnnDataType_t got_type = 0;
    int got_rank = 0;
    int64_t got_dims[QDNN_DIMS_MAX], got_strides[QDNN_DIMS_MAX];
    OK(qdnnGetTensorDescriptor(t, &got_type, &got_rank, got_dims, got_strides));
    CHECK_EQ_I64(got_type, type);
    CHECK_EQ_I64(got_rank, rank);
    CHECK_EQ_MEM(got_dims, dims, (size_t)rank * sizeof *dims);
    CHECK_EQ_MEM(got_strides, strides, (size_t)rank * sizeof *strides);
}

/* Packed, row-major; a size of 0 counts as 1. */
static void packed_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t next = 1;
    for (int i = rank - 1; i >= 0; next *= dims[i] ? dims[i] : 1, i--)
        strides[i] = next;
}

TEST_CASE(ApiDescriptors, TensorsAreTakenOrRefused)
{
    static const int64_t first[] = {5, 7}, first_strides[] = {70, 2};
    qdnnTensorDescriptor_t t = NULL;
    OK(qdnnCreateTensorDescriptor(&t));
    check_tensor(t, QDNN_DATA_F32, 0, NULL, NULL); /* not set yet */
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const int64_t *strides = tensors[i].has_strides ? tensors[i].strides : NULL;
        int64_t packed[QDNN_DIMS_MAX];
        test_push_note("%s", tensors[i].name);
        OK(qdnnSetTensorDescriptor(t, QDNN_DATA_I8, 2, first, first_strides));
        qdnnStatus_t status =
            qdnnSetTensorDescriptor(t, tensors[i].type, tensors[i].rank, tensors[i].dims, strides);
        CHECK_STATUS_IS(status, tensors[i].part ? OUT_OF_BOUND : QDNN_STATUS_SUCCESS);
        if (tensors[i].part) {
            CHECK_HAS(last_sentence(), tensors[i].part);
            check_tensor(t, QDNN_DATA_I8, 2, first, first_strides);
        } else {
            packed_strides(tensors[i].rank, tensors[i].dims, packed);
            check_tensor(t, tensors[i].type, tensors[i].rank, tensors[i].dims, strides ? strides : packed);
        }
        test_pop_note();
    }
    OK(qdnnDestroyTensorDescriptor(t));
}

/* ---- Quantizations ---- */

enum { VALUES = 10 };

static const struct {
    const char *name;
    qdnnQuantAttribute_t attribute;
    int64_t preset;
    int n_good, n_bad;
    int64_t good[VALUES], bad[VALUES]; /* those at the ends of the range, those right beyond */
} attributes[] = {
    {"QDNN_QUANT_STORAGE",
     QDNN_QUANT_STORAGE,
     0x1B,
     10,
     7,
     {0x1B, 0x1D, 0x10, 0x0E, 0x1C, 0x19, 0x1A, 0x0B, 0x09, 0x0A},
     {0, 0x08, 0x0C, 0x0F, 0x11, 0x18, 0x1E}},
    {"QDNN_QUANT_GRANULARITY", QDNN_QUANT_GRANULARITY, 2, 4, 2, {0, 1, 2, 3}, {-1, 4}},
    {"QDNN_QUANT_AXIS", QDNN_QUANT_AXIS, 0, 2, 2, {0, 7}, {-1, 8}},
    {"QDNN_QUANT_GROUP_SIZE",
     QDNN_QUANT_GROUP_SIZE,
     128,
     5,
     3,
     {1, 2, P(31), P(32), P(40)},
     {-1, 0, P(40) + 1}},
    {"QDNN_QUANT_SCALE_TYPE", QDNN_QUANT_SCALE_TYPE, 0, 5, 2, {0, 1, 2, 3, 4}, {-1, 5}},
    {"QDNN_QUANT_ZERO_KIND", QDNN_QUANT_ZERO_KIND, 0, 3, 2, {0, 1, 2}, {-1, 3}},
    {"QDNN_QUANT_ZERO_TYPE",
     QDNN_QUANT_ZERO_TYPE,
     0x0E,
     7,
     5,
     {0x0E, 0x0B, 0x09, 0x0A, 0x10, 0x01, 0x02},
     {0, 8, 0x0C, 0x0D, 0x0F}},
    {"QDNN_QUANT_ROUNDING", QDNN_QUANT_ROUNDING, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_DIVISION", QDNN_QUANT_DIVISION, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_NIBBLE_ORDER", QDNN_QUANT_NIBBLE_ORDER, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_LAYOUT", QDNN_QUANT_LAYOUT, 0, 5, 2, {0, 1, 2, 3, 4}, {-1, 5}},
    {"QDNN_QUANT_BLOCK_ROWS", QDNN_QUANT_BLOCK_ROWS, 1, 2, 2, {1, P(20)}, {0, P(20) + 1}},
    {"QDNN_QUANT_GLOBAL_SCALE", QDNN_QUANT_GLOBAL_SCALE, 0, 3, 2, {0, 1, 2}, {-1, 3}},
    {"QDNN_QUANT_SCALE_SWIZZLE", QDNN_QUANT_SCALE_SWIZZLE, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_CODE_BITS", QDNN_QUANT_CODE_BITS, 0, 2, 2, {0, 8}, {-1, 9}},
    {"QDNN_QUANT_CODE_KIND", QDNN_QUANT_CODE_KIND, 0, 7, 2, {0, 1, 2, 3, 4, 5, 6}, {-1, 7}},
    {"QDNN_QUANT_BLOCK_FORMAT", QDNN_QUANT_BLOCK_FORMAT, 0, 3, 2, {0, 1, 27}, {-1, 28}},
    {"QDNN_QUANT_GROUPS", QDNN_QUANT_GROUPS, 0, 4, 2, {0, 1, 2, 3}, {-1, 4}},
    {"QDNN_QUANT_SCALE_ORDER", QDNN_QUANT_SCALE_ORDER, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_GROUP_INDEX", QDNN_QUANT_GROUP_INDEX, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_NESTED", QDNN_QUANT_NESTED, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_ZERO_PACKED", QDNN_QUANT_ZERO_PACKED, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_ZERO_MINUS_ONE", QDNN_QUANT_ZERO_MINUS_ONE, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_ZERO_WRAPS", QDNN_QUANT_ZERO_WRAPS, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_RANGE", QDNN_QUANT_RANGE, 0, 2, 2, {0, 1}, {-1, 2}},
    {"QDNN_QUANT_MX_ROUNDING", QDNN_QUANT_MX_ROUNDING, 0, 3, 2, {0, 1, 2}, {-1, 3}},
    {"QDNN_QUANT_ZERO_GRANULARITY", QDNN_QUANT_ZERO_GRANULARITY, -1, 4, 2, {-1, 0, 1, 2}, {-2, 3}},
    {"QDNN_QUANT_ZERO_GROUP_SIZE", QDNN_QUANT_ZERO_GROUP_SIZE, 0, 2, 2, {0, P(40)}, {-1, P(40) + 1}},
};
enum { ATTRIBUTES = sizeof attributes / sizeof attributes[0] };
_Static_assert((int)ATTRIBUTES == (int)QDNN_QUANT_ATTRIBUTE_COUNT, "a row for each attribute");

static void check_value(qdnnQuantDescriptor_t q, qdnnQuantAttribute_t attribute, int64_t expected)
{
    int64_t value = -77;
    OK(qdnnGetQuantAttribute(q, attribute, &value));
    CHECK_EQ_I64(value, expected);
}

static void check_refused(qdnnQuantDescriptor_t q, int row, int64_t value)
{
    qdnnQuantAttribute_t which = attributes[row].attribute;
    int64_t before = 0;
    OK(qdnnGetQuantAttribute(q, which, &before));
    CHECK_STATUS_IS(qdnnSetQuantAttribute(q, which, value), OUT_OF_BOUND);
    CHECK_HAS(last_sentence(), attributes[row].name);
    CHECK_HAS(last_sentence(), "it must be ");
    check_value(q, which, before);
}

TEST_CASE(ApiDescriptors, QuantAttributesHaveTheirRanges)
{
    qdnnQuantDescriptor_t q = NULL;
    OK(qdnnCreateQuantDescriptor(&q));
    for (int i = 0; i < ATTRIBUTES; i++) {
        test_push_note("%s", attributes[i].name);
        check_value(q, attributes[i].attribute, attributes[i].preset);
        for (int v = 0; v < attributes[i].n_good; v++) {
            OK(qdnnSetQuantAttribute(q, attributes[i].attribute, attributes[i].good[v]));
            check_value(q, attributes[i].attribute, attributes[i].good[v]);
        }
        for (int v = 0; v < attributes[i].n_bad; v++)
            check_refused(q, i, attributes[i].bad[v]);
        check_refused(q, i, INT64_MIN);
        check_refused(q, i, INT64_MAX);
        check_refused(q, i, attributes[i].preset + P(41)); /* right in its low half */
        test_pop_note();
    }
    /* setting one leaves the others alone */
    for (int i = 0; i < ATTRIBUTES; i++)
        check_value(q, attributes[i].attribute, attributes[i].good[attributes[i].n_good - 1]);
    OK(qdnnDestroyQuantDescriptor(q));
}

TEST_CASE(ApiDescriptors, AttributesThatThereAreNot)
{
    static const int none[] = {-1, QDNN_QUANT_ATTRIBUTE_COUNT, INT32_MAX, INT32_MIN};
    qdnnQuantDescriptor_t q = NULL;
    qdnnMatmulDescriptor_t m = NULL;
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnCreateMatmulDescriptor(&m));
    for (int i = 0; i < 4; i++) {
        int64_t value = -77;
        CHECK_STATUS_IS(qdnnSetQuantAttribute(q, (qdnnQuantAttribute_t)none[i], 0), OUT_OF_BOUND);
        CHECK_HAS(last_sentence(), "it must be 0 to 27");
        CHECK_STATUS_IS(qdnnGetQuantAttribute(q, (qdnnQuantAttribute_t)none[i], &value), OUT_OF_BOUND);
        CHECK_STATUS_IS(qdnnSetMatmulAttribute(m, (qdnnMatmulAttribute_t)none[i], 0), OUT_OF_BOUND);
        CHECK_STATUS_IS(qdnnGetMatmulAttribute(m, (qdnnMatmulAttribute_t)none[i], &value), OUT_OF_BOUND);
        CHECK_EQ_I64(value, -77);
    }
    OK(qdnnDestroyQuantDescriptor(q));
    OK(qdnnDestroyMatmulDescriptor(m));
}

TEST_CASE(ApiDescriptors, MatmulAttributesHaveTheirRanges)
{
    enum { RESERVED = 7 };                                              /* was QDNN_MATMUL_FAMILY_BITS */
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, P(32), 77}; /* the last one not for numbers */
    static const struct {
        int64_t preset, good[6];
        int count;
        bool is_number;
    } ranges[QDNN_MATMUL_ATTRIBUTE_COUNT] = {
        [QDNN_MATMUL_ALGORITHM] = {QDNN_MATMUL_AUTO,
                                   {QDNN_MATMUL_EXACT, QDNN_MATMUL_CUBLAS, QDNN_MATMUL_AUTO,
                                    QDNN_MATMUL_TENSOR},
                                   4},
        [QDNN_MATMUL_TRANSPOSE_W] = {1, {0, 1}, 2},
        [QDNN_MATMUL_ALPHA] = {0, {0, 1, 2, 3}, 4},
        [QDNN_MATMUL_BIAS_TYPE] = {0, {0, QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16}, 4},
        [QDNN_MATMUL_ACTIVATION] = {0, {0, 1, 2, 3, 4}, 5},
        [QDNN_MATMUL_GATED] = {0, {0, 1}, 2},
        [QDNN_MATMUL_RESIDUAL] = {0, {0, 1}, 2},
        [QDNN_MATMUL_EXPERTS] = {0, {1, 77, P(20), 0}, 4, true},
        [QDNN_MATMUL_ROW_WEIGHT] = {0, {0, 1}, 2},
        [QDNN_MATMUL_CHECK_INDICES] = {0, {0, 1}, 2},
        [QDNN_MATMUL_LORA_RANK] = {0, {1, 77, P(20), 0}, 4, true},
        [QDNN_MATMUL_LORA_TYPE] = {QDNN_DATA_F16, {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16}, 3},
        [QDNN_MATMUL_PREPACKED] = {0, {0, 1}, 2},
        [QDNN_MATMUL_X_SCALE] = {0, {0, 1}, 2},
        [QDNN_MATMUL_QUANTIZE_X] = {0, {0, QDNN_DATA_F8E4M3, QDNN_DATA_F8E5M2}, 3},
        [QDNN_MATMUL_SLOTS] = {1, {1, 2, 31, 32}, 4, true},
    };
    qdnnMatmulDescriptor_t m = NULL;
    OK(qdnnCreateMatmulDescriptor(&m));
    for (int which = 0; which < QDNN_MATMUL_ATTRIBUTE_COUNT; which++) {
        int64_t value = -77;
        if (which == RESERVED) {
            CHECK_STATUS_IS(qdnnSetMatmulAttribute(m, (qdnnMatmulAttribute_t)which, 1), OUT_OF_BOUND);
            CHECK_HAS(last_sentence(), "attribute is 7, which is reserved");
            CHECK_STATUS_IS(qdnnGetMatmulAttribute(m, (qdnnMatmulAttribute_t)which, &value), OUT_OF_BOUND);
            CHECK_EQ_I64(value, -77);
            continue;
        }
        OK(qdnnGetMatmulAttribute(m, (qdnnMatmulAttribute_t)which, &value));
        CHECK_EQ_I64(value, ranges[which].preset);
        for (int i = 0; i < ranges[which].count; i++) {
            OK(qdnnSetMatmulAttribute(m, (qdnnMatmulAttribute_t)which, ranges[which].good[i]));
            OK(qdnnGetMatmulAttribute(m, (qdnnMatmulAttribute_t)which, &value));
            CHECK_EQ_I64(value, ranges[which].good[i]);
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0] - ranges[which].is_number; i++)
            CHECK_STATUS_IS(qdnnSetMatmulAttribute(m, (qdnnMatmulAttribute_t)which, bad[i]), OUT_OF_BOUND);
        OK(qdnnGetMatmulAttribute(m, (qdnnMatmulAttribute_t)which, &value));
        CHECK_EQ_I64(value, ranges[which].good[ranges[which].count - 1]);
    }
    OK(qdnnSetMatmulAlpha(m, 2.5f));
    int64_t alpha = -1;
    OK(qdnnGetMatmulAttribute(m, QDNN_MATMUL_ALPHA, &alpha));
    CHECK_EQ_I64(alpha, QDNN_ALPHA_NUMBER);
    OK(qdnnDestroyMatmulDescriptor(m));
}

static const struct {
    qdnnDataType_t storage;
    int granularity;
    int64_t extent;
    const char *part;
} sets[] = {
    {QDNN_DATA_NF4, QDNN_GRANULARITY_GROUP, 64, NULL},
    {QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, P(40), NULL},
    {QDNN_DATA_I4, QDNN_GRANULARITY_CHANNEL, 7, NULL},
    {QDNN_DATA_I8, QDNN_GRANULARITY_TENSOR, 0, NULL},
    {QDNN_DATA_F64, QDNN_GRANULARITY_GROUP, 64,
     "QDNN_QUANT_STORAGE is 12; it must be QDNN_DATA_I4, QDNN_DATA_NF4, QDNN_DATA_I8, QDNN_DATA_U8, "
     "QDNN_DATA_FP4, "
     "QDNN_DATA_F8E4M3, QDNN_DATA_F8E5M2, QDNN_DATA_F32, QDNN_DATA_F16 or QDNN_DATA_BF16"},
    {(qdnnDataType_t)-1, QDNN_GRANULARITY_GROUP, 64, "QDNN_QUANT_STORAGE is -1"},
    {QDNN_DATA_I4, 4, 0, "QDNN_QUANT_GRANULARITY is 4"},
    {QDNN_DATA_I4, -1, 0, "QDNN_QUANT_GRANULARITY is -1"},
    {QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 0, "QDNN_QUANT_GROUP_SIZE is 0"},
    {QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, P(40) + 1, "it must be 1 to 2^40"},
    {QDNN_DATA_I4, QDNN_GRANULARITY_CHANNEL, 8, "QDNN_QUANT_AXIS is 8"},
    {QDNN_DATA_I4, QDNN_GRANULARITY_CHANNEL, -1, "QDNN_QUANT_AXIS is -1"},
    {QDNN_DATA_I4, QDNN_GRANULARITY_TENSOR, 1, "extent is 1"},
    {QDNN_DATA_I4, QDNN_GRANULARITY_TENSOR, INT64_MIN, "it must be 0"},
};

TEST_CASE(ApiDescriptors, SettingAllAtOnce)
{
    qdnnQuantDescriptor_t q = NULL;
    OK(qdnnCreateQuantDescriptor(&q));
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        float floor = 0;
        test_push_note("row %zu", i);
        OK(qdnnSetQuantDescriptor(q, QDNN_DATA_FP4, QDNN_GRANULARITY_GROUP, 48));
        OK(qdnnSetQuantAttribute(q, QDNN_QUANT_ROUNDING, QDNN_ROUND_TIES_AWAY));
        OK(qdnnSetQuantFloor(q, 3));
        qdnnStatus_t status = qdnnSetQuantDescriptor(q, sets[i].storage,
                                                     (qdnnGranularity_t)sets[i].granularity, sets[i].extent);
        CHECK_STATUS_IS(status, sets[i].part ? OUT_OF_BOUND : QDNN_STATUS_SUCCESS);
        OK(qdnnGetQuantFloor(q, &floor));
        CHECK_EQ_F32(floor, sets[i].part ? 3 : 1e-12f);
        check_value(q, QDNN_QUANT_STORAGE, sets[i].part ? QDNN_DATA_FP4 : sets[i].storage);
        check_value(q, QDNN_QUANT_ROUNDING, sets[i].part ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN);
        if (sets[i].part)
            CHECK_HAS(last_sentence(), sets[i].part);
        else if (sets[i].granularity != QDNN_GRANULARITY_TENSOR)
            check_value(
                q, sets[i].granularity == QDNN_GRANULARITY_GROUP ? QDNN_QUANT_GROUP_SIZE : QDNN_QUANT_AXIS,
                sets[i].extent);
        test_pop_note();
    }
    OK(qdnnDestroyQuantDescriptor(q));
}

TEST_CASE(ApiDescriptors, FloorsAreFiniteAndNotNegative)
{
    static const float good[] = {0, -0.0f, 1e-45f, 1, FLT_MAX},
                       bad[] = {NAN, -1, -1e-45f, INFINITY, -INFINITY};
    qdnnQuantDescriptor_t q = NULL;
    float floor = 0;
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnGetQuantFloor(q, &floor));
    CHECK_EQ_F32(floor, 1e-12f);
    for (int i = 0; i < 5; i++) {
        OK(qdnnSetQuantFloor(q, good[i]));
        OK(qdnnGetQuantFloor(q, &floor));
        CHECK(floor == good[i]);
        CHECK_STATUS_IS(qdnnSetQuantFloor(q, bad[i]), OUT_OF_BOUND);
        CHECK_HAS(last_sentence(), "it must be finite and not negative");
        OK(qdnnGetQuantFloor(q, &floor));
        CHECK(floor == good[i]);
    }
    OK(qdnnDestroyQuantDescriptor(q));
}
