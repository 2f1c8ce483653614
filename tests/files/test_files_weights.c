/* Quantized checkpoints: each scheme by bytes that are made here, and by the numbers that its own definition
 * gives them. */
#include "files/opened.h"
#include "host_ref/host_ref.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 64, N = 16, G = 32, GROUPS = K / G };

/* Arbitrary bytes. */
static void fill(void *data, size_t n, uint32_t seed)
{
    uint8_t *p = data;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

/* Scales in f16 or bf16 that are ordinary numbers. */
static void fill_scales(uint16_t *scales, int n, bool bf16)
{
    for (int i = 0; i < n; i++) {
        float s = 0.01f + 0.003f * (float)(i % 17);
        scales[i] = bf16 ? ref_f32_to_bf16(s) : ref_f32_to_f16(s);
    }
}

static unsigned bits_at(const uint32_t *words, int place, int bits)
{
    return words[place * bits / 32] >> (place * bits % 32) & ((1u << bits) - 1);
}

/* ---- GPTQ ---- */

typedef struct gptq {
    uint32_t words[K * 8 / 32 * N], zeros[GROUPS * N * 8 / 32];
    uint16_t scales[GROUPS * N];
    int32_t index[K];
} gptq;

typedef struct gptq_case {
    const char *name;
    int bits;
    const char *config;
    bool v2, act_order;
    qdnnWeights_t weights;
    const char *format;
} gptq_case;

static const gptq_case gptq_cases[] = {
    {"FourBits", 4, "\"bits\":4,\"group_size\":32", false, false, QDNN_WEIGHTS_GPTQ_4BIT, "gptq 4-bit g32"},
    {"V2", 4, "\"bits\":4,\"group_size\":32,\"checkpoint_format\":\"gptq_v2\"", true, false,
     QDNN_WEIGHTS_GPTQ_V2_4BIT, "gptq 4-bit g32 v2"},
    {"ActOrder", 4, "\"bits\":4,\"group_size\":32,\"desc_act\":true", false, true, QDNN_WEIGHTS_GPTQ_4BIT,
     "gptq 4-bit g32 act-order"},
    {"TwoBits", 2, "\"bits\":2,\"group_size\":32", false, false, QDNN_WEIGHTS_GPTQ_2BIT, "gptq 2-bit g32"},
    {"EightBits", 8, "\"bits\":8,\"group_size\":32", false, false, QDNN_WEIGHTS_GPTQ_8BIT, "gptq 8-bit g32"},
    {"OtherBitsThanMost", 4, "\"bits\":8,\"group_size\":64", false, false, QDNN_WEIGHTS_GPTQ_4BIT,
     "gptq 4-bit g32"},
    {"BitsByShape", 4, "\"sym\":false", false, false, QDNN_WEIGHTS_GPTQ_4BIT, "gptq 4-bit g32"},
};

/* Words [K * bits / 32, N]: column n is every N-th word; zeros run along N in their row of words. */
static float gptq_value(const gptq *q, const gptq_case *c, int k, int n)
{
    int group = q->index[k], place = k * c->bits;
    unsigned code = q->words[place / 32 * N + n] >> (place % 32) & ((1u << c->bits) - 1);
    unsigned zero = bits_at(q->zeros + group * N * c->bits / 32, n, c->bits);
    return ((float)code - (float)(zero + !c->v2)) * ref_f16_to_f32(q->scales[group * N + n]);
}

static void make_gptq(const gptq_case *c, gptq *q)
{
    fill(q->words, sizeof q->words, 1);
    fill(q->zeros, sizeof q->zeros, 2);
    fill_scales(q->scales, GROUPS * N, false);
    for (int k = 0; k < K; k++)
        q->index[k] = c->act_order ? (k * 7 + 3) % GROUPS : k / G;
}

static bytes gptq_file(const gptq_case *c, const gptq *q)
{
    st_maker s = {0};
    char config[256];
    snprintf(config, sizeof config, "{\"quantization_config\":\"{\\\"quant_method\\\":\\\"gptq\\\"}\"}");
    st_add(&s, "l.g_idx", "I32", K, 0, q->index, sizeof q->index);
    st_add(&s, "l.qweight", "I32", K * c->bits / 32, N, q->words, (size_t)(K * c->bits / 32 * N) * 4);
    st_add(&s, "l.qzeros", "I32", GROUPS, N * c->bits / 32, q->zeros,
           (size_t)(GROUPS * N * c->bits / 32) * 4);
    st_add(&s, "l.scales", "F16", GROUPS, N, q->scales, sizeof q->scales);
    return st_make(&s);
}

static void write_config(const opened *o, const char *method, const char *members)
{
    char config[512];
    snprintf(config, sizeof config, "{\"quantization_config\":{\"quant_method\":\"%s\"%s%s}}", method,
             *members ? "," : "", members);
    text_write(config, o->dir, "config.json");
}

TEST_ROWS(FilesWeights, Gptq, gptq_cases)
{
    const gptq_case *c = &gptq_cases[index];
    gptq q;
    opened o;
    qdnnFileWeight_t w;
    qdnnFileInfo_t info;
    float expected[K * N];
    make_gptq(c, &q);
    opened_make(&o, gptq_file(c, &q), "model.safetensors");
    write_config(&o, "gptq", c->config);
    for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++)
            expected[k * N + n] = gptq_value(&q, c, k, n);
    if (opened_open(&o, "") && find_weight(&o, "l.weight", &w)) {
        CHECK_EQ_STR(w.format, c->format);
        CHECK_EQ_I64(w.weights, c->weights);
        CHECK_EQ_I64(w.extent, G);
        CHECK(w.transposed && w.quantized);
        CHECK_EQ_I64(w.dims[0], K);
        CHECK_EQ_I64(w.dims[1], N);
        CHECK_EQ_I64(w.operands, c->act_order ? 4 : 3);
        CHECK_EQ_I64(w.operand[0].operand, QDNN_OPERAND_CODES);
        qdnnGetFileInfo(o.file, &info);
        CHECK_EQ_I64(info.weights, 1);
        for (int i = 0; i < info.tensors; i++) { /* a redundant g_idx belongs to it too */
            qdnnFileTensor_t t;
            CHECK(!qdnnGetFileTensor(o.file, i, &t));
            CHECK_EQ_I64(t.weight, 0);
        }
        check_values(&w, expected, K * N);
    }
    opened_close(&o);
}

/* Symmetric files that are labelled wrongly: their zeros tell. */
TEST_CASE(FilesWeights, GptqZerosTellTheVersion)
{
    const gptq_case *c = &gptq_cases[0];
    static const struct {
        uint32_t zeros;
        const char *config;
        qdnnWeights_t weights;
    } cases[] = {
        {0x77777777u, "\"bits\":4,\"sym\":false,\"checkpoint_format\":\"gptq_v2\"",
         QDNN_WEIGHTS_GPTQ_V2_4BIT},
        {0x77777777u, "\"bits\":4,\"checkpoint_format\":\"gptq_v2\"", QDNN_WEIGHTS_GPTQ_V2_4BIT},
        {0x66666666u, "\"bits\":4,\"sym\":true,\"checkpoint_format\":\"gptq_v2\"", QDNN_WEIGHTS_GPTQ_V2_4BIT},
        {0x88888888u, "\"bits\":4,\"sym\":true,\"checkpoint_format\":\"gptq\"", QDNN_WEIGHTS_GPTQ_V2_4BIT},
        {0x77777777u, "\"bits\":4,\"sym\":true,\"checkpoint_format\":\"gptq_v2\"", QDNN_WEIGHTS_GPTQ_4BIT},
        {0x88888888u, "\"bits\":4,\"sym\":false,\"checkpoint_format\":\"gptq\"", QDNN_WEIGHTS_GPTQ_4BIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gptq q;
        opened o;
        qdnnFileWeight_t w;
        make_gptq(c, &q);
        for (size_t k = 0; k < sizeof q.zeros / 4; k++)
            q.zeros[k] = cases[i].zeros;
        opened_make(&o, gptq_file(c, &q), "model.safetensors");
        write_config(&o, "gptq", cases[i].config);
        if (opened_open(&o, "") && find_weight(&o, "l.weight", &w))
            CHECK_EQ_I64(w.weights, cases[i].weights);
        opened_close(&o);
    }
}

/* Zeros of 3 bits cross words, so they are not looked at, whatever one word seems to say. */
TEST_CASE(FilesWeights, GptqZerosOfThreeBitsTellNothing)
{
    enum { COLUMNS = 32 };
    static const struct {
        uint32_t zeros;
        const char *config;
        qdnnWeights_t weights;
    } cases[] = {
        {0x24924924u, "\"bits\":3,\"sym\":true,\"checkpoint_format\":\"gptq\"", QDNN_WEIGHTS_GPTQ_3BIT},
        {0xDB6DB6DBu, "\"bits\":3,\"sym\":true,\"checkpoint_format\":\"gptq_v2\"", QDNN_WEIGHTS_GPTQ_V2_3BIT},
    };
    static const uint32_t words[3 * COLUMNS];
    uint16_t scales[COLUMNS];
    fill_scales(scales, COLUMNS, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t zeros[3] = {cases[i].zeros, cases[i].zeros, cases[i].zeros};
        st_maker s = {0};
        opened o;
        qdnnFileWeight_t w;
        st_add(&s, "l.qweight", "I32", 3, COLUMNS, words, sizeof words);
        st_add(&s, "l.qzeros", "I32", 1, 3, zeros, sizeof zeros);
        st_add(&s, "l.scales", "F16", 1, COLUMNS, scales, sizeof scales);
        opened_make(&o, st_make(&s), "model.safetensors");
        write_config(&o, "gptq", cases[i].config);
        if (opened_open(&o, "") && find_weight(&o, "l.weight", &w))
            CHECK_EQ_I64(w.weights, cases[i].weights);
        opened_close(&o);
    }
}

/* ---- AWQ ---- */

TEST_CASE(FilesWeights, Awq)
{
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    uint32_t words[K * N / 8], zeros[GROUPS * N / 8];
    uint16_t scales[GROUPS * N];
    float expected[K * N];
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    fill(words, sizeof words, 3);
    fill(zeros, sizeof zeros, 4);
    fill_scales(scales, GROUPS * N, false);
    for (int k = 0; k < K; k++)
        for (int c = 0; c < N / 8; c++)
            for (int i = 0; i < 8; i++) {
                int n = 8 * c + order[i], group = k / G;
                float q = (float)(words[k * N / 8 + c] >> 4 * i & 15) -
                          (float)(zeros[group * N / 8 + c] >> 4 * i & 15);
                expected[k * N + n] = q * ref_f16_to_f32(scales[group * N + n]);
            }
    st_add(&s, "l.qweight", "I32", K, N / 8, words, sizeof words);
    st_add(&s, "l.qzeros", "I32", GROUPS, N / 8, zeros, sizeof zeros);
    st_add(&s, "l.scales", "F16", GROUPS, N, scales, sizeof scales);
    opened_make(&o, st_make(&s), "model.safetensors");
    write_config(&o, "awq", "\"bits\":4,\"group_size\":32,\"version\":\"gemm\"");
    if (opened_open(&o, "") && find_weight(&o, "l.weight", &w)) {
        CHECK_EQ_STR(w.format, "awq 4-bit g32");
        CHECK_EQ_I64(w.weights, QDNN_WEIGHTS_AWQ);
        CHECK(w.transposed);
        check_values(&w, expected, K * N);
    }
    opened_close(&o);
}

/* ---- compressed-tensors: pack-quantized ---- */

static const struct {
    const char *name;
    int bits;
    bool zeros, channel;
    const char *format;
} packed_cases[] = {
    {"FourBits", 4, false, false, "pack-quantized 4-bit g32"},
    {"FourBitsZeros", 4, true, false, "pack-quantized 4-bit g32 zp"},
    {"EightBits", 8, false, false, "pack-quantized 8-bit g32"},
    {"EightBitsZeros", 8, true, false, "pack-quantized 8-bit g32 zp"},
    {"Channels", 4, false, true, "pack-quantized 4-bit g64"},
};

TEST_ROWS(FilesWeights, PackQuantized, packed_cases)
{
    int bits = packed_cases[index].bits, groups = packed_cases[index].channel ? 1 : GROUPS,
        words_in_row = K * bits / 32;
    bool has_zeros = packed_cases[index].zeros;
    uint32_t words[N * K * 8 / 32], zeros[N * 8 / 32 * GROUPS];
    uint16_t scales[N * GROUPS];
    float expected[N * K], middle = (float)(1 << (bits - 1));
    const int64_t shape[2] = {N, K};
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    fill(words, sizeof words, 5);
    fill(zeros, sizeof zeros, 6);
    fill_scales(scales, N * GROUPS, true);
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            int group = k / (K / groups), place = n * bits;
            unsigned zero = zeros[place / 32 * groups + group] >> place % 32 & ((1u << bits) - 1);
            float code = (float)bits_at(words + n * words_in_row, k, bits);
            expected[n * K + k] =
                (code - (has_zeros ? (float)zero : middle)) * ref_bf16_to_f32(scales[n * groups + group]);
        }
    st_add(&s, "l.weight_packed", "I32", N, words_in_row, words, (size_t)(N * words_in_row) * 4);
    st_add(&s, "l.weight_scale", "BF16", N, groups, scales, (size_t)(N * groups) * 2);
    st_add(&s, "l.weight_shape", "I64", 2, 0, shape, sizeof shape);
    if (has_zeros)
        st_add(&s, "l.weight_zero_point", "I32", N * bits / 32, groups, zeros,
               (size_t)(N * bits / 32 * groups) * 4);
    opened_make(&o, st_make(&s), "model.safetensors");
    write_config(&o, "compressed-tensors", "\"format\":\"pack-quantized\"");
    if (opened_open(&o, "") && find_weight(&o, "l.weight", &w)) {
        CHECK_EQ_STR(w.format, packed_cases[index].format);
        CHECK(!w.transposed);
        check_values(&w, expected, N * K);
    }
    opened_close(&o);
}

/* ---- FP4 with scales beside it ---- */

static float e2m1(unsigned code)
{
    static const float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return code & 8 ? -values[code & 7] : values[code & 7];
}

static const struct {
    const char *name;
    const char *codes, *scale, *scale_type, *global; /* names of the tensors */
    float global_value;
    bool reciprocal;
    int group;
    const char *format;
} fp4_cases[] = {
    {"ModelOpt", "l.weight", "l.weight_scale", "F8_E4M3", "l.weight_scale_2", 0.3f, false, 16,
     "modelopt nvfp4"},
    {"CompressedTensors", "l.weight_packed", "l.weight_scale", "F8_E4M3", "l.weight_global_scale", 8.0f, true,
     16, "nvfp4-pack-quantized"},
    {"Mxfp4", "l.weight_packed", "l.weight_scale", "U8", NULL, 1, false, 32, "mxfp4-pack-quantized"},
};

TEST_ROWS(FilesWeights, Fp4, fp4_cases)
{
    int group = fp4_cases[index].group, groups = K / group;
    uint8_t codes[N * K / 2], scales[N * K / 16];
    float expected[N * K], global = fp4_cases[index].global_value;
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    fill(codes, sizeof codes, 7);
    for (int i = 0; i < N * K / 16; i++)
        scales[i] = (uint8_t)(group == 16 ? 0x28 + i % 40 : 120 + i % 12);
    for (int i = 0; i < N * K; i++) {
        uint8_t scale = scales[i / group];
        float v = e2m1(codes[i / 2] >> 4 * (i % 2) & 15);
        v *= group == 16 ? ref_minifloat_to_f32(REF_E4M3, scale) : ref_e8m0_to_f32(scale);
        expected[i] = fp4_cases[index].reciprocal ? v / global : v * global;
    }
    st_add(&s, fp4_cases[index].codes, "U8", N, K / 2, codes, sizeof codes);
    st_add(&s, fp4_cases[index].scale, fp4_cases[index].scale_type, N, groups, scales, (size_t)(N * groups));
    if (fp4_cases[index].global)
        st_tensor(&s, fp4_cases[index].global, "F32", 0, NULL, &global, 4);
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && find_weight(&o, "l.weight", &w)) {
        CHECK_EQ_STR(w.format, fp4_cases[index].format);
        check_values(&w, expected, N * K);
    }
    opened_close(&o);
}

TEST_CASE(FilesWeights, GptOss)
{
    enum { E = 3 };
    uint8_t blocks[E * N * K / 2], scales[E * N * K / 32];
    float expected[E * N * K];
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    fill(blocks, sizeof blocks, 8);
    for (size_t i = 0; i < sizeof scales; i++)
        scales[i] = (uint8_t)(118 + i % 13);
    for (int i = 0; i < E * N * K; i++)
        expected[i] = e2m1(blocks[i / 2] >> 4 * (i % 2) & 15) * ref_e8m0_to_f32(scales[i / 32]);
    st_tensor(&s, "experts.up_proj_blocks", "U8", 4, (const int64_t[]){E, N, K / 32, 16}, blocks,
              sizeof blocks);
    st_tensor(&s, "experts.up_proj_scales", "U8", 3, (const int64_t[]){E, N, K / 32}, scales, sizeof scales);
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && find_weight(&o, "experts.up_proj", &w)) {
        CHECK_EQ_I64(w.rank, 3);
        CHECK_EQ_I64(w.dims[2], K);
        check_values(&w, expected, E * N * K);
    }
    opened_close(&o);
}

/* ---- FP8 and INT8 ---- */

static const struct {
    const char *name, *type, *scale_name;
    int rows, columns; /* of the scales; 0: a single number */
    bool zeros;
    const char *format;
} byte_cases[] = {
    {"Fp8Tensor", "F8_E4M3", "l.weight_scale", 0, 0, false, "fp8_e4m3 per-tensor"},
    {"Fp8Channel", "F8_E4M3", "l.weight_scale", N, 1, false, "fp8_e4m3 per-channel"},
    {"Fp8ChannelFlat", "F8_E5M2", "l.weight_scale", N, 0, false, "fp8_e5m2 per-channel"},
    {"Fp8Block", "F8_E4M3", "l.weight_scale_inv", 2, 2, false, "fp8_e4m3 128x128"},
    {"Int8Tensor", "I8", "l.weight_scale", 0, 0, false, "int8 per-tensor"},
    {"Int8Channel", "I8", "l.weight_scale", N, 1, false, "int8 per-channel"},
    {"Int8Groups", "I8", "l.weight_scale", N, 2, false, "int8 g32"},
    {"Int8Zeros", "I8", "l.weight_scale", N, 1, true, "int8 zp per-channel"},
};

TEST_ROWS(FilesWeights, Bytes, byte_cases)
{
    bool block = byte_cases[index].columns == 2 && byte_cases[index].rows == 2,
         fp8 = byte_cases[index].type[0] == 'F';
    int n = block ? 144 : N, k = block ? 160 : K, rows = byte_cases[index].rows,
        columns = byte_cases[index].columns;
    int across = rows == 0 ? n
                 : block   ? 128
                           : 1,
        along = columns == 2 ? block ? 128 : k / 2 : k, per_row = columns ? columns : 1;
    int count = (rows ? rows : 1) * per_row;
    uint8_t *codes = malloc((size_t)(n * k));
    float *expected = malloc((size_t)(n * k) * sizeof *expected), scales[N * 2];
    int8_t zeros[N];
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    fill(codes, (size_t)(n * k), 9);
    for (int i = 0; i < count; i++)
        scales[i] = 0.125f + 0.37f * (float)i;
    for (int i = 0; i < N; i++)
        zeros[i] = (int8_t)(5 * i - 40);
    for (int i = 0; i < n * k; i++) {
        int row = i / k, scale = row / across * per_row + i % k / along;
        ref_minifloat type = strcmp(byte_cases[index].type, "F8_E4M3") == 0 ? REF_E4M3 : REF_E5M2;
        float q = fp8 ? ref_minifloat_to_f32(type, codes[i]) : (float)(int8_t)codes[i];
        expected[i] = (q - (byte_cases[index].zeros ? (float)zeros[row] : 0)) * scales[scale];
        if (expected[i] != expected[i]) /* as the library writes a NaN */
            expected[i] = ref_f32_from_bits(REF_NAN_F32);
    }
    st_add(&s, "l.weight", byte_cases[index].type, n, k, codes, (size_t)(n * k));
    st_tensor(&s, byte_cases[index].scale_name, "F32",
              rows == 0      ? 0
              : columns == 0 ? 1
                             : 2,
              (const int64_t[]){rows, columns}, scales, (size_t)count * 4);
    if (byte_cases[index].zeros)
        st_add(&s, "l.weight_zero_point", "I8", N, 1, zeros, N);
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && find_weight(&o, "l.weight", &w)) {
        CHECK_EQ_STR(w.format, byte_cases[index].format);
        check_values(&w, expected, n * k);
    }
    opened_close(&o);
    free(codes);
    free(expected);
}

TEST_CASE(FilesWeights, Fp8WithoutScales)
{
    uint8_t codes[16];
    float expected[16];
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    for (int i = 0; i < 16; i++) {
        codes[i] = (uint8_t)(0x30 + i);
        expected[i] = ref_minifloat_to_f32(REF_E4M3, codes[i]);
    }
    st_add(&s, "cast.weight", "F8_E4M3", 2, 8, codes, 16);
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && find_weight(&o, "cast.weight", &w))
        check_values(&w, expected, 16);
    opened_close(&o);
}

/* ---- bitsandbytes ---- */

static const uint32_t nf4_bits[16] = {0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F,
                                      0xBDBA7871, 0x00000000, 0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A,
                                      0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000};
static const uint32_t fp4_bits[16] = {0x00000000, 0x3BAAAAAB, 0x3F2AAAAB, 0x3F800000, 0x3EAAAAAB, 0x3F000000,
                                      0x3E2AAAAB, 0x3E800000, 0x80000000, 0xBBAAAAAB, 0xBF2AAAAB, 0xBF800000,
                                      0xBEAAAAAB, 0xBF000000, 0xBE2AAAAB, 0xBE800000};

static const struct {
    const char *name;
    bool nf4, nested;
    const char *format;
} bnb_cases[] = {{"Nf4", true, false, "bitsandbytes nf4 g64"},
                 {"Fp4", false, false, "bitsandbytes fp4 g64"},
                 {"Nf4Nested", true, true, "bitsandbytes nf4 g64 nested"},
                 {"Fp4Nested", false, true, "bitsandbytes fp4 g64 nested"}};

TEST_ROWS(FilesWeights, Bitsandbytes, bnb_cases)
{
    enum { ROWS = 3, COLUMNS = 128, ELEMENTS = ROWS * COLUMNS, BLOCKS = ELEMENTS / 64 };
    bool nf4 = bnb_cases[index].nf4, nested = bnb_cases[index].nested;
    uint8_t codes[ELEMENTS / 2], absmax8[BLOCKS];
    float absmax[BLOCKS], map[16], nested_map[256], nested_absmax = 0.75f, expected[ELEMENTS];
    char state[256], name[64];
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    fill(codes, sizeof codes, 10);
    fill(absmax8, sizeof absmax8, 11);
    for (int i = 0; i < 16; i++)
        map[i] = ref_f32_from_bits((nf4 ? nf4_bits : fp4_bits)[i]);
    for (int i = 0; i < 256; i++)
        nested_map[i] = (float)(i - 127) / 128;
    for (int i = 0; i < BLOCKS; i++)
        absmax[i] = nested ? nested_map[absmax8[i]] * nested_absmax + 0.0625f : 0.5f + 0.1f * (float)i;
    for (int i = 0; i < ELEMENTS; i++)
        expected[i] = map[i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4] * absmax[i / 64];
    snprintf(state, sizeof state,
             "{\"quant_type\": \"%s\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [%d, %d]%s}",
             nf4 ? "nf4" : "fp4", ROWS, COLUMNS,
             nested ? ", \"nested_blocksize\": 256, \"nested_offset\": 0.0625" : "");
    snprintf(name, sizeof name, "l.weight.quant_state.bitsandbytes__%s", nf4 ? "nf4" : "fp4");
    st_add(&s, "l.weight", "U8", ELEMENTS / 2, 1, codes, sizeof codes);
    st_add(&s, "l.weight.absmax", nested ? "U8" : "F32", BLOCKS, 0, nested ? (void *)absmax8 : absmax,
           nested ? BLOCKS : BLOCKS * 4);
    st_add(&s, "l.weight.quant_map", "F32", 16, 0, map, sizeof map);
    st_add(&s, name, "U8", (int64_t)strlen(state), 0, state, strlen(state));
    if (nested) {
        st_add(&s, "l.weight.nested_absmax", "F32", 1, 0, &nested_absmax, 4);
        st_add(&s, "l.weight.nested_quant_map", "F32", 256, 0, nested_map, sizeof nested_map);
    }
    opened_make(&o, st_make(&s), "model.safetensors");
    write_config(&o, "bitsandbytes", "\"load_in_4bit\":true");
    if (opened_open(&o, "") && find_weight(&o, "l.weight", &w)) {
        CHECK_EQ_STR(w.format, bnb_cases[index].format);
        CHECK_EQ_I64(w.dims[0], ROWS);
        CHECK_EQ_I64(w.dims[1], COLUMNS);
        CHECK_EQ_I64(w.operands, nested ? 5 : 2);
        check_values(&w, expected, ELEMENTS);
    }
    opened_close(&o);
}
