/* The format table: how each format makes a scale, encodes a quotient and decodes a code. docs/numerics.md is
 * the contract. */
#include "kernels/emit.h"

/* A NaN counts as 0 wherever a value is encoded. */
static ptx_val nan_to_zero(ptx_builder *b, ptx_val x)
{
    return ptx_selp(b, ptx_f32(b, 0), x, ptx_setp(b, PTX_NAN, x, x));
}

/* Truncation and the difference are exact, so a tie is seen as exactly one half. (Infinity minus itself is a
 * NaN, which is no tie.) */
static ptx_val round_ties_away(ptx_builder *b, ptx_val x)
{
    ptx_val whole = ptx_cvt_rzi(b, PTX_F32, x);
    ptx_val rest = ptx_abs(b, ptx_sub(b, x, whole));
    ptx_val away = ptx_copysign(b, x, ptx_f32(b, 1));
    ptx_val step = ptx_selp(b, away, ptx_f32(b, 0), ptx_setp(b, PTX_GE, rest, 0.5f));
    return ptx_add(b, whole, step);
}

static ptx_val round_integral(ptx_builder *b, const kernel_spec *spec, ptx_val x)
{
    return spec->rounding == QDNN_ROUND_TIES_AWAY ? round_ties_away(b, x) : ptx_cvt_rni(b, PTX_F32, x);
}

/* The code in bits shift..shift+3 (shift at most 12) as an f32: the bits are put into the fraction of
 * 2^(23-shift), whose unit in the last place then is that of the code. Less `bias`, which is exact for small
 * integers. */
static ptx_val code_minus(ptx_builder *b, ptx_val word, unsigned shift, unsigned bias)
{
    ptx_val placed = ptx_lop3(b, word, ptx_u32(b, 0xFu << shift), ptx_u32(b, (150u - shift) << 23),
                              (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    return ptx_sub(b, ptx_as(b, PTX_F32, placed), ptx_f32(b, (float)((1u << (23 - shift)) + bias)));
}

/* ---- INT4: symmetric, the code is the integer -8..7 plus 8 ---- */

static ptx_val int4_scale(ptx_builder *b, const kernel_spec *spec, ptx_val lo, ptx_val absmax)
{
    (void)lo;
    return ptx_div(b, ptx_max(b, absmax, ptx_f32(b, spec->floor)), 7.0f);
}

/* The conversion to s32 turns NaN into 0 and saturates, so the clamp may follow it. */
static ptx_val int4_encode(ptx_builder *b, const kernel_spec *spec, const group_values *group,
                           ptx_val quotient)
{
    (void)group;
    ptx_val q = spec->rounding == QDNN_ROUND_TIES_AWAY ? ptx_cvt_rzi(b, PTX_S32, round_ties_away(b, quotient))
                                                       : ptx_cvt_rni(b, PTX_S32, quotient);
    return ptx_as(b, PTX_U32, ptx_add(b, ptx_clamp_s32(b, q, -8, 7), 8));
}

static ptx_val int4_decode(ptx_builder *b, const kernel_spec *spec, const format_state *state,
                           const group_values *group, ptx_val word, unsigned shift)
{
    (void)spec, (void)state, (void)group;
    return code_minus(b, word, shift, 8);
}

/* ---- INT4_ZP: codes 0..15, of which `zero` stands for the value 0 ---- */

/* Where hi - lo overflows, the quotients are subtracted instead. */
static ptx_val int4_zp_scale(ptx_builder *b, const kernel_spec *spec, ptx_val lo, ptx_val hi)
{
    ptx_val width = ptx_sub(b, hi, lo);
    ptx_val usual = ptx_div(b, ptx_max(b, width, ptx_f32(b, spec->floor)), 15.0f);
    ptx_val halves = ptx_sub(b, ptx_div(b, hi, 15.0f), ptx_div(b, lo, 15.0f));
    return ptx_selp(b, usual, halves, ptx_testp_finite(b, width));
}

static ptx_val int4_zp_zero(ptx_builder *b, ptx_val lo, ptx_val scale)
{
    ptx_val zero = ptx_cvt_rni(b, PTX_F32, ptx_div(b, ptx_neg(b, lo), scale));
    return ptx_clamp(b, zero, ptx_f32(b, 0), ptx_f32(b, 15));
}

static ptx_val int4_zp_encode(ptx_builder *b, const kernel_spec *spec, const group_values *group,
                              ptx_val quotient)
{
    ptx_val q = ptx_add(b, round_integral(b, spec, nan_to_zero(b, quotient)), group->zero);
    return ptx_cvt_rni(b, PTX_U32, ptx_clamp(b, q, ptx_f32(b, 0), ptx_f32(b, 15)));
}

/* A zero may be fractional, so the code has to be exact before it is subtracted. */
static ptx_val int4_zp_decode(ptx_builder *b, const kernel_spec *spec, const format_state *state,
                              const group_values *group, ptx_val word, unsigned shift)
{
    (void)spec, (void)state;
    return ptx_sub(b, code_minus(b, word, shift, 0), group->zero);
}

/* ---- NF4: the code is the place in a table of 16 values in [-1, 1] ---- */

/* clang-format off */
static const uint64_t nf4_bits[16] = {
    0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0x00000000,
    0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000,
};
/* clang-format on */

static float nf4_entry(int code)
{
    union {
        uint32_t bits;
        float value;
    } entry = {(uint32_t)nf4_bits[code]};
    return entry.value;
}

static ptx_val nf4_scale(ptx_builder *b, const kernel_spec *spec, ptx_val lo, ptx_val absmax)
{
    (void)b, (void)spec, (void)lo;
    return absmax;
}

/* The midpoint to compare with when the code is known to lie in [first, first + count): chosen by the
 * predicates of the bits found so far, the highest first. Midpoint i separates codes i and i + 1. */
static ptx_val nf4_midpoint(ptx_builder *b, const ptx_val *bits, int known, int first, int count)
{
    if (known == 0) {
        int i = first + count / 2 - 1;
        return ptx_f32(b, (nf4_entry(i) + nf4_entry(i + 1)) * 0.5f);
    }
    ptx_val low = nf4_midpoint(b, bits + 1, known - 1, first, count / 2);
    ptx_val high = nf4_midpoint(b, bits + 1, known - 1, first + count / 2, count / 2);
    return ptx_selp(b, high, low, bits[0]);
}

/* Bisection: each of the four bits of the code is one comparison with a midpoint. On a midpoint the lower
 * entry wins. */
static ptx_val nf4_encode(ptx_builder *b, const kernel_spec *spec, const group_values *group,
                          ptx_val quotient)
{
    (void)spec, (void)group;
    ptx_val v = nan_to_zero(b, quotient);
    ptx_val bits[4];
    ptx_val code = ptx_u32(b, 0);
    for (int i = 0; i < 4; i++) {
        bits[i] = ptx_setp(b, PTX_GT, v, nf4_midpoint(b, bits, i, 0, 16));
        ptx_val bit = ptx_selp(b, ptx_u32(b, 8u >> i), ptx_u32(b, 0), bits[i]);
        code = i == 0 ? bit : ptx_or(b, code, bit);
    }
    return code;
}

/* 16 words in 16 banks: whatever the codes of a warp, a look-up has no bank conflict. */
static format_state nf4_decode_begin(ptx_builder *b)
{
    ptx_val constants = ptx_table(b, PTX_CONST, "nf4_values", PTX_F32, nf4_bits, 16);
    ptx_val table = ptx_shared(b, "nf4_table", PTX_F32, 16, 16);
    ptx_val tid = ptx_tid_x(b);
    ptx_if(b, ptx_setp(b, PTX_LT, tid, 16));
    ptx_st_shared(b, ptx_at(b, table, tid, 4), 0, ptx_ld_const(b, PTX_F32, ptx_at(b, constants, tid, 4), 0));
    ptx_end_if(b);
    ptx_syncthreads(b);
    return (format_state){.table = table};
}

static ptx_val nf4_decode(ptx_builder *b, const kernel_spec *spec, const format_state *state,
                          const group_values *group, ptx_val word, unsigned shift)
{
    (void)spec, (void)group;
    return ptx_ld_shared(b, PTX_F32, ptx_at(b, state->table, ptx_bfe(b, word, shift, 4), 4), 0);
}

/* ---- The table ---- */

static const format_row format_rows[] = {
    [QDNN_FORMAT_INT4] = {.scale = int4_scale, .encode = int4_encode, .decode = int4_decode},
    [QDNN_FORMAT_INT4_ZP] = {.has_zero = true,
                             .signed_range = true,
                             .scale = int4_zp_scale,
                             .zero = int4_zp_zero,
                             .encode = int4_zp_encode,
                             .decode = int4_zp_decode},
    [QDNN_FORMAT_NF4] = {.scale = nf4_scale,
                         .encode = nf4_encode,
                         .decode_begin = nf4_decode_begin,
                         .decode = nf4_decode},
};

const format_row *format_of(const kernel_row *row)
{
    return &format_rows[row->format];
}
