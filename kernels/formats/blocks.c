/* The table of block formats, places in a block, and access to its bytes. */
#include "kernels/formats/blocks.h"

#include "kernels/formats/search.h"

/* The values of IQ4 codes; and twice the values of E2M1 codes (whose scales are halved), with +0 for code
 * 8. */
static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t e2m1_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Elements, bytes, fields, sections (count, span, strands), codes, scales, bias, table, encoder, search, banks. Conflicts
 * remain for Q5_0 and Q8_K, wherever teams lie, and for the upper bits of Q6_K, which would need other places than its
 * nibbles. MXFP4, and IQ4_XS between the entries of a table, use words at two of the four places in the vectors of a
 * team; those of another team go between them. */
/* clang-format off */
static const block_layout layouts[] = {
    {QDNN_BLOCK_Q4_0,    32,  18, {.codes = 2,  .scale = 0},                             {{1, 16, 2}},   &codes_nibbles,       &scales_f16,     8,   NULL,         &encoder_q4_0, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q4_1,    32,  20, {.codes = 4,  .scale = 0, .second = 2},                {{1, 16, 2}},   &codes_nibbles,       &scales_f16_min, 0,   NULL,         &encoder_q4_1, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q5_0,    32,  22, {.codes = 6,  .high = 2, .scale = 0},                  {{1, 16, 2}},   &codes_nibbles_bits,  &scales_f16,     16,  NULL,         &encoder_q5_0, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q5_1,    32,  24, {.codes = 8,  .high = 4, .scale = 0, .second = 2},     {{1, 16, 2}},   &codes_nibbles_bits,  &scales_f16_min, 0,   NULL,         &encoder_q5_1, NULL, {64, 32}, {64, 32}},
    {QDNN_BLOCK_Q8_0,    32,  34, {.codes = 2,  .scale = 0},                             {{1, 32, 1}},   &codes_bytes,         &scales_f16,     128, NULL,         &encoder_q8_0, NULL, {16, 64}, {16, 64}},
    {QDNN_BLOCK_Q8_1,    32,  36, {.codes = 4,  .scale = 0, .second = 2},                {{1, 32, 1}},   &codes_bytes,         &scales_f16,     128, NULL,         &encoder_q8_1, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q2_K,   256,  84, {.codes = 16, .scale = 80, .second = 82, .scales = 0}, {{2, 32, 4}},   &codes_pairs,         &scales_q2_k,    0,   NULL,         NULL, &search_q2_k, {64, 32}, {64, 32}},
    {QDNN_BLOCK_Q3_K,   256, 110, {.codes = 32, .high = 0, .scale = 108, .scales = 96},  {{2, 32, 4}},   &codes_pairs_mask,    &scales_q3_k,    4,   NULL,         NULL, &search_q3_k, {64, 32}, {64, 32}},
    {QDNN_BLOCK_Q4_K,   256, 144, {.codes = 16, .scale = 0, .second = 2, .scales = 4},   {{4, 32, 2}},   &codes_nibbles,       &scales_q4_k,    0,   NULL,         NULL, &search_q4_k, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q5_K,   256, 176, {.codes = 48, .high = 16, .scale = 0, .second = 2, .scales = 4}, {{4, 32, 2}}, &codes_nibbles_bytes, &scales_q4_k, 0, NULL,    NULL, &search_q5_k, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q6_K,   256, 210, {.codes = 0,  .high = 128, .scale = 208, .scales = 192}, {{2, 32, 4}}, &codes_six,           &scales_q6_k,    32,  NULL,         NULL, &search_q6_k, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q8_K,   256, 292, {.codes = 4,  .scale = 0},                             {{1, 256, 1}},  &codes_bytes,         &scales_f32,     128, NULL,         NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ4_NL,  32,  18, {.codes = 2,  .scale = 0},                             {{1, 16, 2}},   &codes_nibbles,       &scales_f16,     0,   iq4_values,   NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ4_XS, 256, 136, {.codes = 8,  .scale = 0, .second = 2, .scales = 4},   {{8, 16, 2}},   &codes_nibbles,       &scales_iq4_xs,  0,   iq4_values,   NULL, NULL, {32, 64}, {8, 64}},
    {QDNN_BLOCK_TQ1_0,  256,  54, {.codes = 0,  .scale = 52},   {{1, 32, 5}, {1, 16, 5}, {1, 4, 4}},    &codes_ternary,       &scales_f16,     1,   NULL,         &encoder_ternary, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_TQ2_0,  256,  66, {.codes = 0,  .scale = 64},                            {{2, 32, 4}},   &codes_pairs,         &scales_f16,     1,   NULL,         &encoder_ternary, NULL, {64, 32}, {64, 32}},
    {QDNN_BLOCK_MXFP4,   32,  17, {.codes = 1,  .scale = 0},                             {{1, 16, 2}},   &codes_nibbles,       &scales_e8m0,    0,   e2m1_doubled, &encoder_mxfp4, NULL, {8, 64}, {8, 64}},
    {QDNN_BLOCK_NVFP4,   64,  36, {.codes = 4,  .scales = 0},                            {{4, 8, 2}},    &codes_nibbles,       &scales_ue4m3,   0,   e2m1_doubled, NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q1_0,   128,  18, {.codes = 2,  .scale = 0},                           {{4, 32, 1}},   &codes_bits,           &scales_f16,     1,   NULL,         &encoder_q1_0, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_Q2_0,    64,  18, {.codes = 2,  .scale = 0},                           {{2, 32, 1}},   &codes_pairs_in_order, &scales_f16,     1,   NULL,         &encoder_ternary, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ1_S,  256,  50, {.codes = 2,  .high = 34, .scale = 0},               {{8, 32, 1}},   &codes_iq1_s,          &scales_iq1_s,   9,   NULL,         NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ1_M,  256,  56, {.codes = 0,  .high = 32, .scales = 48},             {{8, 32, 1}},   &codes_iq1_m,          &scales_iq1_m,   9,   NULL,         NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ2_XXS,256,  66, {.codes = 2,  .scale = 0},                           {{8, 32, 1}},   &codes_iq2_xxs,        &scales_iq2_xxs, 64,  NULL,         NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ2_XS, 256,  74, {.codes = 2,  .scale = 0, .scales = 66},             {{8, 32, 1}},   &codes_iq2_xs,         &scales_iq2,     64,  NULL,         NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ2_S,  256,  82, {.codes = 2,  .high = 66, .scale = 0, .scales = 74, .signs = 34},{{8, 32, 1}},   &codes_iq2_s,          &scales_iq2,     64,  NULL,         NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ3_XXS,256,  98, {.codes = 2,  .scale = 0, .signs = 66},              {{8, 32, 1}},   &codes_iq3_xxs,        &scales_iq3_xxs, 64,  NULL,         NULL, NULL, {32, 64}, {32, 64}},
    {QDNN_BLOCK_IQ3_S,  256, 110, {.codes = 2,  .high = 66, .scale = 0, .scales = 106, .signs = 74},{{8, 32, 1}},   &codes_iq3_s,          &scales_iq3_s,   64,  NULL,         NULL, NULL, {32, 64}, {32, 64}},
};
/* clang-format on */
_Static_assert(sizeof layouts / sizeof layouts[0] == QDNN_BLOCK_IQ3_S, "a row for each block format");

const block_layout *block_layout_of(const format_row *format)
{
    if (format->facts.block == QDNN_BLOCK_NONE)
        return NULL;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].block == format->facts.block)
            return &layouts[i];
    missing_row("block formats", (int)format->facts.block);
}

const codec codec_block = {0}; /* blocks are coded by the functions that their rows refer to */

/* ---- Places ---- */

static unsigned power_of_two_in(unsigned x)
{
    unsigned power = x & -x;
    return power == 0 || power > LOAD_BYTES ? LOAD_BYTES : power;
}

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned block_align(const block_layout *layout)
{
    return power_of_two_in(layout->bytes);
}

unsigned section_first_byte(const block_layout *layout, unsigned kind)
{
    unsigned first = 0;
    for (unsigned i = 0; i < kind; i++)
        first += layout->sections[i].count * layout->sections[i].span;
    return first;
}

unsigned section_first_element(const block_layout *layout, unsigned kind)
{
    unsigned first = 0;
    for (unsigned i = 0; i < kind; i++)
        first += layout->sections[i].count * layout->sections[i].span * layout->sections[i].strands;
    return first;
}

block_place block_place_of_run(ptx_builder *b, const block_layout *layout, unsigned kind, ptx_val run,
                               unsigned bytes)
{
    const block_section *section = &layout->sections[kind];
    ptx_val position = ptx_shl(b, run, ceil_log2(bytes));
    block_place place = {.kind = kind, .bytes = bytes, .position = position, .byte = position};
    if (section->count > 1) {
        place.section = ptx_shr(b, position, ceil_log2(section->span));
        place.byte = ptx_and(b, position, (int)section->span - 1);
    }
    return place;
}

ptx_val block_place_element(ptx_builder *b, const block_layout *layout, const block_place *place)
{
    const block_section *section = &layout->sections[place->kind];
    ptx_val element = place->byte;
    if (section->count > 1)
        element = ptx_mad(b, place->section, (int)(section->span * section->strands), element);
    unsigned first = section_first_element(layout, place->kind);
    return first ? ptx_add(b, element, (int)first) : element;
}

/* ---- Bytes ---- */

block_address block_field(const block_place *place, unsigned offset)
{
    block_address at = {.space = place->space,
                        .base = place->block,
                        .offset = (int)offset,
                        .unit = place->unit,
                        .held = place->held};
    at.skew = at.unit ? (place->skew + offset) % at.unit : 0;
    at.align = at.unit ? least_of(at.unit, power_of_two_in(at.skew))
                       : least_of(place->align, power_of_two_in(offset));
    return at;
}

block_address block_field_at(ptx_builder *b, const block_place *place, unsigned offset, ptx_val more,
                             unsigned step)
{
    block_address at = block_field(place, offset);
    if (at.held) {
        at.offset += (int)more.bits;
        return at;
    }
    at.base = ptx_at(b, at.base, more, 1);
    at.align = least_of(at.align, power_of_two_in(step));
    at.unit = least_of(at.unit, power_of_two_in(step));
    at.skew = at.unit ? at.skew % at.unit : 0;
    return at;
}

ptx_val block_offset(ptx_builder *b, ptx_val x, unsigned factor, ptx_val more)
{
    const bool has_more = more.kind != PTX_NOTHING;
    if (x.kind == PTX_NUMBER)
        return ptx_u32(b, (uint32_t)(x.bits * factor + more.bits));
    ptx_val product = ptx_mul(b, x, (int)factor);
    return has_more ? ptx_add(b, product, more) : product;
}

ptx_val block_offset_shr(ptx_builder *b, ptx_val x, unsigned by)
{
    return x.kind == PTX_NUMBER ? ptx_u32(b, (uint32_t)x.bits >> by) : ptx_shr(b, x, (int)by);
}

/* Up to four bytes of a block in registers; they may begin in one word and end in the next. */
static ptx_val held_bytes(ptx_builder *b, const block_address *at, unsigned offset, unsigned bytes)
{
    const ptx_val *word = &at->held[offset / 4];
    const unsigned first = offset % 4;
    if (first + bytes > 4)
        return ptx_prmt(b, word[0], word[1], ptx_u32(b, (0x3210 + 0x1111 * first) & ((1u << 4 * bytes) - 1)));
    if (first + bytes == 4)
        return first ? ptx_shr(b, word[0], (int)(8 * first)) : word[0];
    return ptx_bfe(b, word[0], 8 * first, 8 * bytes);
}

static ptx_val load_number(ptx_builder *b, const block_address *at, ptx_type type, int offset)
{
    unsigned cache = at->space == PTX_GLOBAL ? PTX_NC : PTX_CACHE_DEFAULT;
    return ptx_ld(b, at->space, cache, type, at->base, at->offset + offset);
}

/* Two bytes, in the low half of a u32. */
static ptx_val load_half(ptx_builder *b, const block_address *at, int offset)
{
    if (at->align >= 2)
        return ptx_cvt(b, PTX_U32, load_number(b, at, PTX_U16, offset));
    ptx_val low = load_number(b, at, PTX_U8, offset), high = load_number(b, at, PTX_U8, offset + 1);
    return ptx_prmt(b, low, high, 0x5540);
}

static ptx_val load_word(ptx_builder *b, const block_address *at, int offset)
{
    if (at->align >= 4)
        return load_number(b, at, PTX_U32, offset);
    ptx_val low = load_half(b, at, offset), high = load_half(b, at, offset + 2);
    return ptx_prmt(b, low, high, 0x5410);
}

ptx_val block_load_as(ptx_builder *b, const block_address *at, ptx_type type, int offset)
{
    if (at->held) {
        const bool is_half = type == PTX_F16 || type == PTX_U16, is_byte = type == PTX_U8;
        ptx_val bytes = held_bytes(b, at, (unsigned)(at->offset + offset), is_byte ? 1 : is_half ? 2 : 4);
        return is_byte ? bytes : ptx_as(b, type, is_half ? ptx_cvt(b, PTX_U16, bytes) : bytes);
    }
    if ((type == PTX_F16 || type == PTX_U16) && at->align < 2)
        return ptx_as(b, type, ptx_cvt(b, PTX_U16, load_half(b, at, offset)));
    if ((type == PTX_F32 || type == PTX_U32) && at->align < 4)
        return ptx_as(b, type, load_word(b, at, offset));
    return load_number(b, at, type, offset);
}

/* Words per access. */
static unsigned words_at_once(const block_address *at, unsigned bytes)
{
    unsigned widest = least_of(at->align, bytes);
    return widest >= 16 ? 4 : widest >= 8 ? 2 : 1;
}

/* Loads n words per access. */
static void load_aligned(ptx_builder *b, const block_address *at, unsigned bytes, unsigned n, ptx_val *words)
{
    unsigned cache = at->space == PTX_GLOBAL ? PTX_NC : PTX_CACHE_DEFAULT;
    for (unsigned i = 0; i < bytes / 4; i += n)
        if (n == 1)
            words[i] = load_word(b, at, (int)(4 * i));
        else
            ptx_ld_vec(b, at->space, cache, PTX_U32, at->base, at->offset + (int)(4 * i), &words[i], (int)n);
}

/* Loads aligned units; the first one may begin in the preceding block or, for the first block, before it in
 * memory. */
static void load_units(ptx_builder *b, const block_address *at, unsigned bytes, ptx_val *words)
{
    const unsigned unit = least_of(at->unit, bytes), skew = at->skew % unit;
    ptx_val loaded[2 * RUN_WORDS_MAX];
    block_address from = *at;
    from.offset -= (int)skew;
    from.align = unit;
    load_aligned(b, &from, (skew + bytes + unit - 1) / unit * unit, unit / 4, loaded);
    for (unsigned i = 0; i < bytes / 4; i++) {
        const ptx_val *two = &loaded[skew / 4 + i];
        words[i] = skew % 4 ? ptx_prmt(b, two[0], two[1], 0x3210 + 0x1111 * (int)(skew % 4)) : two[0];
    }
}

void block_load(ptx_builder *b, const block_address *at, unsigned bytes, ptx_val *words)
{
    if (at->held)
        for (unsigned i = 0; i < bytes; i += 4)
            words[i / 4] = held_bytes(b, at, (unsigned)at->offset + i, bytes < 4 ? bytes : 4);
    else if (bytes == 2)
        words[0] = load_half(b, at, 0);
    else if (at->unit >= 4 && at->align < least_of(at->unit, bytes))
        load_units(b, at, bytes, words);
    else
        load_aligned(b, at, bytes, words_at_once(at, bytes), words);
}

/* Shifts the upper bytes of a word down for a narrow store. */
static void store_part(ptx_builder *b, const block_address *at, ptx_type type, int offset, ptx_val word,
                       unsigned byte)
{
    ptx_val part = byte ? ptx_shr(b, word, 8 * byte) : word;
    ptx_st_as(b, at->space, PTX_CACHE_DEFAULT, type, at->base, at->offset + offset, part);
}

void block_store(ptx_builder *b, const block_address *at, unsigned bytes, const ptx_val *words)
{
    unsigned step = least_of(at->align, least_of(bytes, 4));
    ptx_type type = step == 4 ? PTX_U32 : step == 2 ? PTX_U16 : PTX_U8;
    for (unsigned i = 0; i < bytes; i += step)
        store_part(b, at, type, (int)i, words[i / 4], i % 4);
}

/* ---- Runs ---- */

void block_fetch(ptx_builder *b, const block_layout *layout, const block_place *place, block_run *run)
{
    *run = (block_run){.place = *place, .layout = layout};
    layout->codes->fetch(b, layout, run);
    layout->scales->fetch(b, layout, run);
}

void block_open_run(ptx_builder *b, const codec_state *state, block_run *run)
{
    run->table = state->table;
    run->layout->scales->open(b, run);
}

block_strand block_strand_of(ptx_builder *b, const block_layout *layout, const block_run *run,
                             unsigned strand)
{
    block_strand out = {0};
    layout->codes->split(b, run, strand, out.codes);
    layout->scales->strand(b, run, strand, &out);
    return out;
}

bool block_has_one(const block_layout *layout)
{
    return layout->codes->fetch_one && layout->scales->fetch_one;
}

void block_fetch_one(ptx_builder *b, const block_layout *layout, const block_place *place, ptx_val strand,
                     block_run *run)
{
    *run = (block_run){.place = *place, .layout = layout};
    layout->codes->fetch_one(b, layout, run, strand);
    layout->scales->fetch_one(b, layout, run, strand);
}

block_strand block_strand_one(ptx_builder *b, const block_layout *layout, const block_run *run,
                              ptx_val strand)
{
    block_strand out = {0};
    layout->codes->split_one(b, run, strand, out.codes);
    layout->scales->strand(b, run, 0, &out);
    return out;
}

/* Selecting between identical values needs no instruction. */
static ptx_val select(ptx_builder *b, ptx_val if_true, ptx_val if_false, ptx_val pred)
{
    bool same = if_true.kind == if_false.kind && if_true.reg == if_false.reg && if_true.bits == if_false.bits;
    return same ? if_true : ptx_selp(b, if_true, if_false, pred);
}

block_strand block_strand_select(ptx_builder *b, const block_strand *if_true, const block_strand *if_false,
                                 unsigned bytes, ptx_val pred)
{
    block_strand out = {.scale = select(b, if_true->scale, if_false->scale, pred)};
    if (if_true->addend.kind != PTX_NOTHING)
        out.addend = select(b, if_true->addend, if_false->addend, pred);
    for (unsigned i = 0; 4 * i < bytes; i++)
        out.codes[i] = select(b, if_true->codes[i], if_false->codes[i], pred);
    return out;
}

void block_table_bits(const block_layout *layout, uint64_t bits[16])
{
    for (int i = 0; i < 16; i++)
        bits[i] = float_bits((float)layout->table[i]);
}

unsigned block_codebook_bytes(const block_layout *layout)
{
    return layout->codes->grid ? block_grid_bytes(layout->codes->grid) : 0;
}

static codec_state open_tables(ptx_builder *b, const block_layout *layout, bool in_shared)
{
    uint64_t bits[16];
    if (layout->codes->grid)
        return block_grid_open(b, layout->codes->grid, in_shared);
    if (!layout->table)
        return (codec_state){0};
    block_table_bits(layout, bits);
    return table_open(b, bits);
}

codec_state block_open_before_barrier(ptx_builder *b, const block_layout *layout)
{
    return open_tables(b, layout, true);
}

codec_state block_open(ptx_builder *b, const block_layout *layout)
{
    codec_state state = block_open_before_barrier(b, layout);
    if (layout->codes->grid)
        ptx_syncthreads(b);
    return state;
}

codec_state block_open_outside(ptx_builder *b, const block_layout *layout)
{
    return open_tables(b, layout, false);
}

/* One permutation puts a byte into the fraction of 2^23; the surplus is then subtracted, exactly. */
static ptx_val number_of_byte(ptx_builder *b, ptx_val word, unsigned byte, unsigned bias)
{
    ptx_val placed = ptx_prmt(b, word, ptx_u32(b, 0x4B000000), ptx_u32(b, 0x7440 | byte));
    return ptx_sub(b, ptx_as(b, PTX_F32, placed), ptx_f32(b, (float)((1u << 23) + bias)));
}

/* If there is an addend, the product is exact (11 bits of d, 6 of a scale, 5 of a code), so fma rounds
 * exactly like a product followed by a sum. */
ptx_val block_decode(ptx_builder *b, const block_layout *layout, const codec_state *state,
                     const block_strand *strand, unsigned element)
{
    ptx_val word = strand->codes[element / 4];
    ptx_val number = layout->table ? table_number(b, state, word, 8 * (element % 4))
                                   : number_of_byte(b, word, element % 4, layout->bias);
    if (strand->addend.kind == PTX_NOTHING)
        return ptx_mul(b, number, strand->scale);
    return ptx_fma(b, number, strand->scale, strand->addend);
}

void block_pack(ptx_builder *b, const block_layout *layout, const block_place *place,
                ptx_val strands[STRANDS_MAX][RUN_WORDS_MAX])
{
    layout->codes->pack(b, layout, place, strands);
}

uint64_t kernel_columns_multiple(const kernel_row *row)
{
    const block_layout *blocks = block_layout_of(row->format);
    return blocks ? blocks->elements : 1;
}
