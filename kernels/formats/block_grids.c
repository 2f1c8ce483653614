/* Codes that are entries of a codebook: an index stands for eight (or four) numbers. The codebook is in shared memory, one byte for each
 * number, so a lookup gives words as other formats have them: one code per byte. Kernels without room for it look up digits in
 * global memory, and make bytes of them. A part of a block is a section of 32 elements.
 *
 * In IQ2 and IQ3 a byte is 64 + the magnitude; a sign turns it into 64 - the magnitude. Magnitudes of IQ3_S are odd: the sum of the
 * two bytes is 128 and their lowest bits are 1, so the others are each other's complement. In IQ1 it is eight times the number and
 * its offset of an eighth, plus 9. */
#include "kernels/formats/blocks.h"

#include "codebooks/codebooks.h"

enum { PART = 32, EIGHT = 8, SIGN_BIAS = 64, EIGHTH_BIAS = 9 };

/* clang-format off */
static const uint16_t iq3_xxs_entries[] = {
#include "codebooks/iq3_xxs.def"
};
static const uint16_t iq3_s_entries[] = {
#include "codebooks/iq3_s.def"
};
static const uint32_t iq2_xxs_entries[] = {
#include "codebooks/iq2_xxs.def"
};
static const uint32_t iq2_xs_entries[] = {
#include "codebooks/iq2_xs.def"
};
static const uint32_t iq2_s_entries[] = {
#include "codebooks/iq2_s.def"
};
static const uint32_t iq1_entries[] = {
#include "codebooks/iq1.def"
};
/* clang-format on */

/* The bytes that digits stand for: number * times + plus. A sign flips these bits of a byte, if any. */
typedef struct grid_bytes {
    int times, plus;
    int8_t numbers[EIGHT];
    uint8_t flips;
} grid_bytes;

static const grid_bytes iq1_bytes = {8, 1 + EIGHTH_BIAS, {CODEBOOK_IQ1_NUMBERS}};
static const grid_bytes iq2_bytes = {1, SIGN_BIAS, {CODEBOOK_IQ2_NUMBERS}};
static const grid_bytes iq3_xxs_bytes = {1, SIGN_BIAS, {CODEBOOK_IQ3_XXS_NUMBERS}};
static const grid_bytes iq3_s_bytes = {1, SIGN_BIAS, {CODEBOOK_IQ3_S_NUMBERS}, 2 * (SIGN_BIAS - 1)};

struct block_grid {
    const void *entries; /* u32 of eight digits, or u16 of four */
    unsigned count;
    unsigned numbers; /* of an entry */
    const grid_bytes *bytes;
    /* The index of entry i of a run; and the codes of its run number i of eight numbers, from their bytes. */
    ptx_val (*index)(ptx_builder *b, const block_run *run, unsigned i);
    void (*finish)(ptx_builder *b, const block_run *run, unsigned i, ptx_val words[2]);
};

/* ---- The codebook in shared memory ---- */

static uint64_t digits_of(const block_grid *g, unsigned i)
{
    const uint16_t *fours = g->entries;
    const uint32_t *eights = g->entries;
    return g->numbers == EIGHT ? eights[i] : fours[2 * i] | (uint32_t)fours[2 * i + 1] << 16;
}

/* The bytes of digits `first` to `first` + 3. */
static ptx_val bytes_of_digits(ptx_builder *b, const grid_bytes *of, unsigned first)
{
    uint32_t word = 0;
    for (unsigned i = 0; i < 4; i++)
        word |= (uint32_t)(of->numbers[first + i] * of->times + of->plus) << 8 * i;
    return ptx_u32(b, word);
}

/* Of words with eight digits. */
static unsigned pairs_of(const block_grid *g)
{
    return g->count * g->numbers / EIGHT / 2;
}

/* The codebook in global memory, as digits: pairs of words. */
static ptx_val stored_digits(ptx_builder *b, const block_grid *g)
{
    enum { PAIRS_MAX = 1024 };
    uint64_t bits[PAIRS_MAX];
    for (unsigned i = 0; i < pairs_of(g); i++)
        bits[i] = digits_of(g, 2 * i) | digits_of(g, 2 * i + 1) << 32;
    return ptx_table(b, PTX_GLOBAL, "codebook", PTX_U64, bits, pairs_of(g));
}

/* The bytes of eight numbers, or of the first `count`: permutations by digits. */
static void bytes_of(ptx_builder *b, const block_grid *g, ptx_val digits, unsigned count, ptx_val *words)
{
    ptx_val low = bytes_of_digits(b, g->bytes, 0), high = bytes_of_digits(b, g->bytes, 4);
    words[0] = ptx_prmt(b, low, high, digits);
    if (count == EIGHT)
        words[1] = ptx_prmt(b, low, high, ptx_shr(b, digits, 16));
}

unsigned block_grid_bytes(const block_grid *g)
{
    return pairs_of(g) * 2 * EIGHT;
}

/* Fills the table; a thread loads all of its pairs at once where there are FILL_THREADS threads or more. */
static void fill(ptx_builder *b, const block_grid *g, ptx_val stored, ptx_val table)
{
    enum { FILL_THREADS = 128, AT_ONCE_MAX = 8 };
    const unsigned at_once = ceil_div(pairs_of(g), FILL_THREADS);
    ptx_val threads = ptx_ntid_x(b), at[AT_ONCE_MAX], exists[AT_ONCE_MAX], digits[AT_ONCE_MAX];
    ptx_val first = ptx_for(b, ptx_tid_x(b), ptx_u32(b, pairs_of(g)), ptx_mul(b, threads, (int)at_once));
    for (unsigned k = 0; k < at_once; k++) {
        at[k] = k ? ptx_add(b, at[k - 1], threads) : first;
        exists[k] = ptx_setp(b, PTX_LT, at[k], (int)pairs_of(g));
        digits[k] = ptx_ld_if(b, exists[k], PTX_GLOBAL, PTX_NC, PTX_U64, ptx_at(b, stored, at[k], 8), 0,
                              ptx_u64(b, 0));
    }
    for (unsigned k = 0; k < at_once; k++) {
        ptx_val words[2], bytes[4];
        ptx_unpack(b, PTX_U32, digits[k], words, 2);
        bytes_of(b, g, words[0], EIGHT, bytes);
        bytes_of(b, g, words[1], EIGHT, bytes + 2);
        ptx_val to = ptx_at(b, table, at[k], 2 * EIGHT);
        ptx_when(b, exists[k]);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, 0, bytes, 4);
    }
    ptx_end_for(b);
}

codec_state block_grid_open(ptx_builder *b, const block_grid *g, bool in_shared)
{
    ptx_val stored = stored_digits(b, g);
    if (!in_shared)
        return (codec_state){.table = stored};
    ptx_val table = ptx_shared(b, "codebook_bytes", PTX_U8, block_grid_bytes(g), 16);
    fill(b, g, stored, table);
    return (codec_state){.table = table};
}

/* ---- Fetching: whole eights, also for two or four elements ---- */

static unsigned eights_of(const block_place *place)
{
    return place->bytes < EIGHT ? 1 : place->bytes / EIGHT;
}

/* `count` bytes (1, 2 or 4) from byte `more` (u32; empty: 0) of the part's share of a field on: that is `stride` bytes. */
static ptx_val of_part(ptx_builder *b, const block_place *place, unsigned offset, unsigned stride,
                       ptx_val more, unsigned count)
{
    ptx_val at = block_offset(b, place->section, stride, more), word;
    block_address from = block_field_at(b, place, offset, at, count);
    if (count == 1)
        return block_load_as(b, &from, PTX_U8, 0);
    block_load(b, &from, count, &word);
    return word;
}

/* The number (u32) of the first of the run's eights in its part. */
static ptx_val first_eight(ptx_builder *b, const block_run *run)
{
    return block_offset_shr(b, run->place.byte, 3);
}

/* The bytes of the run where each of its eights has `each` (1 or 2) in a field. */
static ptx_val of_eights(ptx_builder *b, const block_run *run, unsigned offset, unsigned stride,
                         unsigned each)
{
    ptx_val first = first_eight(b, run), more = each == 1 ? first : block_offset(b, first, 2, (ptx_val){0});
    return of_part(b, &run->place, offset, stride, more, each * eights_of(&run->place));
}

static ptx_val of_whole_part(ptx_builder *b, const block_run *run, unsigned offset, unsigned stride,
                             unsigned count)
{
    return of_part(b, &run->place, offset, stride, (ptx_val){0}, count);
}

/* ---- Looking up ---- */

static void look_up_digits(ptx_builder *b, const block_run *run, const block_grid *g, ptx_val index,
                           ptx_val *words)
{
    const bool is_eight = g->numbers == EIGHT;
    ptx_val at = ptx_at(b, run->table, index, g->numbers / 2);
    ptx_val digits = ptx_ld_global_nc(b, is_eight ? PTX_U32 : PTX_U16, at, 0);
    bytes_of(b, g, is_eight ? digits : ptx_cvt(b, PTX_U32, digits), g->numbers, words);
}

static void look_up(ptx_builder *b, const block_run *run, const block_grid *g, unsigned eight,
                    ptx_val words[2])
{
    const unsigned each = EIGHT / g->numbers;
    for (unsigned i = 0; i < each; i++) {
        ptx_val index = g->index(b, run, eight * each + i);
        if (run->table.type == PTX_U64)
            look_up_digits(b, run, g, index, &words[i]);
        else if (each == 1)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, ptx_at(b, run->table, index, EIGHT), 0,
                       words, 2);
        else
            words[i] = ptx_ld_shared(b, PTX_U32, ptx_at(b, run->table, index, 4), 0);
    }
}

static void split_entries(ptx_builder *b, const block_run *run, const block_grid *g, ptx_val *words)
{
    ptx_val two[2];
    for (unsigned i = 0; i < eights_of(&run->place); i++) {
        ptx_val *to = run->place.bytes < EIGHT ? two : &words[2 * i];
        look_up(b, run, g, i, to);
        g->finish(b, run, i, to);
    }
    if (run->place.bytes < EIGHT)
        words[0] = ptx_selp(b, two[1], two[0], ptx_setp(b, PTX_NE, ptx_and(b, run->place.byte, 4), 0));
    if (run->place.bytes < 4)
        words[0] = ptx_shr(b, words[0], ptx_shl(b, ptx_and(b, run->place.byte, 2), 3));
}

/* Byte i of codes. */
static ptx_val index_byte(ptx_builder *b, const block_run *run, unsigned i)
{
    return ptx_bfe(b, run->codes[0], 8 * i, 8);
}

/* The same below the upper bits of the index: entry i has those under `mask` of the field, whose first entry is `first` (u32), after
 * a shift by `step` bits for each. */
static ptx_val index_with_upper(ptx_builder *b, const block_run *run, unsigned i, ptx_val first,
                                unsigned step, uint32_t mask)
{
    ptx_val field = ptx_shr(b, ptx_shl(b, run->high[0], 8), step == 1 ? first : ptx_mul(b, first, (int)step));
    return ptx_lop3(b, i ? ptx_shr(b, field, (int)(step * i)) : field, ptx_u32(b, mask << 8),
                    index_byte(b, run, i), (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
}

/* ---- Signs ---- */

/* The signs are the low eight bits of a u32. A product moves each of four bits to the top of a byte, from which a permutation
 * fills the byte. */
static void apply_signs(ptx_builder *b, const block_run *run, ptx_val signs, ptx_val words[2])
{
    const unsigned flips = run->layout->codes->grid->bytes->flips;
    for (unsigned k = 0; k < 2; k++) {
        ptx_val four = k ? ptx_bfe(b, signs, 4, 4) : ptx_and(b, signs, 15);
        ptx_val filled =
            ptx_prmt(b, ptx_mul(b, four, ptx_u32(b, 0x10204080)), ptx_u32(b, 0), ptx_u32(b, 0xBA98));
        if (flips) {
            words[k] = ptx_lop3(b, words[k], filled, ptx_u32(b, 0x01010101 * flips),
                                PTX_LOP_A ^ (PTX_LOP_B & PTX_LOP_C));
            continue;
        }
        ptx_val minus = ptx_lop3(b, words[k], filled, ptx_u32(b, 0x01010101 * (SIGN_BIAS - 1)),
                                 PTX_LOP_A & PTX_LOP_B & PTX_LOP_C);
        words[k] = ptx_mad(b, minus, ptx_u32(b, -2), words[k]);
    }
}

/* Seven signs are stored, and an even number of all eight is minus. */
static ptx_val even_signs(ptx_builder *b, ptx_val seven)
{
    return ptx_mad(b, ptx_popc(b, seven), 128, seven);
}

/* Four times seven signs in high[0], which the part's eights share. */
static void finish_shared_signs(ptx_builder *b, const block_run *run, unsigned i, ptx_val words[2])
{
    ptx_val from = ptx_shr(b, run->high[0], ptx_mul(b, first_eight(b, run), 7));
    apply_signs(b, run, even_signs(b, ptx_bfe(b, from, 7 * i, 7)), words);
}

static void finish_byte_signs(ptx_builder *b, const block_run *run, unsigned i, ptx_val words[2])
{
    apply_signs(b, run, ptx_bfe(b, run->high[1], 8 * i, 8), words);
}

/* ---- IQ2 ---- */

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void fetch_iq2_xxs(ptx_builder *b, const block_layout *layout, block_run *run)
{
    run->codes[0] = of_eights(b, run, layout->at.codes, 8, 1);
    run->high[0] = of_whole_part(b, run, layout->at.codes + 4, 8, 4);
}

static const block_grid grid_iq2_xxs = {.entries = iq2_xxs_entries,
                                        .count = LENGTH(iq2_xxs_entries),
                                        .numbers = 8,
                                        .bytes = &iq2_bytes,
                                        .index = index_byte,
                                        .finish = finish_shared_signs};

/* Nine bits of the index and seven signs. */
static void fetch_iq2_xs(ptx_builder *b, const block_layout *layout, block_run *run)
{
    run->codes[0] = of_eights(b, run, layout->at.codes, 8, 2);
}

static ptx_val index_iq2_xs(ptx_builder *b, const block_run *run, unsigned i)
{
    return ptx_bfe(b, run->codes[0], 16 * i, 9);
}

static void finish_iq2_xs(ptx_builder *b, const block_run *run, unsigned i, ptx_val words[2])
{
    apply_signs(b, run, even_signs(b, ptx_bfe(b, run->codes[0], 16 * i + 9, 7)), words);
}

static const block_grid grid_iq2_xs = {.entries = iq2_xs_entries,
                                       .count = LENGTH(iq2_xs_entries),
                                       .numbers = 8,
                                       .bytes = &iq2_bytes,
                                       .index = index_iq2_xs,
                                       .finish = finish_iq2_xs};

/* Indices, signs, then upper bits of indices. */
static void fetch_iq2_s(ptx_builder *b, const block_layout *layout, block_run *run)
{
    run->codes[0] = of_eights(b, run, layout->at.codes, 4, 1);
    run->high[1] = of_eights(b, run, layout->at.signs, 4, 1);
    run->high[0] = of_whole_part(b, run, layout->at.high, 1, 1);
}

static ptx_val index_iq2_s(ptx_builder *b, const block_run *run, unsigned i)
{
    return index_with_upper(b, run, i, first_eight(b, run), 2, 3);
}

static const block_grid grid_iq2_s = {.entries = iq2_s_entries,
                                      .count = LENGTH(iq2_s_entries),
                                      .numbers = 8,
                                      .bytes = &iq2_bytes,
                                      .index = index_iq2_s,
                                      .finish = finish_byte_signs};

/* ---- IQ3: two entries for eight numbers ---- */

static void fetch_iq3_xxs(ptx_builder *b, const block_layout *layout, block_run *run)
{
    run->codes[0] = of_eights(b, run, layout->at.codes, 8, 2);
    run->high[0] = of_whole_part(b, run, layout->at.signs, 4, 4);
}

static const block_grid grid_iq3_xxs = {.entries = iq3_xxs_entries,
                                        .count = LENGTH(iq3_xxs_entries),
                                        .numbers = 4,
                                        .bytes = &iq3_xxs_bytes,
                                        .index = index_byte,
                                        .finish = finish_shared_signs};

static void fetch_iq3_s(ptx_builder *b, const block_layout *layout, block_run *run)
{
    run->codes[0] = of_eights(b, run, layout->at.codes, 8, 2);
    run->high[1] = of_eights(b, run, layout->at.signs, 4, 1);
    run->high[0] = of_whole_part(b, run, layout->at.high, 1, 1);
}

static ptx_val index_iq3_s(ptx_builder *b, const block_run *run, unsigned i)
{
    return index_with_upper(b, run, i, ptx_shl(b, first_eight(b, run), 1), 1, 1);
}

static const block_grid grid_iq3_s = {.entries = iq3_s_entries,
                                      .count = LENGTH(iq3_s_entries),
                                      .numbers = 4,
                                      .bytes = &iq3_s_bytes,
                                      .index = index_iq3_s,
                                      .finish = finish_byte_signs};

/* ---- IQ1: bytes are those of an eighth more; a bit tells where it is an eighth less ---- */

static void move_down(ptx_builder *b, ptx_val field, ptx_val bit, ptx_val words[2])
{
    ptx_val is_down = ptx_bfe(b, field, bit, 1);
    for (unsigned k = 0; k < 2; k++)
        words[k] = ptx_mad(b, is_down, ptx_u32(b, 0u - 0x02020202u), words[k]);
}

/* Three upper bits of each index, three of the scale, and the direction of the part. */
static void fetch_iq1_s(ptx_builder *b, const block_layout *layout, block_run *run)
{
    run->codes[0] = of_eights(b, run, layout->at.codes, 4, 1);
    run->high[0] = of_whole_part(b, run, layout->at.high, 2, 2);
}

static ptx_val index_iq1_s(ptx_builder *b, const block_run *run, unsigned i)
{
    return index_with_upper(b, run, i, first_eight(b, run), 3, 7);
}

static void finish_iq1_s(ptx_builder *b, const block_run *run, unsigned i, ptx_val words[2])
{
    (void)i;
    move_down(b, run->high[0], ptx_u32(b, 15), words);
}

static const block_grid grid_iq1_s = {.entries = iq1_entries,
                                      .count = LENGTH(iq1_entries),
                                      .numbers = 8,
                                      .bytes = &iq1_bytes,
                                      .index = index_iq1_s,
                                      .finish = finish_iq1_s};

/* A nibble has the three upper bits of an index, and the direction; a byte is common to two eights. */
static void fetch_iq1_m(ptx_builder *b, const block_layout *layout, block_run *run)
{
    run->codes[0] = of_eights(b, run, layout->at.codes, 4, 1);
    run->high[0] = of_part(b, &run->place, layout->at.high, 2, block_offset_shr(b, run->place.byte, 4), 1);
}

static ptx_val first_nibble(ptx_builder *b, const block_run *run)
{
    return ptx_and(b, first_eight(b, run), 1);
}

static ptx_val index_iq1_m(ptx_builder *b, const block_run *run, unsigned i)
{
    return index_with_upper(b, run, i, first_nibble(b, run), 4, 7);
}

static void finish_iq1_m(ptx_builder *b, const block_run *run, unsigned i, ptx_val words[2])
{
    move_down(b, run->high[0], ptx_mad(b, first_nibble(b, run), 4, ptx_u32(b, 4 * i + 3)), words);
}

static const block_grid grid_iq1_m = {.entries = iq1_entries,
                                      .count = LENGTH(iq1_entries),
                                      .numbers = 8,
                                      .bytes = &iq1_bytes,
                                      .index = index_iq1_m,
                                      .finish = finish_iq1_m};

/* ---- What the table of formats refers to ---- */

static void split_grid(ptx_builder *b, const block_run *run, unsigned strand, ptx_val *words)
{
    (void)strand;
    split_entries(b, run, run->layout->codes->grid, words);
}

static void gather_grid(ptx_builder *b, const block_run *run, unsigned strand, const block_turn *turn,
                        ptx_val *words)
{
    (void)turn;
    split_grid(b, run, strand, words);
}

const block_codes codes_iq1_s = {
    .fetch = fetch_iq1_s, .split = split_grid, .gather = gather_grid, .mask = 0xFF, .grid = &grid_iq1_s};
const block_codes codes_iq1_m = {
    .fetch = fetch_iq1_m, .split = split_grid, .gather = gather_grid, .mask = 0xFF, .grid = &grid_iq1_m};
const block_codes codes_iq2_xxs = {
    .fetch = fetch_iq2_xxs, .split = split_grid, .gather = gather_grid, .mask = 0xFF, .grid = &grid_iq2_xxs};
const block_codes codes_iq2_xs = {
    .fetch = fetch_iq2_xs, .split = split_grid, .gather = gather_grid, .mask = 0xFF, .grid = &grid_iq2_xs};
const block_codes codes_iq2_s = {
    .fetch = fetch_iq2_s, .split = split_grid, .gather = gather_grid, .mask = 0xFF, .grid = &grid_iq2_s};
const block_codes codes_iq3_xxs = {
    .fetch = fetch_iq3_xxs, .split = split_grid, .gather = gather_grid, .mask = 0xFF, .grid = &grid_iq3_xxs};
const block_codes codes_iq3_s = {
    .fetch = fetch_iq3_s, .split = split_grid, .gather = gather_grid, .mask = 0xFF, .grid = &grid_iq3_s};
