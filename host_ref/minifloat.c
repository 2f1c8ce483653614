/* The floats of 8, 6 and 4 bits: E4M3, E5M2, E2M3, E3M2, E2M1, and E8M0, which is a power of two. */
#include "host_ref/internal.h"

typedef struct {
    int exponent_bits, mantissa_bits, bias;
    unsigned largest;  /* the code of the largest finite number */
    unsigned infinity; /* its code; 0: there is none */
    unsigned nan;      /* what a NaN becomes; 0 if the type has none */
} minifloat;

static const minifloat minifloats[] = {
    [REF_E4M3] = {4, 3, 7, 0x7E, 0, 0x7F}, [REF_E5M2] = {5, 2, 15, 0x7B, 0x7C, 0x7F},
    [REF_E2M3] = {2, 3, 1, 0x1F, 0, 0},    [REF_E3M2] = {3, 2, 3, 0x1F, 0, 0},
    [REF_E2M1] = {2, 1, 1, 0x07, 0, 0},
};

static unsigned sign_bit(const minifloat *m)
{
    return 1u << (m->exponent_bits + m->mantissa_bits);
}

/* A finite magnitude: the mantissa counts units of 2^(exponent - mantissa_bits), with an implicit leading bit
 * if the exponent field is not 0. */
static float magnitude_of(const minifloat *m, unsigned code)
{
    int field = (int)(code >> m->mantissa_bits);
    int mantissa = (int)(code & ((1u << m->mantissa_bits) - 1));
    if (field == 0)
        return ldexpf((float)mantissa, 1 - m->bias - m->mantissa_bits);
    return ldexpf((float)(mantissa + (1 << m->mantissa_bits)), field - m->bias - m->mantissa_bits);
}

float hr_minifloat_to_f32(ref_minifloat type, unsigned code)
{
    const minifloat *m = &minifloats[type];
    unsigned magnitude = code & (sign_bit(m) - 1);
    float value;
    if (magnitude <= m->largest)
        value = magnitude_of(m, magnitude);
    else if (m->infinity && magnitude == m->infinity)
        value = INFINITY;
    else
        return ref_f32_from_bits(REF_NAN_F32);
    return code & sign_bit(m) ? -value : value;
}

/* Rounds a finite magnitude to units of the last place. The units of a binade are twice those of the one
 * below, so a carry out of the mantissa correctly increments the exponent. */
static unsigned round_magnitude(const minifloat *m, float magnitude)
{
    int lowest = 1 - m->bias, exponent = lowest;
    if (magnitude > 0.0f && ilogbf(magnitude) > lowest)
        exponent = ilogbf(magnitude);
    double units = rint(ldexp((double)magnitude, m->mantissa_bits - exponent));
    return ((unsigned)(exponent - lowest) << m->mantissa_bits) + (unsigned)units;
}

unsigned hr_f32_to_minifloat(ref_minifloat type, float x)
{
    const minifloat *m = &minifloats[type];
    if (isnan(x))
        return m->nan;
    unsigned magnitude = isinf(x) ? m->largest : round_magnitude(m, fabsf(x));
    if (magnitude > m->largest)
        magnitude = m->largest;
    return magnitude | (signbit(x) ? sign_bit(m) : 0);
}

float hr_minifloat_largest(ref_minifloat type)
{
    return magnitude_of(&minifloats[type], minifloats[type].largest);
}

float hr_e8m0_to_f32(uint8_t code)
{
    return code == 0xFF ? ref_f32_from_bits(REF_NAN_F32) : ldexpf(1.0f, code - 127);
}
