/* 4-bit codes that are indices into a table: NF4, and bitsandbytes' FP4. */
#include "kernels/formats/format.h"

/* clang-format off */
static const uint64_t nf4_bits[16] = {
    0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0x00000000,
    0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000,
};
static const uint64_t fp4_bits[16] = {
    0x00000000, 0x3BAAAAAB, 0x3F2AAAAB, 0x3F800000, 0x3EAAAAAB, 0x3F000000, 0x3E2AAAAB, 0x3E800000,
    0x80000000, 0xBBAAAAAB, 0xBF2AAAAB, 0xBF800000, 0xBEAAAAAB, 0xBF000000, 0xBE2AAAAB, 0xBE800000,
};
/* A magnitude strictly above threshold i is past the i-th code in the order 0 1 6 7 4 5 2 3. */
static const uint32_t fp4_thresholds[7] = {
    0x3B2AAAB9, 0x3DB00000, 0x3E555555, 0x3E955555, 0x3ED55556, 0x3F155550, 0x3F555555,
};
enum { FP4_ORDER = 0x32547610 };
/* clang-format on */

static float from_bits(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } x = {bits};
    return x.value;
}

uint32_t float_bits(float x)
{
    union {
        float value;
        uint32_t bits;
    } u = {x};
    return u.bits;
}

static ptx_val absmax_scale(ptx_builder *b, const coding *c, ptx_val lo, ptx_val absmax)
{
    (void)b, (void)c, (void)lo;
    return absmax;
}

/* ---- Encoding: bisection, each bit one comparison with a threshold ---- */

/* The threshold to compare with next, if the place is known to be in [first, first + count): it is selected
 * by the predicates of the bits found so far, the highest first. Threshold i separates places i and i + 1. */
static ptx_val choose_threshold(ptx_builder *b, const ptx_val *thresholds, const ptx_val *bits, int known,
                                int first, int count)
{
    if (known == 0)
        return thresholds[first + count / 2 - 1];
    ptx_val low = choose_threshold(b, thresholds, bits + 1, known - 1, first, count / 2);
    ptx_val high = choose_threshold(b, thresholds, bits + 1, known - 1, first + count / 2, count / 2);
    return ptx_selp(b, high, low, bits[0]);
}

ptx_val table_place(ptx_builder *b, const ptx_val *thresholds, int count, ptx_val x)
{
    ptx_val bits[4], place = ptx_u32(b, 0);
    for (int i = 0; i < count; i++) {
        bits[i] = ptx_setp(b, PTX_GT, x, choose_threshold(b, thresholds, bits, i, 0, 1 << count));
        ptx_val bit = ptx_selp(b, ptx_u32(b, (1u << (count - 1)) >> i), ptx_u32(b, 0), bits[i]);
        place = i == 0 ? bit : ptx_or(b, place, bit);
    }
    return place;
}

/* To the nearest entry of a table in increasing order; on a midpoint the lower entry wins. */
static ptx_val nearest_encode(ptx_builder *b, const coding *c, const group_values *group, ptx_val quotient)
{
    (void)group;
    const uint64_t *numbers = c->format->codec->numbers;
    ptx_val midpoints[15];
    for (int i = 0; i < 15; i++)
        midpoints[i] =
            ptx_f32(b, (from_bits((uint32_t)numbers[i]) + from_bits((uint32_t)numbers[i + 1])) * 0.5f);
    return table_place(b, midpoints, 4, quotient);
}

/* NaN is above no threshold and not negative, so it gets the code of 0. */
static ptx_val fp4_encode(ptx_builder *b, const coding *c, const group_values *group, ptx_val quotient)
{
    (void)c, (void)group;
    ptx_val thresholds[7];
    for (int i = 0; i < 7; i++)
        thresholds[i] = ptx_f32(b, from_bits(fp4_thresholds[i]));
    ptx_val place = table_place(b, thresholds, 3, ptx_abs(b, quotient));
    ptx_val code = ptx_bfe(b, ptx_u32(b, FP4_ORDER), ptx_shl(b, place, 2), 4);
    ptx_val sign = ptx_selp(b, ptx_u32(b, 8), ptx_u32(b, 0), ptx_setp(b, PTX_LT, quotient, 0.0f));
    return ptx_or(b, code, sign);
}

/* ---- Decoding: 16 words in 16 banks, so that lookups have no bank conflicts, whatever the codes of a warp
 * ---- */

codec_state table_open(ptx_builder *b, const uint64_t bits[16])
{
    ptx_val constants = ptx_table(b, PTX_CONST, "code_values", PTX_F32, bits, 16);
    ptx_val table = ptx_shared(b, "code_table", PTX_F32, 16, 16);
    ptx_val tid = ptx_tid_x(b);
    ptx_if(b, ptx_setp(b, PTX_LT, tid, 16));
    ptx_st_shared(b, ptx_at(b, table, tid, 4), 0, ptx_ld_const(b, PTX_F32, ptx_at(b, constants, tid, 4), 0));
    ptx_end_if(b);
    ptx_syncthreads(b);
    return (codec_state){.table = table};
}

static codec_state numbers_open(ptx_builder *b, const coding *c)
{
    return table_open(b, c->format->codec->numbers);
}

ptx_val table_number(ptx_builder *b, const codec_state *state, ptx_val word, unsigned position)
{
    return ptx_ld_shared(b, PTX_F32, ptx_at(b, state->table, ptx_bfe(b, word, position, 4), 4), 0);
}

static ptx_val table_unit(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                          unsigned position)
{
    (void)c;
    return table_number(b, state, word, position);
}

const codec codec_nf4 = {.scale_is_absmax = true,
                         .replaces_nan_last = true,
                         .numbers = nf4_bits,
                         .scale = absmax_scale,
                         .encode = nearest_encode,
                         .open = numbers_open,
                         .unit = table_unit};
const codec codec_fp4_bnb = {.scale_is_absmax = true,
                             .numbers = fp4_bits,
                             .scale = absmax_scale,
                             .encode = fp4_encode,
                             .open = numbers_open,
                             .unit = table_unit};
