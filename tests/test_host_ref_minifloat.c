/* The floats of 4, 6 and 8 bits in the host reference: every code against values written here apart from the
 * code, and where f32 values between two neighbours go. */
#include "test_host_ref.h"

#include <stdio.h>

/* Each binade of E4M3: its units. The first is that of the subnormals. */
static const float e4m3_units[16] = {0x1p-9f, 0x1p-9f, 0x1p-8f, 0x1p-7f, 0x1p-6f, 0x1p-5f, 0x1p-4f, 0x1p-3f,
                                     0.25f,   0.5f,    1,       2,       4,       8,       16,      32};

TEST_CASE(HostRefMinifloat, EveryE4m3)
{
    for (unsigned code = 0; code < 0x7F; code++) {
        float magnitude = e4m3_units[code / 8] * (float)(code < 8 ? code : 8 + code % 8);
        CHECK_EQ_F32(ref_minifloat_to_f32(REF_E4M3, code), magnitude);
        CHECK_EQ_F32(ref_minifloat_to_f32(REF_E4M3, code | 0x80), -magnitude);
    }
    CHECK_EQ_U32(ref_f32_to_bits(ref_minifloat_to_f32(REF_E4M3, 0x7F)), 0x7FFFFFFF);
    CHECK_EQ_U32(ref_f32_to_bits(ref_minifloat_to_f32(REF_E4M3, 0xFF)), 0x7FFFFFFF);
    /* Some in decimals. 78 to 7E are numbers: there is no infinity. */
    static const struct {
        unsigned code;
        float value;
    } known[] = {{0x00, 0},
                 {0x01, 0.001953125f},
                 {0x07, 0.013671875f},
                 {0x08, 0.015625f},
                 {0x38, 1},
                 {0x39, 1.125f},
                 {0x40, 2},
                 {0x77, 240},
                 {0x78, 256},
                 {0x79, 288},
                 {0x7E, 448},
                 {0xB8, -1},
                 {0xFE, -448}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        CHECK_EQ_F32(ref_minifloat_to_f32(REF_E4M3, known[i].code), known[i].value);
}

/* E5M2 is the upper byte of an f16. */
TEST_CASE(HostRefMinifloat, EveryE5m2)
{
    for (unsigned code = 0; code < 256; code++)
        CHECK_EQ_F32(ref_minifloat_to_f32(REF_E5M2, code), ref_f16_to_f32((uint16_t)(code << 8)));
    CHECK_EQ_F32(ref_minifloat_to_f32(REF_E5M2, 0x3C), 1.0f);
    CHECK_EQ_F32(ref_minifloat_to_f32(REF_E5M2, 0x01), 0x1p-16f);
    CHECK_EQ_F32(ref_minifloat_to_f32(REF_E5M2, 0x7B), 57344.0f);
    CHECK_EQ_F32(ref_minifloat_to_f32(REF_E5M2, 0x7C), INFINITY);
    CHECK_EQ_F32(ref_minifloat_to_f32(REF_E5M2, 0xFC), -INFINITY);
    CHECK_EQ_U32(ref_f32_to_bits(ref_minifloat_to_f32(REF_E5M2, 0xFD)), 0x7FFFFFFF);
    CHECK_EQ_U32(ref_f32_to_bits(ref_minifloat_to_f32(REF_E5M2, 0x80)), 0x80000000);
}

/* clang-format off */
static const float e2m1_values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
static const float e2m3_values[32] = {
    0,    0.125f, 0.25f, 0.375f, 0.5f, 0.625f, 0.75f, 0.875f, 1, 1.125f, 1.25f, 1.375f, 1.5f, 1.625f, 1.75f, 1.875f,
    2,    2.25f,  2.5f,  2.75f,  3,    3.25f,  3.5f,  3.75f,  4, 4.5f,   5,     5.5f,   6,    6.5f,   7,     7.5f};
static const float e3m2_values[32] = {
    0, 0.0625f, 0.125f, 0.1875f, 0.25f, 0.3125f, 0.375f, 0.4375f, 0.5f, 0.625f, 0.75f, 0.875f, 1, 1.25f, 1.5f, 1.75f,
    2, 2.5f,    3,      3.5f,    4,     5,       6,      7,       8,    10,     12,    14,     16, 20,   24,   28};
/* clang-format on */

static const struct {
    const char *name;
    ref_minifloat type;
    unsigned count; /* of finite magnitudes */
    const float *values;
    unsigned nan;
} types[] = {
    {"e4m3", REF_E4M3, 0x7F, NULL, 0x7F},   {"e5m2", REF_E5M2, 0x7C, NULL, 0x7F},
    {"e2m3", REF_E2M3, 32, e2m3_values, 0}, {"e3m2", REF_E3M2, 32, e3m2_values, 0},
    {"e2m1", REF_E2M1, 8, e2m1_values, 0},
};

static unsigned sign_of(ref_minifloat type)
{
    return type == REF_E4M3 || type == REF_E5M2 ? 0x80 : type == REF_E2M1 ? 8 : 0x20;
}

TEST_CASE(HostRefMinifloat, EveryCodeOfTheShortTypes)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (unsigned code = 0; types[i].values && code < types[i].count; code++) {
            unsigned negative = code | sign_of(types[i].type);
            CHECK_EQ_F32(ref_minifloat_to_f32(types[i].type, code), types[i].values[code]);
            CHECK_EQ_F32(ref_minifloat_to_f32(types[i].type, negative), -types[i].values[code]);
        }
}

TEST_ROWS(HostRefMinifloat, EveryValueBecomesItsCode, types)
{
    ref_minifloat type = types[index].type;
    for (unsigned code = 0; code < types[index].count; code++) {
        CHECK_EQ_U32(ref_f32_to_minifloat(type, ref_minifloat_to_f32(type, code)), code);
        CHECK_EQ_U32(ref_f32_to_minifloat(type, -ref_minifloat_to_f32(type, code)), code | sign_of(type));
    }
}

/* Narrowing is monotone, so its behaviour around every midpoint is its behaviour everywhere. */
TEST_ROWS(HostRefMinifloat, NearestAndTiesToEven, types)
{
    ref_minifloat type = types[index].type;
    for (unsigned code = 0; code + 1 < types[index].count; code++) {
        float midpoint = (ref_minifloat_to_f32(type, code) + ref_minifloat_to_f32(type, code + 1)) / 2;
        CHECK_EQ_U32(ref_f32_to_minifloat(type, midpoint), code % 2 ? code + 1 : code);
        CHECK_EQ_U32(ref_f32_to_minifloat(type, -midpoint), (code % 2 ? code + 1 : code) | sign_of(type));
        CHECK_EQ_U32(ref_f32_to_minifloat(type, nextafterf(midpoint, 0.0f)), code);
        CHECK_EQ_U32(ref_f32_to_minifloat(type, nextafterf(midpoint, INFINITY)), code + 1);
    }
}

TEST_ROWS(HostRefMinifloat, SaturatesAndHasOneNan, types)
{
    ref_minifloat type = types[index].type;
    unsigned largest = types[index].count - 1;
    CHECK_EQ_F32(ref_minifloat_largest(type), ref_minifloat_to_f32(type, largest));
    static const float huge[] = {1e6f, FLT_MAX, INFINITY};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_U32(ref_f32_to_minifloat(type, huge[i]), largest);
        CHECK_EQ_U32(ref_f32_to_minifloat(type, -huge[i]), largest | sign_of(type));
    }
    CHECK_EQ_U32(ref_f32_to_minifloat(type, 0x1p-149f), 0);
    CHECK_EQ_U32(ref_f32_to_minifloat(type, -0x1p-149f), sign_of(type));
    CHECK_EQ_U32(ref_f32_to_minifloat(type, -0.0f), sign_of(type));
    CHECK_EQ_U32(ref_f32_to_minifloat(type, NAN), types[index].nan);
    CHECK_EQ_U32(ref_f32_to_minifloat(type, ref_f32_from_bits(0xFF800001)), types[index].nan);
}

TEST_CASE(HostRefMinifloat, PowersOfTwo)
{
    float value = 0x1p-127f;
    for (unsigned code = 0; code < 255; code++, value *= 2)
        CHECK_EQ_F32(ref_e8m0_to_f32((uint8_t)code), value);
    CHECK_EQ_U32(ref_f32_to_bits(ref_e8m0_to_f32(255)), 0x7FFFFFFF);
}
