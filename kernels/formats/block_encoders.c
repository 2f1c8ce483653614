/* How values become the codes of blocks, with the same bytes as ggml's reference quantizer. Codes are
 * computed with the scale before it is rounded. */
#include "kernels/formats/blocks.h"

/* ---- Numbers shared by the lanes of a block ---- */

ptx_val block_larger(ptx_builder *b, ptx_val x, ptx_val y)
{
    return ptx_max(b, x, y);
}

static ptx_val sum(ptx_builder *b, ptx_val x, ptx_val y)
{
    return ptx_add(b, x, y);
}

/* In the next two functions, x comes first in the block, and is kept if both are equal. So the sign of a zero
 * is that of the first zero. */
ptx_val block_first_larger_magnitude(ptx_builder *b, ptx_val x, ptx_val y)
{
    ptx_val magnitude = ptx_abs(b, y);
    return ptx_selp(b, y, x, ptx_setp(b, PTX_GT, magnitude, ptx_abs(b, x)));
}

static ptx_val first_smaller(ptx_builder *b, ptx_val x, ptx_val y)
{
    return ptx_selp(b, y, x, ptx_setp(b, PTX_LT, y, x));
}

/* Keeps the order: each lane is combined with the lanes that directly follow those it already represents. */
ptx_val block_over_lanes(ptx_builder *b, const block_lanes *lanes, block_combine *combine, ptx_val x)
{
    for (unsigned distance = 1; distance < lanes->count; distance *= 2)
        x = combine(b, x, ptx_shfl_down(b, x, (int)distance));
    return ptx_shfl_idx(b, x, lanes->first);
}

static ptx_val over_block(ptx_builder *b, const block_lanes *lanes, block_combine *combine, const ptx_val *x,
                          unsigned count)
{
    ptx_val all = x[0];
    for (unsigned i = 1; i < count; i++)
        all = combine(b, all, x[i]);
    return block_over_lanes(b, lanes, combine, all);
}

static ptx_val absmax_of(ptx_builder *b, const block_lanes *lanes, const ptx_val *x, unsigned count)
{
    ptx_val all = ptx_abs(b, x[0]);
    for (unsigned i = 1; i < count; i++)
        all = block_larger(b, all, ptx_abs(b, x[i]));
    return block_over_lanes(b, lanes, block_larger, all);
}

/* 0 if it is not finite. */
static ptx_val reciprocal(ptx_builder *b, ptx_val d)
{
    ptx_val factor = ptx_rcp(b, d);
    return ptx_selp(b, factor, ptx_f32(b, 0), ptx_testp_finite(b, factor));
}

/* ---- What a block stores ---- */

static void put(ptx_builder *b, const block_lanes *lanes, ptx_type type, unsigned offset, ptx_val x)
{
    ptx_if(b, lanes->is_first);
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, type, lanes->block, (int)offset, x);
    ptx_end_if(b);
}

ptx_val block_put_f16(ptx_builder *b, const block_lanes *lanes, unsigned offset, ptx_val x)
{
    const float largest = element_largest(QDNN_DATA_F16);
    ptx_val half = ptx_cvt_rn(b, PTX_F16, ptx_clamp(b, x, ptx_f32(b, -largest), ptx_f32(b, largest)));
    put(b, lanes, PTX_U16, offset, ptx_as(b, PTX_U16, half));
    return half;
}

/* ---- Q4_0 and Q5_0: the value of largest magnitude gets the lowest code ---- */

static block_numbers begin_symmetric(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                                     const ptx_val *x, unsigned count)
{
    ptx_val found = ptx_f32(b, 0); /* not -0 if all elements are zero */
    for (unsigned i = 0; i < count; i++)
        found = block_first_larger_magnitude(b, found, x[i]);
    found = block_over_lanes(b, lanes, block_first_larger_magnitude, found);
    ptx_val d = ptx_mul(b, found, ptx_f32(b, -1 / layout->encoder->parameter)); /* a power of two, so exact */
    block_put_f16(b, lanes, layout->at.scale, d);
    return (block_numbers){.d = d, .factor = reciprocal(b, d)};
}

/* The largest magnitude divided by d is -8 (-16) or, since d and its reciprocal are rounded, a little less: what is truncated is
 * above 0. With the other sign it may be 16.5. */
static ptx_val code_symmetric(ptx_builder *b, const block_layout *layout, const block_numbers *numbers,
                              ptx_val x)
{
    const float half = layout->encoder->parameter;
    ptx_val shifted = ptx_add(b, ptx_mul(b, x, numbers->factor), ptx_f32(b, half + 0.5f));
    return ptx_min(b, ptx_cvt_rzi(b, PTX_U32, shifted), (int)(2 * half) - 1);
}

const block_encoder encoder_q4_0 = {8, begin_symmetric, code_symmetric, NULL};
const block_encoder encoder_q5_0 = {16, begin_symmetric, code_symmetric, NULL};

/* ---- Q4_1 and Q5_1: codes span the range from the least to the largest value ---- */

static block_numbers begin_span(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                                const ptx_val *x, unsigned count)
{
    ptx_val least = over_block(b, lanes, first_smaller, x, count);
    ptx_val largest = over_block(b, lanes, block_larger, x, count);
    ptx_val d = ptx_div(b, ptx_sub(b, largest, least), ptx_f32(b, layout->encoder->parameter));
    block_put_f16(b, lanes, layout->at.scale, d);
    block_put_f16(b, lanes, layout->at.second, least);
    return (block_numbers){.d = d, .factor = reciprocal(b, d), .least = least};
}

/* No clamp: the factor is finite only if d is above 2^-128, where d and the reciprocal are off by at most one part in 2^22 each, so that
 * the quotient is less than 15.1 (31.1). If the span is infinite, the factor is 0, and infinity times 0 is NaN, which becomes 0. */
static ptx_val code_span(ptx_builder *b, const block_layout *layout, const block_numbers *numbers, ptx_val x)
{
    ptx_val scaled = ptx_mul(b, ptx_sub(b, x, numbers->least), numbers->factor);
    (void)layout;
    return ptx_cvt_rzi(b, PTX_U32, ptx_add(b, scaled, 0.5f));
}

const block_encoder encoder_q4_1 = {15, begin_span, code_span, NULL};
const block_encoder encoder_q5_1 = {31, begin_span, code_span, NULL};

/* ---- Q8_0, Q8_1, TQ1_0 and TQ2_0: multiples of absmax / largest code ---- */

static block_numbers begin_absmax(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                                  const ptx_val *x, unsigned count)
{
    const float most = layout->encoder->parameter;
    ptx_val absmax = absmax_of(b, lanes, x, count);
    ptx_val d = most == 1 ? absmax : ptx_div(b, absmax, ptx_f32(b, most));
    block_put_f16(b, lanes, layout->at.scale, d);
    return (block_numbers){.d = d, .factor = reciprocal(b, d)};
}

/* No clamp: as in code_span, the quotient exceeds the largest code by far less than a half. */
static ptx_val rounded(ptx_builder *b, const block_numbers *numbers, ptx_val x)
{
    return round_ties_away_s32(b, ptx_mul(b, x, numbers->factor));
}

static ptx_val code_byte(ptx_builder *b, const block_layout *layout, const block_numbers *numbers, ptx_val x)
{
    (void)layout;
    return ptx_as(b, PTX_U32, rounded(b, numbers, x)); /* of which the low byte is stored */
}

/* Q8_1 stores the sum of the codes times d. */
static void end_sum(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                    const block_numbers *numbers, const ptx_val *codes, unsigned count)
{
    ptx_val all = ptx_as(b, PTX_S32, codes[0]);
    for (unsigned i = 1; i < count; i++)
        all = sum(b, all, ptx_as(b, PTX_S32, codes[i]));
    all = block_over_lanes(b, lanes, sum, all);
    block_put_f16(b, lanes, layout->at.second, ptx_mul(b, ptx_cvt(b, PTX_F32, all), numbers->d));
}

static ptx_val code_digit(ptx_builder *b, const block_layout *layout, const block_numbers *numbers, ptx_val x)
{
    (void)layout;
    return ptx_as(b, PTX_U32, ptx_add(b, rounded(b, numbers, x), 1));
}

const block_encoder encoder_q8_0 = {127, begin_absmax, code_byte, NULL};
const block_encoder encoder_q8_1 = {127, begin_absmax, code_byte, end_sum};
const block_encoder encoder_ternary = {1, begin_absmax, code_digit, NULL};

/* ---- MXFP4: the nearest magnitude, the smaller one in a tie; zeros have no sign ---- */

/* The exponent is that of absmax minus 2, because the largest magnitude, 6, is between 2^2 and 2^3. The
 * midpoints between magnitudes, in units of half the scale, are exact. */
static block_numbers begin_mxfp4(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                                 const ptx_val *x, unsigned count)
{
    static const float midpoints[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
    ptx_val absmax = absmax_of(b, lanes, x, count);
    ptx_val exponent = ptx_as(b, PTX_S32, ptx_shr(b, ptx_as(b, PTX_U32, absmax), 23));
    ptx_val e = ptx_as(b, PTX_U32, ptx_max(b, ptx_sub(b, exponent, 2), 0));
    put(b, lanes, PTX_U8, layout->at.scale, e);
    block_numbers numbers = {.d = block_half_of_e8m0(b, e)};
    for (int i = 0; i < 7; i++)
        numbers.thresholds[i] = ptx_mul(b, numbers.d, ptx_f32(b, midpoints[i]));
    return numbers;
}

static ptx_val code_mxfp4(ptx_builder *b, const block_layout *layout, const block_numbers *numbers, ptx_val x)
{
    (void)layout;
    ptx_val magnitude = table_place(b, numbers->thresholds, 3, ptx_abs(b, x));
    ptx_val negative = ptx_setp_and(b, PTX_LT, x, ptx_f32(b, 0), ptx_setp(b, PTX_NE, magnitude, 0));
    return ptx_or(b, magnitude, ptx_selp(b, ptx_u32(b, 8), ptx_u32(b, 0), negative));
}

const block_encoder encoder_mxfp4 = {0, begin_mxfp4, code_mxfp4, NULL};

/* ---- Q1_0: signs, in units of the mean magnitude ---- */

/* The sum is one chain, in the order of the elements: every lane adds up those of all lanes. */
static ptx_val sum_in_order(ptx_builder *b, const block_lanes *lanes, const ptx_val *x, unsigned count)
{
    ptx_val all = ptx_var(b, ptx_f32(b, 0));
    for (unsigned v = 0; v < count; v += lanes->vector) {
        ptx_val lane = ptx_for(b, ptx_u32(b, 0), ptx_u32(b, lanes->count), ptx_u32(b, 1));
        for (unsigned i = v; i < v + lanes->vector; i++)
            ptx_assign(b, all,
                       ptx_add(b, all, ptx_shfl_idx(b, ptx_abs(b, x[i]), ptx_add(b, lanes->first, lane))));
        ptx_end_for(b);
    }
    return all;
}

static block_numbers begin_mean(ptx_builder *b, const block_layout *layout, const block_lanes *lanes,
                                const ptx_val *x, unsigned count)
{
    ptx_val d = ptx_div(b, sum_in_order(b, lanes, x, count), ptx_f32(b, (float)layout->elements));
    block_put_f16(b, lanes, layout->at.scale, d);
    return (block_numbers){.d = d};
}

static ptx_val code_sign(ptx_builder *b, const block_layout *layout, const block_numbers *numbers, ptx_val x)
{
    (void)layout, (void)numbers;
    return ptx_selp(b, ptx_u32(b, 1), ptx_u32(b, 0), ptx_setp(b, PTX_GE, x, ptx_f32(b, 0)));
}

const block_encoder encoder_q1_0 = {0, begin_mean, code_sign, NULL};
