/* Scales per channel and per tensor in the host reference, with answers worked out by hand. */
#include "test_host_ref.h"

static ref_quant_spec channel_spec(qdnnDataType_t storage, qdnnZeroKind_t zero_kind, int64_t group_size,
                                   int64_t channels)
{
    ref_quant_spec spec = plain_spec(storage, zero_kind);
    spec.group_size = group_size;
    spec.channels = channels;
    return spec;
}

/* Runs of two in three channels: 7 1 and -28 4; 14 2 and 5 6; 3 21 and the 42 of a run cut short. */
static const float runs_of_two[11] = {7, 1, 14, 2, 3, 21, -28, 4, 5, 6, 42};

TEST_CASE(HostRefChannels, ScalesOfRunsThatTakeTurns)
{
    ref_quant_spec spec = channel_spec(QDNN_DATA_I4, QDNN_ZERO_NONE, 2, 3);
    float scale[4] = {0, 0, 0, -1};
    flat_scale(&spec, runs_of_two, 11, scale, NULL);
    const float expected[4] = {4, 2, 6, -1};
    CHECK_EQ_MEM(scale, expected, sizeof expected);
}

TEST_CASE(HostRefChannels, CodesLieFlat)
{
    static const uint8_t codes[6] = {0x8A, 0x9F, 0xC8, 0x91, 0xBA, 0x0F};
    static const float values[11] = {8, 0, 14, 2, 0, 24, -28, 4, 4, 6, 42}, scale[3] = {4, 2, 6};
    ref_quant_spec spec = channel_spec(QDNN_DATA_I4, QDNN_ZERO_NONE, 2, 3);
    uint8_t bytes[6];
    float y[11];
    flat_quantize(&spec, runs_of_two, 11, scale, NULL, bytes);
    CHECK_EQ_MEM(bytes, codes, sizeof codes);
    flat_dequantize(&spec, codes, 11, scale, NULL, y);
    CHECK_EQ_MEM(y, values, sizeof values);
}

TEST_CASE(HostRefChannels, LastAxisWithZeroPoints)
{
    static const float x[5] = {-5, 30, 10, 0, NAN}, y[5] = {-5, 30, 10, 0, 0};
    ref_quant_spec spec = channel_spec(QDNN_DATA_I4, QDNN_ZERO_POINT, 1, 2);
    float scale[2], zero[2], decoded[5];
    uint8_t codes[3];
    flat_scale(&spec, x, 5, scale, zero);
    CHECK_EQ_F32(scale[0], 1.0f); /* -5 to 10 */
    CHECK_EQ_F32(zero[0], 5.0f);
    CHECK_EQ_F32(scale[1], 2.0f); /* 0 to 30 */
    CHECK_EQ_F32(zero[1], 0.0f);
    flat_quantize(&spec, x, 5, scale, zero, codes);
    CHECK_EQ_MEM(codes, ((const uint8_t[3]){0xF0, 0x0F, 0x05}), 3);
    flat_dequantize(&spec, codes, 5, scale, zero, decoded);
    CHECK_EQ_MEM(decoded, y, sizeof y);
}

TEST_CASE(HostRefChannels, OneScaleATensorWhateverTheGroupSize)
{
    for (int64_t group_size = 1; group_size < 8; group_size++) {
        float scale[2] = {0, -1};
        ref_quant_spec spec = channel_spec(QDNN_DATA_NF4, QDNN_ZERO_NONE, group_size, 1);
        flat_scale(&spec, runs_of_two, 11, scale, NULL);
        CHECK_EQ_F32(scale[0], 42.0f);
        CHECK_EQ_F32(scale[1], -1.0f);
    }
}

/* They count as zeros: the floor, and NF4's smallest scale. */
TEST_CASE(HostRefChannels, ChannelsWithoutAnElement)
{
    static const struct {
        qdnnDataType_t storage;
        qdnnZeroKind_t zero_kind;
        uint32_t first, rest;
    } cases[] = {{QDNN_DATA_I4, QDNN_ZERO_NONE, 0x3F800000, 0x2A20D7C5},  /* 7 / 7, 1e-12 / 7 */
                 {QDNN_DATA_I4, QDNN_ZERO_POINT, 0x3EEEEEEF, 0x29961EB7}, /* 7 / 15, 1e-12 / 15 */
                 {QDNN_DATA_NF4, QDNN_ZERO_NONE, 0x40E00000, 0x00000001}};
    const float x = 7;
    for (int i = 0; i < 3; i++) {
        ref_quant_spec spec = channel_spec(cases[i].storage, cases[i].zero_kind, 2, 3);
        float scale[3], zero[3] = {-1, -1, -1};
        flat_scale(&spec, &x, 1, scale, zero);
        CHECK_EQ_U32(ref_f32_to_bits(scale[0]), cases[i].first);
        CHECK_EQ_U32(ref_f32_to_bits(scale[1]), cases[i].rest);
        CHECK_EQ_U32(ref_f32_to_bits(scale[2]), cases[i].rest);
        CHECK_EQ_F32(zero[2], cases[i].zero_kind ? 0.0f : -1.0f);
    }
}

TEST_CASE(HostRefChannels, NoElementsWriteNoScales)
{
    ref_quant_spec spec = channel_spec(QDNN_DATA_I4, QDNN_ZERO_POINT, 1, 4);
    flat_scale(&spec, NULL, 0, NULL, NULL);
    flat_quantize(&spec, NULL, 0, NULL, NULL, NULL);
    flat_dequantize(&spec, NULL, 0, NULL, NULL, NULL);
}
