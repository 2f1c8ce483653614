/* IQ1, IQ2 and IQ3: eight (or four) numbers at a time are an entry of a codebook, which has an index; signs, or an offset
 * common to eight numbers, are stored apart from it. A block has eight parts of 32 elements, a part four runs of eight. */
#include "host_ref/blocks.h"

#include "codebooks/codebooks.h"

/* clang-format off */
static const uint32_t iq1_entries[2048] = {
#include "codebooks/iq1.def"
};
static const uint32_t iq2_xxs_entries[256] = {
#include "codebooks/iq2_xxs.def"
};
static const uint32_t iq2_xs_entries[512] = {
#include "codebooks/iq2_xs.def"
};
static const uint32_t iq2_s_entries[1024] = {
#include "codebooks/iq2_s.def"
};
static const uint32_t iq3_xxs_entries[256] = {
#include "codebooks/iq3_xxs.def"
};
static const uint32_t iq3_s_entries[512] = {
#include "codebooks/iq3_s.def"
};
/* clang-format on */

static const float iq1_numbers[] = {CODEBOOK_IQ1_NUMBERS};
static const float iq2_numbers[] = {CODEBOOK_IQ2_NUMBERS};
static const float iq3_xxs_numbers[] = {CODEBOOK_IQ3_XXS_NUMBERS};
static const float iq3_s_numbers[] = {CODEBOOK_IQ3_S_NUMBERS};

/* The place of element i: the part and the run of eight that it is in, and its number in that. */
typedef struct {
    int part, run, j;
} place;

static place place_of(int i)
{
    return (place){i / 32, i % 32 / 8, i % 8};
}

static unsigned u16_at(const uint8_t *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

static uint32_t u32_at(const uint8_t *at)
{
    return u16_at(at) | (uint32_t)u16_at(at + 2) << 16;
}

/* Number j of an entry. */
static float number_of(const float *numbers, uint32_t entry, int j)
{
    return numbers[entry >> 4 * j & 15];
}

static float with_sign(float x, unsigned signs, int j)
{
    return signs >> j & 1 ? -x : x;
}

/* Eight signs of which seven are stored: an even number of them is minus. */
static unsigned even_signs(unsigned seven)
{
    unsigned odd = 0;
    for (unsigned rest = seven; rest; rest >>= 1)
        odd ^= rest & 1;
    return seven | odd << 7;
}

/* ---- IQ2: scales are odd multiples of d / 8 ---- */

static float iq2_scale(const uint8_t *block, unsigned four)
{
    float scale = hr_block_f16(block) * (0.5f + (float)four);
    return scale * 0.25f;
}

static float iq2_value(float scale, uint32_t entry, unsigned signs, int j)
{
    return with_sign(scale * number_of(iq2_numbers, entry, j), signs, j);
}

/* IQ2_XXS: d, then for each part q[4] and a u32 with four times seven signs and, on top, the scale */
float hr_iq2_xxs_decode(const uint8_t *block, int i)
{
    place p = place_of(i);
    const uint8_t *q = block + 2 + 8 * p.part;
    uint32_t rest = u32_at(q + 4);
    unsigned signs = even_signs(rest >> 7 * p.run & 127);
    return iq2_value(iq2_scale(block, rest >> 28), iq2_xxs_entries[q[p.run]], signs, p.j);
}

/* Four bits of each of the bytes that IQ2_XS and IQ2_S have for 32 elements, the low ones for the first 16. */
static unsigned iq2_four(const uint8_t *scales, place p)
{
    return scales[p.part] >> 4 * (p.run / 2) & 15u;
}

/* IQ2_XS: d, u16 q[32], scales[8]; an index of nine bits and seven signs */
float hr_iq2_xs_decode(const uint8_t *block, int i)
{
    place p = place_of(i);
    unsigned q = u16_at(block + 2 + 2 * (4 * p.part + p.run));
    return iq2_value(iq2_scale(block, iq2_four(block + 66, p)), iq2_xs_entries[q & 511], even_signs(q >> 9),
                     p.j);
}

/* IQ2_S: d, q[32], signs[32], qh[8], scales[8] */
float hr_iq2_s_decode(const uint8_t *block, int i)
{
    place p = place_of(i);
    int run = 4 * p.part + p.run;
    unsigned index = block[2 + run] | (block[66 + p.part] >> 2 * p.run & 3u) << 8;
    return iq2_value(iq2_scale(block, iq2_four(block + 74, p)), iq2_s_entries[index], block[34 + run], p.j);
}

/* ---- IQ3: entries of four numbers ---- */

/* IQ3_XXS: d, q[64], u32 a[8], each with four times seven signs and, on top, the scale */
float hr_iq3_xxs_decode(const uint8_t *block, int i)
{
    place p = place_of(i);
    uint32_t rest = u32_at(block + 66 + 4 * p.part);
    float scale = hr_block_f16(block) * (0.5f + (float)(rest >> 28)) * 0.5f;
    uint32_t entry = iq3_xxs_entries[block[2 + i / 4]];
    unsigned signs = even_signs(rest >> 7 * p.run & 127);
    return with_sign(scale * number_of(iq3_xxs_numbers, entry, p.j % 4), signs, p.j);
}

/* IQ3_S: d, q[64], qh[8], signs[32], scales[4] */
float hr_iq3_s_decode(const uint8_t *block, int i)
{
    place p = place_of(i);
    unsigned four = block[106 + p.part / 2] >> 4 * (p.part % 2) & 15u;
    float scale = hr_block_f16(block) * (float)(1 + 2 * four);
    unsigned index = block[2 + i / 4] | (block[66 + p.part] >> i % 32 / 4 & 1u) << 8;
    return with_sign(scale * number_of(iq3_s_numbers, iq3_s_entries[index], p.j % 4),
                     block[74 + 4 * p.part + p.run], p.j);
}

/* ---- IQ1: -1, 0 and 1, all moved by an eighth up or down ---- */

static float iq1_value(float d, unsigned three, unsigned index, bool is_down, int j)
{
    float scale = d * (float)(2 * three + 1), delta = is_down ? -0.125f : 0.125f;
    return scale * (number_of(iq1_numbers, iq1_entries[index], j) + delta);
}

/* IQ1_S: d, q[32], u16 qh[8]: four times three bits of indices, the scale, and the direction */
float hr_iq1_s_decode(const uint8_t *block, int i)
{
    place p = place_of(i);
    unsigned high = u16_at(block + 34 + 2 * p.part);
    unsigned index = block[2 + 4 * p.part + p.run] | (high >> 3 * p.run & 7) << 8;
    return iq1_value(hr_block_f16(block), high >> 12 & 7, index, high >> 15, p.j);
}

/* IQ1_M: q[32], qh[16], u16 sc[4]. A nibble of qh has three bits of an index, and the direction. A sc has four scales; its
 * upper four bits are a part of d. */
float hr_iq1_m_decode(const uint8_t *block, int i)
{
    place p = place_of(i);
    const uint8_t *scales = block + 48;
    unsigned high = block[32 + 2 * p.part + p.run / 2] >> 4 * (p.run % 2) & 15u, d = 0;
    for (int s = 0; s < 4; s++)
        d |= u16_at(scales + 2 * s) >> 12 << 4 * s;
    unsigned three = u16_at(scales + p.part / 2 * 2) >> (6 * (p.part % 2) + 3 * (p.run / 2)) & 7;
    unsigned index = block[4 * p.part + p.run] | (high & 7) << 8;
    return iq1_value(hr_f16_to_f32((uint16_t)d), three, index, high >> 3, p.j);
}
