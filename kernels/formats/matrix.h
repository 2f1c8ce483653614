/* A quantized matrix in a kernel: codes in any layout, groups in any direction.
 *
 * Codes are accessed in two ways: one by one, anywhere; or in patches. A patch is a few rows by a few
 * adjacent columns per lane, with 32 lanes side by side, so that the lanes of a warp load and store
 * contiguous memory. Patches require that the number of columns is a multiple of matrix_columns_multiple, and
 * aligned pointers.
 *
 * Groups along rows or down columns form lines: a line is a sequence of groups along that direction,
 * group_rows rows (or columns) wide. */
#ifndef QDNN_KERNELS_MATRIX_H
#define QDNN_KERNELS_MATRIX_H

#include "kernels/formats/quantized.h"

typedef struct matrix {
    quantized q;
    ptx_val rows, columns; /* u64 */
    ptx_val lines, groups; /* u64: number of lines, and groups per line; not used for flat groups */
    ptx_val group_index;   /* pointer; empty if there is none */
    ptx_val row_words;     /* u64: words per row of codes, if rows are streams of words */
    ptx_val zero_words;    /* u64: words of packed zeros per group, for groups down columns */
} matrix;

/* The quantized tensor as a matrix; its size is the kernel's parameters `rows` and `columns`. */
matrix matrix_begin(ptx_builder *b, const quantized *q, const kernel_args *args);

/* ---- Groups (matrix_groups.c) ---- */

/* The group of an element; row and column are u64. */
group_values matrix_group(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column);

/* The groups of `width` adjacent elements in a row; the column is a multiple of width, and pointers are
 * aligned. */
void matrix_row_groups(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column, unsigned width,
                       group_values *each);

/* Whether `rows` rows, starting at a multiple of `rows`, have the same groups. */
bool matrix_rows_share_groups(const kernel_spec *spec, unsigned rows);

/* Whether adjacent elements in a row may be in different groups that are loaded one by one, which takes
 * registers. */
bool matrix_groups_are_many(const kernel_spec *spec, unsigned width);

/* Whether scales and zeros are aligned as matrix_row_groups requires, and'ed with `all`. */
ptx_val matrix_groups_aligned(ptx_builder *b, const matrix *m, unsigned width, ptx_val all);

/* Identifies a group. From it follow the index of its scale, swizzled or not, and that of its zero. */
typedef struct group_place {
    ptx_val line, group; /* u64; line is unused for flat groups */
    ptx_val known;       /* predicate: the group exists; empty: it always does */
} group_place;
ptx_val matrix_scale_slot(ptx_builder *b, const matrix *m, const group_place *place);
/* Whether the array of scales is [lines, groups]; otherwise it is [groups, lines]. */
bool lines_first(const kernel_spec *spec);
ptx_val matrix_group_number(ptx_builder *b, const matrix *m, const group_place *place);
/* Scale and zero as f32; the second only if the format has zeros. */
ptx_val matrix_load_scale(ptx_builder *b, const matrix *m, const group_place *place);
ptx_val matrix_load_zero(ptx_builder *b, const matrix *m, const group_place *place);
/* The same for `width` adjacent columns of a group (u64) down columns; the column is a multiple of width, and
 * pointers are aligned. */
void matrix_column_numbers(ptx_builder *b, const matrix *m, ptx_val group, ptx_val column, unsigned width,
                           ptx_val *scales, ptx_val *zeros);

/* ---- Codes one by one (matrix_codes.c) ---- */

/* An element as f32, of any format except blocks; plain ones only have a shape, and codes at a pointer. */
ptx_val matrix_element(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column);
/* The code of an element, a u32 with all other bits 0. */
ptx_val matrix_code(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column);

/* Writes the codes of a part of the matrix. Each word (layout bytes: byte) is written by one thread; the
 * lanes of a warp take turns. The part consists of the words that begin in rows [row, row_end) and columns
 * [column, column_end), both of which begin at multiples of 32. `code` returns the code of an element. */
typedef ptx_val element_code(ptx_builder *b, const void *user, ptx_val row, ptx_val column);
typedef struct matrix_part {
    ptx_val row, row_end, column, column_end; /* u64 */
} matrix_part;
void matrix_write(ptx_builder *b, const matrix *m, const matrix_part *part, element_code *code,
                  const void *user);

/* ---- Patches (patch.c) ---- */

enum { PATCH_ROWS_MAX = 32, PATCH_WORDS_MAX = 64 };

/* Columns per lane and rows per patch. In column streams, a patch has as many rows as fill whole words; a
 * patch that is only read may have 8 rows instead. */
unsigned patch_width(const coding *c);
unsigned patch_rows(const coding *c);
/* Whether each column has its own numbers of 4 bytes. A lane that loads them for itself is then best given
 * four columns, as many as one load covers, so that neighbouring lanes load adjacent memory. */
bool patch_groups_are_wide(const coding *c);
/* Whether the numbers of a patch's groups do not fit in registers, so that rows are better handled one by
 * one. */
bool patch_numbers_are_many(const coding *c);
/* Whether a patch may have any number of rows. */
bool patch_rows_are_free(const coding *c);
unsigned matrix_columns_multiple(const coding *c);
unsigned patch_codes_align(const coding *c); /* required alignment of the pointer to codes, in bytes */

/* A patch that begins at `row`. `span` is the column of lane 0; `column` is that of this lane or, if the lane
 * is not active, any existing column. All lanes of the warp take part in the functions below. */
typedef struct patch {
    unsigned rows, width;
    ptx_val row, span, column; /* u64 */
    ptx_val active;            /* predicate */
    ptx_val stage;             /* shared memory of this warp, for layouts that are written through it */
    ptx_val words[PATCH_WORDS_MAX];
    ptx_val units[4][4]; /* per column: four rows of one-byte codes in column streams, decoded together */
} patch;

/* Allocates shared memory for `warps` warps; returns the address of this warp's part. */
ptx_val patch_stage(ptx_builder *b, const coding *c, unsigned warps);

/* Reading: patch_load only issues loads, patch_arrive turns the loaded words into codes. Then patch_word
 * returns the u32 that holds the code of row i and column k of the patch, at bit *position. */
void patch_load(ptx_builder *b, const matrix *m, patch *p);
void patch_arrive(ptx_builder *b, const matrix *m, patch *p);
ptx_val patch_word(ptx_builder *b, const matrix *m, const patch *p, unsigned i, unsigned k,
                   unsigned *position);
/* The numbers of row i, in units of their scales; must be called for rows in increasing order. */
void patch_units(ptx_builder *b, const matrix *m, patch *p, unsigned i, ptx_val *units);

/* Writing: patch_put for the codes (u32, other bits 0) of each row, in increasing order of rows;
 * patch_row_done after each row; patch_store after the last. */
void patch_put(ptx_builder *b, const matrix *m, patch *p, unsigned i, unsigned k, ptx_val code);
void patch_row_done(ptx_builder *b, const matrix *m, patch *p, unsigned i);
void patch_store(ptx_builder *b, const matrix *m, patch *p);

#endif
