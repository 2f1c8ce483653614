/* FP8, NVFP4 and the MX formats in the host reference: how their scales are made, and what the codes make of
 * special values. Expected values are worked out by hand. */
#include "test_host_ref.h"

#include <string.h>

/* ---- FP8 ---- */

TEST_CASE(HostRefFloats, ScalesOfFp8)
{
    const float x[3] = {-448, 1, NAN}, large[2] = {57344, 1}, zero = 0, infinite = -INFINITY;
    ref_quant_spec e4m3 = plain_spec(QDNN_DATA_F8E4M3, QDNN_ZERO_NONE);
    ref_quant_spec e5m2 = plain_spec(QDNN_DATA_F8E5M2, QDNN_ZERO_NONE);
    CHECK_EQ_U32(scale_bits(e4m3, x, 3), 0x3F800000);
    CHECK_EQ_U32(scale_bits(e5m2, large, 2), 0x3F800000);
    CHECK_EQ_F32(ref_f32_from_bits(scale_bits(e4m3, &zero, 1)), 1e-12f / 448);
    CHECK_EQ_F32(ref_f32_from_bits(scale_bits(e4m3, &infinite, 1)), FLT_MAX / 448);
    e4m3.floor = 896;
    CHECK_EQ_U32(scale_bits(e4m3, x, 3), 0x40000000);
}

TEST_CASE(HostRefFloats, CodesOfFp8)
{
    static const struct {
        float x;
        unsigned e4m3, e5m2;
    } cases[] = {{1, 0x38, 0x3C},         {-1, 0xB8, 0xBC},      {0, 0x00, 0x00},
                 {-0.0f, 0x80, 0x80},     {NAN, 0x7F, 0x7F},     {INFINITY, 0x7E, 0x7B},
                 {-1e9f, 0xFE, 0xFB},     {464, 0x7E, 0x5F},     {0x1p-10f, 0x00, 0x14},
                 {0x3p-10f, 0x02, 0x1A},  {1.0625f, 0x38, 0x3C}, {1.1875f, 0x3A, 0x3D},
                 {-INFINITY, 0xFE, 0xFB}, {60000, 0x7E, 0x7B},   {1.375f, 0x3B, 0x3E}};
    ref_quant_spec e4m3 = plain_spec(QDNN_DATA_F8E4M3, QDNN_ZERO_NONE);
    ref_quant_spec e5m2 = plain_spec(QDNN_DATA_F8E5M2, QDNN_ZERO_NONE);
    e4m3.rounding = QDNN_ROUND_TIES_AWAY; /* plays no part */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_push_note("x = %a", (double)cases[i].x);
        CHECK_EQ_U32(code_of(e4m3, cases[i].x, 1, 0), cases[i].e4m3);
        CHECK_EQ_U32(code_of(e5m2, cases[i].x, 1, 0), cases[i].e5m2);
        test_pop_note();
    }
    CHECK_EQ_U32(code_of(e4m3, 4, 2, 0), 0x40);
    CHECK_EQ_U32(code_of(e4m3, 1, NAN, 0), 0x7F);
    CHECK_EQ_U32(code_of(e4m3, 0, 0, 0), 0x7F); /* 0 / 0 */
    CHECK_EQ_U32(code_of(e4m3, 1, 0, 0), 0x7E);
}

TEST_CASE(HostRefFloats, DecodedFp8)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_F8E4M3, QDNN_ZERO_NONE);
    CHECK_EQ_U32(decoded_bits(spec, 0x80, 3, 0), 0x80000000);
    CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, 0x7E, 0.5f, 0)), 224.0f);
    CHECK_EQ_F32(ref_f32_from_bits(decoded_bits(spec, 0x39, 0.1f, 0)), 1.125f * 0.1f);
    CHECK_EQ_U32(decoded_bits(spec, 0xFF, 1, 0), 0x7FFFFFFF);
    spec.storage = QDNN_DATA_F8E5M2;
    CHECK_EQ_U32(decoded_bits(spec, 0xFC, 1, 0), 0xFF800000);
    CHECK_EQ_U32(decoded_bits(spec, 0xFE, 1, 0), 0x7FFFFFFF);
    CHECK_EQ_U32(decoded_bits(spec, 0x7C, 0, 0), 0x7FFFFFFF);
    spec.data = QDNN_DATA_F16;
    CHECK_EQ_U32(decoded_bits(spec, 0x7B, 2, 0), 0x7C00);
}

/* ---- FP4 and FP6 with a scale in f32 ---- */

TEST_CASE(HostRefFloats, Fp4WithAnOrdinaryScale)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_FP4, QDNN_ZERO_NONE);
    const float x[6] = {12, -5, 0.5f, NAN, -0.0f, -12};
    float scale, y[6];
    uint8_t codes[3];
    flat_scale(&spec, x, 6, &scale, NULL);
    CHECK_EQ_F32(scale, 2);
    flat_quantize(&spec, x, 6, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[3]){0xC7, 0x00, 0xF8}), 3); /* 6 -2 (2.5); 0 (0.25) 0; -0 -6 */
    flat_dequantize(&spec, codes, 6, &scale, NULL, y);
    CHECK_EQ_MEM(y, ((const float[6]){12, -4, 0, 0, -0.0f, -12}), sizeof y);
}

TEST_CASE(HostRefFloats, Fp6LiesDensely)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_U8, QDNN_ZERO_NONE);
    spec.code = QDNN_CODE_E2M3;
    const float x[4] = {7.5f, 1, -0.125f, NAN};
    float scale;
    uint8_t codes[3];
    flat_scale(&spec, x, 4, &scale, NULL);
    CHECK_EQ_F32(scale, 1);
    CHECK_EQ_I64(ref_sizes_of(&spec, 1, 4).codes, 3);
    flat_quantize(&spec, x, 4, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[3]){0x1F, 0x12, 0x02}), 3); /* 1F 08 21 00 */
    spec.code = QDNN_CODE_E3M2;
    const float wide[4] = {-28, 1, 0.0625f, 14};
    flat_scale(&spec, wide, 4, &scale, NULL);
    CHECK_EQ_F32(scale, 1);
    flat_quantize(&spec, wide, 4, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[3]){0x3F, 0x13, 0x6C}), 3); /* 3F 0C 01 1B */
}

/* ---- NVFP4 ---- */

static ref_quant_spec nvfp4(void)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_FP4, QDNN_ZERO_NONE);
    spec.group_size = 4;
    spec.groups = QDNN_GROUPS_ROWS;
    spec.scale = QDNN_SCALE_E4M3;
    spec.global_scale = 1;
    return spec;
}

TEST_CASE(HostRefFloats, Nvfp4)
{
    ref_quant_spec spec = nvfp4();
    /* Absmax 2688 = 6 * 448; 6; 0.001, whose scale is below half the smallest E4M3. */
    const float x[12] = {2688, -1344, 0, NAN, 3, -6, 5, 0.25f, 0.001f, -0.001f, NAN, -0.0f};
    float global = 0, y[12];
    uint8_t scale[3], codes[6];
    ref_arrays arrays = {.codes = codes, .scale = scale, .global_scale = &global};
    ref_scale(&spec, 1, 12, x, &arrays);
    CHECK_EQ_F32(global, 1);
    CHECK_EQ_MEM(scale, ((const uint8_t[3]){0x7E, 0x38, 0x00}), 3);
    ref_quantize(&spec, 1, 12, x, &arrays);
    CHECK_EQ_MEM(codes, ((const uint8_t[6]){0xD7, 0x00, 0xF5, 0x06, 0x00, 0x00}), 6);
    ref_dequantize(&spec, 1, 12, &arrays, y);
    CHECK_EQ_MEM(y, ((const float[12]){2688, -1344, 0, 0, 3, -6, 4, 0}), sizeof y);
    CHECK_EQ_F32(ref_decode(&spec, 1, 12, &arrays, 0, 5), -6);
}

TEST_CASE(HostRefFloats, Nvfp4ValuesAreRoundedOnce)
{
    ref_quant_spec spec = nvfp4();
    uint8_t code = 3, scale = 0x3E;
    float global = 0.01f;
    ref_arrays arrays = {.codes = &code, .scale = &scale, .global_scale = &global};
    CHECK_EQ_U32(ref_f32_to_bits(ref_decode(&spec, 1, 1, &arrays, 0, 0)), 0x3CD70A3D); /* 1.5 * 1.75 * 0.01 */
}

TEST_CASE(HostRefFloats, Nvfp4WithTheReciprocalStored)
{
    ref_quant_spec spec = nvfp4();
    spec.global_scale = 2;
    const float x[2] = {5376, -2688};
    float global = 0, y[2];
    uint8_t scale, codes;
    ref_arrays arrays = {.codes = &codes, .scale = &scale, .global_scale = &global};
    ref_scale(&spec, 1, 2, x, &arrays);
    CHECK_EQ_F32(global, 0.5f);
    CHECK_EQ_U32(scale, 0x7E);
    ref_quantize(&spec, 1, 2, x, &arrays);
    CHECK_EQ_U32(codes, 0xD7);
    ref_dequantize(&spec, 1, 2, &arrays, y);
    CHECK_EQ_MEM(y, x, sizeof x);
}

/* Where one division instead of two would round to another scale (28), or another reciprocal (445FFFFF). */
TEST_CASE(HostRefFloats, Nvfp4ScalesDivideInTheOrderWritten)
{
    ref_quant_spec spec = nvfp4();
    const float x[5] = {735125, 0, 0, 0, ref_f32_from_bits(0x4739E238)}, three = 3;
    float global;
    uint8_t scale[2];
    ref_arrays arrays = {.scale = scale, .global_scale = &global};
    ref_scale(&spec, 1, 5, x, &arrays);
    CHECK_EQ_U32(scale[1], 0x5F); /* 30 */
    spec.global_scale = 2;
    ref_scale(&spec, 1, 1, &three, &arrays);
    CHECK_EQ_F32(global, 896);
}

TEST_CASE(HostRefFloats, Nvfp4OfZeros)
{
    const float x[3] = {0, -0.0f, NAN};
    for (int stored = 1; stored <= 2; stored++)
        for (int floor = 0; floor < 2; floor++) {
            ref_quant_spec spec = nvfp4();
            spec.global_scale = stored;
            spec.floor = floor ? REF_DEFAULT_FLOOR : 0.0f;
            float global = -1;
            uint8_t scale = 0xAA, codes[2] = {0xAA, 0xAA};
            ref_arrays arrays = {.codes = codes, .scale = &scale, .global_scale = &global};
            ref_scale(&spec, 1, 3, x, &arrays);
            ref_quantize(&spec, 1, 3, x, &arrays);
            float expected = floor ? 1e-12f / 2688 : 0, reciprocal = floor ? 2688 / 1e-12f : INFINITY;
            CHECK_EQ_F32(global, stored == 1 ? expected : reciprocal);
            CHECK_EQ_U32(scale, 0);
            CHECK_EQ_MEM(codes, ((const uint8_t[2]){0, 0}), 2);
        }
}

/* A block's scale is rounded, so that its absmax may go past 6: it saturates. */
TEST_CASE(HostRefFloats, Nvfp4CodesUseTheStoredScale)
{
    ref_quant_spec spec = nvfp4();
    const float x[2] = {6.4f, -3.2f}; /* 6.4 / 6 = 1.0667: E4M3 1.125 */
    const float low[1] = {6.3f};      /* 1.05: E4M3 1 */
    float global = 1;
    uint8_t scale = 0x39, codes;
    ref_arrays arrays = {.codes = &codes, .scale = &scale, .global_scale = &global};
    ref_quantize(&spec, 1, 2, x, &arrays);
    CHECK_EQ_U32(codes, 0xD7); /* 5.69, -2.84 */
    scale = 0x38;
    ref_quantize(&spec, 1, 1, low, &arrays);
    CHECK_EQ_U32(codes, 0x07);
    scale = 0xB8; /* a caller's -1 */
    ref_quantize(&spec, 1, 1, low, &arrays);
    CHECK_EQ_U32(codes, 0x0F);
    scale = 0x7F; /* NaN */
    ref_quantize(&spec, 1, 1, low, &arrays);
    CHECK_EQ_U32(codes, 0x00);
    CHECK_EQ_U32(ref_f32_to_bits(ref_decode(&spec, 1, 1, &arrays, 0, 0)), 0x7FFFFFFF);
}

/* ---- MX ---- */

static ref_quant_spec mx(qdnnDataType_t storage, qdnnCodeKind_t code)
{
    ref_quant_spec spec = plain_spec(storage, QDNN_ZERO_NONE);
    spec.code = code;
    spec.group_size = 32;
    spec.scale = QDNN_SCALE_E8M0;
    return spec;
}

/* Bytes of the scale under floor, ceil and even. */
TEST_CASE(HostRefFloats, RoundingsOfMxScales)
{
    static const struct {
        qdnnDataType_t storage;
        qdnnCodeKind_t code;
        float absmax;
        unsigned bytes[3];
    } cases[] = {
        {QDNN_DATA_FP4, 0, 4, {127, 127, 127}},
        {QDNN_DATA_FP4, 0, 6, {127, 127, 127}},
        {QDNN_DATA_FP4, 0, 0x1.800002p2f, {127, 128, 127}}, /* just above 6 */
        {QDNN_DATA_FP4, 0, 6.99f, {127, 128, 127}},
        {QDNN_DATA_FP4, 0, 7, {127, 128, 128}}, /* 7 rounds to 8 with one bit */
        {QDNN_DATA_FP4, 0, 0x1.FFFFFEp2f, {127, 128, 128}},
        {QDNN_DATA_FP4, 0, 8, {128, 128, 128}},
        {QDNN_DATA_FP4, 0, 0, {0, 0, 0}},
        {QDNN_DATA_FP4, 0, 0x1p-149f, {0, 0, 0}},
        {QDNN_DATA_FP4, 0, 0x1p-125f, {0, 0, 0}},
        {QDNN_DATA_FP4, 0, 0x1p-124f, {1, 1, 1}},
        {QDNN_DATA_FP4, 0, FLT_MAX, {252, 253, 253}},
        {QDNN_DATA_FP4, 0, INFINITY, {252, 253, 253}},
        {QDNN_DATA_F8E4M3, 0, 448, {127, 127, 127}},
        {QDNN_DATA_F8E4M3, 0, 449, {127, 128, 127}},
        {QDNN_DATA_F8E4M3, 0, 495.9f, {127, 128, 127}},
        {QDNN_DATA_F8E4M3, 0, 496, {127, 128, 128}}, /* 1.9375 rounds to 2 with three bits */
        {QDNN_DATA_F8E5M2, 0, 57344, {127, 127, 127}},
        {QDNN_DATA_F8E5M2, 0, 61440, {127, 128, 128}},
        {QDNN_DATA_F8E5M2, 0, 61439, {127, 128, 127}},
        {QDNN_DATA_U8, QDNN_CODE_E2M3, 7.5f, {127, 127, 127}},
        {QDNN_DATA_U8, QDNN_CODE_E2M3, 7.75f, {127, 128, 128}},
        {QDNN_DATA_U8, QDNN_CODE_E3M2, 28, {127, 127, 127}},
        {QDNN_DATA_U8, QDNN_CODE_E3M2, 29, {127, 128, 127}},
        {QDNN_DATA_U8, QDNN_CODE_E3M2, 30, {127, 128, 128}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int rounding = QDNN_MX_FLOOR; rounding <= QDNN_MX_EVEN; rounding++) {
            test_push_note("case %zu, absmax %a, rounding %d", i, (double)cases[i].absmax, rounding);
            ref_quant_spec spec = mx(cases[i].storage, cases[i].code);
            spec.mx_rounding = (qdnnMxRounding_t)rounding;
            const float x[3] = {NAN, -cases[i].absmax, 0};
            CHECK_EQ_U32(scale_bits(spec, x, 3), cases[i].bytes[rounding]);
            test_pop_note();
        }
}

TEST_CASE(HostRefFloats, MxCodes)
{
    ref_quant_spec spec = mx(QDNN_DATA_FP4, QDNN_CODE_DEFAULT);
    const float x[6] = {14, -10, 1, NAN, -0.0f, 3}; /* e = 128: halves 7 -5 0.5 ... */
    uint8_t scale, codes[3];
    float y[6];
    flat_scale(&spec, x, 6, &scale, NULL);
    CHECK_EQ_U32(scale, 128);
    flat_quantize(&spec, x, 6, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[3]){0xE7, 0x01, 0x38}), 3); /* 6 -4; 0.5 0; -0 1.5 */
    flat_dequantize(&spec, codes, 6, &scale, NULL, y);
    CHECK_EQ_MEM(y, ((const float[6]){12, -8, 1, 0, -0.0f, 3}), sizeof y);
    spec.division = QDNN_DIVIDE_RECIPROCAL; /* the same: powers of two */
    flat_quantize(&spec, x, 6, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[3]){0xE7, 0x01, 0x38}), 3);
}

TEST_CASE(HostRefFloats, MxAtTheEnds)
{
    ref_quant_spec spec = mx(QDNN_DATA_F8E4M3, QDNN_CODE_DEFAULT);
    const float x = 0x1p-126f, huge = FLT_MAX;
    uint8_t scale, code;
    float y;
    flat_scale(&spec, &x, 1, &scale, NULL);
    CHECK_EQ_U32(scale, 0);
    flat_quantize(&spec, &x, 1, &scale, NULL, &code);
    CHECK_EQ_U32(code, 0x40); /* 2 * 2^-127 */
    flat_dequantize(&spec, &code, 1, &scale, NULL, &y);
    CHECK_EQ_F32(y, x);
    flat_scale(&spec, &huge, 1, &scale, NULL);
    CHECK_EQ_U32(scale, 127 + 127 - 8);
    scale = 254;
    flat_quantize(&spec, &huge, 1, &scale, NULL, &code);
    CHECK_EQ_U32(code, 0x40); /* (2 - 2^-23) rounds to 2 */
    flat_dequantize(&spec, &code, 1, &scale, NULL, &y);
    CHECK_EQ_F32(y, INFINITY);
    scale = 255;
    flat_quantize(&spec, &huge, 1, &scale, NULL, &code);
    CHECK_EQ_U32(code, 0x7F);
    flat_dequantize(&spec, &code, 1, &scale, NULL, &y);
    CHECK_EQ_U32(ref_f32_to_bits(y), 0x7FFFFFFF);
    spec = mx(QDNN_DATA_FP4, QDNN_CODE_DEFAULT);
    flat_quantize(&spec, &huge, 1, &scale, NULL, &code);
    CHECK_EQ_U32(code, 0);
}
