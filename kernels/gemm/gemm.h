/* Products with quantized weights, y = out(act(alpha (x W) + bias) + residual), following the exact
 * contract of docs/numerics.md: every sum is kept in 32 partial sums ("lanes"), which take chunks of 8
 * neighbouring k in turn and are joined by a fixed tree. Several kernels compute products, and all give
 * the same bits:
 *
 *   choice.c     chooses the kernel for a product
 *   staged.c     any format, any shape: a tile of weights is decoded into shared memory as f32, once for all rows
 *   gemv.c       few rows, codes along K: weights are decoded in registers (gemv_ragged.c: rows that begin anywhere)
 *   blocks.c     few rows, GGUF blocks: decoded in registers, rows of any length, too
 *   ternary.c    few rows, TQ1_0 blocks: decoded in registers
 *   columns.c    few rows, weights [K, N]: decoded in registers (columns_words.c, columns_codes.c, columns_decode.c)
 *   lanewise.c   many rows, any format: a thread block computes a tile of outputs, one lane after another
 *   join.c       adds up the partial sums where lanewise.c splits the lanes among several thread blocks
 *
 * They share the weights (weights.h, runs.h), the tree (lanes.h) and everything after the sum
 * (epilogue.h). Grouped products first sort their rows by expert (routes.h).
 *
 * Words used throughout: "x" is the activations; an "output" is one row of the weights (of weights [K, N],
 * one column), hence a column of y or one half of a gated pair; a "round" is 256 neighbouring k, one chunk
 * for each of the 32 lanes; a "team" is the group of neighbouring threads that share an output. */
#ifndef QDNN_KERNELS_GEMM_H
#define QDNN_KERNELS_GEMM_H

#include "kernels/operations.h"

/* Whether rows of weights may begin anywhere. */
bool gemm_is_ragged(const kernel_spec *spec);
/* Warps of all its thread blocks. */
uint64_t gemm_warps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem);

/* Normalises the specification: grouped products do not split their lanes among thread blocks, and x in
 * FP8 counts as f16. */
void gemm_fix(kernel_spec *spec);
kernel_describes describe_matmul;
bool gemm_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
bool gemm_is_empty(const kernel_problem *problem);
kernel_geometry gemm_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_gemm(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* Describes the operands that no kernel takes under these names: those of LoRA, and x that is quantized
 * first. */
void gemm_bound(const kernel_spec *spec, const kernel_problem *problem,
                kernel_operand operands[QDNN_OPERAND_COUNT]);
void gemm_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps);

/* block_transpose.c: weights in blocks, dequantized to the transposed matrix. */
kernel_geometry block_transpose_geometry(const kernel_row *row, const kernel_spec *spec);
kernel_describes describe_block_transpose;
void block_transpose_complete(const kernel_spec *spec, kernel_problem *problem);
bool block_transpose_is_empty(const kernel_problem *problem);
void emit_block_transpose(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* One way to compute a product. */
typedef struct gemm_kernel {
    unsigned block; /* threads; 0: ask block_of */
    unsigned (*block_of)(const kernel_row *row, const kernel_spec *spec);
    /* Columns of y that a thread block computes for each of its rows. */
    unsigned (*outputs)(const kernel_row *row, const kernel_spec *spec);
    /* Rows of x that it takes at a time: `rows` to `rows_most`, and only powers of two unless `any_rows`. 0: not limited. */
    unsigned rows, rows_most;
    bool any_rows;
    /* Bytes of dynamic shared memory to request at launch; null: none. */
    unsigned (*shared)(const kernel_row *row, const kernel_spec *spec);
    void (*emit)(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
    /* Whether the kernel supports the specification; if not, why. Null: always. */
    bool (*serves)(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
    bool takes_experts; /* supports grouped products, too */
    /* Whether it can run this problem, given a supported specification. Null: always. */
    bool (*fits)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem);
    /* Its launches; null: a single one. */
    void (*steps)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);
} gemm_kernel;
extern const gemm_kernel gemm_staged, gemm_gemv, gemm_ragged, gemm_blocks, gemm_ragged_blocks, gemm_ternary,
    gemm_columns, gemm_lanewise, gemm_join;
extern const gemm_kernel gemm_tile, gemm_stream, gemm_stored; /* mode tensor: kernels/tensor/ */

enum { JOIN_ROWS = 4 }; /* rows of y per thread block of join.c */

/* The parameters of a product in its kernel. */
typedef struct gemm_args {
    kernel_args all;
    ptx_val m, n, k;            /* u64: n is that of y */
    ptx_val outputs;            /* u64: of the weights */
    ptx_val x_stride, y_stride; /* u64: elements */
} gemm_args;
gemm_args gemm_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

#endif
