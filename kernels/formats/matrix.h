/* A quantized matrix in a kernel: codes in any layout, groups in any direction.
 *
 * Codes are reached in two ways. One by one, wherever they lie. Or by patches: a few rows by a few neighbouring columns
 * for each lane, 32 lanes side by side, with loads and stores that the lanes of a warp fill together. A patch needs
 * columns that are a multiple of matrix_columns_multiple, and aligned pointers. */
#ifndef QDNN_KERNELS_MATRIX_H
#define QDNN_KERNELS_MATRIX_H

#include "kernels/formats/quantized.h"

typedef struct matrix {
    quantized q;
    ptx_val rows, columns; /* u64 */
    ptx_val lines, groups; /* u64: lines of groups and the groups of a line; flat groups have neither */
    ptx_val group_index;   /* pointer; empty where there is none */
    ptx_val row_words;     /* u64: words of a row of codes, where rows are streams of words */
    ptx_val zero_words;    /* u64: words of the packed zeros of a group down columns */
} matrix;

/* The quantized tensor as a matrix of the kernel's parameters `rows` and `columns`. */
matrix matrix_begin(ptx_builder *b, const quantized *q, const kernel_args *args);

/* ---- Groups (matrix_groups.c) ---- */

/* The group of an element; row and column are u64. */
group_values matrix_group(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column);

/* The groups of `width` neighbours in a row; the column is a multiple of width, and pointers are aligned. */
void matrix_row_groups(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column, unsigned width,
                       group_values *each);

/* Whether so many rows, from a multiple of their number on, have the same groups. */
bool matrix_rows_share_groups(const kernel_spec *spec, unsigned rows);

/* Whether neighbours in a row may each have another group, loaded one by one: that takes registers. */
bool matrix_groups_are_many(const kernel_spec *spec, unsigned width);

/* Whether scales and zeros are aligned as matrix_row_groups needs it; and'ed with `all`. */
ptx_val matrix_groups_aligned(ptx_builder *b, const matrix *m, unsigned width, ptx_val all);

/* Where the numbers of a group lie: the scale's place in its array, swizzled or not, and the zero's. */
typedef struct group_place {
    ptx_val line, group; /* u64; flat groups have no line */
    ptx_val known;       /* predicate: the group exists; empty: always */
} group_place;
ptx_val matrix_scale_slot(ptx_builder *b, const matrix *m, const group_place *place);
/* Whether the array of scales is [lines, groups]; else [groups, lines]. */
bool lines_first(const kernel_spec *spec);
ptx_val matrix_group_number(ptx_builder *b, const matrix *m, const group_place *place);
/* Those numbers as f32; the second only where the format has zeros. */
ptx_val matrix_load_scale(ptx_builder *b, const matrix *m, const group_place *place);
ptx_val matrix_load_zero(ptx_builder *b, const matrix *m, const group_place *place);
/* The same for `width` neighbouring columns of a group (u64) down columns; the column is a multiple of width, and pointers are
 * aligned. */
void matrix_column_numbers(ptx_builder *b, const matrix *m, ptx_val group, ptx_val column, unsigned width,
                           ptx_val *scales, ptx_val *zeros);

/* ---- Codes one by one (matrix_codes.c) ---- */

/* The code of an element, a u32 without other bits. */
ptx_val matrix_code(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column);

/* Writes the codes of part of the matrix, whole words (layout bytes: bytes) by one thread each, which the lanes of a
 * warp take in turns: those that begin in rows [row, row_end), columns [column, column_end), which begin at multiples
 * of 32. `code` gives the code of an element. */
typedef ptx_val element_code(ptx_builder *b, const void *user, ptx_val row, ptx_val column);
typedef struct matrix_part {
    ptx_val row, row_end, column, column_end; /* u64 */
} matrix_part;
void matrix_write(ptx_builder *b, const matrix *m, const matrix_part *part, element_code *code,
                  const void *user);

/* ---- Patches (patch.c) ---- */

enum { PATCH_ROWS_MAX = 32, PATCH_WORDS_MAX = 64 };

/* How many columns a lane has, and how many rows a patch. Layouts in column streams take as many rows as fill words; a
 * patch that is only read may have 8 of them. */
unsigned patch_width(const coding *c);
unsigned patch_rows(const coding *c);
/* Whether each column has numbers of its own that take 4 bytes: a lane that loads them for itself had better have four
 * columns, as many as a load takes, and neighbouring lanes load neighbouring memory. */
bool patch_groups_are_wide(const coding *c);
/* Whether the numbers of its groups are more than the registers hold, so that rows are better taken one by one. */
bool patch_numbers_are_many(const coding *c);
/* Whether a patch may have any number of rows. */
bool patch_rows_are_free(const coding *c);
unsigned matrix_columns_multiple(const coding *c);
unsigned patch_codes_align(const coding *c); /* of the pointer to codes, in bytes */

/* A patch at rows from `row` on. `span` is the column of lane 0, `column` that of this lane, or any other that exists
 * where this lane is not active. All lanes of the warp take part in what follows. */
typedef struct patch {
    unsigned rows, width;
    ptx_val row, span, column; /* u64 */
    ptx_val active;            /* predicate */
    ptx_val stage;             /* shared memory of this warp, for layouts that write through it */
    ptx_val words[PATCH_WORDS_MAX];
    ptx_val units[4][4]; /* by column: four rows of bytes in column streams, decoded together */
} patch;

/* Shared memory for `warps` warps; of this warp. */
ptx_val patch_stage(ptx_builder *b, const coding *c, unsigned warps);

/* Reading: loads alone, then what makes codes of them. Then the u32 that holds the code of row i and column k of the
 * patch at bit *position. */
void patch_load(ptx_builder *b, const matrix *m, patch *p);
void patch_arrive(ptx_builder *b, const matrix *m, patch *p);
ptx_val patch_word(ptx_builder *b, const matrix *m, const patch *p, unsigned i, unsigned k,
                   unsigned *position);
/* The numbers of row i, in units of their scales; rows in increasing order. */
void patch_units(ptx_builder *b, const matrix *m, patch *p, unsigned i, ptx_val *units);

/* Writing: codes (u32 without other bits) of rows in increasing order; patch_row_done after those of each row;
 * patch_store after the last. */
void patch_put(ptx_builder *b, const matrix *m, patch *p, unsigned i, unsigned k, ptx_val code);
void patch_row_done(ptx_builder *b, const matrix *m, patch *p, unsigned i);
void patch_store(ptx_builder *b, const matrix *m, patch *p);

#endif
