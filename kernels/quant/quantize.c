/* The quantize kernel of flat tensors: elements become codes. */
#include "kernels/quant/quant.h"
#include "kernels/quant/tile.h"

/* The quads of a chunk go to memory, or to where their tile is put together. */
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

/* `count` chunks that lie a block's width apart, from element `index` on. All loads first: they wait for
 * memory together. */
static void quantize_chunks(ptx_builder *b, const tile *t, ptx_val index, unsigned count)
{
    const kernel_spec *spec = t->q.coding.spec;
    unsigned chunk = chunk_elements(spec->data), stride = TILE_BLOCK * chunk;
    ptx_val in = ptx_at(b, t->data, index, element_bytes(spec->data)), out = tile_codes_at(b, t, index);
    ptx_val x[THREAD_ELEMENTS], quads[CHUNK_MAX / QUAD];
    chunk_groups groups[THREAD_CHUNKS_MAX];
    for (unsigned i = 0; i < count; i++)
        chunk_groups_load(b, &t->q, ptx_add(b, index, i * stride), &groups[i]);
    for (unsigned i = 0; i < count; i++)
        emit_load_chunk(b, spec->data, in, (int)(i * TILE_BLOCK * chunk_bytes(spec->data)), &x[i * chunk]);
    for (unsigned i = 0; i < count; i++) {
        chunk_encode(b, &t->q, &groups[i], &x[i * chunk], chunk, quads);
        store_codes(b, t, index, out, (int)(i * stride * t->q.coding.format->facts.bits / 8), i * stride, quads);
    }
}

static ptx_val encode_at(ptx_builder *b, const tile *t, ptx_val index)
{
    group_values group = flat_group(b, &t->q, index);
    qdnnDataType_t data = t->q.coding.spec->data;
    return element_encode(b, &t->q, &group, emit_load(b, data, ptx_at(b, t->data, index, element_bytes(data)), 0));
}

/* Elements that fill whole bytes: as few as do. */
static unsigned elements_of_bytes(unsigned width)
{
    return width == 8 ? 1 : width == 4 ? 2 : width == 2 || width == 6 ? 4 : 8;
}

/* As few elements per thread and step as fill whole bytes; what is missing at the end counts as code 0. */
static void quantize_few(ptx_builder *b, const tile *t)
{
    const unsigned width = t->q.coding.format->facts.bits, few = elements_of_bytes(width), bytes = few * width / 8;
    ptx_val first = ptx_add(b, t->first, ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_tid_x(b), few)));
    ptx_val total = ptx_shr(b, ptx_add(b, ptx_mul(b, t->end, ptx_u64(b, width)), ptx_u64(b, 7)), 3);
    ptx_val at = ptx_for(b, first, t->end, TILE_BLOCK * few);
    ptx_val word = ptx_var(b, bytes > 4 ? ptx_u64(b, 0) : ptx_u32(b, 0));
    for (unsigned i = 0; i < few; i++) {
        ptx_val index = ptx_add(b, at, i);
        ptx_if(b, ptx_setp(b, PTX_LT, index, t->end));
        ptx_val code = encode_at(b, t, index);
        unsigned position = few == 1 ? 0 : quad_position(&t->q.coding, i);
        if (bytes > 4)
            code = ptx_cvt(b, PTX_U64, code);
        ptx_assign(b, word, ptx_or(b, word, position ? ptx_shl(b, code, position) : code));
        ptx_end_if(b);
    }
    ptx_val byte = ptx_shr(b, ptx_mul(b, at, ptx_u64(b, width)), 3);
    for (unsigned i = 0; i < bytes; i++) {
        ptx_val part = i ? ptx_shr(b, word, 8 * i) : word;
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, byte, i), total));
        ptx_st_global_u8(b, ptx_add(b, t->q.codes, byte), (int)i, bytes > 4 ? ptx_cvt(b, PTX_U32, part) : part);
        ptx_end_if(b);
    }
    ptx_end_for(b);
}

void emit_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_reqntid(b, TILE_BLOCK, 1, 1);
    ptx_minnctapersm(b, 3); /* up to 80 registers: left alone, ptxas aims for 64 and spills around its division */
    tile t = tile_begin(b, row, spec);
    ptx_uniform(b);
    ptx_if(b, t.whole);
    tile_chunks(b, &t, quantize_chunks);
    if (!codes_are_direct(&t.q.coding))
        stage_store(b, &t.stage, tile_codes_at(b, &t, t.first));
    ptx_else(b);
    quantize_few(b, &t);
    ptx_end_if(b);
}
