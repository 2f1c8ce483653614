/* Reading codes: rows of bytes, or rows of words with eight nibbles. */
#include "kernels/integer/integer.h"

#include "kernels/emit.h"

int_matrix int_matrix_begin(ptx_builder *b, qdnnDataType_t type, ptx_val base, ptx_val rows, ptx_val k)
{
    int_matrix m = {.type = type, .base = base, .rows = rows, .pitch = ptx_cvt(b, PTX_U32, k)};
    if (type == QDNN_DATA_I4)
        m.pitch = ptx_shl(b, ptx_shr(b, ptx_add(b, m.pitch, 7), 3), 2);
    ptx_val low = ptx_or(b, ptx_cvt(b, PTX_U32, base), m.pitch);
    m.is_fast = ptx_setp(b, PTX_EQ, ptx_and(b, low, INT_CHUNK - 1), 0);
    m.is_words = ptx_setp(b, PTX_EQ, ptx_and(b, low, 3), 0);
    return m;
}

ptx_val int_row(ptx_builder *b, const int_matrix *m, ptx_val row)
{
    ptx_val last = ptx_sub(b, m->rows, ptx_u64(b, 1)), exists = ptx_min(b, row, last);
    return ptx_mad(b, exists, ptx_cvt(b, PTX_U64, m->pitch), m->base);
}

/* For rows that are 4-byte aligned; words past the pitch are 0. */
static void load_words(ptx_builder *b, const int_matrix *m, ptx_val from, ptx_val at, const ptx_val *words)
{
    for (int i = 0; i < 4; i++) {
        ptx_val exists = ptx_setp(b, PTX_LT, i ? ptx_add(b, at, 4 * i) : at, m->pitch);
        ptx_assign(b, words[i],
                   ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_U32, from, 4 * i, ptx_u32(b, 0)));
    }
}

static void load_bytes(ptx_builder *b, const int_matrix *m, ptx_val from, ptx_val at, const ptx_val *words)
{
    for (int i = 0; i < INT_CHUNK; i++) {
        ptx_val exists = ptx_setp(b, PTX_LT, i ? ptx_add(b, at, i) : at, m->pitch);
        ptx_val byte = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_U8, from, i, ptx_u32(b, 0));
        ptx_assign(b, words[i / 4], i % 4 ? ptx_bfi(b, byte, words[i / 4], i % 4 * 8, 8) : byte);
    }
}

void int_load_slowly(ptx_builder *b, const int_matrix *m, ptx_val address, ptx_val at, ptx_val words[4])
{
    ptx_val from = ptx_add(b, address, ptx_cvt(b, PTX_U64, at));
    for (int i = 0; i < 4; i++)
        words[i] = ptx_var(b, ptx_u32(b, 0));
    ptx_uniform(b);
    ptx_if(b, m->is_words);
    load_words(b, m, from, at, words);
    ptx_else(b);
    load_bytes(b, m, from, at, words);
    ptx_end_if(b);
}

void int_load(ptx_builder *b, const int_matrix *m, ptx_val address, ptx_val at, ptx_val words[4])
{
    ptx_val all[4], slow[4], inside[4];
    for (int i = 0; i < 4; i++)
        all[i] = ptx_var(b, ptx_u32(b, 0));
    ptx_uniform(b);
    ptx_if(b, m->is_fast);
    ptx_if(b, ptx_setp(b, PTX_LT, at, m->pitch));
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_add(b, address, ptx_cvt(b, PTX_U64, at)), 0, inside, 4);
    for (int i = 0; i < 4; i++)
        ptx_assign(b, all[i], inside[i]);
    ptx_end_if(b);
    ptx_else(b);
    int_load_slowly(b, m, address, at, slow);
    for (int i = 0; i < 4; i++)
        ptx_assign(b, all[i], slow[i]);
    ptx_end_if(b);
    for (int i = 0; i < 4; i++)
        words[i] = all[i];
}

void int_spread(ptx_builder *b, ptx_val word, ptx_val *even, ptx_val *odd)
{
    *even = ptx_and(b, ptx_shl(b, word, 4), 0xF0F0F0F0u);
    *odd = ptx_and(b, word, 0xF0F0F0F0u);
}

ptx_val int_typed(ptx_builder *b, qdnnDataType_t type, ptx_val word)
{
    return ptx_as(b, type == QDNN_DATA_U8 ? PTX_U32 : PTX_S32, word);
}
