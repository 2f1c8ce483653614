/* Weights in blocks: threads fetch runs of their bytes; each strand of a run (kernels/formats/blocks.h)
 * gives a few pieces of a line of k. */
#include "kernels/formats/pairs.h"
#include "kernels/tensor/w_tile.h"

/* Formats whose blocks have several kinds of sections are not fetched ahead: they are loaded and decoded
 * at once, a whole block per line. */
bool w_blocks_are_fetched(const block_layout *layout)
{
    return layout->sections[1].count == 0;
}

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The bytes of a run, chosen so that a thread has few runs, with THREAD_WEIGHTS codes in total. */
static unsigned run_bytes(const block_layout *layout, unsigned kind)
{
    const block_section *section = &layout->sections[kind];
    unsigned most = w_blocks_are_fetched(layout) ? THREAD_WEIGHTS / section->strands : PIECE;
    return least_of(section->span, least_of(most, RUN_BYTES_MAX));
}

static unsigned run_codes(const block_layout *layout, unsigned kind)
{
    return run_bytes(layout, kind) * layout->sections[kind].strands;
}

/* The first element of a run, counted from the tile's first k: the same in every tile, because tiles begin
 * with sections. */
static ptx_val run_element(ptx_builder *b, const block_layout *layout, unsigned kind, ptx_val run)
{
    const block_section *section = &layout->sections[kind];
    const unsigned bytes = run_bytes(layout, kind), of_section = section->span / bytes;
    ptx_val byte = ptx_mul(b, ptx_and(b, run, (int)of_section - 1), (int)bytes);
    return ptx_mad(b, ptx_shr(b, run, ceil_log2(of_section)), (int)(section->span * section->strands), byte);
}

/* Run number `run` (u32) of a line of the tile at (n0, k0). */
static block_place place_of(ptx_builder *b, const w_tile *w, unsigned kind, ptx_val n, ptx_val run,
                            unsigned align)
{
    const block_layout *layout = w->blocks;
    const block_section *section = &layout->sections[kind];
    const unsigned of_block = section->count * section->span / run_bytes(layout, kind);
    ptx_val of_row = ptx_shr(b, w->columns, ceil_log2(layout->elements));
    ptx_val block = ptx_cvt(b, PTX_U64, ptx_shr(b, run, ceil_log2(of_block)));
    block_place place =
        block_place_of_run(b, layout, kind, ptx_and(b, run, (int)of_block - 1), run_bytes(layout, kind));
    place.space = PTX_GLOBAL;
    place.align = align;
    place.block =
        ptx_mad(b, ptx_mad(b, ptx_cvt(b, PTX_U64, n), of_row, block), ptx_u64(b, layout->bytes), w->codes);
    return place;
}

static void put_strand(ptx_builder *b, const w_tile *w, const block_strand *strand, ptx_val scale,
                       unsigned first, unsigned count, ptx_val address)
{
    ptx_val words[PIECE / 2];
    for (unsigned i = 0; i < count; i += 2)
        words[i / 2] = block_decode_pair(b, w->blocks, &w->state, w->data, strand, scale, first + i);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, 0, words, (int)count / 2);
}

/* ---- Fetched ---- */

static unsigned thread_runs(const block_layout *layout)
{
    return THREAD_WEIGHTS / run_codes(layout, 0);
}

static unsigned line_runs(const w_tile *w)
{
    return w->tile_k / run_codes(w->blocks, 0);
}

void w_blocks_begin(ptx_builder *b, w_tile *w, unsigned room)
{
    const block_layout *layout = w->blocks;
    w->state = block_codebook_bytes(layout) > room ? block_open_outside(b, layout) : block_open(b, layout);
    if (!w_blocks_are_fetched(layout))
        return;
    const block_section *section = &layout->sections[0];
    const unsigned runs = thread_runs(layout), pieces = run_bytes(layout, 0) / PIECE;
    /* Eight neighbouring threads have the same run of eight lines, so they store to different banks; the
     * next eight threads continue the same lines, so a warp reads whole sectors. */
    const unsigned of_line = line_runs(w) / runs;
    ptx_val tid = ptx_tid_x(b), in_line = ptx_and(b, ptx_shr(b, tid, 3), (int)of_line - 1);
    w->line = ptx_bfi(b, tid, ptx_shl(b, ptx_shr(b, tid, 3 + ceil_log2(of_line)), 3), 0, 3);
    w->run = ptx_mul(b, in_line, (int)runs);
    for (unsigned r = 0, at = 0; r < runs; r++) {
        ptx_val element = run_element(b, layout, 0, r ? ptx_add(b, w->run, (int)r) : w->run);
        ptx_val piece = ptx_shr(b, element, 3);
        for (unsigned s = 0; s < section->strands; s++)
            for (unsigned p = 0; p < pieces; p++) {
                unsigned more = s * section->span / PIECE + p;
                w->places[at++] = w_piece_address(b, w, ptx_u32(b, 0), w->line,
                                                  more ? ptx_add(b, piece, (int)more) : piece);
            }
    }
}

void w_blocks_fetch(ptx_builder *b, const w_tile *w, ptx_val k0, fetched *f)
{
    const unsigned codes = run_codes(w->blocks, 0);
    if (!w_blocks_are_fetched(w->blocks)) {
        f->k = ptx_mov(b, k0);
        return;
    }
    ptx_val n = w_output(b, w, w->line, 1);
    f->k = ptx_mad(b, w->run, (int)codes, w_part_k(b, w, k0, w->line));
    f->runs = thread_runs(w->blocks);
    for (unsigned r = 0; r < f->runs; r++) {
        ptx_val k = ptx_add(b, f->k, (int)(r * codes));
        ptx_val known = ptx_selp(b, k, ptx_u32(b, 0), ptx_setp(b, PTX_LT, k, w->k));
        block_place place = place_of(b, w, 0, n, ptx_shr(b, known, ceil_log2(codes)), block_align(w->blocks));
        block_fetch(b, w->blocks, &place, &f->run[r]);
    }
}

void w_blocks_put(ptx_builder *b, const w_tile *w, const fetched *f, ptx_val tile)
{
    const block_layout *layout = w->blocks;
    const unsigned codes = run_codes(layout, 0), pieces = run_bytes(layout, 0) / PIECE;
    for (unsigned r = 0, at = 0; r < f->runs; r++) {
        const unsigned first = at;
        block_run run = f->run[r];
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, f->k, (int)(r * codes)), w->k));
        block_open_run(b, &w->state, &run);
        for (unsigned s = 0; s < layout->sections[0].strands; s++) {
            block_strand strand = block_strand_of(b, layout, &run, s);
            ptx_val scale = block_pair_scale(b, layout, w->data, &strand);
            for (unsigned p = 0; p < pieces; p++)
                put_strand(b, w, &strand, scale, p * PIECE, PIECE, ptx_add(b, tile, w->places[at++]));
        }
        ptx_else(b);
        for (unsigned z = first; z < at; z++)
            w_store_zeros(b, ptx_add(b, tile, w->places[z]));
        ptx_end_if(b);
    }
}

/* ---- Loaded and decoded at once ---- */

/* Strands shorter than a piece fill a part of one. */
static ptx_val element_address(ptx_builder *b, const w_tile *w, ptx_val tile, ptx_val line, ptx_val element)
{
    ptx_val address = w_piece_address(b, w, tile, line, ptx_shr(b, element, 3));
    return ptx_at(b, address, ptx_and(b, element, 7), 2);
}

static void put_run(ptx_builder *b, const w_tile *w, unsigned kind, ptx_val tile, ptx_val line, ptx_val n,
                    ptx_val run, ptx_val element, unsigned align)
{
    const block_layout *layout = w->blocks;
    const block_section *section = &layout->sections[kind];
    const unsigned bytes = run_bytes(layout, kind), step = least_of(bytes, PIECE);
    block_place place = place_of(b, w, kind, n, run, align);
    block_run fetched_run;
    block_fetch(b, layout, &place, &fetched_run);
    block_open_run(b, &w->state, &fetched_run);
    for (unsigned s = 0; s < section->strands; s++) {
        block_strand strand = block_strand_of(b, layout, &fetched_run, s);
        ptx_val scale = block_pair_scale(b, layout, w->data, &strand);
        for (unsigned i = 0; i < bytes; i += step) {
            ptx_val at = ptx_add(b, element, (int)(s * section->span + i));
            put_strand(b, w, &strand, scale, i, step, element_address(b, w, tile, line, at));
        }
    }
}

static void zero_line_part(ptx_builder *b, const w_tile *w, unsigned kind, ptx_val tile, ptx_val line,
                           ptx_val element)
{
    const block_section *section = &w->blocks->sections[kind];
    const unsigned bytes = run_bytes(w->blocks, kind), step = least_of(bytes, PIECE);
    ptx_val zero = ptx_u32(b, 0), words[PIECE / 2] = {zero, zero, zero, zero};
    for (unsigned s = 0; s < section->strands; s++)
        for (unsigned i = 0; i < bytes; i += step) {
            ptx_val at = ptx_add(b, element, (int)(s * section->span + i));
            ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, element_address(b, w, tile, line, at), 0, words,
                       (int)step / 2);
        }
}

void w_blocks_put_any(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val tile, unsigned align)
{
    const block_layout *layout = w->blocks;
    for (unsigned kind = 0; kind < SECTION_KINDS_MAX && layout->sections[kind].count; kind++) {
        const block_section *section = &layout->sections[kind];
        const unsigned bytes = run_bytes(layout, kind);
        const unsigned of_line = w_blocks_are_fetched(layout) ? w->tile_k / run_codes(layout, kind)
                                                              : section->count * section->span / bytes;
        const unsigned first = section_first_element(layout, kind);
        ptx_val at = ptx_for(b, ptx_tid_x(b), ptx_u32(b, of_line * w->tile_n), TILE_THREADS);
        ptx_val line = ptx_shr(b, at, ceil_log2(of_line)), run = ptx_and(b, at, (int)of_line - 1);
        ptx_val element = run_element(b, layout, kind, run);
        if (first)
            element = ptx_add(b, element, (int)first);
        ptx_val n = w_output(b, w, line, 1), k = w_part_k(b, w, k0, line);
        /* Tiles begin with a block or, if it has a single kind of section, within one. */
        ptx_val before = w_blocks_are_fetched(layout)
                             ? ptx_shr(b, k, ceil_log2(run_codes(layout, kind)))
                             : ptx_mul(b, ptx_shr(b, k, ceil_log2(layout->elements)), (int)of_line);
        ptx_if(b, ptx_setp(b, PTX_LT, ptx_add(b, k, element), w->k));
        put_run(b, w, kind, tile, line, n, ptx_add(b, before, run), element, align);
        ptx_else(b);
        zero_line_part(b, w, kind, tile, line, element);
        ptx_end_if(b);
        ptx_end_for(b);
    }
}
