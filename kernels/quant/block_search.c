/* The quantize kernel for K-quants. The elements of a tile go through shared memory, so that each thread gets
 * a whole sub-block although neighbouring threads load adjacent elements. The search itself is in
 * kernels/formats. */
#include "kernels/formats/search.h"
#include "kernels/quant/block_tile.h"
#include "kernels/quant/quant.h"

/* Words of padding between sub-blocks: with them, eight threads that read 16 bytes each access every bank
 * once. */
enum { GAP = 4 };

/* Allows 128 registers per thread; by default, ptxas takes a few more on some targets, and one block in four
 * would no longer fit. */
enum { THREADS_PER_SM = 512 };

typedef struct values {
    ptx_val shared;    /* address */
    unsigned elements; /* per sub-block */
} values;

static values values_of(ptx_builder *b, const block_tile *t)
{
    const unsigned elements = t->layout->search->elements, words = t->threads * (elements + GAP);
    return (values){ptx_shared(b, "values", PTX_F32, words, LOAD_BYTES), elements};
}

static void put_values(ptx_builder *b, const block_tile *t, const values *v)
{
    const unsigned vector = vector_elements(t->data), width = vector < 4 ? vector : 4;
    const unsigned stride = t->threads * vector, step = stride / v->elements * (v->elements + GAP);
    ptx_val x[BLOCK_ELEMENTS_MAX], first = ptx_mul(b, ptx_tid_x(b), (int)vector);
    block_tile_elements(b, t, first, stride, v->elements, x);
    ptx_val gaps = ptx_shr(b, first, ceil_log2(v->elements));
    ptx_val at = ptx_at(b, v->shared, ptx_mad(b, gaps, GAP, first), sizeof(float));
    for (unsigned i = 0; i < v->elements; i += width) {
        unsigned word = i / vector * step + i % vector;
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at, (int)(word * sizeof(float)), &x[i], (int)width);
    }
}

static void get_values(ptx_builder *b, const values *v, ptx_val *x)
{
    const unsigned bytes = (v->elements + GAP) * sizeof(float);
    ptx_val at = ptx_mad(b, ptx_tid_x(b), (int)bytes, v->shared);
    for (unsigned i = 0; i < v->elements; i += 4)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, at, (int)(i * sizeof(float)), &x[i], 4);
}

static void put_words(ptx_builder *b, const values *v, ptx_val code_bytes, const ptx_val *words)
{
    ptx_val at = ptx_mad(b, ptx_tid_x(b), (int)v->elements, code_bytes);
    for (unsigned i = 0; i < v->elements / 4; i += 4)
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at, (int)(4 * i), &words[i], 4);
}

static void encode_sub_block(ptx_builder *b, const block_tile *t, const ptx_val *x, ptx_val *words)
{
    const block_layout *layout = t->layout;
    ptx_val lane = ptx_and(b, ptx_tid_x(b), WARP - 1);
    block_lanes lanes = {.count = layout->elements / layout->search->elements};
    ptx_val block = ptx_shr(b, ptx_tid_x(b), ceil_log2(lanes.count));
    ptx_val place = ptx_and(b, lane, (int)lanes.count - 1);
    lanes.first = ptx_sub(b, lane, place);
    lanes.is_first = ptx_setp(b, PTX_EQ, place, 0);
    lanes.block = ptx_mad(b, block, (int)layout->bytes, t->stage.shared);
    sub_block sub = {.layout = layout, .lanes = &lanes, .place = place, .x = x};
    layout->search->encode(b, &sub, words);
}

void emit_block_search(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    block_tile t = block_tile_begin(b, row, spec, block_quantize_threads(block_layout_of(row->format)));
    ptx_minnctapersm(b, THREADS_PER_SM / t.threads);
    ptx_val code_bytes = ptx_shared(b, "code_bytes", PTX_U32, BLOCK_TILE / 4, LOAD_BYTES);
    ptx_val x[SUB_BLOCK_MAX], words[SUB_BLOCK_MAX / 4];
    values v = values_of(b, &t);
    put_values(b, &t, &v);
    ptx_syncthreads(b);
    get_values(b, &v, x);
    encode_sub_block(b, &t, x, words);
    put_words(b, &v, code_bytes, words);
    ptx_syncthreads(b);
    block_tile_pack(b, &t, code_bytes);
    block_tile_store(b, &t);
}
