/* The dequantize kernel for flat tensors: codes become elements. */
#include "kernels/formats/pairs.h"
#include "kernels/quant/matrix.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/tile.h"

static void load_codes(ptx_builder *b, const tile *t, ptx_val index, ptx_val in, int offset, unsigned skip,
                       ptx_val *quads)
{
    unsigned chunk = chunk_elements(t->q.coding.spec->data);
    if (codes_are_direct(&t->q.coding)) {
        codes_load(b, &t->q, in, offset, chunk, quads);
        return;
    }
    ptx_val element = ptx_add(b, ptx_cvt(b, PTX_U32, ptx_sub(b, index, t->first)), skip);
    stage_quads(b, &t->q.coding, &t->stage, element, chunk, quads);
}

/* Decodes in pairs if that takes fewer instructions. */
static void decode_and_store(ptx_builder *b, const tile *t, const chunk_groups *groups, const ptx_val *quads,
                             ptx_val out, int offset)
{
    const kernel_spec *spec = t->q.coding.spec;
    const unsigned chunk = chunk_elements(spec->data);
    ptx_val y[CHUNK_MAX];
    if (element_bytes(spec->data) == 2 && chunk_has_one_group(spec) &&
        pair_is_short(b, &t->q.coding, spec->data)) {
        chunk_decode_pairs(b, &t->q, groups, quads, chunk, y);
        emit_store_words(b, out, offset, chunk / 2, y);
        return;
    }
    chunk_decode(b, &t->q, groups, quads, chunk, y);
    emit_joint_exchange(b, spec->data, y);
    emit_store_joint(b, spec->data, out, offset, chunk, y);
}

/* `count` chunks a warp's width apart, starting at element `index`. All loads come first, so that their
 * latencies overlap. */
static void dequantize_chunks(ptx_builder *b, const tile *t, ptx_val index, unsigned count)
{
    const kernel_spec *spec = t->q.coding.spec;
    unsigned chunk = chunk_elements(spec->data), stride = WARP * chunk;
    ptx_val in = tile_codes_at(b, t, index), out = ptx_at(b, t->data, index, element_bytes(spec->data));
    ptx_val quads[THREAD_ELEMENTS / QUAD];
    chunk_groups groups[THREAD_CHUNKS_MAX];
    warp_groups_load(b, &t->q, index, count, groups);
    for (unsigned i = 0; i < count; i++)
        load_codes(b, t, index, in, (int)(i * stride * t->q.coding.format->facts.bits / 8), i * stride,
                   &quads[i * chunk / QUAD]);
    for (unsigned i = 0; i < count; i++)
        decode_and_store(b, t, &groups[i], &quads[i * chunk / QUAD], out,
                         (int)(i * WARP * chunk_bytes(spec->data)));
}

static void dequantize_elements(ptx_builder *b, const tile *t)
{
    qdnnDataType_t data = t->q.coding.spec->data;
    ptx_val first = ptx_add(b, t->first, ptx_cvt(b, PTX_U64, ptx_tid_x(b)));
    ptx_val at = ptx_for(b, first, t->end, TILE_BLOCK);
    ptx_val code = code_at(b, &t->q, at);
    group_values group = flat_group(b, &t->q, at);
    ptx_val y = element_decode(b, &t->q, &group, code);
    emit_store(b, data, ptx_at(b, t->data, at, element_bytes(data)), 0, y);
    ptx_end_for(b);
}

static void emit_flat(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    if (format_is_plain(row->format)) {
        emit_convert(b, row, spec);
        return;
    }
    if (format_is_blocks(row->format)) {
        emit_block_dequantize(b, row, spec);
        return;
    }
    tile t = tile_begin(b, row, spec);
    quantized_open(b, &t.q);
    ptx_uniform(b);
    ptx_if(b, t.whole);
    if (!codes_are_direct(&t.q.coding))
        stage_load(b, &t.stage, tile_codes_at(b, &t, t.first));
    tile_chunks(b, &t, dequantize_chunks);
    ptx_else(b);
    dequantize_elements(b, &t);
    ptx_end_if(b);
}

void emit_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    (kernel_is_matrix(row, spec) ? emit_matrix_dequantize : emit_flat)(b, row, spec);
}
