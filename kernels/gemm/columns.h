/* Private to the product "columns" (columns.c): what its decoders share. For the words used here see the
 * head of columns.c. */
#ifndef QDNN_KERNELS_GEMM_COLUMNS_H
#define QDNN_KERNELS_GEMM_COLUMNS_H

#include "kernels/formats/byte_table.h"
#include "kernels/formats/placed.h"
#include "kernels/gemm/lanes.h"
#include "kernels/gemm/window.h"

enum {
    COLUMNS_WARPS = 8,                         /* warps per thread block */
    COLUMNS_LANES = SUM_LANES / COLUMNS_WARPS, /* lanes per warp, and at most per thread */
    COLUMNS_STRETCH = COLUMNS_LANES * CHUNK,   /* k per warp and round */
    COLUMNS_ROWS_MAX = 16,
    COLUMNS_WIDTH_MAX = 8
};

typedef struct columns {
    const kernel_spec *spec;
    gemm_args args;
    weights w;
    x_window x;
    /* Rows of x; columns per thread; rows of the matrix that are loaded together. */
    unsigned rows, width, step;
    unsigned lanes;    /* lanes per thread */
    unsigned together; /* rows of the matrix decoded before they are added: 4, or 2 if registers are scarce */
    unsigned across;   /* threads side by side, which cover the columns of the block */
    bool pairs;        /* sums of neighbouring columns are pairs, for fma on f32x2 */
    ptx_val lane;      /* u32: of the warp */
    ptx_val first_lane;   /* u32: this thread's first lane of the contract */
    ptx_val thread;       /* u32: below across */
    ptx_val rounds;       /* u32 */
    row_tile at;          /* the rows of x */
    ptx_val n;            /* u64: first column of y, of the block */
    ptx_val column;       /* u64: this thread's first column of the matrix, clamped to those that exist */
    ptx_val memory;       /* dynamic shared memory; empty: there is none */
    unsigned memory_used; /* bytes of it */
    ptx_val scratch;      /* u32: shared memory, columns_scratch_bytes */
    byte_table table;     /* of codes; empty: there is none */
    /* Variables; pairs use the first half, as f32x2. */
    ptx_val sums[COLUMNS_ROWS_MAX][COLUMNS_LANES][COLUMNS_WIDTH_MAX];
} columns;

/* The first column of the matrix of a thread (u32, below across), clamped to those that exist. */
ptx_val columns_of_thread(ptx_builder *b, const columns *s, ptx_val thread);

/* Where the thread's x begins in a window. */
ptx_val columns_x_begin(ptx_builder *b, const columns *s);

/* Decoded weights: s->together rows of a thread's columns, from row `first` of a chunk on, as f32 (pairs:
 * f32x2 in the first half). columns_add_rows adds them to a lane, times all rows of x; x_at: the thread's
 * x in this round. */
enum { COLUMNS_TOGETHER = 4 };
typedef struct column_values {
    ptx_val at[COLUMNS_TOGETHER][COLUMNS_WIDTH_MAX];
} column_values;
void columns_add_rows(ptx_builder *b, const columns *s, const column_values *w, unsigned lane, unsigned first,
                      ptx_val x_at);

/* Adds those lanes of a thread that exist, where K ends within them; `row` (u64): its first row of the
 * matrix. */
void columns_add_rest(ptx_builder *b, const columns *s, ptx_val row, ptx_val x_at);

/* ---- Words of 4-bit integers, interleaved (columns_words.c) ---- */

/* Whether there is a fast decode for them. */
bool words_are_cheap(const coding *c);
/* The pass over K, for aligned weights. Returns a predicate: zeros were too large for it; empty where they
 * cannot be. */
ptx_val words_pass(ptx_builder *b, const columns *s);

/* ---- Codes of 4 and 8 bits that lie along N (columns_codes.c) ---- */

bool codes_are_cheap(const coding *c);
/* Bytes of dynamic shared memory to request at launch; 0: none. */
unsigned codes_dynamic_bytes(const coding *c);
/* Rounds of x per window, at most `most`; and bytes of scratch. */
unsigned codes_window(const coding *c, unsigned across, unsigned most);
unsigned codes_scratch_bytes(const coding *c, unsigned across, unsigned rounds);
ptx_val codes_are_aligned(ptx_builder *b, const columns *s);
/* Whether a table is used on this target. */
bool codes_have_table(const ptx_builder *b, const coding *c);
/* The power of two by which x has to be scaled up. */
unsigned codes_x_exponent(const coding *c);
/* Fills the table, if there is one. */
void codes_open(ptx_builder *b, columns *s);
ptx_val codes_pass(ptx_builder *b, const columns *s);

#endif
