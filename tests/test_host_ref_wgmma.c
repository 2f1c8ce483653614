/* host_ref's model of wgmma: results of GPUs, answers worked out by hand, and ptxvm's own model on random numbers. */
#include "host_ref/host_ref.h"
#include "ptxvm/tensor.h"
#include "support/silicon.h"
#include "test.h"

TEST_CASE(HostRefWgmma, NoneOfTheSiliconSetIsWrong)
{
    for (int i = 0; i < silicon_n_sets; i++) {
        const silicon_set *set = &silicon_sets[i];
        const qdnnDataType_t type = set->type == T_E5M2 ? QDNN_DATA_F8E5M2 : QDNN_DATA_F8E4M3;
        silicon_data data;
        int wrong = 0;
        if (!set->is_wgmma)
            continue;
        if (!silicon_load(set, &data))
            SKIP("no silicon set %s/%s (QDNN_SILICON_DIR)", set->gpu, set->type_name);
        for (int line = 0; line < SILICON_LINES; line++) {
            uint8_t a[32], b[32];
            for (int k = 0; k < 32; k++) {
                a[k] = (uint8_t)data.a[line * set->k + k];
                b[k] = (uint8_t)data.b[line * set->k + k];
            }
            wrong += ref_f32_to_bits(ref_tensor_wgmma(type, a, type, b, 0.0f)) != data.d32[line];
        }
        CHECK_EQ_I64(wrong, 0);
        silicon_free(&data);
    }
}

/* 1 + 2^-13 keeps its last bit, 1 + 2^-14 does not: 13 bits below the largest exponent. */
TEST_CASE(HostRefWgmma, KeepsThirteenBitsOfBytes)
{
    uint8_t a[32] = {0x38, 0x08}, b[32] = {0x38, 0x08}; /* e4m3: 1 and 2^-6 */
    CHECK_EQ_I64(ref_tensor_wgmma_depth(QDNN_DATA_F8E4M3), 32);
    CHECK_EQ_F32(ref_tensor_wgmma(QDNN_DATA_F8E4M3, a, QDNN_DATA_F8E4M3, b, 0.0f), 0x1.001p0f);
    CHECK_EQ_F32(ref_tensor_wgmma(QDNN_DATA_F8E4M3, a, QDNN_DATA_F8E4M3, b, 0x1p-13f), 0x1.0018p0f);
    CHECK_EQ_F32(ref_tensor_wgmma(QDNN_DATA_F8E4M3, a, QDNN_DATA_F8E4M3, b, 0x1p-14f), 0x1.001p0f);
    CHECK_EQ_F32(ref_tensor_wgmma(QDNN_DATA_F8E4M3, a, QDNN_DATA_F8E4M3, b, 2.0f), 0x1.8008p1f);
}

TEST_CASE(HostRefWgmma, DropsBitsOfTf32)
{
    float a[8] = {0x1.003ffep0f}, b[8] = {1.0f};
    CHECK_EQ_I64(ref_tensor_wgmma_depth(QDNN_DATA_F32), 8);
    CHECK_EQ_F32(ref_tensor_wgmma(QDNN_DATA_F32, a, QDNN_DATA_F32, b, 0.0f), 1.0f);
}

typedef struct model_case {
    const char *name;
    pvm_type a, b;
    qdnnDataType_t ref_a, ref_b;
    pvm_mod shape;
    int bytes, k;
} model_case;

static const model_case cases[] = {
    {"f16", T_F16, T_F16, QDNN_DATA_F16, QDNN_DATA_F16, M_m64n8k16, 2, 16},
    {"bf16", T_BF16, T_BF16, QDNN_DATA_BF16, QDNN_DATA_BF16, M_m64n8k16, 2, 16},
    {"tf32", T_TF32, T_TF32, QDNN_DATA_F32, QDNN_DATA_F32, M_m64n8k8, 4, 8},
    {"e4m3", T_E4M3, T_E4M3, QDNN_DATA_F8E4M3, QDNN_DATA_F8E4M3, M_m64n8k32, 1, 32},
    {"e5m2", T_E5M2, T_E5M2, QDNN_DATA_F8E5M2, QDNN_DATA_F8E5M2, M_m64n8k32, 1, 32},
    {"e4m3_e5m2", T_E4M3, T_E5M2, QDNN_DATA_F8E4M3, QDNN_DATA_F8E5M2, M_m64n8k32, 1, 32},
};

static uint32_t random_word(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state ^ *state >> 15;
}

/* Bytes of any value, infinities and NaN among them; wider types mostly near 1, so that sums meet. */
static uint32_t random_bits(const model_case *c, pvm_type type, uint32_t *state)
{
    uint32_t x = random_word(state) << 16 ^ random_word(state);
    if (c->bytes == 1)
        return x >> 8 & (x % 5 ? 0xBF : 0xFF);
    if (x % 61 == 0)
        return c->bytes == 2 ? x >> 16 : x;
    if (type == T_F16)
        return (x >> 7 & 0x83FF) | (10 + x % 12) << 10;
    return type == T_BF16 ? (x >> 7 & 0x807F) | (120 + x % 14) << 7 : (x & 0x807FFFFF) | (120 + x % 14) << 23;
}

static void put(uint8_t *array, int i, int bytes, uint32_t bits)
{
    for (int b = 0; b < bytes; b++)
        array[i * bytes + b] = (uint8_t)(bits >> 8 * b);
}

/* ptxvm takes tf32 without its low 13 bits. */
static uint32_t element(pvm_type type, uint32_t bits)
{
    return type == T_TF32 ? bits >> 13 : bits;
}

TEST_ROWS(HostRefWgmma, LikePtxvm, cases)
{
    const model_case *c = &cases[index];
    pvm_inst inst = {.op = OP_wgmma, .guard = -1};
    tensor_op op;
    uint32_t state = 4711 + (uint32_t)index;
    inst.mod[S_SUB] = M_mma_async;
    inst.mod[S_SHAPE] = (uint16_t)c->shape;
    inst.mod[S_TYPE] = M_TYPE(T_F32);
    inst.mod[S_TYPE2] = (uint16_t)M_TYPE(c->a);
    inst.mod[S_TYPE3] = (uint16_t)M_TYPE(c->b);
    REQUIRE(tensor_find(&inst, (pvm_target){90, 'a'}, &op));
    for (int round = 0; round < 200; round++) {
        _Alignas(32) uint32_t a[16 * 32], b[8 * 32], d[16 * 8];
        uint8_t row[16][32], column[8][32];
        float start[16 * 8];
        for (int i = 0; i < 16 * c->k; i++) {
            uint32_t bits = random_bits(c, c->a, &state);
            a[i] = element(c->a, bits);
            put(row[i / c->k], i % c->k, c->bytes, bits);
        }
        for (int i = 0; i < 8 * c->k; i++) {
            uint32_t bits = random_bits(c, c->b, &state);
            b[i % c->k * 8 + i / c->k] = element(c->b, bits);
            put(column[i / c->k], i % c->k, c->bytes, bits);
        }
        for (int i = 0; i < 16 * 8; i++) {
            uint32_t x = random_word(&state);
            d[i] = round % 3 ? (x & 0x807FFFFF) | (118 + x % 16) << 23 : 0;
            start[i] = ref_f32_from_bits(d[i]);
        }
        tensor_multiply(&op, a, b, d);
        for (int i = 0; i < 16 * 8; i++) {
            float e = ref_tensor_wgmma(c->ref_a, row[i / 8], c->ref_b, column[i % 8], start[i]);
            if (!CHECK_EQ_U32(ref_f32_to_bits(e), d[i]))
                return;
        }
    }
}
