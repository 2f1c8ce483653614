/* Integers of 2 to 8 bits in the host reference: packing, kinds of codes, zero points, minima, ranges. Expected
 * values are worked out by hand. */
#include "test_host_ref.h"

#include <string.h>

/* Codes as they are: no scale, unsigned. */
static ref_quant_spec bare(int bits)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_U8, QDNN_ZERO_NONE);
    spec.bits = bits;
    spec.code = QDNN_CODE_UNSIGNED;
    spec.no_scale = true;
    return spec;
}

TEST_CASE(HostRefIntegers, CodesOfEveryWidthLieDensely)
{
    static const struct {
        int bits, count;
        float x[9];
        int64_t bytes;
        uint8_t packed[8];
    } cases[] = {
        {2, 5, {0, 1, 2, 3, 1}, 2, {0xE4, 0x01}},
        {3, 9, {1, 2, 3, 4, 5, 6, 7, 0, 5}, 4, {0xD1, 0x58, 0x1F, 0x05}},
        {4, 3, {1, 15, 7}, 2, {0xF1, 0x07}},
        {5, 4, {31, 0, 17, 1}, 3, {0x1F, 0xC4, 0x00}},
        {6, 4, {63, 1, 32, 5}, 3, {0x7F, 0x00, 0x16}},
        {8, 2, {200, 7}, 2, {200, 7}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_push_note("%d bits", cases[i].bits);
        ref_quant_spec spec = bare(cases[i].bits);
        uint8_t packed[8];
        float y[9];
        memset(packed, 0xAA, sizeof packed);
        CHECK_EQ_I64(ref_sizes_of(&spec, 1, cases[i].count).codes, cases[i].bytes);
        CHECK_EQ_I64(ref_sizes_of(&spec, 1, cases[i].count).scale, 0);
        flat_quantize(&spec, cases[i].x, cases[i].count, NULL, NULL, packed);
        CHECK_EQ_MEM(packed, cases[i].packed, (size_t)cases[i].bytes);
        CHECK_EQ_U32(packed[cases[i].bytes], 0xAA);
        flat_dequantize(&spec, cases[i].packed, cases[i].count, NULL, NULL, y);
        CHECK_EQ_MEM(y, cases[i].x, (size_t)cases[i].count * sizeof(float));
        test_pop_note();
    }
}

/* With b bits and h = 2^(b-1): the codes of -h, -1, 0, 1, h - 1 and of what lies far outside. */
TEST_CASE(HostRefIntegers, KindsOfCodes)
{
    for (int bits = 2; bits <= 8; bits += bits == 6 ? 2 : 1) {
        unsigned half = 1u << (bits - 1), most = 2 * half - 1;
        const float x[7] = {-(float)half, -1, 0, 1, (float)half - 1, 1e9f, -1e9f};
        const unsigned offset[7] = {0, half - 1, half, half + 1, most, most, 0};
        const unsigned twos[7] = {half, most, 0, 1, half - 1, half - 1, half};
        const unsigned positive[7] = {0, 0, 0, 1, half - 1, most, 0};
        static const int decoded[7] = {0, 1, 2, 3, 4, 4, 0};
        ref_quant_spec spec = bare(bits);
        for (int i = 0; i < 7; i++) {
            test_push_note("%d bits, x = %g", bits, (double)x[i]);
            spec.code = QDNN_CODE_OFFSET;
            CHECK_EQ_U32(code_of(spec, x[i], 1, 0), offset[i]);
            spec.code = QDNN_CODE_TWOS_COMPLEMENT;
            CHECK_EQ_U32(code_of(spec, x[i], 1, 0), twos[i]);
            CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, twos[i], 1, 0)), x[decoded[i]]);
            spec.code = QDNN_CODE_UNSIGNED;
            CHECK_EQ_U32(code_of(spec, x[i], 1, 0), positive[i]);
            test_pop_note();
        }
    }
}

TEST_CASE(HostRefIntegers, DefaultKinds)
{
    static const struct {
        qdnnDataType_t storage;
        int bits;
        qdnnZeroKind_t zero_kind;
        unsigned one; /* the code of 1, zero or minimum 0 */
    } cases[] = {
        {QDNN_DATA_I4, 0, QDNN_ZERO_NONE, 9},    {QDNN_DATA_I4, 0, QDNN_ZERO_POINT, 1},
        {QDNN_DATA_I4, 4, QDNN_ZERO_MINIMUM, 1}, {QDNN_DATA_I8, 0, QDNN_ZERO_NONE, 1},
        {QDNN_DATA_I8, 8, QDNN_ZERO_POINT, 1},   {QDNN_DATA_I8, 4, QDNN_ZERO_NONE, 9},
        {QDNN_DATA_I8, 6, QDNN_ZERO_POINT, 1},   {QDNN_DATA_U8, 0, QDNN_ZERO_NONE, 129},
        {QDNN_DATA_U8, 0, QDNN_ZERO_POINT, 1},   {QDNN_DATA_U8, 3, QDNN_ZERO_NONE, 5},
        {QDNN_DATA_U8, 0, QDNN_ZERO_MINIMUM, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_push_note("case %zu", i);
        ref_quant_spec spec = plain_spec(cases[i].storage, cases[i].zero_kind);
        spec.bits = cases[i].bits;
        CHECK_EQ_U32(code_of(spec, 1, 1, 0), cases[i].one);
        CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, cases[i].one, 1, 0)), 1.0f);
        test_pop_note();
    }
    /* In signed codes -1 is all ones. */
    CHECK_EQ_U32(code_of(plain_spec(QDNN_DATA_I8, QDNN_ZERO_NONE), -1, 1, 0), 0xFF);
    CHECK_EQ_U32(code_of(plain_spec(QDNN_DATA_I8, QDNN_ZERO_POINT), -1, 1, 0), 0xFF);
}

TEST_CASE(HostRefIntegers, ScalesOfEveryWidth)
{
    for (int bits = 2; bits <= 8; bits += bits == 6 ? 2 : 1) {
        float half = (float)(1 << (bits - 1));
        const float symmetric[2] = {1, 1 - half}, positive[2] = {2 * half - 1, -1},
                    both[2] = {-1, 2 * half - 2};
        ref_quant_spec spec = plain_spec(QDNN_DATA_U8, QDNN_ZERO_NONE);
        float scale, zero;
        test_push_note("%d bits", bits);
        spec.bits = bits;
        CHECK_EQ_U32(scale_bits(spec, symmetric, 2), 0x3F800000);
        spec.code = QDNN_CODE_UNSIGNED;
        CHECK_EQ_U32(scale_bits(spec, positive, 2), 0x3F800000);
        CHECK_EQ_U32(code_of(spec, -1, 1, 0), 0);
        spec.zero_kind = QDNN_ZERO_POINT;
        flat_scale(&spec, both, 2, &scale, &zero);
        CHECK_EQ_F32(scale, 1);
        CHECK_EQ_F32(zero, 1);
        spec.code = QDNN_CODE_TWOS_COMPLEMENT;
        flat_scale(&spec, both, 2, &scale, &zero);
        CHECK_EQ_F32(scale, 1);
        CHECK_EQ_F32(zero, 1 - half);
        test_pop_note();
    }
}

TEST_CASE(HostRefIntegers, Int8SaturatesAtBothEnds)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I8, QDNN_ZERO_POINT);
    spec.zero = QDNN_DATA_I8;
    const float x[3] = {999, -999, 0}, scale = 0.05f;
    const int8_t zero = 3, expected[3] = {127, -128, 3};
    int8_t codes[3];
    float y[3];
    flat_quantize(&spec, x, 3, &scale, &zero, codes);
    CHECK_EQ_MEM(codes, expected, 3);
    flat_dequantize(&spec, codes, 3, &scale, &zero, y);
    CHECK_EQ_U32(ref_f32_to_bits(y[0]), 0x40C66667);
    CHECK_EQ_U32(ref_f32_to_bits(y[1]), 0xC0D1999A);
    CHECK_EQ_F32(y[2], 0.0f);
}

/* Per channel, by reciprocals, ties away: what an implementation in use gives. */
TEST_CASE(HostRefIntegers, Int8ByReciprocals)
{
    static const float most[4] = {0.01f, 0.5f, 5, 50};
    static const int8_t expected[5] = {-127, 0, 127, 127, -128};
    ref_quant_spec spec = plain_spec(QDNN_DATA_I8, QDNN_ZERO_NONE);
    spec.group_size = 5;
    spec.channels = 4;
    spec.division = QDNN_DIVIDE_RECIPROCAL;
    spec.rounding = QDNN_ROUND_TIES_AWAY;
    float x[20], scale[4];
    int8_t codes[20];
    for (int c = 0; c < 4; c++) {
        const float row[5] = {-most[c], 0, most[c], 1000 * most[c], -1000 * most[c]};
        memcpy(x + 5 * c, row, sizeof row);
        scale[c] = most[c] / 127;
    }
    flat_quantize(&spec, x, 20, scale, NULL, codes);
    for (int c = 0; c < 4; c++)
        CHECK_EQ_MEM(codes + 5 * c, expected, 5);
}

TEST_CASE(HostRefIntegers, TypesOfIntegerZeros)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_U8, QDNN_DATA_I8, QDNN_DATA_U32, QDNN_DATA_I32};
    static const uint32_t five[] = {0xAAAAAA05, 0xAAAAAA05, 5, 5};
    const float x[2] = {-5, 10};
    for (int i = 0; i < 4; i++) {
        ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
        spec.zero = types[i];
        uint32_t zero = 0xAAAAAAAA;
        float scale, y[2];
        uint8_t codes;
        flat_scale(&spec, x, 2, &scale, &zero);
        CHECK_EQ_U32(zero, five[i]);
        flat_quantize(&spec, x, 2, &scale, &zero, &codes);
        CHECK_EQ_U32(codes, 0xF0);
        flat_dequantize(&spec, &codes, 2, &scale, &zero, y);
        CHECK_EQ_MEM(y, x, sizeof x);
    }
    ref_quant_spec spec = plain_spec(QDNN_DATA_I8, QDNN_ZERO_POINT);
    spec.zero = QDNN_DATA_I32;
    const float wide[2] = {-5, 250};
    float scale;
    int32_t zero;
    flat_scale(&spec, wide, 2, &scale, &zero);
    CHECK_EQ_F32(scale, 1);
    CHECK_EQ_I64(zero, 5 - 128);
}

/* R(x / s) + zero for integer zeros, R(x / s + zero) for float zeros: 1.4999999 + 2 rounds to 3.5 in f32. */
TEST_CASE(HostRefIntegers, FloatZerosAreAddedBeforeRounding)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
    const float x = 0x1.7FFFFEp0f, scale = 1, float_zero = 2;
    const uint8_t byte_zero = 2;
    uint8_t code;
    flat_quantize(&spec, &x, 1, &scale, &float_zero, &code);
    CHECK_EQ_U32(code, 4);
    spec.zero = QDNN_DATA_U8;
    flat_quantize(&spec, &x, 1, &scale, &byte_zero, &code);
    CHECK_EQ_U32(code, 3);
}

/* ---- Tight ranges ---- */

static ref_quant_spec tight(qdnnZeroKind_t kind)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, kind);
    spec.range = QDNN_RANGE_TIGHT;
    return spec;
}

TEST_CASE(HostRefIntegers, TightZeros)
{
    ref_quant_spec spec = tight(QDNN_ZERO_POINT);
    const float x[4] = {10, 25, NAN, 12}, signs[2] = {-0.0f, 15};
    float scale, zero, y[4];
    uint8_t codes[2];
    flat_scale(&spec, x, 4, &scale, &zero);
    CHECK_EQ_F32(scale, 1);
    CHECK_EQ_F32(zero, -10);
    flat_quantize(&spec, x, 4, &scale, &zero, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[2]){0xF0, 0x20}), 2); /* NaN as 0, which is below the range */
    flat_dequantize(&spec, codes, 4, &scale, &zero, y);
    CHECK_EQ_MEM(y, ((const float[4]){10, 25, 10, 12}), sizeof y);
    flat_scale(&spec, signs, 2, &scale, &zero);
    CHECK_EQ_U32(ref_f32_to_bits(zero), 0); /* never -0 */
    flat_scale(&spec, x + 2, 1, &scale, &zero);
    CHECK_EQ_U32(ref_f32_to_bits(scale), 0x29961EB7); /* no number: 1e-12 / 15 */
    CHECK_EQ_U32(ref_f32_to_bits(zero), 0);
}

TEST_CASE(HostRefIntegers, TightZerosAreNeitherRoundedNorInfinite)
{
    ref_quant_spec spec = tight(QDNN_ZERO_POINT);
    const float x[2] = {-1.25f, 13.75f}, same[2] = {1e30f, 1e30f};
    float scale, zero;
    uint16_t half;
    flat_scale(&spec, x, 2, &scale, &zero);
    CHECK_EQ_F32(zero, 1.25f);
    flat_scale(&spec, same, 2, &scale, &zero);
    CHECK_EQ_F32(zero, -FLT_MAX);
    spec.zero = QDNN_DATA_F16;
    flat_scale(&spec, same, 2, &scale, &half);
    CHECK_EQ_U32(half, 0xFBFF);
}

/* ---- Minima ---- */

TEST_CASE(HostRefIntegers, Minima)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_MINIMUM);
    const float x[4] = {-5, 10, NAN, 2.5f};
    float scale, minimum, y[4];
    uint8_t codes[2];
    flat_scale(&spec, x, 4, &scale, &minimum);
    CHECK_EQ_F32(scale, 1);
    CHECK_EQ_F32(minimum, -5);
    flat_quantize(&spec, x, 4, &scale, &minimum, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[2]){0xF0, 0x85}), 2); /* NaN as 0; 7.5 to even */
    flat_dequantize(&spec, codes, 4, &scale, &minimum, y);
    CHECK_EQ_MEM(y, ((const float[4]){-5, 10, 0, 3}), sizeof y);
    const float positive[2] = {10, 30};
    flat_scale(&spec, positive, 2, &scale, &minimum);
    CHECK_EQ_F32(scale, 2);
    CHECK_EQ_U32(ref_f32_to_bits(minimum), 0);
    spec = tight(QDNN_ZERO_MINIMUM);
    const float close[2] = {10, 25};
    flat_scale(&spec, close, 2, &scale, &minimum);
    CHECK_EQ_F32(scale, 1);
    CHECK_EQ_F32(minimum, 10);
    const float signs[2] = {-0.0f, 15};
    flat_scale(&spec, signs, 2, &scale, &minimum);
    CHECK_EQ_U32(ref_f32_to_bits(minimum), 0); /* never -0 */
}

/* 3 * (1 + 2^-23) is a tie and rounds up; an fma would leave 3 * 2^-23. */
TEST_CASE(HostRefIntegers, MinimaAreAddedAfterRounding)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_MINIMUM);
    CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, 3, 1 + 0x1p-23f, -3)), 0x1p-21f);
}

/* The minimum is the value of the number 0, which is in the middle of signed codes. */
TEST_CASE(HostRefIntegers, MinimaOfSignedCodes)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I8, QDNN_ZERO_MINIMUM);
    const float x[2] = {-10, 245};
    float scale, minimum, y[2];
    int8_t codes[2];
    flat_scale(&spec, x, 2, &scale, &minimum);
    CHECK_EQ_F32(scale, 1);
    CHECK_EQ_F32(minimum, 118);
    flat_quantize(&spec, x, 2, &scale, &minimum, codes);
    CHECK_EQ_I64(codes[0], -128);
    CHECK_EQ_I64(codes[1], 127);
    flat_dequantize(&spec, codes, 2, &scale, &minimum, y);
    CHECK_EQ_MEM(y, x, sizeof x);
}

/* ---- Plain values ---- */

TEST_CASE(HostRefIntegers, PlainValuesAreOnlyConverted)
{
    ref_quant_spec spec = {.data = QDNN_DATA_F32, .storage = QDNN_DATA_F16};
    const float x[4] = {1, -65520, NAN, INFINITY};
    uint16_t codes[4];
    float y[4];
    flat_scale(&spec, x, 4, NULL, NULL);
    flat_quantize(&spec, x, 4, NULL, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint16_t[4]){0x3C00, 0xFC00, 0x7FFF, 0x7C00}), sizeof codes);
    flat_dequantize(&spec, codes, 4, NULL, NULL, y);
    CHECK_EQ_F32(y[1], -INFINITY);
    CHECK_EQ_U32(ref_f32_to_bits(y[2]), 0x7FFFFFFF);
    CHECK_EQ_I64(ref_sizes_of(&spec, 3, 5).codes, 30);
    CHECK_EQ_I64(ref_sizes_of(&spec, 3, 5).scale, 0);
}

/* Read rounded to f32, written exactly. */
TEST_CASE(HostRefIntegers, Doubles)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_NONE);
    spec.data = QDNN_DATA_F64;
    const double x[3] = {1e300, -7, 2.4999999999999}; /* infinite in f32; 2.5 */
    float scale = 1;
    uint8_t codes[2];
    double y[3];
    flat_scale(&spec, x + 1, 2, &scale, NULL);
    CHECK_EQ_F32(scale, 1);
    flat_quantize(&spec, x, 3, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[2]){0x1F, 0x0A}), 2);
    scale = 0.1f;
    flat_dequantize(&spec, codes, 3, &scale, NULL, y);
    CHECK(y[0] == (double)(7 * 0.1f) && y[1] == (double)(-7 * 0.1f));
}
