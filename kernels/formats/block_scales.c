/* How the scales of blocks are stored: from the bytes of a block to the scale and addend of a strand. */
#include "kernels/formats/blocks.h"

/* ---- Fields of a header ---- */

/* `bits` bits, from `bit` of byte `byte` of the block on: u32. */
static ptx_val field(ptx_builder *b, const block_layout *layout, const block_header *h, unsigned byte,
                     unsigned bit, unsigned bits)
{
    const unsigned place = block_header_place(layout, byte + bit / 8), position = place % 4 * 8 + bit % 8;
    ptx_val word = h->words[place / 4];
    if (position == 0 && bits == 32)
        return word;
    return position + bits == 32 ? ptx_shr(b, word, (int)position) : ptx_bfe(b, word, position, bits);
}

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

static block_scale header_d(ptx_builder *b, const block_layout *layout, const block_header *h,
                            unsigned element)
{
    (void)b, (void)layout, (void)element;
    return (block_scale){.scale = h->d, .addend = h->second};
}

static ptx_val selected(ptx_builder *b, ptx_val word, ptx_val selector)
{
    return selector.kind == PTX_NOTHING ? word : ptx_prmt(b, word, ptx_u32(b, 0), selector);
}

/* d, and the field that follows it in the same word. */
static void take_halves(ptx_builder *b, const ptx_val *words, ptx_val selector, block_run *run)
{
    ptx_val both[2];
    ptx_unpack(b, PTX_F16, ptx_as(b, PTX_F16X2, selected(b, words[0], selector)), both, 2);
    run->d = both[0], run->second = both[1];
}

static void take_byte(ptx_builder *b, const ptx_val *words, ptx_val selector, block_run *run)
{
    run->d = selected(b, words[0], selector);
}

const block_scales scales_f16 = {.fetch = fetch_f16,
                                 .take = take_halves,
                                 .head_bytes = 2,
                                 .open = open_d,
                                 .strand = strand_of_d,
                                 .from_header = header_d,
                                 .has_d = true};

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

const block_scales scales_f16_min = {.fetch = fetch_second,
                                     .take = take_halves,
                                     .head_bytes = 2,
                                     .open = open_both,
                                     .strand = strand_with_minimum,
                                     .from_header = header_d,
                                     .has_d = true,
                                     .has_second = true};

static void fetch_f32(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field(&run->place, layout->at.scale);
    run->d = block_load_as(b, &at, PTX_F32, 0);
}

static void open_nothing(ptx_builder *b, block_run *run)
{
    (void)b, (void)run;
}

static block_scale header_f32(ptx_builder *b, const block_layout *layout, const block_header *h,
                              unsigned element)
{
    (void)element;
    return (block_scale){.scale = ptx_as(b, PTX_F32, field(b, layout, h, layout->at.scale, 0, 32))};
}

const block_scales scales_f32 = {.fetch = fetch_f32,
                                 .open = open_nothing,
                                 .strand = strand_of_d,
                                 .from_header = header_f32,
                                 .header_words = 1, /* the sums of Q8_K follow */
                                 .is_f32 = true};

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

static block_scale header_e8m0(ptx_builder *b, const block_layout *layout, const block_header *h,
                               unsigned element)
{
    (void)element;
    return (block_scale){.scale = block_half_of_e8m0(b, field(b, layout, h, layout->at.scale, 0, 8))};
}

const block_scales scales_e8m0 = {.fetch = fetch_byte,
                                  .take = take_byte,
                                  .head_bytes = 1,
                                  .open = open_e8m0,
                                  .strand = strand_of_d,
                                  .from_header = header_e8m0,
                                  .is_power_of_two = true};

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

static block_scale header_ue4m3(ptx_builder *b, const block_layout *layout, const block_header *h,
                                unsigned element)
{
    ptx_val code = field(b, layout, h, layout->at.scales + element / 16, 0, 8);
    return (block_scale){.scale = block_half_of_ue4m3(b, code)};
}

/* Two threads have two neighbouring sections each. */
static ptx_val select_ue4m3(ptx_builder *b, ptx_val thread, unsigned run)
{
    return ptx_mad(b, ptx_and(b, thread, 1), 2, ptx_u32(b, 0x4440 + run));
}

const block_scales scales_ue4m3 = {.fetch = fetch_ue4m3,
                                   .open = open_ue4m3,
                                   .strand = strand_of_d,
                                   .take = take_byte,
                                   .select = select_ue4m3,
                                   .from_header = header_ue4m3,
                                   .extent = 16};

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

static block_scale with_minimum(ptx_builder *b, const block_header *h, ptx_val scale, ptx_val minimum)
{
    return (block_scale){.scale = times_integer(b, h->d, scale),
                         .addend = ptx_neg(b, times_integer(b, h->second, minimum))};
}

static ptx_val upper_six(ptx_builder *b, ptx_val upper, ptx_val lower)
{
    return ptx_or(b, lower, ptx_shl(b, upper, 4));
}

/* Six bits less 32, in units of d. */
static ptx_val times_less_32(ptx_builder *b, ptx_val d, ptx_val six)
{
    return times_integer(b, d, ptx_sub(b, ptx_as(b, PTX_S32, six), 32));
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

static block_scale header_q2_k(ptx_builder *b, const block_layout *layout, const block_header *h,
                               unsigned element)
{
    const unsigned byte = layout->at.scales + element / 16;
    return with_minimum(b, h, field(b, layout, h, byte, 0, 4), field(b, layout, h, byte, 4, 4));
}

const block_scales scales_q2_k = {.fetch = fetch_q2_k,
                                  .open = open_both,
                                  .strand = strand_q2_k,
                                  .from_header = header_q2_k,
                                  .extent = 16,
                                  .has_d = true,
                                  .has_second = true};

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
    out->scale = times_less_32(b, run->d, upper_six(b, high, low));
}

static block_scale header_q3_k(ptx_builder *b, const block_layout *layout, const block_header *h,
                               unsigned element)
{
    const unsigned i = element / 16, scales = layout->at.scales;
    ptx_val lower = field(b, layout, h, scales + i % 8, i / 8 * 4, 4),
            upper = field(b, layout, h, scales + 8 + i % 4, i / 4 * 2, 2);
    return (block_scale){.scale = times_less_32(b, h->d, upper_six(b, upper, lower))};
}

const block_scales scales_q3_k = {.fetch = fetch_q3_k,
                                  .open = open_d,
                                  .strand = strand_q3_k,
                                  .from_header = header_q3_k,
                                  .extent = 16,
                                  .has_d = true};

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

static block_scale header_q4_k(ptx_builder *b, const block_layout *layout, const block_header *h,
                               unsigned element)
{
    const unsigned i = element / 32, scales = layout->at.scales;
    if (i < 4)
        return with_minimum(b, h, field(b, layout, h, scales + i, 0, 6),
                            field(b, layout, h, scales + i + 4, 0, 6));
    ptx_val scale =
        upper_six(b, field(b, layout, h, scales + i - 4, 6, 2), field(b, layout, h, scales + i + 4, 0, 4));
    ptx_val minimum =
        upper_six(b, field(b, layout, h, scales + i, 6, 2), field(b, layout, h, scales + i + 4, 4, 4));
    return with_minimum(b, h, scale, minimum);
}

const block_scales scales_q4_k = {.fetch = fetch_q4_k,
                                  .open = open_both,
                                  .strand = strand_q4_k,
                                  .from_header = header_q4_k,
                                  .extent = 32,
                                  .has_d = true,
                                  .has_second = true,
                                  .is_unpacked_by_team = true};

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

static block_scale header_q6_k(ptx_builder *b, const block_layout *layout, const block_header *h,
                               unsigned element)
{
    const unsigned place = block_header_place(layout, layout->at.scales + element / 16);
    ptx_val scale = ptx_bfe(b, ptx_as(b, PTX_S32, h->words[place / 4]), place % 4 * 8, 8);
    return (block_scale){.scale = times_integer(b, h->d, scale)};
}

const block_scales scales_q6_k = {.fetch = fetch_q6_k,
                                  .open = open_d,
                                  .strand = strand_q6_k,
                                  .fetch_one = fetch_q6_k_one,
                                  .from_header = header_q6_k,
                                  .extent = 16,
                                  .has_d = true};

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
    ptx_val six = upper_six(b, high, low);
    open_d(b, run);
    run->d = times_less_32(b, run->d, six);
}

static block_scale header_iq4_xs(ptx_builder *b, const block_layout *layout, const block_header *h,
                                 unsigned element)
{
    const unsigned i = element / 32;
    ptx_val lower = field(b, layout, h, layout->at.scales + i / 2, i % 2 * 4, 4),
            upper = field(b, layout, h, layout->at.second, 2 * i, 2);
    return (block_scale){.scale = times_less_32(b, h->d, upper_six(b, upper, lower))};
}

/* Each thread has a section, and two share the byte of the lower bits of their scales. */
static ptx_val select_iq4_xs(ptx_builder *b, ptx_val thread, unsigned run)
{
    (void)run;
    return ptx_add(b, ptx_shr(b, thread, 1), 0x4440);
}

static void take_iq4_xs(ptx_builder *b, const ptx_val *words, ptx_val selector, block_run *run)
{
    take_halves(b, words, (ptx_val){0}, run);
    run->second = ptx_shr(b, words[0], 16);
    run->scales[0] = selected(b, words[1], selector);
}

const block_scales scales_iq4_xs = {.fetch = fetch_iq4_xs,
                                    .take = take_iq4_xs,
                                    .select = select_iq4_xs,
                                    .open = open_iq4_xs,
                                    .strand = strand_of_d,
                                    .from_header = header_iq4_xs,
                                    .extent = 32,
                                    .has_d = true};
