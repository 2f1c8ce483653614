/* Products of few rows (1 to 16) with weights whose codes lie along K, as bytes or words: every weight is read once, by
 * 16-byte loads, and decoded in registers. Product "gemv" takes rows of whole 16 bytes; product "ragged" takes rows of any
 * length and codes of any width, by way of shared memory.
 *
 * A round is 256 k, a chunk of 8 for each of the 32 lanes. The 16 bytes that a thread loads are a few chunks, which are as
 * many neighbouring lanes; the threads that hold all lanes of an output are a team: 8 threads of 4 lanes for 4-bit codes,
 * 16 of 2 for bytes, a warp for wider ones. So the upper bits of a lane's number are bits of a thread's, and the lower
 * ones say which of its accumulators it is.
 *
 *   gemv_shape.c    how threads share the work, and what is served
 *   gemv.c          the kernel: loads ahead, rounds
 *   gemv_ragged.c   rows that begin anywhere: stretches of them in shared memory, from which threads pick their words
 *   gemv_finish.c   the sums' end
 *   gemv_inputs.c   x and the numbers of groups into shared memory, a tile of k at a time
 *   gemv_decode.c   from codes to f32, per format
 *   gemv_table.c    the same by a large table (byte_table.h)
 */
#ifndef QDNN_KERNELS_GEMV_H
#define QDNN_KERNELS_GEMV_H

#include "kernels/gemm/byte_table.h"
#include "kernels/gemm/routes.h"
#include "kernels/gemm/stretches.h"
#include "kernels/gemm/weights.h"

enum {
    GEMV_ROWS_MAX = 16,
    GEMV_CHUNKS_MAX = 8,
    GEMV_OUTPUTS_MAX = 4,
    GEMV_WORDS_MAX = 8,
    GEMV_DEPTH_MAX = 4,
    GEMV_NUMBERS_MAX = 4,
    LANES = 32
};

typedef struct gemv gemv;

/* How codes become f32. The numbers are what it needs of a group, made once and kept in shared memory. */
typedef struct gemv_codec gemv_codec;
struct gemv_codec {
    unsigned numbers; /* f32: 0, 1, 2 or 4 */
    /* Decoded weights are too small by this power of two, and x in shared memory is as much too large. */
    int x_exponent;
    /* Makes the numbers; gives a predicate that is false where they do not serve, or nothing: they always do. */
    ptx_val (*prepare)(ptx_builder *b, const gemv *g, const group_values *group, ptx_val *numbers);
    void (*decode)(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk,
                   const ptx_val *numbers, ptx_val out[CHUNK]);
    /* In pairs: two chunks, f32x2 each, in units of scales. Null: they are decoded one by one. */
    void (*decode_pair)(ptx_builder *b, const gemv *g, const ptx_val *words, unsigned chunk, unsigned other,
                        ptx_val out[CHUNK]);
    bool is_wide;     /* decoding takes many registers */
    bool scales_last; /* in pairs, decoded are numbers in units of scales, which are multiplied by pairs */
    /* Once a kernel, by all threads; then the launch gives BYTE_TABLE_BYTES. Null: nothing is needed. */
    void (*open)(ptx_builder *b, gemv *g);
    /* Where numbers do not serve: with as many of its own, and x as it is. Null: there is none. */
    const gemv_codec *second;
};

/* What is decided when the kernel is written. */
typedef struct gemv_shape {
    unsigned chunks;  /* of an output that a thread has in a round */
    unsigned team;    /* threads that share an output */
    unsigned words;   /* that a thread loads of an output in a round */
    unsigned outputs; /* of the weights, that a thread computes; of gated pairs, the first half are a's */
    unsigned warps, of_block; /* of a thread block: its warps, and its outputs */
    unsigned rows;            /* of x */
    unsigned depth;           /* rounds in flight */
    unsigned turn;            /* rounds of one turn of the loop, a multiple of depth */
    unsigned tile;            /* k whose x and numbers are in shared memory */
    unsigned span;            /* k that have the same numbers; 0: all do */
    bool numbers_between;     /* numbers lie between the entries of a table, as x does */
    bool is_ragged;           /* codes come by way of shared memory, a turn of rounds at a time: */
    unsigned vectors;         /* of 16 bytes, that it has of an output */
    unsigned pitch;           /* bytes from an output to the next */
} gemv_shape;

/* How x gets into shared memory. The warps take rows and rounds in turns: warp w begins with row w % rows, and in rounds
 * that the rows leave to it. */
typedef struct x_loader {
    unsigned rounds; /* of the tile, that a warp takes of a row */
    unsigned step;   /* from one of them to the next */
    ptx_val row;     /* u32: the first row of the warp; the next ones are as many warps further */
    ptx_val at;      /* u32: k of the lane's chunk in the first round, counted from the tile's */
    ptx_val to;      /* u32: where it is stored, of row 0 */
    ptx_val aligned; /* predicate: chunks are loaded by vectors */
} x_loader;

/* How numbers of groups do: the threads take spans of the tile, and outputs that are equally far apart. */
typedef struct number_loader {
    unsigned step;   /* from an output to the next */
    unsigned passes; /* where there are more spans than threads: how often that is done */
    ptx_val first;   /* u32: the thread's first output in the block */
    ptx_val at;      /* u32: k of its span, counted from the tile's */
    ptx_val to;      /* u32: where its first numbers are stored */
    ptx_val whole;   /* predicate: all outputs of the block exist; of quads, that they are aligned, too */
    ptx_val scale_from[2], zero_from[2]; /* u64: of its first output, of each half; group 0 */
    ptx_val scale_step, zero_step;       /* u64: bytes to its next output */
} number_loader;

/* Rows that begin anywhere: stretches of them are the codes of a turn of rounds. As rounds are whole words, all stretches of a row
 * begin at the same bit of their sectors. */
typedef struct ragged_rows {
    stretches rows;
    ptx_val words[GEMV_OUTPUTS_MAX]; /* u32: where in shared memory the word of the thread's first code is */
    ptx_val shift[GEMV_OUTPUTS_MAX]; /* u32: the code's place in it */
    ptx_val before;                  /* u64 variable: bytes of a row before the next stretch */
} ragged_rows;

/* Where a thread reads, in shared memory. */
typedef struct gemv_reading {
    ptx_val x;       /* variable */
    ptx_val numbers; /* variable; empty where all k have the same */
} gemv_reading;

struct gemv {
    const kernel_spec *spec;
    gemm_args args;
    weights w;
    gemv_shape shape;
    const gemv_codec *codec;
    ptx_val k, groups; /* u32: of a row */
    ptx_val m;         /* u32; of sorted rows, where those of the expert end */
    ptx_val first_row; /* u32: of the block; of sorted rows, its place among them */
    row_tile experts;  /* of a grouped product: the rows, and their expert */
    ptx_val column;    /* u64: of the block */
    ptx_val last;      /* u32: the last column that exists, counted from the block's first */
    ptx_val aligned;   /* predicate: codes may be loaded by vectors */
    ptx_val thread;    /* u32: of the team */
    ptx_val output;    /* u32: the thread's first output, counted from the block's first */
    ptx_val x_shared, numbers_shared;
    bool in_pairs; /* chunks c and c + chunks / 2 of a thread are a pair: their sums are one value, f32x2 */
    unsigned stretch; /* 2: x lies between the entries of a table, in runs; else 1 */
    byte_table table;
    int scale_exponent; /* numbers in the table are too large by this power of two, and scales as much too small */
    x_loader x_loader;
    number_loader number_loader;
    number_loader quad_loader;      /* four neighbouring spans at a time, whose scales are a word */
    ptx_val only[GEMV_NUMBERS_MAX]; /* numbers, where all k have the same */
    ptx_val serves;                 /* predicate: so do these; empty: yes */
    ptx_val rows[GEMV_OUTPUTS_MAX]; /* u32: of the weights */
    ptx_val sums[GEMV_OUTPUTS_MAX][GEMV_ROWS_MAX][GEMV_CHUNKS_MAX]; /* variables; of pairs, the first half */
    ptx_val ring[GEMV_DEPTH_MAX][GEMV_OUTPUTS_MAX][GEMV_WORDS_MAX]; /* variables: codes in flight */
    ptx_val codes[GEMV_OUTPUTS_MAX]; /* u64: where the thread's codes of the first round are */
    ptx_val at;   /* u32 variable: of the round that the ring begins with; bytes from there */
    ptx_val left; /* s32 variable: k of the row from there on; none where codes are not aligned */
    ragged_rows ragged;
};

/* Chunks that are added together, and how many such a thread has of an output and a row. */
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
/* A round, counted from where the reading is: words[i] are the codes of output i. */
typedef ptx_val gemv_words[GEMV_OUTPUTS_MAX][GEMV_WORDS_MAX];
void gemv_compute_round(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned round,
                        const gemv_words words);
/* The same for one output where the thread's k (u32: the first) may pass the end of K: weights from there on are 0. `slow`: by
 * the codec that is always right, with x as it is. */
void gemv_compute_carefully(ptx_builder *b, const gemv *g, const gemv_reading *r, unsigned output, ptx_val k,
                            const ptx_val *words, bool slow);

/* ---- Rows that begin anywhere (gemv_ragged.c) ---- */

void gemv_begin_ragged(ptx_builder *b, gemv *g);
/* All rounds of the tile at k (u32). */
void gemv_ragged_tile(ptx_builder *b, const gemv *g, ptx_val k, bool slow);

/* ---- Rows (gemv_finish.c) ---- */

/* The number (u64) of a row of x and y, of which a u32 counts from the first: sorted rows are looked up, where they exist. */
ptx_val gemv_row(ptx_builder *b, const gemv *g, ptx_val row);
/* Joins the lanes of all sums and stores what becomes of them. */
void gemv_finish(ptx_builder *b, const gemv *g);

/* ---- Shapes (gemv_shape.c) ---- */

/* Tiles depend on the target; null: any. */
gemv_shape gemv_shape_of(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm);
unsigned gemv_unit(const gemv_shape *s); /* neighbouring k of a thread in a round */
bool gemv_is_ragged(const kernel_spec *spec);
bool gemv_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
bool gemv_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem);
bool gemv_ragged_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem);

/* ---- Inputs (gemv_inputs.c) ---- */

/* The least number that divides groups and rounds: what numbers are staged for. 0: one group is all. */
unsigned gemv_span(const format_row *format, const kernel_spec *spec);
/* How many spans of a thread's k are loaded at once. */
unsigned gemv_spans_together(const gemv_shape *s, const gemv_codec *codec);
/* Where numbers lie in shared memory: output after output, or between the entries of a table. Bytes from the first number on of
 * an output of the block, and of a slot (a span of the tile) from those of its output on; and what all of them take. */
unsigned gemv_output_offset(const gemv_shape *s, const gemv_codec *codec, unsigned output);
unsigned gemv_slot_offset(const gemv_shape *s, const gemv_codec *codec, unsigned slot);
unsigned gemv_numbers_bytes(const gemv_shape *s, const gemv_codec *codec);
/* The address (u32) of a slot of an output (u32 each). */
ptx_val gemv_numbers_at(ptx_builder *b, const gemv *g, ptx_val output, ptx_val slot);

/* What does not depend on the tile. */
void gemv_begin_inputs(ptx_builder *b, gemv *g);
/* The tile at k (u32), by all threads of the block; x as the codec wants it, or as it is. Both give a predicate that is
 * true where the fast way may not be gone, or nothing. */
ptx_val gemv_stage_x(ptx_builder *b, const gemv *g, ptx_val k, bool is_scaled);
ptx_val gemv_stage_numbers(ptx_builder *b, const gemv *g, ptx_val k);

/* ---- Codes (gemv_decode.c) ---- */

/* The best codec, the best for a target, and one that is always right. */
const gemv_codec *gemv_codec_of(const format_row *format, const kernel_spec *spec);
const gemv_codec *gemv_codec_for(const ptx_builder *b, const format_row *format, const kernel_spec *spec);
const gemv_codec *gemv_codec_plain(const format_row *format);
extern const gemv_codec gemv_codec_table;                     /* gemv_table.c */
int gemv_scale_exponent(const ptx_builder *b, const gemv *g); /* gemv_table.c */

/* Whether decode leaves scales out. */
bool gemv_scales_last(const gemv *g);

/* Where byte `offset` (u32) of x lies, from x_shared on. */
ptx_val gemv_x_place(ptx_builder *b, const gemv *g, ptx_val offset);

#endif
