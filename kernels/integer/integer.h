/* Integer products: codes times codes with int32 sums that wrap, so that every order and every instruction
 * gives the same bits.
 *
 *   lines.c     dp4a: one warp per column for a few rows; any shape
 *   dot.c       dp4a: one block for one dot product
 *   groups.c    dp4a with one scale per group of weights (w4a8); any shape
 *   tile.c      tensor cores: tiles of 64 x 64 and 128 x 128, with codes staged through shared memory
 *   fill.c      how codes are brought into shared memory: rows of a matrix, or windows of an image
 *   window.c    convolutions of any shape, one output per thread
 *   top.c       dp4a: the largest elements of each row, which are kept in registers
 *   transpose.c transposes matrices of bytes
 *
 * Scaled products of bytes, and of bytes with nibbles, take stacks of experts, as products of floats do (gemm/routes.h), and gated pairs: a
 * thread then computes column n of the first half of w's outputs and of the second.
 *
 * They share the reading of codes (codes.c) and the processing of sums (results.c). */
#ifndef QDNN_KERNELS_INTEGER_H
#define QDNN_KERNELS_INTEGER_H

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/routes.h"

enum { INT_CHUNK = 16 }; /* bytes read at a time */

/* ---- codes.c ---- */

/* A matrix of codes, stored row by row. */
typedef struct int_matrix {
    qdnnDataType_t type; /* I8, U8, I4 */
    ptx_val base;        /* u64 */
    ptx_val rows;        /* u64 */
    ptx_val pitch;       /* u32: bytes per row, without gaps */
    ptx_val low;         /* u32: its low bits are 0 where all rows are aligned */
} int_matrix;

/* The bytes of a row of k codes (u32). */
ptx_val int_row_bytes(ptx_builder *b, qdnnDataType_t type, ptx_val k);
int_matrix int_matrix_begin(ptx_builder *b, qdnnDataType_t type, ptx_val base, ptx_val rows, ptx_val k);
/* The same for a convolution on tensor cores, whose rows are windows: whole chunks of 16 bytes, so many that the specification says. */
int_matrix int_matrix_of_windows(ptx_builder *b, qdnnDataType_t type, ptx_val base, ptx_val rows,
                                 unsigned bytes);
/* The address of a row (u64); rows past the end are replaced by the last, so that reads are valid. */
ptx_val int_row(ptx_builder *b, const int_matrix *matrix, ptx_val row);
ptx_val int_row_that_exists(ptx_builder *b, const int_matrix *matrix, ptx_val row);
/* Row i of those that a block computes; the first exists, as there are no blocks without rows. */
ptx_val int_row_of_block(ptx_builder *b, const int_matrix *matrix, ptx_val first, int i);
/* Whether rows are aligned to so many bytes, and their length is a multiple of it (predicate); the same of both matrices. */
ptx_val int_is_aligned(ptx_builder *b, const int_matrix *matrix, unsigned bytes);
ptx_val int_are_aligned(ptx_builder *b, const int_matrix *x, const int_matrix *w, unsigned bytes);
/* 16 bytes of any row, starting at byte `at` (u32, a multiple of 16) of the row at `address`; bytes past the pitch are 0. */
void int_load(ptx_builder *b, const int_matrix *matrix, ptx_val address, ptx_val at, ptx_val words[4]);
/* 16 bytes that are entirely within a row of any alignment, into variables. */
void int_load_chunk(ptx_builder *b, const int_matrix *matrix, ptx_val from, const ptx_val words[4]);
/* Spreads nibbles to bytes that are 16 times as large: the even nibbles and the odd ones. */
void int_spread(ptx_builder *b, ptx_val word, ptx_val *even, ptx_val *odd);
/* Rows of nibbles are padded to whole words, and the padding may hold anything. Loops add its products, too, so that they need no mask;
 * then, if there is padding (predicate), these are subtracted: the products (s32) of the padding of a row of x and one of w. */
ptx_val int_has_padding(ptx_builder *b, ptx_val k);
ptx_val int_padding_products(ptx_builder *b, ptx_val k, ptx_val x_row, ptx_val w_row);
/* The word as the type that its codes have for dp4a. */
ptx_val int_typed(ptx_builder *b, qdnnDataType_t type, ptx_val word);

/* ---- results.c: what is done with a sum ---- */

/* The rows of y that a block computes, from `rows` (at least one of which exists) on along the grid's y; with experts, those of a tile. Blocks
 * without rows exit here. */
row_tile int_rows_of_block(ptx_builder *b, const kernel_spec *spec, const gemm_args *args, unsigned rows);
/* The address of the row of x that belongs to row i of them, which is replaced by one that exists. */
ptx_val int_x_row(ptx_builder *b, const kernel_spec *spec, const int_matrix *x, const row_tile *rows, int i);
/* The weights of the block's expert. */
int_matrix int_weights_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args,
                             const row_tile *rows);
/* An output (u64) of the weights among those of all experts, and how many there are for each. */
ptx_val int_output_of_stack(ptx_builder *b, const gemm_args *args, const row_tile *rows, ptx_val output);

typedef struct int_results {
    const kernel_spec *spec;
    const gemm_args *args;
    epilogue epilogue;
    ptx_val x_zero, w_zero, y_zero; /* s32, if there are any */
    ptx_val k_zeros;                /* s32: K * x_zero * w_zero */
    row_tile rows;                  /* with experts: the tile of the block */
} int_results;

/* The numbers that belong to a column of y. */
typedef struct int_column {
    ptx_val n;          /* u64 */
    ptx_val bias;       /* s32 */
    ptx_val multiplier; /* f32 */
    ptx_val scale[2];   /* f32: of the column; of a gated pair, those of both */
} int_column;

/* The parameters of an integer product. */
gemm_args int_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
int_results int_results_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args);
/* The same for a product that may have experts. */
int_results int_results_of_rows(ptx_builder *b, const kernel_spec *spec, const gemm_args *args,
                                const row_tile *rows);
/* The column must exist. */
int_column int_column_begin(ptx_builder *b, const int_results *r, ptx_val n);
/* Subtracts the zero points, given the sum of x * w and the sums of x and of w (s32; empty if not needed). */
ptx_val int_without_zeros(ptx_builder *b, const int_results *r, ptx_val sum, ptx_val x_sum, ptx_val w_sum);
/* Completes and stores y[m, n] (m is u64), from an s32 sum or, for w4a8, from the f32 sum of its groups; from two of a gated pair. */
void int_store(ptx_builder *b, const int_results *r, const int_column *column, ptx_val m,
               const ptx_val *sums);

/* The same for results that are sums or codes, at a given place of y (u64, in elements). */
void int_store_at(ptx_builder *b, const int_results *r, const int_column *column, ptx_val at, ptx_val sum);

/* ---- The kernels ---- */

/* Adds the products of so many words of nibbles (at most four) to a sum, given x and the halves of w from int_spread. */
void int_add_nibbles(ptx_builder *b, ptx_val sum, int words, const ptx_val x[4], const ptx_val even[4],
                     const ptx_val odd[4]);

enum { INT_LINES_BLOCK = 128, INT_TILE_BLOCK = 128, INT_WINDOW_BLOCK = 256 };
_Static_assert((int)INT_LINES_BLOCK == (int)INT_TILE_BLOCK, "int_geometry serves both");

/* ---- lines.c: a warp computes the sums of a column of w with a few rows of x ---- */

enum { INT_LINES_MAX = 4 };
typedef struct int_lines {
    const kernel_spec *spec;
    gemm_args args;
    int_matrix x, w;
    int rows;
    row_tile of_y;                                             /* the rows of y that the block computes */
    ptx_val first_row, column;                                 /* u64 */
    ptx_val sums[INT_LINES_MAX], x_sums[INT_LINES_MAX], w_sum; /* variables: of the thread */
} int_lines;

/* Adds all products of a row of w with the rows of x, each lane some of them. */
void int_lines_add(ptx_builder *b, const int_lines *l, ptx_val w_row, const ptx_val *x_rows);
/* The sum of all lanes, in each of them. */
ptx_val int_lines_join(ptx_builder *b, ptx_val sum);

unsigned int_lines_columns(const kernel_spec *spec); /* per thread block */
void emit_int_lines(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_groups(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_tile(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_window(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_dot(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_top(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_top_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_transpose(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* Whether weights have scales in groups: 8-bit x with 4-bit weights. */
bool int_is_grouped(const kernel_spec *spec);
/* The number of k in a strip of such groups. */
uint32_t int_strip(const kernel_spec *spec);
/* Whether tiles on tensor cores can be used; groups of some sizes do not fit them. */
bool int_fits_tiles(const kernel_spec *spec);

/* ---- integer_steps.c: operations ---- */

void fix_int4_dot(kernel_spec *spec);
void fix_int4_dot_scaled(kernel_spec *spec);
void fix_int4_matmul(kernel_spec *spec);
void fix_int8_matmul(kernel_spec *spec);
void fix_w8a8(kernel_spec *spec);
void fix_w4a8(kernel_spec *spec);
void fix_w4a4(kernel_spec *spec);
void fix_conv2d(kernel_spec *spec);
kernel_describes describe_int_dot, describe_int_matmul, describe_int_top, describe_int_top_join,
    describe_int_conv, describe_transpose;
bool int_matmul_is_empty(const kernel_problem *problem);
void int_bound(const kernel_spec *spec, const kernel_problem *problem,
               kernel_operand operands[QDNN_OPERAND_COUNT]);
kernel_geometry int_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_int_matmul(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void int_matmul_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                      kernel_steps *steps);

kernel_geometry int_dot_geometry(const kernel_row *row, const kernel_spec *spec);

void emit_int_conv2d(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_geometry int_conv_geometry(const kernel_row *row, const kernel_spec *spec);
void int_conv_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                    kernel_steps *steps);
bool int_conv_is_empty(const kernel_problem *problem);

void fix_int4_top(kernel_spec *spec);
void fix_top_join(kernel_spec *spec);
kernel_geometry int_top_geometry(const kernel_row *row, const kernel_spec *spec);
kernel_geometry int_top_join_geometry(const kernel_row *row, const kernel_spec *spec);
void int_top_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps);

kernel_geometry transpose_geometry(const kernel_row *row, const kernel_spec *spec);

#endif
