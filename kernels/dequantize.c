/* The dequantize kernel: 4-bit codes become elements. */
#include "kernels/chunks.h"

static ptx_val decode(ptx_builder *b, const tile *t, const group_values *group, ptx_val word, unsigned shift)
{
    return ptx_mul(b, t->format->decode(b, t->spec, &t->state, group, word, shift), group->scale);
}

static void decode_chunk(ptx_builder *b, const tile *t, const chunk_groups *groups, ptx_val word, ptx_val *y)
{
    ptx_val half = word; /* decode takes codes from the low 16 bits */
    for (unsigned k = 0; k < chunk_elements(t->spec->data); k++) {
        if (k == 4)
            half = ptx_shr(b, word, 16);
        group_values group = chunk_group_at(b, t, groups, k);
        y[k] = decode(b, t, &group, half, code_shift(t->spec, k % 4));
    }
}

/* `count` chunks that lie a block's width apart, from element `index` on. All loads first: they wait for
 * memory together. */
static void dequantize_chunks(ptx_builder *b, const tile *t, ptx_val index, unsigned count)
{
    unsigned chunk = chunk_elements(t->spec->data), stride = CHUNK_BLOCK * chunk;
    ptx_val in = ptx_add(b, t->codes, ptx_shr(b, index, 1));
    ptx_val out = ptx_at(b, t->data, index, element_bytes(t->spec->data));
    ptx_val words[THREAD_CHUNKS_MAX], y[CHUNK_MAX];
    chunk_groups groups[THREAD_CHUNKS_MAX];
    for (unsigned i = 0; i < count; i++) {
        int offset = (int)(i * stride / 2);
        chunk_groups_load(b, t, ptx_add(b, index, i * stride), &groups[i]);
        words[i] = chunk == 8 ? ptx_ld_global_nc(b, PTX_U32, in, offset)
                              : ptx_cvt(b, PTX_U32, ptx_ld_global_nc(b, PTX_U16, in, offset));
    }
    for (unsigned i = 0; i < count; i++) {
        decode_chunk(b, t, &groups[i], words[i], y);
        emit_store_chunk(b, t->spec->data, out, (int)(i * CHUNK_BLOCK * CHUNK_BYTES), y);
    }
}

static void dequantize_elements(ptx_builder *b, const tile *t)
{
    ptx_val first = ptx_add(b, t->first, ptx_cvt(b, PTX_U64, ptx_tid_x(b)));
    ptx_val at = ptx_for(b, first, t->end, CHUNK_BLOCK);
    ptx_val byte = ptx_ld_global_nc(b, PTX_U8, ptx_add(b, t->codes, ptx_shr(b, at, 1)), 0);
    ptx_val is_odd = ptx_setp(b, PTX_NE, ptx_and(b, ptx_cvt(b, PTX_U32, at), 1), 0);
    ptx_val shift =
        ptx_selp(b, ptx_u32(b, code_shift(t->spec, 1)), ptx_u32(b, code_shift(t->spec, 0)), is_odd);
    group_values group = group_at(b, t, at);
    ptx_val y = decode(b, t, &group, ptx_shr(b, byte, shift), 0);
    emit_store(b, t->spec->data, ptx_at(b, t->data, at, element_bytes(t->spec->data)), 0, y);
    ptx_end_for(b);
}

void emit_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    tile t = {.format = format_of(row), .spec = spec};
    ptx_reqntid(b, CHUNK_BLOCK, 1, 1);
    t.codes = ptx_param_ptr(b, "codes", 1);
    t.scales = ptx_param_ptr(b, "scale", element_bytes(spec->scale));
    if (t.format->has_zero)
        t.zeros = ptx_param_ptr(b, "zero", element_bytes(spec->zero));
    t.data = ptx_param_ptr(b, "y", element_bytes(spec->data));
    t.n = ptx_param(b, PTX_U64, "n");
    if (t.format->decode_begin)
        t.state = t.format->decode_begin(b);
    tile_begin(b, &t);
    ptx_if(b, t.whole);
    tile_chunks(b, &t, dequantize_chunks);
    ptx_else(b);
    dequantize_elements(b, &t);
    ptx_end_if(b);
}
