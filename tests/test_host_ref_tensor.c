/* host_ref's tensor cores: results that GPUs gave, and answers worked out by hand from docs/numerics.md. */
#include "host_ref/host_ref.h"
#include "support/silicon.h"
#include "test.h"

#include <math.h>

/* ---- Results of GPUs ---- */

static qdnnDataType_t data_type_of(pvm_type type)
{
    switch (type) {
    case T_F16:
        return QDNN_DATA_F16;
    case T_BF16:
        return QDNN_DATA_BF16;
    case T_E4M3:
        return QDNN_DATA_F8E4M3;
    default:
        return (qdnnDataType_t)0; /* the mode does not use it */
    }
}

static void narrow(qdnnDataType_t type, const uint32_t *from, int count, void *to)
{
    for (int i = 0; i < count; i++)
        if (type == QDNN_DATA_F8E4M3)
            ((uint8_t *)to)[i] = (uint8_t)from[i];
        else
            ((uint16_t *)to)[i] = (uint16_t)from[i];
}

TEST_EACH(HostRefTensorSilicon, NoneOfTheSetIsWrong, silicon_set_count, silicon_set_name)
{
    const silicon_set *set = &silicon_sets[index];
    const qdnnDataType_t type = data_type_of(set->type);
    silicon_data data;
    int wrong = 0;
    if (!type || !ref_tensor_has(set->sm, type))
        SKIP("mode tensor does not use %s of sm_%d", set->type_name, set->sm);
    if (!silicon_load(set, &data))
        SKIP("no silicon set %s/%s (QDNN_SILICON_DIR)", set->gpu, set->type_name);
    for (int line = 0; line < SILICON_LINES; line++) {
        uint16_t a[32], b[32];
        narrow(type, data.a + line * set->k, set->k, a);
        narrow(type, data.b + line * set->k, set->k, b);
        float d = ref_tensor_mma(ref_tensor_family_of(set->sm), type, a, type, b, set->k,
                                 ref_f32_from_bits(data.c[line]));
        wrong += ref_f32_to_bits(d) != data.d32[line];
    }
    CHECK_EQ_I64(wrong, 0);
    silicon_free(&data);
}

/* The assembler makes fp8 instructions for sm_100 of f16 ones: a set of fp8 results there is one of the f16 cores. */
static float fp8_by_f16(const uint32_t *a, const uint32_t *b, float c)
{
    float sum = 0.0f;
    for (int half = 0; half < 4; half += 2) {
        uint16_t x[16], w[16];
        for (int i = 0; i < 16; i++) {
            const int k = i / 2 * 4 + half + i % 2;
            x[i] = ref_f32_to_f16(ref_minifloat_to_f32(REF_E4M3, a[k]));
            w[i] = ref_f32_to_f16(ref_minifloat_to_f32(REF_E4M3, b[k]));
        }
        sum = ref_tensor_mma(REF_TENSOR_SM100, QDNN_DATA_F16, x, QDNN_DATA_F16, w, 16, sum);
    }
    return sum + c;
}

TEST_CASE(HostRefTensorSilicon, HalvesOfB200)
{
    for (int i = 0; i < silicon_n_sets; i++) {
        const silicon_set *set = &silicon_sets[i];
        silicon_data data;
        int wrong = 0;
        if (set->sm != 100 || set->type != T_E4M3)
            continue;
        if (!silicon_load(set, &data))
            SKIP("no silicon set %s/%s (QDNN_SILICON_DIR)", set->gpu, set->type_name);
        for (int line = 0; line < SILICON_LINES; line++)
            wrong += ref_f32_to_bits(fp8_by_f16(data.a + line * set->k, data.b + line * set->k,
                                                ref_f32_from_bits(data.c[line]))) != data.d32[line];
        CHECK_EQ_I64(wrong, 0);
        silicon_free(&data);
    }
}

/* ---- By hand ---- */

static uint32_t f16_mma(ref_tensor_family family, const float *a, const float *b, int k, float c)
{
    uint16_t x[16], w[16];
    for (int i = 0; i < k; i++) {
        x[i] = ref_f32_to_f16(a[i]);
        w[i] = ref_f32_to_f16(b[i]);
    }
    return ref_f32_to_bits(ref_tensor_mma(family, QDNN_DATA_F16, x, QDNN_DATA_F16, w, k, c));
}

/* 24 or 25 bits below the largest exponent are kept of each addend, and each is cut by itself. */
TEST_CASE(HostRefTensor, AddendsAreCutOneByOne)
{
    const float tiny[4] = {0x1p-12f, 0x1p-12f, 0x1p-12f, 0x1p-12f},
                tinier[4] = {0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f};
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM80, tiny, tiny, 1, 1.0f), 0x3F800000); /* 1 + 2^-24, toward zero */
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM80, tiny, tiny, 4, 1.0f), 0x3F800002);
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM80, tiny, tinier, 4, 1.0f), 0x3F800000); /* 2^-25 is lost four times */
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM75, tiny, tinier, 4, 1.0f), 0x3F800000);
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM90, tiny, tinier, 4, 1.0f), 0x3F800001);
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM100, tiny, tinier, 4, 1.0f), 0x3F800001);
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM120, tiny, tinier, 4, 1.0f), 0x3F800001);
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM90, tiny, tinier, 4, -1.0f), 0xBF7FFFFE);
}

/* Sixteen products at once, or eight and then eight: the first sum is rounded in between. */
TEST_CASE(HostRefTensor, OperationsFollowEachOther)
{
    float a[16] = {0}, b[16] = {0};
    for (int i = 0; i < 16; i++)
        a[i] = b[i] = 0x1p-12f;
    a[0] = 1.0f, b[0] = 1.0f; /* 1 + 7 * 2^-24 -> 1 + 3 * 2^-23; + 8 * 2^-24 -> 1 + 7 * 2^-23 */
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM80, a, b, 16, 0.0f), 0x3F800007);
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM90, a, b, 16, 0.0f), 0x3F800007);
    a[8] = 0.0f; /* 7 and 7 make 3 and 3; 14 at once make 7 */
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM80, a, b, 16, 0.0f), 0x3F800006);
    CHECK_EQ_U32(f16_mma(REF_TENSOR_SM90, a, b, 16, 0.0f), 0x3F800007);
}

TEST_CASE(HostRefTensor, SpecialValues)
{
    const float inf[2] = {INFINITY, INFINITY}, one[2] = {1.0f, -1.0f}, zero[2] = {0.0f, 0.0f},
                large[2] = {65504.0f, 65504.0f};
    for (int family = 0; family < REF_TENSOR_FAMILIES; family++) {
        ref_tensor_family f = (ref_tensor_family)family;
        CHECK_EQ_U32(f16_mma(f, inf, one, 1, 0.0f), 0x7F800000);
        CHECK_EQ_U32(f16_mma(f, inf, one, 2, 0.0f), 0x7FFFFFFF);
        CHECK_EQ_U32(f16_mma(f, inf, zero, 1, 0.0f), 0x7FFFFFFF);
        CHECK_EQ_U32(f16_mma(f, one, zero, 2, ref_f32_from_bits(0xFFC00001)), 0x7FFFFFFF);
        CHECK_EQ_U32(f16_mma(f, large, large, 2, -INFINITY), 0xFF800000);
        CHECK_EQ_U32(f16_mma(f, large, large, 2, 0x1.fffffep127f), 0x7F7FFFFF); /* cut away */
        CHECK_EQ_U32(f16_mma(f, one, zero, 2, -0.0f), 0);                       /* +0 among the products */
        CHECK_EQ_U32(f16_mma(f, one, one, 2, -2.0f), 0);
    }
}

TEST_CASE(HostRefTensor, TooLargeIsInfinite)
{
    const uint16_t x[1] = {ref_f32_to_bf16(0x1p64f)}, w[1] = {ref_f32_to_bf16(0x1p63f)};
    for (int family = REF_TENSOR_SM80; family < REF_TENSOR_FAMILIES; family++) {
        ref_tensor_family f = (ref_tensor_family)family;
        CHECK_EQ_F32(ref_tensor_mma(f, QDNN_DATA_BF16, x, QDNN_DATA_BF16, w, 1, 0.0f), 0x1p127f);
        CHECK_EQ_F32(ref_tensor_mma(f, QDNN_DATA_BF16, x, QDNN_DATA_BF16, w, 1, 0x1p127f), INFINITY);
    }
}

/* Strips are summed by themselves and joined by IEEE additions, to nearest. */
TEST_CASE(HostRefTensor, StripsAreJoinedInOrder)
{
    enum { K = 512 + 16 };
    uint16_t x[K] = {0}, w[K] = {0};
    x[0] = w[0] = ref_f32_to_f16(1.0f);
    x[512] = w[512] = ref_f32_to_f16(0x1p-12f);
    x[513] = ref_f32_to_f16(0x1p-12f), w[513] = ref_f32_to_f16(0x1p-14f);
    for (int family = 0; family < REF_TENSOR_FAMILIES;
         family++) { /* 1 + (2^-24 + 2^-26) is above the midpoint */
        ref_tensor_family f = (ref_tensor_family)family;
        CHECK_EQ_F32(ref_tensor_sum(f, QDNN_DATA_F16, x, QDNN_DATA_F16, w, K), 0x1.000002p0f);
        CHECK_EQ_F32(ref_tensor_sum(f, QDNN_DATA_F16, x, QDNN_DATA_F16, w, 513), 1.0f); /* a tie, to even */
        CHECK_EQ_U32(ref_f32_to_bits(ref_tensor_sum(f, QDNN_DATA_F16, x, QDNN_DATA_F16, w, 0)), 0);
    }
}

/* Fewer bits on sm_89 with fp8: 13 below the largest exponent, and 13 in the result. */
TEST_CASE(HostRefTensor, BytesOfAda)
{
    const uint8_t a[2] = {0x38, 0x01} /* 1 and 2^-9 */, b[2] = {0x38, 0x18} /* 1 and 2^-4 */;
    CHECK_EQ_F32(ref_tensor_mma(REF_TENSOR_SM80, QDNN_DATA_F8E4M3, a, QDNN_DATA_F8E4M3, b, 2, 0.0f),
                 0x1.0008p0f);
    CHECK_EQ_F32(ref_tensor_mma(REF_TENSOR_SM80, QDNN_DATA_F8E4M3, a, QDNN_DATA_F8E4M3, b, 2, 2.0f), 3.0f);
    CHECK_EQ_F32(ref_tensor_mma(REF_TENSOR_SM120, QDNN_DATA_F8E4M3, a, QDNN_DATA_F8E4M3, b, 2, 2.0f),
                 0x1.8004p1f);
}

/* FP8 with FP8. The second instruction adds 2^-13 to 2: beyond the 13 bits of sm_89, within those of all others. Then
 * alpha * (S * x_scale); (alpha * S) * x_scale would end in 68. */
TEST_CASE(HostRefTensor, ProductsOfFp8)
{
    enum { K = 33 };
    static const int sms[] = {75, 80, 86, 88, 89, 90, 100, 103, 120, 121};
    const float x_scale = 0.3f, alpha = 1.3f;
    uint8_t x[K] = {0x38, 0x38}, w[K] = {0x3C, 0x3C}; /* 1 in E4M3, 1 in E5M2 */
    x[32] = 0x01, w[32] = 0x2C;                       /* 2^-9, 2^-4 */
    for (size_t i = 0; i < sizeof sms / sizeof sms[0]; i++) {
        float y = 0;
        ref_product p = {.m = 1,
                         .k = K,
                         .outputs = 1,
                         .weights = {.storage = QDNN_DATA_F8E5M2,
                                     .data = QDNN_DATA_F32,
                                     .group_size = 1,
                                     .no_scale = true},
                         .x = QDNN_DATA_F8E4M3,
                         .y = QDNN_DATA_F32,
                         .x_stride = K,
                         .y_stride = 1};
        ref_product_arrays a = {.x = x, .weights = {.codes = w}, .alpha = &alpha, .y = &y};
        ref_product_tensor_on(&p, &a, sms[i]);
        CHECK_EQ_F32(y, sms[i] == 89 ? 2.0f : 0x1.0004p1f);
        p.alpha = QDNN_ALPHA_COLUMN;
        a.x_scale = &x_scale;
        ref_product_tensor_on(&p, &a, sms[i]);
        CHECK_EQ_F32(y, sms[i] == 89 ? 0x1.8f5c2ap-1f : 0x1.8f6266p-1f);
    }
}

TEST_CASE(HostRefTensor, HowSureEachSmIs)
{
    static const struct {
        int sm;
        ref_tensor_family family;
        ref_standing standing;
        bool bf16, bytes;
    } rows[] = {{75, REF_TENSOR_SM75, REF_STANDING_PUBLISHED, false, false},
                {80, REF_TENSOR_SM80, REF_STANDING_PUBLISHED, true, false},
                {88, REF_TENSOR_SM80, REF_STANDING_ASSUMED, true, false},
                {89, REF_TENSOR_SM80, REF_STANDING_PUBLISHED, true, true},
                {90, REF_TENSOR_SM90, REF_STANDING_MEASURED, true, false},
                {100, REF_TENSOR_SM100, REF_STANDING_MEASURED, true, false},
                {103, REF_TENSOR_SM100, REF_STANDING_ASSUMED, true, false},
                {110, REF_TENSOR_SM100, REF_STANDING_ASSUMED, true, false},
                {120, REF_TENSOR_SM120, REF_STANDING_PUBLISHED, true, true},
                {121, REF_TENSOR_SM120, REF_STANDING_PUBLISHED, true, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ_I64(ref_tensor_family_of(rows[i].sm), rows[i].family);
        CHECK_EQ_I64(ref_tensor_standing(rows[i].sm, QDNN_DATA_F16), rows[i].standing);
        CHECK(ref_tensor_has(rows[i].sm, QDNN_DATA_F16));
        CHECK_EQ_I64(ref_tensor_has(rows[i].sm, QDNN_DATA_BF16), rows[i].bf16);
        CHECK_EQ_I64(ref_tensor_has(rows[i].sm, QDNN_DATA_F8E4M3), rows[i].bytes);
    }
}
