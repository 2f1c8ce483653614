/* Products with quantized weights, y = out(act(alpha (x W) + bias) + residual), by the exact contract of
 * docs/numerics.md: 32 lanes of chunks of 8, a fixed tree. Several kernels compute them, and all give the same bits:
 *
 *   choice.c     which of them suits a product
 *   staged.c     any format, any shape: a tile of weights is decoded into shared memory as f32, once for all rows
 *   gemv.c       few rows, codes along K: weights are decoded in registers (gemv_ragged.c: rows that begin anywhere)
 *   blocks.c     few rows, GGUF blocks: decoded in registers
 *   ternary.c    few rows, TQ1_0 blocks: decoded in registers
 *   columns.c    few rows, weights [K, N]: decoded in registers (columns_words.c, columns_codes.c, columns_decode.c)
 *   lanewise.c   many rows: any format; a block has a tile of outputs, whose lanes it sums one after another
 *   join.c       where the blocks of lanewise.c have some lanes each: joins their sums
 *
 * They share the weights (weights.h, runs.h), the tree (lanes.h) and what follows the sum (epilogue.h). Of grouped products, rows
 * are sorted by expert before (routes.h). */
#ifndef QDNN_KERNELS_GEMM_H
#define QDNN_KERNELS_GEMM_H

#include "kernels/operations.h"

/* The shape of a product in terms of its weights. */
typedef struct gemm_shape {
    uint64_t k, outputs; /* of the weights */
    uint64_t n;          /* of y: half the outputs where they are gated pairs */
} gemm_shape;
gemm_shape gemm_shape_of(const kernel_spec *spec, const kernel_problem *problem);

/* The lanes of a grouped product are not dealt out among blocks. */
void gemm_fix(kernel_spec *spec);
bool gemm_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
bool gemm_is_empty(const kernel_problem *problem);
kernel_geometry gemm_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_gemm(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
/* The operands of LoRA, which no kernel has under these names. */
void gemm_bound(const kernel_spec *spec, const kernel_problem *problem,
                kernel_operand operands[QDNN_OPERAND_COUNT]);
void gemm_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps);

/* One way to compute a product. */
typedef struct gemm_kernel {
    unsigned block; /* threads; 0: block_of tells */
    unsigned (*block_of)(const kernel_row *row, const kernel_spec *spec);
    /* Columns of y that a thread block computes for each of its rows. */
    unsigned (*outputs)(const kernel_row *row, const kernel_spec *spec);
    /* Bytes of shared memory that the launch gives; null: none. */
    unsigned (*shared)(const kernel_row *row, const kernel_spec *spec);
    void (*emit)(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
    /* Whether it serves; else the reason. Null: always. */
    bool (*serves)(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
    bool takes_experts; /* it serves grouped products, too */
    /* Whether a specification that it serves fits a problem. Null: always. */
    bool (*fits)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem);
    /* Its launches; null: one, a block for every `outputs` columns and tile_rows rows. */
    void (*steps)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);
} gemm_kernel;
extern const gemm_kernel gemm_staged, gemm_gemv, gemm_ragged, gemm_blocks, gemm_ternary, gemm_columns, gemm_lanewise,
    gemm_join;
extern const gemm_kernel gemm_tile, gemm_stream, gemm_strips; /* mode tensor: kernels/tensor/ */

enum { JOIN_ROWS = 4 }; /* rows of y that a block joins */

/* The parameters of a product in its kernel. */
typedef struct gemm_args {
    kernel_args all;
    ptx_val m, n, k;            /* u64: n is that of y */
    ptx_val outputs;            /* u64: of the weights */
    ptx_val x_stride, y_stride; /* u64: elements */
} gemm_args;
gemm_args gemm_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

#endif
