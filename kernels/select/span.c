/* Rows by aligned accesses of 16 bytes, wherever they begin. */
#include "kernels/select/select.h"

static unsigned elements_of(const span *s)
{
    return vector_elements(s->type);
}

span span_of(ptx_builder *b, qdnnDataType_t type, ptx_val first, ptx_val count)
{
    span s = {.type = type, .count = count};
    const unsigned bytes = element_bytes(type);
    ptx_val over = ptx_and(b, ptx_cvt(b, PTX_U32, first), LOAD_BYTES - 1);
    s.base = ptx_sub(b, first, ptx_cvt(b, PTX_U64, over));
    s.skip = ptx_shr(b, over, (unsigned)__builtin_ctz(bytes));
    ptx_val end = ptx_add(b, s.skip, count);
    s.vectors = ptx_shr(b, ptx_add(b, end, elements_of(&s) - 1), (unsigned)__builtin_ctz(elements_of(&s)));
    return s;
}

static ptx_val number_of(ptx_builder *b, const span *s, ptx_val v)
{
    return ptx_sub(b, ptx_mul(b, v, elements_of(s)), s->skip);
}

ptx_val span_has(ptx_builder *b, const span *s, ptx_val number, unsigned j)
{
    return ptx_setp(b, PTX_LT, j ? ptx_add(b, number, j) : number, s->count);
}

/* The word of a vector of which not all elements exist. */
static ptx_val edge_word(ptx_builder *b, const span *s, ptx_val at, ptx_val number, unsigned i)
{
    if (element_bytes(s->type) == 4)
        return ptx_ld_if(b, span_has(b, s, number, i), PTX_GLOBAL, 0, PTX_U32, at, (int)(4 * i),
                         ptx_u32(b, 0));
    ptx_val zero = ptx_u16(b, 0), has_low = span_has(b, s, number, 2 * i);
    ptx_val low = ptx_ld_if(b, has_low, PTX_GLOBAL, 0, PTX_U16, at, (int)(4 * i), zero);
    ptx_val has_high = span_has(b, s, number, 2 * i + 1);
    ptx_val high = ptx_ld_if(b, has_high, PTX_GLOBAL, 0, PTX_U16, at, (int)(4 * i + 2), zero);
    return ptx_pack2(b, PTX_U32, low, high);
}

void span_fetch(ptx_builder *b, const span *s, ptx_val v, ptx_val words[4])
{
    ptx_val number = number_of(b, s, v), at = ptx_at(b, s->base, ptx_cvt(b, PTX_U64, v), LOAD_BYTES);
    ptx_val begins = ptx_setp(b, PTX_LT, number, s->count);
    ptx_val whole = ptx_setp_and(b, PTX_LE, ptx_add(b, number, elements_of(s)), s->count, begins);
    for (int i = 0; i < 4; i++)
        words[i] = ptx_var_of(b, PTX_U32);
    ptx_if(b, whole);
    ptx_ld_vec_into(b, PTX_GLOBAL, 0, PTX_U32, at, 0, words, 4);
    ptx_else(b);
    for (unsigned i = 0; i < 4; i++)
        ptx_assign(b, words[i], edge_word(b, s, at, number, i));
    ptx_end_if(b);
}

void span_decode(ptx_builder *b, const span *s, ptx_val v, const ptx_val words[4], ptx_val x[SPAN_ELEMENTS],
                 ptx_val *number)
{
    const unsigned each = elements_of(s) / 4;
    *number = number_of(b, s, v);
    for (unsigned i = 0; i < 4; i++)
        emit_widen_word(b, s->type, words[i], x + i * each);
}

void select_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val row, ptx_val number, ptx_val count,
                  ptx_val aligned, float fill, ptx_val x[SELECT_CHUNK])
{
    ptx_val at = ptx_at(b, row, ptx_cvt(b, PTX_U64, number), element_bytes(type)), loaded[SELECT_CHUNK];
    for (int i = 0; i < SELECT_CHUNK; i++)
        x[i] = ptx_var(b, ptx_f32(b, fill));
    ptx_if(b, ptx_setp_and(b, PTX_LE, ptx_add(b, number, SELECT_CHUNK), count, aligned));
    emit_load_run(b, type, at, 0, SELECT_CHUNK, loaded);
    for (int i = 0; i < SELECT_CHUNK; i++)
        ptx_assign(b, x[i], loaded[i]);
    ptx_else(b);
    for (int i = 0; i < SELECT_CHUNK; i++) {
        ptx_if(b, ptx_setp(b, PTX_LT, i ? ptx_add(b, number, i) : number, count));
        ptx_assign(b, x[i], emit_load(b, type, at, i * (int)element_bytes(type)));
        ptx_end_if(b);
    }
    ptx_end_if(b);
}

row_part row_part_of(ptx_builder *b, const kernel_spec *spec, const kernel_args *args)
{
    row_part p = {.row = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)),
                  .n = ptx_cvt(b, PTX_U32, args->number[NUMBER_COLUMNS])};
    p.first = ptx_u32(b, 0);
    p.count = p.n;
    if (spec->select.phase != KERNEL_PHASE_PARTS && spec->select.phase != KERNEL_PHASE_SUMS)
        return p;
    ptx_val parts = ptx_cvt(b, PTX_U32, args->number[NUMBER_PARTS]);
    ptx_val each = ptx_div(b, ptx_sub(b, ptx_add(b, p.n, parts), 1), parts);
    each = ptx_and(b, ptx_add(b, each, SAMPLE_SEGMENT - 1), ~(uint32_t)(SAMPLE_SEGMENT - 1));
    p.first = ptx_min(b, ptx_mul(b, ptx_ctaid_y(b), each), p.n);
    p.count = ptx_min(b, each, ptx_sub(b, p.n, p.first));
    return p;
}

ptx_val row_part_at(ptx_builder *b, const row_part *p, ptx_val matrix, unsigned bytes, ptx_val i)
{
    ptx_val n = ptx_cvt(b, PTX_U64, p->n);
    return ptx_at(b, matrix, ptx_mad(b, p->row, n, ptx_cvt(b, PTX_U64, i)), bytes);
}
