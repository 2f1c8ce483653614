/* The weights of a product: a tile of them, decoded to f32 into shared memory, whatever their format and layout. Every
 * kernel that reads weights from shared memory is written over this once. */
#ifndef QDNN_KERNELS_GEMM_WEIGHTS_H
#define QDNN_KERNELS_GEMM_WEIGHTS_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/matrix.h"
#include "kernels/gemm/gemm.h"

enum {
    ROUND = 256,            /* k of one round of the 32 lanes: a chunk of 8 for each */
    CHUNK = 8,              /* k of a chunk */
    ROUND_BYTES = 4 * ROUND,     /* of the f32 of one output (or row of x) in shared memory */
    TILE_PITCH = ROUND_BYTES + 16 /* from an output of a tile to the next: those of one k lie in different banks */
};

typedef struct weights {
    coding coding;
    matrix matrix;              /* formats in groups; of plain ones, the shape alone */
    const block_layout *layout; /* of blocks, else null */
    codec_state state;          /* of blocks */
    ptx_val codes;              /* pointer */
    ptx_val k, outputs;         /* u64 */
    ptx_val by_runs; /* predicate, the same in all threads: shape and pointers allow runs (runs.h); empty: there are none */
} weights;

/* Tables for decoding are set up by all threads of the block. */
weights weights_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, const gemm_args *args);

/* One weight that exists, of any format but blocks. */
ptx_val weights_element(ptx_builder *b, const weights *w, ptx_val output, ptx_val k);

/* A round of a few outputs in shared memory: f32, ROUND of each output TILE_PITCH bytes behind the other's, in the order of
 * round_offset. */
typedef struct weight_tile {
    ptx_val shared;   /* address */
    unsigned outputs; /* a power of two */
    unsigned threads; /* of the block, all of which take part */
} weight_tile;

/* Where element k (u32, below ROUND) of a round lies: the first four of every chunk, then the second four, so that the
 * lanes of a warp read vectors of four without conflict. Bytes. */
ptx_val round_offset(ptx_builder *b, ptx_val k);

/* Decodes elements [k, k + ROUND) of some outputs: number i of the tile is output `first` + i; from the middle of the
 * tile on it is `second` + i - half, unless `second` is empty. What does not exist is +0. */
void weights_stage(ptx_builder *b, const weights *w, const weight_tile *tile, ptx_val first, ptx_val second,
                   ptx_val k);

#endif
