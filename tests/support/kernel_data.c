/* Inputs for kernels. Elements are made as f32 bits and narrowed by dropping or rebuilding bits here, so that no conversion under test is
 * used to make its own input. */
#include "support/kernel_data.h"

#include <math.h>
#include <string.h>

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Sum of four uniforms: bell-shaped enough, and exact in f32. */
static float bell(uint32_t *state)
{
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int)(next_random(state) & 0xFFFF) - 0x8000;
    return (float)sum * 0x1p-15f;
}

/* The bit patterns of each type that a kind picks from: exponent field at its largest, at its least, and so on. */
typedef struct layout {
    int bits, fraction_bits;
} layout;

static layout layout_of(qdnnDataType_t type)
{
    return type == QDNN_DATA_F32 ? (layout){32, 23} : type == QDNN_DATA_F16 ? (layout){16, 10} : (layout){16, 7};
}

/* A float of moderate size (its value is a multiple of 2^-17 below 16) in the bits of the type, low fraction bits dropped. */
static uint32_t encode(layout l, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (l.bits == 32)
        return bits;
    uint32_t sign = bits >> 31 << 15, exponent = bits >> 23 & 0xFF, fraction = (bits & 0x7FFFFF) >> (23 - l.fraction_bits);
    if (exponent == 0)
        return sign;
    int bias = l.fraction_bits == 10 ? 127 - 15 : 0;
    int rebased = (int)exponent - bias;
    return rebased <= 0 ? sign : sign | (uint32_t)rebased << l.fraction_bits | fraction;
}

static uint32_t special(layout l, uint32_t random)
{
    uint32_t infinity = ((UINT32_C(1) << (l.bits - 1 - l.fraction_bits)) - 1) << l.fraction_bits;
    uint32_t sign = random & 1 ? UINT32_C(1) << (l.bits - 1) : 0;
    switch (random >> 1 & 3) {
    case 0:
        return sign | infinity;
    case 1:
        return sign | infinity | 1; /* a signalling NaN */
    case 2:
        return sign | infinity | UINT32_C(1) << (l.fraction_bits - 1);
    default:
        return sign;
    }
}

static uint32_t element(data_kind kind, layout l, uint32_t *state, uint32_t seed)
{
    uint32_t random = next_random(state);
    uint32_t sign = random & 0x80 ? UINT32_C(1) << (l.bits - 1) : 0;
    uint32_t fraction = random >> 8 & ((UINT32_C(1) << l.fraction_bits) - 1);
    uint32_t largest_exponent = (UINT32_C(1) << (l.bits - 1 - l.fraction_bits)) - 2;
    switch (kind) {
    case DATA_CONSTANT:
        return encode(l, seed & 1 ? -1.75f : 0.3125f);
    case DATA_ZEROS:
        return sign;
    case DATA_SUBNORMAL:
        return sign | fraction;
    case DATA_HUGE:
        return sign | largest_exponent << l.fraction_bits | (random & 0x40 ? fraction : (UINT32_C(1) << l.fraction_bits) - 1);
    case DATA_SPECIAL:
        return random % 5 == 0 ? special(l, random >> 8) : encode(l, bell(state));
    case DATA_TIES:
        return encode(l, (float)((int)(random % 31) - 15) * 0.5f);
    default:
        return encode(l, bell(state));
    }
}

void fill_data(data_kind kind, qdnnDataType_t type, uint32_t seed, void *x, int64_t n)
{
    layout l = layout_of(type);
    uint32_t state = seed * 2654435761u + 12345u;
    state = state ? state : 1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = element(kind, l, &state, seed);
        if (l.bits == 32) {
            memcpy((char *)x + 4 * i, &bits, 4);
        } else {
            uint16_t half = (uint16_t)bits;
            memcpy((char *)x + 2 * i, &half, 2);
        }
    }
}
