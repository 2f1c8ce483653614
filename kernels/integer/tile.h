/* What a tile of a product is made of; tile.c has the product of bytes and of nibbles, tile_groups.c that of bytes with
 * nibbles in groups. */
#ifndef QDNN_KERNELS_INTEGER_TILE_H
#define QDNN_KERNELS_INTEGER_TILE_H

#include "kernels/integer/fill.h"

enum {
    TILE_M_MAX = 4, /* blocks of 16 rows of a warp */
    TILE_N_MAX = 8, /* blocks of 8 columns of a warp */
    TILE_STEP = 32, /* bytes of k of one mma */
    TILE_STEPS = FILL_ROW / TILE_STEP
};

typedef struct tile {
    const kernel_spec *spec;
    gemm_args args;
    fill fill;
    unsigned side, m_blocks, n_blocks, stages;
    ptx_val shared;       /* u32 */
    ptx_val columns;      /* u64: of the group of a convolution, or all */
    ptx_val first_output; /* u64: of that group */
    ptx_val x_at[TILE_STEPS],
        w_at[TILE_STEPS]; /* u32: where the thread's rows for ldmatrix lie in the first stage */
    ptx_val sums[TILE_M_MAX][TILE_N_MAX][4];           /* s32 variables */
    ptx_val x_sums[TILE_M_MAX][2], w_sums[TILE_N_MAX]; /* s32 variables, where zero points need them */
    /* Of groups: */
    ptx_val parts[TILE_M_MAX][TILE_N_MAX][4],
        totals[TILE_M_MAX][TILE_N_MAX][4]; /* f32 variables: of a strip, of all */
    ptx_val none[4];                       /* s32: 0 */
    ptx_val group, group_count;            /* u32: a variable; how many */
    ptx_val k_left;                        /* u32 variable: k until the strip ends */
    ptx_val scales[TILE_N_MAX][2];         /* u64: the first scale of each of the thread's columns */
} tile;

bool tile_has_async(const ptx_builder *b);
/* sums = x * w + before, of 16 x 8 outputs, by the instruction of the SM: `quarter` is that of sm_75. */
void tile_multiply(ptx_builder *b, ptx_mma_id whole, ptx_mma_id quarter, const ptx_val sums[4],
                   const ptx_val x[4], const ptx_val w[2], const ptx_val before[4]);

/* tile_groups.c */
void tile_groups_begin(ptx_builder *b, tile *t, ptx_val warp_row, ptx_val warp_column);
/* Half of a stage: 64 k. */
void tile_groups_compute(ptx_builder *b, const tile *t, unsigned stage, int half);
void tile_groups_end(ptx_builder *b, const tile *t);

#endif
