/* The scalar types: numbers of plain arrays in memory, and the conversions between them and f32. */
#include "host_ref/internal.h"

#include <string.h>

/* The contract is one rounding per operation: no wider intermediates, no value-changing optimisation. */
_Static_assert(FLT_EVAL_METHOD == 0, "f32 expressions must be evaluated in f32");
#ifdef __FAST_MATH__
#error "host_ref must not be compiled with -ffast-math"
#endif

float ref_f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t ref_f32_to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float hr_canonical(float x)
{
    return isnan(x) ? ref_f32_from_bits(REF_NAN_F32) : x;
}

/* value / 2^shift to the nearest integer, ties to even; shift is 1 to 31. */
static uint32_t shift_right_to_even(uint32_t value, int shift)
{
    uint32_t quotient = value >> shift;
    uint32_t rest = value & ((UINT32_C(1) << shift) - 1);
    uint32_t half = UINT32_C(1) << (shift - 1);
    if (rest > half || (rest == half && quotient % 2 == 1))
        quotient++;
    return quotient;
}

float hr_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits >> 15) << 31;
    uint32_t exponent = bits >> 10 & 0x1F;
    uint32_t fraction = bits & 0x3FF;
    if (exponent == 31 && fraction != 0)
        return ref_f32_from_bits(REF_NAN_F32);
    if (exponent == 31)
        return ref_f32_from_bits(sign | 0x7F800000);
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return ref_f32_from_bits(sign | (exponent - 15 + 127) << 23 | fraction << 13);
}

/* Converts the magnitude of a finite f32, given as its bits without the sign, to f16. A carry out of the
 * fraction correctly increments the exponent, up to infinity. */
static uint32_t f16_magnitude(uint32_t magnitude)
{
    uint32_t exponent = magnitude >> 23;
    uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
    if (magnitude >= 0x47800000) /* 2^16 */
        return 0x7C00;
    if (magnitude >= 0x38800000) /* 2^-14, the smallest normal f16: rebias the exponent, drop 13 bits */
        return shift_right_to_even(magnitude - ((127 - 15) << 23), 13);
    if (magnitude < 0x33000000) /* 2^-25, half the smallest f16 */
        return 0;
    /* The value is significand * 2^(exponent - 150); the result counts units of 2^-24. */
    return shift_right_to_even(significand, 126 - (int)exponent);
}

uint16_t hr_f32_to_f16(float x)
{
    uint32_t bits = ref_f32_to_bits(x);
    uint32_t sign = bits >> 31 << 15;
    if (isnan(x))
        return REF_NAN_F16;
    return (uint16_t)(sign | f16_magnitude(bits & 0x7FFFFFFF));
}

float hr_bf16_to_f32(uint16_t bits)
{
    return hr_canonical(ref_f32_from_bits((uint32_t)bits << 16));
}

uint16_t hr_f32_to_bf16(float x)
{
    uint32_t bits = ref_f32_to_bits(x);
    uint32_t sign = bits >> 31 << 15;
    if (isnan(x))
        return REF_NAN_F16;
    return (uint16_t)(sign | shift_right_to_even(bits & 0x7FFFFFFF, 16));
}

/* Loading and storing each type, by memcpy, because arrays may be at any address. */

static float load_f32(const void *at)
{
    float x;
    memcpy(&x, at, sizeof x);
    return x;
}

static void store_f32(void *at, float x)
{
    x = hr_canonical(x);
    memcpy(at, &x, sizeof x);
}

static float load_f64(const void *at)
{
    double x;
    memcpy(&x, at, sizeof x);
    return (float)x;
}

static void store_f64(void *at, float x)
{
    double wide = (double)hr_canonical(x);
    memcpy(at, &wide, sizeof wide);
}

static float load_f16(const void *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return hr_f16_to_f32(bits);
}

static void store_f16(void *at, float x)
{
    uint16_t bits = hr_f32_to_f16(x);
    memcpy(at, &bits, sizeof bits);
}

static float load_bf16(const void *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return hr_bf16_to_f32(bits);
}

static void store_bf16(void *at, float x)
{
    uint16_t bits = hr_f32_to_bf16(x);
    memcpy(at, &bits, sizeof bits);
}

static float load_u8(const void *at)
{
    return *(const uint8_t *)at;
}

static void store_u8(void *at, float x)
{
    *(uint8_t *)at = (uint8_t)x;
}

static float load_i8(const void *at)
{
    return *(const int8_t *)at;
}

static void store_i8(void *at, float x)
{
    *(int8_t *)at = (int8_t)x;
}

static float load_u32(const void *at)
{
    uint32_t x;
    memcpy(&x, at, sizeof x);
    return (float)x;
}

static void store_u32(void *at, float x)
{
    uint32_t whole = (uint32_t)x;
    memcpy(at, &whole, sizeof whole);
}

static float load_i32(const void *at)
{
    int32_t x;
    memcpy(&x, at, sizeof x);
    return (float)x;
}

static void store_i32(void *at, float x)
{
    int32_t whole = (int32_t)x;
    memcpy(at, &whole, sizeof whole);
}

typedef struct {
    qdnnDataType_t type;
    size_t size;
    float (*load)(const void *at);
    void (*store)(void *at, float x);
    float smallest, largest;
} scalar_type;

static const scalar_type scalar_types[] = {
    {QDNN_DATA_F32, 4, load_f32, store_f32, 0x1p-149f, FLT_MAX},
    {QDNN_DATA_F16, 2, load_f16, store_f16, 0x1p-24f, 65504.0f},
    {QDNN_DATA_BF16, 2, load_bf16, store_bf16, 0x1p-133f, 0x1.FEp127f},
    {QDNN_DATA_F64, 8, load_f64, store_f64, 0x1p-149f, FLT_MAX},
    {QDNN_DATA_U8, 1, load_u8, store_u8, 1.0f, 255.0f},
    {QDNN_DATA_I8, 1, load_i8, store_i8, 1.0f, 127.0f},
    {QDNN_DATA_U32, 4, load_u32, store_u32, 1.0f, 0x1.FFFFFEp31f},
    {QDNN_DATA_I32, 4, load_i32, store_i32, 1.0f, 0x1.FFFFFEp30f},
};

static const scalar_type *find_scalar_type(qdnnDataType_t type)
{
    for (size_t i = 0; i < sizeof scalar_types / sizeof scalar_types[0]; i++)
        if (scalar_types[i].type == type)
            return &scalar_types[i];
    hr_require(false, "data type 0x%02X is none of F32, F16, BF16, F64, U8, I8, U32, I32", (unsigned)type);
    return NULL;
}

size_t ref_scalar_size(qdnnDataType_t type)
{
    return find_scalar_type(type)->size;
}

float hr_scalar_load(qdnnDataType_t type, const void *array, int64_t index)
{
    const scalar_type *t = find_scalar_type(type);
    return t->load((const char *)array + (size_t)index * t->size);
}

void hr_scalar_store(qdnnDataType_t type, void *array, int64_t index, float value)
{
    const scalar_type *t = find_scalar_type(type);
    t->store((char *)array + (size_t)index * t->size, value);
}

float hr_scalar_smallest(qdnnDataType_t type)
{
    return find_scalar_type(type)->smallest;
}

float hr_scalar_largest(qdnnDataType_t type)
{
    return find_scalar_type(type)->largest;
}

qdnnDataType_t ref_scale_data_type(qdnnScaleType_t type)
{
    switch (type) {
    case QDNN_SCALE_F32:
        return QDNN_DATA_F32;
    case QDNN_SCALE_F16:
        return QDNN_DATA_F16;
    case QDNN_SCALE_BF16:
        return QDNN_DATA_BF16;
    default:
        return (qdnnDataType_t)0;
    }
}
