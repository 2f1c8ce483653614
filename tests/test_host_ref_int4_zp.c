/* INT4 with zero points in the host reference. Expected values are worked out by hand. */
#include "test_host_ref.h"

static ref_quant_spec int4_zp(void)
{
    return plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
}

/* Checks scale (bits) and zero of n values. */
static void check_scale(ref_quant_spec spec, const float *x, int n, uint32_t expected_scale,
                        float expected_zero)
{
    uint32_t scale = 0;
    float zero = -1;
    flat_scale(&spec, x, n, &scale, &zero);
    CHECK_EQ_U32(scale, expected_scale);
    CHECK_EQ_F32(zero, expected_zero);
}

TEST_CASE(HostRefInt4Zp, ScaleAndZero)
{
    const float both[3] = {-5, 10, NAN}, positive[2] = {3, 15}, negative[2] = {-15, -3};
    const float tie_down[2] = {25, -5}, tie_up[2] = {-7, 23}, third[2] = {-1, 2};
    check_scale(int4_zp(), both, 3, 0x3F800000, 5);
    check_scale(int4_zp(), positive, 2, 0x3F800000, 0);
    check_scale(int4_zp(), negative, 2, 0x3F800000, 15);
    check_scale(int4_zp(), tie_down, 2, 0x40000000, 2); /* 2.5 */
    check_scale(int4_zp(), tie_up, 2, 0x40000000, 4);   /* 3.5 */
    check_scale(int4_zp(), third, 2, 0x3E4CCCCD, 5);    /* 3/15 */
}

TEST_CASE(HostRefInt4Zp, EmptyRangesTakeTheFloor)
{
    ref_quant_spec spec = int4_zp();
    const float zeros[2] = {-0.0f, 0}, nans[2] = {NAN, NAN}, one[1] = {-1};
    check_scale(spec, zeros, 2, 0x29961EB7, 0.0f);
    check_scale(spec, nans, 2, 0x29961EB7, 0.0f);
    spec.floor = 0;
    check_scale(spec, zeros, 2, 0x00000001, 0.0f);
    spec.floor = 30;
    check_scale(spec, one, 1, 0x40000000, 0.0f); /* 1/2, a tie */
}

/* The zero point always divides and rounds ties to even; the codes do as the spec says. */
TEST_CASE(HostRefInt4Zp, OptionsOfTheCodesDoNotTouchTheZero)
{
    ref_quant_spec spec = int4_zp();
    const float tie[2] = {25, -5}, fifteen[2] = {-37.5f, 187.5f};
    spec.rounding = QDNN_ROUND_TIES_AWAY;
    check_scale(spec, tie, 2, 0x40000000, 2);
    spec.rounding = QDNN_ROUND_TIES_TO_EVEN;
    CHECK_EQ_U32(code_of(spec, 37.5f, 15, 0), 2);
    spec.division = QDNN_DIVIDE_RECIPROCAL;
    check_scale(spec, fifteen, 2, 0x41700000, 2); /* 37.5 / 15 = 2.5, but 37.5 * (1/15) is above it */
    CHECK_EQ_U32(code_of(spec, 37.5f, 15, 0), 3);
}

TEST_CASE(HostRefInt4Zp, RangesThatOverflow)
{
    ref_quant_spec spec = int4_zp();
    const float full[3] = {FLT_MAX, -FLT_MAX, NAN}, infinite[3] = {-INFINITY, INFINITY, NAN};
    check_scale(spec, full, 3, 0x7E088888, 8); /* 2 * rn(FLT_MAX / 15); FLT_MAX / s rounds to 7.5 */
    check_scale(spec, infinite, 3, 0x7E088888, 8);
    float scale = ref_f32_from_bits(0x7E088888), zero = 8;
    uint8_t codes[2];
    flat_quantize(&spec, full, 3, &scale, &zero, codes);
    const uint8_t expected[2] = {0x0F, 0x08}; /* 8 + 8 is clamped to 15 */
    CHECK_EQ_MEM(codes, expected, 2);
    /* 7D888888 + 7D088889: 888888.0 + 444444.8 (hex) is a tie. */
    const float uneven[2] = {FLT_MAX, -0x1p127f};
    check_scale(spec, uneven, 2, 0x7DCCCCCC, 5);
    /* The largest range that does not overflow: hi - lo = FLT_MAX. */
    const float half[2] = {0x1p127f, -0x1.FFFFFCp126f};
    check_scale(spec, half, 2, 0x7D888888, 7);
}

TEST_CASE(HostRefInt4Zp, ZeroComesFromTheStoredScale)
{
    ref_quant_spec spec = int4_zp();
    spec.scale = QDNN_SCALE_F16;
    spec.zero = QDNN_DATA_U8;
    const float tiny[2] = {-0x3p-24f, -0x1p-24f}, huge[2] = {-1e30f, 1e30f};
    uint16_t scale = 0;
    uint8_t zero = 99;
    flat_scale(&spec, tiny, 2, &scale, &zero);
    CHECK_EQ_U32(scale, 0x0001); /* wanted a fifth of that, and then zero would be 15 */
    CHECK_EQ_U32(zero, 3);
    flat_scale(&spec, huge, 2, &scale, &zero);
    CHECK_EQ_U32(scale, 0x7BFF);
    CHECK_EQ_U32(zero, 15);
    uint8_t codes;
    flat_quantize(&spec, huge, 2, &scale, &zero, &codes);
    CHECK_EQ_U32(codes, 0xF0);
}

TEST_CASE(HostRefInt4Zp, ZeroTypes)
{
    static const struct {
        qdnnDataType_t type;
        uint32_t none, five, fifteen; /* little endian */
    } cases[] = {{QDNN_DATA_U8, 0, 5, 15},
                 {QDNN_DATA_F32, 0, 0x40A00000, 0x41700000},
                 {QDNN_DATA_F16, 0, 0x4500, 0x4B80},
                 {QDNN_DATA_BF16, 0, 0x40A0, 0x4170}};
    const float positive[2] = {-0.0f, 15}, both[2] = {-5, 10}, negative[2] = {-15, 0};
    for (int i = 0; i < 4; i++) {
        ref_quant_spec spec = int4_zp();
        spec.zero = cases[i].type;
        float scale, y[2];
        uint32_t zero = 0;
        uint8_t codes;
        flat_scale(&spec, positive, 2, &scale, &zero);
        CHECK_EQ_U32(zero, cases[i].none);
        flat_scale(&spec, negative, 2, &scale, &zero);
        CHECK_EQ_U32(zero, cases[i].fifteen);
        flat_scale(&spec, both, 2, &scale, &zero);
        CHECK_EQ_U32(zero, cases[i].five);
        flat_quantize(&spec, both, 2, &scale, &zero, &codes);
        CHECK_EQ_U32(codes, 0xF0);
        flat_dequantize(&spec, &codes, 2, &scale, &zero, y);
        CHECK_EQ_MEM(y, both, sizeof y);
    }
}

TEST_CASE(HostRefInt4Zp, EachGroupHasItsZero)
{
    ref_quant_spec spec = int4_zp();
    spec.group_size = 2;
    spec.zero = QDNN_DATA_U8;
    spec.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    const float x[5] = {-5, 10, 30, 2, -7.5f};
    float scale[3], y[5];
    uint8_t zero[4] = {99, 99, 99, 99}, codes[3];
    flat_scale(&spec, x, 5, scale, zero);
    flat_quantize(&spec, x, 5, scale, zero, codes);
    flat_dequantize(&spec, codes, 5, scale, zero, y);
    const float expected_scale[3] = {1, 2, 0.5f};
    const uint8_t expected_zero[4] = {5, 0, 15, 99}, expected_codes[3] = {0x0F, 0xF1, 0x00};
    CHECK_EQ_MEM(scale, expected_scale, sizeof scale);
    CHECK_EQ_MEM(zero, expected_zero, sizeof zero);
    CHECK_EQ_MEM(codes, expected_codes, sizeof codes);
    CHECK_EQ_MEM(y, x, sizeof y);
}

TEST_CASE(HostRefInt4Zp, TiesBothWays)
{
    static const struct {
        float x;
        unsigned even, away;
    } cases[] = {{4.5f, 9, 10}, {5.5f, 11, 11}, {-4.5f, 1, 0},      {-3.5f, 1, 1},
                 {-5, 0, 0},    {10, 15, 15},   {10.5f, 15, 15},    {-99, 0, 0},
                 {99, 15, 15},  {NAN, 5, 5},    {INFINITY, 15, 15}, {-INFINITY, 0, 0}};
    ref_quant_spec even = int4_zp(), away = int4_zp();
    even.zero = away.zero = QDNN_DATA_U8;
    away.rounding = QDNN_ROUND_TIES_AWAY;
    const uint8_t zero = 5;
    const float scale = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t code[2];
        test_push_note("x = %g", (double)cases[i].x);
        flat_quantize(&even, &cases[i].x, 1, &scale, &zero, &code[0]);
        flat_quantize(&away, &cases[i].x, 1, &scale, &zero, &code[1]);
        CHECK_EQ_U32(code[0], cases[i].even);
        CHECK_EQ_U32(code[1], cases[i].away);
        test_pop_note();
    }
}

TEST_CASE(HostRefInt4Zp, FractionalZeros)
{
    /* The sum x / s + zero is rounded once, ties as the spec says. */
    static const struct {
        float x;
        unsigned even, away;
    } cases[] = {{0, 2, 3},  {1, 4, 4},    {2, 4, 5},    {NAN, 2, 3},
                 {-9, 0, 0}, {12, 14, 15}, {13, 15, 15}, {0.4f, 3, 3}};
    ref_quant_spec spec = int4_zp();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_push_note("x = %g", (double)cases[i].x);
        spec.rounding = QDNN_ROUND_TIES_AWAY;
        CHECK_EQ_U32(code_of(spec, cases[i].x, 1, 2.5f), cases[i].away);
        spec.rounding = QDNN_ROUND_TIES_TO_EVEN;
        CHECK_EQ_U32(code_of(spec, cases[i].x, 1, 2.5f), cases[i].even);
        test_pop_note();
    }
    CHECK_EQ_U32(code_of(spec, 0.4f, 1, 2.4f), 3); /* 2.8; the zero after rounding would give 2 */
    CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, 4, 1, 2.5f)), 1.5f);
    CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, 0, 0.5f, 2.5f)), -1.25f);
    CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, 15, 2, 0x1p-30f)), 30.0f); /* 15 - 2^-30 rounds to 15 */
    /* 1 - 3 * 2^-25 is a tie of 1 - 2^-24 and 1 - 2^-23: even. Fused with the product 2^25 it would not be
     * rounded. */
    CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, 1, 0x1p25f, 0x3p-25f)), 0x1p25f - 4.0f);
}

TEST_CASE(HostRefInt4Zp, ZerosOutOfRange)
{
    ref_quant_spec spec = int4_zp();
    CHECK_EQ_U32(code_of(spec, 5, 1, -3), 2);
    CHECK_EQ_U32(code_of(spec, 0, 1, -3), 0);
    CHECK_EQ_U32(code_of(spec, -190, 1, 200), 10);
    CHECK_EQ_U32(code_of(spec, 0, 1, 200), 15);
    CHECK_EQ_U32(code_of(spec, 0, 1, INFINITY), 15);
    CHECK_EQ_U32(code_of(spec, 0, 1, -INFINITY), 0);
    CHECK_EQ_U32(code_of(spec, 7, 1, NAN), 0);
    CHECK_EQ_U32(code_of(spec, 7, 0, -INFINITY), 0); /* Inf - Inf */
    CHECK_EQ_U32(decoded_bits(spec, 7, 1, NAN), 0x7FFFFFFF);
    CHECK_EQ_U32(decoded_bits(spec, 7, 1, INFINITY), 0xFF800000);
    spec.zero = QDNN_DATA_U8;
    const uint8_t code = 15, zero = 200;
    const float scale = 1;
    float y;
    flat_dequantize(&spec, &code, 1, &scale, &zero, &y);
    CHECK_EQ_F32(y, -185);
}

TEST_CASE(HostRefInt4Zp, StrangeScalesOfCallers)
{
    static const struct {
        float scale;
        unsigned positive, negative, zero;
    } cases[] = {{0.0f, 15, 0, 5}, {-0.0f, 0, 15, 5}, {INFINITY, 5, 5, 5}, {NAN, 5, 5, 5}, {-1.0f, 2, 8, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_push_note("scale %g", (double)cases[i].scale);
        CHECK_EQ_U32(code_of(int4_zp(), 3, cases[i].scale, 5), cases[i].positive);
        CHECK_EQ_U32(code_of(int4_zp(), -3, cases[i].scale, 5), cases[i].negative);
        CHECK_EQ_U32(code_of(int4_zp(), 0, cases[i].scale, 5), cases[i].zero);
        test_pop_note();
    }
}

TEST_CASE(HostRefInt4Zp, DecodesToPositiveZero)
{
    ref_quant_spec spec = int4_zp();
    CHECK_EQ_U32(decoded_bits(spec, 0, 1, 0.0f), 0x00000000);
    CHECK_EQ_U32(decoded_bits(spec, 0, 1, -0.0f), 0x00000000);
    CHECK_EQ_U32(decoded_bits(spec, 9, 1, 9.0f), 0x00000000);
    spec.data = QDNN_DATA_F16;
    CHECK_EQ_U32(decoded_bits(spec, 15, 65504, 14), 0x7BFF);
    CHECK_EQ_U32(decoded_bits(spec, 15, 65504, 13), 0x7C00);
    CHECK_EQ_U32(decoded_bits(spec, 0, NAN, 0), 0x7FFF);
}
