/* Codes in dense bits with separate scales, and plain values: fetched in pieces, decoded into a tile. */
#include "kernels/formats/pairs.h"
#include "kernels/tensor/fp8.h"
#include "kernels/tensor/w_tile.h"

static unsigned bits_of(const w_tile *w)
{
    return w->coding.format->facts.bits;
}

static bool is_plain(const w_tile *w)
{
    return format_is_plain(w->coding.format);
}

/* ---- Where pieces lie ---- */

/* FP8 weights with x in FP8, in lines along n: neighbouring threads store neighbouring pieces, which lie
 * in different banks. */
static bool is_fp8_along_n(const w_tile *w)
{
    return w->coding.spec->product.x_fp8 && !w->along_k;
}

/* Lines along n of weights without scales: a thread has the same piece of four lines, from a multiple of
 * four on. Either all four exist or none: tiles are fetched only if K is a multiple of 8, as rows of x
 * consist of pieces of 8, too. */
static bool has_bare_lines(const w_tile *w)
{
    return !w->along_k && (is_plain(w) || is_fp8_along_n(w));
}

/* If scales differ along a line, they are loaded per piece and used for the same piece of several lines.
 * AWQ has eight codes per word. Lines of plain values are read side by side. */
static piece_order order_of(const w_tile *w)
{
    const kernel_spec *spec = w->coding.spec;
    if (spec->stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED)
        return PIECES_IN_STREAM;
    if (is_plain(w) || spec->stored.layout == QDNN_LAYOUT_AWQ || spec->stored.groups == QDNN_GROUPS_COLUMNS ||
        is_fp8_along_n(w))
        return PIECES_IN_LINES;
    return PIECES_IN_LINE;
}

static bool is_one_group(const w_tile *w)
{
    return w->coding.spec->stored.groups == QDNN_GROUPS_DEFAULT || w->coding.spec->stored.channels == 1 ||
           is_plain(w);
}

/* Whether `count` neighbours in a line, from a multiple of `count` on, belong to one group. */
static bool neighbours_share(const w_tile *w, unsigned count)
{
    const kernel_spec *spec = w->coding.spec;
    if (w->order == PIECES_IN_STREAM)
        return matrix_rows_share_groups(spec, count);
    return (spec->stored.groups == QDNN_GROUPS_COLUMNS ? spec->stored.group_rows : spec->stored.group_size) %
               count ==
           0;
}

/* Whether all pieces of a thread have one group, which is found by counting (groups.h). */
static bool has_column_groups(const w_tile *w)
{
    return !is_one_group(w) && w->order != PIECES_IN_LINES && w->along_k &&
           groups_are_regular(w->coding.spec) && neighbours_share(w, THREAD_WEIGHTS);
}

/* The columns of the weights at which pieces begin: the same in every tile. */
static void find_outputs(ptx_builder *b, w_tile *w)
{
    const bool down = w->order == PIECES_IN_LINES;
    const unsigned margin = w->along_k ? 1 : down ? PIECE : THREAD_WEIGHTS;
    ptx_val local = w->along_k ? w->line : w->run;
    for (unsigned i = 0; i < (down == w->along_k ? THREAD_PIECES : 1); i++) {
        ptx_val at = i ? ptx_add(b, local, (int)(i * (down ? 1 : PIECE))) : local;
        w->outputs[i] = ptx_cvt(b, PTX_U64, w_output(b, w, at, margin));
    }
    if (has_column_groups(w))
        w->groups = column_groups_of(b, &w->m, w->outputs[0]);
}

void w_dense_begin(ptx_builder *b, w_tile *w)
{
    const unsigned lines = w->along_k ? w->tile_n : w->tile_k, pieces = TILE_WEIGHTS / PIECE / lines;
    ptx_val tid = ptx_tid_x(b), piece;
    w->order = order_of(w);
    switch (w->order) {
    case PIECES_IN_LINE:
        w->line = ptx_shr(b, tid, ceil_log2(pieces / THREAD_PIECES));
        piece = ptx_shl(b, ptx_and(b, tid, (int)(pieces / THREAD_PIECES) - 1), ceil_log2(THREAD_PIECES));
        break;
    case PIECES_IN_STREAM:
        w->line = ptx_and(b, tid, (int)lines - 1);
        piece = ptx_shl(b, ptx_shr(b, tid, ceil_log2(lines)), ceil_log2(THREAD_PIECES));
        break;
    default:
        w->line = ptx_shl(b, ptx_shr(b, tid, ceil_log2(pieces)), ceil_log2(THREAD_PIECES));
        piece = ptx_and(b, tid, (int)pieces - 1);
        break;
    }
    w->run = ptx_shl(b, piece, 3);
    for (unsigned i = 0; i < THREAD_PIECES; i++) {
        bool down = w->order == PIECES_IN_LINES;
        ptx_val line = down && i ? ptx_add(b, w->line, (int)i) : w->line,
                place = !down && i ? ptx_add(b, piece, (int)i) : piece;
        w->places[i] = w_piece_address(b, w, ptx_u32(b, 0), line, place);
    }
    find_outputs(b, w);
}

/* Requires that lines begin at words, and that the last one has a piece for every thread. */
ptx_val w_dense_aligned(ptx_builder *b, const w_tile *w)
{
    const kernel_spec *spec = w->coding.spec;
    const bool in_stream = w->order == PIECES_IN_STREAM;
    const unsigned multiple =
        spec->stored.layout == QDNN_LAYOUT_AWQ || is_plain(w) || is_fp8_along_n(w) ? PIECE : THREAD_WEIGHTS;
    ptx_val run_extent = in_stream ? w->rows : w->columns;
    ptx_val rest = ptx_and(b, run_extent, ptx_u64(b, multiple - 1));
    ptx_val all = ptx_setp(b, PTX_EQ, rest, ptx_u64(b, 0));
    if (w->gated && !w->along_k) /* b is aligned as a is */
        all = ptx_setp_and(b, PTX_EQ, ptx_and(b, w->n, (int)multiple - 1), 0, all);
    all = ptx_and(b, all, emit_aligned(b, w->codes, LOAD_BYTES));
    return is_plain(w) || in_stream ? all : matrix_groups_aligned(b, &w->m, PIECE, all);
}

/* ---- Fetching ---- */

/* An element of the matrix, given by k and n. */
typedef struct element {
    ptx_val row, column; /* u64 */
    ptx_val k;           /* u64 */
} element;

static element element_at(ptx_builder *b, const w_tile *w, ptx_val n, ptx_val k)
{
    ptx_val wide_k = ptx_cvt(b, PTX_U64, k);
    return w->k_in_columns ? (element){n, wide_k, wide_k} : (element){wide_k, n, wide_k};
}

/* The first element of piece i. For pieces beyond the last k, the first k is loaded instead, and never
 * used. */
static element piece_begin(ptx_builder *b, const w_tile *w, ptx_val k0, unsigned i, ptx_val *k)
{
    const bool down = w->order == PIECES_IN_LINES, moves = i && (down != w->along_k);
    k0 = w_part_k(b, w, k0, w->along_k ? w->line : w->run);
    *k = ptx_add(b, k0, w->along_k ? w->run : w->line);
    if (moves)
        *k = ptx_add(b, *k, (int)(i * (down ? 1 : PIECE)));
    ptx_val known = ptx_selp(b, *k, ptx_u32(b, 0), ptx_setp(b, PTX_LT, *k, w->k));
    return element_at(b, w, w->outputs[moves ? 0 : i], known);
}

static ptx_val code_address(ptx_builder *b, const w_tile *w, const element *at)
{
    const uint64_t bits = bits_of(w);
    if (w->order == PIECES_IN_STREAM) {
        ptx_val word = ptx_shr(b, ptx_mul(b, at->row, ptx_u64(b, bits)), 5);
        return ptx_at(b, w->codes, ptx_mad(b, word, w->columns, at->column), 4);
    }
    ptx_val index = ptx_mad(b, at->row, w->columns, at->column);
    return ptx_add(b, w->codes, ptx_shr(b, ptx_mul(b, index, ptx_u64(b, bits)), 3));
}

/* A thread's 32 codes are as many words as a code has bits. */
static void fetch_line(ptx_builder *b, const w_tile *w, const element *at, fetched *f)
{
    const unsigned bits = bits_of(w), n = bits % 4 == 0 ? 4 : bits % 2 == 0 ? 2 : 1;
    ptx_val address = code_address(b, w, at);
    f->words = bits;
    if (w->order == PIECES_IN_STREAM) {
        ptx_val stride = ptx_shl(b, w->columns, 2);
        for (unsigned i = 0; i < bits; i++) {
            f->word[i] = ptx_ld_global_nc(b, PTX_U32, address, 0);
            address = i + 1 < bits ? ptx_add(b, address, stride) : address;
        }
        return;
    }
    for (unsigned i = 0; i < bits; i += n)
        emit_load_words(b, address, (int)(4 * i), n, &f->word[i]);
}

/* Loads two quads of codes of a line, or plain values. */
static void fetch_piece(ptx_builder *b, const w_tile *w, const element *at, fetched *f)
{
    const unsigned bits = bits_of(w), words = is_plain(w) ? PIECE * bits / 32 : 2;
    ptx_val *out = &f->word[f->words];
    f->words += words;
    if (is_plain(w)) {
        emit_load_words(b, code_address(b, w, at), 0, words, out);
        return;
    }
    ptx_val row_bytes = ptx_shr(b, ptx_mul(b, w->columns, ptx_u64(b, bits)), 3);
    word_stream s = {.bits = bits,
                     .is_awq = w->coding.spec->stored.layout == QDNN_LAYOUT_AWQ,
                     .first = ptx_mad(b, at->row, row_bytes, w->codes)};
    stream_quads(b, &s, at->column, PIECE, out);
}

static ptx_val beyond(ptx_builder *b, ptx_val x, unsigned more)
{
    return more ? ptx_add(b, x, (int)more) : x;
}

/* Loads one group for all codes, for each piece or for each code of a line. */
static void fetch_line_groups(ptx_builder *b, const w_tile *w, const element *at, fetched *f)
{
    const bool down = w->order == PIECES_IN_STREAM;
    if (has_column_groups(w)) {
        ptx_val group = emit_divide(b, at->k, w->coding.spec->stored.group_size);
        f->group[f->groups++] = column_group(b, &w->m, &w->groups, group);
        return;
    }
    const unsigned step = neighbours_share(w, THREAD_WEIGHTS) ? THREAD_WEIGHTS
                          : neighbours_share(w, PIECE)        ? PIECE
                                                              : 1;
    for (unsigned e = 0; e < THREAD_WEIGHTS; e += step) {
        ptx_val row = down ? beyond(b, at->row, e) : at->row,
                column = down ? at->column : beyond(b, at->column, e);
        f->group[f->groups++] = matrix_group(b, &w->m, row, column);
    }
}

/* Whether all lines of a thread share their groups (one per column), so that these are loaded once. */
static bool lines_share(const w_tile *w)
{
    return matrix_rows_share_groups(w->coding.spec, THREAD_PIECES);
}

static void fetch_piece_groups(ptx_builder *b, const w_tile *w, const element *at, fetched *f)
{
    if (f->groups && lines_share(w))
        return;
    matrix_row_groups(b, &w->m, at->row, at->column, PIECE, &f->group[f->groups]);
    f->groups += PIECE;
}

static void fetch_bare_lines(ptx_builder *b, const w_tile *w, ptx_val k0, fetched *f)
{
    const unsigned words = PIECE * bits_of(w) / 32;
    element at = piece_begin(b, w, k0, 0, &f->k);
    ptx_val address = code_address(b, w, &at), line = ptx_mul(b, w->columns, ptx_u64(b, bits_of(w) / 8));
    for (unsigned i = 0; i < THREAD_PIECES; i++) {
        emit_load_words(b, address, 0, words, &f->word[f->words]);
        f->words += words;
        address = i + 1 < THREAD_PIECES ? ptx_add(b, address, line) : address;
    }
}

void w_dense_fetch(ptx_builder *b, const w_tile *w, ptx_val k0, fetched *f)
{
    const bool down = w->order == PIECES_IN_LINES;
    if (has_bare_lines(w)) {
        fetch_bare_lines(b, w, k0, f);
        return;
    }
    for (unsigned i = 0; i < (down ? THREAD_PIECES : 1); i++) {
        ptx_val k;
        element at = piece_begin(b, w, k0, i, &k);
        if (i == 0)
            f->k = k;
        (down ? fetch_piece : fetch_line)(b, w, &at, f);
        if (!is_one_group(w))
            (down ? fetch_piece_groups : fetch_line_groups)(b, w, &at, f);
    }
}

/* ---- Decoding ---- */

static const group_values *group_of(const w_tile *w, const fetched *f, unsigned piece, unsigned i)
{
    if (is_one_group(w))
        return &w->m.q.only;
    if (w->order == PIECES_IN_LINES)
        return &f->group[f->groups == PIECE ? i : piece * PIECE + i];
    return &f->group[(piece * PIECE + i) * f->groups / THREAD_WEIGHTS];
}

/* Where code i of a piece lies. A code that crosses into the next word is shifted to the low end of one. */
static code_place place_of_code(ptx_builder *b, const w_tile *w, const fetched *f, unsigned piece, unsigned i)
{
    const coding *c = &w->coding;
    const unsigned bits = bits_of(w);
    if (w->order == PIECES_IN_LINES) {
        bool is_awq = c->spec->stored.layout == QDNN_LAYOUT_AWQ;
        unsigned position = is_awq ? stream_position(bits, true, i % QUAD) : quad_position(c, i % QUAD);
        return (code_place){f->word[2 * piece + i / QUAD], position};
    }
    const bool swapped = c->spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST;
    const unsigned element = piece * PIECE + i, bit = (swapped ? element ^ 1 : element) * bits;
    ptx_val word = f->word[bit / 32];
    if (bit % 32 + bits <= 32)
        return (code_place){word, bit % 32};
    return (code_place){ptx_shf_r(b, word, f->word[bit / 32 + 1], bit % 32), 0};
}

/* The groups of the previous pair: neighbours often have the same. */
typedef struct pair_cache {
    const group_values *first, *second;
    pair_group group;
} pair_cache;

static void put_codes(ptx_builder *b, const w_tile *w, const fetched *f, unsigned piece, ptx_val address,
                      pair_cache *cache)
{
    ptx_val words[PIECE / 2];
    for (unsigned i = 0; i < PIECE; i += 2) {
        const group_values *first = group_of(w, f, piece, i), *second = group_of(w, f, piece, i + 1);
        if (first != cache->first || second != cache->second)
            *cache = (pair_cache){first, second, pair_group_of(b, &w->m.q, w->data, first, second)};
        code_place low = place_of_code(b, w, f, piece, i), high = place_of_code(b, w, f, piece, i + 1);
        words[i / 2] = pair_decode(b, &w->m.q, w->data, &cache->group, low, high);
    }
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, 0, words, PIECE / 2);
}

/* With x in FP8, weights are FP8 without scales. */
static void put_fp8(ptx_builder *b, const w_tile *w, const fetched *f, unsigned piece, ptx_val address)
{
    ptx_val words[PIECE / 2];
    for (unsigned i = 0; i < 2; i++)
        fp8_to_f16(b, w->coding.format->number, f->word[2 * piece + i], &words[2 * i]);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, 0, words, PIECE / 2);
}

static void put_plain(ptx_builder *b, const w_tile *w, const fetched *f, unsigned piece, ptx_val address)
{
    const qdnnDataType_t stored = w->coding.format->facts.storage;
    const ptx_val *words = &f->word[piece * (f->words / THREAD_PIECES)];
    ptx_val values[PIECE];
    if (stored == w->data) {
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, 0, words, PIECE / 2);
        return;
    }
    for (unsigned i = 0; i < f->words / THREAD_PIECES; i++)
        emit_widen_word(b, stored, words[i], &values[i * 4 / element_bytes(stored)]);
    w_store_piece(b, w, address, values);
}

void w_dense_put(ptx_builder *b, const w_tile *w, const fetched *f, ptx_val tile)
{
    const bool k_down = w->order == PIECES_IN_LINES && !w->along_k &&
                        !has_bare_lines(w); /* each piece has its own k, which may not exist */
    pair_cache cache = {0};
    for (unsigned i = 0; i < THREAD_PIECES; i++) {
        ptx_val address = ptx_add(b, tile, w->places[i]);
        if (i == 0 || k_down)
            ptx_if(b, ptx_setp(b, PTX_LT, beyond(b, f->k, k_down ? i : 0), w->k));
        if (k_down)
            cache = (pair_cache){0};
        if (is_plain(w))
            put_plain(b, w, f, i, address);
        else if (w->coding.spec->product.x_fp8)
            put_fp8(b, w, f, i, address);
        else
            put_codes(b, w, f, i, address, &cache);
        if (k_down || i + 1 == THREAD_PIECES) {
            ptx_else(b);
            for (unsigned z = k_down ? i : 0; z <= i; z++)
                w_store_zeros(b, ptx_add(b, tile, w->places[z]));
            ptx_end_if(b);
        }
    }
}

/* ---- Element by element ---- */

void w_dense_put_slowly(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val tile)
{
    const unsigned extent = w->along_k ? w->tile_k : w->tile_n;
    ptx_val at = ptx_for(b, ptx_tid_x(b), ptx_u32(b, TILE_WEIGHTS), TILE_THREADS);
    ptx_val line = ptx_shr(b, at, ceil_log2(extent)), run = ptx_and(b, at, (int)extent - 1);
    ptx_val local = w->along_k ? line : run, n = w_output(b, w, local, 1),
            k = ptx_add(b, w_part_k(b, w, k0, local), w->along_k ? run : line);
    ptx_val value = ptx_var(b, ptx_u32(b, 0));
    ptx_if(b, ptx_setp(b, PTX_LT, k, w->k));
    element from = element_at(b, w, ptx_cvt(b, PTX_U64, n), k);
    ptx_val x = matrix_element(b, &w->m, from.row, from.column);
    ptx_assign(b, value, emit_narrow_pair(b, w->data, x, x));
    ptx_end_if(b);
    ptx_val address = w_piece_address(b, w, tile, line, ptx_shr(b, run, 3));
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U16, ptx_at(b, address, ptx_and(b, run, 7), 2), 0, value);
    ptx_end_for(b);
}
