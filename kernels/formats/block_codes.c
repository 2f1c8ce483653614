/* How the codes of blocks are arranged in bits: converts a run to words with one code per byte, and back. */
#include "kernels/formats/blocks.h"

static unsigned word_count(const block_place *place)
{
    return (place->bytes + 3) / 4;
}

/* The address of the run's codes. */
static block_address codes_of(ptx_builder *b, const block_layout *layout, const block_place *place)
{
    unsigned first = layout->at.codes + section_first_byte(layout, place->kind);
    return block_field_at(b, place, first, place->position, place->bytes);
}

static void fetch_codes(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = codes_of(b, layout, &run->place);
    block_load(b, &at, run->place.bytes, run->codes);
}

static void store_codes(ptx_builder *b, const block_layout *layout, const block_place *place,
                        const ptx_val *words)
{
    block_address at = codes_of(b, layout, place);
    block_store(b, &at, place->bytes, words);
}

/* Upper bits in bytes that all sections share: byte j of this field goes with byte j of every section. */
static void fetch_high(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field_at(b, &run->place, layout->at.high, run->place.byte, run->place.bytes);
    block_load(b, &at, run->place.bytes, run->high);
}

/* The bits of each byte that `mask` selects, after a shift by `position`. */
static ptx_val bits_of_bytes(ptx_builder *b, ptx_val word, unsigned position, uint32_t mask)
{
    return ptx_and(b, position ? ptx_shr(b, word, position) : word, ptx_u32(b, mask));
}

/* ---- Nibbles: strand 0 has the low nibbles ---- */

static void split_nibbles(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    for (unsigned i = 0; i < word_count(&run->place); i++)
        words[i] = bits_of_bytes(b, run->codes[i], 4 * strand, 0x0F0F0F0F);
}

/* The low nibbles of the bytes of two words, combined: those of `high` go above the others. */
static ptx_val two_nibbles(ptx_builder *b, ptx_val low, ptx_val high)
{
    ptx_val lower = ptx_and(b, low, ptx_u32(b, 0x0F0F0F0F));
    return ptx_lop3(b, lower, ptx_shl(b, high, 4), ptx_u32(b, 0xF0F0F0F0),
                    PTX_LOP_A | (PTX_LOP_B & PTX_LOP_C));
}

static void pack_nibbles(ptx_builder *b, const block_layout *layout, const block_place *place,
                         ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    ptx_val words[RUN_WORDS_MAX];
    for (unsigned i = 0; i < word_count(place); i++)
        words[i] = two_nibbles(b, strands[0][i], strands[1][i]);
    store_codes(b, layout, place, words);
}

const block_codes codes_nibbles = {
    .fetch = fetch_codes, .split = split_nibbles, .pack = pack_nibbles, .step = 4, .mask = 0xF};

/* ---- Q5_0 and Q5_1: bit i of a 32-bit field is bit 4 of element i ---- */

static void fetch_nibbles_bits(ptx_builder *b, const block_layout *layout, block_run *run)
{
    block_address at = block_field(&run->place, layout->at.high);
    fetch_codes(b, layout, run);
    block_load(b, &at, 4, run->high);
}

/* The product moves bit k of four bits to bit 8k + 4; its terms do not overlap. */
static void split_nibbles_bits(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    split_nibbles(b, run, strand, words);
    ptx_val high = ptx_shr(b, run->high[0], run->place.byte);
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val four = ptx_bfe(b, high, 16 * strand + 4 * i, 4);
        ptx_val spread = ptx_mul(b, four, ptx_u32(b, 0x02040810));
        words[i] = ptx_lop3(b, spread, ptx_u32(b, 0x10101010), words[i], (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    }
}

/* Gathers a bit of each byte in the low four bits; the product moves the bit of byte k to bit 28 + k. */
static ptx_val gather_bit(ptx_builder *b, ptx_val word, unsigned bit)
{
    ptx_val bits = bits_of_bytes(b, word, bit, 0x01010101);
    return ptx_shr(b, ptx_mul(b, bits, ptx_u32(b, 0x10204080)), 28);
}

/* Runs have 8 bytes, so the upper bits of a strand fill a byte. */
static void pack_nibbles_bits(ptx_builder *b, const block_layout *layout, const block_place *place,
                              ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    pack_nibbles(b, layout, place, strands);
    ptx_val byte = ptx_shr(b, place->byte, 3);
    for (unsigned s = 0; s < 2; s++) {
        ptx_val low = gather_bit(b, strands[s][0], 4), high = gather_bit(b, strands[s][1], 4);
        ptx_val bits = ptx_or(b, low, ptx_shl(b, high, 4));
        block_address at = block_field_at(b, place, layout->at.high + 2 * s, byte, 1);
        block_store(b, &at, 1, &bits);
    }
}

static void gather_nibbles_bits(ptx_builder *b, const block_run *run, unsigned strand, const block_turn *turn,
                                ptx_val *words)
{
    (void)turn;
    split_nibbles_bits(b, run, strand, words);
}

const block_codes codes_nibbles_bits = {.fetch = fetch_nibbles_bits,
                                        .split = split_nibbles_bits,
                                        .pack = pack_nibbles_bits,
                                        .gather = gather_nibbles_bits,
                                        .mask = 0xFF,
                                        .high_span = 1,
                                        .high_fields = 8};

/* ---- Q5_K: bit 4 is in a byte that all sections share, one bit per 32 elements ---- */

static void fetch_with_high(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_codes(b, layout, run);
    fetch_high(b, layout, run);
}

static void split_nibbles_bytes(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    split_nibbles(b, run, strand, words);
    ptx_val place = ptx_shl(b, run->place.section, 1);
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val bits = bits_of_bytes(b, ptx_shr(b, run->high[i], place), strand, 0x01010101);
        words[i] = ptx_or(b, words[i], ptx_shl(b, bits, 4));
    }
}

/* The bit above the nibble is rotated into its place. */
static void gather_nibbles_bytes(ptx_builder *b, const block_run *run, unsigned strand,
                                 const block_turn *turn, ptx_val *words)
{
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val high = ptx_shf_l(b, run->high[i], run->high[i], turn[strand].turn);
        ptx_val low = ptx_and(b, ptx_shr(b, run->codes[i], turn[strand].shift), ptx_u32(b, 0x0F0F0F0F));
        words[i] = ptx_lop3(b, high, ptx_u32(b, 0x10101010), low, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    }
}

const block_codes codes_nibbles_bytes = {.fetch = fetch_with_high,
                                         .split = split_nibbles_bytes,
                                         .pack = pack_nibbles,
                                         .shared_bit = 4,
                                         .gather = gather_nibbles_bytes,
                                         .mask = 0xFF,
                                         .high_span = 32,
                                         .high_fields = 8};

/* ---- Bytes: two's complement becomes an offset code (128) ---- */

static void split_bytes(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    (void)strand;
    for (unsigned i = 0; i < word_count(&run->place); i++)
        words[i] = ptx_xor(b, run->codes[i], ptx_u32(b, 0x80808080));
}

static void pack_bytes(ptx_builder *b, const block_layout *layout, const block_place *place,
                       ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    store_codes(b, layout, place, strands[0]);
}

const block_codes codes_bytes = {
    .fetch = fetch_codes, .split = split_bytes, .pack = pack_bytes, .mask = 0xFF, .is_signed = true};

/* ---- Pairs of bits ---- */

#define PAIRS 0x03030303u

static void split_pairs(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    for (unsigned i = 0; i < word_count(&run->place); i++)
        words[i] = bits_of_bytes(b, run->codes[i], 2 * strand, PAIRS);
}

static void pack_pairs(ptx_builder *b, const block_layout *layout, const block_place *place,
                       ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    ptx_val words[RUN_WORDS_MAX];
    for (unsigned i = 0; i < word_count(place); i++) {
        words[i] = ptx_and(b, strands[0][i], ptx_u32(b, PAIRS));
        for (unsigned s = 1; s < 4; s++)
            words[i] = ptx_lop3(b, ptx_shl(b, strands[s][i], 2 * s), ptx_u32(b, PAIRS << 2 * s), words[i],
                                (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    }
    store_codes(b, layout, place, words);
}

const block_codes codes_pairs = {
    .fetch = fetch_codes, .split = split_pairs, .pack = pack_pairs, .step = 2, .mask = 3};

/* Q3_K: plus a third bit in a byte that both sections share. */
static void split_pairs_mask(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    split_pairs(b, run, strand, words);
    ptx_val place = ptx_shl(b, run->place.section, 2);
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val bits = bits_of_bytes(b, ptx_shr(b, run->high[i], place), strand, 0x01010101);
        words[i] = ptx_or(b, words[i], ptx_shl(b, bits, 2));
    }
}

static void gather_pairs_mask(ptx_builder *b, const block_run *run, unsigned strand, const block_turn *turn,
                              ptx_val *words)
{
    (void)turn;
    split_pairs_mask(b, run, strand, words);
}

const block_codes codes_pairs_mask = {.fetch = fetch_with_high,
                                      .split = split_pairs_mask,
                                      .pack = pack_pairs,
                                      .shared_bit = 2,
                                      .gather = gather_pairs_mask,
                                      .mask = 0xFF,
                                      .high_span = 32,
                                      .high_fields = 8};

/* ---- Q6_K: a byte of upper bit pairs goes with two bytes of nibbles, 32 bytes apart; strands 0 and 1 have
 * the low nibbles ---- */

/* The bytes with the nibbles of strands `half` and `half` + 2. */
static block_address six_nibbles(ptx_builder *b, const block_layout *layout, const block_place *place,
                                 ptx_val more, unsigned half)
{
    const unsigned span = layout->sections[0].span;
    return block_field_at(b, place, layout->at.codes + half * span, more, place->bytes);
}

static ptx_val six_offset(ptx_builder *b, const block_layout *layout, const block_place *place)
{
    return ptx_mad(b, place->section, (int)layout->sections[0].span, place->position);
}

static void fetch_six(ptx_builder *b, const block_layout *layout, block_run *run)
{
    const block_place *place = &run->place;
    ptx_val more = six_offset(b, layout, place);
    for (unsigned half = 0; half < 2; half++) {
        block_address low = six_nibbles(b, layout, place, more, half);
        block_load(b, &low, place->bytes, &run->codes[half * RUN_WORDS_MAX]);
    }
    block_address high = block_field_at(b, place, layout->at.high, place->position, place->bytes);
    block_load(b, &high, place->bytes, run->high);
}

static void split_six(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    const ptx_val *nibbles = &run->codes[strand % 2 * RUN_WORDS_MAX];
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val low = bits_of_bytes(b, nibbles[i], strand / 2 * 4, 0x0F0F0F0F);
        ptx_val high = bits_of_bytes(b, run->high[i], 2 * strand, PAIRS);
        words[i] = ptx_or(b, low, ptx_shl(b, high, 4));
    }
}

/* Bits 4 and 5 of the codes; those of strand 2 are already in place. */
static ptx_val upper_pairs(ptx_builder *b, ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX], unsigned i)
{
    const unsigned either = (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C;
    ptx_val word = ptx_and(b, ptx_shr(b, strands[0][i], 4), ptx_u32(b, PAIRS));
    word = ptx_lop3(b, ptx_shr(b, strands[1][i], 2), ptx_u32(b, PAIRS << 2), word, either);
    word = ptx_lop3(b, strands[2][i], ptx_u32(b, PAIRS << 4), word, either);
    return ptx_lop3(b, ptx_shl(b, strands[3][i], 2), ptx_u32(b, PAIRS << 6), word, either);
}

static void pack_six(ptx_builder *b, const block_layout *layout, const block_place *place,
                     ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    ptx_val words[RUN_WORDS_MAX], more = six_offset(b, layout, place);
    for (unsigned half = 0; half < 2; half++) {
        block_address low = six_nibbles(b, layout, place, more, half);
        for (unsigned i = 0; i < word_count(place); i++)
            words[i] = two_nibbles(b, strands[half][i], strands[half + 2][i]);
        block_store(b, &low, place->bytes, words);
    }
    for (unsigned i = 0; i < word_count(place); i++)
        words[i] = upper_pairs(b, strands, i);
    block_address high = block_field_at(b, place, layout->at.high, place->position, place->bytes);
    block_store(b, &high, place->bytes, words);
}

static void fetch_six_one(ptx_builder *b, const block_layout *layout, block_run *run, ptx_val strand)
{
    const block_place *place = &run->place;
    const unsigned span = layout->sections[0].span;
    ptx_val more = ptx_mad(b, place->section, (int)span, place->position);
    more = ptx_mad(b, ptx_and(b, strand, 1), (int)span, more);
    block_address low = block_field_at(b, place, layout->at.codes, more, place->bytes);
    block_load(b, &low, place->bytes, run->codes);
    block_address high = block_field_at(b, place, layout->at.high, place->position, place->bytes);
    block_load(b, &high, place->bytes, run->high);
}

/* Rotates the upper bit pair into place: from bit 2 * strand to bit 4. */
static void split_six_one(ptx_builder *b, const block_run *run, ptx_val strand, ptx_val *words)
{
    ptx_val shift = ptx_shl(b, ptx_shr(b, strand, 1), 2),
            turn = ptx_sub(b, ptx_u32(b, 4), ptx_shl(b, strand, 1));
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val low = ptx_and(b, ptx_shr(b, run->codes[i], shift), ptx_u32(b, 0x0F0F0F0F));
        ptx_val high = ptx_shf_l(b, run->high[i], run->high[i], turn);
        words[i] = ptx_lop3(b, high, ptx_u32(b, 0x30303030), low, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    }
}

/* The upper pairs of bits are shifted straight to their place. */
static void gather_six(ptx_builder *b, const block_run *run, unsigned strand, const block_turn *turn,
                       ptx_val *words)
{
    const ptx_val *nibbles = &run->codes[strand % 2 * RUN_WORDS_MAX];
    (void)turn;
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val low = strand < 2 ? nibbles[i] : ptx_shr(b, nibbles[i], 4), high = run->high[i];
        low = ptx_and(b, low, ptx_u32(b, 0x0F0F0F0F));
        high = strand < 2 ? ptx_shl(b, high, 4 - 2 * strand) : strand == 3 ? ptx_shr(b, high, 2) : high;
        words[i] = ptx_lop3(b, high, ptx_u32(b, 0x30303030), low, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
    }
}

const block_codes codes_six = {.fetch = fetch_six,
                               .split = split_six,
                               .pack = pack_six,
                               .fetch_one = fetch_six_one,
                               .split_one = split_six_one,
                               .gather = gather_six,
                               .mask = 0xFF,
                               .low_span = 64,
                               .low_fields = 2,
                               .high_span = 32,
                               .high_fields = 4};

/* ---- Q1_0 and Q2_0: codes in the order of the elements, several to a byte ---- */

/* The bytes with the codes of `bits` bits that the run has: one at least. */
static unsigned ordered_bytes(const block_place *place, unsigned bits)
{
    return place->bytes * bits < 8 ? 1 : place->bytes * bits / 8;
}

static block_address ordered_codes(ptx_builder *b, const block_layout *layout, const block_place *place,
                                   unsigned bits)
{
    ptx_val more = ptx_shr(b, place->position, (int)ceil_log2(8 / bits));
    return block_field_at(b, place, layout->at.codes, more, ordered_bytes(place, bits));
}

static void fetch_ordered(ptx_builder *b, const block_layout *layout, block_run *run, unsigned bits)
{
    const unsigned bytes = ordered_bytes(&run->place, bits);
    block_address at = ordered_codes(b, layout, &run->place, bits);
    if (bytes == 1)
        run->codes[0] = block_load_as(b, &at, PTX_U8, 0);
    else
        block_load(b, &at, bytes, run->codes);
}

static void fetch_bits(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_ordered(b, layout, run, 1);
}

/* The codes of a run, from bit 0 on. */
static ptx_val ordered_from_0(ptx_builder *b, const block_run *run, unsigned bits)
{
    const unsigned of_byte = 8 / bits;
    if (run->place.bytes >= of_byte)
        return run->codes[0];
    ptx_val first = ptx_and(b, run->place.byte, (int)(of_byte - 1));
    return ptx_shr(b, run->codes[0], bits == 1 ? first : ptx_shl(b, first, 1));
}

/* Twice the codes, less 1, are the numbers. The product moves bit k to bit 8k + 1; its terms do not overlap. */
static void split_bits(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    (void)strand;
    ptx_val bits = ordered_from_0(b, run, 1);
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val four = ptx_bfe(b, bits, 4 * i, 4);
        words[i] = ptx_and(b, ptx_mul(b, four, ptx_u32(b, 0x00408102)), ptx_u32(b, 0x02020202));
    }
}

static void gather_bits(ptx_builder *b, const block_run *run, unsigned strand, const block_turn *turn,
                        ptx_val *words)
{
    (void)turn;
    split_bits(b, run, strand, words);
}

static void pack_bits(ptx_builder *b, const block_layout *layout, const block_place *place,
                      ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    ptx_val low = gather_bit(b, strands[0][0], 0), high = gather_bit(b, strands[0][1], 0);
    ptx_val byte = ptx_or(b, low, ptx_shl(b, high, 4));
    block_address at = ordered_codes(b, layout, place, 1);
    block_store(b, &at, 1, &byte);
}

const block_codes codes_bits = {.fetch = fetch_bits,
                                .split = split_bits,
                                .pack = pack_bits,
                                .gather = gather_bits,
                                .mask = 0xFF,
                                .low_span = 1,
                                .low_fields = 8};

static void fetch_pairs_in_order(ptx_builder *b, const block_layout *layout, block_run *run)
{
    fetch_ordered(b, layout, run, 2);
}

/* Two products move the four codes of a byte apart, first by nibbles. */
static void split_pairs_in_order(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    (void)strand;
    ptx_val codes = ordered_from_0(b, run, 2);
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val byte = ptx_bfe(b, codes, 8 * i, 8);
        ptx_val nibbles = ptx_and(b, ptx_mul(b, byte, 0x1001), ptx_u32(b, 0x000F000F));
        words[i] = ptx_and(b, ptx_mul(b, nibbles, 0x41), ptx_u32(b, PAIRS));
    }
}

static void gather_pairs_in_order(ptx_builder *b, const block_run *run, unsigned strand,
                                  const block_turn *turn, ptx_val *words)
{
    (void)turn;
    split_pairs_in_order(b, run, strand, words);
}

/* The product moves the code of byte k to bit 24 + 2k. */
static void pack_pairs_in_order(ptx_builder *b, const block_layout *layout, const block_place *place,
                                ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    ptx_val bytes[2];
    for (unsigned i = 0; i < 2; i++) {
        ptx_val codes = ptx_and(b, strands[0][i], ptx_u32(b, PAIRS));
        bytes[i] = ptx_shr(b, ptx_mul(b, codes, ptx_u32(b, 0x01041040)), 24);
    }
    ptx_val both = ptx_or(b, bytes[0], ptx_shl(b, bytes[1], 8));
    block_address at = ordered_codes(b, layout, place, 2);
    block_store(b, &at, 2, &both);
}

const block_codes codes_pairs_in_order = {.fetch = fetch_pairs_in_order,
                                          .split = split_pairs_in_order,
                                          .pack = pack_pairs_in_order,
                                          .gather = gather_pairs_in_order,
                                          .mask = 0xFF,
                                          .low_span = 1,
                                          .low_fields = 4};

/* ---- Digits of base 3 ---- */

static const unsigned powers_of_three[STRANDS_MAX] = {1, 3, 9, 27, 81};

/* A byte is a fraction in units of 1/256: after multiplying by 3^s and dropping the integer part, digit s is
 * the integer part of 3 times the rest. Two bytes are handled at a time, in the halves of a word. */
static ptx_val digits_of_halves(ptx_builder *b, ptx_val halves, unsigned strand)
{
    ptx_val fraction = halves;
    if (strand > 0)
        fraction = ptx_and(b, ptx_mul(b, halves, (int)powers_of_three[strand]), ptx_u32(b, 0x00FF00FF));
    return bits_of_bytes(b, ptx_mul(b, fraction, 3), 8, 0x00030003);
}

static void split_ternary(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    for (unsigned i = 0; i < word_count(&run->place); i++) {
        ptx_val even = digits_of_halves(b, bits_of_bytes(b, run->codes[i], 0, 0x00FF00FF), strand);
        ptx_val odd = digits_of_halves(b, bits_of_bytes(b, run->codes[i], 8, 0x00FF00FF), strand);
        words[i] = ptx_or(b, even, ptx_shl(b, odd, 8));
    }
}

/* Rounded up, so that decoding gives the exact digits. */
static ptx_val ternary_byte(ptx_builder *b, ptx_val value)
{
    return ptx_div(b, ptx_mad(b, value, 256, 242), 243);
}

/* The value of five digits fits in a byte, so four bytes are computed together; if there are only four
 * digits, the fifth counts as 0. */
static void pack_ternary(ptx_builder *b, const block_layout *layout, const block_place *place,
                         ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    ptx_val words[RUN_WORDS_MAX];
    for (unsigned i = 0; i < word_count(place); i++) {
        ptx_val values = ptx_mul(b, strands[0][i], 81);
        for (unsigned s = 1; s < layout->sections[place->kind].strands; s++)
            values = ptx_mad(b, strands[s][i], (int)powers_of_three[4 - s], values);
        words[i] = ternary_byte(b, ptx_and(b, values, 0xFF));
        for (unsigned k = 1; k < 4; k++)
            words[i] = ptx_bfi(b, ternary_byte(b, ptx_bfe(b, values, 8 * k, 8)), words[i], 8 * k, 8);
    }
    store_codes(b, layout, place, words);
}

const block_codes codes_ternary = {
    .fetch = fetch_codes, .split = split_ternary, .pack = pack_ternary, .is_ternary = true};
