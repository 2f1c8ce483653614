/* f16 and bf16 conversions of the host reference, each value of each type, against the definition of the
 * format in doubles; and where f32 values between two neighbours go. */
#include "test_host_ref.h"

#include <stdio.h>

typedef struct {
    const char *name;
    int fraction_bits, exponent_bits;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
} half_type;

static const half_type half_types[] = {
    {"f16", 10, 5, ref_f16_to_f32, ref_f32_to_f16},
    {"bf16", 7, 8, ref_bf16_to_f32, ref_f32_to_bf16},
};

/* IEEE 754: magnitude bits of a finite value; the pattern of infinity reads as the next power of two. */
static double magnitude_of(const half_type *t, unsigned magnitude)
{
    int bias = (1 << (t->exponent_bits - 1)) - 1;
    int exponent = (int)(magnitude >> t->fraction_bits);
    int fraction = (int)(magnitude & ((1u << t->fraction_bits) - 1));
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - t->fraction_bits);
    return ldexp((1 << t->fraction_bits) + fraction, exponent - bias - t->fraction_bits);
}

static unsigned infinity_of(const half_type *t)
{
    return ((1u << t->exponent_bits) - 1) << t->fraction_bits;
}

TEST_ROWS(HostRefScalar, WidensEveryValue, half_types)
{
    const half_type *t = &half_types[index];
    for (unsigned m = 0; m < infinity_of(t); m++) {
        CHECK_EQ_F32(t->widen((uint16_t)m), (float)magnitude_of(t, m));
        CHECK_EQ_F32(t->widen((uint16_t)(m | 0x8000)), (float)-magnitude_of(t, m));
    }
    CHECK_EQ_F32(t->widen((uint16_t)infinity_of(t)), INFINITY);
    CHECK_EQ_F32(t->widen((uint16_t)(infinity_of(t) | 0x8000)), -INFINITY);
    for (unsigned m = infinity_of(t) + 1; m < 0x8000; m++) {
        CHECK_EQ_U32(ref_f32_to_bits(t->widen((uint16_t)m)), 0x7FFFFFFF);
        CHECK_EQ_U32(ref_f32_to_bits(t->widen((uint16_t)(m | 0x8000))), 0x7FFFFFFF);
    }
}

TEST_ROWS(HostRefScalar, NarrowsEveryValueToItself, half_types)
{
    const half_type *t = &half_types[index];
    for (unsigned m = 0; m <= infinity_of(t); m++) {
        CHECK_EQ_U32(t->narrow(t->widen((uint16_t)m)), m);
        CHECK_EQ_U32(t->narrow(t->widen((uint16_t)(m | 0x8000))), m | 0x8000);
    }
}

/* Narrowing is monotone, so its behaviour around every midpoint is its behaviour everywhere. */
TEST_ROWS(HostRefScalar, NarrowsToTheNearestAndTiesToEven, half_types)
{
    const half_type *t = &half_types[index];
    for (unsigned m = 0; m < infinity_of(t); m++) {
        float midpoint = (float)((magnitude_of(t, m) + magnitude_of(t, m + 1)) / 2);
        unsigned even = m % 2 == 0 ? m : m + 1;
        CHECK_EQ_U32(t->narrow(midpoint), even);
        CHECK_EQ_U32(t->narrow(-midpoint), even | 0x8000);
        CHECK_EQ_U32(t->narrow(nextafterf(midpoint, 0.0f)), m);
        CHECK_EQ_U32(t->narrow(nextafterf(midpoint, INFINITY)), m + 1);
        CHECK_EQ_U32(t->narrow(-nextafterf(midpoint, INFINITY)), (m + 1) | 0x8000);
    }
}

TEST_ROWS(HostRefScalar, NarrowsExtremes, half_types)
{
    const half_type *t = &half_types[index];
    CHECK_EQ_U32(t->narrow(FLT_MAX), infinity_of(t));
    CHECK_EQ_U32(t->narrow(-FLT_MAX), infinity_of(t) | 0x8000);
    CHECK_EQ_U32(t->narrow(0x1p-149f), 0);
    CHECK_EQ_U32(t->narrow(-0x1p-149f), 0x8000);
    const uint32_t nans[] = {0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFC00000, 0xFFFFFFFF};
    for (int i = 0; i < 6; i++)
        CHECK_EQ_U32(t->narrow(ref_f32_from_bits(nans[i])), 0x7FFF);
}

TEST_CASE(HostRefScalar, KnownHalves)
{
    CHECK_EQ_U32(ref_f32_to_f16(1.0f), 0x3C00);
    CHECK_EQ_U32(ref_f32_to_f16(-2.0f), 0xC000);
    CHECK_EQ_U32(ref_f32_to_f16(65504.0f), 0x7BFF);
    CHECK_EQ_U32(ref_f32_to_f16(65519.996f), 0x7BFF);
    CHECK_EQ_U32(ref_f32_to_f16(65520.0f), 0x7C00);
    CHECK_EQ_U32(ref_f32_to_f16(0x1p-24f), 0x0001);
    CHECK_EQ_U32(ref_f32_to_f16(0x1p-25f), 0x0000);
    CHECK_EQ_U32(ref_f32_to_f16(0x1.8p-24f), 0x0002);
    CHECK_EQ_U32(ref_f32_to_bf16(1.0f), 0x3F80);
    CHECK_EQ_U32(ref_f32_to_bf16(0x1.FEp127f), 0x7F7F);
    CHECK_EQ_U32(ref_f32_to_bf16(0x1p-133f), 0x0001);
    CHECK_EQ_U32(ref_f32_to_bf16(0x1p-134f), 0x0000);
}

TEST_CASE(HostRefScalar, ArraysAtAnyAlignment)
{
    unsigned char bytes[16] = {0};
    ref_scalar_store(QDNN_DATA_F16, bytes + 1, 2, -2.0f);
    const unsigned char expected[16] = {0, 0, 0, 0, 0, 0x00, 0xC0};
    CHECK_EQ_MEM(bytes, expected, sizeof bytes);
    CHECK_EQ_F32(ref_scalar_load(QDNN_DATA_F16, bytes + 1, 2), -2.0f);
    ref_scalar_store(QDNN_DATA_U8, bytes, 15, 255.0f);
    CHECK_EQ_U32(bytes[15], 255);
    ref_scalar_store(QDNN_DATA_F32, bytes + 1, 1, ref_f32_from_bits(0xFFC00001));
    CHECK_EQ_U32(ref_f32_to_bits(ref_scalar_load(QDNN_DATA_F32, bytes + 1, 1)), 0x7FFFFFFF);
}

TEST_CASE(HostRefScalar, RangesOfStoredScales)
{
    CHECK_EQ_U32(ref_f32_to_bits(ref_scalar_smallest(QDNN_DATA_F32)), 0x00000001);
    CHECK_EQ_U32(ref_f32_to_bits(ref_scalar_largest(QDNN_DATA_F32)), 0x7F7FFFFF);
    CHECK_EQ_U32(ref_f32_to_f16(ref_scalar_smallest(QDNN_DATA_F16)), 0x0001);
    CHECK_EQ_U32(ref_f32_to_f16(ref_scalar_largest(QDNN_DATA_F16)), 0x7BFF);
    CHECK_EQ_U32(ref_f32_to_bf16(ref_scalar_smallest(QDNN_DATA_BF16)), 0x0001);
    CHECK_EQ_U32(ref_f32_to_bf16(ref_scalar_largest(QDNN_DATA_BF16)), 0x7F7F);
}
