/* The stream kernel of products in mode tensor: weights, prepacked or codes of 4 bits as stored, go from memory straight into registers,
 * where they are decoded to operand A of mma; x is operand B, so that one instruction multiplies 256 weights
 * by eight rows.
 *
 * A warp computes a strip (512 k) of 32 columns at a time. The eight warps of a block form 1, 2, 4 or 8
 * "parts" (setting split): part p has strips p, p + parts, p + 2 parts, ... of the sum, and the warps of a
 * part stand side by side in n:
 *
 *        k ->  0      512     1024    1536                        parts   columns of a block
 *        +------------+------------+------------+--                 1           256
 *     n  | part 0 ... | part 1 ... | part 2 ... |                   2           128
 *        +------------+------------+------------+--                 4            64
 *           warp 0       warp 1       warp 2                        8            32
 *
 * The sums of a round of strips meet in shared memory, where they are added up in order; a single part adds
 * its strips up in registers. So there is one launch, and no workspace. Of a gated pair, a warp has 16
 * columns of each half.
 *
 * Weights are loaded in units (prepack.h: 16 columns by 64 k), some units ahead, and multiplied in steps of
 * 16 k. x of a part goes through shared memory in "phases" of a few units, copied by cp.async into a ring of
 * stages, some phases ahead.
 *
 *   stream.c          the kernel
 *   stream_x.c        x on its way to shared memory
 *   stream_join.c     from the sums of strips to y
 *   stream_stored.c   codes of 4 bits as they are stored
 *   stream_scales.c   the scales of a step: of groups stored beside the codes
 *   stream_blocks.c   the same from the headers of GGUF blocks
 *   stream_decode.c   operand A from codes and scales, and the table of pairs of numbers
 *   stream_plain.c    operand A from plain values
 *   stream_fp8.c      operand A from FP8 where x is FP8, too, and such x on its way
 *   stream_ternary.c  operand A from the digits of TQ1_0
 *   stream_grids.c    operand A from the codebooks of IQ1, IQ2 and IQ3 */
#ifndef QDNN_KERNELS_TENSOR_STREAM_H
#define QDNN_KERNELS_TENSOR_STREAM_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/byte_table.h"
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
    AHEAD_MAX = 4,    /* units loaded ahead, at most */
    GROUPS_AHEAD = 4, /* groups whose scales are loaded ahead */
    TILES = 2,        /* tiles of 16 columns, per warp */
    WARP_N = TILES * UNIT_N,
    COLUMNS = 2 * TILES, /* columns whose weights a lane decodes: g and g + 8 of each tile */
    ROWS_MAX = 64,
    PARTS_MAX = 8,
    PART_ROWS_MAX = 32,       /* rows of a block with several parts, */
    ROWS_OF_PARTS = 128,      /* and of all its parts */
    ROWS_KNOWN = 4,           /* rows of x whose address each thread keeps */
    CHUNK_BYTES = 2 * UNIT_K, /* a row of x in one unit */
    JOIN_COLUMNS = 4,         /* neighbouring columns that a thread adds up and completes */
    JOINED_MAX = PART_ROWS_MAX * WARP_N * STREAM_WARPS / 2 / JOIN_COLUMNS / STREAM_THREADS
};

/* The scale and zero, or addend, of one column at the current step. */
typedef struct column_scale {
    pair_group pair;
    ptx_val addend; /* for blocks: f32; empty if there is none */
} column_scale;

/* The words of a unit that a lane has loaded. */
typedef struct unit_words {
    ptx_val at[TILES][UNIT_WORDS_MAX];
} unit_words;

/* Scales of one byte per 16 k. Those of a column and a strip are 32 bytes, which are loaded by two lanes
 * of the column's quad: lane 4g + t has the units from UNITS / 2 * (t % 2) on, of column g + 8 (t / 2) of
 * each tile. */
typedef struct quad_scales {
    ptx_val words[TILES][UNITS / 2];    /* u32: the scales of a unit */
    ptx_val pairs[TILES][UNITS / 2][2]; /* the same as pairs: of steps 0 and 1, of 2 and 3 */
    ptx_val now[COLUMNS];               /* the pair of the current step, of each column */
} quad_scales;

/* TQ1_0: the words of the strip's blocks; and of the current block, what is left of its bytes (two per
 * u32) after the digits taken so far. Of its 48 bytes, steps 0, 2, ... 8 take digits of the first 16,
 * steps 1, 3, ... 9 of the next 16, steps 10 to 14 of the last. */
enum { TERNARY_BLOCKS = 2, TERNARY_RUNS = 3 };
typedef struct ternary_digits {
    ptx_val words[TERNARY_BLOCKS][TILES][TERNARY_WORDS];
    ptx_val rest[TILES][TERNARY_RUNS][4];
    ptx_val taken[TILES][4]; /* of the current step, as 4 + digit */
} ternary_digits;

/* IQ1, IQ2 and IQ3: blocks of column n0 + lane, as words; and where the lane stores its column, and reads operand A, in the lines of
 * its warp. */
enum { GRID_PARTS = 8, GRID_BLOCKS = 2, GRID_WORDS_MAX = 28, GRID_LINES_BYTES = STREAM_WARPS * WARP * 64 };
typedef struct grid_parts {
    codec_state state;
    ptx_val words[GRID_BLOCKS][GRID_WORDS_MAX];
    ptx_val to, from;
} grid_parts;

typedef struct block_headers {
    ptx_val words,
        tail; /* pointers: to the first word, and the last bytes, of column my_n in the strip's first block */
    ptx_val columns; /* u64: N, rounded up to units */
} block_headers;

/* What a format has in shared memory beside x: a table of pairs, whose gaps x fills, or lines that weights are decoded to and a
 * codebook, which is declared by itself. */
typedef struct stream_beside {
    bool has_table;
    unsigned lines, codebook; /* bytes */
} stream_beside;

typedef struct stream {
    const kernel_spec *spec;
    gemm_args args;
    matrix m;                   /* for codes with separate scales */
    const block_layout *blocks; /* null: not in blocks */
    coding codes;               /* how codes become numbers; for blocks, as integers with separate scales */
    kernel_spec code_spec;      /* for blocks: what `codes` points to */
    unsigned bias;              /* for blocks: what is subtracted from codes in addition */
    unsigned bits, rows, m_tiles;
    bool k_in_columns;
    bool is_ternary; /* TQ1_0 */
    bool is_grid;    /* IQ1, IQ2 and IQ3 */
    unit_extent unit;
    bool is_gated;
    bool is_stored; /* codes of 4 bits as they are stored: stream_stored.c */
    bool is_bare;   /* weights without scales, whose code 0 is +0 */
    x_form form;
    row_tile at;                /* the rows of a grouped product */
    ptx_val n, k, rows_x;       /* u32: outputs, k, rows of x (of a grouped product: of the tile) */
    ptx_val lane, g, t;         /* u32: the lane, lane / 4, lane % 4 */
    unsigned parts, warps;      /* warps: of a part */
    ptx_val part, part_warp;    /* u32: the part of this warp, and which of its warps it is */
    ptx_val part_thread;        /* u32: the thread, among those of its part */
    ptx_val strips, strip, k0;  /* u32: of the whole sum; the part's current one, and its first k */
    ptx_val warp;               /* u32: the warp, among all of its part and rows in the grid */
    ptx_val m0;                 /* u32: first row of the block (0 if grouped) */
    ptx_val tile_n[TILES];      /* u32: the first column of each tile; */
    ptx_val tile_unit[TILES];   /* and its number in units */
    ptx_val gate_pass;          /* u32: see stream_join.c; empty if not gated */
    ptx_val my_n;               /* u32: the column whose group this lane loads */
    unsigned pointers;          /* prepacked: one for each tile; as stored, one for each column */
    ptx_val units[COLUMNS];     /* pointers to this lane's words of the strip's first unit */
    ptx_val codes_aligned;      /* predicate, as stored: lanes can load their words at once */
    ptx_val byte;               /* u32, as stored: selects the lane's byte of a word, twice */
    bool goes_on;               /* the last units of a strip load the first ones of the next, */
    unit_words next[AHEAD_MAX]; /* variables */
    unsigned chunk;             /* bytes between chunks of x: with a table, chunks lie between its entries */
    unsigned phase_units, stages; /* units per phase; phases of which there is room for x */
    unsigned ahead;               /* units loaded ahead */
    stream_beside beside;
    ptx_val x_shared;
    ptx_val x_part;    /* u32: where x of the part begins there */
    ptx_val x_aligned; /* predicate: x can be copied by pieces */
    ptx_val
        x_from[ROWS_KNOWN]; /* pointers: x of the first pieces that this thread copies of a phase, at k 0 */
    ptx_val x_to;           /* u32: where the first of them goes in stage 0 */
    bool x_exists;          /* all k of the strip exist */
    ptx_val x_lane[UNIT_STEPS];           /* u32: where ldmatrix reads in stage 0, for each step of a unit */
    byte_table table;                     /* of pairs, of f32 or of halves; empty: there is none */
    ptx_val sums[TILES][ROWS_MAX / 8][4]; /* variables: of the current strip */
    ptx_val running[TILES][ROWS_MAX / 8][4];  /* and of those before it, if there is one part; */
    ptx_val joined[JOINED_MAX][JOIN_COLUMNS]; /* otherwise of the columns that a thread adds up */
    unsigned n_joined;
    column_groups groups;           /* of column my_n, from the strip's first group on */
    group_values group[STRIP / 16]; /* of the strip, as far as they are loaded */
    quad_scales quads;
    block_headers headers;
    ternary_digits digits;
    grid_parts grid;
    block_header header; /* of the current block and column my_n */
    column_scale scale[COLUMNS];
} stream;

/* ---- stream_x.c ---- */

/* The units of a phase, the phases of which there is room, and the bytes of dynamic shared memory: lines follow x. */
typedef struct stream_room {
    unsigned units, stages, bytes;
} stream_room;
stream_room stream_room_of(const kernel_spec *spec, const stream_beside *beside);
stream_beside stream_beside_of(const format_row *format, const kernel_spec *spec);

/* stream_x_begin sets up where x lies; stream_x_address is the address of a piece (8 k of the phase; u32)
 * of a row (u32) in a stage. */
void stream_x_begin(ptx_builder *b, stream *s);
ptx_val stream_x_address(ptx_builder *b, const stream *s, unsigned stage, ptx_val row, ptx_val piece);
/* Where x comes from, for the rows of the block. */
void stream_x_begin_rows(ptx_builder *b, stream *s);
/* Starts copying the first phases of the strip: before each of its strips or, where there is a single part, before the first. */
void stream_x_first(ptx_builder *b, const stream *s);
/* Waits for a phase of the strip. After that, starts copying a later one, over the phase before. */
void stream_x_arrive(ptx_builder *b, const stream *s, unsigned phase);
void stream_x_next(ptx_builder *b, const stream *s, unsigned phase);
/* Where other parts have phases that this one does not have, from `phase` on: threads of all parts wait for each other. */
void stream_x_skip(ptx_builder *b, const stream *s, unsigned phase);
/* Until nothing is on its way any more. */
void stream_x_end(ptx_builder *b, const stream *s);

/* The bytes of a row of x in shared memory, and of a stage. */
unsigned stream_x_line_bytes(const stream *s);
unsigned stream_x_stage_bytes(const stream *s);

/* ---- stream_join.c ---- */

void stream_join_begin(ptx_builder *b, stream *s);
/* Adds the sums of a round of strips to those of the strips before them. */
void stream_join_round(ptx_builder *b, stream *s);
/* Completes y. */
void stream_finish(ptx_builder *b, stream *s);
/* How often the block computes its sums: once or, if the halves of a gated pair do not begin with units, twice. */
ptx_val stream_gate_passes(ptx_builder *b, const stream *s);
unsigned stream_outputs(const kernel_spec *spec);

/* ---- stream_scales.c ---- */

/* Scales stored beside the codes: begin sets up pointers; of_strip loads what is loaded for a whole strip;
 * of_step and at provide the scales of a step of it, or at k (u32). */
void stream_scales_begin(ptx_builder *b, stream *s);
void stream_scales_of_strip(ptx_builder *b, stream *s);
void stream_scales_of_step(ptx_builder *b, stream *s, unsigned step);
void stream_scales_at(ptx_builder *b, stream *s, ptx_val k);
/* The value of x in lane `lane`. */
ptx_val stream_from_lane(ptx_builder *b, ptx_val x, ptx_val lane);

/* ---- stream_blocks.c ---- */

/* begin sets up pointers; of_step provides the scales of a step of the blocks from `h` on, if they change
 * there or `anew` is set. */
void stream_blocks_begin(ptx_builder *b, stream *s);
void stream_blocks_of_step(ptx_builder *b, stream *s, const block_headers *h, unsigned step, bool anew);
/* Word `word` of the header of a block, counted from where the pointers are. */
ptx_val stream_header_word(ptx_builder *b, const stream *s, const block_headers *h, unsigned block,
                           unsigned word);
/* The pointers as variables; advance moves them on by `k`. */
block_headers stream_headers_var(ptx_builder *b, const stream *s);
void stream_headers_advance(ptx_builder *b, const stream *s, block_headers *h, unsigned k);

/* ---- stream_decode.c ---- */

/* Whether numbers are looked up in a table of pairs: of f32, or of the type of x if it can hold them and
 * their scales exactly. */
typedef enum { TABLE_NONE, TABLE_OF_F32, TABLE_OF_HALVES } stream_table;
stream_table stream_table_of(const format_row *format, const kernel_spec *spec);
void stream_decode_begin(ptx_builder *b, stream *s, const format_row *format);
/* Operand A of one step: pair i belongs to row g + 8 (i % 2) of tile q. */
void stream_decode_step(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step,
                        ptx_val a[4]);

/* ---- stream_stored.c ---- */

bool stored_serves(const kernel_row *row, const kernel_spec *spec, const char **why);
void stream_stored_begin(ptx_builder *b, stream *s);
/* Where the strip's words are, of each column. */
void stream_stored_units(ptx_builder *b, stream *s);
/* Loads a unit that lies `offset` bytes behind the pointers; short: codes may be missing (beyond k, u32) or not aligned. */
void stream_stored_load(ptx_builder *b, const ptx_val *pointers, int offset, unit_words *w);
void stream_stored_load_short(ptx_builder *b, const stream *s, const ptx_val *pointers, ptx_val k,
                              unit_words *w);
/* The bytes of a step that the lane decodes: the pair of column g + 8 (i % 2) and k 8 (i / 2) + 2t in bytes 0 and 2 of pairs[i]; and
 * all four in one word, as prepacked. */
void stream_stored_pairs(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step,
                         ptx_val pairs[4]);
ptx_val stream_stored_word(ptx_builder *b, const stream *s, const unit_words *w, unsigned q, unsigned step);

/* ---- stream_plain.c ---- */

/* The same for plain values, from the words of a lane. */
void stream_plain_step(ptx_builder *b, const stream *s, const ptx_val *words, unsigned step, ptx_val a[4]);

/* ---- stream_fp8.c ---- */

/* The same for FP8 where x is FP8, too: a step has 16 k or, on SMs that multiply FP8, 32. */
void stream_fp8_step(ptx_builder *b, const stream *s, const ptx_val *words, unsigned step, ptx_val a[4]);
/* Converts a loaded piece of x to the form in shared memory; and the place there of byte `i` (u32) of a
 * piece, if it stays a byte. */
void stream_fp8_piece(ptx_builder *b, const stream *s, const ptx_val *loaded, ptx_val words[4]);
ptx_val stream_fp8_place(ptx_builder *b, ptx_val i);

/* ---- stream_ternary.c ---- */

/* Load the bytes of a block of the strip; extract the digits of the next step; make operand A from them. */
void stream_ternary_load(ptx_builder *b, stream *s, unsigned block);
void stream_ternary_digits(ptx_builder *b, stream *s, unsigned step);
void stream_ternary_step(ptx_builder *b, const stream *s, unsigned q, ptx_val a[4]);

/* ---- stream_grids.c ---- */

/* Set up lines at an address; load a block of the strip; decode what begins with a step of the strip; read operand A. */
void stream_grid_begin(ptx_builder *b, stream *s, ptx_val lines);
void stream_grid_load(ptx_builder *b, stream *s, unsigned block);
void stream_grid_decode(ptx_builder *b, const stream *s, unsigned step);
void stream_grid_step(ptx_builder *b, const stream *s, unsigned q, unsigned step, ptx_val a[4]);

#endif
