/* Named weights: each number, its name, and every attribute that it sets, as docs/formats.md defines the
 * formats (with its K, N and groups). The numbers are written out here, so that they cannot change along with
 * the headers. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "support/process.h"

#define OUT_OF_BOUND QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND

enum { SETTINGS = 8 };
/* What a name sets, where it is not the default of a new descriptor. */
static const struct {
    const char *name;
    int number, tag;
    int64_t group; /* the usual group size; negative: the only one; 0: no groups */
    struct {
        int attribute;
        int64_t value;
    } set[SETTINGS];
} rows[] = {
    /* clang-format off */
    {"f32", 0, QDNN_WEIGHTS_F32, 0, {{QDNN_QUANT_STORAGE, 0x0B}, {QDNN_QUANT_GRANULARITY, 3}}},
    {"f16", 1, QDNN_WEIGHTS_F16, 0, {{QDNN_QUANT_STORAGE, 0x09}, {QDNN_QUANT_GRANULARITY, 3}}},
    {"bf16", 2, QDNN_WEIGHTS_BF16, 0, {{QDNN_QUANT_STORAGE, 0x0A}, {QDNN_QUANT_GRANULARITY, 3}}},
    {"int4_bytes", 3, QDNN_WEIGHTS_INT4_BYTES, 128, {{0}}},
    {"int4_bytes_zp", 4, QDNN_WEIGHTS_INT4_BYTES_ZP, 128, {{QDNN_QUANT_ZERO_KIND, 1}}},
    {"int4_linear", 5, QDNN_WEIGHTS_INT4_LINEAR, 0, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_CODE_KIND, 2}, {QDNN_QUANT_GRANULARITY, 3}}},
    {"int4_affine", 6, QDNN_WEIGHTS_INT4_AFFINE, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_TYPE, 1}}},
    {"int4_rows", 7, QDNN_WEIGHTS_INT4_ROWS, 0, {{QDNN_QUANT_LAYOUT, 2}, {QDNN_QUANT_CODE_KIND, 3}, {QDNN_QUANT_GRANULARITY, 1}}},
    {"int4_block", 8, QDNN_WEIGHTS_INT4_BLOCK, 128, {{QDNN_QUANT_LAYOUT, 3}, {QDNN_QUANT_CODE_KIND, 2}}},
    {"int4_block_zp", 9, QDNN_WEIGHTS_INT4_BLOCK_ZP, 128, {{QDNN_QUANT_LAYOUT, 3}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_TYPE, 11}}},
    {"int8_block", 10, QDNN_WEIGHTS_INT8_BLOCK, 128, {{QDNN_QUANT_STORAGE, 0x10}, {QDNN_QUANT_LAYOUT, 3}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_TYPE, 11}}},
    {"nf4_bytes", 11, QDNN_WEIGHTS_NF4_BYTES, 64, {{QDNN_QUANT_STORAGE, 0x1D}}},
    {"fp8_e4m3", 12, QDNN_WEIGHTS_FP8_E4M3, 0, {{QDNN_QUANT_STORAGE, 0x19}, {QDNN_QUANT_GRANULARITY, 0}}},
    {"fp8_e5m2", 13, QDNN_WEIGHTS_FP8_E5M2, 0, {{QDNN_QUANT_STORAGE, 0x1A}, {QDNN_QUANT_GRANULARITY, 0}}},
    {"fp8_e4m3_columns", 14, QDNN_WEIGHTS_FP8_E4M3_COLUMNS, 0, {{QDNN_QUANT_STORAGE, 0x19}, {QDNN_QUANT_GRANULARITY, 1}, {QDNN_QUANT_AXIS, 1}}},
    {"fp8_e5m2_columns", 15, QDNN_WEIGHTS_FP8_E5M2_COLUMNS, 0, {{QDNN_QUANT_STORAGE, 0x1A}, {QDNN_QUANT_GRANULARITY, 1}, {QDNN_QUANT_AXIS, 1}}},
    {"fp8_e4m3_128x128", 16, QDNN_WEIGHTS_FP8_E4M3_128X128, -128, {{QDNN_QUANT_STORAGE, 0x19}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_BLOCK_ROWS, 128}}},
    {"fp8_e5m2_128x128", 17, QDNN_WEIGHTS_FP8_E5M2_128X128, -128, {{QDNN_QUANT_STORAGE, 0x1A}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_BLOCK_ROWS, 128}}},
    {"nvfp4", 18, QDNN_WEIGHTS_NVFP4, -16, {{QDNN_QUANT_STORAGE, 0x1C}, {QDNN_QUANT_LAYOUT, 3}, {QDNN_QUANT_SCALE_TYPE, 3}, {QDNN_QUANT_GLOBAL_SCALE, 1}}},
    {"gptq_2bit", 19, QDNN_WEIGHTS_GPTQ_2BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 2}, {QDNN_QUANT_ZERO_MINUS_ONE, 1}}},
    {"gptq_3bit", 20, QDNN_WEIGHTS_GPTQ_3BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 3}, {QDNN_QUANT_ZERO_MINUS_ONE, 1}}},
    {"gptq_4bit", 21, QDNN_WEIGHTS_GPTQ_4BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}, {QDNN_QUANT_ZERO_MINUS_ONE, 1}}},
    {"gptq_8bit", 22, QDNN_WEIGHTS_GPTQ_8BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 8}, {QDNN_QUANT_ZERO_MINUS_ONE, 1}}},
    {"gptq_v2_2bit", 23, QDNN_WEIGHTS_GPTQ_V2_2BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 2}}},
    {"gptq_v2_3bit", 24, QDNN_WEIGHTS_GPTQ_V2_3BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 3}}},
    {"gptq_v2_4bit", 25, QDNN_WEIGHTS_GPTQ_V2_4BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}}},
    {"gptq_v2_8bit", 26, QDNN_WEIGHTS_GPTQ_V2_8BIT, 128, {{QDNN_QUANT_LAYOUT, 1}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 8}}},
    {"awq", 27, QDNN_WEIGHTS_AWQ, 128, {{QDNN_QUANT_LAYOUT, 4}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}, {QDNN_QUANT_SCALE_TYPE, 1}}},
    {"bnb_nf4", 28, QDNN_WEIGHTS_BNB_NF4, 64, {{QDNN_QUANT_STORAGE, 0x1D}, {QDNN_QUANT_NIBBLE_ORDER, 1}, {QDNN_QUANT_DIVISION, 1}}},
    {"bnb_fp4", 29, QDNN_WEIGHTS_BNB_FP4, 64, {{QDNN_QUANT_STORAGE, 0x1C}, {QDNN_QUANT_CODE_KIND, 4}, {QDNN_QUANT_NIBBLE_ORDER, 1}, {QDNN_QUANT_DIVISION, 1}}},
    {"bnb_nf4_nested", 30, QDNN_WEIGHTS_BNB_NF4_NESTED, 64, {{QDNN_QUANT_STORAGE, 0x1D}, {QDNN_QUANT_NIBBLE_ORDER, 1}, {QDNN_QUANT_DIVISION, 1}, {QDNN_QUANT_NESTED, 1}}},
    {"bnb_fp4_nested", 31, QDNN_WEIGHTS_BNB_FP4_NESTED, 64, {{QDNN_QUANT_STORAGE, 0x1C}, {QDNN_QUANT_CODE_KIND, 4}, {QDNN_QUANT_NIBBLE_ORDER, 1}, {QDNN_QUANT_DIVISION, 1}, {QDNN_QUANT_NESTED, 1}}},
    {"modelopt_nvfp4", 32, QDNN_WEIGHTS_MODELOPT_NVFP4, -16, {{QDNN_QUANT_STORAGE, 0x1C}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 3}, {QDNN_QUANT_GLOBAL_SCALE, 1}}},
    {"compressed_tensors_4bit", 33, QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT, 128, {{QDNN_QUANT_LAYOUT, 2}, {QDNN_QUANT_CODE_KIND, 1}, {QDNN_QUANT_SCALE_TYPE, 2}}},
    {"compressed_tensors_4bit_zp", 34, QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT_ZP, 128, {{QDNN_QUANT_LAYOUT, 2}, {QDNN_QUANT_CODE_KIND, 1}, {QDNN_QUANT_SCALE_TYPE, 2}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}}},
    {"compressed_tensors_8bit", 35, QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT, 128, {{QDNN_QUANT_LAYOUT, 2}, {QDNN_QUANT_CODE_KIND, 1}, {QDNN_QUANT_SCALE_TYPE, 2}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 8}}},
    {"compressed_tensors_8bit_zp", 36, QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT_ZP, 128, {{QDNN_QUANT_LAYOUT, 2}, {QDNN_QUANT_CODE_KIND, 1}, {QDNN_QUANT_SCALE_TYPE, 2}, {QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 8}, {QDNN_QUANT_ZERO_KIND, 1}, {QDNN_QUANT_ZERO_PACKED, 1}}},
    {"compressed_tensors_nvfp4", 37, QDNN_WEIGHTS_COMPRESSED_TENSORS_NVFP4, -16, {{QDNN_QUANT_STORAGE, 0x1C}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 3}, {QDNN_QUANT_GLOBAL_SCALE, 2}}},
    {"gpt_oss_mxfp4", 38, QDNN_WEIGHTS_GPT_OSS_MXFP4, -32, {{QDNN_QUANT_STORAGE, 0x1C}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 4}}},
    {"mxfp4", 39, QDNN_WEIGHTS_MXFP4, -32, {{QDNN_QUANT_STORAGE, 0x1C}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 4}}},
    {"mxfp6_e2m3", 40, QDNN_WEIGHTS_MXFP6_E2M3, -32, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 6}, {QDNN_QUANT_CODE_KIND, 5}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 4}}},
    {"mxfp6_e3m2", 41, QDNN_WEIGHTS_MXFP6_E3M2, -32, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_CODE_BITS, 6}, {QDNN_QUANT_CODE_KIND, 6}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 4}}},
    {"mxfp8_e4m3", 42, QDNN_WEIGHTS_MXFP8_E4M3, -32, {{QDNN_QUANT_STORAGE, 0x19}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 4}}},
    {"mxfp8_e5m2", 43, QDNN_WEIGHTS_MXFP8_E5M2, -32, {{QDNN_QUANT_STORAGE, 0x1A}, {QDNN_QUANT_GROUPS, 2}, {QDNN_QUANT_SCALE_TYPE, 4}}},
    {"gguf_q4_0", 44, QDNN_WEIGHTS_GGUF_Q4_0, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 1}}},
    {"gguf_q4_1", 45, QDNN_WEIGHTS_GGUF_Q4_1, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 2}}},
    {"gguf_q5_0", 46, QDNN_WEIGHTS_GGUF_Q5_0, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 3}}},
    {"gguf_q5_1", 47, QDNN_WEIGHTS_GGUF_Q5_1, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 4}}},
    {"gguf_q8_0", 48, QDNN_WEIGHTS_GGUF_Q8_0, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 5}}},
    {"gguf_q8_1", 49, QDNN_WEIGHTS_GGUF_Q8_1, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 6}}},
    {"gguf_q2_k", 50, QDNN_WEIGHTS_GGUF_Q2_K, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 7}}},
    {"gguf_q3_k", 51, QDNN_WEIGHTS_GGUF_Q3_K, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 8}}},
    {"gguf_q4_k", 52, QDNN_WEIGHTS_GGUF_Q4_K, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 9}}},
    {"gguf_q5_k", 53, QDNN_WEIGHTS_GGUF_Q5_K, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 10}}},
    {"gguf_q6_k", 54, QDNN_WEIGHTS_GGUF_Q6_K, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 11}}},
    {"gguf_q8_k", 55, QDNN_WEIGHTS_GGUF_Q8_K, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 12}}},
    {"gguf_iq4_nl", 56, QDNN_WEIGHTS_GGUF_IQ4_NL, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 13}}},
    {"gguf_iq4_xs", 57, QDNN_WEIGHTS_GGUF_IQ4_XS, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 14}}},
    {"gguf_tq1_0", 58, QDNN_WEIGHTS_GGUF_TQ1_0, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 15}}},
    {"gguf_tq2_0", 59, QDNN_WEIGHTS_GGUF_TQ2_0, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 16}}},
    {"gguf_mxfp4", 60, QDNN_WEIGHTS_GGUF_MXFP4, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 17}}},
    {"gguf_nvfp4", 61, QDNN_WEIGHTS_GGUF_NVFP4, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 18}}},
    {"gguf_q1_0", 62, QDNN_WEIGHTS_GGUF_Q1_0, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 19}}},
    {"gguf_q2_0", 63, QDNN_WEIGHTS_GGUF_Q2_0, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 20}}},
    {"gguf_iq1_s", 64, QDNN_WEIGHTS_GGUF_IQ1_S, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 21}}},
    {"gguf_iq1_m", 65, QDNN_WEIGHTS_GGUF_IQ1_M, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 22}}},
    {"gguf_iq2_xxs", 66, QDNN_WEIGHTS_GGUF_IQ2_XXS, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 23}}},
    {"gguf_iq2_xs", 67, QDNN_WEIGHTS_GGUF_IQ2_XS, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 24}}},
    {"gguf_iq2_s", 68, QDNN_WEIGHTS_GGUF_IQ2_S, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 25}}},
    {"gguf_iq3_xxs", 69, QDNN_WEIGHTS_GGUF_IQ3_XXS, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 26}}},
    {"gguf_iq3_s", 70, QDNN_WEIGHTS_GGUF_IQ3_S, 0, {{QDNN_QUANT_STORAGE, 0x0E}, {QDNN_QUANT_GRANULARITY, 3}, {QDNN_QUANT_BLOCK_FORMAT, 27}}},
    /* clang-format on */
};
enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert((int)ROWS == (int)QDNN_WEIGHTS_COUNT, "a row for each name");

/* An attribute that a row does not list is at its default; QDNN_QUANT_STORAGE is never 0, so a 0 ends a list. */
static int64_t expected_value(qdnnQuantDescriptor_t usual, int row, int attribute)
{
    int64_t value = -77;
    OK(qdnnGetQuantAttribute(usual, (qdnnQuantAttribute_t)attribute, &value));
    if (attribute == QDNN_QUANT_GROUP_SIZE && rows[row].group)
        return llabs(rows[row].group);
    for (int i = 0; i < SETTINGS && (rows[row].set[i].attribute || rows[row].set[i].value); i++)
        if (rows[row].set[i].attribute == attribute)
            return rows[row].set[i].value;
    return value;
}

TEST_ROWS(ApiWeights, SetEveryAttribute, rows)
{
    qdnnQuantDescriptor_t usual = NULL, q = NULL;
    float floor = -1;
    CHECK_EQ_I64(rows[index].tag, rows[index].number);
    CHECK_EQ_STR(qdnnGetWeightsName((qdnnWeights_t)rows[index].number), rows[index].name);
    OK(qdnnCreateQuantDescriptor(&usual));
    OK(qdnnCreateQuantDescriptor(&q));
    /* nothing of an earlier setting is left */
    OK(qdnnSetQuantAttribute(q, QDNN_QUANT_ROUNDING, QDNN_ROUND_TIES_AWAY));
    OK(qdnnSetQuantAttribute(q, QDNN_QUANT_GROUP_INDEX, 1));
    OK(qdnnSetQuantFloor(q, 3));
    OK(qdnnSetQuantWeights(q, (qdnnWeights_t)rows[index].number, 0));
    for (int i = 0; i < QDNN_QUANT_ATTRIBUTE_COUNT; i++) {
        int64_t value = -77;
        test_push_note("attribute %d", i);
        OK(qdnnGetQuantAttribute(q, (qdnnQuantAttribute_t)i, &value));
        CHECK_EQ_I64(value, expected_value(usual, index, i));
        test_pop_note();
    }
    OK(qdnnGetQuantFloor(q, &floor));
    CHECK_EQ_F32(floor, strncmp(rows[index].name, "bnb_", 4) == 0 ? 0 : 1e-12f);
    OK(qdnnDestroyQuantDescriptor(usual));
    OK(qdnnDestroyQuantDescriptor(q));
}

/* The extent: a group size where the format leaves it open. */
TEST_ROWS(ApiWeights, TakeTheirExtents, rows)
{
    qdnnQuantDescriptor_t q = NULL;
    int64_t size = -77, group = rows[index].group;
    qdnnWeights_t weights = (qdnnWeights_t)rows[index].number;
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnSetQuantAttribute(q, QDNN_QUANT_GROUP_SIZE, 77));
    CHECK_STATUS_IS(qdnnSetQuantWeights(q, weights, -1), OUT_OF_BOUND);
    CHECK_STATUS_IS(qdnnSetQuantWeights(q, weights, 48), group > 0 ? QDNN_STATUS_SUCCESS : OUT_OF_BOUND);
    OK(qdnnGetQuantAttribute(q, QDNN_QUANT_GROUP_SIZE, &size));
    CHECK_EQ_I64(size, group > 0 ? 48 : 77); /* a refused call leaves the descriptor unchanged */
    if (group <= 0) {
        CHECK_HAS(last_sentence(), "extent is 48");
        CHECK_HAS(last_sentence(), rows[index].name);
        CHECK_HAS(last_sentence(), group ? "it must be 0 or that" : "has no groups: it must be 0");
    }
    if (group < 0)
        OK(qdnnSetQuantWeights(q, weights, -group));
    OK(qdnnDestroyQuantDescriptor(q));
}

/* Bytes of a tensor of 256 rows and 512 columns, at the usual group size, worked out from the formats' layouts. */
static const struct {
    size_t codes, scale, zero, global_scale, map, nested_scale, offset;
} sizes[] = {
    /* clang-format off */
    [QDNN_WEIGHTS_F32] = {524288, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_F16] = {262144, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_BF16] = {262144, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT4_BYTES] = {65536, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT4_BYTES_ZP] = {65536, 4096, 1024, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT4_LINEAR] = {65536, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT4_AFFINE] = {65536, 4096, 4096, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT4_ROWS] = {65536, 1024, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT4_BLOCK] = {65536, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT4_BLOCK_ZP] = {65536, 4096, 4096, 0, 0, 0, 0},
    [QDNN_WEIGHTS_INT8_BLOCK] = {131072, 4096, 4096, 0, 0, 0, 0},
    [QDNN_WEIGHTS_NF4_BYTES] = {65536, 8192, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_FP8_E4M3] = {131072, 4, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_FP8_E5M2] = {131072, 4, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_FP8_E4M3_COLUMNS] = {131072, 2048, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_FP8_E5M2_COLUMNS] = {131072, 2048, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_FP8_E4M3_128X128] = {131072, 32, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_FP8_E5M2_128X128] = {131072, 32, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_NVFP4] = {65536, 8192, 0, 4, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_2BIT] = {32768, 2048, 256, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_3BIT] = {49152, 2048, 384, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_4BIT] = {65536, 2048, 512, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_8BIT] = {131072, 2048, 1024, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_V2_2BIT] = {32768, 2048, 256, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_V2_3BIT] = {49152, 2048, 384, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_V2_4BIT] = {65536, 2048, 512, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GPTQ_V2_8BIT] = {131072, 2048, 1024, 0, 0, 0, 0},
    [QDNN_WEIGHTS_AWQ] = {65536, 2048, 512, 0, 0, 0, 0},
    [QDNN_WEIGHTS_BNB_NF4] = {65536, 8192, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_BNB_FP4] = {65536, 8192, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_BNB_NF4_NESTED] = {65536, 2048, 0, 0, 1024, 32, 4},
    [QDNN_WEIGHTS_BNB_FP4_NESTED] = {65536, 2048, 0, 0, 1024, 32, 4},
    [QDNN_WEIGHTS_MODELOPT_NVFP4] = {65536, 8192, 0, 4, 0, 0, 0},
    [QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT] = {65536, 2048, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT_ZP] = {65536, 2048, 512, 0, 0, 0, 0},
    [QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT] = {131072, 2048, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT_ZP] = {131072, 2048, 1024, 0, 0, 0, 0},
    [QDNN_WEIGHTS_COMPRESSED_TENSORS_NVFP4] = {65536, 8192, 0, 4, 0, 0, 0},
    [QDNN_WEIGHTS_GPT_OSS_MXFP4] = {65536, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_MXFP4] = {65536, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_MXFP6_E2M3] = {98304, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_MXFP6_E3M2] = {98304, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_MXFP8_E4M3] = {131072, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_MXFP8_E5M2] = {131072, 4096, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q4_0] = {73728, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q4_1] = {81920, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q5_0] = {90112, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q5_1] = {98304, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q8_0] = {139264, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q8_1] = {147456, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q2_K] = {43008, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q3_K] = {56320, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q4_K] = {73728, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q5_K] = {90112, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q6_K] = {107520, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q8_K] = {149504, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ4_NL] = {73728, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ4_XS] = {69632, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_TQ1_0] = {27648, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_TQ2_0] = {33792, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_MXFP4] = {69632, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_NVFP4] = {73728, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q1_0] = {18432, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_Q2_0] = {36864, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ1_S] = {25600, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ1_M] = {28672, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ2_XXS] = {33792, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ2_XS] = {37888, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ2_S] = {41984, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ3_XXS] = {50176, 0, 0, 0, 0, 0, 0},
    [QDNN_WEIGHTS_GGUF_IQ3_S] = {56320, 0, 0, 0, 0, 0, 0},
    /* clang-format on */
};

TEST_ROWS(ApiWeights, HaveTheirSizes, rows)
{
    const size_t expected[QDNN_OPERAND_COUNT] = {[QDNN_OPERAND_X] = 256 * 512 * 4,
                                                 [QDNN_OPERAND_Y] = 256 * 512 * 4,
                                                 [QDNN_OPERAND_CODES] = sizes[index].codes,
                                                 [QDNN_OPERAND_SCALE] = sizes[index].scale,
                                                 [QDNN_OPERAND_ZERO] = sizes[index].zero,
                                                 [QDNN_OPERAND_GLOBAL_SCALE] = sizes[index].global_scale,
                                                 [QDNN_OPERAND_NESTED_MAP] = sizes[index].map,
                                                 [QDNN_OPERAND_NESTED_SCALE] = sizes[index].nested_scale,
                                                 [QDNN_OPERAND_NESTED_OFFSET] = sizes[index].offset};
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 2, (int64_t[]){256, 512}, NULL));
    OK(qdnnSetQuantWeights(q, (qdnnWeights_t)rows[index].number, 0));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        size_t bytes = 77;
        test_push_note("operand %d", i);
        if (!OK(qdnnGetOperandSize(q, t, (qdnnOperand_t)i, &bytes)))
            FAIL("%s", last_sentence());
        CHECK_EQ_U64(bytes, expected[i]);
        test_pop_note();
    }
    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyQuantDescriptor(q));
}

/* The plan that reads them, whatever the format, is made and has the kernel of the format. */
TEST_ROWS(ApiWeights, CanBeDequantized, rows)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    vm_begin(NULL);
    REQUIRE(basics_create(&handle, &t, &q));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F16, 2, (int64_t[]){256, 512}, NULL));
    OK(qdnnSetQuantWeights(q, (qdnnWeights_t)rows[index].number, 0));
    if (!OK(qdnnCreateDequantizePlan(handle, t, q, &plan)))
        FAIL("%s", last_sentence());
    else if (OK(qdnnGetPlanInfo(plan, &info)))
        CHECK(info.kernels >= 1 && strstr(info.operation, ".dequantize"));
    OK(qdnnDestroyPlan(plan));
    basics_destroy(handle, t, q);
    vm_end();
}

/* docs/formats.md names them all, without their common beginning and in capitals. */
TEST_CASE(ApiWeights, AreDocumented)
{
    process_result page =
        process_run("sed -n '/^## Names/,/^## Choices/p' %s/docs/formats.md", QDNN_SOURCE_DIR);
    for (int i = 0; i < ROWS; i++) {
        char word[64];
        size_t n = 0;
        for (; rows[i].name[n]; n++)
            word[n] = (char)toupper((unsigned char)rows[i].name[n]);
        word[n] = 0;
        CHECK_HAS(page.output, word);
    }
    process_free(&page);
}

TEST_CASE(ApiWeights, NumbersThatAreNone)
{
    static const int none[] = {-1, QDNN_WEIGHTS_COUNT, INT32_MAX, INT32_MIN};
    qdnnQuantDescriptor_t q = NULL;
    OK(qdnnCreateQuantDescriptor(&q));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ_STR(qdnnGetWeightsName((qdnnWeights_t)none[i]), "unknown");
        CHECK_STATUS_IS(qdnnSetQuantWeights(q, (qdnnWeights_t)none[i], 0), OUT_OF_BOUND);
        CHECK_HAS(last_sentence(), "it must be 0 to 70");
    }
    OK(qdnnDestroyQuantDescriptor(q));
    CHECK_EQ_I64(QDNN_WEIGHTS_COUNT, 71);
}
