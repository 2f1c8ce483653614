/* The blocks of GGUF files in the host reference: excerpts of known answers (test_host_ref_vectors.c reads all of them
 * where they are); the rest is worked out by hand. */
#include "formats/gguf_excerpts.h"
#include "test_host_ref.h"

#include <string.h>

static ref_quant_spec block_spec(qdnnBlockFormat_t block)
{
    return (ref_quant_spec){.data = QDNN_DATA_F32, .block = block};
}

TEST_ROWS(HostRefBlocks, Decodes, gguf_decoded_blocks)
{
    const gguf_decoded *known = &gguf_decoded_blocks[index];
    ref_quant_spec spec = block_spec(known->block);
    uint8_t block[GGUF_BYTES_MAX];
    float y[GGUF_VALUES_MAX];
    int bytes = gguf_read_bytes(known->bytes, block);
    int count = known->values[7].index + 1;
    ref_arrays arrays = {.codes = block};
    CHECK_EQ_I64(ref_sizes_of(&spec, 1, count).codes, bytes);
    CHECK_EQ_I64(ref_sizes_of(&spec, 3, 2 * count).codes, 6 * bytes);
    ref_dequantize(&spec, 1, count, &arrays, y);
    for (int i = 0; i < 8; i++) {
        int at = known->values[i].index;
        CHECK_EQ_U32(ref_f32_to_bits(y[at]), known->values[i].bits);
        CHECK_EQ_F32(ref_decode(&spec, 1, count, &arrays, 0, at), y[at]);
    }
}

TEST_ROWS(HostRefBlocks, Encodes, gguf_encoded_blocks)
{
    const gguf_encoded *known = &gguf_encoded_blocks[index];
    ref_quant_spec spec = block_spec(known->block);
    uint8_t expected[GGUF_BYTES_MAX], block[GGUF_BYTES_MAX];
    float x[GGUF_VALUES_MAX];
    CHECK_EQ_I64(gguf_read_values(known->values, x), 32);
    int bytes = gguf_read_bytes(known->bytes, expected);
    ref_arrays arrays = {.codes = block};
    memset(block, 0xAA, sizeof block);
    ref_quantize(&spec, 1, 32, x, &arrays);
    CHECK_EQ_MEM(block, expected, (size_t)bytes);
    CHECK_EQ_U32(block[bytes], 0xAA);
}

/* ---- Formats without known answers ---- */

static float decode_one(qdnnBlockFormat_t format, uint8_t *block, int count, int i)
{
    ref_quant_spec spec = block_spec(format);
    ref_arrays arrays = {.codes = block};
    return ref_decode(&spec, 1, count, &arrays, 0, i);
}

static void encode_32(qdnnBlockFormat_t format, const float *x, uint8_t *block)
{
    ref_quant_spec spec = block_spec(format);
    ref_arrays arrays = {.codes = block};
    ref_quantize(&spec, 1, 32, x, &arrays);
}

TEST_CASE(HostRefBlocks, Q8_1HasTheSumOfItsValues)
{
    float x[32] = {254, -4, 3, 1}; /* d = 2; 3 / 2 and 1 / 2 go away from zero */
    uint8_t block[36];
    encode_32(QDNN_BLOCK_Q8_1, x, block);
    CHECK_EQ_MEM(block, ((const uint8_t[9]){0x00, 0x40, 0x00, 0x5C, 127, 0xFE, 2, 1, 0}),
                 9); /* 128 * 2 = 256 */
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_Q8_1, block, 32, 0), 254);
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_Q8_1, block, 32, 1), -4);
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_Q8_1, block, 32, 2), 4);
}

/* The sum is taken with d before it is rounded to f16. */
TEST_CASE(HostRefBlocks, Q8_1SumsWithTheUnroundedScale)
{
    float x[32];
    uint8_t block[36];
    for (int i = 0; i < 32; i++)
        x[i] = 1.014f;
    encode_32(QDNN_BLOCK_Q8_1, x, block);
    float d = 1.014f / 127, sum = 32 * 127;
    uint16_t expected = ref_f32_to_f16(sum * d),
             rounded = ref_f32_to_f16(sum * ref_f16_to_f32(ref_f32_to_f16(d)));
    CHECK_EQ_U32((unsigned)(block[2] | block[3] << 8), expected);
    CHECK(expected != rounded);
}

TEST_CASE(HostRefBlocks, Q8_KHasAScaleInF32)
{
    uint8_t block[292] = {0};
    ref_scalar_store(QDNN_DATA_F32, block, 0, 0.1f);
    block[4] = 0x80;
    block[4 + 255] = 127;
    memset(block + 260, 0xFF, 32); /* sums play no part */
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_Q8_K, block, 256, 0), -128 * 0.1f);
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_Q8_K, block, 256, 1), 0);
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_Q8_K, block, 256, 255), 127 * 0.1f);
}

/* ---- Ternary ---- */

/* x[i] of three values in a row of 256, in every place of every byte. */
TEST_CASE(HostRefBlocks, TernaryBothWays)
{
    static const qdnnBlockFormat_t formats[2] = {QDNN_BLOCK_TQ1_0, QDNN_BLOCK_TQ2_0};
    float x[256], y[256];
    uint32_t state = 7;
    for (int i = 0; i < 256; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = 0.75f * (float)((int)(state >> 16) % 3 - 1);
    }
    for (int f = 0; f < 2; f++) {
        ref_quant_spec spec = block_spec(formats[f]);
        uint8_t block[66];
        ref_arrays arrays = {.codes = block};
        ref_quantize(&spec, 1, 256, x, &arrays);
        ref_dequantize(&spec, 1, 256, &arrays, y);
        for (int i = 0; i < 256; i++)
            CHECK(y[i] == x[i]); /* 0 may be -0 */
    }
}

/* Digits 2 0 1 0 0 of byte 0 are 2*81 + 9 = 171 of 243: (171 * 256 + 242) / 243 = 181. */
TEST_CASE(HostRefBlocks, TernaryDigits)
{
    ref_quant_spec spec = block_spec(QDNN_BLOCK_TQ1_0);
    float x[256];
    uint8_t block[54];
    ref_arrays arrays = {.codes = block};
    for (int i = 0; i < 256; i++)
        x[i] = -1;
    x[0] = 1;
    x[64] = 0.25f;
    x[160 + 16] = 1; /* digit 1 of byte 32: 2 * 27 = 54: (54 * 256 + 242) / 243 = 57 */
    x[240 + 12] = 1; /* digit 3 of qh[0]: 2 * 3 = 6: (6 * 256 + 242) / 243 = 7 */
    ref_quantize(&spec, 1, 256, x, &arrays);
    CHECK_EQ_U32(block[0], 181);
    CHECK_EQ_U32(block[1], 0);
    CHECK_EQ_U32(block[32], 57);
    CHECK_EQ_U32(block[48], 7);
    CHECK_EQ_U32((unsigned)(block[52] | block[53] << 8), 0x3C00);
}

/* ---- FP4: what differs from MX and NVFP4 elsewhere ---- */

TEST_CASE(HostRefBlocks, Mxfp4AtTheEnds)
{
    uint8_t block[17] = {0, 0x81, 0x7F};
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_MXFP4, block, 32, 0), 0x1p-128f);
    CHECK_EQ_U32(ref_f32_to_bits(decode_one(QDNN_BLOCK_MXFP4, block, 32, 16)), 0); /* code 8 is +0 */
    block[0] = 255;                                                                /* 2^128, not NaN */
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_MXFP4, block, 32, 0), 0x1p127f);
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_MXFP4, block, 32, 1), -INFINITY);
    CHECK_EQ_F32(decode_one(QDNN_BLOCK_MXFP4, block, 32, 16), 0);
}

TEST_CASE(HostRefBlocks, Mxfp4TakesTheSmallerOfTwo)
{
    /* e = 127: ties 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5 of both signs, and tiny numbers. */
    const float x[32] = {4,  0.25f,  0.75f,  1.25f,  1.75f, 2.5f, 3.5f,  5,
                         -5, -0.25f, -0.75f, -1e-9f, -0.0f, 7,    1e-9f, -7};
    uint8_t block[17];
    encode_32(QDNN_BLOCK_MXFP4, x, block);
    static const uint8_t expected[16] = {6, 0, 1, 2, 3, 4, 5, 6, 14, 0, 9, 0, 0, 7, 0, 15};
    CHECK_EQ_U32(block[0], 127);
    CHECK_EQ_MEM(block + 1, expected, 16);
}

/* The exponent is exact just below a power of two, where a rounded logarithm is one too large. */
TEST_CASE(HostRefBlocks, Mxfp4ExponentIsExact)
{
    const float x[32] = {0x1.FFFFFEp3f}, tiny[32] = {0x1p-149f};
    uint8_t block[17];
    encode_32(QDNN_BLOCK_MXFP4, x, block);
    CHECK_EQ_U32(block[0], 128);
    CHECK_EQ_U32(block[1], 7);
    encode_32(QDNN_BLOCK_MXFP4, tiny, block);
    CHECK_EQ_U32(block[0], 0);
    CHECK_EQ_U32(block[1], 0);
}

TEST_CASE(HostRefBlocks, Nvfp4Scales)
{
    uint8_t block[36] = {0x7F, 0xFF, 0x80, 0x81};
    memset(block + 4, 0xF2, 32); /* low: 1, high: -6 */
    static const float expected[8] = {0, -0.0f, 480, -2880, 0, -0.0f, 0x1p-9f, -6 * 0x1p-9f};
    for (int part = 0; part < 4; part++) {
        CHECK_EQ_F32(decode_one(QDNN_BLOCK_NVFP4, block, 64, 16 * part), expected[2 * part]);
        CHECK_EQ_F32(decode_one(QDNN_BLOCK_NVFP4, block, 64, 16 * part + 15), expected[2 * part + 1]);
    }
}

/* ---- Input that no format holds ---- */

TEST_CASE(HostRefBlocks, ScalesAreClampedToTheLargestHalf)
{
    const float x[32] = {1e9f, -1e9f}, infinite[32] = {-INFINITY, INFINITY, NAN, 1};
    uint8_t block[36];
    encode_32(QDNN_BLOCK_Q8_0, x, block);
    CHECK_EQ_MEM(block, ((const uint8_t[5]){0xFF, 0x7B, 127, 0x81, 0}), 5);
    encode_32(QDNN_BLOCK_Q4_0, x, block);
    CHECK_EQ_MEM(block, ((const uint8_t[4]){0xFF, 0xFB, 0x80, 0x8F}),
                 4); /* -8 and 8, which is one too many */
    encode_32(QDNN_BLOCK_Q4_1, x, block);
    CHECK_EQ_MEM(block, ((const uint8_t[6]){0xFF, 0x7B, 0xFF, 0xFB, 0x7F, 0x70}),
                 6); /* 0 is just below 7.5 */
    /* The range overflows: no reciprocal, codes 0. */
    encode_32(QDNN_BLOCK_Q5_1, infinite, block);
    CHECK_EQ_MEM(block, ((const uint8_t[10]){0xFF, 0x7B, 0xFF, 0xFB}), 10);
    encode_32(QDNN_BLOCK_Q8_0, infinite, block);
    CHECK_EQ_MEM(block, ((const uint8_t[6]){0xFF, 0x7B, 0x81, 127, 0, 0}), 6);
}

/* 1 / d overflows: every code is that of 0. */
TEST_CASE(HostRefBlocks, ReciprocalsThatOverflow)
{
    const float x[32] = {0x1p-126f, -0x1p-126f};
    uint8_t block[36];
    encode_32(QDNN_BLOCK_Q8_0, x, block);
    CHECK_EQ_MEM(block, ((const uint8_t[4]){0, 0, 0, 0}), 4);
    encode_32(QDNN_BLOCK_Q4_0, x, block);
    CHECK_EQ_MEM(block, ((const uint8_t[4]){0, 0x80, 0x88, 0x88}), 4);
    encode_32(QDNN_BLOCK_Q5_0, x, block);
    CHECK_EQ_MEM(block, ((const uint8_t[7]){0, 0x80, 0xFF, 0xFF, 0xFF, 0xFF, 0}), 7);
}

TEST_CASE(HostRefBlocks, NanScalesGiveTheNan)
{
    uint8_t block[18] = {0x01, 0xFE};
    CHECK_EQ_U32(ref_f32_to_bits(decode_one(QDNN_BLOCK_Q4_0, block, 32, 0)), 0x7FFFFFFF);
    CHECK_EQ_U32(ref_f32_to_bits(decode_one(QDNN_BLOCK_IQ4_NL, block, 32, 31)), 0x7FFFFFFF);
}

/* f16 in and out, two rows: blocks simply follow one another. */
TEST_CASE(HostRefBlocks, RowsOfHalves)
{
    ref_quant_spec spec = block_spec(QDNN_BLOCK_Q8_0);
    spec.data = QDNN_DATA_F16;
    uint16_t x[2 * 32], y[2 * 32];
    uint8_t blocks[68];
    for (int i = 0; i < 64; i++)
        x[i] = ref_f32_to_f16((float)(i == 63 ? 254 : i == 31 ? 127 : i % 32 * 2));
    ref_arrays arrays = {.codes = blocks};
    ref_quantize(&spec, 2, 32, x, &arrays);
    CHECK_EQ_MEM(blocks, ((const uint8_t[4]){0x00, 0x3C, 0, 2}), 4);
    CHECK_EQ_MEM(blocks + 34, ((const uint8_t[4]){0x00, 0x40, 0, 1}), 4);
    ref_dequantize(&spec, 2, 32, &arrays, y);
    CHECK_EQ_MEM(y, x, sizeof x);
}
