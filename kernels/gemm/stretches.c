/* Copies stretches of rows (stretches.h). */
#include "kernels/gemm/stretches.h"

enum { VECTORS_MAX = 16 }; /* per thread */

ptx_val stretches_begin(ptx_builder *b, stretches *s, unsigned output, ptx_val address, ptx_val shared)
{
    ptx_val begin = ptx_and(b, address, ptx_u64(b, ~(uint64_t)(s->align - 1)));
    s->from[output] = ptx_mad_wide(b, s->thread, ptx_u32(b, LOAD_BYTES), begin);
    s->to[output] = ptx_mad(b, s->thread, LOAD_BYTES, shared);
    return ptx_cvt(b, PTX_U32, ptx_sub(b, address, begin));
}

static unsigned vectors_of_thread(const stretches *s)
{
    return (s->vectors + s->team - 1) / s->team;
}

/* Makes the next instruction conditional: only for threads that have vector t of their rows and, unless
 * `needed` is empty, need it. */
static void if_vector_exists(ptx_builder *b, const stretches *s, unsigned t, ptx_val needed)
{
    ptx_val has = {0};
    if ((t + 1) * s->team > s->vectors)
        has = ptx_setp(b, PTX_LT, s->thread, (int)(s->vectors - t * s->team));
    if (needed.kind != PTX_NOTHING) {
        ptx_val at = ptx_mad(b, s->thread, LOAD_BYTES, ptx_u32(b, t * s->team * LOAD_BYTES));
        has = has.kind == PTX_NOTHING ? ptx_setp(b, PTX_LT, at, needed)
                                      : ptx_setp_and(b, PTX_LT, at, needed, has);
    }
    if (has.kind != PTX_NOTHING)
        ptx_when(b, has);
}

static ptx_val swap_nibbles(ptx_builder *b, ptx_val x)
{
    ptx_val low = ptx_shr(b, x, 4), high = ptx_shl(b, x, 4);
    return ptx_lop3(b, low, high, ptx_u32(b, 0x0F0F0F0F),
                    (PTX_LOP_A & PTX_LOP_C) | (PTX_LOP_B & (~PTX_LOP_C & 0xFF)));
}

/* The case that all vectors lie inside the weights. */
static void copy_vectors(ptx_builder *b, const stretches *s, const ptx_val *from, ptx_val needed)
{
    ptx_val words[STRETCH_OUTPUTS_MAX][VECTORS_MAX][4];
    for (unsigned i = 0; i < s->outputs; i++)
        for (unsigned t = 0; t < vectors_of_thread(s); t++) {
            for (unsigned w = 0; w < 4; w++)
                words[i][t][w] = ptx_var(b, ptx_u32(b, 0));
            if_vector_exists(b, s, t, needed);
            ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_U32, from[i], (int)(t * s->team * LOAD_BYTES),
                            words[i][t], 4);
        }
    for (unsigned i = 0; i < s->outputs; i++)
        for (unsigned t = 0; t < vectors_of_thread(s); t++) {
            for (unsigned w = 0; w < 4 && s->swaps_nibbles; w++)
                words[i][t][w] = swap_nibbles(b, words[i][t][w]);
            if_vector_exists(b, s, t, (ptx_val){0});
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, s->to[i], (int)(t * s->team * LOAD_BYTES),
                       words[i][t], 4);
        }
}

/* The same byte by byte; bytes outside the weights count as 0. */
static void copy_bytes(ptx_builder *b, const stretches *s, ptx_val from, ptx_val to)
{
    ptx_val first = ptx_mul(b, s->thread, LOAD_BYTES);
    ptx_val vector = ptx_for(b, first, (int)(s->vectors * LOAD_BYTES), (int)(s->team * LOAD_BYTES));
    ptx_val more = ptx_sub(b, vector, first), byte = ptx_for(b, ptx_u32(b, 0), LOAD_BYTES, 1);
    ptx_val at = ptx_add(b, more, byte), address = ptx_add(b, from, ptx_cvt(b, PTX_U64, at));
    ptx_val inside = ptx_setp_and(b, PTX_GE, address, s->first, ptx_setp(b, PTX_LT, address, s->end));
    ptx_val value = ptx_ld_if(b, inside, PTX_GLOBAL, PTX_NC, PTX_U8, address, 0, ptx_u32(b, 0));
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U8, ptx_add(b, to, at), 0,
              s->swaps_nibbles ? swap_nibbles(b, value) : value);
    ptx_end_for(b);
    ptx_end_for(b);
}

void stretches_copy(ptx_builder *b, const stretches *s, ptx_val before, ptx_val needed)
{
    const unsigned bytes = vectors_of_thread(s) * s->team * LOAD_BYTES;
    ptx_val from[STRETCH_OUTPUTS_MAX];
    for (unsigned i = 0; i < s->outputs; i++)
        from[i] = ptx_add(b, s->from[i], before);
    ptx_val ends = ptx_add(b, from[s->outputs - 1], ptx_u64(b, bytes));
    ptx_val whole = ptx_setp_and(b, PTX_LE, ends, s->end, ptx_setp(b, PTX_GE, from[0], s->first));
    ptx_syncwarp(b);
    ptx_if(b, whole);
    copy_vectors(b, s, from, needed);
    ptx_else(b);
    for (unsigned i = 0; i < s->outputs; i++)
        copy_bytes(b, s, from[i], s->to[i]);
    ptx_end_if(b);
    ptx_syncwarp(b);
}
