/* How quantize and dequantize cover a tensor in blocks: a thread block takes a tile of blocks, whose bytes go
 * through shared memory. Rows consist of whole blocks, so the tensor is treated as flat. */
#ifndef QDNN_KERNELS_BLOCK_TILE_H
#define QDNN_KERNELS_BLOCK_TILE_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/quantized.h"

enum {
    BLOCK_TILE = 4096,              /* elements: at least 16 blocks, so their bytes are a multiple of 16 */
    BLOCK_DEQUANTIZE_THREADS = 128, /* with 32 elements each: as many as a run of codes can hold */
    BLOCK_QUANTIZE_THREADS = 256,
    BLOCK_QUANTIZE_ELEMENTS = BLOCK_TILE / BLOCK_QUANTIZE_THREADS, /* per thread */
    BLOCK_ELEMENTS_MAX = 32                                        /* per thread in any of these kernels */
};

/* Threads of the quantize kernel; for K-quants, one per sub-block. */
unsigned block_quantize_threads(const block_layout *layout);

/* Rows of a table, in the order of a list: those that are dequantized, or that quantized rows are put into. A tile begins
 * within a row of the plain tensor and may extend into others. */
typedef struct block_rows {
    ptx_val index;      /* pointer to the row numbers; empty if there is no list */
    int type;           /* qdnnDataType_t of these */
    ptx_val table;      /* pointer to the blocks of the first row */
    ptx_val table_rows; /* u64 */
    ptx_val columns;    /* u64 */
    ptx_val first;      /* u64: the tile's first element in the plain tensor */
} block_rows;

typedef struct block_tile {
    const block_layout *layout;
    qdnnDataType_t data;
    unsigned threads;
    ptx_val plain;      /* pointer to the tile's first element */
    ptx_val blocks;     /* pointer to its first block */
    ptx_val elements;   /* u32: elements in the tile */
    ptx_val count;      /* u32: blocks in the tile */
    ptx_val whole;      /* predicate: the tile is complete, and its blocks are aligned */
    ptx_val is_aligned; /* predicate: its elements are aligned */
    stage stage;        /* the blocks in shared memory */
    bool packs;         /* to blocks */
    block_rows rows;    /* for the rows in a list */
} block_tile;

/* Declares what both kernels need. If there is nothing to do, the whole thread block exits. */
block_tile block_tile_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, unsigned threads);

/* Whether the row of an element of the tile (u32) exists in the table: a predicate; empty without a list. */
ptx_val block_tile_knows(ptx_builder *b, const block_tile *t, ptx_val element);

/* Loads `count` elements as vectors `stride` elements apart, starting with element `first` (u32) of the tile.
 * NaN is loaded as 0, infinities as the largest finite numbers; loads past the end of the tensor return other
 * elements of it. */
void block_tile_elements(ptx_builder *b, const block_tile *t, ptx_val first, unsigned stride, unsigned count,
                         ptx_val *x);
/* Packs all codes of the tile, one per byte in shared memory, into its blocks. */
void block_tile_pack(ptx_builder *b, const block_tile *t, ptx_val code_bytes);

/* Copies the blocks to shared memory, and back; synchronizes, so that every thread sees all of them. */
void block_tile_load(ptx_builder *b, const block_tile *t);
void block_tile_store(ptx_builder *b, const block_tile *t);

/* A loop of the tile's threads from `first` to `end`, so many (`width`) per thread and turn, given that a tile has at most `most`. Where one
 * turn is enough, it is a condition; nothing at all if the whole tile takes exactly one, and threads past the end do no harm. */
typedef enum { BLOCK_TURNS_MANY, BLOCK_TURNS_ONE, BLOCK_TURNS_ALL } block_turns;
block_turns block_tile_turns(const block_tile *t, unsigned most, unsigned width, bool may_exceed);
ptx_val block_tile_for(ptx_builder *b, const block_tile *t, block_turns turns, ptx_val first, ptx_val end,
                       unsigned width);
void block_tile_end_for(ptx_builder *b, block_turns turns);

/* A loop over the runs of `bytes` bytes in all sections of a kind, one per thread at a time; `share` threads,
 * a power of two, get the same run. Must be closed by block_tile_end_for. When packing, runs past the end of the tensor may be among them:
 * their blocks are in shared memory, too, and are not stored. */
typedef struct block_step {
    block_place place;
    ptx_val element;   /* u32: the run's first element in strand 0, counted from the first of the tile */
    ptx_val part;      /* u32: number of this thread among those that share the run; empty if share is 1 */
    block_turns turns; /* for block_tile_end_for */
} block_step;
block_step block_tile_runs(ptx_builder *b, const block_tile *t, unsigned kind, unsigned bytes,
                           unsigned share);

#endif
