/* Reading codes: rows of bytes, or rows of words with eight nibbles. */
#include "kernels/integer/integer.h"

#include "kernels/emit.h"

ptx_val int_row_bytes(ptx_builder *b, qdnnDataType_t type, ptx_val k)
{
    ptx_val codes = ptx_cvt(b, PTX_U32, k);
    return type == QDNN_DATA_I4 ? ptx_shl(b, ptx_shr(b, ptx_add(b, codes, 7), 3), 2) : codes;
}

int_matrix int_matrix_begin(ptx_builder *b, qdnnDataType_t type, ptx_val base, ptx_val rows, ptx_val k)
{
    int_matrix m = {.type = type, .base = base, .rows = rows, .pitch = int_row_bytes(b, type, k)};
    m.low = ptx_or(b, ptx_cvt(b, PTX_U32, base), m.pitch);
    return m;
}

int_matrix int_matrix_of_windows(ptx_builder *b, qdnnDataType_t type, ptx_val base, ptx_val rows,
                                 unsigned bytes)
{
    return (int_matrix){.type = type,
                        .base = base,
                        .rows = rows,
                        .pitch = ptx_u32(b, bytes),
                        .low = ptx_cvt(b, PTX_U32, base)};
}

ptx_val int_row_that_exists(ptx_builder *b, const int_matrix *m, ptx_val row)
{
    return ptx_mad(b, row, ptx_cvt(b, PTX_U64, m->pitch), m->base);
}

ptx_val int_row(ptx_builder *b, const int_matrix *m, ptx_val row)
{
    ptx_val last = ptx_sub(b, m->rows, ptx_u64(b, 1));
    return int_row_that_exists(b, m, ptx_min(b, row, last));
}

ptx_val int_row_of_block(ptx_builder *b, const int_matrix *m, ptx_val first, int i)
{
    return i ? int_row(b, m, ptx_add(b, first, ptx_u64(b, (uint64_t)i))) : int_row_that_exists(b, m, first);
}

static ptx_val is_multiple(ptx_builder *b, ptx_val low, unsigned bytes)
{
    return ptx_setp(b, PTX_EQ, ptx_and(b, low, bytes - 1), 0);
}

ptx_val int_is_aligned(ptx_builder *b, const int_matrix *m, unsigned bytes)
{
    return is_multiple(b, m->low, bytes);
}

ptx_val int_are_aligned(ptx_builder *b, const int_matrix *x, const int_matrix *w, unsigned bytes)
{
    return is_multiple(b, ptx_or(b, x->low, w->low), bytes);
}

/* What is to be read of a row: all 16 bytes, or those before the pitch. */
typedef struct chunk {
    const int_matrix *matrix;
    ptx_val from; /* u64 */
    ptx_val at;   /* u32: the byte of the row; empty: all are before the pitch */
    const ptx_val *words;
} chunk;

/* Whether byte i exists; empty if it surely does. */
static ptx_val exists(ptx_builder *b, const chunk *c, int i)
{
    if (c->at.kind == PTX_NOTHING)
        return c->at;
    return ptx_setp(b, PTX_LT, i ? ptx_add(b, c->at, i) : c->at, c->matrix->pitch);
}

static void load_into(ptx_builder *b, const chunk *c, ptx_val where, ptx_type type, int offset, ptx_val to)
{
    if (where.kind != PTX_NOTHING)
        ptx_when(b, where);
    ptx_into(b, to);
    ptx_ld(b, PTX_GLOBAL, PTX_NC, type, c->from, offset);
}

static void load_words(ptx_builder *b, const chunk *c)
{
    for (int i = 0; i < 4; i++)
        load_into(b, c, exists(b, c, 4 * i), PTX_U32, 4 * i, c->words[i]);
}

/* The first byte of a word replaces all of it, the others are inserted. */
static void load_bytes(ptx_builder *b, const chunk *c)
{
    for (int i = 0; i < INT_CHUNK; i++) {
        ptx_val word = c->words[i / 4], byte = i % 4 ? ptx_var_of(b, PTX_U32) : word, where = exists(b, c, i);
        load_into(b, c, where, PTX_U8, i, byte);
        if (i % 4 == 0)
            continue;
        if (where.kind != PTX_NOTHING)
            ptx_when(b, where);
        ptx_into(b, word);
        ptx_bfi(b, byte, word, i % 4 * 8, 8);
    }
}

/* Nibbles are stored in words, so only codes of 8 bits are ever read byte by byte. */
static void load(ptx_builder *b, const chunk *c)
{
    if (c->matrix->type == QDNN_DATA_I4) {
        load_words(b, c);
        return;
    }
    ptx_uniform(b);
    ptx_if(b, int_is_aligned(b, c->matrix, 4));
    load_words(b, c);
    ptx_else(b);
    load_bytes(b, c);
    ptx_end_if(b);
}

void int_load_chunk(ptx_builder *b, const int_matrix *m, ptx_val from, const ptx_val words[4])
{
    load(b, &(chunk){.matrix = m, .from = from, .words = words});
}

void int_load(ptx_builder *b, const int_matrix *m, ptx_val address, ptx_val at, ptx_val words[4])
{
    for (int i = 0; i < 4; i++)
        words[i] = ptx_var(b, ptx_u32(b, 0));
    ptx_val from = ptx_add(b, address, ptx_cvt(b, PTX_U64, at));
    load(b, &(chunk){.matrix = m, .from = from, .at = at, .words = words});
}

void int_spread(ptx_builder *b, ptx_val word, ptx_val *even, ptx_val *odd)
{
    *even = ptx_and(b, ptx_shl(b, word, 4), 0xF0F0F0F0u);
    *odd = ptx_and(b, word, 0xF0F0F0F0u);
}

ptx_val int_has_padding(ptx_builder *b, ptx_val k)
{
    return ptx_setp(b, PTX_NE, ptx_and(b, ptx_cvt(b, PTX_U32, k), 7), 0);
}

ptx_val int_padding_products(ptx_builder *b, ptx_val k, ptx_val x_row, ptx_val w_row)
{
    ptx_val codes = ptx_cvt(b, PTX_U32, k), last = ptx_cvt(b, PTX_U64, ptx_shl(b, ptx_shr(b, codes, 3), 2));
    ptx_val past = ptx_shl(b, ptx_u32(b, UINT32_MAX), ptx_shl(b, ptx_and(b, codes, 7), 2));
    ptx_val x[4], even[4], odd[4], sum = ptx_var(b, ptx_s32(b, 0));
    x[0] = ptx_and(b, ptx_ld_global_nc(b, PTX_U32, ptx_add(b, x_row, last), 0), past);
    int_spread(b, ptx_ld_global_nc(b, PTX_U32, ptx_add(b, w_row, last), 0), &even[0], &odd[0]);
    int_add_nibbles(b, sum, 1, x, even, odd);
    return sum;
}

ptx_val int_typed(ptx_builder *b, qdnnDataType_t type, ptx_val word)
{
    return ptx_as(b, type == QDNN_DATA_U8 ? PTX_U32 : PTX_S32, word);
}
