/* How quantize and dequantize cover a flat tensor: a block takes a tile, a warp an equal part of it, a thread several chunks of
 * that, a warp's width apart, so that neighbouring threads touch neighbouring chunks. Tiles that are cut short, and pointers that are not
 * aligned, go element by element. */
#ifndef QDNN_KERNELS_TILE_H
#define QDNN_KERNELS_TILE_H

#include "kernels/formats/quantized.h"

enum {
    TILE_BLOCK = 256,
    THREAD_ELEMENTS = 16, /* several chunks a thread: their loads are under way together */
    THREAD_CHUNKS_MAX = THREAD_ELEMENTS / 4,
    WARP_ELEMENTS = WARP * THREAD_ELEMENTS,
    TILE_ELEMENTS = TILE_BLOCK * THREAD_ELEMENTS
};

/* The parameters and places that both kernels have. */
typedef struct tile {
    quantized q;
    stage stage;           /* of codes that are not direct */
    ptx_val data;          /* pointer */
    ptx_val n, first, end; /* u64: elements; the tile is [first, end), end cut to n */
    ptx_val whole;         /* predicate: the tile is complete and every pointer aligned */
} tile;

/* Declares what both kernels compute with. The whole block leaves where there is nothing to do. */
tile tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* Calls `some` for the chunks of this thread in a complete tile: for all of them at once, or, where a chunk
 * may hold several groups, for one after another in a loop, so that their scales stay in registers. */
void tile_chunks(ptx_builder *b, const tile *t,
                 void (*some)(ptx_builder *b, const tile *t, ptx_val index, unsigned count));

/* Where the codes of the element at `index` (a chunk's first) begin, in global memory. */
ptx_val tile_codes_at(ptx_builder *b, const tile *t, ptx_val index);

#endif
