/* Shared by the product for many rows (lanewise.c) and its staging code (lanewise_stage.c): the
 * description of a tile. A "stage" is the part of x and weights that is in shared memory at a time: two
 * chunks of one lane, for all rows and columns of the tile. */
#ifndef QDNN_KERNELS_GEMM_LANEWISE_H
#define QDNN_KERNELS_GEMM_LANEWISE_H

#include "kernels/gemm/routes.h"
#include "kernels/gemm/runs.h"

enum {
    THREADS = 128,
    SIDE = 8, /* a thread computes SIDE x SIDE outputs */
    OUTPUTS = THREADS * SIDE * SIDE,
    CHUNKS = 2,               /* chunks of a lane per stage */
    STAGE_K = CHUNKS * ROUND, /* k from one stage of a lane to the next */
    ROW_BYTES = 4 * (CHUNKS * CHUNK + 4),
    EIGHT_ROWS = 8 * ROW_BYTES + 32,
    WARP_ROWS = 32, /* a warp has 32 x 64 outputs: 4 x 8 threads */
    WARP_COLUMNS = 64,
    PARTIALS = 5,
    SUM_BYTES = 4 * SIDE * SIDE, /* of a thread */
    ITEMS_MAX = 4,
    ITEMS_AHEAD = 2 /* items of weights that are loaded while the previous stage is summed */
};

/* What a thread brings into shared memory in each stage: a chunk of a row of x, or a run of weights
 * (runs.h). */
typedef struct item {
    ptx_val number; /* u64: the row, or the first output; clamped to those that exist */
    ptx_val k;      /* u32: from the stage's first k on */
    ptx_val to;     /* u32: where in buffer 0 */
    ptx_val row;    /* of x: pointer to the row */
    run_base base;  /* of weights */
    /* Its k in the stage that is being loaded; the same type as that of the stage. */
    ptx_val at;
    /* Predicate, uniform in a warp: this chunk exists, in x and weights alike. */
    ptx_val exists;
    ptx_val words[CHUNK]; /* of x, as loaded */
    weight_run run;
} item;

typedef struct lanewise {
    const kernel_spec *spec;
    gemm_args args;
    weights w;
    unsigned rows, columns; /* of the tile; columns are outputs of the weights */
    unsigned x_items, w_items;
    /* Items 2i and 2i + 1 of the weights have the same outputs and groups, at two k of a chunk. */
    bool in_pairs;
    item x[ITEMS_MAX], weight[ITEMS_MAX];
    row_tile at;                        /* the rows of x */
    ptx_val column;                     /* u64: of the block */
    ptx_val tid, warp_row, warp_column; /* u32: of the thread's warp in the tile */
    ptx_val shared, partials;
    ptx_val read_x, read_w;    /* u32: where the thread's rows begin in buffer 0 */
    ptx_val sums[SIDE][SIDE];  /* variables */
    ptx_val first_lane, lanes; /* u32: of the block, in bit-reversed order */
} lanewise;

/* Byte offset of row `row` (u32) in a buffer; the size of so many rows; the size of a buffer. */
ptx_val lanewise_row_offset(ptx_builder *b, ptx_val row);
unsigned lanewise_rows_bytes(unsigned rows);
unsigned lanewise_buffer_bytes(const lanewise *t);

/* Assign items to the thread: of weights once, of x for each tile of rows. */
void lanewise_place_weights(ptx_builder *b, lanewise *t);
void lanewise_place_x(ptx_builder *b, lanewise *t);

/* Whether rows of x can be read by vectors. */
ptx_val lanewise_x_is_aligned(ptx_builder *b, const lanewise *t);

/* The stage that begins at k = `stage` (u32): fetch only loads it; put writes what was loaded to a buffer
 * (u32 offset: 0 or lanewise_buffer_bytes), with zeros beyond K. */
void lanewise_fetch(ptx_builder *b, lanewise *t, ptx_val stage);
void lanewise_put(ptx_builder *b, lanewise *t, ptx_val stage, ptx_val buffer);

/* Loads and stores a stage element by element: for rows at any address, and a K that is not a multiple of
 * CHUNK. `stage` is a u64. */
void lanewise_copy(ptx_builder *b, lanewise *t, ptx_val stage, ptx_val buffer);

#endif
