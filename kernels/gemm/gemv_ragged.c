/* Rows of codes that begin anywhere, at any bit: because a row is not a multiple of 16 bytes, or because
 * codes have 3, 5 or 6 bits. The threads of a team copy stretches of their rows (stretches.h) to shared
 * memory, by whole sectors, and pick their words from there; a funnel shift puts codes where the decoders
 * expect them. No warp waits for another. */
#include "kernels/gemm/gemv.h"

enum { BITS_OF_WORD = 32 };

static unsigned bits_of(const gemv *g)
{
    return g->w.coding.format->facts.bits;
}

static unsigned round_bytes(const gemv *g)
{
    return ROUND / 8 * bits_of(g);
}

/* Whether the codes of every thread begin at a word boundary, in any row. */
static bool words_are_whole(const gemv *g)
{
    const unsigned of_unit = gemv_unit(&g->shape) * bits_of(g);
    return bits_of(g) == BITS_OF_WORD ||
           (g->spec->stored.layout == QDNN_LAYOUT_WORDS_ROWS && of_unit % BITS_OF_WORD == 0);
}

/* ---- Where rows lie ---- */

/* Bits from row to row. */
static ptx_val row_bits(ptx_builder *b, const gemv *g)
{
    const bool in_words =
        !format_is_plain(g->w.coding.format) && g->spec->stored.layout == QDNN_LAYOUT_WORDS_ROWS;
    return in_words ? ptx_shl(b, g->w.matrix.row_words, 5) : ptx_mul(b, g->args.k, ptx_u64(b, bits_of(g)));
}

static void begin_row(ptx_builder *b, gemv *g, unsigned i, ptx_val bits, ptx_val shared)
{
    const gemv_shape *s = &g->shape;
    ptx_val bit = ptx_mul(b, ptx_cvt(b, PTX_U64, g->rows[i]), bits);
    ptx_val address = ptx_add(b, g->w.codes, ptx_shr(b, bit, 3));
    ptx_val output = ptx_add(b, g->output, (int)(i * (s->of_block / s->outputs)));
    ptx_val copy = ptx_mad(b, output, (int)s->pitch, shared);
    ptx_val before = stretches_begin(b, &g->ragged.rows, i, address, copy);
    ptx_val inside = ptx_add(b, ptx_shl(b, before, 3), ptx_and(b, ptx_cvt(b, PTX_U32, bit), 7));
    inside = ptx_mad(b, g->thread, (int)(gemv_unit(s) * bits_of(g)), inside);
    g->ragged.words[i] = ptx_mad(b, ptx_shr(b, inside, 5), 4, copy);
    g->ragged.shift[i] = ptx_and(b, inside, BITS_OF_WORD - 1);
}

void gemv_begin_ragged(ptx_builder *b, gemv *g)
{
    const gemv_shape *s = &g->shape;
    ptx_val shared = ptx_shared(b, "stretches", PTX_U32, s->of_block * s->pitch / 4, LOAD_BYTES);
    ptx_val bits = row_bits(b, g), all = ptx_mul(b, g->args.outputs, bits);
    g->ragged.rows = (stretches){.outputs = s->outputs,
                                 .team = s->team,
                                 .vectors = s->vectors,
                                 .align = SECTOR_BYTES,
                                 .swaps_nibbles = nibbles_are_swapped(&g->w.coding),
                                 .thread = g->thread,
                                 .first = g->w.codes};
    g->ragged.rows.end = ptx_add(b, g->w.codes, ptx_shr(b, ptx_add(b, all, ptx_u64(b, 7)), 3));
    g->ragged.before = ptx_var(b, ptx_u64(b, 0));
    for (unsigned i = 0; i < s->outputs; i++)
        begin_row(b, g, i, bits, shared);
}

/* `needed`: as in stretches_copy. */
static void copy_next(ptx_builder *b, const gemv *g, ptx_val needed)
{
    stretches_copy(b, &g->ragged.rows, g->ragged.before, needed);
    ptx_assign(b, g->ragged.before, ptx_add(b, g->ragged.before, ptx_u64(b, g->shape.turn * round_bytes(g))));
}

/* ---- Picking ---- */

/* The codes of output i in the round that begins `more` (u32) + `offset` bytes after the stretch's first. */
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

/* One of few rounds, `done` (u32) k after `k` (u32); K may end in it. */
typedef struct few_round {
    ptx_val k, done;
    ptx_val more; /* u32: as in pick_words */
} few_round;

static void careful_round(ptx_builder *b, const gemv *g, const gemv_reading *r, const few_round *f, bool slow)
{
    ptx_val first = ptx_mad(b, g->thread, (int)gemv_unit(&g->shape), ptx_add(b, f->k, f->done));
    gemv_tail tail = gemv_tail_begin(b, g, first);
    for (unsigned i = 0; i < g->shape.outputs; i++) {
        ptx_val words[GEMV_WORDS_MAX];
        pick_words(b, g, i, f->more, 0, words);
        gemv_compute_carefully(b, g, r, i, &tail, words, slow);
    }
}

/* By the usual codec; x beyond K is 0. `rest` (s32): how many k of the tile are left from `k` on. */
static void usual_round(ptx_builder *b, const gemv *g, const gemv_reading *r, const few_round *f,
                        ptx_val rest)
{
    if (g->codec->is_finite) {
        whole_round(b, g, r, f->more, 0);
        return;
    }
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GE, ptx_sub(b, rest, ptx_as(b, PTX_S32, f->done)), ROUND));
    whole_round(b, g, r, f->more, 0);
    ptx_else(b);
    careful_round(b, g, r, f, false);
    ptx_end_if(b);
}

/* ---- A tile ---- */

/* Up to a turn of rounds from k (u32) on, one by one; `rest` (s32): how many k of the tile are left. */
static void few_rounds(ptx_builder *b, const gemv *g, const gemv_reading *r, ptx_val k, ptx_val rest,
                       bool slow)
{
    const gemv_shape *s = &g->shape;
    ptx_val end = ptx_min(b, rest, (int)(s->turn * ROUND));
    ptx_val bytes = ptx_shr(b, ptx_mul(b, ptx_as(b, PTX_U32, end), (int)bits_of(g)), 3);
    copy_next(b, g, ptx_add(b, bytes, 2 * SECTOR_BYTES)); /* whole sectors: more at both ends */
    few_round f = {.k = k, .done = ptx_as(b, PTX_U32, ptx_for(b, ptx_s32(b, 0), end, ROUND))};
    f.more = ptx_shr(b, ptx_mul(b, f.done, (int)bits_of(g)), 3);
    if (slow)
        careful_round(b, g, r, &f, true);
    else
        usual_round(b, g, r, &f, rest);
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
    copy_next(b, g, (ptx_val){0});
    for (unsigned i = 0; i < s->turn; i++)
        whole_round(b, g, &r, (ptx_val){0}, i);
    gemv_reading_advance(b, g, &r, s->turn);
    ptx_end_for(b);
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_NE, rest, 0));
    few_rounds(b, g, &r, ptx_add(b, k, whole), ptx_as(b, PTX_S32, rest), false);
    ptx_end_if(b);
}
