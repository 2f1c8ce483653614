/* Codes in u32 words in the host reference, as GPTQ, AWQ and compressed-tensors have them, on words made by
 * hand. */
#include "test_host_ref.h"

#include <string.h>

/* ---- GPTQ: weights [K, N], codes along K, zeros along N ---- */

static ref_quant_spec gptq(int bits, bool minus_one)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_U8, QDNN_ZERO_POINT);
    spec.bits = bits;
    spec.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
    spec.group_size = 1024;
    spec.scale = QDNN_SCALE_F16;
    spec.zero_packed = true;
    spec.zero_minus_one = minus_one;
    return spec;
}

/* Four widths; two columns; both versions of the zeros 2 and 1. */
static const struct {
    const char *name;
    int bits, rows, words;
    uint32_t qweight[6]; /* word w of column n at [2 w + n]: codes k mod 2^bits, and 1 */
    uint32_t v1, v2;
} widths[] = {
    {"2_bits", 2, 16, 1, {0xE4E4E4E4, 0x55555555}, 0x1, 0x6},
    {"3_bits", 3, 32, 3, {0x88FAC688, 0x49249249, 0xC688FAC6, 0x92492492, 0xFAC688FA, 0x24924924}, 0x1, 0xA},
    {"4_bits", 4, 16, 2, {0x76543210, 0x11111111, 0xFEDCBA98, 0x11111111}, 0x01, 0x12},
    {"8_bits", 8, 8, 2, {0x03020100, 0x01010101, 0x07060504, 0x01010101}, 0x0001, 0x0102},
};

TEST_ROWS(HostRefWords, GptqOfEveryWidth, widths)
{
    const int bits = widths[index].bits, rows = widths[index].rows;
    const uint16_t scale[2] = {0x3C00, 0x3800}; /* 1, 1/2 */
    for (int version = 1; version <= 2; version++) {
        ref_quant_spec spec = gptq(bits, version == 1);
        uint32_t zero = version == 1 ? widths[index].v1 : widths[index].v2, made[6];
        ref_arrays arrays = {.codes = (void *)(uintptr_t)widths[index].qweight,
                             .scale = (void *)(uintptr_t)scale,
                             .zero = &zero};
        float y[64];
        ref_sizes sizes = ref_sizes_of(&spec, rows, 2);
        CHECK_EQ_I64(sizes.codes, widths[index].words * 8);
        CHECK_EQ_I64(sizes.scale, 4);
        CHECK_EQ_I64(sizes.zero, 4);
        ref_dequantize(&spec, rows, 2, &arrays, y);
        for (int k = 0; k < rows; k++) {
            CHECK_EQ_F32(y[2 * k], (float)(k % (1 << bits) - 2));
            CHECK_EQ_F32(y[2 * k + 1], 0.0f);
        }
        arrays.codes = made;
        ref_quantize(&spec, rows, 2, y, &arrays);
        CHECK_EQ_MEM(made, widths[index].qweight, (size_t)sizes.codes);
    }
}

/* Codes of 3 bits go from word to word along N too: column 10 has bits 30 to 32. */
TEST_CASE(HostRefWords, GptqZerosAcrossWords)
{
    ref_quant_spec spec = gptq(3, false);
    spec.group_size = 1;
    uint32_t zero[4] = {0x88FAC688, 0x6, 0, 0}; /* n mod 8; then a group of zeros */
    uint16_t scale[24];
    uint32_t codes[12] = {0};
    float y[24], x[24];
    for (int i = 0; i < 24; i++)
        scale[i] = 0x3C00;
    ref_arrays arrays = {.codes = codes, .scale = scale, .zero = zero};
    CHECK_EQ_I64(ref_sizes_of(&spec, 2, 12).zero, 16);
    CHECK_EQ_I64(ref_sizes_of(&spec, 2, 12).codes, 48);
    ref_dequantize(&spec, 2, 12, &arrays, y);
    for (int n = 0; n < 12; n++) {
        CHECK_EQ_F32(y[n], (float)-(n % 8));
        CHECK_EQ_F32(y[12 + n], 0.0f);
    }
    /* And written: the range of column n is -(n mod 8) to 7 - n mod 8. */
    for (int n = 0; n < 12; n++) {
        x[n] = (float)-(n % 8);
        x[12 + n] = (float)(7 - n % 8);
    }
    spec.group_size = 2;
    memset(zero, 0xAA, sizeof zero);
    ref_scale(&spec, 2, 12, x, &arrays);
    CHECK_EQ_MEM(zero, ((const uint32_t[3]){0x88FAC688, 0x6, 0xAAAAAAAA}), 12);
}

/* What a stored F means: 16, or 0. */
TEST_CASE(HostRefWords, GptqZerosOneLess)
{
    ref_quant_spec spec = gptq(4, true);
    const uint16_t scale[8] = {0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00};
    uint32_t zero = 0xF7, codes[2] = {0x8, 0x8};
    ref_arrays arrays = {.codes = codes, .scale = (void *)(uintptr_t)scale, .zero = &zero};
    CHECK_EQ_F32(ref_decode(&spec, 1, 2, &arrays, 0, 0), 0);
    CHECK_EQ_F32(ref_decode(&spec, 1, 2, &arrays, 0, 1), -8);
    spec.zero_wraps = true;
    CHECK_EQ_F32(ref_decode(&spec, 1, 2, &arrays, 0, 0), 0);
    CHECK_EQ_F32(ref_decode(&spec, 1, 2, &arrays, 0, 1), 8);
}

/* A zero of 0 can be stored only where F stands for it; else it is made 1. */
TEST_CASE(HostRefWords, GptqZerosOfPositiveColumns)
{
    const float x[2 * 2] = {0, -15, 15, 0};
    for (int wraps = 0; wraps < 2; wraps++) {
        ref_quant_spec spec = gptq(4, true);
        spec.zero_wraps = wraps;
        uint16_t scale[2];
        uint32_t zero = 0xAAAAAAAA, codes[2];
        float y[4];
        ref_arrays arrays = {.codes = codes, .scale = scale, .zero = &zero};
        ref_scale(&spec, 2, 2, x, &arrays);
        CHECK_EQ_U32(zero, wraps ? 0xEF : 0xE0);
        ref_quantize(&spec, 2, 2, x, &arrays);
        ref_dequantize(&spec, 2, 2, &arrays, y);
        CHECK_EQ_F32(y[0], 0);
        CHECK_EQ_F32(y[1], -15);
        CHECK_EQ_F32(y[2], wraps ? 15 : 14);
        CHECK_EQ_F32(y[3], 0);
    }
}

/* The same with zeros in bytes of their own. */
TEST_CASE(HostRefWords, ZerosOneLessInBytes)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
    spec.zero = QDNN_DATA_U8;
    spec.zero_minus_one = true;
    const float x[2] = {-5, 10}, positive[1] = {15};
    float scale;
    uint8_t zero;
    flat_scale(&spec, x, 2, &scale, &zero);
    CHECK_EQ_U32(zero, 4);
    flat_scale(&spec, positive, 1, &scale, &zero);
    CHECK_EQ_U32(zero, 0);
    spec.zero_wraps = true;
    flat_scale(&spec, positive, 1, &scale, &zero);
    CHECK_EQ_U32(zero, 15);
    uint8_t code = 3;
    float y;
    flat_dequantize(&spec, &code, 1, &scale, &zero, &y);
    CHECK_EQ_F32(y, 3);
}

TEST_CASE(HostRefWords, GptqWithGroupsByIndex)
{
    ref_quant_spec spec = gptq(4, false);
    spec.group_size = 2;
    spec.group_index = true;
    const int32_t group[4] = {1, 0, 1, 0};
    const uint16_t scale[2] = {0x3C00, 0x4000}; /* 1, 2 */
    uint32_t code = 0x4321, zero[2] = {1, 2};
    ref_arrays arrays = {
        .codes = &code, .scale = (void *)(uintptr_t)scale, .zero = zero, .group_index = group};
    float y[4];
    ref_dequantize(&spec, 4, 1, &arrays, y);
    CHECK_EQ_MEM(y, ((const float[4]){-2, 1, 2, 3}), sizeof y);
}

/* ---- Rows that no word divides ---- */

TEST_CASE(HostRefWords, TheLastWordIsPaddedWithZero)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_NONE);
    spec.code = QDNN_CODE_TWOS_COMPLEMENT;
    spec.layout = QDNN_LAYOUT_WORDS_ROWS;
    const float x[2 * 9] = {1, 2, 3, 4, -1, -2, -3, -4, 5, /* */ -8, -7, -6, -5, -4, -3, -2, -1, 0};
    float scale[2] = {1, 1}, y[18];
    uint32_t words[4] = {~0u, ~0u, ~0u, ~0u};
    ref_arrays arrays = {.codes = words, .scale = scale};
    CHECK_EQ_I64(ref_sizes_of(&spec, 2, 9).codes, 16);
    CHECK_EQ_I64(ref_sizes_of(&spec, 2, 9).scale, 8);
    ref_quantize(&spec, 2, 9, x, &arrays);
    CHECK_EQ_MEM(words, ((const uint32_t[4]){0xCDEF4321, 0x5, 0xFEDCBA98, 0x0}), sizeof words);
    ref_dequantize(&spec, 2, 9, &arrays, y);
    CHECK_EQ_MEM(y, x, sizeof x);
}

TEST_CASE(HostRefWords, ColumnsAreStreams)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_NONE);
    spec.code = QDNN_CODE_UNSIGNED;
    spec.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
    spec.no_scale = true;
    float x[9 * 2], y[9 * 2];
    for (int k = 0; k < 9; k++) {
        x[2 * k] = (float)(k + 1);
        x[2 * k + 1] = 0;
    }
    uint32_t words[4];
    ref_arrays arrays = {.codes = words};
    ref_quantize(&spec, 9, 2, x, &arrays);
    CHECK_EQ_MEM(words, ((const uint32_t[4]){0x87654321, 0, 0x9, 0}), sizeof words);
    ref_dequantize(&spec, 9, 2, &arrays, y);
    CHECK_EQ_MEM(y, x, sizeof x);
}

/* ---- AWQ: eight columns to a word, in the order 0 2 4 6 1 3 5 7 ---- */

TEST_CASE(HostRefWords, Awq)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
    spec.layout = QDNN_LAYOUT_AWQ;
    spec.group_size = 2;
    spec.zero_packed = true;
    spec.scale = QDNN_SCALE_F16;
    /* Row 0: column c has code c; row 1: 15 - c; row 2, columns 8 to 15: 1. Zeros: c, then 0. */
    uint32_t words[6] = {0x75316420, 0x75316420, 0x8ACE9BDF, 0x8ACE9BDF, 0, 0x11111111}, made[6];
    uint32_t zero[4] = {0x75316420, 0, 0, 0};
    uint16_t scale[32];
    for (int i = 0; i < 32; i++)
        scale[i] = i < 16 ? 0x3C00 : 0x4000;
    ref_arrays arrays = {.codes = words, .scale = scale, .zero = zero};
    float y[3 * 16];
    ref_sizes sizes = ref_sizes_of(&spec, 3, 16);
    CHECK_EQ_I64(sizes.codes, 24);
    CHECK_EQ_I64(sizes.scale, 64);
    CHECK_EQ_I64(sizes.zero, 16);
    ref_dequantize(&spec, 3, 16, &arrays, y);
    for (int n = 0; n < 16; n++) {
        float first = (float)(n % 8), z = n < 8 ? first : 0;
        CHECK_EQ_F32(y[n], first - z);
        CHECK_EQ_F32(y[16 + n], 15 - first - z);
        CHECK_EQ_F32(y[32 + n], n < 8 ? 0.0f : 2.0f);
    }
    arrays.codes = made;
    ref_quantize(&spec, 3, 16, y, &arrays);
    CHECK_EQ_MEM(made, words, sizeof words);
}

/* The zeros of columns with ranges -c to 15 - c. */
TEST_CASE(HostRefWords, AwqZerosAreMadeInTheSameOrder)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
    spec.layout = QDNN_LAYOUT_AWQ;
    spec.zero_packed = true;
    float x[2 * 8], scale[8];
    uint32_t zero = 0xAAAAAAAA;
    for (int n = 0; n < 8; n++) {
        x[n] = (float)-n;
        x[8 + n] = (float)(15 - n);
    }
    ref_arrays arrays = {.scale = scale, .zero = &zero};
    ref_scale(&spec, 2, 8, x, &arrays);
    CHECK_EQ_U32(zero, 0x75316420);
}

/* ---- compressed-tensors, pack-quantized: weights [N, K], codes along K, zeros along N ---- */

TEST_CASE(HostRefWords, ZerosOfRowsArePackedAlongRows)
{
    ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
    spec.layout = QDNN_LAYOUT_WORDS_ROWS;
    spec.group_size = 2;
    spec.zero_packed = true;
    float scale[9 * 2], y[9 * 4];
    uint32_t words[9], made[9], zero[4] = {0x87654321, 0x00000000, 0x9, 0xF}; /* [words, groups] */
    for (int n = 0; n < 9; n++) {
        scale[2 * n] = scale[2 * n + 1] = 1;
        words[n] = 0xF0A5;
    }
    ref_arrays arrays = {.codes = words, .scale = scale, .zero = zero};
    CHECK_EQ_I64(ref_sizes_of(&spec, 9, 4).zero, 16);
    ref_dequantize(&spec, 9, 4, &arrays, y);
    for (int n = 0; n < 9; n++) {
        float first = (float)(n + 1), second = n == 8 ? 15 : 0;
        const float expected[4] = {5 - first, 10 - first, 0 - second, 15 - second};
        CHECK_EQ_MEM(y + 4 * n, expected, sizeof expected);
    }
    arrays.codes = made;
    ref_quantize(&spec, 9, 4, y, &arrays);
    CHECK_EQ_MEM(made, words, sizeof words);
}

/* Offset codes have offset zeros: the same bits, and the same values. */
TEST_CASE(HostRefWords, PackedZerosAreCodedAsCodesAre)
{
    static const struct {
        qdnnCodeKind_t kind;
        uint32_t zero; /* of the range -5 to 10 */
    } cases[] = {{QDNN_CODE_UNSIGNED, 5}, {QDNN_CODE_OFFSET, 5}, {QDNN_CODE_TWOS_COMPLEMENT, 5 ^ 8}};
    const float x[2] = {-5, 10};
    for (int i = 0; i < 3; i++) {
        ref_quant_spec spec = plain_spec(QDNN_DATA_I4, QDNN_ZERO_POINT);
        spec.code = cases[i].kind;
        spec.zero_packed = true;
        float scale, y[2];
        uint32_t zero = 0xAAAAAAAA;
        uint8_t codes;
        CHECK_EQ_I64(ref_sizes_of(&spec, 1, 2).zero, 4);
        flat_scale(&spec, x, 2, &scale, &zero);
        CHECK_EQ_U32(zero, cases[i].zero);
        flat_quantize(&spec, x, 2, &scale, &zero, &codes);
        CHECK_EQ_U32(codes, i < 2 ? 0xF0 : 0x78);
        flat_dequantize(&spec, &codes, 2, &scale, &zero, y);
        CHECK_EQ_MEM(y, x, sizeof x);
    }
}

/* ---- Every layout holds codes of every width, and nothing else ---- */

static void check_every_code(ref_quant_spec spec, int64_t rows, int64_t columns)
{
    static float x[40 * 40], y[40 * 40];
    static uint8_t codes[40 * 40 * 4];
    int64_t n = rows * columns, bytes = ref_sizes_of(&spec, rows, columns).codes, ones = 0, expected = 0;
    uint32_t state = (uint32_t)(rows * 64 + columns);
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        unsigned code = state >> 16 & ((1u << spec.bits) - 1);
        x[i] = (float)code;
        expected += __builtin_popcount(code);
    }
    memset(codes, 0xFF, sizeof codes);
    ref_arrays arrays = {.codes = codes};
    ref_quantize(&spec, rows, columns, x, &arrays);
    for (int64_t i = 0; i < bytes; i++)
        ones += __builtin_popcount(codes[i]);
    CHECK_EQ_I64(ones, expected); /* so padding is 0 */
    CHECK_EQ_U32(codes[bytes], 0xFF);
    ref_dequantize(&spec, rows, columns, &arrays, y);
    CHECK_EQ_MEM(y, x, (size_t)n * sizeof(float));
}

TEST_CASE(HostRefWords, EveryLayoutHoldsEveryWidth)
{
    static const int64_t shapes[][2] = {{1, 1}, {1, 40}, {40, 1}, {3, 5}, {33, 16}, {9, 37}, {40, 40}};
    for (int layout = QDNN_LAYOUT_BYTES; layout <= QDNN_LAYOUT_BLOCK; layout++)
        for (int bits = 2; bits <= 8; bits += bits == 6 ? 2 : 1)
            for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
                test_push_note("layout %d, %d bits, shape %zu", layout, bits, i);
                ref_quant_spec spec = plain_spec(QDNN_DATA_U8, QDNN_ZERO_NONE);
                spec.bits = bits;
                spec.code = QDNN_CODE_UNSIGNED;
                spec.layout = (qdnnLayout_t)layout;
                spec.no_scale = true;
                check_every_code(spec, shapes[i][0], shapes[i][1]);
                test_pop_note();
            }
}

/* ---- From one layout into another ---- */

TEST_CASE(HostRefWords, RepackedCodesKeepTheirNumbers)
{
    ref_quant_spec rows = plain_spec(QDNN_DATA_I4, QDNN_ZERO_NONE), bytes = rows, columns = rows;
    rows.layout = QDNN_LAYOUT_WORDS_ROWS;
    rows.code = QDNN_CODE_TWOS_COMPLEMENT;
    bytes.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    columns.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
    const uint32_t words[2] = {0x321, 0xFED}; /* 1 2 3 and -3 -2 -1 */
    uint8_t packed[3];
    uint32_t down[3], back[2];
    ref_repack(&rows, &bytes, 2, 3, words, packed); /* 9 A B 5 6 7, an offset of 8 */
    CHECK_EQ_MEM(packed, ((const uint8_t[3]){0x9A, 0xB5, 0x67}), 3);
    ref_repack(&bytes, &columns, 2, 3, packed, down);
    CHECK_EQ_MEM(down, ((const uint32_t[3]){0x59, 0x6A, 0x7B}), sizeof down);
    ref_repack(&columns, &rows, 2, 3, down, back);
    CHECK_EQ_MEM(back, words, sizeof back);
}
