/* The caller's floating-point environment changes no bit of the reference, and no call changes it. */
#include <string.h>

#include "host_ref/host_ref.h"
#include "support/foreign.h"
#include "test.h"

enum { ROWS = 4, COLUMNS = 64, N = ROWS * COLUMNS, RESULT = 4 * N };

/* Of all sizes: subnormal numbers and such whose products are subnormal; the same in every run. */
static void numbers(float *x)
{
    uint32_t bits = 12345;
    for (int i = 0; i < N; i++) {
        bits = bits * 1664525u + 1013904223u;
        uint32_t exponent = i % 4 == 0 ? 0 : i % 4 == 1 ? 60 : 120 + bits % 12;
        x[i] = ref_f32_from_bits((bits & 0x807FFFFFu) | exponent << 23);
    }
}

/* ---- Functions of one number ---- */

typedef float function(float x);
static function *const functions[] = {ref_exp,  ref_tanh,      ref_erf,     ref_sigmoid,
                                      ref_silu, ref_gelu_tanh, ref_gelu_erf};

static void each_function(const float *x, float *out)
{
    for (int i = 0; i < N; i++)
        out[i] = functions[i % 7](x[i]);
}

static void conversions(const float *x, float *out)
{
    for (int i = 0; i < N; i++) {
        uint32_t word = (uint32_t)ref_f32_to_f16(x[i]) << 16 | ref_f32_to_bf16(x[i]);
        word ^= ref_f32_to_minifloat((ref_minifloat)(i % 5), x[i]);
        out[i] = ref_f32_from_bits(word);
        out[N + i] = ref_f16_to_f32((uint16_t)word);
        out[2 * N + i] = ref_bf16_to_f32((uint16_t)(word >> 16));
        out[3 * N + i] = ref_minifloat_to_f32((ref_minifloat)(i % 5), word & 15);
    }
}

/* ---- Quantization ---- */

static void quantized(const ref_quant_spec *spec, const float *x, float *out)
{
    uint8_t codes[N * 4] = {0};
    float scale[N] = {0}, zero[N] = {0}, global = 0;
    const ref_arrays a = {.codes = codes, .scale = scale, .zero = zero, .global_scale = &global};
    if (spec->block == QDNN_BLOCK_NONE)
        ref_scale(spec, ROWS, COLUMNS, x, &a);
    ref_quantize(spec, ROWS, COLUMNS, x, &a);
    ref_dequantize(spec, ROWS, COLUMNS, &a, out);
    memcpy(out + N, codes, sizeof codes / 4);
    memcpy(out + 2 * N, scale, sizeof scale);
    memcpy(out + 3 * N, zero, sizeof zero);
}

static void int4_f16(const float *x, float *out)
{
    const ref_quant_spec spec = {.data = QDNN_DATA_F32,
                                 .storage = QDNN_DATA_I4,
                                 .group_size = 8,
                                 .scale = QDNN_SCALE_F16,
                                 .zero_kind = QDNN_ZERO_POINT,
                                 .zero = QDNN_DATA_U8,
                                 .floor = 1e-12f};
    quantized(&spec, x, out);
}

static void q4_0(const float *x, float *out)
{
    const ref_quant_spec spec = {.data = QDNN_DATA_F32, .block = QDNN_BLOCK_Q4_0};
    quantized(&spec, x, out);
}

/* ---- Sums and products ---- */

static void sums(const float *x, float *out)
{
    out[0] = ref_exact_sum(x, x, N);
    out[1] = ref_long_sum(x, NULL, N);
    out[2] = ref_long_sum(x, x, N);
    out[3] = ref_integer_scaled(16777217, 0.1f, 3e-45f);
    uint16_t halves[N];
    for (int i = 0; i < N; i++)
        halves[i] = (uint16_t)(i * 40503u % 0x3C00u);
    for (int family = 0; family < REF_TENSOR_FAMILIES; family++)
        out[4 + family] =
            ref_tensor_sum((ref_tensor_family)family, QDNN_DATA_F16, halves, QDNN_DATA_F16, halves, N);
}

static void product(const float *x, float *out)
{
    const ref_product p = {.m = ROWS,
                           .k = COLUMNS,
                           .outputs = ROWS,
                           .weights = {.data = QDNN_DATA_F32, .storage = QDNN_DATA_F32, .group_size = 1},
                           .x = QDNN_DATA_F32,
                           .y = QDNN_DATA_F32,
                           .x_stride = COLUMNS,
                           .y_stride = ROWS,
                           .activation = QDNN_ACTIVATION_SILU};
    const ref_product_arrays a = {.x = x, .weights = {.codes = (void *)x}, .y = out};
    ref_product_exact(&p, &a);
}

static void training(const float *x, float *out)
{
    const ref_train_spec spec = {.bits = 4, .group_size = 16, .decay = 0.9f, .gradient_factor = true};
    float state[N] = {0}, scale[N];
    for (int i = 0; i < N; i++)
        scale[i] = ref_f32_from_bits(0x3D800000u + (uint32_t)i * 0x54321u);
    ref_fake_quantize(&spec, N, x, state, out);
    ref_lsq_backward(&spec, N, x, scale, x, out + N, out + 2 * N);
}

static const struct {
    const char *name;
    void (*run)(const float *x, float *out);
} probes[] = {
    {"functions", each_function},
    {"conversions", conversions},
    {"int4 with f16 scales", int4_f16},
    {"q4_0", q4_0},
    {"sums", sums},
    {"product", product},
    {"training", training},
};

TEST_EACH(HostRefForeign, SameBits, foreign_count, foreign_name)
{
    static float x[N], expected[RESULT], got[RESULT];
    numbers(x);
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        memset(expected, 0, sizeof expected);
        memset(got, 0, sizeof got);
        probes[i].run(x, expected);
        test_push_note("%s", probes[i].name);
        foreign_begin(index);
        probes[i].run(x, got);
        foreign_end(index);
        CHECK_EQ_MEM(got, expected, sizeof got);
        test_pop_note();
    }
}
