/* MXFP4 and NVFP4 as in GGUF. Codes are E2M1, except that code 8 is +0; the table below has twice their
 * values, so the scales used with it are halved. */
#include "host_ref/blocks.h"

static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* ---- MXFP4: e8m0, qs[16] ---- */

/* Half of 2^(e - 127). 255 is not a NaN here. */
static float half_scale(unsigned e)
{
    return ldexpf(1.0f, (int)e - 128);
}

float hr_mxfp4_decode(const uint8_t *block, int i)
{
    return (float)doubled[hr_block_nibble(block + 1, i)] * half_scale(block[0]);
}

/* The nearest, or the smaller magnitude if two are equally near. Differences are exact where it matters. */
static unsigned nearest_doubled(float x, float half)
{
    unsigned best = 0;
    for (unsigned code = 1; code < 16; code++) {
        float error = fabsf((float)doubled[code] * half - x);
        if (error < fabsf((float)doubled[best] * half - x))
            best = code;
    }
    return best;
}

/* ggml uses floor(log2f(absmax)), which is one too large just below a power of two; this is exact. */
void hr_mxfp4_encode(const float *x, uint8_t *block)
{
    float absmax = hr_block_absmax(x, 32);
    int e = absmax > 0.0f ? ilogbf(absmax) - 2 + 127 : 0;
    block[0] = (uint8_t)(e < 0 ? 0 : e);
    for (int i = 0; i < 32; i++)
        hr_block_put_nibble(block + 1, i, nearest_doubled(x[i], half_scale(block[0])));
}

/* ---- NVFP4: four scales, qs[32]; eight bytes and one scale per 16 elements ---- */

/* E4M3 without a sign: bit 7 is ignored, 7F is 0, and there is no NaN. */
static float unsigned_e4m3(unsigned code)
{
    int field = (int)(code >> 3 & 15), mantissa = (int)(code & 7);
    if (code == 0x7F)
        return 0.0f;
    return field == 0 ? ldexpf((float)mantissa, -9) : ldexpf((float)(8 + mantissa), field - 10);
}

float hr_nvfp4_decode(const uint8_t *block, int i)
{
    int part = i / 16, at = i % 16;
    unsigned byte = block[4 + 8 * part + at % 8];
    unsigned code = at < 8 ? byte & 15 : byte >> 4;
    return (float)doubled[code] * (unsigned_e4m3(block[part]) * 0.5f);
}
