/* Interleaved words of 4-bit integers: a word is a chunk of a column. Words are loaded ahead; if groups
 * are long, their scales and zeros are staged in shared memory together with the window of x.
 *
 * (code - zero) * scale: the code's bits, put under an exponent, are a number like 2^23 + code.
 * Subtracting 2^23 + zero from it is exact while the zero is below 2^22, and gives the difference that the
 * contract multiplies by the scale. */
#include "kernels/gemm/columns.h"

enum {
    SLOTS = 2,
    ROWS_MAX = 2, /* there are no registers for more */
    CODE_BITS = 4,
    WIDTH = 4,
    PLACES = 5
};

static bool zero_may_be_large(const coding *c)
{
    const kernel_spec *spec = c->spec;
    return format_has_zero(c->format) && !spec->stored.zero_packed &&
           (spec->stored.zero == QDNN_DATA_U32 || spec->stored.zero == QDNN_DATA_I32);
}

bool words_are_cheap(const coding *c)
{
    const kernel_spec *spec = c->spec;
    return spec->product.tile_rows <= ROWS_MAX && c->format->codec->is_integer && codes_are_nibbles(c) &&
           spec->stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED &&
           spec->stored.groups == QDNN_GROUPS_COLUMNS && c->format->facts.zero_kind != QDNN_ZERO_MINIMUM &&
           !spec->stored.global_scale && matrix_rows_share_groups(spec, COLUMNS_STRETCH) &&
           (!format_has_zero(c->format) || zero_is_integer(spec));
}

/* ---- Groups ---- */

/* The scale of each column, and its zero plus the offset of codes from the integers that they stand for. */
typedef struct word_groups {
    ptx_val scale[WIDTH], zero[WIDTH]; /* f32 */
} word_groups;

static word_groups load_groups(ptx_builder *b, const columns *s, ptx_val row)
{
    const coding *c = &s->w.coding;
    group_values each[WIDTH];
    word_groups out;
    matrix_row_groups(b, &s->w.matrix, row, s->column, WIDTH, each);
    for (unsigned k = 0; k < WIDTH; k++) {
        out.scale[k] = each[k].scale;
        out.zero[k] = placed_zero(b, c, &each[k]);
    }
    return out;
}

/* Staged groups: those of a window, one after another; each has the scales of the block's columns, then
 * their zeros. */
enum { GROUP_BYTES = 2 * WARP * WIDTH * 4 };

static bool groups_are_staged(const columns *s)
{
    const uint64_t size = s->spec->stored.group_size;
    return size >= 128 && size <= (uint64_t)s->x.rounds * ROUND && (size & (size - 1)) == 0 &&
           s->spec->stored.group_rows == 1;
}

static ptx_val group_address(ptx_builder *b, const columns *s, ptx_val k)
{
    ptx_val group = ptx_shr(b, k, ceil_log2(s->spec->stored.group_size));
    return ptx_mad(b, group, GROUP_BYTES, ptx_add(b, s->scratch, ptx_shl(b, s->lane, 4)));
}

/* Updates `largest` (variable f32, or empty), the largest |zero|. */
static void note_zeros(ptx_builder *b, const word_groups *g, ptx_val largest)
{
    for (unsigned k = 0; k < WIDTH && largest.kind != PTX_NOTHING; k++)
        ptx_assign(b, largest, ptx_max(b, largest, ptx_abs(b, g->zero[k])));
}

/* A warp stages every eighth group of the window that begins at round `first` (u32). */
static void stage_groups(ptx_builder *b, const columns *s, ptx_val first, ptx_val largest)
{
    const unsigned size = (unsigned)s->spec->stored.group_size, count = s->x.rounds * ROUND / size;
    ptx_val begin = ptx_mul_wide(b, first, ptx_u32(b, ROUND)), warp = ptx_shr(b, ptx_tid_x(b), 5);
    for (unsigned t = 0; t < (count + COLUMNS_WARPS - 1) / COLUMNS_WARPS; t++) {
        ptx_val number = ptx_add(b, warp, t * COLUMNS_WARPS), k = ptx_mul(b, number, size);
        ptx_val row = ptx_add(b, begin, ptx_cvt(b, PTX_U64, k));
        ptx_val exists = ptx_setp_and(b, PTX_LT, number, (int)count, ptx_setp(b, PTX_LT, row, s->args.k));
        ptx_uniform(b);
        ptx_if(b, exists);
        word_groups g = load_groups(b, s, row);
        ptx_val to = group_address(b, s, k);
        note_zeros(b, &g, largest);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, 0, g.scale, WIDTH);
        if (format_has_zero(s->w.coding.format))
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, GROUP_BYTES / 2, g.zero, WIDTH);
        ptx_end_if(b);
    }
}

/* The groups of the warp's stretch, at k `more` (u32) of the window and row `row` (u64) of the matrix. */
static word_groups groups_of(ptx_builder *b, const columns *s, ptx_val more, ptx_val row, ptx_val largest)
{
    if (!groups_are_staged(s)) {
        word_groups g = load_groups(b, s, row);
        note_zeros(b, &g, largest);
        return g;
    }
    word_groups g;
    ptx_val at = group_address(b, s, more);
    ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, 0, g.scale, WIDTH);
    if (format_has_zero(s->w.coding.format))
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, GROUP_BYTES / 2, g.zero, WIDTH);
    else
        for (unsigned k = 0; k < WIDTH; k++)
            g.zero[k] = ptx_f32(b, placed_offset(&s->w.coding));
    return g;
}

/* ---- Codes ---- */

/* What is added to codes under an exponent: per position of the nibble (f32), or for even and odd nibbles
 * (f16). */
typedef struct word_offsets {
    ptx_val at[PLACES][WIDTH];
} word_offsets;

static word_offsets offsets_of(ptx_builder *b, const word_groups *g)
{
    word_offsets out;
    const bool mixed = has_mixed_fma(b);
    for (unsigned i = 0; i < (mixed ? 2 : PLACES); i++)
        for (unsigned k = 0; k < WIDTH; k++)
            out.at[i][k] =
                ptx_sub(b, ptx_f32(b, -placed_surplus(mixed ? QDNN_DATA_F16 : QDNN_DATA_F32, CODE_BITS * i)),
                        g->zero[k]);
    return out;
}

/* code - zero for the codes of a word. */
static void differences_by_f32(ptx_builder *b, const columns *s, ptx_val word, const word_offsets *offsets,
                               unsigned k, ptx_val *out)
{
    const coding *c = &s->w.coding;
    const placed_moves *moves = placed_moves_one(c);
    placed_word from = placed_word_of(b, moves, word);
    for (unsigned i = 0; i < CHUNK; i++) {
        const unsigned place = placed_at(c, moves, CODE_BITS * i);
        ptx_val number = placed_code(b, c, from.copy[moves->of[i]], place, false);
        out[i] = ptx_add(b, number, offsets->at[place / CODE_BITS][k]);
    }
}

/* The same in pairs of f16, 1024 + code or 64 + code: nibbles i and i + 4 of a word are a pair. */
static void differences_by_f16(ptx_builder *b, const columns *s, ptx_val word, const word_offsets *offsets,
                               unsigned k, ptx_val *out)
{
    ptx_val high = ptx_shr(b, word, 8), one = ptx_bits(b, PTX_F16, 0x3C00);
    for (unsigned i = 0; i < CHUNK / 2; i++) {
        const unsigned place = CODE_BITS * (i % 2), places[2] = {place, place};
        ptx_val pair = placed_pair(b, &s->w.coding, QDNN_DATA_F16, i < 2 ? word : high, places), both[2];
        ptx_unpack(b, PTX_F16, pair, both, 2);
        for (unsigned h = 0; h < 2; h++)
            out[i + 4 * h] = ptx_fma(b, both[h], one, offsets->at[i % 2][k]);
    }
}

static void decode_words(ptx_builder *b, const columns *s, const ptx_val *words, const word_groups *g,
                         const word_offsets *offsets, column_values halves[2])
{
    ptx_val all[WIDTH][CHUNK];
    for (unsigned k = 0; k < WIDTH; k++)
        (has_mixed_fma(b) ? differences_by_f16 : differences_by_f32)(b, s, words[k], offsets, k, all[k]);
    for (unsigned i = 0; i < CHUNK; i++) {
        ptx_val *out = halves[i / COLUMNS_TOGETHER].at[i % COLUMNS_TOGETHER];
        for (unsigned k = 0; k < WIDTH; k += 1 + s->pairs)
            if (s->pairs)
                out[k / 2] = ptx_mul(b, ptx_pack2(b, PTX_F32X2, all[k][i], all[k + 1][i]),
                                     ptx_pack2(b, PTX_F32X2, g->scale[k], g->scale[k + 1]));
            else
                out[k] = ptx_mul(b, all[k][i], g->scale[k]);
    }
}

/* ---- The pass ---- */

typedef struct words_ahead {
    ptx_val stride;            /* u64: bytes from a round to the next */
    ptx_val at[COLUMNS_LANES]; /* variables: addresses of the words of each lane in the current round */
    ptx_val words[SLOTS][COLUMNS_LANES][WIDTH]; /* variables */
    ptx_val full;                               /* u32: rounds in which the warp's stretch is whole */
} words_ahead;

static words_ahead begin_words(ptx_builder *b, const columns *s)
{
    words_ahead a;
    ptx_val row_bytes = ptx_shl(b, s->w.matrix.columns, 2), before = ptx_mul(b, s->first_lane, CHUNK);
    ptx_val first = ptx_cvt(b, PTX_U64, s->first_lane);
    ptx_val at = ptx_at(b, ptx_mad(b, first, row_bytes, s->w.codes), s->column, 4);
    a.stride = ptx_shl(b, row_bytes, ceil_log2(SUM_LANES));
    for (unsigned l = 0; l < COLUMNS_LANES; l++) {
        a.at[l] = ptx_var(b, at);
        at = ptx_add(b, at, row_bytes);
        for (unsigned i = 0; i < SLOTS; i++)
            for (unsigned k = 0; k < WIDTH; k++)
                a.words[i][l][k] = ptx_var(b, ptx_u32(b, 0));
    }
    ptx_val end = ptx_add(b, s->args.k, ptx_u64(b, ROUND - COLUMNS_STRETCH));
    a.full = ptx_cvt(b, PTX_U32, ptx_shr(b, ptx_sub(b, end, ptx_cvt(b, PTX_U64, before)), 8));
    return a;
}

/* Loads the words of the next round into a slot, if they exist. */
static void fetch_words(ptx_builder *b, const words_ahead *a, unsigned slot, ptx_val exists)
{
    for (unsigned l = 0; l < COLUMNS_LANES; l++) {
        ptx_when(b, exists);
        ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, a->at[l], 0, a->words[slot][l], WIDTH);
        ptx_assign(b, a->at[l], ptx_add(b, a->at[l], a->stride));
    }
}

static void use_words(ptx_builder *b, const columns *s, const words_ahead *a, unsigned slot,
                      const word_groups *g, ptx_val x_at)
{
    word_offsets offsets = offsets_of(b, g);
    for (unsigned l = 0; l < COLUMNS_LANES; l++) {
        column_values halves[2];
        decode_words(b, s, a->words[slot][l], g, &offsets, halves);
        for (unsigned half = 0; half < 2; half++)
            columns_add_rows(b, s, &halves[half], l, half * COLUMNS_TOGETHER, x_at);
    }
}

/* Adds the rounds of a window from `first` on; they keep their slots because windows are even. */
static void add_window(ptx_builder *b, const columns *s, const words_ahead *a, ptx_val first, ptx_val end,
                       ptx_val largest)
{
    ptx_val whole = ptx_min(b, end, a->full);
    ptx_val x_at = ptx_var(b, columns_x_begin(b, s));
    ptx_val more = ptx_var(b, ptx_mul(b, s->first_lane, CHUNK));
    ptx_val begin = ptx_mul_wide(b, first, ptx_u32(b, ROUND));
    ptx_val r = ptx_for(b, first, whole, SLOTS);
    for (unsigned i = 0; i < SLOTS; i++) {
        if (i) {
            ptx_uniform(b);
            ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, r, i), whole));
        }
        ptx_val k = i ? ptx_add(b, more, i * ROUND) : more;
        word_groups g = groups_of(b, s, k, ptx_add(b, begin, ptx_cvt(b, PTX_U64, k)), largest);
        use_words(b, s, a, i, &g, i ? ptx_add(b, x_at, i * s->x.round_bytes) : x_at);
        fetch_words(b, a, i, ptx_setp(b, PTX_LT, ptx_add(b, r, i + SLOTS), a->full));
    }
    for (unsigned i = 1; i < SLOTS; i++)
        ptx_end_if(b);
    ptx_assign(b, more, ptx_add(b, more, SLOTS * ROUND));
    ptx_assign(b, x_at, ptx_add(b, x_at, SLOTS * s->x.round_bytes));
    ptx_end_for(b);
}

/* Adds the round in which K ends within the warp's stretch, if it is in this window. */
static void add_last(ptx_builder *b, const columns *s, const words_ahead *a, ptx_val first, ptx_val end)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp_and(b, PTX_GE, a->full, first, ptx_setp(b, PTX_LT, a->full, end)));
    ptx_val before = ptx_mul(b, s->first_lane, CHUNK), inside = ptx_sub(b, a->full, first);
    ptx_val row = ptx_mad_wide(b, a->full, ptx_u32(b, ROUND), ptx_cvt(b, PTX_U64, before));
    columns_add_rest(b, s, row, ptx_mad(b, inside, s->x.round_bytes, columns_x_begin(b, s)));
    ptx_end_if(b);
}

ptx_val words_pass(ptx_builder *b, const columns *s)
{
    const bool guarded = zero_may_be_large(&s->w.coding);
    ptx_val largest = guarded ? ptx_var(b, ptx_f32(b, 0)) : (ptx_val){0};
    words_ahead a = begin_words(b, s);
    for (unsigned i = 0; i < SLOTS; i++)
        fetch_words(b, &a, i, ptx_setp(b, PTX_GT, a.full, (int)i));
    ptx_val first = ptx_for(b, ptx_u32(b, 0), s->rounds, s->x.rounds);
    ptx_syncthreads(b);
    x_window_stage(b, &s->x, &s->at, first, false);
    if (groups_are_staged(s))
        stage_groups(b, s, first, largest);
    ptx_syncthreads(b);
    ptx_val end = ptx_min(b, ptx_add(b, first, s->x.rounds), s->rounds);
    add_window(b, s, &a, first, end, largest);
    add_last(b, s, &a, first, end);
    ptx_end_for(b);
    return guarded ? ptx_bar_red_or(b, 0, ptx_setp(b, PTX_GE, largest, ptx_f32(b, 0x1p22f))) : (ptx_val){0};
}
