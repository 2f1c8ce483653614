/* The K-quants: super-blocks of 256 with a common d (and dmin), divided into sub-blocks of 16 or 32 whose
 * scales and minima are small integers. Element i is in half n = i / 128, quarter j = (i % 128) / 32 of it,
 * at l = i % 32. */
#include "host_ref/blocks.h"

/* d * sc * q - dmin * m, evaluated from the left. */
static float with_minimum(float d, unsigned scale, unsigned q, float dmin, unsigned minimum)
{
    float whole = d * (float)scale;
    float value = whole * (float)q;
    float least = dmin * (float)minimum;
    return value - least;
}

/* d * sc * q, evaluated from the left. */
static float without_minimum(float d, int scale, int q)
{
    float whole = d * (float)scale;
    return whole * (float)q;
}

/* The two low bits of an element in Q2_K and Q3_K: a byte has those of one element from each quarter. */
static unsigned two_bits(const uint8_t *codes, int i)
{
    int n = i / 128, j = i % 128 / 32, l = i % 32;
    return codes[32 * n + l] >> 2 * j & 3u;
}

/* Q2_K: scales[16], qs[64], d, dmin */
float hr_q2_k_decode(const uint8_t *block, int i)
{
    unsigned both = block[i / 16];
    return with_minimum(hr_block_f16(block + 80), both & 15, two_bits(block + 16, i),
                        hr_block_f16(block + 82), both >> 4);
}

/* Six bits: the low four in the first eight bytes, the upper two of four scales in each of the last four
 * bytes. */
static int q3_k_scale(const uint8_t *scales, int s)
{
    int low = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4;
    int high = scales[8 + s % 4] >> 2 * (s / 4) & 3;
    return (low | high << 4) - 32;
}

/* Q3_K: hmask[32], qs[64], scales[12], d */
float hr_q3_k_decode(const uint8_t *block, int i)
{
    int n = i / 128, j = i % 128 / 32, l = i % 32;
    int q = (int)two_bits(block + 32, i);
    if (!(block[l] >> (4 * n + j) & 1))
        q -= 4;
    return without_minimum(hr_block_f16(block + 108), q3_k_scale(block + 96, i / 16), q);
}

/* Scale and minimum of Q4_K and Q5_K, six bits each, of eight sub-blocks in twelve bytes: the upper two bits of
 * the first eight bytes belong to sub-blocks 4 to 7. */
static unsigned six_bit_scale(const uint8_t *scales, int j)
{
    return j < 4 ? scales[j] & 63u : (scales[j + 4] & 15u) | (unsigned)(scales[j - 4] >> 6) << 4;
}

static unsigned six_bit_minimum(const uint8_t *scales, int j)
{
    return j < 4 ? scales[j + 4] & 63u : (unsigned)(scales[j + 4] >> 4) | (unsigned)(scales[j] >> 6) << 4;
}

/* Chunks of 64 in 32 bytes: the low nibbles first. */
static unsigned chunk_nibble(const uint8_t *codes, int i)
{
    unsigned byte = codes[i / 64 * 32 + i % 32];
    return i % 64 < 32 ? byte & 15 : byte >> 4;
}

/* Q4_K and Q5_K begin in the same way: d, dmin, scales[12]. */
static float q45_k_value(const uint8_t *block, int i, unsigned q)
{
    return with_minimum(hr_block_f16(block), six_bit_scale(block + 4, i / 32), q, hr_block_f16(block + 2),
                        six_bit_minimum(block + 4, i / 32));
}

/* Q4_K: ..., qs[128] */
float hr_q4_k_decode(const uint8_t *block, int i)
{
    return q45_k_value(block, i, chunk_nibble(block + 16, i));
}

/* Q5_K: ..., qh[32], qs[128] */
float hr_q5_k_decode(const uint8_t *block, int i)
{
    unsigned high = block[16 + i % 32] >> i / 32 & 1u;
    return q45_k_value(block, i, chunk_nibble(block + 48, i) | high << 4);
}

/* Q6_K: ql[128], qh[64], i8 scales[16], d */
float hr_q6_k_decode(const uint8_t *block, int i)
{
    int n = i / 128, j = i % 128 / 32, l = i % 32;
    int low = block[64 * n + 32 * (j & 1) + l] >> 4 * (j >> 1) & 15;
    int high = block[128 + 32 * n + l] >> 2 * j & 3;
    return without_minimum(hr_block_f16(block + 208), (int8_t)block[192 + i / 16], (low | high << 4) - 32);
}

/* Q8_K: f32 d, i8 qs[256], i16 bsums[16], which are not used here. */
float hr_q8_k_decode(const uint8_t *block, int i)
{
    return hr_scalar_load(QDNN_DATA_F32, block, 0) * (float)(int8_t)block[4 + i];
}
