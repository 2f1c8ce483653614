/* The search for the scale of a sub-block without a minimum: Q3_K, Q6_K. Elements are weighted by their squares. */
#include "kernels/formats/search.h"

enum { SUB = 16 };

/* Sums of x^3 l and x^2 l^2, where l are the codes: scale = xl / l2. */
typedef struct symmetric_sums {
    ptx_val xl, l2;
} symmetric_sums;

/* The powers of the elements that occur in these sums. */
typedef struct symmetric_data {
    const sub_block *sub;
    ptx_val squares[SUB], cubes[SUB];
} symmetric_data;

static symmetric_data data_of(ptx_builder *b, const sub_block *sub)
{
    symmetric_data d = {.sub = sub};
    for (unsigned i = 0; i < SUB; i++) {
        d.squares[i] = ptx_mul(b, sub->x[i], sub->x[i]);
        d.cubes[i] = ptx_mul(b, d.squares[i], sub->x[i]);
    }
    return d;
}

/* The terms of element i for a given code. */
static symmetric_sums terms_of(ptx_builder *b, const symmetric_data *d, unsigned i, ptx_val code)
{
    ptx_val xl = ptx_mul(b, d->cubes[i], code);
    return (symmetric_sums){xl, ptx_mul(b, ptx_mul(b, d->squares[i], code), code)};
}

static float half_of(const block_search *s)
{
    return (s->most + 1) / 2;
}

static ptx_val code_of(ptx_builder *b, const block_search *s, ptx_val v)
{
    return search_nearest(b, v, -half_of(s), half_of(s) - 1);
}

static symmetric_sums sums_of(ptx_builder *b, const symmetric_data *d, ptx_val factor, ptx_val *codes)
{
    const sub_block *sub = d->sub;
    symmetric_sums sums = {0};
    for (unsigned i = 0; i < SUB; i++) {
        codes[i] = code_of(b, sub->layout->search, ptx_mul(b, factor, sub->x[i]));
        symmetric_sums one = terms_of(b, d, i, codes[i]);
        sums.xl = i ? ptx_add(b, sums.xl, one.xl) : one.xl;
        sums.l2 = i ? ptx_add(b, sums.l2, one.l2) : one.l2;
    }
    return sums;
}

/* The first element of largest magnitude; if all elements are nearly zero, infinity instead, which makes
 * every factor, code and sum 0, and the scale as well. */
static ptx_val top_of(ptx_builder *b, const sub_block *sub, ptx_val *nearly_zero)
{
    ptx_val top = sub->x[0];
    for (unsigned i = 1; i < SUB; i++)
        top = block_first_larger_magnitude(b, top, sub->x[i]);
    *nearly_zero = ptx_setp(b, PTX_LT, ptx_abs(b, top), ptx_f32(b, 1e-15f));
    return ptx_selp(b, ptx_bits(b, PTX_F32, 0x7F800000), top, *nearly_zero);
}

/* xl / l2; 0 if all codes are 0; `otherwise` if a sum overflowed. */
static ptx_val quotient_or(ptx_builder *b, symmetric_sums sums, ptx_val otherwise)
{
    ptx_val quotient = ptx_div(b, sums.xl, sums.l2), zero = ptx_f32(b, 0);
    ptx_val scale = ptx_selp(b, zero, quotient, ptx_setp(b, PTX_EQ, sums.l2, zero));
    return ptx_selp(b, scale, otherwise, ptx_testp_finite(b, scale));
}

/* The result of a search. */
typedef struct symmetric_fit {
    ptx_val scale;
    ptx_val codes[SUB]; /* integral f32, from -half up */
    ptx_val shift;      /* f32: added to the codes when they are stored; 0 if the elements are nearly zero */
} symmetric_fit;

/* ---- Q6_K: nineteen factors ---- */

typedef struct best_factor {
    ptx_val scale, merit, factor; /* variables */
} best_factor;

static void try_factor(ptx_builder *b, const symmetric_data *d, ptx_val factor, best_factor *best)
{
    ptx_val codes[SUB];
    symmetric_sums sums = sums_of(b, d, factor, codes);
    ptx_val scale = ptx_div(b, sums.xl, sums.l2), square = ptx_mul(b, sums.xl, sums.xl);
    ptx_val taken = ptx_setp_and(b, PTX_GT, sums.l2, ptx_f32(b, 0), ptx_testp_finite(b, scale));
    taken = ptx_setp_and(b, PTX_GT, square, ptx_mul(b, best->merit, sums.l2), taken);
    ptx_assign(b, best->factor, ptx_selp(b, factor, best->factor, taken));
    ptx_assign(b, best->merit, ptx_selp(b, ptx_mul(b, scale, sums.xl), best->merit, taken));
    ptx_assign(b, best->scale, ptx_selp(b, scale, best->scale, taken));
}

/* Candidates -9 to 9 in tenths, except 0, which is the first fit. */
static symmetric_fit fit_by_factors(ptx_builder *b, const sub_block *sub)
{
    const block_search *s = sub->layout->search;
    symmetric_fit fit;
    symmetric_data d = data_of(b, sub);
    ptx_val nearly_zero, top = top_of(b, sub, &nearly_zero), half = ptx_f32(b, half_of(s));
    ptx_val factor = ptx_div(b, ptx_neg(b, half), top);
    symmetric_sums sums = sums_of(b, &d, factor, fit.codes);
    ptx_val scale = quotient_or(b, sums, ptx_rcp(b, factor));
    best_factor best = {.scale = ptx_var(b, scale),
                        .merit = ptx_var(b, ptx_mul(b, scale, sums.xl)),
                        .factor = ptx_var(b, factor)};
    ptx_uniform(b);
    ptx_val number = ptx_for(b, ptx_s32(b, -(int)s->candidates / 2), ptx_s32(b, (int)s->candidates / 2), 1);
    ptx_val place = ptx_selp(b, number, ptx_add(b, number, 1), ptx_setp(b, PTX_LT, number, 0));
    ptx_val more = ptx_mul(b, ptx_cvt(b, PTX_F32, place), ptx_f32(b, 0.1f));
    try_factor(b, &d, ptx_div(b, ptx_neg(b, ptx_add(b, more, half)), top), &best);
    ptx_end_for(b);
    fit.scale = best.scale;
    for (unsigned i = 0; i < SUB; i++)
        fit.codes[i] = code_of(b, s, ptx_mul(b, best.factor, sub->x[i]));
    fit.shift = ptx_selp(b, ptx_f32(b, 0), half, nearly_zero);
    return fit;
}

/* ---- Q3_K: codes are moved one by one as long as that helps, in at most five rounds ---- */

/* Codes and sums are variables, and so is `changed` (u32). */
static void improve_code(ptx_builder *b, const symmetric_data *d, unsigned i, ptx_val code,
                         symmetric_sums *sums, ptx_val changed)
{
    ptx_val zero = ptx_f32(b, 0);
    symmetric_sums old = terms_of(b, d, i, code);
    symmetric_sums others = {ptx_sub(b, sums->xl, old.xl), ptx_sub(b, sums->l2, old.l2)};
    ptx_val wanted = ptx_div(b, ptx_mul(b, d->sub->x[i], others.l2), others.xl);
    ptx_val moved = code_of(b, d->sub->layout->search, wanted);
    symmetric_sums one = terms_of(b, d, i, moved);
    symmetric_sums with = {ptx_add(b, others.xl, one.xl), ptx_add(b, others.l2, one.l2)};
    ptx_val gain = ptx_mul(b, ptx_mul(b, with.xl, with.xl), sums->l2);
    ptx_val bar = ptx_mul(b, ptx_mul(b, sums->xl, sums->xl), with.l2);
    ptx_val taken = ptx_setp(b, PTX_GT, others.xl, zero);
    taken = ptx_setp_and(b, PTX_NE, moved, code, taken);
    taken = ptx_setp_and(b, PTX_GT, with.l2, zero, taken);
    taken = ptx_setp_and(b, PTX_GT, gain, bar, taken);
    ptx_assign(b, code, ptx_selp(b, moved, code, taken));
    ptx_assign(b, sums->xl, ptx_selp(b, with.xl, sums->xl, taken));
    ptx_assign(b, sums->l2, ptx_selp(b, with.l2, sums->l2, taken));
    ptx_assign(b, changed, ptx_selp(b, ptx_u32(b, 1), changed, taken));
}

static symmetric_fit fit_by_rounds(ptx_builder *b, const sub_block *sub)
{
    symmetric_fit fit;
    symmetric_data d = data_of(b, sub);
    ptx_val nearly_zero, top = top_of(b, sub, &nearly_zero), half = ptx_f32(b, half_of(sub->layout->search));
    ptx_val factor = ptx_div(b, ptx_neg(b, half), top), codes[SUB];
    symmetric_sums sums = sums_of(b, &d, factor, codes);
    sums = (symmetric_sums){ptx_var(b, sums.xl), ptx_var(b, sums.l2)};
    for (unsigned i = 0; i < SUB; i++)
        fit.codes[i] = ptx_var(b, codes[i]);
    ptx_val changed = ptx_var(b, ptx_u32(b, 1));
    ptx_for(b, ptx_u32(b, 0), ptx_u32(b, sub->layout->search->candidates), 1);
    ptx_break_if(b, ptx_setp(b, PTX_EQ, changed, 0));
    ptx_assign(b, changed, ptx_u32(b, 0));
    for (unsigned i = 0; i < SUB; i++)
        improve_code(b, &d, i, fit.codes[i], &sums, changed);
    ptx_end_for(b);
    fit.scale = quotient_or(b, sums, ptx_rcp(b, factor));
    fit.shift = ptx_selp(b, ptx_f32(b, 0), half, nearly_zero);
    return fit;
}

/* ---- The super-block ---- */

/* Codes are recomputed with the stored step; if that is 0, those of the search are kept. */
static void final_words(ptx_builder *b, const sub_block *sub, const symmetric_fit *fit, ptx_val step,
                        ptx_val *words)
{
    ptx_val codes[SUB], found[SUB / 4], zero = ptx_f32(b, 0);
    search_words(b, fit->codes, SUB, fit->shift, found);
    for (unsigned i = 0; i < SUB / 4; i++)
        words[i] = ptx_var(b, found[i]);
    ptx_if(b, ptx_setp(b, PTX_NE, step, zero));
    for (unsigned i = 0; i < SUB; i++)
        codes[i] = code_of(b, sub->layout->search, ptx_div(b, sub->x[i], step));
    search_words(b, codes, SUB, ptx_f32(b, half_of(sub->layout->search)), found);
    for (unsigned i = 0; i < SUB / 4; i++)
        ptx_assign(b, words[i], found[i]);
    ptx_end_if(b);
}

/* The scale of largest magnitude is stored as -units. */
static void encode_fit(ptx_builder *b, const sub_block *sub, const symmetric_fit *fit, ptx_val *words)
{
    const block_search *s = sub->layout->search;
    ptx_val zero = ptx_f32(b, 0);
    ptx_val top = block_over_lanes(b, sub->lanes, block_first_larger_magnitude, fit->scale);
    ptx_val empty = ptx_setp(b, PTX_LT, ptx_abs(b, top), ptx_f32(b, s->least));
    ptx_val factor = ptx_div(b, ptx_f32(b, -s->units), top);
    ptx_val d = ptx_selp(b, zero, ptx_rcp(b, factor), empty);
    ptx_val stored = block_put_f16(b, sub->lanes, sub->layout->at.scale, d);
    ptx_val integer = search_nearest(b, ptx_mul(b, factor, fit->scale), -s->units, s->units - 1);
    final_words(b, sub, fit, ptx_mul(b, ptx_cvt(b, PTX_F32, stored), integer), words);
    s->put(b, sub, ptx_selp(b, ptx_u32(b, 0), search_integer(b, integer, s->shift), empty));
    for (unsigned i = 0; i < SUB / 4; i++)
        words[i] = ptx_selp(b, ptx_u32(b, 0), words[i], empty);
}

static void encode_q3_k(ptx_builder *b, const sub_block *sub, ptx_val *words)
{
    symmetric_fit fit = fit_by_rounds(b, sub);
    encode_fit(b, sub, &fit, words);
}

static void encode_q6_k(ptx_builder *b, const sub_block *sub, ptx_val *words)
{
    symmetric_fit fit = fit_by_factors(b, sub);
    encode_fit(b, sub, &fit, words);
}

/* ---- Integers ---- */

/* Six bits: the lower four as nibbles of the first eight bytes; the upper two, of four lanes each, in the
 * other four bytes. */
static void put_four_and_two(ptx_builder *b, const sub_block *sub, ptx_val scale)
{
    const int at = (int)sub->layout->at.scales;
    ptx_val lower = ptx_and(b, scale, 15), upper = ptx_shr(b, scale, 4);
    ptx_val nibbles = ptx_or(b, lower, ptx_shl(b, ptx_shfl_down(b, lower, 8), 4));
    for (unsigned distance = 4; distance < SUB; distance *= 2) /* combines two lanes, then four */
        upper = ptx_or(b, upper, ptx_shl(b, ptx_shfl_down(b, upper, (int)distance), distance / 2));
    ptx_if(b, ptx_setp(b, PTX_LT, sub->place, 8));
    search_put_byte(b, sub, sub->place, at, nibbles);
    ptx_end_if(b);
    ptx_if(b, ptx_setp(b, PTX_LT, sub->place, 4));
    search_put_byte(b, sub, sub->place, at + 8, upper);
    ptx_end_if(b);
}

static void put_byte(ptx_builder *b, const sub_block *sub, ptx_val scale)
{
    search_put_byte(b, sub, sub->place, (int)sub->layout->at.scales, scale);
}

const block_search search_q3_k = {.elements = SUB,
                                  .most = 7,
                                  .units = 32,
                                  .least = 0x1p-149f,
                                  .shift = 32,
                                  .candidates = 5,
                                  .encode = encode_q3_k,
                                  .put = put_four_and_two};
const block_search search_q6_k = {.elements = SUB,
                                  .most = 63,
                                  .units = 128,
                                  .least = 1e-15f,
                                  .candidates = 18,
                                  .encode = encode_q6_k,
                                  .put = put_byte};
