/* The pass over K for codes that lie along N: words are loaded ahead, and the numbers of groups are staged
 * in shared memory together with the window of x. */
#include "kernels/gemm/columns_codes.h"

#include <math.h>

enum {
    STAGED_MAX = 16 * 1024, /* bytes of numbers */
    WORDS_AHEAD = 32,       /* per thread, with one row of x */
    DEPTH_MAX = 4           /* rounds */
};

/* ---- Numbers of groups ---- */

static unsigned span_in(const coding *c, unsigned rounds)
{
    const unsigned span = codes_span(c->spec);
    return span < rounds * ROUND ? span : rounds * ROUND;
}

static unsigned slot_bytes(const coding *c, unsigned across)
{
    return code_way_of(c)->numbers * code_width(c) * 4 * across;
}

unsigned codes_scratch_bytes(const coding *c, unsigned across, unsigned rounds)
{
    return codes_have_one_group(c->spec) ? 0 : rounds * ROUND / span_in(c, rounds) * slot_bytes(c, across);
}

unsigned codes_window(const coding *c, unsigned across, unsigned most)
{
    unsigned rounds = most;
    while (rounds > 1 && codes_scratch_bytes(c, across, rounds) > STAGED_MAX)
        rounds /= 2;
    return rounds;
}

/* ---- The pass ---- */

typedef struct codes_ahead {
    const code_way *way;
    unsigned depth;    /* rounds */
    ptx_val stride;    /* u64: bytes of a row of the matrix */
    ptx_val shift;     /* u32: the bit at which the thread's half of a word begins; empty: whole words */
    ptx_val first;     /* pointer: the thread's codes in round 0 */
    ptx_val at;        /* variable: the same in the round that is loaded next */
    ptx_val whole;     /* u32: number of whole rounds */
    ptx_val bad;       /* variable u32: not 0 once a group was rejected */
    code_numbers only; /* if there is a single group */
    ptx_val words[DEPTH_MAX][COLUMNS_LANES][CHUNK][CODE_WORDS]; /* variables */
} codes_ahead;

static void note(ptx_builder *b, const codes_ahead *a, ptx_val serves)
{
    if (serves.kind != PTX_NOTHING && a->bad.kind != PTX_NOTHING)
        ptx_assign(b, a->bad, ptx_selp(b, a->bad, ptx_u32(b, 1), serves));
}

static code_numbers prepare_all(ptx_builder *b, const columns *s, const codes_ahead *a,
                                const group_values *groups)
{
    code_numbers n;
    for (unsigned k = 0; k < s->width; k++) {
        ptx_val numbers[CODE_NUMBERS];
        note(b, a, a->way->prepare(b, s, k, &groups[k], numbers));
        for (unsigned i = 0; i < a->way->numbers; i++)
            n.at[i][k] = numbers[i];
    }
    return n;
}

static codes_ahead codes_begin(ptx_builder *b, const columns *s)
{
    const coding *c = &s->w.coding;
    codes_ahead a = {.way = code_way_for(b, c), .depth = WORDS_AHEAD / (s->lanes * CHUNK * code_words(c))};
    while (a.depth > 1 && (s->rows * a.depth > 8 || a.depth > s->x.rounds))
        a.depth /= 2;
    ptx_val row_bytes = ptx_shr(b, ptx_mul(b, s->w.matrix.columns, ptx_u64(b, code_bits(c))), 3);
    ptx_val before = ptx_shr(b, ptx_mul(b, s->column, ptx_u64(b, code_bits(c))), 3);
    if (code_is_half(c)) {
        a.shift = ptx_mul(b, ptx_and(b, ptx_shr(b, ptx_cvt(b, PTX_U32, s->column), 2), 1),
                          (int)code_quad_distance(c));
        before = ptx_and(b, before, ptx_u64(b, ~UINT64_C(3)));
    }
    a.stride = row_bytes;
    ptx_val row = ptx_cvt(b, PTX_U64, ptx_mul(b, s->first_lane, CHUNK));
    a.first = ptx_add(b, ptx_mad(b, row, row_bytes, s->w.codes), before);
    a.at = ptx_var(b, a.first);
    a.whole = row_tile_size(b, &s->at, ptx_cvt(b, PTX_U32, ptx_shr(b, s->args.k, 8)));
    if (a.way->is_guarded || codes_have_raw_scales(b, c))
        a.bad = ptx_var(b, ptx_u32(b, 0));
    for (unsigned i = 0; i < a.depth * s->lanes * CHUNK * code_words(c); i++)
        a.words[i / code_words(c) / CHUNK / s->lanes][i / code_words(c) / CHUNK % s->lanes]
               [i / code_words(c) % CHUNK][i % code_words(c)] = ptx_var(b, ptx_u32(b, 0));
    if (codes_have_one_group(s->spec)) {
        group_values groups[CODE_COLUMNS];
        for (unsigned k = 0; k < s->width; k++)
            groups[k] = s->w.matrix.q.only;
        a.only = prepare_all(b, s, &a, groups);
    }
    return a;
}

/* Loads the codes of a round, if it exists. */
static void fetch_codes(ptx_builder *b, const columns *s, const codes_ahead *a, unsigned slot, ptx_val exists)
{
    ptx_val from = a->at;
    for (unsigned l = 0; l < s->lanes; l++)
        for (unsigned i = 0; i < CHUNK; i++) {
            if (l + i)
                from = ptx_add(b, from, a->stride);
            ptx_when(b, exists);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, from, 0, a->words[slot][l][i],
                            (int)code_words(&s->w.coding));
        }
    ptx_assign(b, a->at, ptx_mad(b, a->stride, ptx_u64(b, ROUND), a->at));
}

/* Where the numbers of the span of k (u32, within the window) lie for a thread (u32): in planes of four
 * columns, thread by thread. */
static ptx_val numbers_at(ptx_builder *b, const columns *s, ptx_val k, ptx_val thread)
{
    const coding *c = &s->w.coding;
    ptx_val slot = ptx_shr(b, k, ceil_log2(span_in(c, s->x.rounds)));
    return ptx_mad(b, slot, (int)slot_bytes(c, s->across), ptx_mad(b, thread, LOAD_BYTES, s->scratch));
}

static int plane_of(const columns *s, unsigned number, unsigned k)
{
    return (int)((number * (s->width / QUAD) + k / QUAD) * s->across * LOAD_BYTES);
}

/* E4M3 scales of the thread's columns, too small by 2^RAW_SCALE_EXPONENT: a byte that is shifted to the top,
 * then down again with its sign, has the fields of the f32 in place, except for the exponent's bias. A NaN
 * is rejected. */
static void load_raw_scales(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val row,
                            group_values *groups)
{
    ptx_val group = emit_divide(b, row, s->spec->stored.group_size), words[CODE_COLUMNS / QUAD];
    ptx_val number = ptx_mad(b, group, s->w.matrix.columns, s->column);
    emit_load_words(b, ptx_add(b, s->w.matrix.q.side.scale, number), 0, s->width / QUAD, words);
    for (unsigned q = 0; q < s->width / QUAD; q++) {
        ptx_val carried = ptx_add(b, ptx_and(b, words[q], ptx_u32(b, 0x7F7F7F7F)), ptx_u32(b, 0x01010101));
        ptx_assign(b, a->bad,
                   ptx_lop3(b, carried, ptx_u32(b, 0x80808080), a->bad, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C));
        for (unsigned i = 0; i < QUAD; i++) {
            ptx_val top = i == QUAD - 1 ? words[q] : ptx_shl(b, words[q], 24 - 8 * i);
            ptx_val fields =
                ptx_and(b, ptx_shr(b, ptx_as(b, PTX_S32, top), 4), ptx_s32(b, (int32_t)0x87F00000));
            groups[q * QUAD + i] = (group_values){.scale = ptx_as(b, PTX_F32, fields)};
        }
    }
}

/* Stages the numbers of all spans of the window that begins at round `first` (u32): each thread those of
 * its columns, for some spans. */
static void stage_numbers(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val first)
{
    const coding *c = &s->w.coding;
    const unsigned span = span_in(c, s->x.rounds), slots = s->x.rounds * ROUND / span;
    ptx_val begin = ptx_mul_wide(b, first, ptx_u32(b, ROUND));
    ptx_val slot = ptx_for(b, ptx_shr(b, ptx_tid_x(b), ceil_log2(s->across)), (int)slots,
                           (int)(COLUMNS_WARPS * WARP / s->across));
    ptx_val k = ptx_mul(b, slot, (int)span), row = ptx_add(b, begin, ptx_cvt(b, PTX_U64, k));
    ptx_if(b, ptx_setp(b, PTX_LT, row, s->args.k));
    group_values groups[CODE_COLUMNS];
    if (codes_have_raw_scales(b, c))
        load_raw_scales(b, s, a, row, groups);
    else
        matrix_row_groups(b, &s->w.matrix, row, s->column, s->width, groups);
    code_numbers n = prepare_all(b, s, a, groups);
    ptx_val to = numbers_at(b, s, k, s->thread);
    for (unsigned j = 0; j < a->way->numbers; j++)
        for (unsigned q = 0; q < s->width; q += QUAD)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, plane_of(s, j, q), &n.at[j][q], QUAD);
    ptx_end_if(b);
    ptx_end_for(b);
}

static code_numbers numbers_of(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val k)
{
    if (codes_have_one_group(s->spec))
        return a->only;
    code_numbers n;
    ptx_val at = numbers_at(b, s, k, s->thread);
    for (unsigned j = 0; j < a->way->numbers; j++)
        for (unsigned q = 0; q < s->width; q += QUAD)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, plane_of(s, j, q), &n.at[j][q], QUAD);
    return n;
}

/* Adds the chunks of lanes [from, end), whose numbers are those of k (u32, within the window). */
static void add_chunks(ptx_builder *b, const columns *s, const codes_ahead *a,
                       const ptx_val words[][CHUNK][CODE_WORDS], ptx_val k, unsigned from, unsigned end,
                       ptx_val x_at)
{
    const code_numbers n = numbers_of(b, s, a, k);
    for (unsigned i = from * CHUNK; i < end * CHUNK; i += s->together) {
        column_values w;
        for (unsigned j = 0; j < s->together; j++) {
            const ptx_val *whole = words[i / CHUNK][i % CHUNK + j];
            ptx_val half = a->shift.kind == PTX_NOTHING ? (ptx_val){0} : ptx_shr(b, whole[0], a->shift);
            a->way->decode(b, s, a->shift.kind == PTX_NOTHING ? whole : &half, &n, w.at[j]);
        }
        columns_add_rows(b, s, &w, i / CHUNK, i % CHUNK, x_at);
    }
}

/* Adds the rounds of a window from `first` on; they keep their slots because windows are multiples of the
 * depth. */
static void add_window(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val first, ptx_val end)
{
    ptx_val x_at = ptx_var(b, columns_x_begin(b, s)), k = ptx_var(b, ptx_mul(b, s->first_lane, CHUNK));
    ptx_val r = ptx_for(b, first, end, (int)a->depth);
    for (unsigned i = 0; i < a->depth; i++) {
        if (i) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, r, i), end));
        }
        add_chunks(b, s, a, a->words[i], i ? ptx_add(b, k, i * ROUND) : k, 0, s->lanes,
                   i ? ptx_add(b, x_at, i * s->x.round_bytes) : x_at);
        fetch_codes(b, s, a, i, ptx_setp(b, PTX_LT, ptx_add(b, r, i + a->depth), a->whole));
    }
    for (unsigned i = 1; i < a->depth; i++)
        ptx_end_if(b);
    ptx_assign(b, k, ptx_add(b, k, a->depth * ROUND));
    ptx_assign(b, x_at, ptx_add(b, x_at, a->depth * s->x.round_bytes));
    ptx_end_for(b);
}

/* Adds the chunks of the last round, if that is not whole. */
static void add_last(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val first, ptx_val end)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp_and(b, PTX_GE, a->whole, first, ptx_setp(b, PTX_LT, a->whole, end)));
    ptx_val inside = ptx_sub(b, a->whole, first), mine = ptx_mul(b, s->first_lane, CHUNK);
    ptx_val x_at = ptx_mad(b, inside, s->x.round_bytes, columns_x_begin(b, s));
    ptx_val rows = ptx_mul_wide(b, a->whole, ptx_u32(b, ROUND)),
            row = ptx_add(b, rows, ptx_cvt(b, PTX_U64, mine));
    ptx_val at = ptx_mad(b, rows, a->stride, a->first);
    for (unsigned l = 0; l < s->lanes; l++) {
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, row, ptx_u64(b, l * CHUNK)), s->args.k));
        ptx_val words[COLUMNS_LANES][CHUNK][CODE_WORDS];
        ptx_val from = ptx_mad(b, a->stride, ptx_u64(b, l * CHUNK), at);
        for (unsigned i = 0; i < CHUNK; i++) {
            emit_load_words(b, from, 0, code_words(&s->w.coding), words[l][i]);
            from = ptx_add(b, from, a->stride);
        }
        add_chunks(b, s, a, words, ptx_mad(b, inside, ROUND, mine), l, l + 1, x_at);
        ptx_end_if(b);
    }
    ptx_end_if(b);
}

/* Whether any group was rejected or x was too large, anywhere in the thread block. */
static ptx_val went_wrong(ptx_builder *b, const columns *s, const codes_ahead *a)
{
    if (a->bad.kind == PTX_NOTHING)
        return (ptx_val){0};
    ptx_val wrong = ptx_setp(b, PTX_NE, a->bad, 0);
    if (s->x.largest.kind != PTX_NOTHING)
        wrong = ptx_setp_or(b, PTX_GE, s->x.largest, ptx_f32(b, ldexpf(1, PLACED_X_LIMIT)), wrong);
    return ptx_bar_red_or(b, 0, wrong);
}

ptx_val codes_pass(ptx_builder *b, const columns *s)
{
    codes_ahead a = codes_begin(b, s);
    for (unsigned i = 0; i < a.depth; i++)
        fetch_codes(b, s, &a, i, ptx_setp(b, PTX_GT, a.whole, (int)i));
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->rounds, s->x.rounds);
    ptx_syncthreads(b);
    x_window_stage(b, &s->x, &s->at, first, s->x.shift != 0);
    if (!codes_have_one_group(s->spec))
        stage_numbers(b, s, &a, first);
    ptx_syncthreads(b);
    ptx_val end = ptx_min(b, ptx_add(b, first, s->x.rounds), s->rounds);
    add_window(b, s, &a, first, ptx_min(b, end, a.whole));
    add_last(b, s, &a, first, end);
    ptx_end_for(b);
    return went_wrong(b, s, &a);
}
