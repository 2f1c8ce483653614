/* INT4 (symmetric, offset code) in the host reference, and what holds for all formats: groups, packing, data
 * types. Expected values are worked out by hand. */
#include "test_host_ref.h"

#include <stdio.h>
#include <string.h>

static ref_quant_spec int4(void)
{
    return plain_spec(QDNN_DATA_I4, QDNN_ZERO_NONE);
}

TEST_CASE(HostRefQuant, Sizes)
{
    static const struct {
        int64_t n, group_size, channels, groups;
    } cases[] = {{128, 32, 0, 4},
                 {129, 32, 0, 5},
                 {1, 32, 0, 1},
                 {0, 32, 0, 0},
                 {INT64_MAX, INT64_MAX, 0, 1},
                 {INT64_MAX, 2, 0, INT64_C(0x4000000000000000)},
                 {128, 32, 3, 3},
                 {1, 32, 1000, 1000},
                 {5, 1, 1, 1},
                 {0, 32, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ref_quant_spec spec = int4();
        spec.group_size = cases[i].group_size;
        spec.channels = cases[i].channels;
        CHECK_EQ_I64(ref_group_count(&spec, 1, cases[i].n), cases[i].groups);
    }
    static const int64_t bytes[][2] = {
        {128, 64}, {129, 65}, {1, 1}, {0, 0}, {INT64_MAX, INT64_C(0x4000000000000000)}};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        ref_quant_spec spec = int4();
        spec.group_size = INT64_MAX;
        CHECK_EQ_I64(ref_sizes_of(&spec, 1, bytes[i][0]).codes, bytes[i][1]);
        CHECK_EQ_I64(ref_sizes_of(&spec, 1, bytes[i][0]).scale, bytes[i][0] ? 4 : 0);
    }
}

TEST_CASE(HostRefQuant, NothingIsWrittenForNoElements)
{
    static const qdnnDataType_t storages[] = {QDNN_DATA_I4, QDNN_DATA_NF4, QDNN_DATA_F8E4M3, QDNN_DATA_F16};
    for (size_t i = 0; i < sizeof storages / sizeof storages[0]; i++) {
        ref_quant_spec spec = plain_spec(storages[i], QDNN_ZERO_NONE);
        flat_scale(&spec, NULL, 0, NULL, NULL);
        flat_quantize(&spec, NULL, 0, NULL, NULL, NULL);
        flat_dequantize(&spec, NULL, 0, NULL, NULL, NULL);
    }
}

TEST_CASE(HostRefQuant, GroupsRunFlatAndTheLastIsShorter)
{
    ref_quant_spec spec = int4();
    spec.group_size = 2;
    const float x[5] = {7, -1, 14, 0, -21};
    float scale[4] = {99, 99, 99, 99}, y[6] = {99, 99, 99, 99, 99, 99};
    uint8_t codes[4] = {0xAA, 0xAA, 0xAA, 0xAA};
    flat_scale(&spec, x, 5, scale, NULL);
    flat_quantize(&spec, x, 5, scale, NULL, codes);
    flat_dequantize(&spec, codes, 5, scale, NULL, y);
    const float expected_scale[4] = {1, 2, 3, 99}, expected_y[6] = {7, -1, 14, 0, -21, 99};
    const uint8_t expected_codes[4] = {0x7F, 0x8F, 0x01, 0xAA};
    CHECK_EQ_MEM(scale, expected_scale, sizeof scale);
    CHECK_EQ_MEM(codes, expected_codes, sizeof codes);
    CHECK_EQ_MEM(y, expected_y, sizeof y);
}

TEST_CASE(HostRefQuant, AGroupMayExceedTheTensor)
{
    ref_quant_spec spec = int4();
    spec.group_size = INT64_MAX;
    const float x[3] = {-7, 3, 14};
    float scale[2] = {99, 99};
    uint8_t codes[2];
    flat_scale(&spec, x, 3, scale, NULL);
    flat_quantize(&spec, x, 3, scale, NULL, codes);
    CHECK_EQ_F32(scale[0], 2);
    CHECK_EQ_F32(scale[1], 99);
    const uint8_t expected[2] = {0xA4, 0x0F}; /* -3.5 -> -4 (even), 1.5 -> 2, 7 */
    CHECK_EQ_MEM(codes, expected, 2);
}

TEST_CASE(HostRefQuant, GroupsOfOne)
{
    ref_quant_spec spec = int4();
    spec.group_size = 1;
    const float x[3] = {7, -14, 0.875f};
    float scale[3], y[3];
    uint8_t codes[2];
    flat_scale(&spec, x, 3, scale, NULL);
    flat_quantize(&spec, x, 3, scale, NULL, codes);
    flat_dequantize(&spec, codes, 3, scale, NULL, y);
    const float expected[3] = {1, 2, 0.125f};
    const uint8_t expected_codes[2] = {0x1F, 0x0F};
    CHECK_EQ_MEM(scale, expected, sizeof scale);
    CHECK_EQ_MEM(codes, expected_codes, 2);
    CHECK_EQ_MEM(y, x, sizeof y);
}

TEST_CASE(HostRefQuant, NibbleOrdersAndTheUnusedNibble)
{
    ref_quant_spec spec = int4();
    const float x[5] = {-8, 7, 0, 1, 3}, scale = 1;
    float y[5];
    uint8_t codes[3];
    memset(codes, 0xAA, sizeof codes);
    flat_quantize(&spec, x, 5, &scale, NULL, codes);
    const uint8_t low_first[3] = {0xF0, 0x98, 0x0B};
    CHECK_EQ_MEM(codes, low_first, 3);
    flat_dequantize(&spec, codes, 5, &scale, NULL, y);
    CHECK_EQ_MEM(y, x, sizeof x);

    spec.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    memset(codes, 0xAA, sizeof codes);
    flat_quantize(&spec, x, 5, &scale, NULL, codes);
    const uint8_t high_first[3] = {0x0F, 0x89, 0xB0};
    CHECK_EQ_MEM(codes, high_first, 3);
    flat_dequantize(&spec, codes, 5, &scale, NULL, y);
    CHECK_EQ_MEM(y, x, sizeof x);
}

/* Every pair of data type and scale type: values that all of them hold exactly give the same codes. */
static const struct {
    qdnnDataType_t type;
    qdnnScaleType_t scale;
    const char *name;
} float_types[4] = {{QDNN_DATA_F32, QDNN_SCALE_F32, "f32"},
                    {QDNN_DATA_F16, QDNN_SCALE_F16, "f16"},
                    {QDNN_DATA_BF16, QDNN_SCALE_BF16, "bf16"},
                    {QDNN_DATA_F64, QDNN_SCALE_E4M3, "f64"}};

static int type_pair_count(void)
{
    return 16;
}

static void type_pair_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_scale_%s", float_types[index / 4].name,
             index % 4 == 3 ? "e4m3" : float_types[index % 4].name);
}

TEST_EACH(HostRefQuant, DataAndScaleTypes, type_pair_count, type_pair_name)
{
    ref_quant_spec spec = int4();
    spec.data = float_types[index / 4].type;
    spec.scale = float_types[index % 4].scale;
    spec.group_size = 4;
    const float values[8] = {-7, 1.5f, NAN, 6.5f, 0.25f, -3.5f, 1.25f, 0.75f};
    double x[8], y[8]; /* large enough for any of the types */
    float scale[2];
    for (int i = 0; i < 8; i++)
        ref_scalar_store(spec.data, x, i, values[i]);
    uint8_t codes[4];
    flat_scale(&spec, x, 8, scale, NULL);
    static const uint32_t expected_scales[][2] = {
        {0x3F800000, 0x3F000000}, {0x3C00, 0x3800}, {0x3F80, 0x3F00}, {0x38, 0x30}};
    for (int i = 0; i < 2; i++)
        CHECK_EQ_U32(stored_bits(scale, spec.scale, i), expected_scales[index % 4][i]);
    flat_quantize(&spec, x, 8, scale, NULL, codes);
    const uint8_t expected[4] = {0xA1, 0xE8, 0x18, 0xAA}; /* -7 2 0 6; 0 (0.5) -7 2 (2.5) 2 (1.5) */
    CHECK_EQ_MEM(codes, expected, 4);
    flat_dequantize(&spec, codes, 8, scale, NULL, y);
    const float decoded[8] = {-7, 2, 0, 6, 0, -3.5f, 1, 1};
    for (int i = 0; i < 8; i++)
        CHECK_EQ_F32(ref_scalar_load(spec.data, y, i), decoded[i]);
}

TEST_CASE(HostRefInt4, ScaleIsAbsmaxOverSeven)
{
    const float x[4] = {1, -7, 3, -0.0f};
    CHECK_EQ_U32(scale_bits(int4(), x, 4), 0x3F800000);
    CHECK_EQ_U32(scale_bits(int4(), x, 1), 0x3E124925); /* 1/7 */
    const float nans[3] = {NAN, -3.5f, -NAN};
    CHECK_EQ_U32(scale_bits(int4(), nans, 3), 0x3F000000);
}

TEST_CASE(HostRefInt4, FloorOfTheScale)
{
    ref_quant_spec spec = int4();
    const float zeros[2] = {-0.0f, 0}, nans[2] = {NAN, NAN}, seven = -7;
    CHECK_EQ_U32(scale_bits(spec, zeros, 2), 0x2A20D7C5);
    CHECK_EQ_U32(scale_bits(spec, nans, 2), 0x2A20D7C5);
    spec.floor = 14;
    CHECK_EQ_U32(scale_bits(spec, &seven, 1), 0x40000000);
    spec.floor = 0;
    CHECK_EQ_U32(scale_bits(spec, zeros, 2), 0x00000001);
}

TEST_CASE(HostRefInt4, InfinityCountsAsTheLargestNumber)
{
    const float x[4] = {INFINITY, 1, NAN, -INFINITY};
    ref_quant_spec spec = int4();
    CHECK_EQ_U32(scale_bits(spec, x, 4), 0x7E124924);
    CHECK_EQ_U32(scale_bits(spec, x, 1), 0x7E124924);
    CHECK_EQ_U32(scale_bits(spec, x + 3, 1), 0x7E124924);
    float scale = ref_f32_from_bits(0x7E124924);
    uint8_t codes[2];
    flat_quantize(&spec, x, 4, &scale, NULL, codes);
    const uint8_t expected[2] = {0x8F, 0x18};
    CHECK_EQ_MEM(codes, expected, 2);
    /* From f16 too: FLT_MAX, not 65504. */
    const uint16_t half[2] = {0x7C00, 0xFC00};
    spec.data = QDNN_DATA_F16;
    flat_scale(&spec, half, 2, &scale, NULL);
    CHECK_EQ_U32(ref_f32_to_bits(scale), 0x7E124924);
}

TEST_CASE(HostRefInt4, SubnormalGroups)
{
    ref_quant_spec spec = int4();
    spec.floor = 0;
    const float seven[1] = {0x7p-149f}, ten[2] = {0xAp-149f, -0xAp-149f};
    CHECK_EQ_U32(scale_bits(spec, seven, 1), 0x00000001);
    CHECK_EQ_U32(scale_bits(spec, ten, 2), 0x00000001); /* 10/7 of the smallest number */
    CHECK_EQ_U32(code_of(spec, seven[0], 0x1p-149f, 0), 15);
    CHECK_EQ_U32(code_of(spec, 0x3p-149f, 0x1p-149f, 0), 11);
    CHECK_EQ_U32(code_of(spec, ten[0], 0x1p-149f, 0), 15);
    CHECK_EQ_U32(code_of(spec, ten[1], 0x1p-149f, 0), 0);
    CHECK_EQ_U32(decoded_bits(spec, 5, 0x1p-149f, 0), 0x80000003);
}

TEST_CASE(HostRefInt4, ScalesStoredAsHalves)
{
    ref_quant_spec spec = int4();
    const float zero = 0, one = 1, huge = 1e30f, most = FLT_MAX;
    const float tie_down = 7 * (1 + 0x1p-11f), tie_up = 7 * (1 + 0x3p-11f);
    spec.scale = QDNN_SCALE_F16;
    CHECK_EQ_U32(scale_bits(spec, &zero, 1), 0x0001);
    CHECK_EQ_U32(scale_bits(spec, &huge, 1), 0x7BFF);
    CHECK_EQ_U32(scale_bits(spec, &one, 1), 0x3092); /* 2^-3 * (1 + 146.3/1024) */
    CHECK_EQ_U32(scale_bits(spec, &tie_down, 1), 0x3C00);
    CHECK_EQ_U32(scale_bits(spec, &tie_up, 1), 0x3C02);
    spec.scale = QDNN_SCALE_BF16;
    CHECK_EQ_U32(scale_bits(spec, &one, 1), 0x3E12);
    CHECK_EQ_U32(scale_bits(spec, &most, 1), 0x7E12);
    CHECK_EQ_U32(scale_bits(spec, &zero, 1), 0x2A21); /* 2A20D7C5 */
    spec.floor = 0;
    CHECK_EQ_U32(scale_bits(spec, &zero, 1), 0x0001);
}

/* The scale wants to be 2^-23 / 7 but f16 stores 2^-24: the values are 2, -2 and 1 of what is stored. */
TEST_CASE(HostRefInt4, CodesUseTheStoredScale)
{
    ref_quant_spec spec = int4();
    spec.scale = QDNN_SCALE_F16;
    const float x[3] = {0x1p-23f, -0x1p-23f, 0x1p-24f};
    uint16_t scale = 0;
    uint8_t codes[2];
    flat_scale(&spec, x, 3, &scale, NULL);
    CHECK_EQ_U32(scale, 0x0001);
    flat_quantize(&spec, x, 3, &scale, NULL, codes);
    const uint8_t expected[2] = {0x6A, 0x09};
    CHECK_EQ_MEM(codes, expected, 2);
}

TEST_CASE(HostRefInt4, TiesBothWays)
{
    static const struct {
        float x;
        unsigned even, away;
    } cases[] = {
        {0.5f, 8, 9},           {1.5f, 10, 10},          {2.5f, 10, 11}, {-0.5f, 8, 7},     {-1.5f, 6, 6},
        {-2.5f, 6, 5},          {0x1.FFFFFEp-2f, 8, 8},  {6.5f, 14, 15}, {7.5f, 15, 15},    {-7.5f, 0, 0},
        {-6.5f, 2, 1},          {-0x1.FFFFFEp-2f, 8, 8}, {-8.5f, 0, 0},  {9e9f, 15, 15},    {-9e9f, 0, 0},
        {0x1.000002p-1f, 9, 9}, {-0x1.000002p-1f, 7, 7}, {-0.0f, 8, 8},  {FLT_MAX, 15, 15}, {NAN, 8, 8},
        {INFINITY, 15, 15},     {-INFINITY, 0, 0},
    };
    ref_quant_spec even = int4(), away = int4();
    away.rounding = QDNN_ROUND_TIES_AWAY;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_push_note("x = %a", (double)cases[i].x);
        CHECK_EQ_U32(code_of(even, cases[i].x, 1, 0), cases[i].even);
        CHECK_EQ_U32(code_of(away, cases[i].x, 1, 0), cases[i].away);
        test_pop_note();
    }
}

/* 1/15 rounds up, so 37.5 * (1/15) is the f32 after 2.5: no tie any more. */
TEST_CASE(HostRefInt4, ReciprocalGivesOtherCodes)
{
    ref_quant_spec spec = int4();
    CHECK_EQ_U32(code_of(spec, 37.5f, 15, 0), 10);
    CHECK_EQ_U32(code_of(spec, -37.5f, 15, 0), 6);
    spec.division = QDNN_DIVIDE_RECIPROCAL;
    CHECK_EQ_U32(code_of(spec, 37.5f, 15, 0), 11);
    CHECK_EQ_U32(code_of(spec, -37.5f, 15, 0), 5);
}

TEST_CASE(HostRefInt4, StrangeScalesOfCallers)
{
    static const struct {
        float scale;
        unsigned positive, negative, zero;
    } cases[] = {{0.0f, 15, 0, 8},     {-0.0f, 0, 15, 8}, {INFINITY, 8, 8, 8},
                 {-INFINITY, 8, 8, 8}, {NAN, 8, 8, 8},    {-1.0f, 5, 11, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int division = QDNN_DIVIDE_EXACT; division <= QDNN_DIVIDE_RECIPROCAL; division++) {
            test_push_note("scale %g, division %d", (double)cases[i].scale, division);
            ref_quant_spec spec = int4();
            spec.division = (qdnnDivision_t)division;
            CHECK_EQ_U32(code_of(spec, 3, cases[i].scale, 0), cases[i].positive);
            CHECK_EQ_U32(code_of(spec, -3, cases[i].scale, 0), cases[i].negative);
            CHECK_EQ_U32(code_of(spec, 0, cases[i].scale, 0), cases[i].zero);
            CHECK_EQ_U32(code_of(spec, NAN, cases[i].scale, 0), 8);
            test_pop_note();
        }
}

/* 1 / 2^-128 is infinite, 1 over the next number is not. */
TEST_CASE(HostRefInt4, ReciprocalsThatOverflow)
{
    ref_quant_spec spec = int4();
    spec.division = QDNN_DIVIDE_RECIPROCAL;
    CHECK_EQ_U32(code_of(spec, 0x1p-128f, 0x1p-128f, 0), 15);
    CHECK_EQ_U32(code_of(spec, -0x1p-149f, 0x1p-128f, 0), 0);
    CHECK_EQ_U32(code_of(spec, 0.0f, 0x1p-128f, 0), 8);
    CHECK_EQ_U32(code_of(spec, 0x1p-128f, 0x1.000008p-128f, 0), 9);
    spec.division = QDNN_DIVIDE_EXACT;
    CHECK_EQ_U32(code_of(spec, 0x1p-128f, 0x1p-128f, 0), 9);
}

TEST_CASE(HostRefInt4, DecodesEveryCode)
{
    for (unsigned code = 0; code < 16; code++)
        CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(int4(), code, 0.5f, 0)), -4.0f + 0.5f * (float)code);
    CHECK_EQ_U32(decoded_bits(int4(), 8, 0.5f, 0), 0x00000000);
    CHECK_EQ_U32(decoded_bits(int4(), 8, -0.5f, 0), 0x80000000);
    CHECK_EQ_U32(decoded_bits(int4(), 11, 0.1f, 0), 0x3E99999A); /* 3 * CCCCCD = 999999.C * 4 */
}

TEST_CASE(HostRefInt4, DecodedHalvesAreRoundedAfterF32)
{
    ref_quant_spec spec = int4();
    spec.data = QDNN_DATA_F16;
    CHECK_EQ_U32(decoded_bits(spec, 9, 1 + 0x1p-11f, 0), 0x3C00);
    CHECK_EQ_U32(decoded_bits(spec, 9, 1 + 0x3p-11f, 0), 0x3C02);
    /* 5 s = 1 + 2^-11 + 3 * 2^-26. In f32 the last term is lost and a tie remains; one rounding alone would
     * give 3C01. */
    CHECK_EQ_U32(decoded_bits(spec, 13, 13428327 * 0x1p-26f, 0), 0x3C00);
    CHECK_EQ_U32(decoded_bits(spec, 3, 13428327 * 0x1p-26f, 0), 0xBC00);
    CHECK_EQ_U32(decoded_bits(spec, 15, 65504, 0), 0x7C00);
    CHECK_EQ_U32(decoded_bits(spec, 0, 65504, 0), 0xFC00);
    CHECK_EQ_U32(decoded_bits(spec, 9, 0x1p-25f, 0), 0x0000);
    CHECK_EQ_U32(decoded_bits(spec, 11, 0x1p-25f, 0), 0x0002);
    spec.data = QDNN_DATA_BF16;
    CHECK_EQ_U32(decoded_bits(spec, 9, 1 + 0x1p-8f, 0), 0x3F80);
    CHECK_EQ_U32(decoded_bits(spec, 9, 1 + 0x3p-8f, 0), 0x3F82);
    CHECK_EQ_U32(decoded_bits(spec, 9, FLT_MAX, 0), 0x7F80);
    spec.data = QDNN_DATA_F32;
    CHECK_EQ_U32(decoded_bits(spec, 15, FLT_MAX, 0), 0x7F800000);
}

TEST_CASE(HostRefInt4, DecodedNansAreCanonical)
{
    static const struct {
        qdnnDataType_t type;
        uint32_t nan, inf, negative_inf;
    } cases[] = {{QDNN_DATA_F32, 0x7FFFFFFF, 0x7F800000, 0xFF800000},
                 {QDNN_DATA_F16, 0x7FFF, 0x7C00, 0xFC00},
                 {QDNN_DATA_BF16, 0x7FFF, 0x7F80, 0xFF80}};
    for (int i = 0; i < 3; i++) {
        ref_quant_spec spec = int4();
        spec.data = cases[i].type;
        CHECK_EQ_U32(decoded_bits(spec, 9, ref_f32_from_bits(0xFFC01234), 0), cases[i].nan);
        CHECK_EQ_U32(decoded_bits(spec, 8, INFINITY, 0), cases[i].nan);
        CHECK_EQ_U32(decoded_bits(spec, 9, INFINITY, 0), cases[i].inf);
        CHECK_EQ_U32(decoded_bits(spec, 7, INFINITY, 0), cases[i].negative_inf);
    }
}
