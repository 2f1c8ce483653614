/* How a thread reads its share of a round from a segment in shared memory, in words and without bank
 * conflicts. */
#include "kernels/gemm/block_segments.h"

enum { BLOCK_WORDS_MAX = 9 };

/* ---- Whole blocks ---- */

/* Whether a thread has a whole block of each round. Its alignment is then the same in all rounds. */
static bool has_whole_blocks(const block_layout *layout)
{
    return layout->elements * TEAM == ROUND;
}

static bool is_aligned(const block_layout *layout)
{
    return layout->bytes % 4 == 0;
}

/* The most aligned words that a block can touch, wherever it begins. */
static unsigned words_of_block(const block_layout *layout)
{
    const unsigned most_before = is_aligned(layout) ? 0 : layout->bytes % 2 ? 3 : 2;
    return (most_before + layout->bytes + 3) / 4;
}

static void begin_whole_blocks(ptx_builder *b, const blocks *s, segments *g)
{
    const block_layout *layout = s->share.layout;
    for (unsigned o = 0; o < s->outputs; o++) {
        ptx_val first = ptx_mul(b, s->thread, layout->bytes);
        ptx_val skew = ptx_and(b, s->ragged ? ptx_add(b, first, g->before[o]) : first, 3);
        g->words_at[o] = ptx_sub(b, g->places[o][0].block, skew);
        g->turn[o] = ptx_mad(b, skew, 0x1111, ptx_u32(b, 0x3210 + 0x1111 * (layout->at.codes % 4)));
        if (!is_aligned(layout))
            g->head[o][0] = layout->scales->head_bytes == 1 ? ptx_add(b, skew, 0x4440)
                                                            : ptx_mad(b, skew, 0x11, ptx_u32(b, 0x4410));
    }
}

static void load_whole_block(ptx_builder *b, const block_layout *layout, ptx_val at, unsigned offset,
                             ptx_val *words)
{
    const unsigned n = layout->bytes % 8 ? 1 : 2;
    for (unsigned i = 0; i < words_of_block(layout); i += n)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, at, (int)(offset + 4 * i), &words[i], (int)n);
}

/* The word at `offset` of a block, shifted to begin at `offset`; fields are as far from a word boundary as
 * the codes are. */
static ptx_val whole_block_word(ptx_builder *b, const segments *g, unsigned output,
                                const block_layout *layout, const ptx_val *words, unsigned offset)
{
    const ptx_val *two = &words[offset / 4];
    return is_aligned(layout) ? two[0] : ptx_prmt(b, two[0], two[1], g->turn[output]);
}

static void take_whole_block(ptx_builder *b, const blocks *s, const segments *g, unsigned output,
                             const ptx_val *words, block_round *round)
{
    const block_layout *layout = s->share.layout;
    for (unsigned i = 0; i < s->share.runs; i++) {
        block_run *run = &round->runs[i];
        layout->scales->take(b, words, g->head[output][0], run);
        for (unsigned k = 0; 4 * k < s->share.bytes; k++)
            run->codes[k] =
                whole_block_word(b, g, output, layout, words, layout->at.codes + i * s->share.bytes + 4 * k);
        if (layout->at.high)
            run->high[0] = whole_block_word(b, g, output, layout, words, layout->at.high);
    }
}

/* ---- Parts of blocks ---- */

static void fetch_part(ptx_builder *b, const blocks *s, const segments *g, ptx_val more, unsigned number,
                       block_run *run)
{
    const block_layout *layout = s->share.layout;
    const unsigned of_turn = g->shape.turn * g->shape.of_round, offset = number * g->shape.of_round;
    block_place *place = &run->place;
    place->block = ptx_add(b, ptx_add(b, place->block, more), offset);
    place->align = block_align(layout);
    if (layout->elements == ROUND && !s->ragged) {
        place->unit = of_turn % LOAD_BYTES ? of_turn & -of_turn : LOAD_BYTES;
        place->skew = offset % place->unit;
    }
    layout->codes->fetch(b, layout, run);
    if (s->share.own_first) {
        block_address header = block_field(place, 0);
        block_load(b, &header, LOAD_BYTES, run->scales);
    } else {
        layout->scales->fetch(b, layout, run);
    }
}

/* ---- Between the entries of a table ---- */

/* The bytes of one load: threads load a round in aligned units of one or two words. */
static unsigned between_unit(const block_layout *layout)
{
    return has_whole_blocks(layout) ? 4 : block_align(layout);
}

static unsigned between_units(const block_layout *layout)
{
    return has_whole_blocks(layout) ? words_of_block(layout) : 1 + RUN_BYTES_MAX / between_unit(layout);
}

/* The offset in a round of the thread's unit k: of its whole block; or first the block's header, then the
 * thread's codes. */
static ptx_val between_position(ptx_builder *b, const blocks *s, unsigned k)
{
    const block_layout *layout = s->share.layout;
    const unsigned per_block = ceil_log2(layout->elements / (ROUND / TEAM));
    ptx_val block = ptx_mul(b, ptx_shr(b, s->thread, (int)per_block), layout->bytes);
    if (has_whole_blocks(layout))
        return ptx_add(b, ptx_and(b, block, ptx_u32(b, ~3u)), 4 * k);
    if (k == 0)
        return block;
    ptx_val inside = ptx_and(b, s->thread, (1 << per_block) - 1);
    return ptx_add(b, ptx_mad(b, inside, RUN_BYTES_MAX, block),
                   layout->at.codes + (k - 1) * between_unit(layout));
}

static void begin_between(ptx_builder *b, const blocks *s, segments *g)
{
    const block_layout *layout = s->share.layout;
    for (unsigned k = 0; k < between_units(layout); k++) {
        ptx_val position = between_position(b, s, k);
        for (unsigned r = 0; r < BETWEEN_ROUNDS; r++)
            g->between_at[r][k] =
                ptx_add(b, g->rows[0], segment_between(b, s, ptx_add(b, position, r * g->shape.of_round)));
    }
    for (unsigned i = 0; i < s->share.runs && !has_whole_blocks(layout); i++)
        for (unsigned o = 0; o < s->outputs; o++)
            g->head[o][i] = layout->scales->select(b, s->thread, i);
}

/* First the block's header, then the codes of the thread's runs. */
static void take_parts(ptx_builder *b, const blocks *s, const segments *g, unsigned output,
                       const ptx_val *words, block_round *round)
{
    const unsigned header = between_unit(s->share.layout) / 4, of_run = s->share.bytes / 4;
    for (unsigned i = 0; i < s->share.runs; i++) {
        s->share.layout->scales->take(b, words, g->head[output][i], &round->runs[i]);
        for (unsigned k = 0; k < of_run; k++)
            round->runs[i].codes[k] = words[header + i * of_run + k];
    }
}

static void fetch_between(ptx_builder *b, const blocks *s, const segments *g, unsigned output,
                          unsigned number, block_round *round)
{
    const block_layout *layout = s->share.layout;
    const unsigned n = between_unit(layout) / 4;
    ptx_val words[BLOCK_WORDS_MAX];
    for (unsigned k = 0; k < between_units(layout); k++)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, g->between_at[number][k],
                   (int)(output * g->shape.stride), &words[k * n], (int)n);
    (has_whole_blocks(layout) ? take_whole_block : take_parts)(b, s, g, output, words, round);
}

/* ---- All of them ---- */

void segment_begin_fetch(ptx_builder *b, const blocks *s, segments *g)
{
    const block_layout *layout = s->share.layout;
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned i = 0; i < s->share.runs; i++) {
            block_place *place = &g->places[o][i];
            ptx_val block;
            *place = block_share_place(b, &s->share, s->thread, i, &block);
            place->space = PTX_SHARED;
            place->block = ptx_mad(b, block, layout->bytes, g->rows[o]);
            if (s->ragged)
                place->block = ptx_add(b, place->block, g->before[o]);
        }
    if (has_whole_blocks(layout))
        begin_whole_blocks(b, s, g);
    if (s->between)
        begin_between(b, s, g);
}

void segment_fetch(ptx_builder *b, const blocks *s, const segments *g, unsigned output, ptx_val more,
                   unsigned number, block_round *round)
{
    for (unsigned i = 0; i < s->share.runs; i++)
        round->runs[i] = (block_run){.place = g->places[output][i], .layout = s->share.layout};
    if (s->between) {
        fetch_between(b, s, g, output, number, round);
    } else if (has_whole_blocks(s->share.layout)) {
        ptx_val words[BLOCK_WORDS_MAX + 1];
        load_whole_block(b, s->share.layout, ptx_add(b, g->words_at[output], more),
                         number * g->shape.of_round, words);
        take_whole_block(b, s, g, output, words, round);
    } else {
        for (unsigned i = 0; i < s->share.runs; i++)
            fetch_part(b, s, g, more, number, &round->runs[i]);
    }
}
