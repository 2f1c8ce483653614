/* The product for many rows (lanewise.c) and its stages (lanewise_stage.c): what both know of a tile. */
#ifndef QDNN_KERNELS_GEMM_LANEWISE_H
#define QDNN_KERNELS_GEMM_LANEWISE_H

#include "kernels/gemm/routes.h"
#include "kernels/gemm/runs.h"

enum {
    THREADS = 128,
    SIDE = 8, /* outputs of a thread in each direction */
    OUTPUTS = THREADS * SIDE * SIDE,
    CHUNKS = 2,               /* of a lane in a stage */
    STAGE_K = CHUNKS * ROUND, /* from a stage to the next of a lane */
    ROW_BYTES = 4 * (CHUNKS * CHUNK + 4),
    EIGHT_ROWS = 8 * ROW_BYTES + 32,
    WARP_ROWS = 32, /* a warp has 32 x 64 outputs: 4 x 8 threads */
    WARP_COLUMNS = 64,
    PARTIALS = 5,
    SUM_BYTES = 4 * SIDE * SIDE, /* of a thread */
    ITEMS_MAX = 4,
    ITEMS_AHEAD = 2 /* of weights, loaded while the stage before is summed */
};

/* What a thread brings into shared memory of each stage: a chunk of a row of x, or a run of weights. */
typedef struct item {
    ptx_val number;       /* u64: the row, or the first output, that exists */
    ptx_val k;            /* u32: from the stage's first k on */
    ptx_val to;           /* u32: where in buffer 0 */
    ptx_val row;          /* of x: pointer to the row */
    run_base base;        /* of weights */
    ptx_val at;           /* its k in the stage that is being brought in, as wide as that of the stage */
    ptx_val exists;       /* predicate, uniform in a warp: there is such a chunk; of x and weights alike */
    ptx_val words[CHUNK]; /* of x, as loaded */
    weight_run run;
} item;

typedef struct lanewise {
    const kernel_spec *spec;
    gemm_args args;
    weights w;
    unsigned rows, columns; /* of the tile; columns are outputs of the weights */
    unsigned x_items, w_items;
    bool in_pairs; /* items of weights 2i and 2i + 1 are of the same outputs and groups, at two k of a chunk */
    item x[ITEMS_MAX], weight[ITEMS_MAX];
    row_tile at;                        /* the rows of x */
    ptx_val column;                     /* u64: of the block */
    ptx_val tid, warp_row, warp_column; /* u32: of the thread's warp in the tile */
    ptx_val shared, partials;
    ptx_val read_x, read_w;    /* u32: where the thread's rows begin in buffer 0 */
    ptx_val sums[SIDE][SIDE];  /* variables */
    ptx_val first_lane, lanes; /* u32: of the block, in bit-reversed order */
} lanewise;

/* Where row `row` (u32) of a buffer begins, in bytes; and what so many rows take, or a buffer. */
ptx_val lanewise_row_offset(ptx_builder *b, ptx_val row);
unsigned lanewise_rows_bytes(unsigned rows);
unsigned lanewise_buffer_bytes(const lanewise *t);

/* Which items the thread has: of weights once, of x for each tile of rows. */
void lanewise_place_weights(ptx_builder *b, lanewise *t);
void lanewise_place_x(ptx_builder *b, lanewise *t);

/* Whether rows of x may be read by vectors. */
ptx_val lanewise_x_is_aligned(ptx_builder *b, const lanewise *t);

/* The stage that begins at k = `stage`: loads alone; then what was loaded, into a buffer (u32: 0 or lanewise_buffer_bytes), with
 * zeros where there is no such k. `stage` is a u32. */
void lanewise_fetch(ptx_builder *b, lanewise *t, ptx_val stage);
void lanewise_put(ptx_builder *b, lanewise *t, ptx_val stage, ptx_val buffer);

/* Both at once, element by element: for rows at any address, and a K that is no multiple of CHUNK. `stage` is a u64. */
void lanewise_copy(ptx_builder *b, lanewise *t, ptx_val stage, ptx_val buffer);

#endif
