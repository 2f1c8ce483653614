/* Products with GGUF blocks and a few rows of x: blocks are decoded in registers, each once for all rows. A team of 8 threads
 * sums one output (two of a gated pair), a warp four teams' worth. x is staged in shared memory as f32, a window of
 * rounds at a time, in the order in which threads take it. */
#include "kernels/gemm/block_values.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/lanes.h"
#include "kernels/gemm/window.h"

#include <math.h>
#include <stdio.h>

enum {
    WARPS = 8,
    THREADS = WARPS * WARP,
    TEAMS = THREADS / TEAM,
    ROWS_MAX = 16,
    OUTPUTS_MAX = 4, /* of a team */
    WINDOW = 16,     /* rounds of x in shared memory, times rows of x */
    SLOTS = 2,       /* rounds of weights that are loaded ahead */
    SLOT_WORDS = 12,
    VECTORS_MAX = 16,
    SECTOR_BYTES = 32,
    SHARED_BYTES = 47 << 10 /* of x and of blocks */
};

typedef struct blocks {
    const kernel_spec *spec;
    gemm_args args;
    block_share share;
    codec_state state;
    lane_map map;
    block_reader reader;
    unsigned rows, outputs;       /* of x; of the weights, in each team */
    unsigned window;              /* rounds */
    bool pairs;                   /* accumulators lie in pairs, for fma on f32x2 */
    ptx_val thread, team;         /* u32: number in the team; of the team in the block */
    ptx_val rounds;               /* u32 */
    ptx_val first_row;            /* u64 */
    ptx_val n;                    /* u64: the first column of y */
    ptx_val rows_at[OUTPUTS_MAX]; /* pointers: rows of blocks, of outputs that exist */
    x_window x;
    ptx_val x_mine;                                   /* u32: where this thread's x begins in a round */
    ptx_val sums[ROWS_MAX][OUTPUTS_MAX][TEAM_CHUNKS]; /* variables; of pairs, f32x2 in the first half */
} blocks;

/* ---- Shape ---- */

static bool is_direct(const block_layout *layout)
{
    return layout->bytes % LOAD_BYTES == 0;
}

/* Rounds of x in shared memory. */
static unsigned window_of(const block_layout *layout, const kernel_spec *spec)
{
    unsigned window = is_direct(layout) ? SLOTS : 1; /* a multiple of it: rounds keep their slots */
    while (2 * window * spec->tile_rows <= (is_direct(layout) ? WINDOW : WINDOW / 2))
        window *= 2;
    return window;
}

/* Rounds of blocks in shared memory, as many as there is room for up to a limit. They are copied by whole
 * sectors, so what precedes the first in its sector comes along; and a vector more is there, which reads of aligned words
 * may touch. */
typedef struct segment_shape {
    unsigned rounds, of_round; /* rounds, bytes of one */
    unsigned vectors, stride;  /* of an output; bytes */
} segment_shape;

static segment_shape segment_of(const block_layout *layout, const kernel_spec *spec, unsigned outputs)
{
    const unsigned room = SHARED_BYTES - window_of(layout, spec) * (unsigned)spec->tile_rows * ROUND_BYTES;
    segment_shape s = {.rounds = 16, .of_round = ROUND / layout->elements * layout->bytes};
    do {
        s.rounds /= 2;
        const unsigned bytes = s.rounds * s.of_round, step = bytes & -bytes;
        const unsigned before = step < SECTOR_BYTES ? SECTOR_BYTES - step : 0;
        s.vectors = (bytes + before + LOAD_BYTES - 1) / LOAD_BYTES;
        s.stride = (s.vectors + 1) * LOAD_BYTES;
    } while (s.rounds > 1 && s.stride * outputs * TEAMS > room);
    return s;
}

static unsigned outputs_of_team(const kernel_row *row, const kernel_spec *spec)
{
    const block_layout *layout = block_layout_of(row->format);
    if (is_direct(layout))
        return spec->tile_rows == 1 && !spec->gated && !layout->at.high ? 4 : 2;
    return 2;
}

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    return spec->gated ? TEAMS : TEAMS * outputs_of_team(row, spec);
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    block_share share;
    const block_layout *layout = block_layout_of(row->format);
    if (!layout || !block_share_of(layout, &share)) {
        snprintf(error, error_size, "product blocks takes GGUF blocks other than TQ1_0");
        return false;
    }
    if (spec->tile_rows <= ROWS_MAX)
        return true;
    snprintf(error, error_size, "tile_rows is %llu; product blocks takes 1 to %d",
             (unsigned long long)spec->tile_rows, ROWS_MAX);
    return false;
}

/* ---- x ---- */

/* Bytes, within a round, of element e of the chunk with accumulator `a` of thread j: (a, half, j, e) in vectors of four;
 * of pairs (a % 2, e / 2, j, e % 2, a / 2). */
static unsigned x_offset(const blocks *s, unsigned a, unsigned e)
{
    return s->pairs ? ((a % 2 * 4 + e / 2) * TEAM) * LOAD_BYTES + e % 2 * 8 + a / 2 * 4
                    : ((a * 2 + e / 4) * TEAM) * LOAD_BYTES + e % 4 * 4;
}

/* A thread stages the chunk of thread i % 8, accumulator i / 8 (i its lane in the warp), of the rounds that its warp has. */
static void begin_x(ptx_builder *b, blocks *s)
{
    ptx_val lane = ptx_laneid(b), j = ptx_and(b, lane, TEAM - 1), a = ptx_shr(b, lane, 3);
    s->x = (x_window){.spec = s->spec,
                      .args = &s->args,
                      .rows = s->rows,
                      .rounds = s->window,
                      .warps = WARPS,
                      .round_bytes = ROUND_BYTES,
                      .copies = 1,
                      .shift = X_SHIFT,
                      .shared = ptx_shared(b, "x_window", PTX_F32, s->window * s->rows * ROUND, LOAD_BYTES)};
    for (unsigned e = 0; e < CHUNK; e++)
        s->x.offsets[e] = x_offset(s, 0, e);
    s->x_mine = ptx_add(b, s->x.shared, ptx_shl(b, s->thread, 4));
    ptx_val slot = ptx_add(b, s->x.shared, ptx_shl(b, j, 4)), number = s->pairs ? ptx_and(b, a, 1) : a;
    slot = ptx_add(b, slot, ptx_shl(b, number, ceil_log2(x_offset(s, 1, 0))));
    s->x.slot = s->pairs ? ptx_add(b, slot, ptx_shl(b, ptx_shr(b, a, 1), 2)) : slot;
    s->x.chunk = ptx_cvt(b, PTX_U64, ptx_shl(b, lane_map_lane(b, &s->map, j, a), 3));
    if (s->share.cheap && s->spec->data != QDNN_DATA_F16)
        s->x.largest = ptx_var(b, ptx_f32(b, 0));
}

/* ---- Sums ---- */

static void begin_sums(ptx_builder *b, blocks *s)
{
    for (unsigned m = 0; m < s->rows; m++)
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned a = 0; a < (s->pairs ? TEAM_CHUNKS / 2 : TEAM_CHUNKS); a++)
                s->sums[m][o][a] = ptx_var(b, s->pairs ? ptx_bits(b, PTX_F32X2, 0) : ptx_f32(b, 0));
}

static void clear_sums(ptx_builder *b, const blocks *s)
{
    for (unsigned m = 0; m < s->rows; m++)
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned a = 0; a < (s->pairs ? TEAM_CHUNKS / 2 : TEAM_CHUNKS); a++)
                ptx_assign(b, s->sums[m][o][a], s->pairs ? ptx_bits(b, PTX_F32X2, 0) : ptx_f32(b, 0));
}

/* One chunk of each output, times all rows of x. */
static void add_chunk(ptx_builder *b, const blocks *s, const block_values *values, unsigned a, ptx_val x_at,
                      int x_more)
{
    ptx_val w[OUTPUTS_MAX][CHUNK], x[CHUNK];
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned e = 0; e < CHUNK; e++)
            w[o][e] = block_value(b, &s->reader, &values[o], a, e);
    for (unsigned m = 0; m < s->rows; m++) {
        const int at = x_more + (int)(m * s->window * ROUND_BYTES);
        for (unsigned e = 0; e < CHUNK; e += 4)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, x_at, at + (int)x_offset(s, a, e), &x[e],
                       4);
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned e = 0; e < CHUNK; e++)
                ptx_assign(b, s->sums[m][o][a], ptx_fma(b, w[o][e], x[e], s->sums[m][o][a]));
    }
}

/* The same for chunks a and a + 2. */
static void add_chunk_pair(ptx_builder *b, const blocks *s, const block_values *values, unsigned a,
                           ptx_val x_at, int x_more)
{
    ptx_val w[OUTPUTS_MAX][CHUNK], x[CHUNK];
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned e = 0; e < CHUNK; e++)
            w[o][e] = block_value_pair(b, &s->reader, &values[o], a, a + 2, e);
    for (unsigned m = 0; m < s->rows; m++) {
        const int at = x_more + (int)(m * s->window * ROUND_BYTES);
        for (unsigned e = 0; e < CHUNK; e += 2)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32X2, x_at, at + (int)x_offset(s, a, e), &x[e],
                       2);
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned e = 0; e < CHUNK; e++)
                ptx_assign(b, s->sums[m][o][a], ptx_fma(b, w[o][e], x[e], s->sums[m][o][a]));
    }
}

static void add_round(ptx_builder *b, const blocks *s, const block_values *values, ptx_val x_at, int x_more)
{
    for (unsigned a = 0; a < (s->pairs ? TEAM_CHUNKS / 2 : TEAM_CHUNKS); a++)
        if (s->pairs)
            add_chunk_pair(b, s, values, a, x_at, x_more);
        else
            add_chunk(b, s, values, a, x_at, x_more);
}

/* ---- Weights straight from memory, loaded ahead: blocks of a multiple of 16 bytes ---- */

typedef struct direct {
    unsigned fields;
    ptx_val at[OUTPUTS_MAX]
              [3]; /* addresses of header, codes and high bits of this thread in a row's first block */
    ptx_val more;  /* variable u64: bytes that all of them have moved on */
    ptx_val words[SLOTS][OUTPUTS_MAX][SLOT_WORDS]; /* variables */
} direct;

/* The first rounds; where there are fewer, the first one again, which is not used. */
static void direct_begin_slot(ptx_builder *b, const blocks *s, direct *d, unsigned slot)
{
    ptx_val more = ptx_u64(b, 0);
    if (slot)
        more = ptx_selp(b, ptx_u64(b, slot * s->share.layout->bytes), more,
                        ptx_setp(b, PTX_GT, s->rounds, (int)slot));
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned f = 0; f < d->fields; f++) {
            ptx_val words[4];
            emit_load_words(b, slot ? ptx_add(b, d->at[o][f], more) : d->at[o][f], 0, 4, words);
            for (unsigned k = 0; k < 4; k++)
                d->words[slot][o][4 * f + k] = ptx_var(b, words[k]);
        }
}

static direct direct_begin(ptx_builder *b, const blocks *s)
{
    const block_layout *layout = s->share.layout;
    direct d = {.fields = layout->at.high ? 3 : 2, .more = ptx_var(b, ptx_u64(b, 0))};
    ptx_val codes = ptx_add(b, ptx_shl(b, s->thread, 4), (int)layout->at.codes);
    ptx_val high = ptx_add(b, ptx_shl(b, ptx_and(b, s->thread, 1), 4), (int)layout->at.high);
    for (unsigned o = 0; o < s->outputs; o++) {
        d.at[o][0] = s->rows_at[o];
        d.at[o][1] = ptx_at(b, s->rows_at[o], codes, 1);
        if (d.fields == 3)
            d.at[o][2] = ptx_at(b, s->rows_at[o], high, 1);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        direct_begin_slot(b, s, &d, i);
    return d;
}

/* The round `ahead` of the pointers, where it exists. */
static void direct_fetch(ptx_builder *b, const blocks *s, const direct *d, unsigned slot, unsigned ahead,
                         ptx_val exists)
{
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned f = 0; f < d->fields; f++) {
            ptx_val at = ptx_add(b, d->at[o][f], d->more);
            ptx_when(b, exists);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, at, (int)(ahead * s->share.layout->bytes),
                            &d->words[slot][o][4 * f], 4);
        }
}

static void direct_use(ptx_builder *b, const blocks *s, const direct *d, unsigned slot, ptx_val x_at,
                       int x_more)
{
    block_values values[OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round round = {0};
        block_run *run = &round.runs[0];
        for (unsigned k = 0; k < 4; k++) {
            run->scales[k] = d->words[slot][o][k];
            run->codes[k] = d->words[slot][o][4 + k];
            run->high[k] = d->fields == 3 ? d->words[slot][o][8 + k] : (ptx_val){0};
        }
        block_values_open(b, &s->reader, &round, true, &values[o]);
    }
    add_round(b, s, values, x_at, x_more);
}

/* Rounds [first, end) of a window, a few in each turn of the loop; what is loaded ahead may belong to the next window. */
static void direct_window(ptx_builder *b, const blocks *s, const direct *d, ptx_val first, ptx_val end)
{
    const unsigned turn = s->rows == 1 ? 2 * SLOTS : SLOTS;
    ptx_val x_at = ptx_var(b, s->x_mine);
    ptx_val r = ptx_for(b, first, end, turn);
    for (unsigned i = 0; i < turn; i++) {
        if (i) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, r, i), end));
        }
        direct_use(b, s, d, i % SLOTS, x_at, (int)(i * ROUND_BYTES));
        direct_fetch(b, s, d, i % SLOTS, i + SLOTS, ptx_setp(b, PTX_LT, ptx_add(b, r, i + SLOTS), s->rounds));
    }
    for (unsigned i = 1; i < turn; i++)
        ptx_end_if(b);
    ptx_assign(b, d->more, ptx_add(b, d->more, turn * s->share.layout->bytes));
    ptx_assign(b, x_at, ptx_add(b, x_at, turn * ROUND_BYTES));
    ptx_end_for(b);
}

/* ---- Passes over K ---- */

typedef void window_function(ptx_builder *b, const blocks *s, void *user, ptx_val first, ptx_val end);

static void pass(ptx_builder *b, const blocks *s, bool cheap, window_function *window, void *user)
{
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->rounds, s->window);
    ptx_syncthreads(b);
    x_window_stage(b, &s->x, s->first_row, first, cheap);
    ptx_syncthreads(b);
    window(b, s, user, first, ptx_min(b, ptx_add(b, first, s->window), s->rounds));
    ptx_end_for(b);
}

static void direct_window_of(ptx_builder *b, const blocks *s, void *user, ptx_val first, ptx_val end)
{
    direct_window(b, s, user, first, end);
}

static void direct_pass(ptx_builder *b, const blocks *s)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GT, s->rounds, 0));
    direct d = direct_begin(b, s);
    pass(b, s, true, direct_window_of, &d);
    ptx_end_if(b);
}

/* ---- Weights through shared memory: blocks that are not multiples of 16 bytes ---- */

/* A warp copies segments of its rows; a thread those of its own team's. */
typedef struct segments {
    segment_shape shape;
    ptx_val row_bytes;                  /* u64 */
    ptx_val from[OUTPUTS_MAX];          /* addresses of this thread's first vector in a row */
    ptx_val to[OUTPUTS_MAX];            /* u32: where it goes */
    block_place places[OUTPUTS_MAX][2]; /* this thread's runs of the first round of a segment */
    ptx_val words_at
        [OUTPUTS_MAX]; /* u32: of formats whose runs are put together of aligned words, their address */
    ptx_val turn;      /* and the selector that puts them together */
    ptx_val last[OUTPUTS_MAX]
                [4]; /* variables u32: the last vector of threads that have one more than others */
} segments;

/* Runs of a block that begin anywhere: the alignment of a thread's block is the same in all rounds. */
static bool is_turned(const block_layout *layout)
{
    return layout->elements < ROUND && layout->bytes % 4 &&
           ROUND / layout->elements * layout->bytes % 4 == 0 &&
           (layout->codes == &codes_nibbles || layout->codes == &codes_bytes);
}

static segments segments_begin(ptx_builder *b, const blocks *s)
{
    const block_layout *layout = s->share.layout;
    segments g = {.shape = segment_of(layout, s->spec, s->outputs)};
    ptx_val shared = ptx_shared(b, "blocks", PTX_U8, TEAMS * s->outputs * g.shape.stride, LOAD_BYTES);
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
    ptx_val words[OUTPUTS_MAX][VECTORS_MAX][4];
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

/* Rounds in each turn of a loop. With two, it is known which blocks of 4 n + 2 bytes begin at a multiple of 4. */
static unsigned turn_of(const blocks *s, const segments *g)
{
    return s->window < 2 || g->shape.rounds < 2 ? 1 : 2;
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
                          bool cheap, ptx_val x_at, int x_more)
{
    const block_layout *layout = s->share.layout;
    const unsigned of_round = g->shape.of_round, offset = number * of_round;
    block_values values[OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round round;
        for (unsigned i = 0; i < s->share.runs; i++) {
            block_place place = g->places[o][i];
            place.block = ptx_add(b, place.block, more);
            if (offset)
                place.block = ptx_add(b, place.block, offset);
            place.align = block_align(layout);
            if (of_round % 4 == 2 && turn_of(s, g) == 2) {
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
        block_values_open(b, &s->reader, &round, cheap, &values[o]);
    }
    add_round(b, s, values, x_at, x_more);
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

/* Rounds from r on, as many as are in a turn of a loop; those from `end` on are left out. */
static void segment_turn(ptx_builder *b, const blocks *s, const segments *g, ptx_val r, ptx_val end,
                         unsigned turn, ptx_val more, ptx_val x_at)
{
    for (unsigned i = 0; i < turn; i++) {
        if (i) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, r, i), end));
        }
        segment_round(b, s, g, more, i, s->share.cheap, x_at, (int)(i * ROUND_BYTES));
    }
    for (unsigned i = 1; i < turn; i++)
        ptx_end_if(b);
    ptx_assign(b, x_at, ptx_add(b, x_at, turn * ROUND_BYTES));
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

/* The plain decode, straight from memory that may be aligned to nothing: where nothing else serves. */
static void plain_window(ptx_builder *b, const blocks *s, void *user, ptx_val first, ptx_val end)
{
    (void)user;
    const block_layout *layout = s->share.layout;
    const unsigned of_round = ROUND / layout->elements;
    ptx_val x_at = ptx_var(b, s->x_mine), blocks_of_row = ptx_shr(b, s->args.k, ceil_log2(layout->elements));
    ptx_val r = ptx_for(b, first, end, 1);
    block_values values[OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round round;
        block_place places[2];
        for (unsigned i = 0; i < s->share.runs; i++) {
            ptx_val block;
            places[i] = block_share_place(b, &s->share, s->thread, i, &block);
            ptx_val number = ptx_cvt(b, PTX_U64, ptx_mad(b, r, of_round, block));
            /* Beyond the end of a row x is 0: the row's first block will do. */
            if (of_round > 1)
                number = ptx_selp(b, number, ptx_u64(b, 0), ptx_setp(b, PTX_LT, number, blocks_of_row));
            places[i].space = PTX_GLOBAL;
            places[i].align = block_align(layout);
            places[i].block = ptx_at(b, s->rows_at[o], number, layout->bytes);
        }
        block_round_fetch(b, &s->share, places, &round);
        block_values_open(b, &s->reader, &round, false, &values[o]);
    }
    add_round(b, s, values, x_at, 0);
    ptx_assign(b, x_at, ptx_add(b, x_at, ROUND_BYTES));
    ptx_end_for(b);
}

/* ---- The end ---- */

/* The accumulators of sum `to`: of row m and output o. */
static void gather_sums(ptx_builder *b, const blocks *s, unsigned m, unsigned o, ptx_val *to)
{
    for (unsigned a = 0; a < TEAM_CHUNKS / 2; a++)
        if (s->pairs) {
            ptx_val two[2];
            ptx_unpack(b, PTX_F32, s->sums[m][o][a], two, 2);
            to[a] = two[0], to[a + 2] = two[1];
        } else {
            to[a] = s->sums[m][o][a], to[a + 2] = s->sums[m][o][a + 2];
        }
}

/* A thread completes the sums of some rows, or of a gated pair's. Sums are numbered row by row. */
static void finish(ptx_builder *b, const blocks *s)
{
    const unsigned each = s->spec->gated ? 1 : s->outputs, count = s->rows * each;
    epilogue e = epilogue_begin(b, s->spec, &s->args);
    ptx_val sums[OUTPUTS_MAX / 2][ROWS_MAX * OUTPUTS_MAX * TEAM_CHUNKS];
    lanes_joined joined = {0};
    for (unsigned pair = 0; pair < s->outputs / each; pair++) {
        for (unsigned i = 0; i < count; i++)
            gather_sums(b, s, i / each, pair + i % each, &sums[pair][i * TEAM_CHUNKS]);
        joined = lanes_join(b, &s->map, s->thread, sums[pair], count, TEAM_CHUNKS);
    }
    for (unsigned i = 0; i < joined.count; i++) {
        ptx_val number = ptx_add(b, joined.first, (int)i), both[2] = {sums[0][i], sums[1][i]};
        ptx_val row = ptx_cvt(b, PTX_U64, ptx_shr(b, number, ceil_log2(each)));
        ptx_val n = ptx_add(b, s->n, ptx_cvt(b, PTX_U64, ptx_and(b, number, (int)each - 1)));
        row = ptx_add(b, row, s->first_row);
        ptx_val stored = ptx_setp_and(b, PTX_LT, n, s->args.n, ptx_setp(b, PTX_LT, row, s->args.m));
        if (joined.is_first.kind != PTX_NOTHING)
            stored = ptx_and(b, stored, joined.is_first);
        ptx_if(b, stored);
        epilogue_store(b, &e, row, n, both, (ptx_val){0});
        ptx_end_if(b);
    }
}

/* ---- The kernel ---- */

/* A row of blocks that does not exist counts as another one; what becomes of it is not stored. */
static void begin_outputs(ptx_builder *b, blocks *s)
{
    const block_layout *layout = s->share.layout;
    const unsigned each = s->spec->gated ? 1 : s->outputs;
    ptx_val row_bytes =
        ptx_mul(b, ptx_shr(b, s->args.k, ceil_log2(layout->elements)), ptx_u64(b, layout->bytes));
    ptx_val number = ptx_mad(b, ptx_ctaid_x(b), TEAMS, s->team);
    s->n = ptx_mul_wide(b, number, ptx_u32(b, each));
    ptx_val row = ptx_min(b, s->n, ptx_sub(b, s->args.n, ptx_u64(b, 1)));
    s->rows_at[0] = ptx_mad(b, row, row_bytes, s->args.all.operand[QDNN_OPERAND_CODES]);
    if (s->spec->gated)
        s->rows_at[1] = ptx_mad(b, s->args.n, row_bytes, s->rows_at[0]);
    for (unsigned o = 1; o < each; o++) {
        ptx_val exists = ptx_setp(b, PTX_LT, ptx_add(b, s->n, ptx_u64(b, o)), s->args.n);
        s->rows_at[o] = ptx_add(b, s->rows_at[o - 1], ptx_selp(b, row_bytes, ptx_u64(b, 0), exists));
    }
}

static bool has_f32x2(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && (sm->number == 100 || sm->number == 103);
}

static void begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, blocks *s)
{
    *s = (blocks){.spec = spec,
                  .rows = (unsigned)spec->tile_rows,
                  .outputs = outputs_of_team(row, spec),
                  .pairs = has_f32x2(b),
                  .args = gemm_declare(b, row, spec)};
    const block_layout *layout = block_layout_of(row->format);
    block_share_of(layout, &s->share);
    lane_map_make(block_share_lane, &s->share, TEAM, TEAM_CHUNKS, &s->map);
    s->window = window_of(layout, spec);
    s->state = block_open(b, layout);
    ptx_val lane = ptx_laneid(b);
    s->thread = ptx_and(b, lane, TEAM - 1);
    s->team = ptx_shr(b, ptx_tid_x(b), ceil_log2(TEAM));
    s->rounds = ptx_cvt(b, PTX_U32, ptx_shr(b, ptx_add(b, s->args.k, ptx_u64(b, ROUND - 1)), 8));
    begin_x(b, s);
    begin_outputs(b, s);
    s->reader = block_reader_begin(b, &s->share, &s->state, s->thread);
}

/* Whether the cheap decode has met numbers that it does not serve; in one block of threads all agree. */
static ptx_val went_wrong(ptx_builder *b, const blocks *s)
{
    ptx_val wrong = {0};
    if (s->x.largest.kind != PTX_NOTHING)
        wrong = ptx_setp(b, PTX_GE, s->x.largest, ptx_f32(b, ldexpf(1, X_EXPONENT_MAX)));
    if (s->reader.guard.kind != PTX_NOTHING)
        wrong = wrong.kind == PTX_NOTHING ? ptx_setp(b, PTX_NAN, s->reader.guard, s->reader.guard)
                                          : ptx_setp_or(b, PTX_NAN, s->reader.guard, s->reader.guard, wrong);
    return ptx_bar_red_or(b, 0, wrong);
}

/* Whether rows can be copied by vectors. */
static ptx_val rows_are_aligned(ptx_builder *b, const blocks *s, const segments *g)
{
    return emit_aligned(b, ptx_or(b, s->args.all.operand[QDNN_OPERAND_CODES], g->row_bytes), LOAD_BYTES);
}

/* The fast way first; where it turns out not to serve, the plain way from the beginning. */
static void multiply(ptx_builder *b, blocks *s)
{
    const bool direct = is_direct(s->share.layout);
    const bool guarded = s->x.largest.kind != PTX_NOTHING || s->reader.guard.kind != PTX_NOTHING;
    begin_sums(b, s);
    ptx_val again = ptx_var(b, ptx_u32(b, !direct));
    if (direct) {
        direct_pass(b, s);
    } else {
        segments g = segments_begin(b, s);
        ptx_uniform(b);
        ptx_if(b, rows_are_aligned(b, s, &g));
        pass(b, s, s->share.cheap, segment_window, &g);
        ptx_assign(b, again, ptx_u32(b, 0));
    }
    if (guarded)
        ptx_assign(b, again, ptx_selp(b, ptx_u32(b, 1), ptx_u32(b, 0), went_wrong(b, s)));
    if (!direct)
        ptx_end_if(b);
    if (!direct || guarded) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_NE, again, 0));
        clear_sums(b, s);
        pass(b, s, false, plain_window, NULL);
        ptx_end_if(b);
    }
    finish(b, s);
}

static void emit_blocks(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    blocks s;
    ptx_reqntid(b, THREADS, 1, 1);
    ptx_minnctapersm(b, is_direct(block_layout_of(row->format)) || spec->tile_rows > 4 ? 1 : 2);
    begin(b, row, spec, &s);
    ptx_val of_block = ptx_u32(b, s.rows);
    s.first_row = ptx_for(b, ptx_mul_wide(b, ptx_ctaid_y(b), of_block), s.args.m,
                          ptx_mul_wide(b, ptx_sreg(b, "nctaid.y"), of_block));
    multiply(b, &s);
    ptx_end_for(b);
}

const gemm_kernel gemm_blocks = {
    .block = THREADS, .outputs = columns_of, .emit = emit_blocks, .serves = serves};
