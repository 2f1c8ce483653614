/* Blocks of any number of bytes: a warp copies segments of its rows to shared memory by vectors, and
 * threads pick their runs from there. */
#include "kernels/gemm/block_segments.h"

#include <assert.h>

enum {
    ROUNDS_MAX = 8,
    VECTORS_MAX = 19, /* of a thread: of eight rounds of Q8_K, the longest blocks */
    SECTOR_BYTES = 32,
    BANKS_BYTES = 128,            /* all banks of shared memory */
    SHARED_BYTES = 47 << 10,      /* for x and blocks */
    SHARED_BYTES_MAX = 64 << 10,  /* the same in larger thread blocks: available on every target */
    TABLE_SHARED_BYTES = 35 << 10 /* for blocks next to a table: together they fit 99 KB */
};

/* The smallest number >= x that is `rest` modulo BANKS_BYTES. */
static unsigned round_up_to_remainder(unsigned x, unsigned rest)
{
    return x + ((rest - x) & (BANKS_BYTES - 1));
}

/* The shape for a given number of rounds; segment_of takes as many rounds as there is room for. */
static segment_shape segment_with(const block_layout *layout, unsigned outputs, unsigned rounds, bool ragged)
{
    const block_banks banks = layout->banks;
    segment_shape s = {
        .rounds = rounds, .of_round = ROUND / layout->elements * layout->bytes, .pitch = TEAM * LOAD_BYTES};
    const unsigned bytes = s.rounds * s.of_round, step = bytes & -bytes;
    const unsigned before =
        (step < SECTOR_BYTES ? SECTOR_BYTES - step : 0) + (ragged ? SECTOR_BYTES - block_align(layout) : 0);
    s.vectors = (bytes + before + LOAD_BYTES - 1) / LOAD_BYTES;
    s.stride = s.vectors * LOAD_BYTES;
    s.second = round_up_to_remainder(s.stride * outputs, banks.second);
    s.pair = round_up_to_remainder(s.second + s.stride * outputs, banks.pair);
    return s;
}

static segment_shape segment_of(const block_layout *layout, const kernel_spec *spec, unsigned outputs)
{
    const unsigned x = blocks_window(layout, spec) * (unsigned)spec->product.tile_rows * ROUND_BYTES;
    const unsigned warps = blocks_warps(layout, spec), teams = warps * WARP / TEAM;
    const unsigned room =
        layout->table ? TABLE_SHARED_BYTES
                      : (warps > 4 ? SHARED_BYTES_MAX : SHARED_BYTES) - x - block_codebook_bytes(layout);
    const bool ragged = gemm_is_ragged(spec);
    segment_shape s = segment_with(layout, outputs, ROUNDS_MAX, ragged);
    while (s.rounds > 1 && s.pair * teams / 2 > room)
        s = segment_with(layout, outputs, s.rounds / 2, ragged);
    return s;
}

unsigned blocks_segments_bytes(const block_layout *layout, const kernel_spec *spec, unsigned outputs)
{
    return blocks_warps(layout, spec) * WARP / TEAM / 2 * segment_of(layout, spec, outputs).pair;
}

/* The shape between the entries of a table: runs of 128 bytes, with the vectors of a row in order. */
static segment_shape segment_between_of(const block_layout *layout, unsigned outputs)
{
    segment_shape s = segment_with(layout, outputs, BETWEEN_ROUNDS, false);
    s.pitch = BYTE_TABLE_PITCH;
    s.stride = (s.vectors + TEAM - 1) / TEAM * BYTE_TABLE_PITCH;
    s.second = s.stride * outputs;
    s.pair = 2 * s.second;
    return s;
}

/* Between the entries, bytes are rotated within their run, by the distance that separates the teams
 * elsewhere. */
ptx_val segment_between(ptx_builder *b, const blocks *s, ptx_val at)
{
    const block_banks banks = s->share.layout->banks_between;
    ptx_val turned = ptx_mad(b, ptx_and(b, s->team, 1), banks.second, at);
    turned = ptx_mad(b, ptx_and(b, ptx_shr(b, s->team, 1), 1), banks.pair, turned);
    ptx_val run = ptx_shr(b, at, ceil_log2(BYTE_TABLE_RUN));
    return ptx_mad(b, run, BYTE_TABLE_PITCH, ptx_and(b, turned, BYTE_TABLE_RUN - 1));
}

/* Whether vectors go to places where only their halves are aligned. */
static bool has_halves(const blocks *s)
{
    const block_layout *layout = s->share.layout;
    return (s->between ? layout->banks_between : layout->banks).second % LOAD_BYTES != 0;
}

/* Rounds per turn of the loop. With several, the misalignment of blocks of 4 n + 2 bytes is known when the
 * kernel is emitted. Rows that begin anywhere are often short, and their misalignment is not known. */
static unsigned turn_of(const blocks *s, unsigned rounds)
{
    unsigned turn = s->ragged ? 1 : s->rows > 1 ? 2 : s->share.fast == BLOCK_BY_TABLE ? 8 : 4;
    while (turn > s->window || turn > rounds)
        turn /= 2;
    return turn;
}

/* Segments lie after x, between the entries of the table; or in memory of their own. */
static ptx_val segments_place(ptx_builder *b, blocks *s, const segment_shape *shape)
{
    if (!s->between)
        return blocks_shared(b, s, "blocks", s->teams / 2 * shape->pair);
    return ptx_add(b, s->x.shared, s->window * s->rows * s->x.round_bytes);
}

static segments segments_begin(ptx_builder *b, blocks *s)
{
    const block_layout *layout = s->share.layout;
    segments g = {.shape = s->between ? segment_between_of(layout, s->outputs)
                                      : segment_of(layout, s->spec, s->outputs)};
    ptx_val shared = segments_place(b, s, &g.shape), piece = ptx_shl(b, s->thread, 4);
    g.shape.turn = turn_of(s, g.shape.rounds);
    g.row_bytes = ptx_mul(b, ptx_shr(b, s->args.k, ceil_log2(layout->elements)), ptx_u64(b, layout->bytes));
    ptx_val rows = ptx_mad(b, ptx_shr(b, s->team, 1), g.shape.pair, shared);
    rows = ptx_mad(b, ptx_and(b, s->team, 1), g.shape.second, rows);
    for (unsigned o = 0; o < s->outputs; o++) {
        for (unsigned k = 0; k < 4; k++)
            g.last[o][k] = ptx_var_of(b, PTX_U32);
        g.rows[o] = ptx_add(b, rows, o * g.shape.stride);
        g.start[o] = s->rows_at[o];
        if (s->ragged) {
            ptx_val before = ptx_and(b, ptx_sub(b, s->rows_at[o], s->stack), ptx_u64(b, SECTOR_BYTES - 1));
            g.start[o] = ptx_sub(b, s->rows_at[o], before);
            g.before[o] = ptx_cvt(b, PTX_U32, before);
        }
        g.from[o] = ptx_at(b, g.start[o], piece, 1);
        for (unsigned half = 0; half < 2; half++) {
            ptx_val at = ptx_add(b, piece, half * LOAD_BYTES / 2);
            g.to[o][half] = ptx_add(b, g.rows[o], s->between ? segment_between(b, s, at) : at);
        }
    }
    segment_begin_fetch(b, s, &g);
    return g;
}

/* How many vectors a thread copies at most; and whether it has number t. */
static unsigned vector_count(const segments *g)
{
    return (g->shape.vectors + TEAM - 1) / TEAM;
}

static ptx_val has_vector(ptx_builder *b, const blocks *s, const segments *g, unsigned t)
{
    return ptx_setp(b, PTX_LT, s->thread, (int)(g->shape.vectors - t * TEAM));
}

/* Loads vector t of a thread; if only some threads have it, into the variables `last`. */
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

/* The same where a row ends; `left` (s64): bytes from the thread's first vector to the end. Vectors that
 * do not exist, or not as a whole, are 0. */
static void load_vector_if(ptx_builder *b, unsigned t, ptx_val at, ptx_val left, ptx_val *words)
{
    const unsigned offset = t * TEAM * LOAD_BYTES;
    for (unsigned k = 0; k < 4; k++)
        words[k] = ptx_var(b, ptx_u32(b, 0));
    ptx_when(b, ptx_setp(b, PTX_GE, left, ptx_s64(b, offset + LOAD_BYTES)));
    ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, at, (int)offset, words, 4);
}

static void store_vector(ptx_builder *b, const blocks *s, const segments *g, unsigned t, const ptx_val to[2],
                         const ptx_val *words)
{
    const unsigned count = has_halves(s) ? 2 : 4;
    for (unsigned i = 0; i < 4; i += count) {
        if ((t + 1) * TEAM > g->shape.vectors)
            ptx_when(b, has_vector(b, s, g, t));
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to[i / 2], (int)(t * g->shape.pitch), &words[i],
                   (int)count);
    }
}

/* How many bytes (u64) the sectors of a row have from byte `more` (u64) to the row's end. */
static ptx_val bytes_left(ptx_builder *b, const segments *g, unsigned o, ptx_val more)
{
    ptx_val left = ptx_sub(b, g->row_bytes, more);
    return g->before[o].kind == PTX_NOTHING ? left : ptx_add(b, left, ptx_cvt(b, PTX_U64, g->before[o]));
}

/* Copies the vectors of all outputs, from byte `more` (u64) of their rows on: of whole rows, or where they end. */
static void copy_vectors(ptx_builder *b, const blocks *s, const segments *g, ptx_val more, bool ends)
{
    ptx_val words[BLOCKS_OUTPUTS_MAX][VECTORS_MAX][4];
    assert(vector_count(g) <= VECTORS_MAX);
    for (unsigned o = 0; o < s->outputs; o++) {
        ptx_val at = ptx_add(b, g->from[o], more), left = {0};
        if (ends)
            left = ptx_sub(b, bytes_left(b, g, o, more), ptx_cvt(b, PTX_U64, ptx_shl(b, s->thread, 4)));
        for (unsigned t = 0; t < vector_count(g); t++)
            if (ends)
                load_vector_if(b, t, at, ptx_as(b, PTX_S64, left), words[o][t]);
            else
                load_vector(b, s, g, t, at, g->last[o], words[o][t]);
    }
    ptx_syncwarp(b);
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned t = 0; t < vector_count(g); t++)
            store_vector(b, s, g, t, g->to[o], words[o][t]);
}

/* The last vector of a row that does not fill it, two bytes per thread. */
static void copy_last_bytes(ptx_builder *b, const blocks *s, const segments *g, unsigned o, ptx_val more)
{
    const unsigned step = block_align(s->share.layout) < 2 ? 1 : 2;
    const ptx_type type = step == 1 ? PTX_U8 : PTX_U16;
    ptx_val left = bytes_left(b, g, o, more);
    ptx_if(b, ptx_setp(b, PTX_LT, left, ptx_u64(b, g->shape.stride)));
    ptx_val end = ptx_cvt(b, PTX_U32, left), from = ptx_add(b, g->start[o], more);
    ptx_val at = ptx_mad(b, s->thread, 2, ptx_and(b, end, ptx_u32(b, ~(uint32_t)(LOAD_BYTES - 1))));
    for (unsigned i = 0; i < 2; i += step) {
        ptx_val byte = ptx_add(b, at, i), inside = ptx_setp(b, PTX_LT, byte, end);
        ptx_val value = ptx_ld_if(b, inside, PTX_GLOBAL, PTX_NC, type, ptx_at(b, from, byte, 1), 0,
                                  step == 1 ? ptx_u32(b, 0) : ptx_u16(b, 0));
        ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, type, ptx_add(b, g->rows[o], byte), 0, value);
    }
    ptx_end_if(b);
}

/* Copies the segment from round `first` (u32) on, once all threads of the warp are done with the previous
 * one. */
static void segment_load(ptx_builder *b, const blocks *s, const segments *g, ptx_val first)
{
    ptx_val more = ptx_mul_wide(b, first, ptx_u32(b, g->shape.of_round));
    more = ptx_and(b, more, ptx_u64(b, ~(uint64_t)(SECTOR_BYTES - 1)));
    ptx_val end = ptx_add(b, more, ptx_u64(b, g->shape.vectors * LOAD_BYTES));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LE, end, g->row_bytes));
    copy_vectors(b, s, g, more, false);
    ptx_else(b);
    copy_vectors(b, s, g, more, true);
    if (s->ragged)
        ptx_syncwarp(b);
    for (unsigned o = 0; o < s->outputs && s->ragged; o++)
        copy_last_bytes(b, s, g, o, more);
    ptx_end_if(b);
    ptx_syncwarp(b);
}

/* Adds round `number` of the turn that begins at byte `more` (u32; empty: 0) of the segment. `number` is
 * even or odd as the round's number in the segment is. */
static void segment_round(ptx_builder *b, const blocks *s, const segments *g, ptx_val more, unsigned number,
                          ptx_val x_at, int x_more)
{
    block_values values[BLOCKS_OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round round;
        segment_fetch(b, s, g, o, more, number, &round);
        block_values_open(b, &s->reader, &round, s->share.fast, &values[o]);
    }
    blocks_add_round(b, s, values, x_at, x_more);
}

/* Where a round begins in its segment: after the preceding rounds, and the bytes before the first one in
 * its sector. */
static ptx_val bytes_before(ptx_builder *b, const segments *g, ptx_val round)
{
    const int mask = (int)g->shape.rounds - 1;
    ptx_val inside = ptx_mul(b, ptx_and(b, round, mask), g->shape.of_round);
    if (g->shape.rounds * g->shape.of_round % SECTOR_BYTES == 0)
        return inside;
    ptx_val before = ptx_mul(b, ptx_and(b, round, ptx_u32(b, ~(uint32_t)mask)), g->shape.of_round);
    return ptx_add(b, inside, ptx_and(b, before, SECTOR_BYTES - 1));
}

/* Adds one turn of rounds from r on. Beyond `end`, the second half of the turn is skipped; other rounds
 * there add nothing, as x and blocks are 0. */
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

/* Adds rounds [from, end) (u32), which lie in the segment, one turn at a time. */
static void segment_rounds(ptx_builder *b, const blocks *s, const segments *g, ptx_val from, ptx_val end,
                           ptx_val x_at)
{
    const unsigned turn = g->shape.turn;
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

ptx_val blocks_segments_begin(ptx_builder *b, blocks *s, segments *g)
{
    *g = segments_begin(b, s);
    return emit_aligned(
        b, s->ragged ? s->stack : ptx_or(b, s->args.all.operand[QDNN_OPERAND_CODES], g->row_bytes),
        LOAD_BYTES);
}

void blocks_segments_pass(ptx_builder *b, const blocks *s, segments *g)
{
    blocks_pass(b, s, s->share.fast, segment_window, g);
}
