/* Rows of codes that begin anywhere, at any bit: because K does not fill 16 bytes, or because codes have 3, 5 or 6 bits. The
 * threads of a team copy stretches of their rows to shared memory, by whole sectors, and pick their words from there; a funnel
 * shift puts codes where the decoders expect them. No warp waits for another one. */
#include "kernels/gemm/gemv.h"

enum { SECTOR_BYTES = 32, BITS_OF_WORD = 32 };

static unsigned bits_of(const gemv *g)
{
    return g->w.coding.format->facts.bits;
}

static unsigned round_bytes(const gemv *g)
{
    return ROUND / 8 * bits_of(g);
}

/* Whether the codes of every thread begin with a word, whatever the row. */
static bool words_are_whole(const gemv *g)
{
    const unsigned of_unit = gemv_unit(&g->shape) * bits_of(g);
    return bits_of(g) == BITS_OF_WORD ||
           (g->spec->layout == QDNN_LAYOUT_WORDS_ROWS && of_unit % BITS_OF_WORD == 0);
}

static bool nibbles_are_swapped(const gemv *g)
{
    return bits_of(g) == 4 && g->spec->nibble_order == QDNN_NIBBLE_HIGH_FIRST;
}

/* ---- Where rows lie ---- */

/* Bits from row to row. */
static ptx_val row_bits(ptx_builder *b, const gemv *g)
{
    const bool in_words = !format_is_plain(g->w.coding.format) && g->spec->layout == QDNN_LAYOUT_WORDS_ROWS;
    return in_words ? ptx_shl(b, g->w.matrix.row_words, 5) : ptx_mul(b, g->args.k, ptx_u64(b, bits_of(g)));
}

static void begin_row(ptx_builder *b, gemv *g, unsigned i, ptx_val bits, ptx_val shared)
{
    const gemv_shape *s = &g->shape;
    ragged_rows *rows = &g->ragged;
    ptx_val bit = ptx_mul(b, ptx_cvt(b, PTX_U64, g->rows[i]), bits);
    ptx_val address = ptx_add(b, g->w.codes, ptx_shr(b, bit, 3));
    ptx_val sector = ptx_and(b, address, ptx_u64(b, ~(uint64_t)(SECTOR_BYTES - 1)));
    ptx_val inside = ptx_shl(b, ptx_cvt(b, PTX_U32, ptx_sub(b, address, sector)), 3);
    inside = ptx_add(b, inside, ptx_and(b, ptx_cvt(b, PTX_U32, bit), 7));
    inside = ptx_mad(b, g->thread, (int)(gemv_unit(s) * bits_of(g)), inside);
    ptx_val output = ptx_add(b, g->output, (int)(i * (s->of_block / s->outputs)));
    ptx_val copy = ptx_mad(b, output, (int)s->pitch, shared);
    rows->from[i] = ptx_mad_wide(b, g->thread, ptx_u32(b, LOAD_BYTES), sector);
    rows->to[i] = ptx_mad(b, g->thread, LOAD_BYTES, copy);
    rows->words[i] = ptx_mad(b, ptx_shr(b, inside, 5), 4, copy);
    rows->shift[i] = ptx_and(b, inside, BITS_OF_WORD - 1);
}

void gemv_begin_ragged(ptx_builder *b, gemv *g)
{
    const gemv_shape *s = &g->shape;
    ptx_val shared = ptx_shared(b, "stretches", PTX_U32, s->of_block * s->pitch / 4, LOAD_BYTES);
    ptx_val bits = row_bits(b, g), all = ptx_mul(b, g->args.outputs, bits);
    g->ragged.first = g->w.codes;
    g->ragged.end = ptx_add(b, g->w.codes, ptx_shr(b, ptx_add(b, all, ptx_u64(b, 7)), 3));
    g->ragged.before = ptx_var(b, ptx_u64(b, 0));
    for (unsigned i = 0; i < s->outputs; i++)
        begin_row(b, g, i, bits, shared);
}

/* ---- Copying ---- */

static unsigned vectors_of_thread(const gemv_shape *s)
{
    return (s->vectors + s->team - 1) / s->team;
}

/* Whether the thread has vector t of its rows; empty: every thread has it. */
static ptx_val has_vector(ptx_builder *b, const gemv *g, unsigned t)
{
    const gemv_shape *s = &g->shape;
    return (t + 1) * s->team <= s->vectors ? (ptx_val){0}
                                           : ptx_setp(b, PTX_LT, g->thread, (int)(s->vectors - t * s->team));
}

/* Nibbles of each byte change places. */
static ptx_val swap_nibbles(ptx_builder *b, ptx_val x)
{
    ptx_val low = ptx_shr(b, x, 4), high = ptx_shl(b, x, 4);
    return ptx_lop3(b, low, high, ptx_u32(b, 0x0F0F0F0F),
                    (PTX_LOP_A & PTX_LOP_C) | (PTX_LOP_B & (~PTX_LOP_C & 0xFF)));
}

/* A stretch of every row whose vectors all lie among the codes. */
static void copy_vectors(ptx_builder *b, const gemv *g, const ptx_val *from)
{
    const gemv_shape *s = &g->shape;
    enum { VECTORS_MAX = 16 };
    ptx_val words[GEMV_OUTPUTS_MAX][VECTORS_MAX][4];
    for (unsigned i = 0; i < s->outputs; i++)
        for (unsigned t = 0; t < vectors_of_thread(s); t++) {
            ptx_val has = has_vector(b, g, t);
            for (unsigned w = 0; w < 4; w++)
                words[i][t][w] = ptx_var(b, ptx_u32(b, 0));
            if (has.kind != PTX_NOTHING)
                ptx_when(b, has);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, from[i], (int)(t * s->team * LOAD_BYTES),
                            words[i][t], 4);
        }
    for (unsigned i = 0; i < s->outputs; i++)
        for (unsigned t = 0; t < vectors_of_thread(s); t++) {
            ptx_val has = has_vector(b, g, t);
            for (unsigned w = 0; w < 4 && nibbles_are_swapped(g); w++)
                words[i][t][w] = swap_nibbles(b, words[i][t][w]);
            if (has.kind != PTX_NOTHING)
                ptx_when(b, has);
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, g->ragged.to[i], (int)(t * s->team * LOAD_BYTES),
                       words[i][t], 4);
        }
}

/* The same byte by byte; those that are no codes count as 0. */
static void copy_bytes(ptx_builder *b, const gemv *g, ptx_val from, ptx_val to)
{
    const gemv_shape *s = &g->shape;
    const int step = (int)(s->team * LOAD_BYTES);
    ptx_val first = ptx_mul(b, g->thread, LOAD_BYTES);
    ptx_val vector = ptx_for(b, first, (int)(s->vectors * LOAD_BYTES), step);
    ptx_val more = ptx_sub(b, vector, first), byte = ptx_for(b, ptx_u32(b, 0), LOAD_BYTES, 1);
    ptx_val at = ptx_add(b, more, byte), address = ptx_add(b, from, ptx_cvt(b, PTX_U64, at));
    ptx_val is_code =
        ptx_setp_and(b, PTX_GE, address, g->ragged.first, ptx_setp(b, PTX_LT, address, g->ragged.end));
    ptx_val value = ptx_ld_if(b, is_code, PTX_GLOBAL, PTX_NC, PTX_U8, address, 0, ptx_u32(b, 0));
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U8, ptx_add(b, to, at), 0,
              nibbles_are_swapped(g) ? swap_nibbles(b, value) : value);
    ptx_end_for(b);
    ptx_end_for(b);
}

/* The next stretch of all rows, once the warp is done with the one before. */
static void copy_stretch(ptx_builder *b, const gemv *g)
{
    const gemv_shape *s = &g->shape;
    const unsigned bytes = vectors_of_thread(s) * s->team * LOAD_BYTES;
    ptx_val from[GEMV_OUTPUTS_MAX], whole = {0};
    for (unsigned i = 0; i < s->outputs; i++) {
        from[i] = ptx_add(b, g->ragged.from[i], g->ragged.before);
        ptx_val begins = ptx_setp(b, PTX_GE, from[i], g->ragged.first);
        whole = i ? ptx_and(b, whole, begins) : begins;
        whole = ptx_setp_and(b, PTX_LE, ptx_add(b, from[i], ptx_u64(b, bytes)), g->ragged.end, whole);
    }
    ptx_syncwarp(b);
    ptx_if(b, whole);
    copy_vectors(b, g, from);
    ptx_else(b);
    for (unsigned i = 0; i < s->outputs; i++)
        copy_bytes(b, g, from[i], g->ragged.to[i]);
    ptx_end_if(b);
    ptx_syncwarp(b);
    ptx_assign(b, g->ragged.before, ptx_add(b, g->ragged.before, ptx_u64(b, s->turn * round_bytes(g))));
}

/* ---- Picking ---- */

/* The codes of an output in the round that is `more` (u32) and `offset` bytes behind the stretch's first. */
static void pick_words(ptx_builder *b, const gemv *g, unsigned i, ptx_val more, unsigned offset,
                       ptx_val *words)
{
    ptx_val at = more.kind == PTX_NOTHING ? g->ragged.words[i] : ptx_add(b, g->ragged.words[i], more);
    ptx_val next = ptx_ld_shared(b, PTX_U32, at, (int)offset);
    for (unsigned w = 0; w < g->shape.words; w++) {
        words[w] = next;
        if (words_are_whole(g) && w + 1 == g->shape.words)
            return;
        next = ptx_ld_shared(b, PTX_U32, at, (int)(offset + 4 * w + 4));
        if (!words_are_whole(g))
            words[w] = ptx_shf_r(b, words[w], next, g->ragged.shift[i]);
    }
}

static void whole_round(ptx_builder *b, const gemv *g, const gemv_reading *r, ptx_val more, unsigned round)
{
    gemv_words words;
    for (unsigned i = 0; i < g->shape.outputs; i++)
        pick_words(b, g, i, more, round * round_bytes(g), words[i]);
    gemv_compute_round(b, g, r, round, words);
}

/* ---- A tile ---- */

/* Up to a turn of rounds from k (u32) on, `rest` (s32) being the k of the tile from there on: one by one. */
static void few_rounds(ptx_builder *b, const gemv *g, const gemv_reading *r, ptx_val k, ptx_val rest,
                       bool slow)
{
    const gemv_shape *s = &g->shape;
    copy_stretch(b, g);
    ptx_val end = ptx_min(b, rest, (int)(s->turn * ROUND));
    ptx_val j = ptx_for(b, ptx_s32(b, 0), end, ROUND), done = ptx_as(b, PTX_U32, j);
    ptx_val more = ptx_mul(b, done, (int)(bits_of(g)));
    more = ptx_shr(b, more, 3);
    if (!slow) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_GE, ptx_sub(b, rest, j), ROUND));
        whole_round(b, g, r, more, 0);
        ptx_else(b);
    }
    ptx_val mine = ptx_mad(b, g->thread, (int)gemv_unit(s), ptx_add(b, k, done));
    for (unsigned i = 0; i < s->outputs; i++) {
        ptx_val words[GEMV_WORDS_MAX];
        pick_words(b, g, i, more, 0, words);
        gemv_compute_carefully(b, g, r, i, mine, words, slow);
    }
    if (!slow)
        ptx_end_if(b);
    gemv_reading_advance(b, g, r, 1);
    ptx_end_for(b);
}

static void slow_tile(ptx_builder *b, const gemv *g, const gemv_reading *r, ptx_val k, ptx_val size)
{
    ptx_val j = ptx_for(b, ptx_u32(b, 0), size, (int)(g->shape.turn * ROUND));
    few_rounds(b, g, r, ptx_add(b, k, j), ptx_as(b, PTX_S32, ptx_sub(b, size, j)), true);
    ptx_end_for(b);
}

void gemv_ragged_tile(ptx_builder *b, const gemv *g, ptx_val k, bool slow)
{
    const gemv_shape *s = &g->shape;
    const unsigned of_turn = s->turn * ROUND;
    gemv_reading r = gemv_reading_begin(b, g);
    ptx_val size = ptx_min(b, ptx_sub(b, g->k, k), (int)s->tile);
    if (slow) {
        slow_tile(b, g, &r, k, size);
        return;
    }
    ptx_val rest = ptx_and(b, size, (int)of_turn - 1), whole = ptx_sub(b, size, rest);
    ptx_uniform(b);
    ptx_for(b, ptx_u32(b, 0), whole, (int)of_turn);
    copy_stretch(b, g);
    for (unsigned i = 0; i < s->turn; i++)
        whole_round(b, g, &r, (ptx_val){0}, i);
    gemv_reading_advance(b, g, &r, s->turn);
    ptx_end_for(b);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_NE, rest, 0));
    few_rounds(b, g, &r, ptx_add(b, k, whole), ptx_as(b, PTX_S32, rest), false);
    ptx_end_if(b);
}
