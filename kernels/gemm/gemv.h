/* Products of few rows (1 to 16) with weights whose codes lie along K, as bytes or words: every weight is
 * read once, by 16-byte loads, and decoded in registers. Product "gemv" takes rows of whole 16 bytes;
 * product "ragged" takes rows of any length and codes of any width, by way of shared memory.
 *
 * A round is 256 k: a chunk of 8 for each of the 32 lanes. The 16 bytes that a thread loads hold a few
 * chunks, which belong to as many neighbouring lanes; the threads that together hold all lanes of an
 * output are a team: 8 threads of 4 lanes for 4-bit codes, 16 of 2 for bytes, a warp for wider ones. So
 * the upper bits of a lane's number are bits of the thread's number in its team, and the lower ones select
 * one of its accumulators.
 *
 * More words: "numbers" are the f32 values that decoding needs of a group (made from its scale and zero);
 * a "span" is a stretch of k with the same numbers; a "slot" is the place of a span's numbers in shared
 * memory; a "tile" is the k whose x and numbers are in shared memory at one time; a "turn" is one
 * iteration of the main loop, a few rounds.
 *
 *   gemv_shape.c    how threads share the work, and which problems are supported
 *   gemv.c          the kernel: loads ahead, rounds
 *   gemv_ragged.c   rows that begin anywhere: by way of shared memory, where threads pick their words
 *   gemv_finish.c   joins the lanes and stores y
 *   gemv_inputs.c   brings x and the numbers of groups into shared memory, one tile at a time
 *   gemv_decode.c   from codes to f32, per format
 *   gemv_table.c    the same by a large table (byte_table.h) */
#ifndef QDNN_KERNELS_GEMV_H
#define QDNN_KERNELS_GEMV_H

#include "kernels/formats/byte_table.h"
#include "kernels/formats/placed.h"
#include "kernels/gemm/routes.h"
#include "kernels/gemm/stretches.h"
#include "kernels/gemm/weights.h"

enum {
    GEMV_ROWS_MAX = 16,
    GEMV_CHUNKS_MAX = 8,
    GEMV_OUTPUTS_MAX = 4,
    GEMV_WORDS_MAX = 8,
    GEMV_DEPTH_MAX = 8,
    GEMV_NUMBERS_MAX = 4,
    GEMV_TILE_ROUNDS_MAX = 16,
    LANES = 32
};

typedef struct gemv gemv;

/* How codes become f32. `numbers` is how many values it needs per group; they are made once and kept in
 * shared memory. */
typedef struct gemv_codec gemv_codec;
struct gemv_codec {
    unsigned numbers; /* f32: 0, 1, 2 or 4 */
    /* Decoded weights are too small by this power of two; x in shared memory is too large by the same. */
    int x_exponent;
    const placed_decode *placed; /* for integers decoded where they lie; else null */
    /* Makes the numbers. Returns a predicate that is false where this codec cannot handle the group;
     * empty: it always can. */
    ptx_val (*prepare)(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers);
    void (*decode)(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                   const ptx_val *numbers, ptx_val out[CHUNK]);
    /* Decodes two chunks as f32x2, before scaling. Null: chunks are decoded one by one. */
    void (*decode_pair)(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk, unsigned other,
                        ptx_val out[CHUNK]);
    /* Weights are finite, whatever the codes are: where x is 0, codes do not matter. */
    bool is_finite;
    /* Where chunks are in pairs, decode leaves scales out, and the caller multiplies by pairs of scales. */
    bool scales_last;
    /* Run once per kernel by all threads, e.g. to fill a table; the launch then provides BYTE_TABLE_BYTES.
     * Null: not needed. */
    void (*open)(ptx_builder *b, gemv *g);
    /* The codec to try where this one cannot handle a group: it has as many numbers and takes x unscaled.
     * Null: there is none. */
    const gemv_codec *second;
};

/* Decided when the kernel is emitted. */
typedef struct gemv_shape {
    unsigned chunks; /* per thread, output and round */
    unsigned team;   /* threads that share an output */
    unsigned words;  /* that a thread loads per output and round */
    /* Outputs of the weights per thread; of gated pairs, the first half belong to a, the second to b. */
    unsigned outputs;
    unsigned warps, of_block; /* warps and outputs per thread block */
    unsigned rows;            /* of x */
    unsigned depth;           /* rounds loaded ahead */
    unsigned turn;            /* rounds per turn of the loop, a multiple of depth */
    unsigned tile;            /* k whose x and numbers are in shared memory */
    unsigned span;            /* k per span; 0: all k have the same numbers */
    bool numbers_between;     /* numbers lie between the entries of a table, as x does */
    bool is_ragged;           /* codes come by way of shared memory, one turn at a time: */
    unsigned vectors;         /* 16-byte vectors per output and turn */
    unsigned pitch;           /* bytes from an output to the next */
} gemv_shape;

/* How x gets into shared memory. The warps take rows in turn: warp w begins with row w % rows. Where there
 * are more warps than rows, those of a row share its rounds. */
typedef struct x_loader {
    unsigned rounds; /* rounds of a tile that a warp loads per row */
    unsigned step;   /* from one of them to the next */
    ptx_val row;     /* u32: the warp's first row; its next ones follow at steps of the number of warps */
    ptx_val at;      /* u32: k of the lane's chunk in the first round, counted from the tile's */
    ptx_val to;      /* u32: where that chunk is stored, for row 0 */
    ptx_val aligned; /* predicate: chunks are loaded by vectors */
} x_loader;

/* A row of x in a tile: whether it exists, the lane's first k, and where that is in memory and in shared memory. */
typedef struct x_row {
    ptx_val exists, at, from, to;
} x_row;

/* Words of a chunk of x as it lies in memory, for each round that a warp loads. */
typedef ptx_val x_words[GEMV_TILE_ROUNDS_MAX][CHUNK];

/* x on its way from memory. */
enum { GEMV_ROWS_AHEAD = 4 };
typedef struct x_ahead {
    unsigned rows;      /* of a warp; 0: not used */
    ptx_val by_vectors; /* predicate: they could be loaded */
    x_row row[GEMV_ROWS_AHEAD];
    x_words words[GEMV_ROWS_AHEAD];
} x_ahead;

/* How the numbers of groups get there: a thread takes one span of the tile, for outputs at equal
 * distances. */
typedef struct number_loader {
    unsigned step;   /* from an output to the next */
    unsigned passes; /* passes over the spans, where there are more of them than threads */
    ptx_val first;   /* u32: the thread's first output in the block */
    ptx_val at;      /* u32: k of its span, counted from the tile's */
    ptx_val to;      /* u32: where its first numbers are stored */
    ptx_val whole;   /* predicate: all outputs of the block exist (and, for quads, scales are aligned) */
    ptx_val scale_from[2], zero_from[2]; /* u64: group 0 of its first output, in each half */
    ptx_val scale_step, zero_step;       /* u64: bytes to its next output */
} number_loader;

/* Rows that begin anywhere. A stretch holds a row's codes of one turn. As rounds are whole words, all
 * stretches of a row begin at the same bit of their sectors. */
typedef struct ragged_rows {
    stretches rows;
    ptx_val words[GEMV_OUTPUTS_MAX]; /* u32: where in shared memory the word of the thread's first code is */
    ptx_val shift[GEMV_OUTPUTS_MAX]; /* u32: the code's place in it */
    ptx_val before;                  /* u64 variable: bytes of a row before the next stretch */
} ragged_rows;

/* Where a thread reads, in shared memory. */
typedef struct gemv_reading {
    ptx_val x;       /* variable */
    ptx_val numbers; /* variable; empty where all k have the same numbers */
} gemv_reading;

struct gemv {
    const kernel_spec *spec;
    gemm_args args;
    weights w;
    gemv_shape shape;
    const gemv_codec *codec;
    ptx_val k, groups; /* u32: of a row */
    ptx_val m;         /* u32; of sorted rows, the end of the expert's rows */
    ptx_val first_row; /* u32: of the block; of sorted rows, its place among them */
    row_tile experts;  /* for a grouped product: the rows and their expert */
    ptx_val column;    /* u64: of the block */
    ptx_val last;      /* u32: the last column that exists, counted from the block's first */
    ptx_val aligned;   /* predicate: codes may be loaded by vectors */
    ptx_val thread;    /* u32: number of the thread in its team */
    ptx_val output;    /* u32: the thread's first output, counted from the block's first */
    ptx_val x_shared, numbers_shared;
    bool in_pairs; /* chunks c and c + chunks / 2 of a thread are a pair: their sums are one value, f32x2 */
    /* 2: x lies in the gaps between the entries of a table, at twice the distance; else 1 */
    unsigned stretch;
    byte_table table;
    /* Entries of the table are too large by this power of two, and scales too small by the same. */
    int scale_exponent;
    x_loader x_loader;
    number_loader number_loader;
    number_loader quad_loader;      /* for four neighbouring spans at a time, whose scales are one word */
    ptx_val only[GEMV_NUMBERS_MAX]; /* numbers, where all k have the same */
    ptx_val serves;                 /* predicate: the codec can use them; empty: yes */
    ptx_val rows[GEMV_OUTPUTS_MAX]; /* u32: of the weights */
    ptx_val sums[GEMV_OUTPUTS_MAX][GEMV_ROWS_MAX][GEMV_CHUNKS_MAX]; /* variables; pairs use the first half */
    ptx_val ring[GEMV_DEPTH_MAX][GEMV_OUTPUTS_MAX][GEMV_WORDS_MAX]; /* variables: codes in flight */
    ptx_val codes[GEMV_OUTPUTS_MAX]; /* u64: where the thread's codes of the first round are */
    ptx_val at;                      /* u32 variable: byte offset of the ring's first round */
    ptx_val
        left; /* s32 variable: k from there to the end of the tile; negative where codes are not aligned */
    ragged_rows ragged;
};

/* How many chunks share one accumulator (2: as f32x2), and how many accumulators a thread has per output
 * and row. */
static inline unsigned gemv_chunks_together(const gemv *g)
{
    return g->in_pairs ? 2 : 1;
}

static inline unsigned gemv_sums_of(const gemv *g)
{
    return g->shape.chunks / gemv_chunks_together(g);
}

/* ---- Rounds (gemv.c) ---- */

gemv_reading gemv_reading_begin(ptx_builder *b, const gemv *g);
void gemv_reading_advance(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned rounds);
/* Adds one round, counted from where the reading is: words[i] are the codes of output i. */
typedef ptx_val gemv_words[GEMV_OUTPUTS_MAX][GEMV_WORDS_MAX];
void gemv_compute_round(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned round,
                        const gemv_words words);
/* Whether the thread has k at each place of its unit, as predicates: made on first use, for all outputs. */
typedef struct gemv_tail {
    ptx_val first; /* u32: the thread's first k */
    ptx_val left;  /* s32: how many k are left from there on */
    ptx_val has[GEMV_CHUNKS_MAX * CHUNK];
} gemv_tail;
gemv_tail gemv_tail_begin(ptx_builder *b, const gemv *g, ptx_val first);
/* The same for one output where the thread's k may pass the end of K: weights from there on are 0.
 * `slow`: use the codec that is always right, with x unscaled. */
void gemv_compute_carefully(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned output,
                            gemv_tail *tail, const ptx_val *words, bool slow);

/* ---- Rows that begin anywhere (gemv_ragged.c) ---- */

void gemv_begin_ragged(ptx_builder *b, gemv *g);
/* All rounds of the tile at k (u32). */
void gemv_ragged_tile(ptx_builder *b, const gemv *g, ptx_val k, bool slow);

/* ---- Rows (gemv_finish.c) ---- */

/* The number (u64) in x and y of the row with this index (u32). Sorted rows are looked up, where they
 * exist. */
ptx_val gemv_row(ptx_builder *b, const gemv *g, ptx_val row);
/* Joins the lanes of all sums, completes them and stores y. */
void gemv_finish(ptx_builder *b, const gemv *g);

/* ---- Shapes (gemv_shape.c) ---- */

/* Tiles depend on the target; null: any. */
gemv_shape gemv_shape_of(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm);
unsigned gemv_unit(const gemv_shape *s); /* neighbouring k of a thread in a round */
bool gemv_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
bool gemv_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem);
bool gemv_ragged_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem);

/* ---- Inputs (gemv_inputs.c) ---- */

/* The k per span: the largest power of two that divides both groups and rounds. 0: one group is all. */
unsigned gemv_span(const format_row *format, const kernel_spec *spec);
/* How many spans of a thread are loaded with one vector. */
unsigned gemv_spans_together(const gemv_shape *s, const gemv_codec *codec);
/* Where numbers lie in shared memory: output after output, or between the entries of a table. Offsets in
 * bytes: of an output of the block from the first number; of a slot (a span of the tile) from the first of
 * its output; and the size of all of them. */
unsigned gemv_output_offset(const gemv_shape *s, const gemv_codec *codec, unsigned output);
unsigned gemv_slot_offset(const gemv_shape *s, const gemv_codec *codec, unsigned slot);
unsigned gemv_numbers_bytes(const gemv_shape *s, const gemv_codec *codec);
/* The address (u32) of a slot of an output (u32 each). */
ptx_val gemv_numbers_at(ptx_builder *b, const gemv *g, ptx_val output, ptx_val slot);

/* Prepares what does not depend on the tile. */
void gemv_begin_inputs(ptx_builder *b, gemv *g);
/* Stage the tile at k (u32), by all threads of the block; x scaled for the codec, or unscaled. Both return
 * a predicate that is true where the fast path must not be taken; empty: it always may. */
ptx_val gemv_stage_x(ptx_builder *b, const gemv *g, ptx_val k, bool is_scaled);
ptx_val gemv_stage_numbers(ptx_builder *b, const gemv *g, ptx_val k);
/* The same for x (scaled) in two parts: the loads, where a thread has registers for them; and the rest. What is loaded between
 * them is under way at the same time, so that a block waits for memory once. */
void gemv_fetch_x(ptx_builder *b, const gemv *g, ptx_val k, x_ahead *x);
ptx_val gemv_put_x(ptx_builder *b, const gemv *g, ptx_val k, const x_ahead *x);

/* ---- Codes (gemv_decode.c) ---- */

/* The best codec, the best one for a target, and one that is always right. */
const gemv_codec *gemv_codec_of(const format_row *format, const kernel_spec *spec);
const gemv_codec *gemv_codec_for(const ptx_builder *b, const format_row *format, const kernel_spec *spec);
const gemv_codec *gemv_codec_plain(const format_row *format);
extern const gemv_codec gemv_codec_table;                     /* gemv_table.c */
int gemv_scale_exponent(const ptx_builder *b, const gemv *g); /* gemv_table.c */

/* Whether two codes share a byte. */
bool gemv_has_nibbles(const gemv *g);
/* Whether decode leaves scales out. */
bool gemv_scales_last(const gemv *g);

/* The offset from x_shared at which byte `offset` (u32) of x lies. */
ptx_val gemv_x_place(ptx_builder *b, const gemv *g, ptx_val offset);

#endif
