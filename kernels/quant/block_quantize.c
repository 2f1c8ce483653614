/* The quantize kernel for blocks. The lanes of a warp hold the elements of whole blocks, compute each block's
 * numbers together and then its codes, which go to shared memory as bytes. From these, the bytes of the
 * blocks are assembled, also in shared memory, and the tile is stored. */
#include "kernels/quant/block_tile.h"
#include "kernels/quant/quant.h"

enum { PACK_BYTES = 8, MOST = BLOCK_QUANTIZE_ELEMENTS };

/* How the elements of a tile are distributed to the lanes of a warp: vector v of a lane begins at element (v
 * * WARP + lane) * vector of the warp's elements. */
typedef struct deal {
    unsigned vector;  /* elements that a lane loads at once */
    unsigned lanes;   /* lanes that share a block */
    unsigned vectors; /* vectors that a lane has of the block */
} deal;

static deal deal_of(const block_tile *t)
{
    const unsigned vector = vector_elements(t->data), all = t->layout->elements / vector;
    const unsigned lanes = all < WARP ? all : WARP;
    return (deal){.vector = vector, .lanes = lanes, .vectors = all / lanes};
}

/* The lane's first element in the tile. */
static ptx_val first_element(ptx_builder *b, deal d)
{
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5), lane = ptx_and(b, ptx_tid_x(b), WARP - 1);
    return ptx_mad(b, warp, WARP * BLOCK_QUANTIZE_ELEMENTS, ptx_mul(b, lane, (int)d.vector));
}

static ptx_val bytes_to_word(ptx_builder *b, const ptx_val *codes, unsigned count)
{
    ptx_val low = ptx_prmt(b, codes[0], codes[1], 0x5540);
    if (count == 2)
        return low;
    return ptx_prmt(b, low, ptx_prmt(b, codes[2], codes[3], 0x5540), 0x5410);
}

/* Stores the codes of a vector, one byte each. */
static void put_codes(ptx_builder *b, ptx_val address, int offset, const ptx_val *codes, unsigned count)
{
    ptx_val words[2] = {bytes_to_word(b, codes, count)};
    if (count == 2) {
        ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U16, address, offset, words[0]);
        return;
    }
    if (count == 8)
        words[1] = bytes_to_word(b, codes + 4, 4);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, offset, words, (int)(count / 4));
}

/* Encodes the block that begins at vector `skip` of the lane; x holds the lane's elements of it. */
static void encode_block(ptx_builder *b, const block_tile *t, deal d, ptx_val first, unsigned skip,
                         const ptx_val *x, ptx_val *codes)
{
    const block_layout *layout = t->layout;
    const unsigned count = d.vector * d.vectors;
    ptx_val lane = ptx_and(b, ptx_tid_x(b), WARP - 1);
    ptx_val element = ptx_add(b, first, (int)(skip * WARP * d.vector));
    ptx_val block = ptx_div(b, element, (int)layout->elements);
    block_lanes lanes = {
        .count = d.lanes, .first = ptx_and(b, lane, ptx_u32(b, -d.lanes)), .vector = d.vector};
    lanes.is_first = ptx_setp(b, PTX_EQ, lane, lanes.first);
    lanes.block = ptx_mad(b, block, (int)layout->bytes, t->stage.shared);
    block_numbers numbers = layout->encoder->begin(b, layout, &lanes, x, count);
    for (unsigned i = 0; i < count; i++)
        codes[i] = layout->encoder->code(b, layout, &numbers, x[i]);
    if (layout->encoder->end)
        layout->encoder->end(b, layout, &lanes, &numbers, codes, count);
}

static void encode_tile(ptx_builder *b, const block_tile *t, ptx_val code_bytes)
{
    const deal d = deal_of(t);
    ptx_val x[MOST], codes[MOST], first = first_element(b, d);
    block_tile_elements(b, t, first, WARP * d.vector, MOST, x);
    for (unsigned i = 0; i < MOST; i += d.vector * d.vectors)
        encode_block(b, t, d, first, i / d.vector, &x[i], &codes[i]);
    ptx_val out = ptx_add(b, code_bytes, first);
    for (unsigned i = 0; i < MOST; i += d.vector)
        put_codes(b, out, (int)(i * WARP), &codes[i], d.vector);
}

static void load_words(ptx_builder *b, ptx_val address, int offset, unsigned bytes, ptx_val *words)
{
    if (bytes == 4)
        words[0] = ptx_ld_shared(b, PTX_U32, address, offset);
    else
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, address, offset, words, 2);
}

static void pack_sections(ptx_builder *b, const block_tile *t, ptx_val code_bytes, unsigned kind)
{
    const block_section *section = &t->layout->sections[kind];
    const unsigned bytes = PACK_BYTES < section->span ? PACK_BYTES : section->span;
    block_step step = block_tile_runs(b, t, kind, bytes, 1);
    ptx_val in = ptx_add(b, code_bytes, step.element), strands[STRANDS_MAX][RUN_WORDS_MAX];
    for (unsigned s = 0; s < section->strands; s++)
        load_words(b, in, (int)(s * section->span), bytes, strands[s]);
    block_pack(b, t->layout, &step.place, strands);
    block_tile_end_for(b, step.turns);
}

/* Packs the bits that all sections share, four bytes per thread per step. */
static void pack_shared_bit(ptx_builder *b, const block_tile *t, ptx_val code_bytes)
{
    const block_layout *layout = t->layout;
    enum { WORDS = 8, STRANDS = 8, SPAN = 32 };
    block_turns turns = block_tile_turns(t, BLOCK_TILE / layout->elements * WORDS, 1, true);
    ptx_val at = block_tile_for(b, t, turns, ptx_tid_x(b), ptx_mul(b, t->count, WORDS), 1);
    ptx_val block = ptx_shr(b, at, ceil_log2(WORDS)), byte = ptx_shl(b, ptx_and(b, at, WORDS - 1), 2);
    ptx_val in = ptx_mad(b, block, (int)layout->elements, ptx_add(b, code_bytes, byte)), word = ptx_u32(b, 0);
    for (int s = 0; s < STRANDS; s++) {
        ptx_val codes = ptx_ld_shared(b, PTX_U32, in, s * SPAN);
        ptx_val bits = ptx_and(b, ptx_shr(b, codes, layout->codes->shared_bit), ptx_u32(b, 0x01010101));
        word = s ? ptx_or(b, word, ptx_shl(b, bits, s)) : bits;
    }
    block_place place = {.space = PTX_SHARED, .align = block_align(layout)};
    place.block = ptx_mad(b, block, (int)layout->bytes, t->stage.shared);
    block_address out = block_field_at(b, &place, layout->at.high, byte, 4);
    block_store(b, &out, 4, &word);
    block_tile_end_for(b, turns);
}

void block_tile_pack(ptx_builder *b, const block_tile *t, ptx_val code_bytes)
{
    for (unsigned kind = 0; kind < SECTION_KINDS_MAX && t->layout->sections[kind].count; kind++)
        pack_sections(b, t, code_bytes, kind);
    if (t->layout->codes->shared_bit)
        pack_shared_bit(b, t, code_bytes);
}

void emit_block_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    if (block_layout_of(row->format)->search) {
        emit_block_search(b, row, spec);
        return;
    }
    block_tile t = block_tile_begin(b, row, spec, BLOCK_QUANTIZE_THREADS);
    if (spec->row_index) { /* room for a few more registers than eight blocks have; else ptxas may spill one */
        unsigned most = ptx_target(b)->threads_sm / BLOCK_QUANTIZE_THREADS;
        ptx_minnctapersm(b, most < 6 ? most : 6);
    }
    ptx_val code_bytes = ptx_shared(b, "code_bytes", PTX_U32, BLOCK_TILE / 4, LOAD_BYTES);
    encode_tile(b, &t, code_bytes);
    ptx_syncthreads(b);
    block_tile_pack(b, &t, code_bytes);
    block_tile_store(b, &t);
}
