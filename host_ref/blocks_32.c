/* Blocks of 32 integers with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1.
 *
 * Codes are computed with the scale before it is rounded to f16, as in ggml. */
#include "host_ref/blocks.h"

enum { COUNT = 32 };

/* The fifth bit of each Q5 code: bit i of 32. */
static unsigned fifth_bit(const uint8_t *bits, int i)
{
    return bits[i / 8] >> i % 8 & 1u;
}

/* Stores a 5-bit code: its upper bit and its nibble are separate. */
static void put_five(uint8_t *bits, uint8_t *nibbles, int i, unsigned code)
{
    bits[i / 8] = (uint8_t)(bits[i / 8] | code >> 4 << i % 8);
    hr_block_put_nibble(nibbles, i, code & 15);
}

/* ---- Decode ---- */

float hr_q4_0_decode(const uint8_t *block, int i)
{
    return (float)((int)hr_block_nibble(block + 2, i) - 8) * hr_block_f16(block);
}

float hr_q4_1_decode(const uint8_t *block, int i)
{
    float product = (float)hr_block_nibble(block + 4, i) * hr_block_f16(block);
    return product + hr_block_f16(block + 2);
}

float hr_q5_0_decode(const uint8_t *block, int i)
{
    unsigned code = hr_block_nibble(block + 6, i) | fifth_bit(block + 2, i) << 4;
    return (float)((int)code - 16) * hr_block_f16(block);
}

float hr_q5_1_decode(const uint8_t *block, int i)
{
    unsigned code = hr_block_nibble(block + 8, i) | fifth_bit(block + 4, i) << 4;
    float product = (float)code * hr_block_f16(block);
    return product + hr_block_f16(block + 2);
}

float hr_q8_0_decode(const uint8_t *block, int i)
{
    return (float)(int8_t)block[2 + i] * hr_block_f16(block);
}

float hr_q8_1_decode(const uint8_t *block, int i)
{
    return (float)(int8_t)block[4 + i] * hr_block_f16(block);
}

/* ---- Encode: Q4_0 and Q5_0, where the value of largest magnitude becomes the lowest code ---- */

static unsigned symmetric_code(float x, float reciprocal, float half)
{
    float shifted = x * reciprocal + (half + 0.5f);
    return (unsigned)clamp(truncf(shifted), 0.0f, 2.0f * half - 1.0f);
}

void hr_q4_0_encode(const float *x, uint8_t *block)
{
    float d = hr_block_first_of_largest(x, COUNT) / -8.0f, reciprocal = hr_block_reciprocal(d);
    hr_block_put_f16(block, d);
    for (int i = 0; i < COUNT; i++)
        hr_block_put_nibble(block + 2, i, symmetric_code(x[i], reciprocal, 8.0f));
}

void hr_q5_0_encode(const float *x, uint8_t *block)
{
    float d = hr_block_first_of_largest(x, COUNT) / -16.0f, reciprocal = hr_block_reciprocal(d);
    hr_block_put_f16(block, d);
    for (int i = 0; i < COUNT; i++)
        put_five(block + 2, block + 6, i, symmetric_code(x[i], reciprocal, 16.0f));
}

/* ---- Encode: Q4_1 and Q5_1, from the minimum to the maximum ---- */

typedef struct {
    float least, d, reciprocal;
} span;

/* Stores d and m. */
static span put_span(const float *x, float levels, uint8_t *block)
{
    float least = x[0], largest = x[0];
    for (int i = 1; i < COUNT; i++) {
        least = x[i] < least ? x[i] : least;
        largest = x[i] > largest ? x[i] : largest;
    }
    float d = (largest - least) / levels;
    hr_block_put_f16(block, d);
    hr_block_put_f16(block + 2, least);
    return (span){least, d, hr_block_reciprocal(d)};
}

static unsigned span_code(span s, float x, float levels)
{
    float scaled = (x - s.least) * s.reciprocal;
    return (unsigned)clamp(truncf(scaled + 0.5f), 0.0f, levels);
}

void hr_q4_1_encode(const float *x, uint8_t *block)
{
    span s = put_span(x, 15.0f, block);
    for (int i = 0; i < COUNT; i++)
        hr_block_put_nibble(block + 4, i, span_code(s, x[i], 15.0f));
}

void hr_q5_1_encode(const float *x, uint8_t *block)
{
    span s = put_span(x, 31.0f, block);
    for (int i = 0; i < COUNT; i++)
        put_five(block + 4, block + 8, i, span_code(s, x[i], 31.0f));
}

/* ---- Encode: Q8_0 and Q8_1 ---- */

/* Returns the sum of the codes. */
static int put_bytes(const float *x, float d, uint8_t *codes)
{
    float reciprocal = hr_block_reciprocal(d);
    int sum = 0;
    for (int i = 0; i < COUNT; i++) {
        int q = (int)clamp(round_ties_away(x[i] * reciprocal), -128.0f, 127.0f);
        codes[i] = (uint8_t)q;
        sum += q;
    }
    return sum;
}

void hr_q8_0_encode(const float *x, uint8_t *block)
{
    float d = hr_block_absmax(x, COUNT) / 127.0f;
    hr_block_put_f16(block, d);
    put_bytes(x, d, block + 2);
}

void hr_q8_1_encode(const float *x, uint8_t *block)
{
    float d = hr_block_absmax(x, COUNT) / 127.0f;
    hr_block_put_f16(block, d);
    int sum = put_bytes(x, d, block + 4);
    hr_block_put_f16(block + 2, (float)sum * d);
}
