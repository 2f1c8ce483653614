/* The quantize kernel: elements become 4-bit codes, two to a byte. */
#include "kernels/chunks.h"

/* A NaN becomes 0 (its code is that of zero), an infinity the largest finite number. */
static ptx_val finite(ptx_builder *b, ptx_val x)
{
    ptx_val largest = ptx_f32(b, element_largest(QDNN_DATA_F32));
    ptx_val clamped = ptx_clamp(b, x, ptx_neg(b, largest), largest);
    return ptx_selp(b, ptx_f32(b, 0), clamped, ptx_setp(b, PTX_NAN, x, x));
}

static ptx_val encode(ptx_builder *b, const tile *t, const group_values *group, ptx_val x)
{
    ptx_val quotient = t->spec->division == QDNN_DIVIDE_RECIPROCAL
                           ? ptx_mul(b, finite(b, x), group->reciprocal)
                           : ptx_div(b, finite(b, x), group->scale);
    return t->format->encode(b, t->spec, group, quotient);
}

/* The codes of one chunk, packed into its 2 or 4 bytes. */
static ptx_val encode_chunk(ptx_builder *b, const tile *t, const chunk_groups *groups, const ptx_val *x)
{
    ptx_val word = {0};
    for (unsigned k = 0; k < chunk_elements(t->spec->data); k++) {
        group_values group = chunk_group_at(b, t, groups, k);
        ptx_val code = ptx_shl(b, encode(b, t, &group, x[k]), code_shift(t->spec, k));
        word = k == 0 ? code : ptx_or(b, word, code);
    }
    return word;
}

/* `count` chunks that lie a block's width apart, from element `index` on. All loads first: they wait for
 * memory together. */
static void quantize_chunks(ptx_builder *b, const tile *t, ptx_val index, unsigned count)
{
    unsigned chunk = chunk_elements(t->spec->data), stride = CHUNK_BLOCK * chunk;
    ptx_val in = ptx_at(b, t->data, index, element_bytes(t->spec->data));
    ptx_val out = ptx_add(b, t->codes, ptx_shr(b, index, 1));
    ptx_val x[THREAD_ELEMENTS];
    chunk_groups groups[THREAD_CHUNKS_MAX];
    for (unsigned i = 0; i < count; i++)
        chunk_groups_load(b, t, ptx_add(b, index, i * stride), &groups[i]);
    for (unsigned i = 0; i < count; i++)
        emit_load_chunk(b, t->spec->data, in, (int)(i * CHUNK_BLOCK * CHUNK_BYTES), &x[i * chunk]);
    for (unsigned i = 0; i < count; i++) {
        ptx_val word = encode_chunk(b, t, &groups[i], &x[i * chunk]);
        ptx_st_as(b, PTX_GLOBAL, PTX_CACHE_DEFAULT, chunk == 8 ? PTX_U32 : PTX_U16, out,
                  (int)(i * stride / 2), word);
    }
}

static ptx_val encode_at(ptx_builder *b, const tile *t, ptx_val index)
{
    group_values group = group_at(b, t, index);
    ptx_val x = emit_load(b, t->spec->data, ptx_at(b, t->data, index, element_bytes(t->spec->data)), 0);
    return encode(b, t, &group, x);
}

/* A byte a thread at a time; where n is odd, the last byte's second code is 0. */
static void quantize_bytes(ptx_builder *b, const tile *t)
{
    ptx_val first = ptx_add(b, ptx_shr(b, t->first, 1), ptx_cvt(b, PTX_U64, ptx_tid_x(b)));
    ptx_val bound = ptx_shr(b, ptx_add(b, t->end, 1), 1);
    ptx_val at = ptx_for(b, first, bound, CHUNK_BLOCK);
    ptx_val even = ptx_shl(b, at, 1), odd = ptx_or(b, even, 1);
    ptx_val byte = ptx_var(b, ptx_shl(b, encode_at(b, t, even), code_shift(t->spec, 0)));
    ptx_if(b, ptx_setp(b, PTX_LT, odd, t->end));
    ptx_assign(b, byte, ptx_or(b, byte, ptx_shl(b, encode_at(b, t, odd), code_shift(t->spec, 1))));
    ptx_end_if(b);
    ptx_st_global_u8(b, ptx_add(b, t->codes, at), 0, byte);
    ptx_end_for(b);
}

void emit_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    tile t = {.format = format_of(row), .spec = spec};
    ptx_reqntid(b, CHUNK_BLOCK, 1, 1);
    ptx_minnctapersm(
        b, 3); /* up to 80 registers: left alone, ptxas aims for 64 and spills around its division */
    t.data = ptx_param_ptr(b, "x", element_bytes(spec->data));
    t.scales = ptx_param_ptr(b, "scale", element_bytes(spec->scale));
    if (t.format->has_zero)
        t.zeros = ptx_param_ptr(b, "zero", element_bytes(spec->zero));
    t.codes = ptx_param_ptr(b, "codes", 1);
    t.n = ptx_param(b, PTX_U64, "n");
    tile_begin(b, &t);
    ptx_if(b, t.whole);
    tile_chunks(b, &t, quantize_chunks);
    ptx_else(b);
    quantize_bytes(b, &t);
    ptx_end_if(b);
}
