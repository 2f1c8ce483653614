/* NF4 in the host reference. The table is written here in decimals, the midpoints as bits worked out apart
 * from the code. */
#include "test_host_ref.h"

static const float table[16] = {-1.0f,
                                -0.6961928009986877f,
                                -0.5250730514526367f,
                                -0.39491748809814453f,
                                -0.28444138169288635f,
                                -0.18477343022823334f,
                                -0.09105003625154495f,
                                0.0f,
                                0.07958029955625534f,
                                0.16093020141124725f,
                                0.24611230194568634f,
                                0.33791524171829224f,
                                0.44070982933044434f,
                                0.5626170039176941f,
                                0.7229568362236023f,
                                1.0f};

static const uint32_t midpoints[15] = {0xBF591CD8, 0xBF1C5270, 0xBEEB8480, 0xBEADEA76, 0xBE703CEC,
                                       0xBE0D38BC, 0xBD3A7871, 0x3D22FAFF, 0x3DF64862, 0x3E5067E0,
                                       0x3E9582D4, 0x3EC753F9, 0x3F006D04, 0x3F248DAF, 0x3F5C89DA};

static ref_quant_spec nf4(void)
{
    return plain_spec(QDNN_DATA_NF4, QDNN_ZERO_NONE);
}

TEST_CASE(HostRefNf4, Table)
{
    for (unsigned code = 0; code < 16; code++) {
        CHECK_EQ_U32(decoded_bits(nf4(), code, 1, 0), ref_f32_to_bits(table[code]));
        CHECK_EQ_U32(code_of(nf4(), table[code], 1, 0), code);
    }
    CHECK_EQ_U32(decoded_bits(nf4(), 1, 1, 0), 0xBF3239B1);
    CHECK_EQ_U32(decoded_bits(nf4(), 6, 1, 0), 0xBDBA7871);
    CHECK_EQ_U32(decoded_bits(nf4(), 7, 1, 0), 0x00000000);
}

TEST_CASE(HostRefNf4, TheLowerEntryWinsOnAMidpoint)
{
    ref_quant_spec away = nf4();
    away.rounding = QDNN_ROUND_TIES_AWAY; /* plays no part */
    for (unsigned code = 0; code < 15; code++) {
        float midpoint = ref_f32_from_bits(midpoints[code]);
        CHECK_EQ_U32(code_of(nf4(), midpoint, 1, 0), code);
        CHECK_EQ_U32(code_of(away, midpoint, 1, 0), code);
        CHECK_EQ_U32(code_of(nf4(), nextafterf(midpoint, -1), 1, 0), code);
        CHECK_EQ_U32(code_of(nf4(), nextafterf(midpoint, 1), 1, 0), code + 1);
    }
}

TEST_CASE(HostRefNf4, ScaleIsTheAbsmax)
{
    ref_quant_spec spec = nf4();
    spec.floor = 100; /* plays no part */
    const float x[5] = {-3, 1, 2, NAN, INFINITY};
    CHECK_EQ_U32(scale_bits(spec, x, 3), 0x40400000);
    CHECK_EQ_U32(scale_bits(spec, x + 1, 3), 0x40000000);
    CHECK_EQ_U32(scale_bits(spec, x, 5), 0x7F7FFFFF);
}

TEST_CASE(HostRefNf4, StoredScalesStayPositiveAndFinite)
{
    static const struct {
        qdnnScaleType_t type;
        uint32_t smallest, largest;
    } cases[] = {{QDNN_SCALE_F32, 0x00000001, 0x7F7FFFFF},
                 {QDNN_SCALE_F16, 0x0001, 0x7BFF},
                 {QDNN_SCALE_BF16, 0x0001, 0x7F7F}};
    const float zeros[2] = {0, -0.0f}, least = -0x1p-149f, most = -FLT_MAX, infinite = INFINITY;
    for (int i = 0; i < 3; i++) {
        ref_quant_spec spec = nf4();
        spec.scale = cases[i].type;
        CHECK_EQ_U32(scale_bits(spec, zeros, 2), cases[i].smallest);
        CHECK_EQ_U32(scale_bits(spec, &least, 1), cases[i].smallest);
        CHECK_EQ_U32(scale_bits(spec, &most, 1), cases[i].largest);
        CHECK_EQ_U32(scale_bits(spec, &infinite, 1), cases[i].largest);
    }
}

TEST_CASE(HostRefNf4, CodesUseTheStoredScale)
{
    ref_quant_spec spec = nf4();
    spec.scale = QDNN_SCALE_F16;
    const float x[3] = {131008, -32752, 16376}; /* 2, -1/2 and 1/4 of 65504 */
    uint16_t scale = 0;
    uint8_t codes[2];
    flat_scale(&spec, x, 3, &scale, NULL);
    CHECK_EQ_U32(scale, 0x7BFF);
    flat_quantize(&spec, x, 3, &scale, NULL, codes);
    const uint8_t expected[2] = {0x2F, 0x0A};
    CHECK_EQ_MEM(codes, expected, 2);
}

TEST_CASE(HostRefNf4, BothNibbleOrders)
{
    ref_quant_spec spec = nf4();
    const float x[3] = {-2, 0, 2};
    float scale = 0, y[3];
    uint8_t codes[2] = {0xAA, 0xAA};
    flat_scale(&spec, x, 3, &scale, NULL);
    flat_quantize(&spec, x, 3, &scale, NULL, codes);
    const uint8_t low_first[2] = {0x70, 0x0F}, high_first[2] = {0x07, 0xF0};
    CHECK_EQ_MEM(codes, low_first, 2);
    spec.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    flat_quantize(&spec, x, 3, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, high_first, 2);
    flat_dequantize(&spec, codes, 3, &scale, NULL, y);
    CHECK_EQ_MEM(y, x, sizeof y);
}

TEST_CASE(HostRefNf4, SpecialValues)
{
    static const struct {
        float scale;
        unsigned positive, negative;
    } cases[] = {{1, 15, 0},        {0.0f, 15, 0}, {-0.0f, 0, 15},     {INFINITY, 7, 7},
                 {-INFINITY, 7, 7}, {NAN, 7, 7},   {0x1p-149f, 15, 0}, {FLT_MAX, 7, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int division = QDNN_DIVIDE_EXACT; division <= QDNN_DIVIDE_RECIPROCAL; division++) {
            test_push_note("scale %g, division %d", (double)cases[i].scale, division);
            ref_quant_spec spec = nf4();
            spec.division = (qdnnDivision_t)division;
            CHECK_EQ_U32(code_of(spec, 3, cases[i].scale, 0), cases[i].positive);
            CHECK_EQ_U32(code_of(spec, -3, cases[i].scale, 0), cases[i].negative);
            CHECK_EQ_U32(code_of(spec, 0, cases[i].scale, 0), 7);
            CHECK_EQ_U32(code_of(spec, NAN, cases[i].scale, 0), 7);
            test_pop_note();
        }
    CHECK_EQ_U32(code_of(nf4(), INFINITY, FLT_MAX, 0), 15);
    CHECK_EQ_U32(code_of(nf4(), -INFINITY, FLT_MAX, 0), 0);
}

/* x / 7 is the midpoint above code 8 itself, x * (1/7) lies above it. */
TEST_CASE(HostRefNf4, ReciprocalGivesOtherCodes)
{
    ref_quant_spec spec = nf4();
    float x = ref_f32_from_bits(0x3F577F56);
    CHECK_EQ_U32(code_of(spec, x, 7, 0), 8);
    spec.division = QDNN_DIVIDE_RECIPROCAL;
    CHECK_EQ_U32(code_of(spec, x, 7, 0), 9);
}

TEST_CASE(HostRefNf4, DecodedValuesAreRounded)
{
    ref_quant_spec spec = nf4();
    CHECK_EQ_U32(decoded_bits(spec, 8, 3, 0), 0x3E74787E); /* 3 * A2FAFF = 1E8F0FD, a tie: to even */
    CHECK_EQ_U32(decoded_bits(spec, 15, 0x1p-149f, 0), 0x00000001);
    CHECK_EQ_U32(decoded_bits(spec, 12, 0x1p-149f, 0), 0x00000000);
    CHECK_EQ_U32(decoded_bits(spec, 2, 0x1p-149f, 0), 0x80000001);
    CHECK_EQ_U32(decoded_bits(spec, 7, INFINITY, 0), 0x7FFFFFFF);
    CHECK_EQ_U32(decoded_bits(spec, 0, INFINITY, 0), 0xFF800000);
    spec.data = QDNN_DATA_F16;
    CHECK_EQ_U32(decoded_bits(spec, 1, 1, 0), 0xB992); /* 2^-1 * (1 + 401.8/1024) */
    CHECK_EQ_U32(decoded_bits(spec, 0, 1e5f, 0), 0xFC00);
    CHECK_EQ_U32(decoded_bits(spec, 3, NAN, 0), 0x7FFF);
    spec.data = QDNN_DATA_BF16;
    CHECK_EQ_U32(decoded_bits(spec, 1, 1, 0), 0xBF32);
    CHECK_EQ_U32(decoded_bits(spec, 14, 1, 0), 0x3F39);
    CHECK_EQ_U32(decoded_bits(spec, 15, FLT_MAX, 0), 0x7F80);
}
