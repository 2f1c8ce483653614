/* host_ref's model of tcgen05: answers worked out by hand, and ptxvm's own model on random numbers. */
#include <math.h>
#include <string.h>

#include "host_ref/host_ref.h"
#include "ptxvm/tensor.h"
#include "test.h"

/* 25 bits below the largest exponent: 1 + 2^-25 has lost its last bit when the sum is cut to 24, but two of them count. */
TEST_CASE(HostRefTcgen05, KeepsTwentyFiveBits)
{
    float a[8] = {1.0f, 0x1p-25f, 0x1p-25f}, b[8] = {1.0f, 1.0f, 1.0f};
    CHECK_EQ_F32(ref_tensor_tcgen05(QDNN_DATA_F32, a, b, 0.0f), 1.0f);
    a[3] = a[4] = 0x1p-25f;
    b[3] = b[4] = 1.0f;
    CHECK_EQ_F32(ref_tensor_tcgen05(QDNN_DATA_F32, a, b, 0.0f), 0x1.000002p0f);
    a[4] = 0x1p-26f; /* below the 25th bit */
    CHECK_EQ_F32(ref_tensor_tcgen05(QDNN_DATA_F32, a, b, 0.0f), 1.0f);
}

TEST_CASE(HostRefTcgen05, ScalesBytes)
{
    const uint8_t a[32] = {0x38, 0x40}, b[32] = {0x40, 0x40}, up[2] = {130, 126}, nan[2] = {255, 127};
    CHECK_EQ_F32(ref_tensor_tcgen05_f8f6f4(REF_E4M3, a, REF_E4M3, b, NULL, 1.0f), 7.0f);
    CHECK_EQ_F32(ref_tensor_tcgen05_f8f6f4(REF_E4M3, a, REF_E4M3, b, up, 1.0f), 25.0f);
    CHECK_EQ_U32(ref_f32_to_bits(ref_tensor_tcgen05_f8f6f4(REF_E4M3, a, REF_E4M3, b, nan, 1.0f)), 0x7FFFFFFF);
}

TEST_CASE(HostRefTcgen05, ScalesGroupsOfFour)
{
    uint8_t a[64] = {0}, b[64] = {0};
    const uint8_t a_scale[4] = {0x38, 0x40, 0x3C, 0x38}, b_scale[4] = {0x38, 0x38, 0x3C, 0xB8};
    a[0] = b[0] = 2;   /* 1 * 1 * 1 */
    a[20] = b[20] = 5; /* 3 * 3 * 2 */
    a[40] = 3;         /* 1.5 * -2 * 1.5 * 1.5 */
    b[40] = 12;
    a[63] = b[63] = 1; /* 0.5 * 0.5 * 1: the sign of a scale is ignored */
    CHECK_EQ_F32(ref_tensor_tcgen05_fp4(a, b, 4, true, a_scale, b_scale, 0.5f),
                 1.0f + 18.0f - 6.75f + 0.25f + 0.5f);
}

/* A scale that is NaN makes its group NaN, also one of zeros. */
TEST_CASE(HostRefTcgen05, ScalesThatAreNaN)
{
    const uint8_t zeros[64] = {0}, ones[4] = {0x38, 0x38, 0x38, 0x38}, powers[2] = {127, 127};
    CHECK_EQ_F32(ref_tensor_tcgen05_fp4(zeros, zeros, 4, true, ones, ones, 2.0f), 2.0f);
    CHECK_EQ_F32(ref_tensor_tcgen05_fp4(zeros, zeros, 2, false, powers, powers, 2.0f), 2.0f);
    for (int g = 0; g < 4; g++) {
        uint8_t scale[4] = {0x38, 0x38, 0x38, 0x38}, power[2] = {127, 127};
        scale[g] = 0x7F;
        power[g / 2] = 0xFF;
        CHECK(isnan(ref_tensor_tcgen05_fp4(zeros, zeros, 4, true, scale, ones, 2.0f)));
        CHECK(isnan(ref_tensor_tcgen05_fp4(zeros, zeros, 4, true, ones, scale, 2.0f)));
        CHECK(isnan(ref_tensor_tcgen05_fp4(zeros, zeros, 2, false, power, powers, 2.0f)));
        CHECK(isnan(ref_tensor_tcgen05_fp4(zeros, zeros, 2, false, powers, power, 2.0f)));
    }
}

static uint32_t random_word(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state ^ *state >> 15;
}

typedef struct model_case {
    const char *name;
    unsigned kind;
    pvm_type a, b;
    int ref_a, ref_b; /* qdnnDataType_t, or ref_minifloat */
    int k, scales;
    bool ue4m3;
} model_case;

static const model_case cases[] = {
    {"f16", M_kind__f16, T_F16, T_F16, QDNN_DATA_F16, QDNN_DATA_F16, 16, 0, false},
    {"bf16", M_kind__f16, T_BF16, T_BF16, QDNN_DATA_BF16, QDNN_DATA_BF16, 16, 0, false},
    {"tf32", M_kind__tf32, T_TF32, T_TF32, QDNN_DATA_F32, QDNN_DATA_F32, 8, 0, false},
    {"e4m3", M_kind__f8f6f4, T_E4M3, T_E4M3, REF_E4M3, REF_E4M3, 32, 0, false},
    {"e5m2_e4m3", M_kind__f8f6f4, T_E5M2, T_E4M3, REF_E5M2, REF_E4M3, 32, 0, false},
    {"e2m3_e3m2", M_kind__f8f6f4, T_E2M3, T_E3M2, REF_E2M3, REF_E3M2, 32, 0, false},
    {"e2m1_e5m2", M_kind__f8f6f4, T_E2M1, T_E5M2, REF_E2M1, REF_E5M2, 32, 0, false},
    {"mx_e4m3_e2m1", M_kind__mxf8f6f4, T_E4M3, T_E2M1, REF_E4M3, REF_E2M1, 32, 1, false},
    {"mx_e5m2", M_kind__mxf8f6f4, T_E5M2, T_E5M2, REF_E5M2, REF_E5M2, 32, 1, false},
    {"mxf4", M_kind__mxf4, T_E2M1, T_E2M1, REF_E2M1, REF_E2M1, 64, 2, false},
    {"nvf4", M_kind__mxf4nvf4, T_E2M1, T_E2M1, REF_E2M1, REF_E2M1, 64, 4, true},
    {"nvf4_ue8m0", M_kind__mxf4nvf4, T_E2M1, T_E2M1, REF_E2M1, REF_E2M1, 64, 4, false},
};

static int width_of(pvm_type type)
{
    return type == T_E2M1 ? 4 : type == T_E2M3 || type == T_E3M2 ? 6 : 8;
}

/* Bytes and less of any value, infinities and NaN among them; wider types mostly near 1, so that sums meet. */
static uint32_t random_bits(const model_case *c, pvm_type type, uint32_t *state)
{
    uint32_t x = random_word(state) << 16 ^ random_word(state);
    if (c->k >= 32)
        return x >> 8 &
               (type == T_E4M3 || type == T_E5M2 ? x % 41 ? 0xBF : 0xFF : (1u << width_of(type)) - 1);
    if (x % 61 == 0)
        return c->k == 16 ? x >> 16 : x;
    if (type == T_F16)
        return (x >> 7 & 0x83FF) | (10 + x % 12) << 10;
    return type == T_BF16 ? (x >> 7 & 0x807F) | (120 + x % 14) << 7 : (x & 0x807FFFFF) | (120 + x % 14) << 23;
}

typedef struct line {
    uint32_t bits[64];
    uint8_t codes[64], scales[4];
    uint16_t halves[16];
    float singles[8];
} line;

static void fill_line(const model_case *c, pvm_type type, uint32_t *state, line *l)
{
    for (int i = 0; i < c->k; i++) {
        uint32_t x = random_bits(c, type, state);
        l->bits[i] = type == T_TF32 ? x >> 13 : x; /* ptxvm takes tf32 without its low 13 bits */
        l->codes[i] = (uint8_t)x;
        if (c->k == 16)
            l->halves[i] = (uint16_t)x;
        if (c->k == 8)
            l->singles[i] = ref_f32_from_bits(x);
    }
    for (int s = 0; s < 4; s++) {
        uint32_t x = random_word(state);
        l->scales[s] = (uint8_t)(x % 97 == 0 ? x >> 8 : c->ue4m3 ? x >> 8 & 0xFF : 115 + x % 24);
    }
}

static float reference(const model_case *c, const line *a, const line *b, float start)
{
    const uint8_t scales[2] = {a->scales[0], b->scales[0]};
    if (c->k == 64)
        return ref_tensor_tcgen05_fp4(a->codes, b->codes, c->scales, c->ue4m3, a->scales, b->scales, start);
    if (c->k == 32)
        return ref_tensor_tcgen05_f8f6f4((ref_minifloat)c->ref_a, a->codes, (ref_minifloat)c->ref_b, b->codes,
                                         c->scales ? scales : NULL, start);
    return ref_tensor_tcgen05((qdnnDataType_t)c->ref_a, c->k == 8 ? (const void *)a->singles : a->halves,
                              c->k == 8 ? (const void *)b->singles : b->halves, start);
}

TEST_ROWS(HostRefTcgen05, LikePtxvm, cases)
{
    const model_case *c = &cases[index];
    const tensor_tcgen05 what = {.kind = c->kind,
                                 .dtype = T_F32,
                                 .atype = c->a,
                                 .btype = c->b,
                                 .n = 8,
                                 .scales = c->scales,
                                 .scale_ue4m3 = c->ue4m3};
    tensor_op op;
    uint32_t state = 4711 + (uint32_t)index;
    REQUIRE(tensor_find_tcgen05(&what, (pvm_target){100, 'a'}, &op));
    for (int round = 0; round < 100; round++) {
        _Alignas(32) uint32_t a[16 * 64], b[8 * 64], d[16 * 8];
        static line rows[16], columns[8];
        uint8_t a_scales[16][4], b_scales[8][4];
        float start[16 * 8];
        for (int i = 0; i < 16; i++) {
            fill_line(c, c->a, &state, &rows[i]);
            memcpy(a + i * c->k, rows[i].bits, sizeof *a * (size_t)c->k);
            memcpy(a_scales[i], rows[i].scales, 4);
        }
        for (int j = 0; j < 8; j++) {
            fill_line(c, c->b, &state, &columns[j]);
            for (int k = 0; k < c->k; k++)
                b[k * 8 + j] = columns[j].bits[k];
            memcpy(b_scales[j], columns[j].scales, 4);
        }
        for (int i = 0; i < 16 * 8; i++) {
            uint32_t x = random_word(&state);
            d[i] = round % 3 ? (x & 0x807FFFFF) | (118 + x % 16) << 23 : round % 2 ? 0x80000000 : 0;
            start[i] = ref_f32_from_bits(d[i]);
        }
        if (c->scales)
            tensor_multiply_scaled(&op, a, b, d, (const uint8_t(*)[4])a_scales,
                                   (const uint8_t(*)[4])b_scales);
        else
            tensor_multiply(&op, a, b, d);
        for (int i = 0; i < 16 * 8; i++)
            if (!CHECK_EQ_U32(ref_f32_to_bits(reference(c, &rows[i / 8], &columns[i % 8], start[i])), d[i]))
                return;
    }
}
