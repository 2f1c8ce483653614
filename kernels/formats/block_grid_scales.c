/* The scales of IQ1, IQ2 and IQ3: odd multiples of a part of d. */
#include "kernels/formats/blocks.h"

/* d * (2 n + 1) * unit, with a power of two as unit: exact. */
static ptx_val odd_multiple(ptx_builder *b, ptx_val d, ptx_val n, float unit)
{
    ptx_val factor = ptx_fma(b, ptx_cvt(b, PTX_F32, n), ptx_f32(b, 2 * unit), ptx_f32(b, unit));
    return ptx_mul(b, d, factor);
}

static ptx_val load_scale_byte(ptx_builder *b, const block_layout *layout, const block_run *run, ptx_val more)
{
    block_address at = block_field_at(b, &run->place, layout->at.scales, more, 1);
    return block_load_as(b, &at, PTX_U8, 0);
}

static void fetch_d(ptx_builder *b, const block_layout *layout, block_run *run)
{
    scales_f16.fetch(b, layout, run);
}

static void open_d(ptx_builder *b, block_run *run)
{
    scales_f16.open(b, run);
}

/* ---- IQ2_XXS and IQ3_XXS: the upper four bits of the word with the signs ---- */

static void strand_iq2_xxs(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)strand;
    out->scale = odd_multiple(b, run->d, ptx_shr(b, run->high[0], 28), 0.125f);
}

const block_scales scales_iq2_xxs = {
    .fetch = fetch_d, .open = open_d, .strand = strand_iq2_xxs, .extent = 32, .has_d = true};

static void strand_iq3_xxs(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)strand;
    out->scale = odd_multiple(b, run->d, ptx_shr(b, run->high[0], 28), 0.25f);
}

const block_scales scales_iq3_xxs = {
    .fetch = fetch_d, .open = open_d, .strand = strand_iq3_xxs, .extent = 32, .has_d = true};

/* ---- IQ2_XS and IQ2_S: a byte for each part, the low nibble for its first half ---- */

static void fetch_iq2(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_d(b, layout, run);
    run->scales[0] = load_scale_byte(b, layout, run, run->place.section);
}

static void strand_iq2(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)strand;
    ptx_val shift = ptx_and(b, ptx_shr(b, run->place.byte, 2), 4);
    out->scale = odd_multiple(b, run->d, ptx_and(b, ptx_shr(b, run->scales[0], shift), 15), 0.125f);
}

const block_scales scales_iq2 = {
    .fetch = fetch_iq2, .open = open_d, .strand = strand_iq2, .extent = 16, .has_d = true};

/* ---- IQ3_S: a nibble for each part ---- */

static void fetch_iq3_s(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_d(b, layout, run);
    run->scales[0] = load_scale_byte(b, layout, run, block_offset_shr(b, run->place.section, 1));
}

static void strand_iq3_s(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)strand;
    ptx_val shift = ptx_shl(b, ptx_and(b, run->place.section, 1), 2);
    out->scale = odd_multiple(b, run->d, ptx_and(b, ptx_shr(b, run->scales[0], shift), 15), 1);
}

const block_scales scales_iq3_s = {
    .fetch = fetch_iq3_s, .open = open_d, .strand = strand_iq3_s, .extent = 32, .has_d = true};

/* ---- IQ1: codes are eight times the numbers ---- */

static void strand_iq1_s(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)strand;
    out->scale = odd_multiple(b, run->d, ptx_bfe(b, run->high[0], 12, 3), 0.125f);
}

const block_scales scales_iq1_s = {
    .fetch = fetch_d, .open = open_d, .strand = strand_iq1_s, .extent = 32, .has_d = true};

/* Four u16, each with four scales of three bits and, on top, four bits of d. */
static void fetch_iq1_m(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field(&run->place, layout->at.scales);
    block_load(b, &at, 8, run->scales);
}

/* d as an f16, from the upper nibbles of four u16. */
static ptx_val d_of_nibbles(ptx_builder *b, ptx_val low, ptx_val high)
{
    ptx_val bytes = ptx_and(b, ptx_shr(b, ptx_prmt(b, low, high, 0x7531), 4), ptx_u32(b, 0x0F0F0F0F));
    ptx_val pairs = ptx_and(b, ptx_or(b, bytes, ptx_shr(b, bytes, 4)), ptx_u32(b, 0x00FF00FF));
    return ptx_as(b, PTX_F16, ptx_cvt(b, PTX_U16, ptx_or(b, pairs, ptx_shr(b, pairs, 8))));
}

static void open_iq1_m(ptx_builder *b, block_run *run)
{
    run->d = ptx_cvt(b, PTX_F32, d_of_nibbles(b, run->scales[0], run->scales[1]));
}

static void strand_iq1_m(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)strand;
    ptx_val part = run->place.section;
    ptx_val word = ptx_selp(b, run->scales[1], run->scales[0], ptx_setp(b, PTX_GE, part, 4));
    ptx_val shift = ptx_mad(b, ptx_and(b, part, 1), 6, ptx_shl(b, ptx_and(b, part, 2), 3));
    shift = ptx_mad(b, ptx_shr(b, run->place.byte, 4), 3, shift);
    out->scale = odd_multiple(b, run->d, ptx_and(b, ptx_shr(b, word, shift), 7), 0.125f);
}

const block_scales scales_iq1_m = {
    .fetch = fetch_iq1_m, .open = open_iq1_m, .strand = strand_iq1_m, .extent = 16};
