/* The numbers of the public interface, which are frozen: files contain them, and compiled programs. Each is
 * written out here, so that it cannot change along with the headers. */
#include <stdio.h>

#include "scene.h"

static const struct {
    qdnnDataType_t type;
    int tag;
    const char *name;
    int bits;
    bool is_float;
    uint64_t least, largest;
} types[] = {
    {QDNN_DATA_U32, 0x01, "u32", 32, false, 4, 4},
    {QDNN_DATA_I32, 0x02, "i32", 32, false, 4, 4},
    {QDNN_DATA_U64, 0x03, "u64", 64, false, 8, 8},
    {QDNN_DATA_VEC2_U32, 0x04, "vec2<u32>", 64, false, 8, 8},
    {QDNN_DATA_VEC4_U32, 0x05, "vec4<u32>", 128, false, 16, 16},
    {QDNN_DATA_BOOL, 0x06, "bool", 32, false, 4, 4},
    {QDNN_DATA_BYTES, 0x07, "bytes", 8, false, 0, 67108864},
    {QDNN_DATA_ARRAY, 0x08, "array", 0, false, 0, 268435456},
    {QDNN_DATA_F16, 0x09, "f16", 16, true, 2, 2},
    {QDNN_DATA_BF16, 0x0A, "bf16", 16, true, 2, 2},
    {QDNN_DATA_F32, 0x0B, "f32", 32, true, 4, 4},
    {QDNN_DATA_F64, 0x0C, "f64", 64, true, 8, 8},
    {QDNN_DATA_TENSOR, 0x0D, "tensor", 0, false, 0, 268435456},
    {QDNN_DATA_U8, 0x0E, "u8", 8, false, 1, 1},
    {QDNN_DATA_U16, 0x0F, "u16", 16, false, 2, 2},
    {QDNN_DATA_I8, 0x10, "i8", 8, false, 1, 1},
    {QDNN_DATA_I16, 0x11, "i16", 16, false, 2, 2},
    {QDNN_DATA_I64, 0x12, "i64", 64, false, 8, 8},
    {QDNN_DATA_HANDLE, 0x13, "handle", 32, false, 4, 4},
    {QDNN_DATA_VEC, 0x14, "vec", 0, false, 0, UINT64_MAX},
    {QDNN_DATA_TENSOR_SHAPED, 0x15, "tensor_shaped", 0, false, 0, UINT64_MAX},
    {QDNN_DATA_SPARSE_CSR, 0x16, "sparse_csr", 0, false, 0, UINT64_MAX},
    {QDNN_DATA_SPARSE_COO, 0x17, "sparse_coo", 0, false, 0, UINT64_MAX},
    {QDNN_DATA_SPARSE_BSR, 0x18, "sparse_bsr", 0, false, 0, UINT64_MAX},
    {QDNN_DATA_F8E4M3, 0x19, "f8e4m3", 8, true, 1, 1},
    {QDNN_DATA_F8E5M2, 0x1A, "f8e5m2", 8, true, 1, 1},
    {QDNN_DATA_I4, 0x1B, "i4", 4, false, 1, 1},
    {QDNN_DATA_FP4, 0x1C, "fp4", 4, true, 1, 1},
    {QDNN_DATA_NF4, 0x1D, "nf4", 4, true, 1, 1},
    {QDNN_DATA_DEVICE_MESH, 0x1E, "device_mesh", 32, false, 0, 4},
    {QDNN_DATA_OPAQUE, 0x80, "opaque", 0, false, 0, UINT64_MAX},
};
enum { TYPES = sizeof types / sizeof types[0] };

TEST_CASE(ApiNumbers, DataTypesAreFrozen)
{
    for (int i = 0; i < TYPES; i++) {
        qdnnDataType_t type = (qdnnDataType_t)types[i].tag;
        qdnnDataTypeInfo_t info = {.size = sizeof info};
        int bits = -1;
        test_push_note("%s", types[i].name);
        CHECK_EQ_I64(types[i].type, types[i].tag);
        CHECK_EQ_STR(qdnnGetDataTypeName(type), types[i].name);
        OK(qdnnGetDataTypeBits(type, &bits));
        CHECK_EQ_I64(bits, types[i].bits);
        OK(qdnnGetDataTypeInfo(type, &info));
        CHECK_EQ_STR(info.name, types[i].name);
        CHECK_EQ_I64(info.bits, types[i].bits);
        CHECK_EQ_I64(info.isFloat, types[i].is_float);
        CHECK_EQ_U64(info.leastBytes, types[i].least);
        CHECK_EQ_U64(info.largestBytes, types[i].largest);
        test_pop_note();
    }
}

static const struct {
    qdnnDataType_t type, element;
    int count;
    uint64_t numbers[9];
    const char *text, *part; /* printed, or a part of the error */
} printed[] = {
    {QDNN_DATA_TENSOR_SHAPED, QDNN_DATA_F32, 2, {2, 3}, "tensor<f32;2x3>", NULL},
    {QDNN_DATA_TENSOR_SHAPED, QDNN_DATA_VEC2_U32, 1, {7}, "tensor<vec2<u32>;7>", NULL},
    {QDNN_DATA_TENSOR_SHAPED,
     QDNN_DATA_BF16,
     8,
     {1, 2, 3, 4, 5, 6, 7, UINT64_MAX},
     "tensor<bf16;1x2x3x4x5x6x7x18446744073709551615>",
     NULL},
    {QDNN_DATA_VEC, QDNN_DATA_U16, 1, {3}, "vec<u16;3>", NULL},
    {QDNN_DATA_SPARSE_CSR, QDNN_DATA_F32, 0, {0}, "sparse_csr<f32>", NULL},
    {QDNN_DATA_SPARSE_COO, QDNN_DATA_I32, 0, {0}, "sparse_coo<i32>", NULL},
    {QDNN_DATA_SPARSE_BSR, QDNN_DATA_F16, 2, {2, 4}, "sparse_bsr<f16;2x4>", NULL},
    {QDNN_DATA_DEVICE_MESH, 0, 3, {2, 4, 8}, "device_mesh<2x4x8>", NULL},
    {QDNN_DATA_ARRAY, 0, 1, {7}, "array<7B>", NULL},
    {QDNN_DATA_HANDLE, 0, 1, {0xabcd}, "handle<0x0000abcd>", NULL},
    {QDNN_DATA_OPAQUE, 0, 1, {0x80000001}, "opaque<0x80000001>", NULL},
    {QDNN_DATA_F32, 0, 0, {0}, "f32", NULL},
    {QDNN_DATA_VEC4_U32, 0, 0, {0}, "vec4<u32>", NULL},
    {QDNN_DATA_TENSOR, 0, 0, {0}, "tensor", NULL},
    {(qdnnDataType_t)0x1F, 0, 0, {0}, NULL, "type is 31, which is not a data type"},
    {QDNN_DATA_VEC, 0, 1, {3}, NULL, "element is 0, which is not a data type"},
    {QDNN_DATA_HANDLE,
     QDNN_DATA_F32,
     1,
     {3},
     NULL,
     "element is 11, and type 19 (handle) has no element type"},
    {QDNN_DATA_TENSOR_SHAPED,
     QDNN_DATA_F32,
     0,
     {0},
     NULL,
     "count is 0; type 21 (tensor_shaped) takes 1 to 8"},
    {QDNN_DATA_TENSOR_SHAPED, QDNN_DATA_F32, 9, {0}, NULL, "count is 9"},
    {QDNN_DATA_SPARSE_BSR, QDNN_DATA_F32, 1, {2}, NULL, "takes 2 to 2 numbers"},
    {QDNN_DATA_F32, 0, 1, {2}, NULL, "takes 0 to 0 numbers"},
};

TEST_CASE(ApiNumbers, DataTypesWithParameters)
{
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        char text[64] = "untouched";
        test_push_note("row %zu", i);
        qdnnStatus_t status = qdnnPrintDataType(printed[i].type, printed[i].element, printed[i].count,
                                                printed[i].numbers, text, sizeof text);
        CHECK_STATUS_IS(status, printed[i].text ? QDNN_STATUS_SUCCESS : QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_EQ_STR(text, printed[i].text ? printed[i].text : "untouched");
        if (printed[i].part)
            CHECK_HAS(last_sentence(), printed[i].part);
        test_pop_note();
    }
    char text[16] = "untouched";
    const uint64_t shape[] = {2, 3};
    CHECK_STATUS_IS(qdnnPrintDataType(QDNN_DATA_TENSOR_SHAPED, QDNN_DATA_F32, 2, shape, text, 15),
                    QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    CHECK_HAS(last_sentence(), "size is 15; the name and its final zero need 16");
    CHECK_EQ_STR(text, "untouched");
    OK(qdnnPrintDataType(QDNN_DATA_TENSOR_SHAPED, QDNN_DATA_F32, 2, shape, text, 16));
    CHECK_EQ_STR(text, "tensor<f32;2x3>");
}

/* No other number is a type. */
TEST_CASE(ApiNumbers, OtherTagsAreNoTypes)
{
    int known = 0;
    for (int tag = -300; tag <= 300; tag++) {
        bool listed = false;
        int bits = -7;
        for (int i = 0; i < TYPES; i++)
            listed = listed || types[i].tag == tag;
        known += listed;
        if (listed)
            continue;
        CHECK_EQ_STR(qdnnGetDataTypeName((qdnnDataType_t)tag), "unknown");
        CHECK_STATUS_IS(qdnnGetDataTypeBits((qdnnDataType_t)tag, &bits), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        qdnnDataTypeInfo_t info = {.size = sizeof info};
        CHECK_STATUS_IS(qdnnGetDataTypeInfo((qdnnDataType_t)tag, &info), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_EQ_I64(bits, -7);
    }
    CHECK_EQ_I64(known, 31);
}

#define NUMBER(name, number)                                                                                 \
    {                                                                                                        \
#name, name, number                                                                                  \
    }
static const struct {
    const char *name;
    int64_t value, number;
} numbers[] = {
    NUMBER(QDNN_GRANULARITY_TENSOR, 0),
    NUMBER(QDNN_GRANULARITY_CHANNEL, 1),
    NUMBER(QDNN_GRANULARITY_GROUP, 2),
    NUMBER(QDNN_SCALE_F32, 0),
    NUMBER(QDNN_SCALE_F16, 1),
    NUMBER(QDNN_SCALE_BF16, 2),
    NUMBER(QDNN_SCALE_E4M3, 3),
    NUMBER(QDNN_SCALE_E8M0, 4),
    NUMBER(QDNN_ZERO_NONE, 0),
    NUMBER(QDNN_ZERO_POINT, 1),
    NUMBER(QDNN_ZERO_MINIMUM, 2),
    NUMBER(QDNN_LAYOUT_BYTES, 0),
    NUMBER(QDNN_LAYOUT_WORDS_INTERLEAVED, 1),
    NUMBER(QDNN_LAYOUT_WORDS_ROWS, 2),
    NUMBER(QDNN_LAYOUT_BLOCK, 3),
    NUMBER(QDNN_SWIZZLE_NONE, 0),
    NUMBER(QDNN_SWIZZLE_128X4, 1),
    NUMBER(QDNN_NIBBLE_LOW_FIRST, 0),
    NUMBER(QDNN_NIBBLE_HIGH_FIRST, 1),
    NUMBER(QDNN_ROUND_TIES_TO_EVEN, 0),
    NUMBER(QDNN_ROUND_TIES_AWAY, 1),
    NUMBER(QDNN_DIVIDE_EXACT, 0),
    NUMBER(QDNN_DIVIDE_RECIPROCAL, 1),
    NUMBER(QDNN_QUANT_STORAGE, 0),
    NUMBER(QDNN_QUANT_GRANULARITY, 1),
    NUMBER(QDNN_QUANT_AXIS, 2),
    NUMBER(QDNN_QUANT_GROUP_SIZE, 3),
    NUMBER(QDNN_QUANT_SCALE_TYPE, 4),
    NUMBER(QDNN_QUANT_ZERO_KIND, 5),
    NUMBER(QDNN_QUANT_ZERO_TYPE, 6),
    NUMBER(QDNN_QUANT_ROUNDING, 7),
    NUMBER(QDNN_QUANT_DIVISION, 8),
    NUMBER(QDNN_QUANT_NIBBLE_ORDER, 9),
    NUMBER(QDNN_QUANT_LAYOUT, 10),
    NUMBER(QDNN_QUANT_BLOCK_ROWS, 11),
    NUMBER(QDNN_QUANT_GLOBAL_SCALE, 12),
    NUMBER(QDNN_QUANT_SCALE_SWIZZLE, 13),
    NUMBER(QDNN_GRANULARITY_NONE, 3),
    NUMBER(QDNN_GROUPS_DEFAULT, 0),
    NUMBER(QDNN_GROUPS_FLAT, 1),
    NUMBER(QDNN_GROUPS_ROWS, 2),
    NUMBER(QDNN_GROUPS_COLUMNS, 3),
    NUMBER(QDNN_SCALE_ORDER_DEFAULT, 0),
    NUMBER(QDNN_SCALE_ORDER_TRANSPOSED, 1),
    NUMBER(QDNN_CODE_DEFAULT, 0),
    NUMBER(QDNN_CODE_OFFSET, 1),
    NUMBER(QDNN_CODE_UNSIGNED, 2),
    NUMBER(QDNN_CODE_TWOS_COMPLEMENT, 3),
    NUMBER(QDNN_CODE_FP4_BNB, 4),
    NUMBER(QDNN_CODE_E2M3, 5),
    NUMBER(QDNN_CODE_E3M2, 6),
    NUMBER(QDNN_BLOCK_NONE, 0),
    NUMBER(QDNN_BLOCK_Q4_0, 1),
    NUMBER(QDNN_BLOCK_Q4_1, 2),
    NUMBER(QDNN_BLOCK_Q5_0, 3),
    NUMBER(QDNN_BLOCK_Q5_1, 4),
    NUMBER(QDNN_BLOCK_Q8_0, 5),
    NUMBER(QDNN_BLOCK_Q8_1, 6),
    NUMBER(QDNN_BLOCK_Q2_K, 7),
    NUMBER(QDNN_BLOCK_Q3_K, 8),
    NUMBER(QDNN_BLOCK_Q4_K, 9),
    NUMBER(QDNN_BLOCK_Q5_K, 10),
    NUMBER(QDNN_BLOCK_Q6_K, 11),
    NUMBER(QDNN_BLOCK_Q8_K, 12),
    NUMBER(QDNN_BLOCK_IQ4_NL, 13),
    NUMBER(QDNN_BLOCK_IQ4_XS, 14),
    NUMBER(QDNN_BLOCK_TQ1_0, 15),
    NUMBER(QDNN_BLOCK_TQ2_0, 16),
    NUMBER(QDNN_BLOCK_MXFP4, 17),
    NUMBER(QDNN_BLOCK_NVFP4, 18),
    NUMBER(QDNN_BLOCK_Q1_0, 19),
    NUMBER(QDNN_BLOCK_Q2_0, 20),
    NUMBER(QDNN_BLOCK_IQ1_S, 21),
    NUMBER(QDNN_BLOCK_IQ1_M, 22),
    NUMBER(QDNN_BLOCK_IQ2_XXS, 23),
    NUMBER(QDNN_BLOCK_IQ2_XS, 24),
    NUMBER(QDNN_BLOCK_IQ2_S, 25),
    NUMBER(QDNN_BLOCK_IQ3_XXS, 26),
    NUMBER(QDNN_BLOCK_IQ3_S, 27),
    NUMBER(QDNN_RANGE_WITH_ZERO, 0),
    NUMBER(QDNN_RANGE_TIGHT, 1),
    NUMBER(QDNN_MX_FLOOR, 0),
    NUMBER(QDNN_MX_CEIL, 1),
    NUMBER(QDNN_MX_EVEN, 2),
    NUMBER(QDNN_LAYOUT_AWQ, 4),
    NUMBER(QDNN_OPERAND_GLOBAL_SCALE, 5),
    NUMBER(QDNN_OPERAND_GROUP_INDEX, 6),
    NUMBER(QDNN_OPERAND_NESTED_MAP, 7),
    NUMBER(QDNN_OPERAND_NESTED_SCALE, 8),
    NUMBER(QDNN_OPERAND_NESTED_OFFSET, 9),
    NUMBER(QDNN_OPERAND_DY, 10),
    NUMBER(QDNN_OPERAND_DX, 11),
    NUMBER(QDNN_OPERAND_STATE, 12),
    NUMBER(QDNN_OPERAND_DSCALE, 13),
    NUMBER(QDNN_OPERAND_REPACKED, 14),
    NUMBER(QDNN_OPERAND_ROW_INDEX, 15),
    NUMBER(QDNN_OPERAND_ALPHA, 16),
    NUMBER(QDNN_OPERAND_BIAS, 17),
    NUMBER(QDNN_OPERAND_RESIDUAL, 18),
    NUMBER(QDNN_OPERAND_EXPERT_INDEX, 19),
    NUMBER(QDNN_OPERAND_ROW_WEIGHT, 20),
    NUMBER(QDNN_OPERAND_LORA_A, 21),
    NUMBER(QDNN_OPERAND_LORA_B, 22),
    NUMBER(QDNN_OPERAND_X_SCALE, 23),
    NUMBER(QDNN_OPERAND_MULTIPLIER, 24),
    NUMBER(QDNN_OPERAND_TOP_INDEX, 25),
    NUMBER(QDNN_OPERAND_B, 26),
    NUMBER(QDNN_OPERAND_WEIGHT, 27),
    NUMBER(QDNN_OPERAND_SUM, 28),
    NUMBER(QDNN_OPERAND_POSITION, 29),
    NUMBER(QDNN_OPERAND_COS, 30),
    NUMBER(QDNN_OPERAND_SIN, 31),
    NUMBER(QDNN_OPERAND_KEYS, 36),
    NUMBER(QDNN_OPERAND_VALUES, 37),
    NUMBER(QDNN_OPERAND_KEY_SCALE, 38),
    NUMBER(QDNN_OPERAND_VALUE_SCALE, 39),
    NUMBER(QDNN_OPERAND_KEY_ZERO, 40),
    NUMBER(QDNN_OPERAND_VALUE_ZERO, 41),
    NUMBER(QDNN_OPERAND_PAGE_TABLE, 42),
    NUMBER(QDNN_OPERAND_SEQUENCE, 43),
    NUMBER(QDNN_OPERAND_MASK, 44),
    NUMBER(QDNN_OPERAND_SLOPE, 45),
    NUMBER(QDNN_OPERAND_SINK, 46),
    NUMBER(QDNN_OPERAND_VISIBLE, 47),
    NUMBER(QDNN_OPERAND_KEY_INDEX, 48),
    NUMBER(QDNN_OPERAND_SEQUENCE_LENGTH, 49),
    NUMBER(QDNN_OPERAND_LOGITS, 50),
    NUMBER(QDNN_OPERAND_INDEX, 51),
    NUMBER(QDNN_OPERAND_WEIGHT_OUT, 52),
    NUMBER(QDNN_OPERAND_SEED, 53),
    NUMBER(QDNN_OPERAND_STEP, 54),
    NUMBER(QDNN_OPERAND_TOKEN_COUNT, 55),
    NUMBER(QDNN_OPERAND_SAMPLING, 56),
    NUMBER(QDNN_OPERAND_EXPERT_BIAS, 57),
    NUMBER(QDNN_OPERAND_COUNTERS, 58),
    NUMBER(QDNN_OPERAND_COUNT, 64),
    NUMBER(QDNN_INTEGER_TRANSPOSE_W, 0),
    NUMBER(QDNN_INTEGER_X_ZERO, 1),
    NUMBER(QDNN_INTEGER_W_ZERO, 2),
    NUMBER(QDNN_INTEGER_Y_ZERO, 3),
    NUMBER(QDNN_INTEGER_MULTIPLIERS, 4),
    NUMBER(QDNN_INTEGER_ROUNDING, 5),
    NUMBER(QDNN_INTEGER_BIAS_TYPE, 6),
    NUMBER(QDNN_INTEGER_ALPHA, 7),
    NUMBER(QDNN_INTEGER_ACTIVATION, 8),
    NUMBER(QDNN_INTEGER_RESIDUAL, 9),
    NUMBER(QDNN_INTEGER_GROUP_SIZE, 10),
    NUMBER(QDNN_INTEGER_SCALE_TYPE, 11),
    NUMBER(QDNN_INTEGER_W_SCALE_FIRST, 12),
    NUMBER(QDNN_INTEGER_NHWC, 13),
    NUMBER(QDNN_INTEGER_STRIDE_H, 14),
    NUMBER(QDNN_INTEGER_STRIDE_W, 15),
    NUMBER(QDNN_INTEGER_PADDING_H, 16),
    NUMBER(QDNN_INTEGER_PADDING_W, 17),
    NUMBER(QDNN_INTEGER_DILATION_H, 18),
    NUMBER(QDNN_INTEGER_DILATION_W, 19),
    NUMBER(QDNN_INTEGER_GROUPS, 20),
    NUMBER(QDNN_INTEGER_GATED, 21),
    NUMBER(QDNN_INTEGER_EXPERTS, 22),
    NUMBER(QDNN_INTEGER_SLOTS, 23),
    NUMBER(QDNN_INTEGER_ROW_WEIGHT, 24),
    NUMBER(QDNN_INTEGER_ATTRIBUTE_COUNT, 25),
    NUMBER(QDNN_SCALE_MODE_BATCH, 0),
    NUMBER(QDNN_SCALE_MODE_EMA, 1),
    NUMBER(QDNN_SCALE_MODE_FIXED, 2),
    NUMBER(QDNN_BACKWARD_CLIPPED, 0),
    NUMBER(QDNN_BACKWARD_IDENTITY, 1),
    NUMBER(QDNN_BACKWARD_TANH, 2),
    NUMBER(QDNN_BACKWARD_HARD_TANH, 3),
    NUMBER(QDNN_QUANT_CODE_BITS, 14),
    NUMBER(QDNN_QUANT_CODE_KIND, 15),
    NUMBER(QDNN_QUANT_BLOCK_FORMAT, 16),
    NUMBER(QDNN_QUANT_GROUPS, 17),
    NUMBER(QDNN_QUANT_SCALE_ORDER, 18),
    NUMBER(QDNN_QUANT_GROUP_INDEX, 19),
    NUMBER(QDNN_QUANT_NESTED, 20),
    NUMBER(QDNN_QUANT_ZERO_PACKED, 21),
    NUMBER(QDNN_QUANT_ZERO_MINUS_ONE, 22),
    NUMBER(QDNN_QUANT_ZERO_WRAPS, 23),
    NUMBER(QDNN_QUANT_RANGE, 24),
    NUMBER(QDNN_QUANT_MX_ROUNDING, 25),
    NUMBER(QDNN_QUANT_ZERO_GRANULARITY, 26),
    NUMBER(QDNN_QUANT_ZERO_GROUP_SIZE, 27),
    NUMBER(QDNN_QUANT_ATTRIBUTE_COUNT, 28),
    NUMBER(QDNN_OPERAND_X, 0),
    NUMBER(QDNN_OPERAND_Y, 1),
    NUMBER(QDNN_OPERAND_CODES, 2),
    NUMBER(QDNN_OPERAND_SCALE, 3),
    NUMBER(QDNN_OPERAND_ZERO, 4),
    NUMBER(QDNN_DEVICE_GPU, 0),
    NUMBER(QDNN_DEVICE_PTXVM, 1),
    NUMBER(QDNN_MATH_FAMILY, 0),
    NUMBER(QDNN_MATH_EXACT, 1),
    NUMBER(QDNN_MATMUL_EXACT, 0),
    NUMBER(QDNN_MATMUL_CUBLAS, 1),
    NUMBER(QDNN_MATMUL_AUTO, 2),
    NUMBER(QDNN_MATMUL_TENSOR, 3),
    NUMBER(QDNN_MATMUL_ALGORITHM, 0),
    NUMBER(QDNN_MATMUL_TRANSPOSE_W, 1),
    NUMBER(QDNN_MATMUL_ALPHA, 2),
    NUMBER(QDNN_MATMUL_BIAS_TYPE, 3),
    NUMBER(QDNN_MATMUL_ACTIVATION, 4),
    NUMBER(QDNN_MATMUL_GATED, 5),
    NUMBER(QDNN_MATMUL_RESIDUAL, 6),
    NUMBER(QDNN_MATMUL_PREPACKED, 13),
    NUMBER(QDNN_MATMUL_X_SCALE, 14),
    NUMBER(QDNN_MATMUL_QUANTIZE_X, 15),
    NUMBER(QDNN_MATMUL_SLOTS, 16),
    NUMBER(QDNN_ALPHA_NONE, 0),
    NUMBER(QDNN_ALPHA_NUMBER, 1),
    NUMBER(QDNN_ALPHA_ONE, 2),
    NUMBER(QDNN_ALPHA_COLUMN, 3),
    NUMBER(QDNN_ACTIVATION_NONE, 0),
    NUMBER(QDNN_ACTIVATION_RELU, 1),
    NUMBER(QDNN_ACTIVATION_GELU_TANH, 2),
    NUMBER(QDNN_ACTIVATION_GELU_ERF, 3),
    NUMBER(QDNN_ACTIVATION_SILU, 4),
    NUMBER(QDNN_ACTIVATION_TANH, 5),
    NUMBER(QDNN_ACTIVATION_SIGMOID, 6),
    NUMBER(QDNN_ACTIVATION_RELU_SQUARED, 7),
    NUMBER(QDNN_ACTIVATION_SOFTCAP, 8),
    NUMBER(QDNN_ACTIVATION_CLAMPED_SILU, 9),
    NUMBER(QDNN_SEVERITY_ERROR, 1),
    NUMBER(QDNN_SEVERITY_WARNING, 2),
    NUMBER(QDNN_SEVERITY_INFO, 3),
    NUMBER(QDNN_SEVERITY_ERROR_BIT, 2),
    NUMBER(QDNN_SEVERITY_WARNING_BIT, 4),
    NUMBER(QDNN_SEVERITY_INFO_BIT, 8),
    NUMBER(QDNN_DIMS_MAX, 8),
};

TEST_CASE(ApiNumbers, EnumerationsAreFrozen)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        test_push_note("%s", numbers[i].name);
        CHECK_EQ_I64(numbers[i].value, numbers[i].number);
        test_pop_note();
    }
}

/* What crosses the interface by value or in arrays. */
TEST_CASE(ApiNumbers, TypesAreAsWideAsEver)
{
    CHECK_EQ_I64(sizeof(qdnnStatus_t), 4);
    CHECK_EQ_I64(sizeof(qdnnDataType_t), 4);
    CHECK_EQ_I64(sizeof(qdnnOperand_t), 4);
    CHECK_EQ_I64(sizeof(qdnnBinding_t), 24);
    CHECK_EQ_I64(offsetof(qdnnBinding_t, pointer), 8);
    CHECK_EQ_I64(offsetof(qdnnBinding_t, bytes), 16);
}
