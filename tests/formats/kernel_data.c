/* Inputs for kernels. Elements are made as f32 bits and narrowed by dropping or rebuilding bits here, so that
 * no conversion under test is used to make its own input. */
#include "formats/kernel_data.h"

#include "formats/code_bounds.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static uint32_t seeded(uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 12345u;
    return state ? state : 1;
}

/* Sum of four uniforms: bell-shaped enough, and exact in f32. */
static float bell(uint32_t *state)
{
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int)(next_random(state) & 0xFFFF) - 0x8000;
    return (float)sum * 0x1p-15f;
}

/* The bit patterns of each type that a kind picks from: exponent field at its largest, at its least, and so
 * on. */
typedef struct layout {
    int bits, fraction_bits;
} layout;

/* f64 elements are f32 ones, widened. */
static layout layout_of(qdnnDataType_t type)
{
    return type == QDNN_DATA_F32 || type == QDNN_DATA_F64 ? (layout){32, 23}
           : type == QDNN_DATA_F16                        ? (layout){16, 10}
                                                          : (layout){16, 7};
}

/* A float of moderate size (its value is a multiple of 2^-17 below 16) in the bits of the type, low fraction
 * bits dropped. */
static uint32_t encode(layout l, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (l.bits == 32)
        return bits;
    uint32_t sign = bits >> 31 << 15, exponent = bits >> 23 & 0xFF,
             fraction = (bits & 0x7FFFFF) >> (23 - l.fraction_bits);
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

/* The largest number that codes without a zero stand for; 1 for blocks. */
static float largest_of(const format_facts *format)
{
    const code_bounds *found = code_bounds_of(format);
    return found ? found->largest : format->bits < 2 ? 1.0f : (float)((INT64_C(1) << (format->bits - 1)) - 1);
}

/* A bound between two codes, or one of its neighbours in a type with so many fraction bits. */
static float bound_of(const code_bounds *found, int fraction_bits, uint32_t random)
{
    const float bound = found->bound[random % (uint32_t)found->count];
    const uint32_t step = UINT32_C(1) << (23 - fraction_bits);
    uint32_t bits;
    float value;
    memcpy(&bits, &bound, sizeof bits);
    bits += (random / (uint32_t)found->count % 3 - 1) * (bits << 1 ? step : 0);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Blocks that can be quantized: the ends of a range that makes d (or the scale) 1, and steps half as wide as those
 * between codes, or less. */
static const struct block_range {
    qdnnBlockFormat_t block;
    float least, largest, step;
} block_ranges[] = {
    {QDNN_BLOCK_Q4_0, -8, 8, 0.5f},  {QDNN_BLOCK_Q4_1, 0, 15, 0.5f},     {QDNN_BLOCK_Q5_0, -16, 16, 0.5f},
    {QDNN_BLOCK_Q5_1, 0, 31, 0.5f},  {QDNN_BLOCK_Q8_0, -127, 127, 0.5f}, {QDNN_BLOCK_Q8_1, -127, 127, 0.5f},
    {QDNN_BLOCK_TQ1_0, -1, 1, 0.5f}, {QDNN_BLOCK_TQ2_0, -1, 1, 0.5f},    {QDNN_BLOCK_MXFP4, -6, 6, 0.25f},
    {QDNN_BLOCK_Q2_K, 0, 3, 0.5f},   {QDNN_BLOCK_Q3_K, -4, 4, 0.5f},     {QDNN_BLOCK_Q4_K, 0, 15, 0.5f},
    {QDNN_BLOCK_Q5_K, 0, 31, 0.5f},  {QDNN_BLOCK_Q6_K, -32, 32, 0.5f},   {QDNN_BLOCK_Q1_0, -1, 1, 0.5f},
    {QDNN_BLOCK_Q2_0, -1, 1, 0.5f},  {QDNN_BLOCK_NONE, -1, 1, 0.5f}, /* the others are only read */
};

static const struct block_range *range_of_block(const format_facts *format)
{
    const struct block_range *r = block_ranges;
    while (r->block != format->block && r->block != QDNN_BLOCK_NONE)
        r++;
    return r;
}

static float block_tie(const format_facts *format, uint32_t random)
{
    const struct block_range *r = range_of_block(format);
    if (random % 4 == 0)
        return random & 4 ? r->least : r->largest;
    return r->least + r->step * (float)((random >> 3) % (uint32_t)((r->largest - r->least) / r->step + 1));
}

/* Half way between two neighbours of the format's values (or where else their codes meet) or, one time in four, its least or largest value:
 * a group that has the extremes gets a scale of exactly 1, so its quotients are ties too. */
static float tie(const format_facts *format, int fraction_bits, uint32_t random)
{
    if (format->block != QDNN_BLOCK_NONE)
        return block_tie(format, random);
    const code_bounds *found = code_bounds_of(format);
    bool ranged = format->zero_kind != QDNN_ZERO_NONE;
    int64_t half = INT64_C(1) << (format->bits - 1);
    float least = found ? -found->largest : (float)(1 - half), largest = ranged ? (float)half : -least;
    if (random % 4 == 0)
        return random & 4 ? least : largest;
    random >>= 3;
    if (found)
        return bound_of(found, fraction_bits, random);
    return least + 0.5f * (float)(random % (uint32_t)(ranged ? 4 * half - 1 : 4 * half - 3));
}

/* An end of the codes' range (of both signs, without and with a zero point in the middle of it), or a little less or
 * more than it, or far beyond. */
static float around_clamp(const format_facts *format, uint32_t random)
{
    const code_bounds *found = code_bounds_of(format);
    float half = ldexpf(1, format->bits - 1);
    float ends[] = {half - 1.0f, half, 2.0f * half - 1.0f, 2.0f * half, 0.0f};
    float end = found ? found->largest : ends[random % 5];
    float step = found ? found->largest / 64.0f : 0.125f;
    float value = end + step * (float)((int)(random / 8 % 32) - 16);
    if (random / 256 % 16 == 0)
        value = 3.0f * end;
    return random & 0x10000 ? -value : value;
}

/* The divisor of the format's scale times a number with one bit more than f16 (or bf16) has. No number is negative and some are 0, so
 * that the range is the largest number; for seeds with bit 2 of formats with zeros, its bits beyond the first are negative.
 * For seeds with bit 3, the number is one last bit less. The bits from 4 on are bits above the last of bf16. */
static float scale_tie(const format_facts *format, uint32_t seed, uint32_t random)
{
    static const float ties[4] = {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1p-11f, 1 + 3 * 0x1p-11f};
    const code_bounds *found = code_bounds_of(format);
    int bits = format->zero_kind == QDNN_ZERO_NONE ? format->bits - 1 : format->bits;
    float largest = found                              ? found->largest
                    : format->block != QDNN_BLOCK_NONE ? range_of_block(format)->largest
                                                       : (float)((INT64_C(1) << bits) - 1);
    const float tie = ties[seed % 4] + 0x1p-6f * (float)(seed / 16 % 16);
    if (seed & 4 && format->zero_kind != QDNN_ZERO_NONE)
        return random % 2 ? largest : -largest * (tie - 1.0f);
    float part = random % 3 == 0 ? 1.0f : random % 3 == 1 ? 0.0f : 0.125f * (float)(random / 16 % 8);
    return (seed & 8 ? nextafterf(tie * largest, 0) : tie * largest) * part;
}

/* Peaks of both signs, no two alike, on average so far apart as the seed chooses: some kernel's groups are as long. */
static float peak(uint32_t seed, uint32_t random, float small)
{
    static const uint32_t apart[] = {19, 90, 330, 1500, 6000, 40000};
    if (random / 256 % apart[seed % 6] != 0)
        return 0.25f * small;
    const float value = 8.0f + 0.0625f * (float)(random & 127);
    return random & 0x80 ? -value : value;
}

/* The largest number of the format, or a number with a few bits more than the format has, any number of powers of two below it. */
static float spread(const format_facts *format, uint32_t random)
{
    const float largest = largest_of(format);
    const float part =
        random % 8 == 0 ? 1.0f
                        : ldexpf(1.0f + 0.015625f * (float)(random / 8 % 64), -(int)(random / 512 % 25) - 1);
    return random & 0x80000000 ? -largest * part : largest * part;
}

/* No negative numbers if the seed is even: then the half is in the middle of the range. In f32 also all the ties of the format, times a
 * number that the seed chooses. */
static float half(const format_facts *format, bool is_f32, uint32_t seed, uint32_t random)
{
    uint32_t state = seeded(seed);
    const float largest = 1.0f + 0x1p-16f * (float)(next_random(&state) >> 16 & 0xFFFF);
    if (is_f32 && seed & 2)
        return largest * tie(format, 23, random);
    const float part = random % 4 == 0 ? 1.0f : random % 4 == 1 ? 0.0f : 0.5f;
    return (seed & 1 && random & 0x80 ? -largest : largest) * part;
}

static float step(uint32_t seed, uint32_t random)
{
    static const int levels[] = {1, 2, 4, 5, 9, 17, 33, 65};
    const int most = levels[seed % 8], value = (int)(random >> 4) % (2 * most + (most == 1)) - most;
    return (float)(seed & 8 ? -value : value);
}

/* The largest is the floor, or up to 16 of its last bits more or less; f16 has no such numbers. */
static uint32_t around_floor(layout l, uint32_t seed, uint32_t random)
{
    const uint32_t floor_bits = 0x2B8CBCCC;
    const uint32_t bits = floor_bits - 16 + (seed * 5 + random / 64) % 32;
    if (random % 8 != 0 || l.fraction_bits == 10)
        return 0;
    return (seed & 1 && random & 8 ? UINT32_C(1) << (l.bits - 1) : 0) | bits >> (32 - l.bits);
}

/* Infinities, the largest number and numbers close to it; NaN and zeros among them. Of both signs if the seed is a multiple of 3; else
 * infinities of one sign only, and numbers of the other that are up to 8 times less: the ends of a range are an infinity and any
 * number. */
static uint32_t ends(layout l, uint32_t seed, uint32_t random)
{
    const uint32_t infinity = ((UINT32_C(1) << (l.bits - 1 - l.fraction_bits)) - 1) << l.fraction_bits,
                   negative = UINT32_C(1) << (l.bits - 1), one = UINT32_C(1) << l.fraction_bits,
                   sign = random & 0x80 ? negative : 0, infinite_sign = seed % 3 == 1 ? 0 : negative;
    const uint32_t finite = infinity - 1 - (random >> 12 & (one - 1));
    const bool is_one_sided = seed % 3 != 0;
    switch (random >> 8 & 7) {
    case 0:
    case 1:
    case 2:
        if (is_one_sided && sign != infinite_sign)
            return sign | (finite - seed / 3 % 4 * one);
        return sign | infinity;
    case 3:
        return is_one_sided ? infinite_sign | finite : sign | (infinity - 1);
    case 4:
        return is_one_sided ? infinite_sign | finite : sign | finite;
    case 5:
        return sign | infinity | 1;
    default:
        return sign;
    }
}

/* A quant_case's map has (i - 100) / 155 and its offset is 0.75: with 310 as the largest m, thresholds are at odd m from -199 on.
 * Sums with the offset are exact. */
static uint32_t nested_bits(uint32_t random)
{
    enum { LEAST = -199, LARGEST = 310 };
    const int m = random % 16 == 0 ? LARGEST : LEAST + (int)(random / 16 % (LARGEST - LEAST));
    const float value = 0.75f + 0x1p-9f * (float)m;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return m == LARGEST ? bits : bits + (random >> 28) % 3 - 1;
}

float least_peak(const format_facts *format)
{
    return largest_of(format);
}

/* At least 1, below 2, of 6 bits, and no power of two. Its reciprocal is rounded down, so that a product with it is just below an integer where the
 * quotient is one. */
static float few_bits(uint32_t *state)
{
    float value;
    do
        value = 1 + 0x1p-5f * (float)(next_random(state) >> 8 & 31);
    while ((double)(1 / value) * (double)value >= 1);
    return value;
}

/* One in eight is a peak. If the seed is odd, all peaks are alike and have few bits, so that parts of them are numbers of a narrow type; the scale
 * has few bits too if the seed has bit 2. If the seed has bit 1, negative numbers are so small that a sum with another is hardly that other
 * one. */
static float uneven(const format_facts *format, uint32_t seed, uint32_t random)
{
    uint32_t state = seeded(seed);
    int exponent;
    const float largest = largest_of(format), part = frexpf(largest, &exponent),
                base = seed & 4 || part == 0.5f ? largest : ldexpf(1, exponent);
    const float peak = base * (seed & 1 ? few_bits(&state) : 1.0f + 0x1p-23f * (float)(random >> 11));
    const int below = random & 8 ? (int)(random >> 4 & 7) : 0; /* powers of two: all codes, the least too */
    const float value = random % 8 == 0 ? peak : ldexpf(largest * 0x1p-21f * (float)(random >> 11), -below);
    const bool is_small = seed & 2 && format->zero_kind != QDNN_ZERO_NONE;
    return random & 0x80 ? -value * (is_small ? 0x1p-25f : 1.0f) : value;
}

/* The scale is the width of the range over the number of steps: the end that is infinite is `tie` steps away from 0, and a little more. */
static uint32_t infinite_tie(const format_facts *format, layout l, uint32_t seed, uint32_t random)
{
    const uint32_t infinity = ((UINT32_C(1) << (l.bits - 1 - l.fraction_bits)) - 1) << l.fraction_bits,
                   negative = UINT32_C(1) << (l.bits - 1);
    const float steps = (float)((1 << format->bits) - 1),
                tie = floorf(steps / 2) + (float)(seed / 2 % 2) + 0.5f;
    const float part = steps / (tie * (1 + 0x1p-10f)) - 1;
    if (random % 4 == 0)
        return (seed & 1 ? 0 : negative) | infinity;
    if (random % 4 == 1)
        return encode(l, 0) | (random & 0x80 ? negative : 0);
    return encode(l, (seed & 1 ? -part : part) * (l.fraction_bits == 10 ? 65504.0f : 0x1.fffffep127f));
}

/* Beyond what a fast decode takes. */
static float large_power(layout l)
{
    return l.fraction_bits == 10 ? 0x1p12f : 0x1p60f;
}

static uint32_t element(data_kind kind, const format_facts *format, layout l, uint32_t *state, uint32_t seed)
{
    uint32_t random = next_random(state);
    uint32_t sign = random & 0x80 ? UINT32_C(1) << (l.bits - 1) : 0;
    uint32_t fraction = random >> 8 & ((UINT32_C(1) << l.fraction_bits) - 1);
    uint32_t largest_exponent = (UINT32_C(1) << (l.bits - 1 - l.fraction_bits)) - 2;
    switch (kind) {
    case DATA_CONSTANT:
    case DATA_SMALL_CONSTANT:
    case DATA_UNBOUNDED:
        return encode(l, seed & 1 ? -1.75f : 0.3125f);
    case DATA_ZEROS:
        return sign;
    case DATA_SUBNORMAL:
        return sign | fraction;
    case DATA_HUGE:
        return sign | largest_exponent << l.fraction_bits |
               (random & 0x40 ? fraction : (UINT32_C(1) << l.fraction_bits) - 1);
    case DATA_SPECIAL:
        return random % 5 == 0 ? special(l, random >> 8) : encode(l, bell(state));
    case DATA_TIES:
        return encode(l, tie(format, l.fraction_bits, random));
    case DATA_LEAST:
        return sign | fraction % (seed & LEAST_OF_SEED ? 1 + seed % 16 : 16);
    case DATA_TINY:
        return (seed & 1) << (l.bits - 1) | ((fraction & 15) | 1);
    case DATA_NANS:
        return random % 5 ? encode(l, bell(state))
                          : sign | (largest_exponent + 1) << l.fraction_bits | fraction | 1;
    case DATA_MINUTE:
        return encode(l, -0x1p-27f * (float)(random / 16 % 8));
    case DATA_UNDERFLOW: /* 3 times the least number, among so large ones; f16 has none that is large enough */
        return random % 5 ? sign | 3
                          : encode(l, l.bits == 32           ? 4.0f
                                      : l.fraction_bits == 7 ? 0x1p18f
                                                             : 32768.0f);
    case DATA_INFINITE:
        return ((seed & 1) << (l.bits - 1)) | (largest_exponent + 1) << l.fraction_bits | (random % 3 == 0);
    case DATA_SCALE_TIES:
        return encode(l, scale_tie(format, seed, random >> 4));
    case DATA_HALVES:
        return encode(l, half(format, l.bits == 32, seed, random));
    case DATA_FEW_F16:
        return l.fraction_bits == 10 ? sign | (fraction & 31)
                                     : encode(l, (sign ? -0x1p-25f : 0x1p-25f) * (float)(fraction & 31));
    case DATA_WIDE:
        return sign | largest_exponent << l.fraction_bits | fraction;
    case DATA_PEAKS:
        return encode(l, peak(seed, random, bell(state)));
    case DATA_SPREAD:
        return encode(l, spread(format, random));
    case DATA_STEPS:
        return encode(l, step(seed, random));
    case DATA_BEYOND:
        return (seed & 1) << (l.bits - 1) |
               (random % 8 ? (largest_exponent - random % 7) << l.fraction_bits | fraction
                           : (largest_exponent + 1) << l.fraction_bits);
    case DATA_HOLES:
        return random % 6 ? encode(l, 0x1p-6f * (float)(random >> 8 & 15))
                          : sign | (largest_exponent + 1) << l.fraction_bits | fraction | 1;
    case DATA_FAR: /* f16 has its largest number, and the next */
        return l.fraction_bits == 10
                   ? (seed & 1) << 15 | (0x7BFF - (fraction & 1))
                   : encode(l, (seed & 1 ? -70000.0f : 70000.0f) * (1 + (float)(random >> 8 & 3)));
    case DATA_FLOOR:
        return around_floor(l, seed, random);
    case DATA_ENDS:
        return ends(l, seed, random);
    case DATA_NESTED:
        return l.bits == 32 ? nested_bits(random) : encode(l, 0.75f + 0.25f * bell(state));
    case DATA_UNEVEN:
        return encode(l, uneven(format, seed, random));
    case DATA_INFINITE_TIES:
        return infinite_tie(format, l, seed, random);
    case DATA_LARGE:
        return encode(l, large_power(l) * bell(state));
    case DATA_CANCELS:
        return encode(l, ldexpf(bell(state), -(int)(random % 16)));
    case DATA_LARGE_CANCELS:
        return encode(l, large_power(l) * ldexpf(bell(state), -(int)(random % 16)));
    case DATA_RARELY_LARGE:
        return random >> 8 & 2047 ? encode(l, bell(state))
                                  : sign | encode(l, l.fraction_bits == 10 ? 0x1p14f : 0x1p100f);
    case DATA_CLAMP:
        return encode(l, around_clamp(format, random)) ^
               (random >> 20 & 1); /* or the neighbour: sums round */
    default:
        return encode(l, bell(state));
    }
}

/* ---- Sub-blocks ---- */

enum { SUB = 16, SUPER = 256 };

/* The size of a super-block: 1; around 1e-15, where a search stops; where the largest f16 is met; where sums of products
 * overflow. f16 has numbers of moderate size alone. */
static float super_size(layout l, uint32_t random)
{
    static const int exponents[] = {0, -50, 0, -47, 18, 0, -44, 26, 0, 60, -5, 1};
    return l.fraction_bits == 10 ? 1.0f : ldexpf(1.0f, exponents[random % 12]);
}

/* Element i of a sub-block of the kind. */
static float sub_block_element(uint32_t kind, int i, uint32_t *state)
{
    float value = bell(state);
    switch (kind % 8) {
    case 0:
        return fabsf(value) + 0.25f;
    case 1:
        return -fabsf(value);
    case 2:
        return i == (int)(kind / 8 % SUB) ? value : 0.0f; /* one-hot */
    case 3:
        return 0.125f * (float)i - 1.0f; /* sorted, equal steps */
    case 4:
        return next_random(state) & 1 ? 1.5f : -1.5f; /* equal magnitudes */
    case 5:
        return -3.0f + 0x1p-10f * value; /* nearly constant */
    case 6:
        return next_random(state) % 4 ? 0.0f : value; /* sparse */
    default:
        return value;
    }
}

/* Sub-blocks of a super-block differ by up to 2^8 in size, so that some scales are rounded to 0. */
static uint32_t sub_blocks_element(layout l, uint32_t seed, int64_t i, uint32_t *state)
{
    uint32_t super = seeded(seed + (uint32_t)(i / SUPER)), sub = seeded(seed * 977 + (uint32_t)(i / SUB));
    float size = ldexpf(super_size(l, next_random(&super) >> 8), -(int)(next_random(&sub) >> 8 & 8));
    return encode(l, size * sub_block_element(next_random(&sub) >> 8, (int)(i % SUB), state));
}

static void put_bits(layout l, void *array, int64_t index, uint32_t bits)
{
    if (l.bits == 32) {
        memcpy((char *)array + 4 * index, &bits, 4);
    } else {
        uint16_t half = (uint16_t)bits;
        memcpy((char *)array + 2 * index, &half, 2);
    }
}

/* An f32 with a few more bits at its low end, so that reading it has to round. */
static void put_double(void *array, int64_t index, uint32_t bits, uint32_t random)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    double wide = value;
    uint64_t wide_bits;
    memcpy(&wide_bits, &wide, sizeof wide_bits);
    if (isfinite(value) && value != 0.0f && random % 3 == 0)
        wide_bits |= random & 0x1FFFFFFF;
    memcpy((char *)array + 8 * index, &wide_bits, 8);
}

void fill_data(data_kind kind, const format_facts *format, qdnnDataType_t type, uint32_t seed, void *x,
               int64_t n)
{
    layout l = layout_of(type);
    uint32_t state = seeded(seed);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = kind == DATA_SUB_BLOCKS ? sub_blocks_element(l, seed, i, &state)
                                                : element(kind, format, l, &state, seed);
        if (type == QDNN_DATA_F64)
            put_double(x, i, bits, next_random(&state));
        else
            put_bits(l, x, i, bits);
    }
}

/* Where an element stands: its group, its place in it, and how many places it has. */
typedef struct place {
    uint64_t group, rank, length;
} place;

static place place_of(uint64_t i, uint64_t n, uint64_t size, uint64_t channels)
{
    if (channels == 0) {
        uint64_t group = i / size, rest = n - group * size;
        return (place){group, i % size, rest < size ? rest : size};
    }
    uint64_t turn = size * channels, group = i / size % channels, rest = n % turn;
    uint64_t before = group * size, last = rest <= before ? 0 : rest - before < size ? rest - before : size;
    return (place){group, i / turn * size + i % size, n / turn * size + last};
}

/* The bits of the step are those at which elements are usually divided among lanes, warps and chunks. */
static uint64_t hot_rank(const place *p, uint32_t turn)
{
    const uint64_t step = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12;
    return turn == 0 ? 0 : turn == 1 ? p->length - 1 : (turn * step + p->group * 37) % p->length;
}

/* In a group so long that each lane has several vectors of eight, within 24 turns at every element of each vector, on another lane in
 * each turn. */
static uint64_t hot_rank_of_vectors(const place *p, uint32_t turn)
{
    enum { LANES = 256, VECTOR = 8, VECTORS = 3 };
    const uint64_t lane = turn * 37 % LANES, vector = turn % VECTORS, first = vector * LANES * VECTOR,
                   lanes = (p->length - first) / VECTOR;
    return first + lane % lanes * VECTOR + turn / VECTORS % VECTOR;
}

void fill_one_hot(qdnnDataType_t type, uint64_t group_size, uint64_t channels, uint32_t turn, void *x,
                  int64_t n)
{
    layout l = layout_of(type);
    uint32_t state = seeded(turn);
    for (int64_t i = 0; i < n; i++) {
        place p = place_of((uint64_t)i, (uint64_t)n, group_size, channels);
        const bool has_vectors = turn > 1 && channels == 0 && p.length > 4104;
        uint64_t hot = hot_rank(&p, turn),
                 other = (hot + (turn == 1 ? p.length - 1 : 1 + turn * 7)) % p.length;
        if (has_vectors) {
            hot = hot_rank_of_vectors(&p, turn);
            other = hot_rank_of_vectors(&p, turn + 12);
        }
        float sign = turn % 2 ? -1.0f : 1.0f, value = 0.25f * bell(&state);
        uint32_t bits = encode(l, p.rank == hot ? 9.5f * sign : p.rank == other ? -7.25f * sign : value);
        if (type == QDNN_DATA_F64)
            put_double(x, i, bits, 0);
        else
            put_bits(l, x, i, bits);
    }
}

/* ---- What a caller may bring ---- */

enum {
    SCALES = 17,
    ZEROS = 15 /* no common factor with SCALES */
};

/* The columns: f32, f16; bf16 is the upper half of the f32. 0020 0000 is 2^-128, the largest scale whose
 * reciprocal is infinite; the largest finite number divided by FE92 4924 is -3.5, a tie. */
static const uint32_t callers_scales[SCALES][2] = {
    {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x7F800000, 0x7C00}, {0xFF800000, 0xFC00},
    {0x7FC00000, 0x7E00}, {0xFFA00001, 0xFD01}, {0x00010001, 0x0001}, {0x80010001, 0x8001},
    {0x00200000, 0x0200}, {0x00400000, 0x03FF}, {0x00800000, 0x0400}, {0x7F7FFFFF, 0x7BFF},
    {0x3F800000, 0x3C00}, {0xBF000000, 0xB800}, {0x3EAAAAAB, 0x3555}, {0xFE924924, 0xFBFF},
    {0xFF7FFFFF, 0xFBFF},
};
static const uint32_t callers_zeros[ZEROS][2] = {
    {0x40200000, 0x4100}, {0x80000000, 0x8000}, {0x7F800000, 0x7C00}, {0xFF800000, 0xFC00},
    {0x7FC00000, 0x7E00}, {0xFFA00001, 0xFD01}, {0x3F000000, 0x3800}, {0xC0400000, 0xC200},
    {0x41780000, 0x4BC0}, {0x7149F2CA, 0x7BFF}, {0x3DCCCCCD, 0x2E66}, {0x00010001, 0x0001},
    {0x41700000, 0x4B80}, {0x41000000, 0x4800}, {0xF149F2CA, 0xFBFF},
};

static const qdnnDataType_t scale_types[] = {
    [QDNN_SCALE_F32] = QDNN_DATA_F32, [QDNN_SCALE_F16] = QDNN_DATA_F16, [QDNN_SCALE_BF16] = QDNN_DATA_BF16};

static uint32_t column(qdnnDataType_t type, const uint32_t *row)
{
    return type == QDNN_DATA_F32 ? row[0] : type == QDNN_DATA_F16 ? row[1] : row[0] >> 16;
}

/* Integers: small ones, that codes can express, and far beyond in turn. */
static uint32_t integer_zero(int64_t place)
{
    uint32_t number = (uint32_t)(place % ZEROS);
    return number % 2 ? number : 17 * number;
}

/* Scales of one byte: all that there are, and more of NaN. */
void fill_callers_scales(qdnnScaleType_t type, int64_t first, void *scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (type == QDNN_SCALE_E4M3 || type == QDNN_SCALE_E8M0)
            ((uint8_t *)scale)[i] = (i + first) % 11 == 5 ? 0xFF : (uint8_t)((i + first) * 37 + 255);
        else
            put_bits(layout_of(scale_types[type]), scale, i,
                     column(scale_types[type], callers_scales[(i + first) % SCALES]));
}

void fill_callers_zeros(qdnnDataType_t type, int64_t first, void *zero, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (type) {
        case QDNN_DATA_U8:
        case QDNN_DATA_I8:
            ((uint8_t *)zero)[i] = (uint8_t)integer_zero(i + first);
            break;
        case QDNN_DATA_U32:
        case QDNN_DATA_I32:
            put_bits(layout_of(QDNN_DATA_F32), zero, i, integer_zero(i + first));
            break;
        default:
            put_bits(layout_of(type), zero, i, column(type, callers_zeros[(i + first) % ZEROS]));
        }
}

void fill_simple_scales(qdnnScaleType_t type, uint32_t seed, void *scale, int64_t n)
{
    static const float values[] = {1, 2, 1, 0.5f, -1};
    static const uint8_t e4m3[] = {0x38, 0x40, 0x38, 0x30, 0xB8}, e8m0[] = {127, 128, 127, 126, 127};
    enum { VALUES = sizeof values / sizeof values[0] };
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (i + seed) % VALUES;
        if (type == QDNN_SCALE_E4M3 || type == QDNN_SCALE_E8M0)
            ((uint8_t *)scale)[i] = (type == QDNN_SCALE_E4M3 ? e4m3 : e8m0)[at];
        else
            put_bits(layout_of(scale_types[type]), scale, i,
                     encode(layout_of(scale_types[type]), values[at]));
    }
}

/* A number of few bits, which f16 has or even bf16, divided by one half way between two codes, or the float before or behind the quotient. */
static float beside_scale(const format_facts *format, float huge, uint32_t *state)
{
    const uint32_t random = next_random(state);
    const float bound = fabsf(tie(format, 23, next_random(state) >> 4));
    if (bound == 0)
        return 1;
    if (random >> 29 == 0 && huge == 0)
        return few_bits(state);
    if (huge > 0) {
        const float value = huge / (bound < 1 ? 2 - bound : bound) * (1 - 0x1p-10f);
        return random >> 30 ? value : -value;
    }
    uint32_t bits;
    const uint32_t mask = random >> 28 & 1 ? 0xFF : 0xFFF;
    float value = (float)((random >> 8 & mask) | 1) * ldexpf(1, -(int)(random % 13)) / bound;
    memcpy(&bits, &value, sizeof bits);
    bits += (random >> 24) % 3 - 1;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Scales of one byte are the floats around 1. */
void fill_beside_scales(const format_facts *format, qdnnScaleType_t type, uint32_t seed, bool is_huge,
                        void *scale, int64_t n)
{
    const float huge = !is_huge ? 0 : type == QDNN_SCALE_F16 ? 65504.0f : 0x1.fffffep127f;
    uint32_t state = seeded(seed);
    for (int64_t i = 0; i < n; i++) {
        const float value = beside_scale(format, huge, &state);
        if (type == QDNN_SCALE_E4M3 || type == QDNN_SCALE_E8M0)
            ((uint8_t *)scale)[i] =
                (uint8_t)((type == QDNN_SCALE_E4M3 ? 48 : 124) + next_random(&state) % 16);
        else
            put_bits(layout_of(scale_types[type]), scale, i, encode(layout_of(scale_types[type]), value));
    }
}

void fill_small_zeros(qdnnDataType_t type, uint32_t seed, void *zero, int64_t n)
{
    uint32_t state = seeded(seed);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t random = next_random(&state) >> 8;
        const float value = 0x1p-24f * (float)(1 + random % 4);
        if (random >> 8 & 1 && type == QDNN_DATA_F16)
            put_bits(layout_of(type), zero, i, (random >> 4 & 1) << 15 | (1 + random % 4));
        else if (random >> 8 & 1 && (type == QDNN_DATA_F32 || type == QDNN_DATA_BF16))
            put_bits(layout_of(type), zero, i, encode(layout_of(type), random >> 4 & 1 ? -value : value));
    }
}

void fill_bytes(uint32_t seed, void *bytes, int64_t n)
{
    uint32_t state = seeded(seed);
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)(next_random(&state) >> 8);
}
