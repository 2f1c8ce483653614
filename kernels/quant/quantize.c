/* The quantize kernel for flat tensors: elements become codes. */
#include "kernels/quant/matrix.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/tile.h"

/* Stores the quads of a chunk to memory, or to the stage in which their tile is assembled. */
static void store_codes(ptx_builder *b, const tile *t, ptx_val index, ptx_val out, int offset, unsigned skip,
                        const ptx_val *quads)
{
    unsigned chunk = chunk_elements(t->q.coding.spec->data);
    if (codes_are_direct(&t->q.coding)) {
        codes_store(b, &t->q, out, offset, chunk, quads);
        return;
    }
    ptx_val element = ptx_add(b, ptx_cvt(b, PTX_U32, ptx_sub(b, index, t->first)), skip);
    stage_put(b, &t->q.coding, &t->stage, element, chunk, quads);
}

/* `count` chunks a warp's width apart, starting at element `index`. All loads come first, so that their
 * latencies overlap. */
static void quantize_chunks(ptx_builder *b, const tile *t, ptx_val index, unsigned count)
{
    const kernel_spec *spec = t->q.coding.spec;
    unsigned chunk = chunk_elements(spec->data), stride = WARP * chunk;
    ptx_val in = ptx_at(b, t->data, index, element_bytes(spec->data)), out = tile_codes_at(b, t, index);
    ptx_val x[THREAD_ELEMENTS], quads[CHUNK_MAX / QUAD];
    chunk_groups groups[THREAD_CHUNKS_MAX];
    warp_groups_load(b, &t->q, index, count, groups);
    for (unsigned i = 0; i < count; i++)
        emit_load_joint(b, spec->data, in, (int)(i * WARP * chunk_bytes(spec->data)), chunk, &x[i * chunk]);
    for (unsigned i = 0; i < count; i++) {
        emit_joint_exchange(b, spec->data, &x[i * chunk]);
        chunk_encode(b, &t->q, &groups[i], &x[i * chunk], chunk, quads);
        store_codes(b, t, index, out, (int)(i * stride * t->q.coding.format->facts.bits / 8), i * stride,
                    quads);
    }
}

static void emit_flat(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    if (format_is_plain(row->format)) {
        emit_convert(b, row, spec);
        return;
    }
    if (format_is_blocks(row->format)) {
        emit_block_quantize(b, row, spec);
        return;
    }
    ptx_minnctapersm(
        b, 3); /* up to 80 registers: by default, ptxas aims for 64 and spills around its division */
    tile t = tile_begin(b, row, spec);
    ptx_uniform(b);
    ptx_if(b, t.whole);
    tile_chunks(b, &t, quantize_chunks);
    if (!codes_are_direct(&t.q.coding))
        stage_store(b, &t.stage, tile_codes_at(b, &t, t.first));
    ptx_else(b);
    const few_elements few = {
        .data = t.data, .first = t.first, .end = t.end, .lane = ptx_tid_x(b), .lanes = TILE_BLOCK};
    encode_few(b, &t.q, &few);
    ptx_end_if(b);
}

void emit_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    (kernel_is_matrix(row, spec) ? emit_matrix_quantize : emit_flat)(b, row, spec);
}
