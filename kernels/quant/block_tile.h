/* How quantize and dequantize cover a tensor in blocks: a thread block takes a tile of blocks, whose bytes pass through
 * shared memory. Rows are whole blocks, so the tensor is flat. */
#ifndef QDNN_KERNELS_BLOCK_TILE_H
#define QDNN_KERNELS_BLOCK_TILE_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/quantized.h"

enum {
    BLOCK_TILE = 4096,              /* elements: at least 16 blocks, so the bytes are a multiple of 16 */
    BLOCK_DEQUANTIZE_THREADS = 128, /* with 32 elements each: as many as a run of codes may hold */
    BLOCK_QUANTIZE_THREADS = 256,
    BLOCK_QUANTIZE_ELEMENTS = BLOCK_TILE / BLOCK_QUANTIZE_THREADS, /* of each thread */
    BLOCK_ELEMENTS_MAX = 32                                        /* of a thread in any of these kernels */
};

/* Threads of the quantize kernel: K-quants have one for each sub-block. */
unsigned block_quantize_threads(const block_layout *layout);

/* Rows of a table in the order of a list. A tile begins within a row of the result and may reach into others. */
typedef struct block_rows {
    ptx_val index;      /* pointer: the numbers of rows; empty where all rows are taken as they are */
    ptx_val table;      /* pointer to the first row's blocks */
    ptx_val table_rows; /* u64 */
    ptx_val columns;    /* u64 */
    ptx_val first;      /* u64: the tile's first element in the result */
} block_rows;

typedef struct block_tile {
    const block_layout *layout;
    qdnnDataType_t data;
    unsigned threads;
    ptx_val plain;      /* pointer to the tile's first element */
    ptx_val blocks;     /* pointer to its first block */
    ptx_val elements;   /* u32: how many it has */
    ptx_val count;      /* u32: how many blocks */
    ptx_val whole;      /* predicate: it is complete, and its blocks are aligned */
    ptx_val is_aligned; /* predicate: its elements are */
    stage stage;        /* the blocks in shared memory */
    block_rows rows;    /* dequantizing the rows that a list names */
} block_tile;

/* Declares what both kernels compute with. The whole thread block leaves where there is nothing to do. */
block_tile block_tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, unsigned threads);

/* Whether the row of an element of the tile (u32) is one of the table: a predicate; empty without a list. */
ptx_val block_tile_knows(ptx_builder *b, const block_tile *t, ptx_val element);

/* `count` elements, vectors `stride` elements apart from the tile's element `first` (u32) on. A NaN is loaded as 0, infinities
 * as the largest numbers; what lies behind the end of the tensor are others of its elements. */
void block_tile_elements(ptx_builder *b, const block_tile *t, ptx_val first, unsigned stride, unsigned count,
                         ptx_val *x);
/* All codes of the tile, a byte each in shared memory, to the bits of its blocks. */
void block_tile_pack(ptx_builder *b, const block_tile *t, ptx_val code_bytes);

/* The blocks to shared memory, and back; every thread sees them all. */
void block_tile_load(ptx_builder *b, const block_tile *t);
void block_tile_store(ptx_builder *b, const block_tile *t);

/* A loop over the runs of `bytes` bytes in all sections of a kind, one per thread at a time; `share` threads, a power of
 * two, take the same run. Ends with ptx_end_for. */
typedef struct block_step {
    block_place place;
    ptx_val element; /* u32: its first in strand 0, counted from the tile's first */
    ptx_val part;    /* u32: which of the threads that share the run; empty where it is one */
} block_step;
block_step block_tile_runs(ptx_builder *b, const block_tile *t, unsigned kind, unsigned bytes,
                           unsigned share);

#endif
