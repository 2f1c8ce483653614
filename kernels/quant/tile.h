/* How quantize and dequantize cover a flat tensor: a block takes a tile, each warp an equal part of it, each
 * thread several chunks of that, a warp's width apart, so that neighbouring threads access adjacent chunks.
 * Incomplete tiles, and those with unaligned pointers, are processed element by element. */
#ifndef QDNN_KERNELS_TILE_H
#define QDNN_KERNELS_TILE_H

#include "kernels/formats/quantized.h"

enum {
    TILE_BLOCK = 256,
    THREAD_ELEMENTS = 16, /* several chunks per thread, so that their loads overlap */
    THREAD_CHUNKS_MAX = THREAD_ELEMENTS / 4,
    WARP_ELEMENTS = WARP * THREAD_ELEMENTS,
    TILE_ELEMENTS = TILE_BLOCK * THREAD_ELEMENTS
};

/* Parameters and positions that both kernels use. */
typedef struct tile {
    quantized q;
    stage stage;           /* for codes that are not direct */
    ptx_val data;          /* pointer */
    ptx_val n, first, end; /* u64: number of elements; the tile is [first, end), with end limited to n */
    ptx_val whole;         /* predicate: the tile is complete and all pointers are aligned */
} tile;

/* Declares what both kernels need. If there is nothing to do, the whole block exits. */
tile tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* Calls `some` for the chunks of this thread in a complete tile: once for all of them or, if a chunk may
 * contain several groups, for one at a time in a loop, so that their scales fit in registers. */
void tile_chunks(ptx_builder *b, const tile *t,
                 void (*some)(ptx_builder *b, const tile *t, ptx_val index, unsigned count));

/* The address in global memory of the codes that begin with the element at `index` (the first of a chunk). */
ptx_val tile_codes_at(ptx_builder *b, const tile *t, ptx_val index);

#endif
