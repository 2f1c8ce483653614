/* What bitsandbytes has: FP4 with a table of its own, scales that may be 0, nested scales. */
#include "test_host_ref.h"

#include <string.h>

static ref_quant_spec bnb(qdnnDataType_t storage)
{
    ref_quant_spec spec = plain_spec(storage, QDNN_ZERO_NONE);
    if (storage == QDNN_DATA_FP4)
        spec.code = QDNN_CODE_FP4_BNB;
    spec.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    spec.division = QDNN_DIVIDE_RECIPROCAL;
    spec.floor = 0;
    return spec;
}

/* An odd element leaves the low nibble 0. */
static unsigned high_code(ref_quant_spec spec, float x, float scale)
{
    return code_of(spec, x, scale, 0) >> 4;
}

TEST_CASE(HostRefBnb, TableOfFp4)
{
    static const float magnitudes[8] = {0, 1.0f / 192, 2.0f / 3, 1, 1.0f / 3, 0.5f, 1.0f / 6, 0.25f};
    static const uint32_t bits[8] = {0x00000000, 0x3BAAAAAB, 0x3F2AAAAB, 0x3F800000,
                                     0x3EAAAAAB, 0x3F000000, 0x3E2AAAAB, 0x3E800000};
    ref_quant_spec spec = bnb(QDNN_DATA_FP4);
    for (unsigned code = 0; code < 8; code++) {
        CHECK_EQ_U32(decoded_bits(spec, code << 4, 1, 0), bits[code]);
        CHECK_EQ_U32(decoded_bits(spec, (code | 8) << 4, 1, 0), bits[code] | 0x80000000);
        CHECK_EQ_U32(ref_f32_to_bits(magnitudes[code]), bits[code]);
        CHECK_EQ_U32(high_code(spec, magnitudes[code], 1), code);
        if (code)
            CHECK_EQ_U32(high_code(spec, -magnitudes[code], 1), code | 8);
    }
}

/* Not all of them are midpoints; on a threshold the lower magnitude stays. */
TEST_CASE(HostRefBnb, ThresholdsOfFp4)
{
    static const struct {
        uint32_t bits;
        unsigned below, above;
    } steps[7] = {{0x3B2AAAB9, 0, 1}, {0x3DB00000, 1, 6}, {0x3E555555, 6, 7}, {0x3E955555, 7, 4},
                  {0x3ED55556, 4, 5}, {0x3F155550, 5, 2}, {0x3F555555, 2, 3}};
    ref_quant_spec spec = bnb(QDNN_DATA_FP4);
    for (int i = 0; i < 7; i++) {
        float at = ref_f32_from_bits(steps[i].bits);
        CHECK_EQ_U32(high_code(spec, at, 1), steps[i].below);
        CHECK_EQ_U32(high_code(spec, -at, 1), steps[i].below | 8);
        CHECK_EQ_U32(high_code(spec, nextafterf(at, 1), 1), steps[i].above);
        CHECK_EQ_U32(high_code(spec, nextafterf(-at, -1), 1), steps[i].above | 8);
    }
    CHECK_EQ_U32(high_code(spec, -1e-30f, 1), 8);
    CHECK_EQ_U32(high_code(spec, -0.0f, 1), 0);
    CHECK_EQ_U32(high_code(spec, NAN, 1), 0);
    CHECK_EQ_U32(high_code(spec, INFINITY, 1), 3);
    CHECK_EQ_U32(high_code(spec, -INFINITY, 1), 11);
}

TEST_CASE(HostRefBnb, BytesHaveTheFirstElementOnTop)
{
    ref_quant_spec spec = bnb(QDNN_DATA_NF4);
    const float x[5] = {-3, 0, 3, 1.5f, -0.3f}; /* 1.5 / 3 is nearest to 0.44, code 12; -0.1: code 6 */
    float scale;
    uint8_t codes[3];
    flat_scale(&spec, x, 5, &scale, NULL);
    CHECK_EQ_F32(scale, 3);
    flat_quantize(&spec, x, 5, &scale, NULL, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[3]){0x07, 0xFC, 0x60}), 3);
}

/* With a floor of 0 the scale of zeros is 0; otherwise it is the smallest number. */
TEST_CASE(HostRefBnb, ScalesOfZeros)
{
    static const qdnnDataType_t storages[] = {QDNN_DATA_NF4, QDNN_DATA_FP4};
    static const unsigned codes[] = {0x77, 0x00};
    const float zeros[2] = {0, -0.0f};
    for (int i = 0; i < 2; i++) {
        ref_quant_spec spec = bnb(storages[i]);
        float scale = -1;
        uint8_t byte;
        flat_scale(&spec, zeros, 2, &scale, NULL);
        CHECK_EQ_U32(ref_f32_to_bits(scale), 0);
        flat_quantize(&spec, zeros, 2, &scale, NULL, &byte);
        CHECK_EQ_U32(byte, codes[i]);
        spec.floor = REF_DEFAULT_FLOOR;
        flat_scale(&spec, zeros, 2, &scale, NULL);
        CHECK_EQ_U32(ref_f32_to_bits(scale), 1);
        flat_quantize(&spec, zeros, 2, &scale, NULL, &byte);
        CHECK_EQ_U32(byte, codes[i]);
    }
}

/* ---- Nested scales ---- */

/* -1 to 127/128 in steps of 1/128. */
static void fill_map(float map[256])
{
    for (int i = 0; i < 256; i++)
        map[i] = (float)(i - 128) / 128;
}

static ref_quant_spec nested(int64_t group_size)
{
    ref_quant_spec spec = bnb(QDNN_DATA_NF4);
    spec.nested = true;
    spec.group_size = group_size;
    return spec;
}

TEST_CASE(HostRefBnb, NestedScalesBothWays)
{
    ref_quant_spec spec = nested(1);
    const float x[4] = {1, -3, 2, -2.25f}, offset = 2;
    float map[256], outer = 0, y[4];
    uint8_t scale[4], codes[2];
    fill_map(map);
    ref_arrays arrays = {
        .codes = codes, .scale = scale, .nested_map = map, .nested_scale = &outer, .nested_offset = &offset};
    ref_sizes sizes = ref_sizes_of(&spec, 1, 4);
    CHECK_EQ_I64(sizes.scale, 4);
    CHECK_EQ_I64(sizes.nested_map, 1024);
    CHECK_EQ_I64(sizes.nested_scale, 4);
    CHECK_EQ_I64(sizes.nested_offset, 4);
    ref_scale(&spec, 1, 4, x, &arrays);
    CHECK_EQ_F32(outer, 1);
    CHECK_EQ_MEM(scale, ((const uint8_t[4]){0, 255, 128, 160}), 4); /* -1, 1, 0, 0.25 */
    ref_quantize(&spec, 1, 4, x, &arrays);
    CHECK_EQ_MEM(codes, ((const uint8_t[2]){0xF0, 0xF0}), 2);
    ref_dequantize(&spec, 1, 4, &arrays, y);
    CHECK_EQ_MEM(y, ((const float[4]){1, -2.9921875f, 2, -2.25f}), sizeof y);
}

/* The product is rounded before the offset is added: 3 * (1 + 2^-23) rounds up to 3 + 2^-21. */
TEST_CASE(HostRefBnb, NestedScalesAreRoundedTwice)
{
    ref_quant_spec spec = nested(1);
    const float offset = -3;
    float map[256] = {3}, outer = 1 + 0x1p-23f;
    uint8_t scale = 0, code = 0xF0;
    ref_arrays arrays = {
        .codes = &code, .scale = &scale, .nested_map = map, .nested_scale = &outer, .nested_offset = &offset};
    CHECK_EQ_F32(ref_decode(&spec, 1, 1, &arrays, 0, 0), 0x1p-21f);
}

/* 256 scales share one; of equal scales nothing is left once the offset is gone. */
TEST_CASE(HostRefBnb, NestedScalesInRunsOf256)
{
    ref_quant_spec spec = nested(1);
    float x[258], map[256], outer[3] = {-1, -1, -1}, offset = 1, y[258];
    uint8_t scale[258], codes[129];
    fill_map(map);
    for (int i = 0; i < 258; i++)
        x[i] = i < 256 ? 1 : (float)(i - 253); /* 1 ..., then 3 and 4 */
    ref_arrays arrays = {
        .codes = codes, .scale = scale, .nested_map = map, .nested_scale = outer, .nested_offset = &offset};
    CHECK_EQ_I64(ref_sizes_of(&spec, 1, 258).nested_scale, 8);
    ref_scale(&spec, 1, 258, x, &arrays);
    CHECK_EQ_MEM(outer, ((const float[3]){0, 3, -1}), sizeof outer);
    CHECK_EQ_U32(scale[0], 128);
    CHECK_EQ_U32(scale[255], 128);
    CHECK_EQ_U32(scale[256], 213); /* 2/3 * 128 = 85.33 */
    CHECK_EQ_U32(scale[257], 255);
    ref_quantize(&spec, 1, 258, x, &arrays);
    ref_dequantize(&spec, 1, 258, &arrays, y);
    CHECK_EQ_F32(y[7], 1);
    CHECK_EQ_F32(y[256], 85 * 3 / 128.0f + 1);
}
