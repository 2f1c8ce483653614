/* Blocks whose codes are indices into a table (IQ4_NL, IQ4_XS) or base-3 digits (TQ1_0, TQ2_0). */
#include "host_ref/blocks.h"

/* ---- IQ4 ---- */

static const int8_t iq4_table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

/* IQ4_NL: d, qs[16] */
float hr_iq4_nl_decode(const uint8_t *block, int i)
{
    return hr_block_f16(block) * (float)iq4_table[hr_block_nibble(block + 2, i)];
}

/* IQ4_XS: d, u16 high bits of scales, low nibbles of scales [4], qs[128] */
float hr_iq4_xs_decode(const uint8_t *block, int i)
{
    int b = i / 32;
    int low = block[4 + b / 2] >> 4 * (b % 2) & 15;
    int high = (block[2] | block[3] << 8) >> 2 * b & 3;
    float whole = hr_block_f16(block) * (float)((low | high << 4) - 32);
    return whole * (float)iq4_table[hr_block_nibble(block + 8 + 16 * b, i % 32)];
}

/* ---- Ternary: -1, 0 and 1 as the digits 0, 1 and 2 ---- */

static int digit_of(float x, float reciprocal)
{
    return (int)clamp(round_ties_away(x * reciprocal), -1.0f, 1.0f) + 1;
}

/* TQ2_0: qs[64], d; two bits each, for elements 32 apart */
float hr_tq2_0_decode(const uint8_t *block, int i)
{
    int digit = block[i / 128 * 32 + i % 32] >> 2 * (i % 128 / 32) & 3;
    return (float)(digit - 1) * hr_block_f16(block + 64);
}

void hr_tq2_0_encode(const float *x, uint8_t *block)
{
    float d = hr_block_absmax(x, 256), reciprocal = hr_block_reciprocal(d);
    hr_block_put_f16(block + 64, d);
    for (int i = 0; i < 256; i++) {
        uint8_t *byte = &block[i / 128 * 32 + i % 32];
        *byte = (uint8_t)(*byte | digit_of(x[i], reciprocal) << 2 * (i % 128 / 32));
    }
}

/* TQ1_0: qs[48], qh[4], d. Three runs of bytes; digit e of byte b of a run is element first + e * bytes + b. */
typedef struct {
    int first, at, bytes, digits;
} ternary_run;

static const ternary_run ternary_runs[3] = {{0, 0, 32, 5}, {160, 32, 16, 5}, {240, 48, 4, 4}};

static const int powers_of_three[5] = {1, 3, 9, 27, 81};

/* A byte is the base-3 fraction 0.t0 t1 t2 t3 t4 in units of 1/256: multiplying by 3^e and dropping the
 * integer part makes t_e the first digit after the point. */
static int ternary_digit(unsigned byte, int e)
{
    unsigned rest = byte * (unsigned)powers_of_three[e] & 0xFF;
    return (int)(rest * 3 >> 8);
}

float hr_tq1_0_decode(const uint8_t *block, int i)
{
    int run = i < 160 ? 0 : i < 240 ? 1 : 2;
    const ternary_run *r = &ternary_runs[run];
    int in_run = i - r->first;
    int digit = ternary_digit(block[r->at + in_run % r->bytes], in_run / r->bytes);
    return (float)(digit - 1) * hr_block_f16(block + 52);
}

/* Rounded up, so that the digits are recovered exactly. */
static uint8_t ternary_byte(const float *x, int stride, int digits, float reciprocal)
{
    int value = 0;
    for (int e = 0; e < digits; e++)
        value += digit_of(x[e * stride], reciprocal) * powers_of_three[4 - e];
    return (uint8_t)((value * 256 + 242) / 243);
}

void hr_tq1_0_encode(const float *x, uint8_t *block)
{
    float d = hr_block_absmax(x, 256), reciprocal = hr_block_reciprocal(d);
    hr_block_put_f16(block + 52, d);
    for (int run = 0; run < 3; run++) {
        const ternary_run *r = &ternary_runs[run];
        for (int b = 0; b < r->bytes; b++)
            block[r->at + b] = ternary_byte(x + r->first + b, r->bytes, r->digits, reciprocal);
    }
}
