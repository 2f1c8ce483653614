/* IQ1, IQ2 and IQ3: an entry of a codebook stands for neighbours along k, which operand A has in four lanes. So each lane decodes 32 k
 * (a part of a block) of one column into shared memory, with the functions that read blocks everywhere, and ldmatrix takes operand A
 * from there.
 *
 * A warp has its own lines: of 32 k in f16 or bf16 for each of its columns, as pieces of eight. Piece p of line l lies at place p ^
 * (l / 2 % 4), so that eight lanes that store neighbouring lines, and eight lines that ldmatrix reads at a time, are in different banks. */
#include "kernels/tensor/stream.h"

enum { PART = 32, RUN = RUN_BYTES_MAX, PIECE = 8, PIECE_BYTES = 2 * PIECE, LINE_BYTES = 2 * PART };
enum { BLOCK_K = GRID_PARTS * PART, PART_STEPS = PART / 16, TILE_BYTES = UNIT_N * LINE_BYTES };
_Static_assert(GRID_LINES_BYTES == STREAM_WARPS * TILES * TILE_BYTES, "lines of all warps");

void stream_grid_begin(ptx_builder *b, stream *s, ptx_val lines)
{
    grid_parts *g = &s->grid;
    ptx_val warp = ptx_shr(b, ptx_tid_x(b), 5), swizzle = ptx_and(b, ptx_shr(b, s->lane, 1), 3);
    ptx_val first = ptx_mad(b, warp, TILES * TILE_BYTES, lines);
    ptx_val row = ptx_and(b, s->lane, UNIT_N - 1), half = ptx_shr(b, s->lane, 4);
    g->state = block_open_before_barrier(b, s->blocks); /* x is loaded between barriers */
    g->to = ptx_mad(b, swizzle, PIECE_BYTES, ptx_mad(b, s->lane, LINE_BYTES, first));
    g->from = ptx_mad(b, ptx_xor(b, half, swizzle), PIECE_BYTES, ptx_mad(b, row, LINE_BYTES, first));
}

void stream_grid_load(ptx_builder *b, stream *s, unsigned block)
{
    for (unsigned i = 0; i < ceil_div(s->blocks->bytes, 4); i++)
        s->grid.words[block][i] = stream_header_word(b, s, &s->headers, block, i);
}

/* Stores 16 k of the lane's column, from element `first` of the part on. */
static void store_run(ptx_builder *b, const stream *s, unsigned block, unsigned part, unsigned first)
{
    const block_layout *layout = s->blocks;
    const block_place place = {.held = s->grid.words[block],
                               .bytes = RUN,
                               .position = ptx_u32(b, part * PART + first),
                               .section = ptx_u32(b, part),
                               .byte = ptx_u32(b, first)};
    block_run run;
    block_fetch(b, layout, &place, &run);
    block_open_run(b, &s->grid.state, &run);
    const block_strand strand = block_strand_of(b, layout, &run, 0);
    for (unsigned p = 0; p < RUN / PIECE; p++) {
        const unsigned at = (first / PIECE + p) * PIECE_BYTES;
        ptx_val words[PIECE / 2];
        for (unsigned i = 0; i < PIECE; i += 2)
            words[i / 2] = block_decode_pair(b, layout, &s->grid.state, s->spec->data, &strand, (ptx_val){0},
                                             p * PIECE + i);
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, at ? ptx_xor(b, s->grid.to, (int)at) : s->grid.to, 0,
                   words, 4);
    }
}

void stream_grid_decode(ptx_builder *b, const stream *s, unsigned step)
{
    if (step % PART_STEPS)
        return;
    const unsigned k = 16 * step;
    ptx_syncwarp(b); /* until the lines are no longer read */
    for (unsigned first = 0; first < PART; first += RUN)
        store_run(b, s, k / BLOCK_K, k % BLOCK_K / PART, first);
    ptx_syncwarp(b);
}

void stream_grid_step(ptx_builder *b, const stream *s, unsigned q, unsigned step, ptx_val a[4])
{
    const unsigned at = step % PART_STEPS * 2 * PIECE_BYTES;
    ptx_ldmatrix(b, at ? ptx_xor(b, s->grid.from, (int)at) : s->grid.from, (int)(q * TILE_BYTES), a, 4);
}
