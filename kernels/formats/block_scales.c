/* How the scales of blocks are stored: from the bytes of a block to the scale and addend of a strand. */
#include "kernels/formats/blocks.h"

/* ---- One scale per block ---- */

static void fetch_f16(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field(&run->place, layout->at.scale);
    run->d = block_load_as(b, &at, PTX_F16, 0);
}

static void open_d(ptx_builder *b, block_run *run)
{
    run->d = ptx_cvt(b, PTX_F32, run->d);
}

static void strand_of_d(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)b, (void)strand;
    out->scale = run->d;
}

const block_scales scales_f16 = {.fetch = fetch_f16, .open = open_d, .strand = strand_of_d};

static void fetch_second(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field(&run->place, layout->at.second);
    fetch_f16(b, layout, run);
    run->second = block_load_as(b, &at, PTX_F16, 0);
}

static void open_both(ptx_builder *b, block_run *run)
{
    open_d(b, run);
    run->second = ptx_cvt(b, PTX_F32, run->second);
}

static void strand_with_minimum(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    (void)b, (void)strand;
    out->scale = run->d;
    out->addend = run->second;
}

const block_scales scales_f16_min = {.fetch = fetch_second, .open = open_both, .strand = strand_with_minimum};

static void fetch_f32(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field(&run->place, layout->at.scale);
    run->d = block_load_as(b, &at, PTX_F32, 0);
}

static void open_nothing(ptx_builder *b, block_run *run)
{
    (void)b, (void)run;
}

const block_scales scales_f32 = {.fetch = fetch_f32, .open = open_nothing, .strand = strand_of_d};

/* ---- One-byte scales, halved because their codes stand for twice the values ---- */

static void fetch_byte(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field(&run->place, layout->at.scale);
    run->d = block_load_as(b, &at, PTX_U8, 0);
}

/* For e = 0 and 1 the result is subnormal, and 255 is not NaN. The bits of a normal result are (e - 1) *
 * 2^23, those of a subnormal one (e + 1) * 2^21; the larger of the two is always the right one. */
ptx_val block_half_of_e8m0(ptx_builder *b, ptx_val e)
{
    ptx_val exponent = ptx_as(b, PTX_S32, e);
    ptx_val normal = ptx_sub(b, ptx_shl(b, exponent, 23), 1 << 23);
    ptx_val subnormal = ptx_add(b, ptx_shl(b, exponent, 21), 1 << 21);
    return ptx_as(b, PTX_F32, ptx_max(b, normal, subnormal));
}

static void open_e8m0(ptx_builder *b, block_run *run)
{
    run->d = block_half_of_e8m0(b, run->d);
}

const block_scales scales_e8m0 = {.fetch = fetch_byte, .open = open_e8m0, .strand = strand_of_d};

/* One scale per section. */
static void fetch_ue4m3(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field_at(b, &run->place, layout->at.scales, run->place.section, 1);
    run->d = block_load_as(b, &at, PTX_U8, 0);
}

/* Unsigned: bit 7 is ignored, except that 7F, and not FF, is 0. The bits are moved to their places in an f32;
 * an exact product corrects the bias. */
ptx_val block_half_of_ue4m3(ptx_builder *b, ptx_val e)
{
    ptx_val placed = ptx_shl(b, ptx_and(b, e, 0x7F), 20);
    ptx_val value = ptx_mul(b, ptx_as(b, PTX_F32, placed), ptx_f32(b, 0x1p119f));
    return ptx_selp(b, ptx_f32(b, 0), value, ptx_setp(b, PTX_EQ, e, 0x7F));
}

static void open_ue4m3(ptx_builder *b, block_run *run)
{
    run->d = block_half_of_ue4m3(b, run->d);
}

const block_scales scales_ue4m3 = {.fetch = fetch_ue4m3, .open = open_ue4m3, .strand = strand_of_d};

/* ---- K-quants: a small integer for every 16 or 32 elements, in units of d and dmin ---- */

static ptx_val times_integer(ptx_builder *b, ptx_val d, ptx_val integer)
{
    return ptx_mul(b, d, ptx_cvt(b, PTX_F32, integer));
}

static void set_scale_and_minimum(ptx_builder *b, const block_run *run, ptx_val scale, ptx_val minimum,
                                  block_strand *out)
{
    out->scale = times_integer(b, run->d, scale);
    out->addend = ptx_neg(b, times_integer(b, run->second, minimum));
}

/* One scale per 16 elements: the bytes for the strands of a section are two apart, starting with the half
 * that the run is in. `stride` is the number of such bytes per section. */
static block_address scales_of_section(ptx_builder *b, const block_layout *layout, const block_place *place,
                                       unsigned stride)
{
    ptx_val half = ptx_shr(b, place->byte, 4);
    ptx_val more = stride ? ptx_mad(b, place->section, (int)stride, half) : half;
    return block_field_at(b, place, layout->at.scales, more, 1);
}

/* Q2_K: scale in the low nibble, minimum in the high one. */
static void fetch_q2_k(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_second(b, layout, run);
    block_address at = scales_of_section(b, layout, &run->place, 8);
    for (unsigned s = 0; s < 4; s++)
        run->scales[s] = block_load_as(b, &at, PTX_U8, (int)(2 * s));
}

static void strand_q2_k(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    ptx_val both = run->scales[strand], scale = ptx_and(b, both, 15), minimum = ptx_shr(b, both, 4);
    set_scale_and_minimum(b, run, scale, minimum, out);
}

const block_scales scales_q2_k = {.fetch = fetch_q2_k, .open = open_both, .strand = strand_q2_k};

/* Q3_K: six bits. The lower four are in the first eight bytes, one nibble per section; the upper two of
 * strands s and s + 2 share one of the other four bytes. */
static void fetch_q3_k(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_f16(b, layout, run);
    block_address at = scales_of_section(b, layout, &run->place, 0);
    for (unsigned s = 0; s < 6; s++)
        run->scales[s] = block_load_as(b, &at, PTX_U8, (int)(2 * s));
}

static void strand_q3_k(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    ptx_val place = ptx_shl(b, run->place.section, 2);
    ptx_val low = ptx_and(b, ptx_shr(b, run->scales[strand], place), 15);
    ptx_val high = ptx_bfe(b, ptx_shr(b, run->scales[4 + strand % 2], place), strand / 2 * 2, 2);
    ptx_val scale = ptx_as(b, PTX_S32, ptx_or(b, low, ptx_shl(b, high, 4)));
    out->scale = times_integer(b, run->d, ptx_sub(b, scale, 32));
}

const block_scales scales_q3_k = {.fetch = fetch_q3_k, .open = open_d, .strand = strand_q3_k};

/* Q4_K and Q5_K: six bits each for the eight strands of four sections, in three times four bytes. Those of
 * the first two sections are in the low bits of the first eight bytes; those of the other two have their
 * lower four bits in the last four bytes, and their upper two in the high bits of the first eight. */
static void fetch_q4_k(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_second(b, layout, run);
    ptx_val more = ptx_shl(b, ptx_and(b, run->place.section, 1), 1);
    block_address at = block_field_at(b, &run->place, layout->at.scales, more, 2);
    for (unsigned i = 0; i < 3; i++)
        run->scales[i] = ptx_cvt(b, PTX_U32, block_load_as(b, &at, PTX_U16, (int)(4 * i)));
}

static ptx_val upper_six(ptx_builder *b, ptx_val upper, ptx_val lower)
{
    return ptx_or(b, lower, ptx_shl(b, upper, 4));
}

static void strand_q4_k(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    const ptx_val *bytes = run->scales;
    const unsigned first = 8 * strand;
    ptx_val early = ptx_setp(b, PTX_LT, run->place.section, 2);
    ptx_val scale = upper_six(b, ptx_bfe(b, bytes[0], first + 6, 2), ptx_bfe(b, bytes[2], first, 4));
    ptx_val minimum = upper_six(b, ptx_bfe(b, bytes[1], first + 6, 2), ptx_bfe(b, bytes[2], first + 4, 4));
    scale = ptx_selp(b, ptx_bfe(b, bytes[0], first, 6), scale, early);
    minimum = ptx_selp(b, ptx_bfe(b, bytes[1], first, 6), minimum, early);
    set_scale_and_minimum(b, run, scale, minimum, out);
}

const block_scales scales_q4_k = {.fetch = fetch_q4_k, .open = open_both, .strand = strand_q4_k};

/* Q6_K: signed bytes. */
static void fetch_q6_k(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_f16(b, layout, run);
    block_address at = scales_of_section(b, layout, &run->place, 8);
    for (unsigned s = 0; s < 4; s++)
        run->scales[s] = block_load_as(b, &at, PTX_S8, (int)(2 * s));
}

static void strand_q6_k(ptx_builder *b, const block_run *run, unsigned strand, block_strand *out)
{
    out->scale = times_integer(b, run->d, run->scales[strand]);
}

static void fetch_q6_k_one(ptx_builder *b, const block_layout *layout, block_run *run, ptx_val strand)
{
    fetch_f16(b, layout, run);
    ptx_val half = ptx_shr(b, run->place.byte, 4), of_section = ptx_mad(b, run->place.section, 8, half);
    block_address at =
        block_field_at(b, &run->place, layout->at.scales, ptx_mad(b, strand, 2, of_section), 1);
    run->scales[0] = block_load_as(b, &at, PTX_S8, 0);
}

const block_scales scales_q6_k = {
    .fetch = fetch_q6_k, .open = open_d, .strand = strand_q6_k, .fetch_one = fetch_q6_k_one};

/* IQ4_XS: six bits per section, the upper two of which are in a separate u16. */
static void fetch_iq4_xs(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address high = block_field(&run->place, layout->at.second);
    ptx_val pair = ptx_shr(b, run->place.section, 1);
    block_address low = block_field_at(b, &run->place, layout->at.scales, pair, 1);
    fetch_f16(b, layout, run);
    run->second = ptx_cvt(b, PTX_U32, block_load_as(b, &high, PTX_U16, 0));
    run->scales[0] = block_load_as(b, &low, PTX_U8, 0);
}

static void open_iq4_xs(ptx_builder *b, block_run *run)
{
    ptx_val section = run->place.section, nibble = ptx_shl(b, ptx_and(b, section, 1), 2);
    ptx_val low = ptx_and(b, ptx_shr(b, run->scales[0], nibble), 15);
    ptx_val high = ptx_and(b, ptx_shr(b, run->second, ptx_shl(b, section, 1)), 3);
    ptx_val scale = ptx_as(b, PTX_S32, ptx_or(b, low, ptx_shl(b, high, 4)));
    open_d(b, run);
    run->d = times_integer(b, run->d, ptx_sub(b, scale, 32));
}

const block_scales scales_iq4_xs = {.fetch = fetch_iq4_xs, .open = open_iq4_xs, .strand = strand_of_d};
