/* The dequantize kernel for blocks: a tile of blocks is in shared memory, and each thread decodes runs of
 * codes to vectors of elements. */
#include "kernels/formats/pairs.h"
#include "kernels/quant/block_tile.h"
#include "kernels/quant/quant.h"

enum { SECTOR_BYTES = 32 };

/* A row that does not exist in the table becomes NaN. */
static ptx_val value_or_nan(ptx_builder *b, ptx_val known, ptx_val y)
{
    return known.kind == PTX_NOTHING ? y : ptx_selp(b, y, ptx_bits(b, PTX_F32, 0x7FFFFFFF), known);
}

/* Aligned f16 output, for which pairs take fewer instructions. */
static void store_pairs(ptx_builder *b, const block_tile *t, const codec_state *state,
                        const block_strand *strand, ptx_val known, ptx_val out, unsigned count)
{
    ptx_val words[RUN_BYTES_MAX / 2], scale = block_pair_scale(b, t->layout, t->data, strand);
    for (unsigned i = 0; i < count; i += 2) {
        ptx_val word = block_decode_pair(b, t->layout, state, t->data, strand, scale, i);
        words[i / 2] = known.kind == PTX_NOTHING ? word : ptx_selp(b, word, ptx_u32(b, 0x7FFF7FFF), known);
    }
    emit_store_words(b, out, 0, count / 2, words);
}

static void store_strand(ptx_builder *b, const block_tile *t, const codec_state *state,
                         const block_strand *strand, ptx_val known, ptx_val element, unsigned count)
{
    ptx_val y[RUN_BYTES_MAX], out = ptx_at(b, t->plain, element, element_bytes(t->data));
    const bool in_pairs = block_pair_is_short(t->layout, t->data);
    for (unsigned i = 0; !in_pairs && i < count; i++)
        y[i] = value_or_nan(b, known, block_decode(b, t->layout, state, strand, i));
    ptx_uniform(b);
    ptx_if(b, t->is_aligned);
    if (in_pairs)
        store_pairs(b, t, state, strand, known, out, count);
    else
        emit_store_vector(b, t->data, out, 0, y, count);
    ptx_else(b);
    for (unsigned i = 0; i < count; i++)
        emit_store(b, t->data, out, (int)(i * element_bytes(t->data)),
                   in_pairs ? value_or_nan(b, known, block_decode(b, t->layout, state, strand, i)) : y[i]);
    ptx_end_if(b);
}

/* Each thread handles all strands of its run. */
static void all_strands(ptx_builder *b, const block_tile *t, const codec_state *state, const block_run *run,
                        const block_step *step)
{
    const block_section *section = &t->layout->sections[run->place.kind];
    ptx_val known = block_tile_knows(b, t, step->element);
    for (unsigned s = 0; s < section->strands; s++) {
        block_strand strand = block_strand_of(b, t->layout, run, s);
        ptx_val element = s ? ptx_add(b, step->element, (int)(s * section->span)) : step->element;
        store_strand(b, t, state, &strand, known, element, run->place.bytes);
    }
}

/* If the strands of a section are shorter than a memory sector, neighbouring threads handle one strand each,
 * so that together they fill whole sectors. */
static void one_strand(ptx_builder *b, const block_tile *t, const codec_state *state, const block_run *run,
                       const block_step *step)
{
    const block_section *section = &t->layout->sections[run->place.kind];
    block_strand chosen = block_strand_of(b, t->layout, run, 0);
    for (unsigned s = 1; s < section->strands; s++) {
        block_strand strand = block_strand_of(b, t->layout, run, s);
        ptx_val is_this = ptx_setp(b, PTX_EQ, step->part, (int)s);
        chosen = block_strand_select(b, &strand, &chosen, run->place.bytes, is_this);
    }
    ptx_val element = ptx_mad(b, step->part, (int)section->span, step->element);
    store_strand(b, t, state, &chosen, block_tile_knows(b, t, step->element), element, run->place.bytes);
}

static void dequantize_sections(ptx_builder *b, const block_tile *t, const codec_state *state, unsigned kind)
{
    const block_section *section = &t->layout->sections[kind];
    const unsigned vector = vector_elements(t->data), bytes = vector < section->span ? vector : section->span;
    bool is_narrow = section->span * element_bytes(t->data) < SECTOR_BYTES;
    block_step step = block_tile_runs(b, t, kind, bytes, is_narrow ? section->strands : 1);
    block_run run;
    block_fetch(b, t->layout, &step.place, &run);
    block_open_run(b, state, &run);
    (is_narrow ? one_strand : all_strands)(b, t, state, &run, &step);
    block_tile_end_for(b, step.turns);
}

void emit_block_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    block_tile t = block_tile_begin(b, row, spec, BLOCK_DEQUANTIZE_THREADS);
    codec_state state = block_open(b, t.layout);
    block_tile_load(b, &t);
    for (unsigned kind = 0; kind < SECTION_KINDS_MAX && t.layout->sections[kind].count; kind++)
        dequantize_sections(b, &t, &state, kind);
}
