/* Weights on their way to tensor cores: what all formats share. */
#include "kernels/tensor/w_tile.h"

unsigned w_line_bytes(const w_tile *w)
{
    return 2 * (w->along_k ? w->tile_k : w->tile_n);
}

ptx_val w_piece_address(ptx_builder *b, const w_tile *w, ptx_val tile, ptx_val line, ptx_val piece)
{
    ptx_val place = ptx_shl(b, ptx_xor(b, piece, ptx_and(b, line, 7)), 4);
    return ptx_add(b, ptx_mad(b, line, (int)w_line_bytes(w), tile), place);
}

void w_store_piece(ptx_builder *b, const w_tile *w, ptx_val address, const ptx_val *values)
{
    ptx_val words[PIECE / 2];
    for (unsigned i = 0; i < PIECE / 2; i++)
        words[i] = emit_narrow_pair(b, w->data, values[2 * i], values[2 * i + 1]);
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, 0, words, PIECE / 2);
}

void w_store_zeros(ptx_builder *b, ptx_val address)
{
    ptx_val zero = ptx_var(b, ptx_u32(b, 0)), words[PIECE / 2] = {zero, zero, zero, zero};
    ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, 0, words, PIECE / 2);
}

/* ---- Dense codes and blocks alike ---- */

unsigned w_tile_k(const kernel_row *row)
{
    const block_layout *blocks = block_layout_of(row->format);
    if (!blocks)
        return 64;
    if (!w_blocks_are_fetched(blocks))
        return blocks->elements;
    const block_section *section = &blocks->sections[0];
    return section->strands > 1 && section->span * section->strands > 64 ? section->span * section->strands
                                                                         : 64;
}

bool w_tile_is_apart(const kernel_row *row, const kernel_spec *spec)
{
    const block_layout *blocks = block_layout_of(row->format);
    return blocks ? w_blocks_are_fetched(blocks) : spec->stored.layout != QDNN_LAYOUT_WORDS_INTERLEAVED;
}

ptx_val w_output(ptx_builder *b, const w_tile *w, ptx_val local, unsigned margin)
{
    ptx_val last = ptx_sub(b, w->n, (int)margin);
    if (w->parts > 1)
        local = ptx_and(b, local, (int)(w->tile_n / w->parts) - 1);
    if (!w->gated)
        return ptx_min(b, ptx_add(b, w->n0, local), last);
    const unsigned half = w->tile_n / w->parts / 2;
    ptx_val column = ptx_add(b, w->n0, ptx_and(b, local, (int)half - 1));
    return ptx_mad(b, ptx_shr(b, local, ceil_log2(half)), w->n, ptx_min(b, column, last));
}

ptx_val w_part_k(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val local)
{
    if (w->parts == 1)
        return k0;
    return ptx_mad(b, ptx_shr(b, local, ceil_log2(w->tile_n / w->parts)), (int)w->strip, k0);
}

w_tile w_tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, const kernel_args *args,
                    const w_shape *shape)
{
    const bool k_in_columns = shape->k_in_columns;
    w_tile w = {.coding = {row->format, spec},
                .data = shape->data,
                .blocks = block_layout_of(row->format),
                .k_in_columns = k_in_columns,
                .along_k = k_in_columns == (spec->stored.layout != QDNN_LAYOUT_WORDS_INTERLEAVED),
                .tile_k = w_tile_k(row),
                .codes = args->operand[QDNN_OPERAND_CODES],
                .gated = shape->gated,
                .parts = shape->parts,
                .strip = shape->strip,
                .n0 = shape->n0,
                .n = shape->n,
                .k = shape->k};
    ptx_val wide_k = ptx_cvt(b, PTX_U64, w.k), wide_n = ptx_cvt(b, PTX_U64, w.n);
    if (w.gated)
        wide_n = ptx_shl(b, wide_n, 1);
    w.tile_n = TILE_WEIGHTS / w.tile_k;
    w.rows = k_in_columns ? wide_n : wide_k;
    w.columns = k_in_columns ? wide_k : wide_n;
    if (w.blocks) {
        w_blocks_begin(b, &w, shape->room);
        return w;
    }
    kernel_args of_matrix = *args;
    of_matrix.number[NUMBER_ROWS] = w.rows;
    of_matrix.number[NUMBER_COLUMNS] = w.columns;
    quantized q = quantized_begin(b, row, spec, args);
    quantized_open(b, &q);
    w.m = matrix_begin(b, &q, &of_matrix);
    w_dense_begin(b, &w);
    return w;
}

ptx_val w_tile_aligned(ptx_builder *b, const w_tile *w)
{
    return w->blocks ? emit_aligned(b, w->codes, block_align(w->blocks)) : w_dense_aligned(b, w);
}

void w_tile_fetch(ptx_builder *b, const w_tile *w, ptx_val k0, fetched *f)
{
    *f = (fetched){0};
    (w->blocks ? w_blocks_fetch : w_dense_fetch)(b, w, k0, f);
}

void w_tile_put(ptx_builder *b, const w_tile *w, const fetched *f, ptx_val tile)
{
    (w->blocks ? w_blocks_put : w_dense_put)(b, w, f, tile);
}

void w_tile_put_slowly(ptx_builder *b, const w_tile *w, ptx_val k0, ptx_val tile)
{
    if (w->blocks)
        w_blocks_put_any(b, w, k0, tile, 1);
    else
        w_dense_put_slowly(b, w, k0, tile);
}
