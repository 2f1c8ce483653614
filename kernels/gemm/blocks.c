/* Products with GGUF blocks and a few rows of x: blocks are decoded in registers, each once for all rows.
 * A team of 8 threads sums up to two outputs (of a gated pair, both); a warp has four teams. x is staged
 * in shared memory as f32, a window of a few rounds at a time, in the order in which threads read it. */
#include "kernels/gemm/block_segments.h"
#include "kernels/formats/placed.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/teams.h"

#include <math.h>
#include <stdio.h>

enum {
    WINDOW = 16,             /* rounds of x in shared memory, times rows of x */
    ONE_BITS = 127 << 23,    /* the f32 1 */
    UNIT_OF_ONE = 128 << 23, /* 2^(e - 128) */
    X_PAIR_BYTES = 8,        /* a pair: elements of two chunks, side by side */
    ROWS_IN_UNITS = 4
};

/* ---- Shape ---- */

/* Small thread blocks fill more SMs, and leave room for more rounds of each output; but each of them reads
 * x, which therefore has to be small compared with its weights: one row of it is. */
unsigned blocks_warps(const block_layout *layout, const kernel_spec *spec)
{
    const unsigned of_round = ROUND / layout->elements * layout->bytes;
    if (blocks_are_direct(layout))
        return spec->product.tile_rows == 1 ? 4 : 8;
    return of_round >= 136 || spec->product.tile_rows == 1 ? 4 : 8;
}

/* Rounds of x times rows of x: less of it leaves more room for blocks. */
static unsigned window_limit(const block_layout *layout, const kernel_spec *spec)
{
    if (blocks_are_direct(layout) || layout->table)
        return WINDOW;
    return blocks_warps(layout, spec) > 4 ? WINDOW / 4 : WINDOW / 2;
}

unsigned blocks_window(const block_layout *layout, const kernel_spec *spec)
{
    unsigned window =
        blocks_are_direct(layout) ? blocks_slots(spec) : 1; /* a multiple: rounds keep their slots */
    while (2 * window * spec->product.tile_rows <= window_limit(layout, spec))
        window *= 2;
    return window;
}

/* Neighbouring teams exchange the halves of gated pairs, and so lie in one warp. */
unsigned blocks_team(const block_layout *layout, const kernel_spec *spec)
{
    const unsigned most = spec->epilogue.gated ? WARP / 2 : WARP;
    unsigned team = TEAM;
    for (uint64_t split = spec->product.split; split > 2 && team < most && blocks_are_direct(layout);
         split /= 2)
        team *= 2;
    return team;
}

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    const block_layout *layout = block_layout_of(row->format);
    const unsigned teams = blocks_warps(layout, spec) * WARP / blocks_team(layout, spec);
    return teams * team_outputs(spec) / (spec->epilogue.gated ? 2 : 1);
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    block_share share;
    const block_layout *layout = block_layout_of(row->format);
    if (layout && block_share_of(layout, blocks_team(layout, spec), &share))
        return true;
    snprintf(error, error_size, "product blocks takes GGUF blocks other than TQ1_0");
    return false;
}

/* Vectors are whole in all rows. */
static bool fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const block_layout *layout = block_layout_of(row->format);
    (void)spec;
    return problem->columns / layout->elements * layout->bytes % LOAD_BYTES == 0;
}

static bool ragged_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    if (block_align(block_layout_of(row->format)) < LOAD_BYTES)
        return serves(row, spec, error, error_size);
    snprintf(error, error_size,
             "product ragged takes no blocks of a multiple of 16 bytes: all of their rows are aligned");
    return false;
}

/* ---- x ---- */

/* Bytes between the runs of a team's vectors; with a table, the runs lie between its entries. */
static unsigned x_pitch(const blocks *s)
{
    _Static_assert(TEAM * LOAD_BYTES == BYTE_TABLE_RUN, "a run fits between the entries of a table");
    return s->share.fast == BLOCK_BY_TABLE ? BYTE_TABLE_PITCH : s->share.team * LOAD_BYTES;
}

/* Pairs of chunks of a thread. */
static unsigned pairs_of(const blocks *s)
{
    return s->share.chunks / 2;
}

/* Accumulators of a thread for a row and an output. */
static unsigned sums_of(const blocks *s)
{
    return s->pairs ? pairs_of(s) : s->share.chunks;
}

/* Byte offset, within a round, of the vector with element e of the chunk of accumulator `a` (of thread j).
 * The order is (a, half, j, e) in vectors of four; in two pairs it is (a % 2, e / 2, j, (e + a) % 2, a / 2),
 * so that storing the chunks a and a + 1 at once causes no bank conflict. */
static unsigned x_vector(const blocks *s, unsigned a, unsigned e)
{
    return (s->pairs ? a % pairs_of(s) * 4 + e / 2 : a * 2 + e / 4) * x_pitch(s);
}

/* Lane i of a warp stages the chunk of thread i % team, accumulator i / team, for the rounds that its warp
 * stages. */
static void begin_x(ptx_builder *b, blocks *s)
{
    ptx_val lane = ptx_laneid(b), j = ptx_and(b, lane, (int)s->share.team - 1),
            a = ptx_shr(b, lane, ceil_log2(s->share.team));
    s->x = (x_window){.spec = s->spec,
                      .args = &s->args,
                      .rows = s->rows,
                      .rounds = s->window,
                      .warps = s->warps,
                      .round_bytes = ROUND_BYTES / (s->share.team * LOAD_BYTES) * x_pitch(s),
                      .copies = 1,
                      .whole_chunks = true,
                      .short_rows = s->ragged,
                      .shift = PLACED_X_EXPONENT,
                      .flip = s->pairs ? X_PAIR_BYTES : 0,
                      .shared = s->share.fast == BLOCK_BY_TABLE
                                    ? ptx_add(b, s->dynamic, BYTE_TABLE_RUN)
                                    : blocks_shared(b, s, "x_window", s->window * s->rows * ROUND_BYTES)};
    for (unsigned e = 0; e < CHUNK; e++)
        s->x.offsets[e] = x_vector(s, 0, e) + (s->pairs ? 0 : e % 4 * 4);
    s->x_mine = ptx_add(b, s->x.shared, ptx_shl(b, s->thread, 4));
    ptx_val slot = ptx_add(b, s->x.shared, ptx_shl(b, j, 4)),
            number = s->pairs ? ptx_and(b, a, (int)pairs_of(s) - 1) : a;
    slot = ptx_add(b, slot, ptx_shl(b, number, ceil_log2((s->pairs ? 4 : 2) * x_pitch(s))));
    if (s->pairs)
        slot = ptx_mad(b, number, X_PAIR_BYTES,
                       ptx_add(b, slot, ptx_shl(b, ptx_shr(b, a, ceil_log2(pairs_of(s))), 2)));
    s->x.slot = slot;
    s->x.chunk = ptx_cvt(b, PTX_U64, ptx_shl(b, lanes_lane(b, &s->lanes, j, a), 3));
    if (s->share.fast == BLOCK_CHEAP && s->spec->data != QDNN_DATA_F16)
        s->x.largest = ptx_var(b, ptx_f32(b, 0));
}

/* ---- Sums ---- */

/* `made`: they exist already. */
static void clear_sums(ptx_builder *b, blocks *s, bool made)
{
    for (unsigned m = 0; m < s->rows; m++)
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned a = 0; a < sums_of(s); a++) {
                ptx_val zero = s->pairs ? ptx_bits(b, PTX_F32X2, 0) : ptx_f32(b, 0);
                if (made)
                    ptx_assign(b, s->sums[m][o][a], zero);
                else
                    s->sums[m][o][a] = ptx_var(b, zero);
            }
}

/* Multiplies the sums of an output by a power of two. */
static void scale_sums(ptx_builder *b, const blocks *s, unsigned o, ptx_val factor)
{
    if (s->pairs)
        factor = ptx_pack2(b, PTX_F32X2, factor, factor);
    for (unsigned m = 0; m < s->rows; m++)
        for (unsigned a = 0; a < sums_of(s); a++)
            ptx_assign(b, s->sums[m][o][a], ptx_mul(b, s->sums[m][o][a], factor));
}

/* 2^((from - to) / 2^23); units are stored as e << 23. */
static ptx_val ratio_of_units(ptx_builder *b, ptx_val from, ptx_val to)
{
    return ptx_as(b, PTX_F32, ptx_add(b, ptx_sub(b, from, to), ptx_u32(b, ONE_BITS)));
}

static void begin_units(ptx_builder *b, blocks *s)
{
    for (unsigned o = 0; o < s->outputs && s->reader.in_units; o++)
        s->units[o] = ptx_var(b, ptx_u32(b, UNIT_OF_ONE));
}

/* Converts the sums to units of 1. */
static void end_units(ptx_builder *b, const blocks *s)
{
    for (unsigned o = 0; o < s->outputs && s->reader.in_units; o++)
        scale_sums(b, s, o, ratio_of_units(b, s->units[o], ptx_u32(b, UNIT_OF_ONE)));
}

static void next_unit(ptx_builder *b, const blocks *s, unsigned o, ptx_val unit)
{
    scale_sums(b, s, o, ratio_of_units(b, s->units[o], unit));
    ptx_assign(b, s->units[o], unit);
}

/* One chunk of each output, times all rows of x. */
static void multiply_chunk(ptx_builder *b, const blocks *s, ptx_val w[BLOCKS_OUTPUTS_MAX][CHUNK], unsigned a,
                           ptx_val x_at, int x_more)
{
    for (unsigned m = 0; m < s->rows; m++) {
        const int at = x_more + (int)(m * s->window * s->x.round_bytes);
        ptx_val x[CHUNK];
        for (unsigned e = 0; e < CHUNK; e += 4)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, x_at, at + (int)x_vector(s, a, e), &x[e],
                       4);
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned e = 0; e < CHUNK; e++)
                ptx_assign(b, s->sums[m][o][a], ptx_fma(b, w[o][e], x[e], s->sums[m][o][a]));
    }
}

static void add_chunk(ptx_builder *b, const blocks *s, const block_values *values, unsigned a, ptx_val x_at,
                      int x_more)
{
    ptx_val w[BLOCKS_OUTPUTS_MAX][CHUNK];
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned e = 0; e < CHUNK; e++)
            w[o][e] = block_value(b, &s->reader, &values[o], a, e);
    multiply_chunk(b, s, w, a, x_at, x_more);
}

/* Adds chunks a and a + 2, which are looked up together. */
static void add_chunks_by_table(ptx_builder *b, const blocks *s, const block_values *values, unsigned a,
                                ptx_val x_at, int x_more)
{
    ptx_val w[2][BLOCKS_OUTPUTS_MAX][CHUNK];
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned e = 0; e < CHUNK; e++) {
            ptx_val two[2];
            block_values_looked_up(b, &s->reader, &values[o], a, e, two);
            w[0][o][e] = two[0], w[1][o][e] = two[1];
        }
    for (unsigned i = 0; i < 2; i++)
        multiply_chunk(b, s, w[i], a + i * TEAM_CHUNKS / 2, x_at, x_more);
}

/* The same in pairs, for any decode. */
static void add_chunk_pair(ptx_builder *b, const blocks *s, const block_values *values, unsigned a,
                           ptx_val x_at, int x_more)
{
    ptx_val w[BLOCKS_OUTPUTS_MAX][CHUNK], x[CHUNK]; /* neighbours in x are swapped if `a` is odd */
    for (unsigned o = 0; o < s->outputs; o++)
        for (unsigned e = 0; e < CHUNK; e++)
            w[o][e] = block_value_pair(b, &s->reader, &values[o], a, e);
    for (unsigned m = 0; m < s->rows; m++) {
        const int at = x_more + (int)(m * s->window * s->x.round_bytes);
        for (unsigned e = 0; e < CHUNK; e += 2)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32X2, x_at, at + (int)x_vector(s, a, e), &x[e],
                       2);
        for (unsigned o = 0; o < s->outputs; o++)
            for (unsigned e = 0; e < CHUNK; e++)
                ptx_assign(b, s->sums[m][o][a], ptx_fma(b, w[o][e], x[e ^ (a & 1)], s->sums[m][o][a]));
    }
}

void blocks_add_round(ptx_builder *b, const blocks *s, const block_values *values, ptx_val x_at, int x_more)
{
    const bool by_table = values->way == BLOCK_BY_TABLE;
    for (unsigned o = 0; o < s->outputs && values[o].unit.kind != PTX_NOTHING; o++)
        next_unit(b, s, o, values[o].unit);
    for (unsigned a = 0; a < (by_table ? pairs_of(s) : sums_of(s)); a++)
        (s->pairs   ? add_chunk_pair
         : by_table ? add_chunks_by_table
                    : add_chunk)(b, s, values, a, x_at, x_more);
}

/* ---- Passes over K ---- */

void blocks_pass(ptx_builder *b, const blocks *s, block_way way, window_function *window, void *user)
{
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->rounds, s->window);
    ptx_syncthreads(b);
    x_window_stage(b, &s->x, &s->at, first, way == BLOCK_CHEAP);
    ptx_syncthreads(b);
    window(b, s, user, first, ptx_min(b, ptx_add(b, first, s->window), s->rounds));
    ptx_end_for(b);
}

/* The plain decode, straight from memory of any alignment: the fallback when nothing faster works. */
static void plain_window(ptx_builder *b, const blocks *s, void *user, ptx_val first, ptx_val end)
{
    (void)user;
    const block_layout *layout = s->share.layout;
    const unsigned of_round = ROUND / layout->elements;
    ptx_val x_at = ptx_var(b, s->x_mine), blocks_of_row = ptx_shr(b, s->args.k, ceil_log2(layout->elements));
    ptx_val r = ptx_for(b, first, end, 1);
    block_values values[BLOCKS_OUTPUTS_MAX];
    for (unsigned o = 0; o < s->outputs; o++) {
        block_round round;
        block_place places[2];
        for (unsigned i = 0; i < s->share.runs; i++) {
            ptx_val block;
            places[i] = block_share_place(b, &s->share, s->thread, i, &block);
            ptx_val number = ptx_cvt(b, PTX_U64, ptx_mad(b, r, of_round, block));
            /* Beyond the end of a row x is 0, so any block will do: the row's first. */
            if (of_round > 1)
                number = ptx_selp(b, number, ptx_u64(b, 0), ptx_setp(b, PTX_LT, number, blocks_of_row));
            places[i].space = PTX_GLOBAL;
            places[i].align = block_align(layout);
            places[i].block = ptx_at(b, s->rows_at[o], number, layout->bytes);
        }
        block_round_fetch(b, &s->share, places, &round);
        block_values_open(b, &s->reader, &round, BLOCK_PLAIN, &values[o]);
    }
    blocks_add_round(b, s, values, x_at, 0);
    ptx_assign(b, x_at, ptx_add(b, x_at, s->x.round_bytes));
    ptx_end_for(b);
}

/* ---- The end ---- */

/* Writes the accumulators of row m and output o to `to`. */
static void gather_sums(ptx_builder *b, const blocks *s, unsigned m, unsigned o, ptx_val *to)
{
    for (unsigned a = 0; a < sums_of(s); a++)
        if (s->pairs) {
            ptx_val two[2];
            ptx_unpack(b, PTX_F32, s->sums[m][o][a], two, 2);
            to[a] = two[0], to[a + pairs_of(s)] = two[1];
        } else {
            to[a] = s->sums[m][o][a];
        }
}

/* Each thread completes some of the sums, or gated pairs of sums. Sums are numbered row by row. */
static void finish(ptx_builder *b, const blocks *s)
{
    const unsigned each = s->spec->epilogue.gated ? 1 : s->outputs, count = s->rows * each;
    epilogue e = epilogue_begin(b, s->spec, &s->args);
    ptx_val sums[2 /* of a pair */][BLOCKS_ROWS_MAX * BLOCKS_OUTPUTS_MAX * TEAM_CHUNKS];
    lanes_joined joined = {0};
    for (unsigned pair = 0; pair < s->outputs / each; pair++) {
        for (unsigned i = 0; i < count; i++)
            gather_sums(b, s, i / each, pair + i % each, &sums[pair][i * s->share.chunks]);
        joined = lanes_join(b, &s->lanes, s->thread, sums[pair], count, s->share.chunks);
    }
    for (unsigned i = 0; i < joined.count; i++) {
        ptx_val number = ptx_add(b, joined.first, (int)i), both[2];
        ptx_val row = ptx_cvt(b, PTX_U64, ptx_shr(b, number, ceil_log2(each)));
        ptx_val n = ptx_add(b, s->n, ptx_cvt(b, PTX_U64, ptx_and(b, number, (int)each - 1)));
        ptx_val stored = ptx_setp_and(b, PTX_LT, n, s->args.n, row_tile_has(b, &s->at, row));
        if (joined.is_first.kind != PTX_NOTHING)
            stored = ptx_and(b, stored, joined.is_first);
        if (team_halves_are_apart(s->spec)) {
            sums[1][i] = ptx_shfl_bfly(b, sums[0][i], (int)s->share.team);
            stored = ptx_setp_and(b, PTX_EQ, ptx_and(b, s->team, 1), 0, stored);
        }
        ptx_if(b, stored);
        for (unsigned pair = 0; pair < (s->spec->epilogue.gated ? 2 : 1); pair++)
            both[pair] = row_tile_sum(b, &s->at, sums[pair][i]);
        epilogue_store(b, &e, row_tile_row(b, &s->at, row, stored), n, both, s->at.expert);
        ptx_end_if(b);
    }
}

/* ---- The kernel ---- */

/* Rows of blocks that do not exist are replaced by another row; their results are not stored. */
static void begin_outputs(ptx_builder *b, blocks *s)
{
    const block_layout *layout = s->share.layout;
    const unsigned each = s->spec->epilogue.gated ? 1 : s->outputs;
    ptx_val row_bytes =
        ptx_mul(b, ptx_shr(b, s->args.k, ceil_log2(layout->elements)), ptx_u64(b, layout->bytes));
    s->n = team_first_column(b, s->spec, s->team, s->teams, each);
    ptx_val clamped = ptx_min(b, s->n, ptx_sub(b, s->args.n, ptx_u64(b, 1)));
    ptx_val row = team_weight_row(b, s->spec, s->team, s->args.n, clamped);
    s->rows_at[0] = ptx_mad(b, row, row_bytes, s->args.all.operand[QDNN_OPERAND_CODES]);
    if (s->outputs > each)
        s->rows_at[1] = ptx_mad(b, s->args.n, row_bytes, s->rows_at[0]);
    for (unsigned o = 1; o < each; o++) {
        ptx_val exists = ptx_setp(b, PTX_LT, ptx_add(b, s->n, ptx_u64(b, o)), s->args.n);
        s->rows_at[o] = ptx_add(b, s->rows_at[o - 1], ptx_selp(b, row_bytes, ptx_u64(b, 0), exists));
    }
}

/* Whether shared memory has room for a table next to the blocks. */
static bool has_room(const ptx_builder *b)
{
    const ptx_sm *sm = ptx_target(b);
    return sm && sm->shared_block > 64 * 1024;
}

/* If the launch provides memory for a table but the kernel has none, that memory is used for everything
 * else. */
ptx_val blocks_shared(ptx_builder *b, blocks *s, const char *name, unsigned bytes)
{
    if (s->dynamic.kind == PTX_NOTHING || s->share.fast == BLOCK_BY_TABLE)
        return ptx_shared(b, name, PTX_U8, bytes, LOAD_BYTES);
    ptx_val at = ptx_add(b, s->dynamic, (int)s->dynamic_used);
    s->dynamic_used += bytes;
    return at;
}

/* Sums are kept in units where scales are powers of two and x is known to be far from underflow. With more
 * rows, scaling the weights takes fewer instructions than scaling the sums. */
static bool sums_are_in_units(const blocks *s)
{
    return s->share.fast == BLOCK_BY_TABLE && s->share.layout->scales->is_power_of_two &&
           s->spec->data == QDNN_DATA_F16 && s->rows <= ROWS_IN_UNITS;
}

static ptx_val number_of_code(ptx_builder *b, const void *user, ptx_val byte, unsigned position)
{
    return table_number(b, user, byte, position);
}

/* Dynamic shared memory: room for a table, or for everything that the larger thread blocks need. */
static unsigned shared_of(const kernel_row *row, const kernel_spec *spec)
{
    const block_layout *layout = block_layout_of(row->format);
    if (layout->table)
        return BYTE_TABLE_BYTES;
    if (blocks_are_direct(layout) || blocks_warps(layout, spec) <= 4)
        return 0;
    return blocks_window(layout, spec) * (unsigned)spec->product.tile_rows * ROUND_BYTES +
           blocks_segments_bytes(layout, spec, team_outputs(spec));
}

static void begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, blocks *s)
{
    const block_layout *layout = block_layout_of(row->format);
    *s = (blocks){.spec = spec,
                  .warps = blocks_warps(layout, spec),
                  .teams = blocks_warps(layout, spec) * WARP / blocks_team(layout, spec),
                  .rows = (unsigned)spec->product.tile_rows,
                  .outputs = team_outputs(spec),
                  .ragged = gemm_is_ragged(spec),
                  .pairs = has_f32x2(b) && blocks_team(layout, spec) < WARP,
                  .args = gemm_declare(b, row, spec)};
    block_share_of(layout, blocks_team(layout, spec), &s->share);
    s->between = layout->table && !has_room(b) && spec->product.tile_rows == 1 && !s->ragged;
    if (layout->table && !has_room(b) && !s->between)
        s->share.fast = BLOCK_PLAIN;
    s->lanes = block_share_lanes(&s->share);
    s->window = blocks_window(layout, spec) / (s->between ? 2 : 1);
    s->state = block_open_before_barrier(b, layout); /* passes begin with one */
    ptx_val lane = ptx_laneid(b);
    s->thread = ptx_and(b, lane, (int)s->share.team - 1);
    s->team = ptx_shr(b, ptx_tid_x(b), ceil_log2(s->share.team));
    if (shared_of(row, spec))
        s->dynamic = ptx_shared_dynamic(b, BYTE_TABLE_RUN);
    begin_x(b, s);
    s->reader = block_reader_begin(b, &s->share, &s->state, s->thread, sums_are_in_units(s));
    if (s->share.fast == BLOCK_BY_TABLE)
        s->reader.table =
            byte_table_fill(b, s->dynamic, s->warps * WARP, 2, false, number_of_code, &s->state);
}

/* Sets up the rows of a tile and the weights of their expert. */
static void begin_tile(ptx_builder *b, blocks *s)
{
    s->at = row_tiles_begin(b, s->spec, &s->args);
    s->stack = s->args.all.operand[QDNN_OPERAND_CODES];
    s->args = row_tile_args(b, &s->at, &s->args);
    ptx_val rounds = ptx_cvt(b, PTX_U32, ptx_shr(b, ptx_add(b, s->args.k, ptx_u64(b, ROUND - 1)), 8));
    s->rounds = row_tile_size(b, &s->at, rounds);
    begin_outputs(b, s);
}

/* Whether the fast decode met numbers that it cannot handle, anywhere in the thread block. */
static ptx_val went_wrong(ptx_builder *b, const blocks *s)
{
    ptx_val wrong = {0};
    if (s->reader.in_units)
        wrong = ptx_setp(b, PTX_GT, s->reader.seen, 63);
    if (s->x.largest.kind != PTX_NOTHING)
        wrong = ptx_setp(b, PTX_GE, s->x.largest, ptx_f32(b, ldexpf(1, PLACED_X_LIMIT)));
    if (s->reader.guard.kind != PTX_NOTHING)
        wrong = wrong.kind == PTX_NOTHING ? ptx_setp(b, PTX_NAN, s->reader.guard, s->reader.guard)
                                          : ptx_setp_or(b, PTX_NAN, s->reader.guard, s->reader.guard, wrong);
    return ptx_bar_red_or(b, 0, wrong);
}

static bool is_guarded(const blocks *s)
{
    return s->x.largest.kind != PTX_NOTHING || s->reader.guard.kind != PTX_NOTHING || s->reader.in_units;
}

/* Sets `again` (variable u32) where the fast decode met numbers that it cannot handle. */
static void check_pass(ptx_builder *b, const blocks *s, ptx_val again)
{
    if (is_guarded(s))
        ptx_assign(b, again, ptx_selp(b, ptx_u32(b, 1), ptx_u32(b, 0), went_wrong(b, s)));
}

/* By way of shared memory, where rows can be copied there by vectors. */
static void copied_pass(ptx_builder *b, blocks *s, ptx_val again)
{
    segments g;
    ptx_val aligned = blocks_segments_begin(b, s, &g);
    ptx_uniform(b);
    ptx_if(b, aligned);
    blocks_segments_pass(b, s, &g);
    end_units(b, s);
    ptx_assign(b, again, ptx_u32(b, 0));
    check_pass(b, s, again);
    ptx_end_if(b);
}

/* Runs the fast decode first; if that met numbers that it cannot handle, or was not possible, the plain one starts over. */
static void multiply(ptx_builder *b, blocks *s)
{
    const bool direct = blocks_are_direct(s->share.layout);
    clear_sums(b, s, false);
    begin_units(b, s);
    ptx_val again = ptx_var(b, ptx_u32(b, !direct));
    if (direct) {
        blocks_direct_pass(b, s);
        check_pass(b, s, again);
    } else {
        copied_pass(b, s, again);
    }
    if (!direct || is_guarded(s)) {
        ptx_uniform(b);
        ptx_if(b, ptx_setp(b, PTX_NE, again, 0));
        clear_sums(b, s, true);
        blocks_pass(b, s, BLOCK_PLAIN, plain_window, NULL);
        ptx_end_if(b);
    }
    finish(b, s);
}

/* Thread blocks per SM, which limits the registers of a thread; two tables fit. */
static unsigned blocks_of_sm(const block_layout *layout, const kernel_spec *spec)
{
    if (spec->product.tile_rows > 1)
        return 1;
    return layout->table ? 2 : 16 / blocks_warps(layout, spec);
}

static unsigned threads_of(const kernel_row *row, const kernel_spec *spec)
{
    return blocks_warps(block_layout_of(row->format), spec) * WARP;
}

static void emit_blocks(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    blocks s;
    ptx_minnctapersm(b, blocks_of_sm(block_layout_of(row->format), spec));
    begin(b, row, spec, &s);
    begin_tile(b, &s);
    multiply(b, &s);
    row_tiles_end(b);
}

#define BLOCKS_KERNEL(takes, ...)                                                                            \
    {                                                                                                        \
        .block_of = threads_of, .shared = shared_of, .outputs = columns_of, .emit = emit_blocks,             \
        .serves = takes, .rows = 1, .rows_most = BLOCKS_ROWS_MAX, .takes_experts = true, __VA_ARGS__         \
    }
const gemm_kernel gemm_blocks = BLOCKS_KERNEL(serves, .fits = fits),
                  gemm_ragged_blocks = BLOCKS_KERNEL(ragged_serves, .fits = NULL);
