/* Groups along rows and down columns in the host reference, 2-D blocks, the order and the swizzle of scales, and
 * g_idx. Expected values are worked out by hand. */
#include "test_host_ref.h"

#include <string.h>

/* INT8 in flat bytes: the scale is absmax / 127. */
static ref_quant_spec int8_groups(qdnnGroups_t groups, int64_t group_size, int64_t group_rows)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I8, QDNN_ZERO_NONE);
    spec.groups = groups;
    spec.group_size = group_size;
    spec.group_rows = group_rows;
    return spec;
}

#define E(x) ((x)*127.0f)
static const float matrix[3 * 5] = {E(1), E(-2), E(3),  E(4),  E(5),  /* */
                                    E(6), E(7),  E(8),  E(-9), E(10), /* */
                                    E(0), E(12), E(13), E(14), E(15)};
#undef E

/* Absmax of each group in units of 127, for every way to cut the 3 x 5 matrix. */
static const struct {
    const char *name;
    qdnnGroups_t groups;
    int64_t group_size, group_rows;
    qdnnScaleOrder_t order;
    int64_t count;
    float scales[15];
} cuts[] = {
    {"rows", QDNN_GROUPS_ROWS, 2, 0, 0, 9, {2, 4, 5, 7, 9, 10, 12, 14, 15}},
    {"rows_transposed", QDNN_GROUPS_ROWS, 2, 0, 1, 9, {2, 7, 12, 4, 9, 14, 5, 10, 15}},
    {"whole_rows", QDNN_GROUPS_ROWS, 99, 1, 0, 3, {5, 10, 15}},
    {"rows_in_blocks", QDNN_GROUPS_ROWS, 2, 2, 0, 6, {7, 9, 10, 12, 14, 15}},
    {"rows_in_blocks_transposed", QDNN_GROUPS_ROWS, 2, 2, 1, 6, {7, 12, 9, 14, 10, 15}},
    {"columns", QDNN_GROUPS_COLUMNS, 2, 0, 0, 10, {6, 7, 8, 9, 10, 1e-12f / 127, 12, 13, 14, 15}},
    {"columns_transposed", QDNN_GROUPS_COLUMNS, 2, 0, 1, 10, {6, 1e-12f / 127, 7, 12, 8, 13, 9, 14, 10, 15}},
    {"whole_columns", QDNN_GROUPS_COLUMNS, 3, 1, 0, 5, {6, 12, 13, 14, 15}},
    {"columns_in_blocks", QDNN_GROUPS_COLUMNS, 2, 3, 0, 4, {8, 10, 13, 15}},
    {"columns_in_blocks_transposed", QDNN_GROUPS_COLUMNS, 2, 3, 1, 4, {8, 13, 10, 15}},
    {"one_block", QDNN_GROUPS_ROWS, 128, 128, 0, 1, {15}},
    {"flat", QDNN_GROUPS_FLAT, 4, 0, 0, 4, {4, 8, 12, 15}},
};

TEST_ROWS(HostRefGroups, ScalesOfAMatrix, cuts)
{
    ref_quant_spec spec = int8_groups(cuts[index].groups, cuts[index].group_size, cuts[index].group_rows);
    spec.scale_order = cuts[index].order;
    float scale[15], y[15];
    int8_t codes[15];
    ref_arrays arrays = {.codes = codes, .scale = scale};
    for (int i = 0; i < 15; i++)
        scale[i] = -1;
    CHECK_EQ_I64(ref_group_count(&spec, 3, 5), cuts[index].count);
    CHECK_EQ_I64(ref_sizes_of(&spec, 3, 5).scale, cuts[index].count * 4);
    ref_scale(&spec, 3, 5, matrix, &arrays);
    CHECK_EQ_MEM(scale, cuts[index].scales, (size_t)cuts[index].count * sizeof(float));
    if (cuts[index].count < 15)
        CHECK_EQ_F32(scale[cuts[index].count], -1);
    /* The largest element of a group comes back exactly, in whatever group it is. */
    ref_quantize(&spec, 3, 5, matrix, &arrays);
    ref_dequantize(&spec, 3, 5, &arrays, y);
    for (int i = 0; i < 15; i++) {
        float scaled = ref_decode(&spec, 3, 5, &arrays, i / 5, i % 5);
        CHECK_EQ_F32(scaled, y[i]);
        CHECK(fabsf(y[i] - matrix[i]) <= 7.5f);
    }
    CHECK_EQ_F32(y[14], matrix[14]);
}

/* What DEFAULT means depends on the layout. */
TEST_CASE(HostRefGroups, DefaultsOfLayouts)
{
    static const int64_t counts[] = {[QDNN_LAYOUT_BYTES] = 6,             /* 24 elements flat */
                                     [QDNN_LAYOUT_WORDS_INTERLEAVED] = 8, /* one for each of 8 columns */
                                     [QDNN_LAYOUT_WORDS_ROWS] = 6,        /* two for each of 3 rows */
                                     [QDNN_LAYOUT_BLOCK] = 8,
                                     [QDNN_LAYOUT_AWQ] = 8};
    for (int layout = QDNN_LAYOUT_BYTES; layout <= QDNN_LAYOUT_AWQ; layout++) {
        ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_NONE);
        spec.layout = (qdnnLayout_t)layout;
        spec.group_size = 4;
        CHECK_EQ_I64(ref_group_count(&spec, 3, 8), counts[layout]);
    }
}

/* Zeros lie as scales do; zeros of groups that do not meet an element count as such. */
TEST_CASE(HostRefGroups, ZerosInBothOrders)
{
    const float x[2 * 3] = {-5, 10, 0, 15, -15, 0}; /* columns of two */
    for (int order = 0; order < 2; order++) {
        ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
        spec.groups = QDNN_GROUPS_COLUMNS;
        spec.group_size = 1;
        spec.scale_order = (qdnnScaleOrder_t)order;
        spec.zero = QDNN_DATA_U8;
        float scale[6], y[6];
        uint8_t zero[6], codes[3];
        ref_arrays arrays = {.codes = codes, .scale = scale, .zero = zero};
        ref_scale(&spec, 2, 3, x, &arrays);
        CHECK_EQ_MEM(
            zero, order ? ((const uint8_t[6]){15, 0, 0, 15, 0, 0}) : ((const uint8_t[6]){15, 0, 0, 0, 15, 0}),
            6);
        ref_quantize(&spec, 2, 3, x, &arrays);
        ref_dequantize(&spec, 2, 3, &arrays, y);
        CHECK_EQ_MEM(y, x, sizeof x);
    }
}

/* ---- Swizzle ---- */

/* 130 rows of 5 scales: 2 x 2 tiles. The scale of (m, k) is a power of two that tells where it comes from. */
TEST_CASE(HostRefGroups, SwizzledScales)
{
    enum { ROWS = 130, COLUMNS = 5 };
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    static uint8_t scale[2048], codes[ROWS * COLUMNS];
    static const struct {
        int m, k, offset;
    } known[] = {{0, 0, 0},      {0, 1, 1},      {0, 3, 3},  {0, 4, 512}, {1, 0, 16},
                 {31, 2, 498},   {32, 0, 4},     {64, 0, 8}, {96, 3, 15}, {127, 4, 512 + 508},
                 {128, 0, 1024}, {129, 4, 1552}, {33, 1, 21}};
    ref_quant_spec spec = plain_spec(QDNN_DATA_F8E4M3, QDNN_ZERO_NONE);
    spec.groups = QDNN_GROUPS_ROWS;
    spec.group_size = 1;
    spec.scale = QDNN_SCALE_E8M0;
    spec.scale_swizzle = QDNN_SWIZZLE_128X4;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = ldexpf(1, i % 100);
    ref_arrays arrays = {.codes = codes, .scale = scale};
    memset(scale, 0xAA, sizeof scale);
    CHECK_EQ_I64(ref_sizes_of(&spec, ROWS, COLUMNS).scale, 2048);
    CHECK_EQ_I64(ref_group_count(&spec, ROWS, COLUMNS), ROWS * COLUMNS);
    ref_scale(&spec, ROWS, COLUMNS, x, &arrays);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        CHECK_EQ_U32(scale[known[i].offset], (unsigned)((known[i].m * COLUMNS + known[i].k) % 100 + 119));
    int filled = 0;
    for (int i = 0; i < 2048; i++)
        filled += scale[i] != 0;
    CHECK_EQ_I64(filled, ROWS * COLUMNS);
    ref_quantize(&spec, ROWS, COLUMNS, x, &arrays);
    ref_dequantize(&spec, ROWS, COLUMNS, &arrays, y);
    CHECK_EQ_MEM(y, x, sizeof x);
}

/* Weights [K, N] whose scales a tensor core takes as [N, groups]: down columns, transposed, swizzled. */
TEST_CASE(HostRefGroups, SwizzledScalesOfColumns)
{
    const float x[2 * 3] = {1, 2, 4, 8, 16, 32};
    ref_quant_spec spec = plain_spec(QDNN_DATA_F8E4M3, QDNN_ZERO_NONE);
    spec.groups = QDNN_GROUPS_COLUMNS;
    spec.group_size = 1;
    spec.scale = QDNN_SCALE_E8M0;
    spec.scale_order = QDNN_SCALE_ORDER_TRANSPOSED;
    spec.scale_swizzle = QDNN_SWIZZLE_128X4;
    uint8_t scale[512];
    ref_arrays arrays = {.scale = scale};
    CHECK_EQ_I64(ref_sizes_of(&spec, 2, 3).scale, 512);
    ref_scale(&spec, 2, 3, x, &arrays);
    static const uint8_t expected[3][4] = {{119, 122}, {120, 123}, {121, 124}};
    for (int n = 0; n < 3; n++)
        CHECK_EQ_MEM(scale + 16 * n, expected[n], 4);
}

/* ---- g_idx ---- */

TEST_CASE(HostRefGroups, RowsThatNameTheirGroup)
{
    const float x[4 * 2] = {127, 0, 0, 254, 1270, 0, 0, -381};
    const int32_t group[4] = {1, 0, 1, 0};
    ref_quant_spec spec = int8_groups(QDNN_GROUPS_COLUMNS, 2, 0);
    spec.group_index = true;
    float scale[4], y[8];
    int8_t codes[8];
    ref_arrays arrays = {.codes = codes, .scale = scale, .group_index = group};
    CHECK_EQ_I64(ref_sizes_of(&spec, 4, 2).group_index, 16);
    ref_scale(&spec, 4, 2, x, &arrays);
    CHECK_EQ_MEM(scale, ((const float[4]){1e-12f / 127, 3, 10, 1e-12f / 127}), sizeof scale);
    ref_quantize(&spec, 4, 2, x, &arrays);
    CHECK_EQ_MEM(codes, ((const int8_t[8]){13, 0, 0, 85, 127, 0, 0, -127}), sizeof codes);
    ref_dequantize(&spec, 4, 2, &arrays, y);
    CHECK_EQ_MEM(y, ((const float[8]){130, 0, 0, 255, 1270, 0, 0, -381}), sizeof y);
}

/* A number that is no group's: a NaN scale, whatever the sign. Quantized, such a row is what 0 is. */
TEST_CASE(HostRefGroups, RowsThatNameNoGroup)
{
    const float x[4] = {127, 1, 2, 3};
    const int32_t group[4] = {0, -1, 2, INT32_MIN};
    ref_quant_spec spec = int8_groups(QDNN_GROUPS_COLUMNS, 2, 0);
    spec.group_index = true;
    float scale[2], y[4];
    int8_t codes[4];
    ref_arrays arrays = {.codes = codes, .scale = scale, .group_index = group};
    ref_scale(&spec, 4, 1, x, &arrays);
    CHECK_EQ_MEM(scale, ((const float[2]){1, 1e-12f / 127}), sizeof scale);
    ref_quantize(&spec, 4, 1, x, &arrays);
    CHECK_EQ_MEM(codes, ((const int8_t[4]){127, 0, 0, 0}), sizeof codes);
    ref_dequantize(&spec, 4, 1, &arrays, y);
    CHECK_EQ_F32(y[0], 127);
    for (int i = 1; i < 4; i++)
        CHECK_EQ_U32(ref_f32_to_bits(y[i]), REF_NAN_F32);
}

/* Rows in the order of a list, one of them twice; two numbers are no rows. */
TEST_CASE(HostRefGroups, RowsByTheirNumbers)
{
    const int8_t codes[3 * 2] = {1, 2, 3, 4, 5, 6};
    const float scale[3] = {1, 10, 100};
    const int32_t numbers[5] = {2, 0, 2, 3, -1};
    ref_quant_spec spec = int8_groups(QDNN_GROUPS_ROWS, 2, 0);
    ref_arrays arrays = {.codes = (void *)(uintptr_t)codes, .scale = (void *)(uintptr_t)scale};
    float y[10];
    ref_dequantize_rows(&spec, 3, 2, &arrays, numbers, 5, y);
    CHECK_EQ_MEM(y, ((const float[6]){500, 600, 1, 2, 500, 600}), 24);
    for (int i = 6; i < 10; i++)
        CHECK_EQ_U32(ref_f32_to_bits(y[i]), REF_NAN_F32);
}
