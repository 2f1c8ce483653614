/* Codes of 4 and 8 bits that lie along N, in a product: AWQ's words, bytes, words in rows. Eight neighbouring codes of a row of
 * the matrix, a word or two, are the columns of a thread; so a column's code has the same place in every word, and what
 * decoding needs of a group is few numbers for each column. They are staged in shared memory with the window of x. Words are
 * loaded ahead. */
#include "kernels/gemm/columns.h"

#include "kernels/gemm/block_values.h"

#include <math.h>

enum {
    WIDTH = COLUMNS_WIDTH_MAX,
    WORDS_MAX = 2,                /* of a thread in a row of the matrix */
    SPAN_LEAST = 16,              /* k that have the same numbers */
    NUMBERS_MAX = 2,              /* of a column */
    STAGED_MAX = 16 * 1024,       /* bytes of numbers */
    WORDS_AHEAD = 32,             /* of a thread, of one row of x */
    ENTRIES = 256,                /* of the table: what a byte stands for */
    ENTRY_BYTES = 8 * LOAD_BYTES, /* copies for half a warp, or a whole one */
    ENTRY_PITCH = 256,
    TABLE_BYTES = (ENTRIES - 1) * ENTRY_PITCH + ENTRY_BYTES,
    SCALE_LEAST = -76, /* exponents of scales that the fused decode serves */
    SCALE_MOST = 26,
    ZERO_MOST = 4096
};

typedef struct code_numbers {
    ptx_val at[NUMBERS_MAX][WIDTH]; /* f32 */
} code_numbers;

/* How codes become f32. */
typedef struct code_way {
    unsigned numbers;    /* of each column, for each group */
    unsigned x_exponent; /* weights are too small by this power of two, and x is as much too large */
    bool is_guarded;     /* some numbers do not serve */
    bool has_table;
    /* Makes the numbers of column k; a predicate that is false where they do not serve, or nothing: they always do. */
    ptx_val (*prepare)(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                       ptx_val *numbers);
    /* A row of the matrix: f32, or of pairs f32x2 in the first half. */
    void (*decode)(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                   ptx_val *out);
} code_way;

/* ---- Where codes are ---- */

static unsigned bits_of(const coding *c)
{
    return c->format->facts.bits;
}

static unsigned words_of(const coding *c)
{
    return WIDTH * bits_of(c) / 32;
}

/* The bit of column k in its word. */
static unsigned position_of(const coding *c, unsigned k)
{
    if (bits_of(c) == 8)
        return quad_position(c, k % QUAD);
    return c->spec->layout == QDNN_LAYOUT_AWQ ? stream_position(4, true, k % QUAD) + 8 * (k / QUAD)
                                              : quad_position(c, k % QUAD) + 16 * (k / QUAD);
}

/* Upper codes are shifted down: then all fit under an exponent, as bits of a fraction. */
static unsigned shift_of(const coding *c, unsigned k)
{
    const unsigned position = position_of(c, k);
    return bits_of(c) == 8 ? (position >= 16 ? 16 : 0) : position >= 20 ? 12 : 0;
}

static unsigned place_of(const coding *c, unsigned k)
{
    return position_of(c, k) - shift_of(c, k);
}

static ptx_val power_of_two(ptx_builder *b, int e)
{
    return ptx_bits(b, PTX_F32, (uint64_t)(e + 127) << 23);
}

/* The codes of a row where they are, under an exponent or none: as f32. Bits of two's complement are flipped on the way. */
static void placed_codes(ptx_builder *b, const columns *s, const ptx_val *words, bool under_exponent,
                         ptx_val out[WIDTH])
{
    const coding *c = &s->w.coding;
    const uint32_t mask = (1u << bits_of(c)) - 1, sign = 1u << (bits_of(c) - 1);
    ptx_val shifted[WORDS_MAX];
    for (unsigned w = 0; w < words_of(c); w++)
        shifted[w] = ptx_shr(b, words[w], bits_of(c) == 8 ? 16 : 12);
    for (unsigned k = 0; k < WIDTH; k++) {
        const unsigned place = place_of(c, k), word = bits_of(c) == 8 ? k / QUAD : 0;
        const uint32_t flip = s->spec->code == QDNN_CODE_TWOS_COMPLEMENT ? sign << place : 0;
        const uint32_t other = flip | (under_exponent ? (150u - place) << 23 : 0);
        ptx_val from = shift_of(c, k) ? shifted[word] : words[word], bits = ptx_u32(b, mask << place);
        out[k] =
            ptx_as(b, PTX_F32,
                   other ? ptx_lop3(b, from, bits, ptx_u32(b, other), (PTX_LOP_A & PTX_LOP_B) ^ PTX_LOP_C)
                         : ptx_and(b, from, bits));
    }
}

/* Columns k and k + 1 of something, where sums lie in pairs. */
static ptx_val value_of(ptx_builder *b, const columns *s, const ptx_val *of, unsigned k)
{
    return s->pairs ? ptx_pack2(b, PTX_F32X2, of[k], of[k + 1]) : of[k];
}

/* What codes are larger by than the integers that they stand for. */
static float offset_of(const columns *s)
{
    return s->spec->code == QDNN_CODE_UNSIGNED ? 0 : (float)(1u << (bits_of(&s->w.coding) - 1));
}

static ptx_val zero_with_offset(ptx_builder *b, const columns *s, const group_values *group)
{
    if (!format_has_zero(s->w.coding.format))
        return ptx_f32(b, offset_of(s));
    return offset_of(s) != 0 ? ptx_add(b, group->zero, ptx_f32(b, offset_of(s))) : group->zero;
}

/* ---- Integers whose zero times scale is exact: one fma ----
 *
 * The bits of a code at place p are the f32 q * 2^(p - 149). fma.rn of it, scale * 2^(149 - p) and -zero * scale is
 * (q - zero) * scale, rounded once. The powers of two are shared with x, as in gemv_decode.c. */

static ptx_val fused_prepare(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                             ptx_val *numbers)
{
    const int exponent = 149 - X_SHIFT - (int)place_of(&s->w.coding, k);
    ptx_val scale = group->scale, size = ptx_abs(b, scale), zero = zero_with_offset(b, s, group);
    numbers[0] = ptx_mul(b, scale, power_of_two(b, exponent));
    numbers[1] = ptx_mul(b, zero, ptx_mul(b, scale, ptx_f32(b, -ldexpf(1, -X_SHIFT))));
    ptx_val serves =
        ptx_setp_or(b, PTX_EQ, size, 0.0f, ptx_setp(b, PTX_GE, size, power_of_two(b, SCALE_LEAST)));
    serves = ptx_setp_and(b, PTX_LE, size, power_of_two(b, SCALE_MOST), serves);
    if (!format_has_zero(s->w.coding.format))
        return serves;
    return ptx_setp_and(b, PTX_LE, ptx_abs(b, zero), ptx_f32(b, ZERO_MOST), serves);
}

static void fused_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    ptx_val codes[WIDTH];
    placed_codes(b, s, words, false, codes);
    for (unsigned k = 0; k < WIDTH; k += 1 + s->pairs)
        *out++ =
            ptx_fma(b, value_of(b, s, codes, k), value_of(b, s, n->at[0], k), value_of(b, s, n->at[1], k));
}

static const code_way fused = {.numbers = 2,
                               .x_exponent = X_SHIFT,
                               .is_guarded = true,
                               .prepare = fused_prepare,
                               .decode = fused_decode};

/* ---- Integers with other zeros: the difference of code and zero, as in columns_words.c ---- */

static ptx_val apart_prepare(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                             ptx_val *numbers)
{
    ptx_val zero = zero_with_offset(b, s, group);
    numbers[0] = group->scale;
    numbers[1] = ptx_sub(b, ptx_f32(b, -ldexpf(1, 23 - (int)place_of(&s->w.coding, k))), zero);
    return ptx_setp(b, PTX_LT, ptx_abs(b, zero), ptx_f32(b, 0x1p22f));
}

static void apart_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    ptx_val codes[WIDTH];
    placed_codes(b, s, words, true, codes);
    for (unsigned k = 0; k < WIDTH; k += 1 + s->pairs) {
        ptx_val difference = ptx_add(b, value_of(b, s, codes, k), value_of(b, s, n->at[1], k));
        *out++ = ptx_mul(b, difference, value_of(b, s, n->at[0], k));
    }
}

static const code_way apart = {
    .numbers = 2, .is_guarded = true, .prepare = apart_prepare, .decode = apart_decode};

/* ---- Other codes: numbers in units of scales, by the format's own decode or by a table ---- */

static ptx_val units_prepare(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                             ptx_val *numbers)
{
    (void)b, (void)s, (void)k;
    numbers[0] = group->scale;
    return (ptx_val){0};
}

static void scale_units(ptx_builder *b, const columns *s, const ptx_val *units, const code_numbers *n,
                        ptx_val *out)
{
    const quantized *q = &s->w.matrix.q;
    ptx_val scaled[WIDTH];
    for (unsigned k = 0; k < WIDTH; k++) {
        const group_values group = {.scale = n->at[0][k]};
        scaled[k] = group_decode(b, &q->coding, &q->side, &group, units[k]);
    }
    for (unsigned k = 0; k < WIDTH; k += 1 + s->pairs)
        *out++ = value_of(b, s, scaled, k);
}

static void units_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    const coding *c = &s->w.coding;
    const codec *codec = c->format->codec;
    const codec_state *state = &s->w.matrix.q.state;
    ptx_val units[WIDTH];
    for (unsigned k = 0; k < WIDTH; k++)
        if (bits_of(c) == 4)
            units[k] = codec->unit(b, c, state, words[0], position_of(c, k));
        else if (!codec->units_of_bytes)
            units[k] = codec->unit(b, c, state, words[k / QUAD], position_of(c, k));
        else if (k % QUAD == 0)
            codec->units_of_bytes(b, c, state, words[k / QUAD], &units[k]);
    scale_units(b, s, units, n, out);
}

static const code_way by_units = {.numbers = 1, .prepare = units_prepare, .decode = units_decode};

/* An entry has the numbers of a byte, two of 4 bits in the order of columns or one of 8; a permutation of bytes makes an
 * address. Threads of half a warp, or of a warp, read copies of their own: no two of them want different words of a bank. */
static void table_decode(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                         ptx_val *out)
{
    const unsigned each = 8 / bits_of(&s->w.coding);
    ptx_val units[WIDTH];
    for (unsigned k = 0; k < WIDTH; k += each) {
        const unsigned byte = k / each;
        ptx_val offset = ptx_prmt(b, words[byte / 4], s->copy, ptx_u32(b, 0x5504 | (byte % 4) << 4));
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, ptx_add(b, offset, s->table), 0, units + k,
                   (int)each);
    }
    scale_units(b, s, units, n, out);
}

static const code_way by_table = {
    .numbers = 1, .has_table = true, .prepare = units_prepare, .decode = table_decode};

/* A thread fills an entry, all copies of it, in an order that differs from its neighbours'. */
void codes_open(ptx_builder *b, columns *s)
{
    enum { VECTORS = ENTRY_BYTES / LOAD_BYTES };
    const coding *c = &s->w.coding;
    const codec_state *state = &s->w.matrix.q.state;
    if (s->table.kind == PTX_NOTHING)
        return;
    const unsigned size = bits_of(c) == 4 ? 8 : 4;
    ptx_val tid = ptx_tid_x(b), entry[4];
    for (unsigned i = 0; i < 4; i++)
        entry[i] = i >= size / 4
                       ? entry[i % (size / 4)]
                       : c->format->codec->unit(b, c, state, tid, bits_of(c) == 4 ? position_of(c, i) : 0);
    ptx_val own =
        ptx_mad(b, ptx_and(b, tid, VECTORS - 1), LOAD_BYTES, ptx_mad(b, tid, ENTRY_PITCH, s->table));
    for (unsigned i = 0; i < VECTORS; i++) /* entries are aligned to their size */
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, i ? ptx_xor(b, own, (int)(i * LOAD_BYTES)) : own, 0,
                   entry, 4);
    s->copy = ptx_mul(b, ptx_and(b, s->lane, (int)(ENTRY_BYTES / size - 1)), (int)size);
}

/* ---- Which way ---- */

static bool scale_is_narrow(const kernel_spec *spec)
{
    return spec->scale == QDNN_SCALE_F16 || spec->scale == QDNN_SCALE_BF16;
}

static bool has_one_group(const kernel_spec *spec)
{
    return spec->groups == QDNN_GROUPS_DEFAULT || spec->channels == 1;
}

/* The largest power of two that divides groups: k from a multiple of it on have the same numbers. */
static unsigned span_of_groups(const kernel_spec *spec)
{
    const uint64_t size = spec->group_size & (~spec->group_size + 1);
    return size < 1u << 16 ? (unsigned)size : 1u << 16;
}

static bool groups_serve(const kernel_spec *spec)
{
    return has_one_group(spec) || (spec->groups == QDNN_GROUPS_COLUMNS && !spec->group_index &&
                                   !spec->nested && span_of_groups(spec) >= SPAN_LEAST);
}

static const code_way *integer_way(const coding *c)
{
    const kernel_spec *spec = c->spec;
    switch (c->format->facts.zero_kind) {
    case QDNN_ZERO_NONE:
        return spec->groups == QDNN_GROUPS_DEFAULT ? NULL : &fused;
    case QDNN_ZERO_POINT:
        return !columns_zero_is_integer(spec) ? NULL : scale_is_narrow(spec) ? &fused : &apart;
    default:
        return NULL;
    }
}

/* Null: there is none. E4M3 is converted from sm_89 on; on targets with little shared memory there is no table. */
static const code_way *way_of(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const unsigned bits = bits_of(c);
    const bool is_bytes = spec->layout == QDNN_LAYOUT_BYTES || spec->layout == QDNN_LAYOUT_WORDS_ROWS;
    if (format_is_plain(c->format) || (bits != 4 && bits != 8) || !groups_serve(spec) ||
        !(is_bytes || (spec->layout == QDNN_LAYOUT_AWQ && bits == 4)))
        return NULL;
    if (c->format->codec == &codec_integer)
        return integer_way(c);
    if (format_has_zero(c->format) || spec->layout == QDNN_LAYOUT_AWQ)
        return NULL;
    return bits == 4 || c->format->codec == &codec_e4m3 ? &by_table : &by_units;
}

bool codes_have_table(const ptx_builder *b, const coding *c)
{
    const ptx_sm *sm = ptx_target(b);
    return way_of(c)->has_table && sm && sm->shared_block > 64 * 1024 && (bits_of(c) == 4 || sm->number < 89);
}

static const code_way *way_for(const ptx_builder *b, const coding *c)
{
    return way_of(c)->has_table && !codes_have_table(b, c) ? &by_units : way_of(c);
}

bool codes_are_cheap(const coding *c)
{
    return c->spec->reduction == KERNEL_K_ROWS && way_of(c) != NULL;
}

unsigned codes_dynamic_bytes(const coding *c)
{
    return way_of(c)->has_table ? TABLE_BYTES : 0;
}

unsigned codes_x_exponent(const coding *c)
{
    return way_of(c)->x_exponent;
}

ptx_val codes_are_aligned(ptx_builder *b, const columns *s)
{
    return emit_aligned(b, s->w.codes, 4 * words_of(&s->w.coding));
}

/* ---- Numbers of groups ---- */

static unsigned span_in(const coding *c, unsigned rounds)
{
    const unsigned span = span_of_groups(c->spec);
    return span < rounds * ROUND ? span : rounds * ROUND;
}

static unsigned slot_bytes(const coding *c, unsigned across)
{
    return way_of(c)->numbers * WIDTH * 4 * across;
}

unsigned codes_scratch_bytes(const coding *c, unsigned across, unsigned rounds)
{
    return has_one_group(c->spec) ? 0 : rounds * ROUND / span_in(c, rounds) * slot_bytes(c, across);
}

unsigned codes_window(const coding *c, unsigned most)
{
    const unsigned across = c->spec->gated ? 16 : 8;
    unsigned rounds = most;
    while (rounds > 1 && codes_scratch_bytes(c, across, rounds) > STAGED_MAX)
        rounds /= 2;
    return rounds;
}

/* ---- The pass ---- */

typedef struct codes_ahead {
    const code_way *way;
    unsigned depth;                                    /* rounds */
    ptx_val stride;                                    /* u32: bytes of a row of the matrix */
    ptx_val first;                                     /* pointer: the thread's codes in round 0 */
    ptx_val at;                                        /* variable: in the round that is loaded next */
    ptx_val whole;                                     /* u32: rounds that are whole */
    ptx_val bad;                                       /* variable u32: not 0 where numbers did not serve */
    code_numbers only;                                 /* where there is one group */
    ptx_val words[4][COLUMNS_LANES][CHUNK][WORDS_MAX]; /* variables */
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
    for (unsigned k = 0; k < WIDTH; k++) {
        ptx_val numbers[NUMBERS_MAX];
        note(b, a, a->way->prepare(b, s, k, &groups[k], numbers));
        for (unsigned i = 0; i < a->way->numbers; i++)
            n.at[i][k] = numbers[i];
    }
    return n;
}

static codes_ahead codes_begin(ptx_builder *b, const columns *s)
{
    const coding *c = &s->w.coding;
    codes_ahead a = {.way = way_for(b, c), .depth = WORDS_AHEAD / (s->lanes * CHUNK * words_of(c))};
    while (a.depth > 1 && (s->rows * a.depth > 8 || a.depth > s->x.rounds))
        a.depth /= 2;
    ptx_val row_bytes = ptx_shr(b, ptx_mul(b, s->w.matrix.columns, ptx_u64(b, bits_of(c))), 3);
    ptx_val before = ptx_shr(b, ptx_mul(b, s->column, ptx_u64(b, bits_of(c))), 3);
    a.stride = ptx_cvt(b, PTX_U32, row_bytes);
    ptx_val row = ptx_cvt(b, PTX_U64, ptx_mul(b, s->first_lane, CHUNK));
    a.first = ptx_add(b, ptx_mad(b, row, row_bytes, s->w.codes), before);
    a.at = ptx_var(b, a.first);
    a.whole = row_tile_size(b, &s->at, ptx_cvt(b, PTX_U32, ptx_shr(b, s->args.k, 8)));
    if (a.way->is_guarded)
        a.bad = ptx_var(b, ptx_u32(b, 0));
    for (unsigned i = 0; i < a.depth * s->lanes * CHUNK * words_of(c); i++)
        a.words[i / words_of(c) / CHUNK / s->lanes][i / words_of(c) / CHUNK % s->lanes]
               [i / words_of(c) % CHUNK][i % words_of(c)] = ptx_var(b, ptx_u32(b, 0));
    if (has_one_group(s->spec)) {
        group_values groups[WIDTH];
        for (unsigned k = 0; k < WIDTH; k++)
            groups[k] = s->w.matrix.q.only;
        a.only = prepare_all(b, s, &a, groups);
    }
    return a;
}

static ptx_val row_address(ptx_builder *b, const codes_ahead *a, ptx_val at, unsigned row)
{
    return row ? ptx_mad_wide(b, a->stride, ptx_u32(b, row), at) : at;
}

/* The codes of a round, where it exists. */
static void fetch_codes(ptx_builder *b, const columns *s, const codes_ahead *a, unsigned slot, ptx_val exists)
{
    for (unsigned l = 0; l < s->lanes; l++)
        for (unsigned i = 0; i < CHUNK; i++) {
            ptx_val from = row_address(b, a, a->at, l * CHUNK + i);
            ptx_when(b, exists);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, from, 0, a->words[slot][l][i],
                            (int)words_of(&s->w.coding));
        }
    ptx_assign(b, a->at, ptx_mad_wide(b, a->stride, ptx_u32(b, ROUND), a->at));
}

/* Where the numbers of the span with k (u32, of the window) lie, of a thread (u32): planes of four columns, thread by thread. */
static ptx_val numbers_at(ptx_builder *b, const columns *s, ptx_val k, ptx_val thread)
{
    const coding *c = &s->w.coding;
    ptx_val slot = ptx_shr(b, k, ceil_log2(span_in(c, s->x.rounds)));
    return ptx_mad(b, slot, (int)slot_bytes(c, s->across), ptx_mad(b, thread, LOAD_BYTES, s->scratch));
}

static int plane_of(const columns *s, unsigned number, unsigned k)
{
    return (int)((number * (WIDTH / QUAD) + k / QUAD) * s->across * LOAD_BYTES);
}

/* The numbers of all spans of the window that begins at round `first` (u32): a thread has eight columns of a span. */
static void stage_numbers(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val first)
{
    const coding *c = &s->w.coding;
    const unsigned span = span_in(c, s->x.rounds), slots = s->x.rounds * ROUND / span;
    ptx_val begin = ptx_mul_wide(b, first, ptx_u32(b, ROUND));
    ptx_val i = ptx_for(b, ptx_tid_x(b), (int)(slots * s->across), COLUMNS_WARPS * WARP);
    ptx_val thread = ptx_and(b, i, (int)s->across - 1),
            k = ptx_mul(b, ptx_shr(b, i, ceil_log2(s->across)), (int)span);
    ptx_val row = ptx_add(b, begin, ptx_cvt(b, PTX_U64, k));
    ptx_if(b, ptx_setp(b, PTX_LT, row, s->args.k));
    group_values groups[WIDTH];
    matrix_row_groups(b, &s->w.matrix, row, columns_of_thread(b, s, thread), WIDTH, groups);
    code_numbers n = prepare_all(b, s, a, groups);
    ptx_val to = numbers_at(b, s, k, thread);
    for (unsigned j = 0; j < a->way->numbers; j++)
        for (unsigned q = 0; q < WIDTH; q += QUAD)
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, plane_of(s, j, q), &n.at[j][q], QUAD);
    ptx_end_if(b);
    ptx_end_for(b);
}

static code_numbers numbers_of(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val k)
{
    if (has_one_group(s->spec))
        return a->only;
    code_numbers n;
    ptx_val at = numbers_at(b, s, k, s->thread);
    for (unsigned j = 0; j < a->way->numbers; j++)
        for (unsigned q = 0; q < WIDTH; q += QUAD)
            ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, plane_of(s, j, q), &n.at[j][q], QUAD);
    return n;
}

static void add_chunk(ptx_builder *b, const columns *s, const codes_ahead *a,
                      const ptx_val words[CHUNK][WORDS_MAX], const code_numbers *n, unsigned lane,
                      ptx_val x_at)
{
    for (unsigned half = 0; half < 2; half++) {
        column_values w;
        for (unsigned i = 0; i < COLUMNS_HALF; i++)
            a->way->decode(b, s, words[half * COLUMNS_HALF + i], n, w.at[i]);
        columns_add_half(b, s, &w, lane, half, x_at);
    }
}

/* Rounds of a window from `first` on; they keep their slots because windows are multiples of the depth. */
static void add_window(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val first, ptx_val end)
{
    ptx_val x_at = ptx_var(b, columns_x_begin(b, s)), k = ptx_var(b, ptx_mul(b, s->first_lane, CHUNK));
    ptx_val r = ptx_for(b, first, end, (int)a->depth);
    for (unsigned i = 0; i < a->depth; i++) {
        if (i) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, r, i), end));
        }
        code_numbers n = numbers_of(b, s, a, i ? ptx_add(b, k, i * ROUND) : k);
        for (unsigned l = 0; l < s->lanes; l++)
            add_chunk(b, s, a, a->words[i][l], &n, l, i ? ptx_add(b, x_at, i * s->x.round_bytes) : x_at);
        fetch_codes(b, s, a, i, ptx_setp(b, PTX_LT, ptx_add(b, r, i + a->depth), a->whole));
    }
    for (unsigned i = 1; i < a->depth; i++)
        ptx_end_if(b);
    ptx_assign(b, k, ptx_add(b, k, a->depth * ROUND));
    ptx_assign(b, x_at, ptx_add(b, x_at, a->depth * s->x.round_bytes));
    ptx_end_for(b);
}

/* The chunks of the last round, where it is not whole. */
static void add_last(ptx_builder *b, const columns *s, const codes_ahead *a, ptx_val first, ptx_val end)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp_and(b, PTX_GE, a->whole, first, ptx_setp(b, PTX_LT, a->whole, end)));
    ptx_val inside = ptx_sub(b, a->whole, first), mine = ptx_mul(b, s->first_lane, CHUNK);
    ptx_val x_at = ptx_mad(b, inside, s->x.round_bytes, columns_x_begin(b, s));
    ptx_val rows = ptx_mul_wide(b, a->whole, ptx_u32(b, ROUND)),
            row = ptx_add(b, rows, ptx_cvt(b, PTX_U64, mine));
    ptx_val at = ptx_mad(b, rows, ptx_cvt(b, PTX_U64, a->stride), a->first);
    for (unsigned l = 0; l < s->lanes; l++) {
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, row, ptx_u64(b, l * CHUNK)), s->args.k));
        ptx_val words[CHUNK][WORDS_MAX];
        for (unsigned i = 0; i < CHUNK; i++)
            emit_load_words(b, row_address(b, a, at, l * CHUNK + i), 0, words_of(&s->w.coding), words[i]);
        code_numbers n = numbers_of(b, s, a, ptx_mad(b, inside, ROUND, ptx_add(b, mine, l * CHUNK)));
        add_chunk(b, s, a, words, &n, l, x_at);
        ptx_end_if(b);
    }
    ptx_end_if(b);
}

/* Whether numbers, or x, did not serve; in one block of threads all agree. */
static ptx_val went_wrong(ptx_builder *b, const columns *s, const codes_ahead *a)
{
    if (!a->way->is_guarded)
        return (ptx_val){0};
    ptx_val wrong = ptx_setp(b, PTX_NE, a->bad, 0);
    if (s->x.largest.kind != PTX_NOTHING)
        wrong = ptx_setp_or(b, PTX_GE, s->x.largest, ptx_f32(b, ldexpf(1, X_EXPONENT_MAX)), wrong);
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
    if (!has_one_group(s->spec))
        stage_numbers(b, s, &a, first);
    ptx_syncthreads(b);
    ptx_val end = ptx_min(b, ptx_add(b, first, s->x.rounds), s->rounds);
    add_window(b, s, &a, first, ptx_min(b, end, a.whole));
    add_last(b, s, &a, first, end);
    ptx_end_for(b);
    return went_wrong(b, s, &a);
}
