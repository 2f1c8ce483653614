/* Integer products: codes times codes with int32 sums that wrap, so that every instruction gives the same bits.
 *
 *   lines.c     dp4a: a warp for each column of a few rows; any shape
 *   groups.c    dp4a with a scale for each group of weights (w4a8); any shape
 *   tile.c      tensor cores: tiles of 64 x 64 and 128 x 128, the codes staged through shared memory
 *   fill.c      how codes come into shared memory: rows of a matrix, or windows of an image
 *   window.c    convolutions of any shape, an output for each thread
 *   top.c       the largest of each row
 *   transpose.c matrices of bytes the other way round
 *
 * They share how codes are read (codes.c) and what becomes of a sum (results.c). */
#ifndef QDNN_KERNELS_INTEGER_H
#define QDNN_KERNELS_INTEGER_H

#include "kernels/gemm/epilogue.h"

enum { INT_CHUNK = 16 }; /* bytes that are read at a time */

/* ---- codes.c ---- */

/* A matrix of codes, row after row. */
typedef struct int_matrix {
    qdnnDataType_t type; /* I8, U8, I4 */
    ptx_val base;        /* u64 */
    ptx_val rows;        /* u64 */
    ptx_val pitch;       /* u32: bytes of a row, all of them codes */
    ptx_val is_fast;     /* rows begin at multiples of 16 */
    ptx_val is_words;    /* rows begin at multiples of 4 */
} int_matrix;

int_matrix int_matrix_begin(ptx_builder *b, qdnnDataType_t type, ptx_val base, ptx_val rows, ptx_val k);
/* The address of a row (u64); one behind the last counts as the last, so that what is read of it exists. */
ptx_val int_row(ptx_builder *b, const int_matrix *matrix, ptx_val row);
/* 16 bytes of the row at `address`, from byte `at` (u32, a multiple of 16) on; 0 from the pitch on. */
void int_load(ptx_builder *b, const int_matrix *matrix, ptx_val address, ptx_val at, ptx_val words[4]);
/* The same where rows do not begin at multiples of 16. */
void int_load_slowly(ptx_builder *b, const int_matrix *matrix, ptx_val address, ptx_val at, ptx_val words[4]);
/* Nibbles as bytes that are 16 times as large: the even ones, the odd ones. */
void int_spread(ptx_builder *b, ptx_val word, ptx_val *even, ptx_val *odd);
/* The word with the type that its codes have for dp4a. */
ptx_val int_typed(ptx_builder *b, qdnnDataType_t type, ptx_val word);

/* ---- results.c: what becomes of a sum ---- */

typedef struct int_results {
    const kernel_spec *spec;
    const gemm_args *args;
    epilogue epilogue;
    ptx_val x_zero, w_zero, y_zero; /* s32, where there are such */
    ptx_val k_zeros;                /* s32: K * x_zero * w_zero */
} int_results;

/* What belongs to a column of y. */
typedef struct int_column {
    ptx_val n;                 /* u64 */
    ptx_val bias;              /* s32 */
    ptx_val multiplier, scale; /* f32 */
} int_column;

/* The parameters of an integer product. */
gemm_args int_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
int_results int_results_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args);
/* The column must exist. */
int_column int_column_begin(ptx_builder *b, const int_results *r, ptx_val n);
/* From the sum of x * w and the sums of x and of w (s32; empty where the zero points are 0). */
ptx_val int_without_zeros(ptx_builder *b, const int_results *r, ptx_val sum, ptx_val x_sum, ptx_val w_sum);
/* Completes and stores y[m, n] (m is u64): from a sum in s32, or, of w4a8, the f32 sum of its groups. */
void int_store(ptx_builder *b, const int_results *r, const int_column *column, ptx_val m, ptx_val sum);

/* The same for sums and codes, at a place of y (u64: in elements). */
void int_store_at(ptx_builder *b, const int_results *r, const int_column *column, ptx_val at, ptx_val sum);

/* ---- the kernels ---- */

enum { INT_LINES_BLOCK = 128, INT_TILE_BLOCK = 128 };
unsigned int_lines_columns(const kernel_spec *spec); /* of a thread block */
void emit_int_lines(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_groups(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_tile(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_window(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_int_top(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_transpose(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* Whether weights have scales in groups: bytes times nibbles. */
bool int_is_grouped(const kernel_spec *spec);
/* How many k of them make up a strip. */
uint32_t int_strip(const kernel_spec *spec);
/* Whether tiles on tensor cores serve; groups of some sizes do not fit them. */
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
bool int_matmul_is_empty(const kernel_problem *problem);
bool int_takes(const kernel_spec *spec, int operand);
kernel_operand int_size(const kernel_spec *spec, const kernel_problem *problem, int operand);
void int_bound(const kernel_spec *spec, const kernel_problem *problem,
               kernel_operand operands[QDNN_OPERAND_COUNT]);
kernel_geometry int_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_int_matmul(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* The blocks of a product with the specification's tile. */
void int_set_grid(const kernel_spec *spec, const kernel_problem *problem, kernel_step *step);
void int_matmul_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                      kernel_steps *steps);

void emit_int_conv2d(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void int_set_conv_grid(const kernel_spec *spec, const kernel_problem *problem, kernel_step *step);
void int_conv_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                    kernel_steps *steps);
kernel_operand int_conv_size(const kernel_spec *spec, const kernel_problem *problem, int operand);
bool int_conv_is_empty(const kernel_problem *problem);

bool int_top_takes(const kernel_spec *spec, int operand);
void int_top_bound(const kernel_spec *spec, const kernel_problem *problem,
                   kernel_operand operands[QDNN_OPERAND_COUNT]);
kernel_operand int_top_size(const kernel_spec *spec, const kernel_problem *problem, int operand);
void int_top_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps);

kernel_operand transpose_size(const kernel_spec *spec, const kernel_problem *problem, int operand);
void transpose_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps);

#endif
