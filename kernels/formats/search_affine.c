/* The search for the scale and minimum of a sub-block: Q2_K, Q4_K, Q5_K. */
#include "kernels/formats/search.h"

/* What does not change during the search. */
typedef struct affine_data {
    const block_search *s;
    const ptx_val *x;
    ptx_val weights[SUB_BLOCK_MAX];
    ptx_val largest, sum_w, sum_x;
} affine_data;

/* The best fit so far; all members are variables. Codes are the integers nearest to factor * (x - base). */
typedef struct affine_fit {
    ptx_val scale, minimum, error, factor, base;
} affine_fit;

static ptx_val root_mean_square(ptx_builder *b, const ptx_val *x, unsigned count)
{
    ptx_val squares = ptx_mul(b, x[0], x[0]);
    for (unsigned i = 1; i < count; i++)
        squares = ptx_add(b, squares, ptx_mul(b, x[i], x[i]));
    return ptx_sqrt(b, ptx_mul(b, squares, ptx_f32(b, 1.0f / (float)count))); /* a power of two, so exact */
}

static void make_weights(ptx_builder *b, affine_data *d)
{
    ptx_val rms = {0};
    if (d->s->squared)
        rms = root_mean_square(b, d->x, d->s->elements);
    for (unsigned i = 0; i < d->s->elements; i++) {
        d->weights[i] = ptx_abs(b, d->x[i]);
        if (d->s->squared)
            d->weights[i] = ptx_add(b, rms, d->weights[i]);
    }
}

/* Returns the least value, or 0 if all are positive. */
static ptx_val take_sums(ptx_builder *b, affine_data *d)
{
    ptx_val least = ptx_min(b, d->x[0], ptx_f32(b, 0));
    d->largest = d->x[0];
    d->sum_w = d->weights[0];
    d->sum_x = ptx_mul(b, d->sum_w, d->x[0]);
    for (unsigned i = 1; i < d->s->elements; i++) {
        ptx_val w = d->weights[i];
        least = ptx_min(b, least, d->x[i]);
        d->largest = ptx_max(b, d->largest, d->x[i]);
        d->sum_w = ptx_add(b, d->sum_w, w);
        d->sum_x = ptx_add(b, d->sum_x, ptx_mul(b, w, d->x[i]));
    }
    return least;
}

/* levels / (largest - minimum). The difference may overflow and is limited; the quotient is not finite if all
 * elements are equal or nearly so. */
static ptx_val factor_of(ptx_builder *b, const affine_data *d, ptx_val levels, ptx_val minimum)
{
    ptx_val range = ptx_sub(b, d->largest, minimum);
    return ptx_div(b, levels, ptx_min(b, range, ptx_f32(b, element_largest(QDNN_DATA_F32))));
}

static void make_codes(ptx_builder *b, const affine_data *d, ptx_val factor, ptx_val base, ptx_val *codes)
{
    for (unsigned i = 0; i < d->s->elements; i++) {
        ptx_val v = ptx_mul(b, factor, ptx_sub(b, d->x[i], base));
        codes[i] = search_nearest(b, v, 0, d->s->most);
    }
}

static ptx_val error_of(ptx_builder *b, const affine_data *d, ptx_val scale, ptx_val minimum,
                        const ptx_val *codes)
{
    ptx_val error = {0};
    for (unsigned i = 0; i < d->s->elements; i++) {
        ptx_val value = ptx_add(b, ptx_mul(b, scale, codes[i]), minimum);
        ptx_val difference = ptx_sub(b, value, d->x[i]);
        ptx_val size = d->s->squared ? ptx_mul(b, difference, difference) : ptx_abs(b, difference);
        ptx_val weighted = ptx_mul(b, d->weights[i], size);
        error = i ? ptx_add(b, error, weighted) : weighted;
    }
    return error;
}

/* Weighted least squares fit of a line to the codes; if its minimum is positive, of a line through 0. */
typedef struct line {
    ptx_val determinant, scale, minimum;
} line;

typedef struct line_sums {
    ptx_val l, l2, xl;
} line_sums;

static line_sums sums_of(ptx_builder *b, const affine_data *d, const ptx_val *codes)
{
    line_sums s = {0};
    for (unsigned i = 0; i < d->s->elements; i++) {
        ptx_val weighted = ptx_mul(b, d->weights[i], codes[i]);
        ptx_val l2 = ptx_mul(b, weighted, codes[i]), xl = ptx_mul(b, weighted, d->x[i]);
        s.l = i ? ptx_add(b, s.l, weighted) : weighted;
        s.l2 = i ? ptx_add(b, s.l2, l2) : l2;
        s.xl = i ? ptx_add(b, s.xl, xl) : xl;
    }
    return s;
}

/* p * q - r * t */
static ptx_val cross(ptx_builder *b, ptx_val p, ptx_val q, ptx_val r, ptx_val t)
{
    ptx_val first = ptx_mul(b, p, q);
    return ptx_sub(b, first, ptx_mul(b, r, t));
}

static line line_of(ptx_builder *b, const affine_data *d, const ptx_val *codes)
{
    line_sums s = sums_of(b, d, codes);
    line line = {.determinant = cross(b, d->sum_w, s.l2, s.l, s.l)};
    line.minimum = ptx_div(b, cross(b, s.l2, d->sum_x, s.l, s.xl), line.determinant);
    ptx_val positive = ptx_setp(b, PTX_GT, line.minimum, ptx_f32(b, 0));
    ptx_val above = ptx_selp(b, s.xl, cross(b, d->sum_w, s.xl, d->sum_x, s.l), positive);
    line.scale = ptx_div(b, above, ptx_selp(b, s.l2, line.determinant, positive));
    line.minimum = ptx_selp(b, ptx_f32(b, 0), line.minimum, positive);
    return line;
}

static void keep(ptx_builder *b, ptx_val taken, ptx_val var, ptx_val x)
{
    ptx_assign(b, var, ptx_selp(b, x, var, taken));
}

static void try_candidate(ptx_builder *b, const affine_data *d, ptx_val number, affine_fit *best)
{
    ptx_val codes[SUB_BLOCK_MAX];
    ptx_val more = ptx_mul(b, ptx_cvt(b, PTX_F32, number), ptx_f32(b, 0.1f));
    ptx_val levels = ptx_add(b, ptx_add(b, more, ptx_f32(b, d->s->first)), ptx_f32(b, d->s->most));
    ptx_val factor = search_finite_or_zero(b, factor_of(b, d, levels, best->minimum));
    make_codes(b, d, factor, best->minimum, codes);
    line line = line_of(b, d, codes);
    ptx_val error = error_of(b, d, line.scale, line.minimum, codes);
    ptx_val taken = ptx_setp(b, PTX_LT, error, best->error);
    taken = ptx_setp_and(b, PTX_GT, line.determinant, ptx_f32(b, 0), taken);
    keep(b, taken, best->factor, factor);
    keep(b, taken, best->base, best->minimum);
    keep(b, taken, best->scale, line.scale);
    keep(b, taken, best->minimum, line.minimum);
    keep(b, taken, best->error, error);
}

/* The first fit spans the elements exactly; each later candidate starts from the best minimum so far. */
static affine_fit fit_of(ptx_builder *b, affine_data *d)
{
    make_weights(b, d);
    ptx_val least = take_sums(b, d), codes[SUB_BLOCK_MAX];
    ptx_val factor = factor_of(b, d, ptx_f32(b, d->s->most), least), scale = ptx_rcp(b, factor);
    factor = search_finite_or_zero(b, factor);
    make_codes(b, d, factor, least, codes);
    affine_fit best = {.scale = ptx_var(b, scale),
                       .minimum = ptx_var(b, least),
                       .error = ptx_var(b, error_of(b, d, scale, least, codes)),
                       .factor = ptx_var(b, factor),
                       .base = ptx_var(b, least)};
    ptx_uniform(b);
    ptx_val number = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, d->s->candidates), 1);
    try_candidate(b, d, number, &best);
    ptx_end_for(b);
    return best;
}

/* ---- The super-block ---- */

/* A number of each lane as an integer, in units of an f16 that the super-block stores. */
typedef struct in_units {
    ptx_val integer, value; /* f32; value is the integer times that unit */
} in_units;

static in_units round_to_units(ptx_builder *b, const sub_block *sub, unsigned offset, ptx_val x)
{
    const float units = sub->layout->search->units;
    ptx_val largest = block_over_lanes(b, sub->lanes, block_larger, ptx_max(b, x, ptx_f32(b, 0)));
    ptx_val inverse = search_finite_or_zero(b, ptx_div(b, ptx_f32(b, units), largest));
    ptx_val stored = block_put_f16(b, sub->lanes, offset, ptx_div(b, largest, ptx_f32(b, units)));
    in_units n = {.integer = search_nearest(b, ptx_mul(b, inverse, x), 0, units)};
    n.value = ptx_mul(b, ptx_cvt(b, PTX_F32, stored), n.integer);
    return n;
}

/* Codes are recomputed with the stored numbers; if the step is 0, those of the search are kept. */
static void final_words(ptx_builder *b, const affine_data *d, const affine_fit *fit, ptx_val step,
                        ptx_val least, ptx_val *words)
{
    ptx_val codes[SUB_BLOCK_MAX], found[SUB_BLOCK_MAX / 4], none = ptx_f32(b, 0);
    const unsigned count = d->s->elements;
    for (unsigned i = 0; i < count / 4; i++)
        words[i] = ptx_var_of(b, PTX_U32);
    ptx_if(b, ptx_setp(b, PTX_NE, step, none));
    for (unsigned i = 0; i < count; i++)
        codes[i] = search_nearest(b, ptx_div(b, ptx_add(b, d->x[i], least), step), 0, d->s->most);
    search_words(b, codes, count, none, found);
    for (unsigned i = 0; i < count / 4; i++)
        ptx_assign(b, words[i], found[i]);
    ptx_else(b);
    make_codes(b, d, fit->factor, fit->base, codes);
    search_words(b, codes, count, none, found);
    for (unsigned i = 0; i < count / 4; i++)
        ptx_assign(b, words[i], found[i]);
    ptx_end_if(b);
}

static void encode_affine(ptx_builder *b, const sub_block *sub, ptx_val *words)
{
    const block_fields *at = &sub->layout->at;
    affine_data d = {.s = sub->layout->search, .x = sub->x};
    affine_fit fit = fit_of(b, &d);
    in_units scale = round_to_units(b, sub, at->scale, fit.scale);
    in_units minimum = round_to_units(b, sub, at->second, ptx_neg(b, fit.minimum));
    ptx_val high = ptx_shl(b, search_integer(b, minimum.integer, 0), 8);
    d.s->put(b, sub, ptx_or(b, search_integer(b, scale.integer, 0), high));
    final_words(b, &d, &fit, scale.value, minimum.value, words);
}

/* ---- Integers ---- */

/* Two nibbles in a byte. */
static void put_nibbles(ptx_builder *b, const sub_block *sub, ptx_val integers)
{
    ptx_val both = ptx_or(b, integers, ptx_shr(b, integers, 4));
    search_put_byte(b, sub, sub->place, (int)sub->layout->at.scales, both);
}

/* Six bits each. The first four lanes store their own integers and those of the lane four further: the upper
 * bits of the latter above their own, the lower bits in a separate byte. */
static void put_six_bits(ptx_builder *b, const sub_block *sub, ptx_val integers)
{
    const int at = (int)sub->layout->at.scales;
    ptx_val other = ptx_shfl_down(b, integers, 4);
    ptx_val own =
        ptx_lop3(b, integers, ptx_shl(b, other, 2), ptx_u32(b, 0xC0C0), PTX_LOP_A | (PTX_LOP_B & PTX_LOP_C));
    ptx_val low = ptx_or(b, ptx_and(b, other, 15), ptx_and(b, ptx_shr(b, other, 4), 0xF0));
    ptx_if(b, ptx_setp(b, PTX_LT, sub->place, 4));
    search_put_byte(b, sub, sub->place, at, own);
    search_put_byte(b, sub, sub->place, at + 4, ptx_shr(b, own, 8));
    search_put_byte(b, sub, sub->place, at + 8, low);
    ptx_end_if(b);
}

const block_search search_q2_k = {.elements = 16,
                                  .most = 3,
                                  .units = 15,
                                  .first = -0.5f,
                                  .candidates = 16,
                                  .encode = encode_affine,
                                  .put = put_nibbles};
const block_search search_q4_k = {.elements = 32,
                                  .most = 15,
                                  .units = 63,
                                  .first = -1,
                                  .candidates = 21,
                                  .squared = true,
                                  .encode = encode_affine,
                                  .put = put_six_bits};
const block_search search_q5_k = {.elements = 32,
                                  .most = 31,
                                  .units = 63,
                                  .first = -0.5f,
                                  .candidates = 16,
                                  .squared = true,
                                  .encode = encode_affine,
                                  .put = put_six_bits};
