/* The weights of a product: decodes a tile of them to f32 into shared memory, whatever their format and
 * layout. All kernels that read weights from shared memory use this. */
#ifndef QDNN_KERNELS_GEMM_WEIGHTS_H
#define QDNN_KERNELS_GEMM_WEIGHTS_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/matrix.h"
#include "kernels/gemm/gemm.h"

enum {
    ROUND = 256,                  /* k of one round of the 32 lanes: a chunk of 8 for each */
    CHUNK = 8,                    /* k of a chunk */
    ROUND_BYTES = 4 * ROUND,      /* f32 of one output (or row of x) in shared memory */
    TILE_PITCH = ROUND_BYTES + 16 /* between outputs of a tile: those of one k lie in different banks */
};

typedef struct weights {
    coding coding;
    matrix matrix;              /* for formats with groups; plain ones only have the shape */
    const block_layout *layout; /* for blocks, else null */
    codec_state state;          /* for blocks */
    ptx_val codes;              /* pointer */
    ptx_val k, outputs;         /* u64 */
    /* predicate, the same in all threads: shape and pointers allow runs (runs.h); empty: the format has
     * none */
    ptx_val by_runs;
} weights;

/* To be called by all threads of the block, which set up the tables for decoding. */
weights weights_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, const gemm_args *args);

/* One existing weight, of any format except blocks. */
ptx_val weights_element(ptx_builder *b, const weights *w, ptx_val output, ptx_val k);

/* A round of a few outputs in shared memory: ROUND f32 per output, outputs TILE_PITCH bytes apart, in the
 * order of round_offset. */
typedef struct weight_tile {
    ptx_val shared;   /* address */
    unsigned outputs; /* a power of two */
    unsigned threads; /* of the block, all of which take part */
} weight_tile;

/* Byte offset of element k (u32, below ROUND) in a round: first the lower four of every chunk, then the
 * upper four, so that the lanes of a warp read vectors of four without bank conflicts. */
ptx_val round_offset(ptx_builder *b, ptx_val k);

/* Decodes elements [k, k + ROUND) of some outputs: number i of the tile is output `first` + i; in the
 * upper half of the tile it is `second` + i - half, unless `second` is empty. Elements that do not exist
 * are +0. */
void weights_stage(ptx_builder *b, const weights *w, const weight_tile *tile, ptx_val first, ptx_val second,
                   ptx_val k);

#endif
