/* Patches of codes: what 32 lanes side by side read and write together.
 *
 * Column streams (interleaved words): a lane has 4 columns, that is, 16 bytes of each row of words, and as
 * many rows as fill whole words. Row streams (all other layouts): every row begins at a word boundary; a lane
 * has a chunk of each row. If the size of the chunk's codes in bytes is not a power of two, the warp loads
 * the words of the row and the lanes get theirs by shuffles; stores go through shared memory. */
#include "kernels/formats/matrix.h"

static unsigned bits_of(const coding *c)
{
    return c->format->facts.bits;
}

static bool in_columns(const coding *c)
{
    return c->spec->stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED;
}

static bool is_awq(const coding *c)
{
    return c->spec->stored.layout == QDNN_LAYOUT_AWQ;
}

/* Whether the codes of a row are exchanged between lanes. */
static bool is_shared_out(const coding *c)
{
    return !in_columns(c) && !codes_are_direct(c);
}

bool patch_groups_are_wide(const coding *c)
{
    const kernel_spec *spec = c->spec;
    bool wide_zero =
        format_has_zero(c->format) && !spec->stored.zero_packed && element_bytes(spec->stored.zero) == 4;
    return spec->stored.groups == QDNN_GROUPS_COLUMNS && spec->stored.group_rows == 1 &&
           (spec->stored.scale == QDNN_SCALE_F32 || wide_zero);
}

/* Groups whose numbers quantize and dequantize read from shared memory: looked-up groups, from a table, and
 * groups of 16, 32, 64 ... rows. */
static bool has_staged_groups(const kernel_spec *spec)
{
    const uint64_t rows = spec->stored.group_size;
    if (spec->stored.group_table)
        return true;
    return !spec->stored.group_index && !spec->row_index && rows >= 16 && (rows & (rows - 1)) == 0;
}

/* Also four columns if eight columns would span several groups but four do not. */
unsigned patch_width(const coding *c)
{
    unsigned chunk = chunk_elements(c->spec->data);
    bool suits_four = !c->spec->stored.group_table && matrix_groups_are_many(c->spec, chunk) &&
                      !matrix_groups_are_many(c->spec, 4);
    bool has_wide = patch_groups_are_wide(c) && !has_staged_groups(c->spec);
    return in_columns(c) || has_wide || suits_four ? 4 : chunk;
}

unsigned patch_rows(const coding *c)
{
    unsigned rows = in_columns(c) ? codes_of_units(bits_of(c), 32) : 8;
    return rows < 8 ? 8 : rows;
}

/* With minima and looked-up groups, each row of a patch has its own scale and minimum. */
bool patch_numbers_are_many(const coding *c)
{
    return c->spec->stored.group_index && c->format->facts.zero_kind == QDNN_ZERO_MINIMUM &&
           patch_rows(c) > 16;
}

bool patch_rows_are_free(const coding *c)
{
    return !in_columns(c);
}

unsigned matrix_columns_multiple(const coding *c)
{
    if (in_columns(c))
        return chunk_is_joint(c->spec->data) ? 8 : 4;
    return is_awq(c) ? 8 : 32;
}

unsigned patch_codes_align(const coding *c)
{
    if (in_columns(c))
        return LOAD_BYTES;
    unsigned bytes = patch_width(c) * bits_of(c) / 8;
    return is_awq(c) || is_shared_out(c) ? 4 : bytes;
}

/* ---- Column streams ---- */

/* Eight rows of a column stream that is only read: their codes may begin at any bit of a word. */
static bool begins_anywhere(const coding *c, const patch *p)
{
    return p->rows * bits_of(c) % 32 != 0;
}

static unsigned words_down(const coding *c, const patch *p)
{
    return begins_anywhere(c, p) ? quads_words(bits_of(c), p->rows) : p->rows * bits_of(c) / 32;
}

static ptx_val column_words(ptx_builder *b, const matrix *m, const patch *p)
{
    ptx_val word = ptx_shr(b, ptx_mul(b, p->row, ptx_u64(b, bits_of(&m->q.coding))), 5);
    return ptx_at(b, m->q.codes, ptx_mad(b, word, m->columns, p->column), 4);
}

/* Loads the words from where the codes begin. The last word is not read if the codes do not extend into it:
 * it may not exist. */
static void load_part(ptx_builder *b, const matrix *m, patch *p)
{
    const unsigned bits = bits_of(&m->q.coding), count = words_down(&m->q.coding, p);
    ptx_val address = column_words(b, m, p), stride = ptx_shl(b, m->columns, 2);
    ptx_val shift = ptx_and(b, ptx_mul(b, ptx_cvt(b, PTX_U32, p->row), (int)bits), 31);
    ptx_val end = ptx_add(b, shift, (int)(p->rows * bits));
    for (unsigned w = 0; w < count; w++) {
        emit_load_words(b, address, 0, p->width, &p->words[w * p->width]);
        ptx_val reaches = ptx_setp(b, PTX_GT, end, (int)(32 * (w + 1)));
        address = ptx_add(b, address, ptx_selp(b, stride, ptx_u64(b, 0), reaches));
    }
    for (unsigned w = 0; w < count; w++)
        for (unsigned k = 0; k < p->width; k++) {
            ptx_val *word = &p->words[w * p->width + k];
            *word = w + 1 < count ? ptx_shf_r(b, word[0], word[p->width], shift) : ptx_shr(b, word[0], shift);
        }
}

static void load_columns(ptx_builder *b, const matrix *m, patch *p)
{
    if (begins_anywhere(&m->q.coding, p)) {
        load_part(b, m, p);
        return;
    }
    ptx_val address = column_words(b, m, p), stride = ptx_shl(b, m->columns, 2);
    for (unsigned w = 0; w < words_down(&m->q.coding, p); w++) {
        emit_load_words(b, address, 0, p->width, &p->words[w * p->width]);
        address = ptx_add(b, address, stride);
    }
}

static void store_columns(ptx_builder *b, const matrix *m, const patch *p)
{
    ptx_val address = column_words(b, m, p), stride = ptx_shl(b, m->columns, 2);
    ptx_if(b, p->active);
    for (unsigned w = 0; w < words_down(&m->q.coding, p); w++) {
        emit_store_words(b, address, 0, p->width, &p->words[w * p->width]);
        address = ptx_add(b, address, stride);
    }
    ptx_end_if(b);
}

static ptx_val column_word(ptx_builder *b, const matrix *m, const patch *p, unsigned i, unsigned k,
                           unsigned *position)
{
    const unsigned bits = bits_of(&m->q.coding), bit = i * bits;
    const ptx_val *word = &p->words[bit / 32 * p->width + k];
    *position = bit % 32;
    if (bit % 32 + bits <= 32)
        return *word;
    *position = 0;
    return ptx_shf_r(b, word[0], word[p->width], bit % 32);
}

static void add_bits(ptx_builder *b, ptx_val *word, ptx_val bits)
{
    *word = word->kind == PTX_NOTHING ? bits : ptx_or(b, *word, bits);
}

static void put_in_column(ptx_builder *b, const matrix *m, patch *p, unsigned i, unsigned k, ptx_val code)
{
    const unsigned bits = bits_of(&m->q.coding), bit = i * bits;
    ptx_val *word = &p->words[bit / 32 * p->width + k];
    add_bits(b, word, bit % 32 ? ptx_shl(b, code, bit % 32) : code);
    if (bit % 32 + bits > 32)
        add_bits(b, &word[p->width], ptx_shr(b, code, 32 - bit % 32));
}

/* ---- Row streams ---- */

enum { ROW_WORDS = 2 }; /* per lane; later its quads */

static ptx_val row_of_codes(ptx_builder *b, const matrix *m, const patch *p, unsigned i)
{
    ptx_val bytes = ptx_shr(b, ptx_mul(b, m->columns, ptx_u64(b, bits_of(&m->q.coding))), 3);
    return ptx_mad(b, i ? ptx_add(b, p->row, i) : p->row, bytes, m->q.codes);
}

static ptx_val bytes_before(ptx_builder *b, const coding *c, ptx_val column)
{
    return ptx_shr(b, ptx_mul(b, column, ptx_u64(b, bits_of(c))), 3);
}

/* The number of words of a row that a warp handles, and how many of them exist (u64). */
static unsigned warp_words(const coding *c, const patch *p)
{
    return p->width * bits_of(c);
}

static ptx_val words_left(ptx_builder *b, const matrix *m, const patch *p)
{
    ptx_val columns = ptx_sub(b, m->columns, p->span);
    return ptx_shr(b, ptx_mul(b, columns, ptx_u64(b, bits_of(&m->q.coding))), 5);
}

static void load_shared_out(ptx_builder *b, const matrix *m, patch *p)
{
    const coding *c = &m->q.coding;
    ptx_val count = ptx_min(b, words_left(b, m, p), ptx_u64(b, warp_words(c, p)));
    ptx_val last = ptx_sub(b, count, 1), lane = ptx_cvt(b, PTX_U64, ptx_laneid(b));
    ptx_val first = ptx_min(b, lane, last), second = ptx_min(b, ptx_add(b, lane, WARP), last);
    ptx_val before = bytes_before(b, c, p->span);
    for (unsigned i = 0; i < p->rows; i++) {
        ptx_val row = ptx_add(b, row_of_codes(b, m, p, i), before);
        p->words[i * ROW_WORDS] = ptx_ld_global_nc(b, PTX_U32, ptx_at(b, row, first, 4), 0);
        if (warp_words(c, p) > WARP)
            p->words[i * ROW_WORDS + 1] = ptx_ld_global_nc(b, PTX_U32, ptx_at(b, row, second, 4), 0);
    }
}

/* Word `number` of the warp's words. */
static ptx_val word_of_warp(ptx_builder *b, const coding *c, const patch *p, const ptx_val *words,
                            ptx_val number)
{
    ptx_val low = ptx_shfl_idx(b, words[0], number);
    if (warp_words(c, p) <= WARP)
        return low;
    ptx_val high = ptx_shfl_idx(b, words[1], ptx_and(b, number, WARP - 1));
    return ptx_selp(b, low, high, ptx_setp(b, PTX_LT, number, WARP));
}

static void share_out(ptx_builder *b, const matrix *m, patch *p)
{
    const coding *c = &m->q.coding;
    ptx_val bit = ptx_mul(b, ptx_laneid(b), p->width * bits_of(c));
    ptx_val number = ptx_shr(b, bit, 5), shift = ptx_and(b, bit, 31);
    for (unsigned i = 0; i < p->rows; i++) {
        ptx_val *words = &p->words[i * ROW_WORDS];
        ptx_val mine[QUADS_WORDS] = {{0}};
        for (unsigned w = 0; w < quads_words(bits_of(c), p->width); w++)
            mine[w] = word_of_warp(b, c, p, words, w ? ptx_add(b, number, w) : number);
        split_quads(b, bits_of(c), mine, shift, p->width, words);
    }
}

static void load_rows(ptx_builder *b, const matrix *m, patch *p)
{
    const coding *c = &m->q.coding;
    if (is_shared_out(c)) {
        load_shared_out(b, m, p);
        return;
    }
    for (unsigned i = 0; i < p->rows; i++) {
        ptx_val row = row_of_codes(b, m, p, i), *words = &p->words[i * ROW_WORDS];
        if (is_awq(c)) {
            word_stream s = {.bits = bits_of(c), .is_awq = true, .first = row};
            stream_quads(b, &s, p->column, p->width, words);
        } else {
            codes_load(b, &m->q, ptx_add(b, row, bytes_before(b, c, p->column)), 0, p->width, words);
        }
    }
}

static unsigned row_position(const coding *c, unsigned k)
{
    return is_awq(c) ? stream_position(bits_of(c), true, k % QUAD) : quad_position(c, k % QUAD);
}

static void put_in_row(ptx_builder *b, const matrix *m, patch *p, unsigned k, ptx_val code)
{
    const unsigned position = row_position(&m->q.coding, k);
    if (k % QUAD == 0)
        p->words[k / QUAD] = (ptx_val){0};
    add_bits(b, &p->words[k / QUAD], position ? ptx_shl(b, code, position) : code);
}

/* Eight codes per word; if a lane has four, two lanes combine theirs and the first one stores them. */
static void store_awq(ptx_builder *b, const matrix *m, const patch *p, ptx_val row)
{
    ptx_val rest = p->width > QUAD ? p->words[1] : ptx_shfl_down(b, p->words[0], 1), stores = p->active;
    if (p->width == QUAD)
        stores = ptx_setp_and(b, PTX_EQ, ptx_and(b, ptx_laneid(b), 1), 0, stores);
    ptx_if(b, stores);
    ptx_st_global(b, ptx_add(b, row, bytes_before(b, &m->q.coding, p->column)), 0,
                  ptx_or(b, p->words[0], ptx_shl(b, rest, 8)));
    ptx_end_if(b);
}

ptx_val patch_stage(ptx_builder *b, const coding *c, unsigned warps)
{
    if (!is_shared_out(c))
        return (ptx_val){0};
    const unsigned bytes = 4 * patch_width(c) * bits_of(c);
    ptx_val all = ptx_shared(b, "codes_stage", PTX_U32, warps * bytes / 4, LOAD_BYTES);
    return ptx_at(b, all, ptx_shr(b, ptx_tid_x(b), 5), bytes);
}

/* Regroups the lanes' bytes into the warp's words. */
static void store_by_words(ptx_builder *b, const matrix *m, const patch *p, ptx_val row)
{
    const coding *c = &m->q.coding;
    const stage s = {.shared = p->stage};
    ptx_val lane = ptx_laneid(b), left = words_left(b, m, p);
    stage_put(b, c, &s, ptx_mul(b, lane, p->width), p->width, p->words);
    ptx_syncwarp(b);
    for (unsigned first = 0; first < warp_words(c, p); first += WARP) {
        ptx_val number = first ? ptx_add(b, lane, first) : lane, wide = ptx_cvt(b, PTX_U64, number);
        ptx_val stores = ptx_setp_and(b, PTX_LT, number, warp_words(c, p), ptx_setp(b, PTX_LT, wide, left));
        ptx_if(b, stores);
        ptx_val word = ptx_ld_shared(b, PTX_U32, ptx_at(b, p->stage, number, 4), 0);
        ptx_st_global(b, ptx_at(b, ptx_add(b, row, bytes_before(b, c, p->span)), wide, 4), 0, word);
        ptx_end_if(b);
    }
    ptx_syncwarp(b); /* before the codes of the next row are written to the same shared memory */
}

static void store_row(ptx_builder *b, const matrix *m, const patch *p, unsigned i)
{
    const coding *c = &m->q.coding;
    ptx_val row = row_of_codes(b, m, p, i);
    if (is_awq(c)) {
        store_awq(b, m, p, row);
    } else if (is_shared_out(c)) {
        store_by_words(b, m, p, row);
    } else {
        ptx_if(b, p->active);
        codes_store(b, &m->q, ptx_add(b, row, bytes_before(b, c, p->column)), 0, p->width, p->words);
        ptx_end_if(b);
    }
}

/* ---- Both ---- */

void patch_load(ptx_builder *b, const matrix *m, patch *p)
{
    (in_columns(&m->q.coding) ? load_columns : load_rows)(b, m, p);
}

void patch_arrive(ptx_builder *b, const matrix *m, patch *p)
{
    if (is_shared_out(&m->q.coding))
        share_out(b, m, p);
}

ptx_val patch_word(ptx_builder *b, const matrix *m, const patch *p, unsigned i, unsigned k,
                   unsigned *position)
{
    if (in_columns(&m->q.coding))
        return column_word(b, m, p, i, k, position);
    *position = row_position(&m->q.coding, k);
    return p->words[i * ROW_WORDS + k / QUAD];
}

/* The four bytes of a word are decoded together: four columns of a row, or four rows of a column. */
static void units_of_words(ptx_builder *b, const matrix *m, patch *p, unsigned i, ptx_val *units)
{
    const quantized *q = &m->q;
    void (*decode)(ptx_builder *, const coding *, const codec_state *, ptx_val, ptx_val *) =
        q->coding.format->codec->units_of_bytes;
    if (!in_columns(&q->coding)) {
        for (unsigned k = 0; k < p->width; k += QUAD)
            decode(b, &q->coding, &q->state, p->words[i * ROW_WORDS + k / QUAD], &units[k]);
        return;
    }
    for (unsigned k = 0; k < p->width; k++) {
        if (i % 4 == 0)
            decode(b, &q->coding, &q->state, p->words[i / 4 * p->width + k], p->units[k]);
        units[k] = p->units[k][i % 4];
    }
}

void patch_units(ptx_builder *b, const matrix *m, patch *p, unsigned i, ptx_val *units)
{
    const quantized *q = &m->q;
    if (bits_of(&q->coding) == 8 && q->coding.format->codec->units_of_bytes) {
        units_of_words(b, m, p, i, units);
        return;
    }
    for (unsigned k = 0; k < p->width; k++) {
        unsigned position;
        ptx_val word = patch_word(b, m, p, i, k, &position);
        units[k] = q->coding.format->codec->unit(b, &q->coding, &q->state, word, position);
    }
}

void patch_put(ptx_builder *b, const matrix *m, patch *p, unsigned i, unsigned k, ptx_val code)
{
    if (in_columns(&m->q.coding))
        put_in_column(b, m, p, i, k, code);
    else
        put_in_row(b, m, p, k, code);
}

void patch_row_done(ptx_builder *b, const matrix *m, patch *p, unsigned i)
{
    if (!in_columns(&m->q.coding))
        store_row(b, m, p, i);
}

void patch_store(ptx_builder *b, const matrix *m, patch *p)
{
    if (in_columns(&m->q.coding))
        store_columns(b, m, p);
}
