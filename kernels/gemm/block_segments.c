/* Blocks of any number of bytes in a product: a warp copies stretches of its rows to shared memory by vectors, and threads pick
 * their runs from there. */
#include "kernels/gemm/blocks.h"

enum {
    VECTORS_MAX = 16,
    SECTOR_BYTES = 32,
    SHARED_BYTES = 47 << 10,      /* of x and of blocks */
    TABLE_SHARED_BYTES = 35 << 10 /* of blocks beside a table: all of it fits 99 KB */
};

/* Rounds of blocks in shared memory, as many as there is room for up to a limit. They are copied by whole
 * sectors, so what precedes the first in its sector comes along; and a vector more is there, which reads of aligned words
 * may touch. */
typedef struct segment_shape {
    unsigned rounds, of_round; /* rounds, bytes of one */
    unsigned vectors, stride;  /* of an output; bytes */
} segment_shape;

static segment_shape segment_of(const block_layout *layout, const kernel_spec *spec, unsigned outputs)
{
    const unsigned x = blocks_window(layout, spec) * (unsigned)spec->tile_rows * ROUND_BYTES;
    const unsigned room = layout->table ? TABLE_SHARED_BYTES : SHARED_BYTES - x;
    const unsigned teams = blocks_warps(layout) * WARP / TEAM;
    segment_shape s = {.rounds = 16, .of_round = ROUND / layout->elements * layout->bytes};
    do {
        s.rounds /= 2;
        const unsigned bytes = s.rounds * s.of_round, step = bytes & -bytes;
        const unsigned before = step < SECTOR_BYTES ? SECTOR_BYTES - step : 0;
        s.vectors = (bytes + before + LOAD_BYTES - 1) / LOAD_BYTES;
        s.stride = (s.vectors + 1) * LOAD_BYTES;
    } while (s.rounds > 1 && s.stride * outputs * teams > room);
    return s;
}

/* A warp copies segments of its rows; a thread those of its own team's. */
typedef struct segments {
    segment_shape shape;
    ptx_val row_bytes;                         /* u64 */
    ptx_val from[BLOCKS_OUTPUTS_MAX];          /* addresses of this thread's first vector in a row */
    ptx_val to[BLOCKS_OUTPUTS_MAX];            /* u32: where it goes */
    block_place places[BLOCKS_OUTPUTS_MAX][2]; /* this thread's runs of the first round of a segment */
    ptx_val words_at
        [BLOCKS_OUTPUTS_MAX]; /* u32: of formats whose runs are put together of aligned words, their address */
    ptx_val turn;             /* and the selector that puts them together */
    ptx_val last[BLOCKS_OUTPUTS_MAX]
                [4]; /* variables u32: the last vector of threads that have one more than others */
} segments;

/* Runs of a block that begin anywhere: the alignment of a thread's block is the same in all rounds. */
static bool is_turned(const block_layout *layout)
{
    return layout->elements < ROUND && layout->bytes % 4 &&
           ROUND / layout->elements * layout->bytes % 4 == 0 &&
           (layout->codes == &codes_nibbles || layout->codes == &codes_bytes);
}

static segments segments_begin(ptx_builder *b, blocks *s)
{
    const block_layout *layout = s->share.layout;
    segments g = {.shape = segment_of(layout, s->spec, s->outputs)};
    ptx_val shared = blocks_shared(b, s, "blocks", s->teams * s->outputs * g.shape.stride);
    ptx_val piece = ptx_shl(b, s->thread, 4), zero[4];
    for (unsigned k = 0; k < 4; k++)
        zero[k] = ptx_u32(b, 0);
    g.row_bytes = ptx_mul(b, ptx_shr(b, s->args.k, ceil_log2(layout->elements)), ptx_u64(b, layout->bytes));
    for (unsigned o = 0; o < s->outputs; o++) {
        ptx_val first =
            ptx_add(b, ptx_mad(b, s->team, s->outputs * g.shape.stride, shared), o * g.shape.stride);
        ptx_val block;
        for (unsigned k = 0; k < 4; k++)
            g.last[o][k] = ptx_var(b, ptx_u32(b, 0));
        g.from[o] = ptx_at(b, s->rows_at[o], piece, 1);
        g.to[o] = ptx_add(b, first, piece);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, first, (int)(g.shape.stride - LOAD_BYTES), zero, 4);
        for (unsigned i = 0; i < s->share.runs; i++) {
            block_place *place = &g.places[o][i];
            *place = block_share_place(b, &s->share, s->thread, i, &block);
            place->space = PTX_SHARED;
            place->block = ptx_mad(b, block, layout->bytes, first);
        }
        if (is_turned(layout)) {
            ptx_val at = ptx_add(b, g.places[o][0].block, layout->at.codes);
            g.words_at[o] = ptx_and(b, at, ptx_u32(b, ~3u));
            g.turn = ptx_mad(b, ptx_and(b, at, 3), 0x1111, ptx_u32(b, 0x3210));
        }
    }
    return g;
}

/* Vectors that a thread copies; whether it has number t. */
static unsigned vector_count(const segments *g)
{
    return (g->shape.vectors + TEAM - 1) / TEAM;
}

static ptx_val has_vector(ptx_builder *b, const blocks *s, const segments *g, unsigned t)
{
    return ptx_setp(b, PTX_LT, s->thread, (int)(g->shape.vectors - t * TEAM));
}

/* Vector t of a thread, into these variables where some threads do not have it. */
static void load_vector(ptx_builder *b, const blocks *s, const segments *g, unsigned t, ptx_val at,
                        const ptx_val *last, ptx_val *words)
{
    const int offset = (int)(t * TEAM * LOAD_BYTES);
    if ((t + 1) * TEAM <= g->shape.vectors) {
        ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, at, offset, words, 4);
        return;
    }
    for (unsigned k = 0; k < 4; k++)
        words[k] = last[k];
    ptx_when(b, has_vector(b, s, g, t));
    ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, at, offset, words, 4);
}

/* The same where a row ends; `left` (s64): its bytes from the thread's first vector on. What does not exist is 0. */
static void load_vector_if(ptx_builder *b, unsigned t, ptx_val at, ptx_val left, ptx_val *words)
{
    const unsigned offset = t * TEAM * LOAD_BYTES;
    for (unsigned k = 0; k < 4; k++)
        words[k] = ptx_var(b, ptx_u32(b, 0));
    ptx_when(b, ptx_setp(b, PTX_GT, left, ptx_s64(b, offset)));
    ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, at, (int)offset, words, 4);
}

static void store_vector(ptx_builder *b, const blocks *s, const segments *g, unsigned t, ptx_val to,
                         const ptx_val *words)
{
    if ((t + 1) * TEAM > g->shape.vectors)
        ptx_when(b, has_vector(b, s, g, t));
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(t * TEAM * LOAD_BYTES), words, 4);
}

/* The vectors of all outputs that begin at `more` (u64) bytes of their rows; `left` is empty where all exist. */
static void copy_vectors(ptx_builder *b, const blocks *s, const segments *g, ptx_val more, ptx_val left)
{
    ptx_val words[BLOCKS_OUTPUTS_MAX][VECTORS_MAX][4];
    for (unsigned o = 0; o < s->outputs; o++) {
        ptx_val at = ptx_add(b, g->from[o], more);
        for (unsigned t = 0; t < vector_count(g); t++)
            if (left.kind == PTX_NOTHING)
                load_vector(b, s, g, t, at, g->last[o], words[o][t]);
            else
                load_vector_if(b, t, at, left, words[o][t]);
    }
    ptx_syncwarp(b);
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned t = 0; t < vector_count(g); t++)
            store_vector(b, s, g, t, g->to[o], words[o][t]);
}

/* The segment from round `first` (u32) on, once all threads of the warp are done with the one before. */
static void segment_load(ptx_builder *b, const blocks *s, const segments *g, ptx_val first)
{
    ptx_val more = ptx_mul_wide(b, first, ptx_u32(b, g->shape.of_round));
    more = ptx_and(b, more, ptx_u64(b, ~(uint64_t)(SECTOR_BYTES - 1)));
    ptx_val end = ptx_add(b, more, ptx_u64(b, g->shape.vectors * LOAD_BYTES));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LE, end, g->row_bytes));
    copy_vectors(b, s, g, more, (ptx_val){0});
    ptx_else(b);
    ptx_val mine = ptx_add(b, more, ptx_cvt(b, PTX_U64, ptx_shl(b, s->thread, 4)));
    copy_vectors(b, s, g, more, ptx_as(b, PTX_S64, ptx_sub(b, g->row_bytes, mine)));
    ptx_end_if(b);
    ptx_syncwarp(b);
}

/* Rounds in each turn of a loop. With two and more, it is known which blocks of 4 n + 2 bytes begin at a multiple of 4. */
static unsigned turn_of(const blocks *s, const segments *g)
{
    unsigned turn = s->rows > 1 ? 2 : s->share.fast == BLOCK_BY_TABLE ? 8 : 4;
    while (turn > s->window || turn > g->shape.rounds)
        turn /= 2;
    return turn;
}

/* Words that begin anywhere, of aligned ones. */
static void turned_words(ptx_builder *b, const segments *g, ptx_val at, int offset, unsigned count,
                         ptx_val *words)
{
    ptx_val next = ptx_ld_shared(b, PTX_U32, at, offset);
    for (unsigned i = 0; i < count; i++) {
        ptx_val low = next;
        next = ptx_ld_shared(b, PTX_U32, at, offset + (int)(4 * i) + 4);
        words[i] = ptx_prmt(b, low, next, g->turn);
    }
}

/* Round `number` of the segment at `more` (u32, bytes; empty: 0) in it; numbers are even or odd as those in the segment. */
static void segment_round(ptx_builder *b, const blocks *s, const segments *g, ptx_val more, unsigned number,
                          ptx_val x_at, int x_more)
{
    const block_layout *layout = s->share.layout;
    const unsigned of_round = g->shape.of_round, offset = number * of_round;
    block_values values[BLOCKS_OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round round;
        for (unsigned i = 0; i < s->share.runs; i++) {
            block_place place = g->places[o][i];
            place.block = ptx_add(b, place.block, more);
            if (offset)
                place.block = ptx_add(b, place.block, offset);
            place.align = block_align(layout);
            if (of_round % 4 == 2 && turn_of(s, g) > 1) {
                place.skewed = number % 2;
                place.align = number % 2 ? 2 : 4;
            }
            if (!is_turned(layout)) {
                block_fetch(b, layout, &place, &round.runs[i]);
                continue;
            }
            round.runs[i] = (block_run){.place = place};
            turned_words(b, g, ptx_add(b, g->words_at[o], more), (int)(offset + i * s->share.bytes),
                         s->share.bytes / 4, round.runs[i].codes);
            layout->scales->fetch(b, layout, &round.runs[i]);
        }
        block_values_open(b, &s->reader, &round, s->share.fast, &values[o]);
    }
    blocks_add_round(b, s, values, x_at, x_more);
}

/* Where a round begins in its segment: rounds before it, and what lies before the first in its vector. */
static ptx_val bytes_before(ptx_builder *b, const segments *g, ptx_val round)
{
    const int mask = (int)g->shape.rounds - 1;
    ptx_val inside = ptx_mul(b, ptx_and(b, round, mask), g->shape.of_round);
    if (g->shape.rounds * g->shape.of_round % SECTOR_BYTES == 0)
        return inside;
    ptx_val before = ptx_mul(b, ptx_and(b, round, ptx_u32(b, ~(uint32_t)mask)), g->shape.of_round);
    return ptx_add(b, inside, ptx_and(b, before, SECTOR_BYTES - 1));
}

/* Rounds from r on, as many as are in a turn of a loop. From `end` on, the second half of them is left out, and others add
 * nothing: x and blocks are 0 there. */
static void segment_turn(ptx_builder *b, const blocks *s, const segments *g, ptx_val r, ptx_val end,
                         unsigned turn, ptx_val more, ptx_val x_at)
{
    for (unsigned i = 0; i < turn; i++) {
        if (i && i == turn / 2) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, r, i), end));
        }
        segment_round(b, s, g, more, i, x_at, (int)(i * s->x.round_bytes));
    }
    if (turn > 1)
        ptx_end_if(b);
    ptx_assign(b, x_at, ptx_add(b, x_at, turn * s->x.round_bytes));
}

/* Rounds [from, end) (u32), which lie in the segment; two in each turn of the loop. */
static void segment_rounds(ptx_builder *b, const blocks *s, const segments *g, ptx_val from, ptx_val end,
                           ptx_val x_at)
{
    const unsigned turn = turn_of(s, g);
    ptx_val more = bytes_before(b, g, from);
    if (turn == g->shape.rounds) {
        const bool is_whole = turn * g->shape.of_round % SECTOR_BYTES == 0;
        segment_turn(b, s, g, from, end, turn, is_whole ? ptx_u32(b, 0) : more, x_at);
        return;
    }
    more = ptx_var(b, more);
    ptx_val r = ptx_for(b, from, end, turn);
    segment_turn(b, s, g, r, end, turn, more, x_at);
    ptx_assign(b, more, ptx_add(b, more, turn * g->shape.of_round));
    ptx_end_for(b);
}

static void segment_window(ptx_builder *b, const blocks *s, void *user, ptx_val first, ptx_val end)
{
    const segments *g = user;
    const unsigned rounds = g->shape.rounds;
    ptx_val x_at = ptx_var(b, s->x_mine);
    if (rounds > s->window) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_EQ, ptx_and(b, first, (int)rounds - 1), 0));
        segment_load(b, s, g, first);
        ptx_end_if(b);
        segment_rounds(b, s, g, first, end, x_at);
        return;
    }
    ptx_val from = ptx_for(b, first, end, rounds);
    segment_load(b, s, g, from);
    segment_rounds(b, s, g, from, ptx_min(b, ptx_add(b, from, rounds), end), x_at);
    ptx_end_for(b);
}

/* Whether rows can be copied by vectors. */
static ptx_val rows_are_aligned(ptx_builder *b, const blocks *s, const segments *g)
{
    return emit_aligned(b, ptx_or(b, s->args.all.operand[QDNN_OPERAND_CODES], g->row_bytes), LOAD_BYTES);
}

void blocks_segments_pass(ptx_builder *b, blocks *s)
{
    segments g = segments_begin(b, s);
    ptx_uniform(b);
    ptx_if(b, rows_are_aligned(b, s, &g));
    blocks_pass(b, s, s->share.fast, segment_window, &g);
}
