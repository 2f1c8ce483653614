/* The stream kernel of products in mode tensor, for few rows: prepacked weights go from memory straight into registers, where
 * they are decoded to operand A of mma; x is operand B, so that eight rows take one instruction for 256 weights.
 *
 * A warp has one strip of 512 k of 32 columns; the eight warps of a block stand side by side and share that strip of x in
 * shared memory. Loads run four units ahead (with 128 rows, one). The sum of each strip goes to the workspace, [strip][m][n], by itself; a second
 * kernel (strips.c) joins them in order and completes y.
 *
 *   stream.c          the kernel
 *   stream_x.c        x on its way to shared memory
 *   stream_scales.c   scales of a step: of groups beside the codes
 *   stream_blocks.c   the same from the headers of GGUF blocks
 *   stream_decode.c   operand A from codes and scales, and the table of pairs of numbers
 *   stream_plain.c    operand A from plain values
 *   stream_fp8.c      operand A from FP8 beside x in FP8, and such x on its way
 *   stream_ternary.c  operand A from the digits of TQ1_0 */
#ifndef QDNN_KERNELS_TENSOR_STREAM_H
#define QDNN_KERNELS_TENSOR_STREAM_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/pairs.h"
#include "kernels/gemm/routes.h"
#include "kernels/tensor/fp8.h"
#include "kernels/tensor/groups.h"
#include "kernels/tensor/prepack.h"

enum {
    STREAM_WARPS = 8,
    STREAM_THREADS = STREAM_WARPS * WARP,
    STRIP = 512,
    UNITS = STRIP / UNIT_K,
    AHEAD_MAX = 4,       /* units */
    TILES = 2,           /* of 16 columns, a warp */
    COLUMNS = 2 * TILES, /* whose weights a lane decodes: g, g + 8, g + 16, g + 24 */
    ROWS_MAX = 128,
    HALF_ROWS = ROWS_MAX / 2, /* rows behind them are skipped where there are none */
    HEADER_WORDS_MAX = 9,
    CHUNK_BYTES = 2 * UNIT_K,           /* of a row of x in one unit */
    STRIPS_OUTPUTS = 4 * STREAM_THREADS /* that a block of the second kernel completes in a row */
};

/* Scale and zero, or addend, of one column at the step at hand. */
typedef struct column_scale {
    pair_group pair;
    ptx_val addend; /* of blocks: f32; empty where there is none */
} column_scale;

/* The words of a unit that a lane has loaded, and what scales are made of. */
typedef struct unit_words {
    ptx_val at[TILES][UNIT_WORDS_MAX];
} unit_words;

/* Scales of a byte for every 16 k. Those of a column and a strip are 32 bytes, which two lanes of its quad load: lane 4g + t has the
 * units from UNITS / 2 * (t % 2) on of column g + 8 (t / 2) of each tile. */
typedef struct quad_scales {
    ptx_val words[TILES][UNITS / 2];    /* u32: the scales of a unit */
    ptx_val pairs[TILES][UNITS / 2][2]; /* pairs: those of steps 0 and 1, 2 and 3 */
    ptx_val now[COLUMNS];               /* the pair of the step at hand, of each column */
} quad_scales;

/* TQ1_0: the words of the strip's blocks, and of the block at hand what is left of its bytes, two to a u32, behind the digits that
 * were taken. Of its 48 bytes, steps 0, 2, ... 8 take digits of the first 16, steps 1, 3, ... 9 of the next, 10 to 14 of the last. */
enum { TERNARY_BLOCKS = 2, TERNARY_RUNS = 3 };
typedef struct ternary_digits {
    ptx_val words[TERNARY_BLOCKS][TILES][TERNARY_WORDS];
    ptx_val rest[TILES][TERNARY_RUNS][4];
    ptx_val taken[TILES][4]; /* of the step at hand, as 4 + digit */
} ternary_digits;

typedef struct block_headers {
    ptx_val words,
        tail; /* pointers: to the first word of column my_n in the strip's first block, and to what is less than a word */
    ptx_val columns; /* u64: N, rounded up */
} block_headers;

typedef struct stream {
    const kernel_spec *spec;
    gemm_args args;
    matrix m;                   /* of codes beside scales */
    const block_layout *blocks; /* null: not in blocks */
    coding codes;               /* how codes are numbers; of blocks, as if they were integers beside scales */
    kernel_spec code_spec;      /* of blocks: what `codes` points to */
    unsigned bias;              /* of blocks: what is subtracted from codes beside that */
    unsigned bits, rows, m_tiles;
    bool k_in_columns;
    bool is_ternary; /* TQ1_0 */
    unit_extent unit;
    bool is_bare; /* weights without scales, of which a code of 0 is +0 */
    x_form form;
    row_tile at;          /* the rows of a grouped product */
    ptx_val n, k, rows_x; /* u32: outputs, k, rows of x: of a grouped product, of the tile */
    ptx_val lane, g, t;   /* u32: the lane, lane / 4, lane % 4 */
    ptx_val strip, warp;  /* u32: the strip; the warp among all that share it and the rows */
    ptx_val n0, m0, k0;   /* u32: of the warp, of the block (of a grouped product 0), of the strip */
    ptx_val has_more;     /* whether there are rows behind the first HALF_ROWS; empty: the tile has none */
    ptx_val my_n;         /* u32: the column whose group this lane loads */
    ptx_val units[TILES]; /* pointers to this lane's words of the strip's first unit */
    unsigned
        chunk; /* bytes from a chunk of x to the next: where there is a table, they lie between its entries */
    unsigned
        phase_units; /* of which x is in shared memory at a time: all of a strip, or a half or a quarter */
    unsigned ahead;  /* units that are loaded before their use */
    ptx_val x_shared;
    ptx_val x_lane[UNIT_STEPS]; /* u32: where ldmatrix reads from a step of a unit on */
    ptx_val table;              /* u32: address of the table of pairs; empty: there is none */
    ptx_val table_copy;         /* u32: this lane's place in an entry */
    ptx_val sums[TILES][ROWS_MAX / 8][4];
    column_groups groups; /* of my_n, from the strip's first on */
    quad_scales quads;
    block_headers headers;
    ternary_digits digits;
    ptx_val header[HEADER_WORDS_MAX]; /* u32: of the block at hand, of column my_n */
    ptx_val d, second;                /* f32: what a header has of them */
    column_scale scale[COLUMNS];
} stream;

/* ---- stream_x.c ---- */

/* The bytes of shared memory for x, with a table or without. */
unsigned stream_shared_bytes(unsigned rows, bool has_table);
/* Where x lies, for a row (of `rows`) and a piece of 8 k of the phase (u32). */
void stream_x_begin(ptx_builder *b, stream *s);
ptx_val stream_x_address(ptx_builder *b, const stream *s, ptx_val row, ptx_val piece);
/* The number (u64) of a row of the block (u32); of one that does not exist, any that does or comes behind the last. */
ptx_val stream_row(ptx_builder *b, const stream *s, ptx_val row);
/* By all threads: a phase of the strip, between barriers; `whole`: the strip is not cut short. */
void stream_load_x(ptx_builder *b, const stream *s, unsigned phase, bool whole);

/* The bytes of a row of x. */
unsigned stream_x_line_bytes(const stream *s);

/* ---- stream_scales.c ---- */

/* Scales of codes beside them: pointers once; what is loaded for a whole strip; then those of a step of it, or at k (u32). */
void stream_scales_begin(ptx_builder *b, stream *s);
void stream_scales_of_strip(ptx_builder *b, stream *s);
void stream_scales_of_step(ptx_builder *b, stream *s, unsigned step);
void stream_scales_at(ptx_builder *b, stream *s, ptx_val k);
/* What lane `lane` has. */
ptx_val stream_from_lane(ptx_builder *b, ptx_val x, ptx_val lane);

/* ---- stream_blocks.c ---- */

/* Pointers once; then the scales of a step of the blocks from `h` on, where they change, or `anew`. */
void stream_blocks_begin(ptx_builder *b, stream *s);
void stream_blocks_of_step(ptx_builder *b, stream *s, const block_headers *h, unsigned step, bool anew);
/* Pointers that are variables, and `k` further on. */
block_headers stream_headers_var(ptx_builder *b, const stream *s);
void stream_headers_advance(ptx_builder *b, const stream *s, block_headers *h, unsigned k);

/* ---- stream_decode.c ---- */

/* Whether numbers are looked up in a table of pairs: of f32, or of the type of x where that holds them and their scales. */
typedef enum { TABLE_NONE, TABLE_OF_F32, TABLE_OF_HALVES } stream_table;
stream_table stream_table_of(const format_row *format, const kernel_spec *spec);
void stream_decode_begin(ptx_builder *b, stream *s, const format_row *format);
/* Operand A of one step: pair i is of row g + 8 (i % 2) of tile q. */
void stream_decode_step(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step,
                        ptx_val a[4]);

/* ---- stream_plain.c ---- */

/* The same of plain values, from the words of a lane. */
void stream_plain_step(ptx_builder *b, const stream *s, const ptx_val *words, unsigned step, ptx_val a[4]);

/* ---- stream_fp8.c ---- */

/* The same of FP8 beside x in FP8: a step has 16 k or, where the SM multiplies FP8, 32. */
void stream_fp8_step(ptx_builder *b, const stream *s, const ptx_val *words, unsigned step, ptx_val a[4]);
/* A piece of x that was loaded, as it lies in shared memory; and where byte `i` (u32) of a piece lies there, where it stays one. */
void stream_fp8_piece(ptx_builder *b, const stream *s, const ptx_val *loaded, ptx_val words[4]);
ptx_val stream_fp8_place(ptx_builder *b, ptx_val i);

/* ---- stream_ternary.c ---- */

/* The bytes of a block of the strip; then the digits of one step after the other; and operand A from them. */
void stream_ternary_load(ptx_builder *b, stream *s, unsigned block);
void stream_ternary_digits(ptx_builder *b, stream *s, unsigned step);
void stream_ternary_step(ptx_builder *b, const stream *s, unsigned q, ptx_val a[4]);

#endif
