/* Access to the codes of a matrix one by one: reading any code, and writing whole words or bytes, each by one
 * thread. */
#include "kernels/formats/matrix.h"

static unsigned bits_of(const matrix *m)
{
    return m->q.coding.format->facts.bits;
}

/* ---- Reading ---- */

ptx_val matrix_code(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column)
{
    word_stream s = {.bits = bits_of(m)};
    ptx_val number = column;
    switch (m->q.coding.spec->stored.layout) {
    case QDNN_LAYOUT_WORDS_INTERLEAVED:
        s.first = ptx_at(b, m->q.codes, column, 4);
        s.stride = ptx_shl(b, m->columns, 2);
        number = row;
        break;
    case QDNN_LAYOUT_WORDS_ROWS:
    case QDNN_LAYOUT_AWQ:
        s.first = ptx_at(b, m->q.codes, ptx_mul(b, row, m->row_words), 4);
        s.is_awq = m->q.coding.spec->stored.layout == QDNN_LAYOUT_AWQ;
        break;
    default:
        return code_at(b, &m->q, ptx_mad(b, row, m->columns, column));
    }
    return ptx_and(b, stream_code(b, &s, number), (1 << bits_of(m)) - 1);
}

ptx_val matrix_element(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column)
{
    const format_row *format = m->q.coding.format;
    const qdnnDataType_t type = format->facts.storage;
    if (format_is_plain(format)) {
        ptx_val index = ptx_mad(b, row, m->columns, column);
        return emit_load(b, type, ptx_at(b, m->q.codes, index, element_bytes(type)), 0);
    }
    group_values group = matrix_group(b, m, row, column);
    return element_decode(b, &m->q, &group, matrix_code(b, m, row, column));
}

/* ---- Writing ---- */

/* Collects codes in a thread until they fill a unit of memory, which is then stored. Codes whose width divides the unit fill exactly one:
 * all of them are collected before it is stored, and there is always a first. */
typedef struct gatherer {
    const matrix *m;
    unsigned unit; /* bits: 8 or 32 */
    bool is_one;
    ptx_val bits, filled;    /* variables: bits not stored yet, and their number */
    ptx_val address, stride; /* a variable; u64: bytes to the next unit */
} gatherer;

static gatherer gatherer_begin(ptx_builder *b, const matrix *m, unsigned unit, ptx_val address,
                               ptx_val stride)
{
    const bool is_one = unit % bits_of(m) == 0;
    return (gatherer){.m = m,
                      .unit = unit,
                      .is_one = is_one,
                      .bits = ptx_var(b, is_one ? ptx_u32(b, 0) : ptx_u64(b, 0)),
                      .filled = ptx_var(b, ptx_u32(b, 0)),
                      .address = is_one ? address : ptx_var(b, address),
                      .stride = stride};
}

static void store_unit(ptx_builder *b, const gatherer *g)
{
    ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, g->unit == 8 ? PTX_U8 : PTX_U32, g->address, 0,
              g->is_one ? g->bits : ptx_cvt(b, PTX_U32, g->bits));
}

static void gather(ptx_builder *b, const gatherer *g, ptx_val code)
{
    bool swapped = g->m->q.coding.spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST;
    ptx_val at = swapped ? ptx_xor(b, g->filled, 4) : g->filled;
    ptx_val bits = g->is_one ? code : ptx_cvt(b, PTX_U64, code);
    ptx_assign(b, g->bits, ptx_or(b, g->bits, ptx_shl(b, bits, at)));
    ptx_assign(b, g->filled, ptx_add(b, g->filled, bits_of(g->m)));
    if (g->is_one)
        return;
    ptx_if(b, ptx_setp(b, PTX_GE, g->filled, g->unit));
    store_unit(b, g);
    ptx_assign(b, g->bits, ptx_shr(b, g->bits, g->unit));
    ptx_assign(b, g->filled, ptx_sub(b, g->filled, g->unit));
    ptx_assign(b, g->address, ptx_add(b, g->address, g->stride));
    ptx_end_if(b);
}

static void gatherer_end(ptx_builder *b, const gatherer *g)
{
    if (g->is_one) {
        store_unit(b, g);
        return;
    }
    ptx_if(b, ptx_setp(b, PTX_GT, g->filled, 0));
    store_unit(b, g);
    ptx_end_if(b);
}

static ptx_val lane_times(ptx_builder *b, unsigned step)
{
    return ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_laneid(b), step));
}

/* Each thread writes the words of a column that a few rows fill. */
static void write_columns(ptx_builder *b, const matrix *m, const matrix_part *part, element_code *code,
                          const void *user)
{
    const unsigned bits = bits_of(m), step = codes_of_units(bits, 32);
    ptx_val row = ptx_for(b, part->row, part->row_end, ptx_u64(b, step));
    ptx_val column =
        ptx_for(b, ptx_add(b, part->column, lane_times(b, 1)), part->column_end, ptx_u64(b, WARP));
    ptx_val word = ptx_mad(b, ptx_shr(b, ptx_mul(b, row, ptx_u64(b, bits)), 5), m->columns, column);
    gatherer g = gatherer_begin(b, m, 32, ptx_at(b, m->q.codes, word, 4), ptx_shl(b, m->columns, 2));
    ptx_val at = ptx_for(b, row, ptx_min(b, ptx_add(b, row, step), m->rows), ptx_u64(b, 1));
    gather(b, &g, code(b, user, at, column));
    ptx_end_for(b);
    gatherer_end(b, &g);
    ptx_end_for(b);
    ptx_end_for(b);
}

/* Each thread writes the words of a row that a few columns fill. */
static void write_rows(ptx_builder *b, const matrix *m, const matrix_part *part, element_code *code,
                       const void *user)
{
    const bool is_awq = m->q.coding.spec->stored.layout == QDNN_LAYOUT_AWQ;
    const unsigned bits = bits_of(m), step = codes_of_units(bits, 32);
    ptx_val row = ptx_for(b, part->row, part->row_end, ptx_u64(b, 1));
    ptx_val column =
        ptx_for(b, ptx_add(b, part->column, lane_times(b, step)), part->column_end, ptx_u64(b, WARP * step));
    ptx_val word = ptx_mad(b, row, m->row_words, ptx_shr(b, ptx_mul(b, column, ptx_u64(b, bits)), 5));
    gatherer g = gatherer_begin(b, m, 32, ptx_at(b, m->q.codes, word, 4), ptx_u64(b, 4));
    ptx_val at = ptx_for(b, column, ptx_min(b, ptx_add(b, column, step), m->columns), ptx_u64(b, 1));
    ptx_val place = at;
    if (is_awq) { /* slot s holds column 2 * (s % 4) + s / 4 of its eight */
        ptx_val slot = ptx_sub(b, at, column);
        ptx_val even = ptx_shl(b, ptx_and(b, slot, ptx_u64(b, 3)), 1);
        place = ptx_add(b, column, ptx_or(b, even, ptx_shr(b, slot, 2)));
    }
    gather(b, &g, code(b, user, row, place));
    ptx_end_for(b);
    gatherer_end(b, &g);
    ptx_end_for(b);
    ptx_end_for(b);
}

/* Each thread writes a byte, which holds one code. */
static void write_byte_each(ptx_builder *b, const matrix *m, const matrix_part *part, element_code *code,
                            const void *user)
{
    ptx_val row = ptx_for(b, part->row, part->row_end, ptx_u64(b, 1));
    ptx_val column =
        ptx_for(b, ptx_add(b, part->column, lane_times(b, 1)), part->column_end, ptx_u64(b, WARP));
    ptx_val address = ptx_add(b, m->q.codes, ptx_mad(b, row, m->columns, column));
    ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U8, address, 0, code(b, user, row, column));
    ptx_end_for(b);
    ptx_end_for(b);
}

/* Each thread writes the bytes that a few elements fill; these may extend into the next rows. */
static void write_bytes(ptx_builder *b, const matrix *m, const matrix_part *part, element_code *code,
                        const void *user)
{
    const unsigned bits = bits_of(m), step = codes_of_units(bits, 8);
    if (step == 1) {
        write_byte_each(b, m, part, code, user);
        return;
    }
    ptx_val first_row = ptx_for(b, part->row, part->row_end, ptx_u64(b, 1));
    ptx_val row_start = ptx_mul(b, first_row, m->columns), n = ptx_mul(b, m->rows, m->columns);
    ptx_val begin = ptx_add(b, row_start, part->column), end = ptx_add(b, row_start, part->column_end);
    ptx_val up = ptx_and(b, ptx_add(b, begin, step - 1), ptx_u64(b, ~(uint64_t)(step - 1)));
    ptx_val index = ptx_for(b, ptx_add(b, up, lane_times(b, step)), end, ptx_u64(b, WARP * step));
    ptx_val byte = ptx_shr(b, ptx_mul(b, index, ptx_u64(b, bits)), 3);
    gatherer g = gatherer_begin(b, m, 8, ptx_add(b, m->q.codes, byte), ptx_u64(b, 1));
    ptx_val row = ptx_var(b, first_row), column = ptx_var(b, ptx_sub(b, index, row_start));
    ptx_for(b, index, ptx_min(b, ptx_add(b, index, step), n), ptx_u64(b, 1));
    gather(b, &g, code(b, user, row, column));
    ptx_assign(b, column, ptx_add(b, column, 1));
    ptx_if(b, ptx_setp(b, PTX_EQ, column, m->columns));
    ptx_assign(b, column, ptx_u64(b, 0));
    ptx_assign(b, row, ptx_add(b, row, 1));
    ptx_end_if(b);
    ptx_end_for(b);
    gatherer_end(b, &g);
    ptx_end_for(b);
    ptx_end_for(b);
}

void matrix_write(ptx_builder *b, const matrix *m, const matrix_part *part, element_code *code,
                  const void *user)
{
    switch (m->q.coding.spec->stored.layout) {
    case QDNN_LAYOUT_WORDS_INTERLEAVED:
        write_columns(b, m, part, code, user);
        return;
    case QDNN_LAYOUT_WORDS_ROWS:
    case QDNN_LAYOUT_AWQ:
        write_rows(b, m, part, code, user);
        return;
    default:
        write_bytes(b, m, part, code, user);
        return;
    }
}
