/* The parts of a product's tile; tile.c has products of bytes and of nibbles, tile_groups.c products of bytes
 * with nibbles in groups. */
#ifndef QDNN_KERNELS_INTEGER_TILE_H
#define QDNN_KERNELS_INTEGER_TILE_H

#include "kernels/integer/fill.h"

enum {
    TILE_M_MAX = 4, /* blocks of 16 rows per warp */
    TILE_N_MAX = 8, /* blocks of 8 columns per warp */
    TILE_STEP = 32, /* bytes of k per mma */
    TILE_STEPS = FILL_ROW / TILE_STEP
};

typedef struct tile {
    const kernel_spec *spec;
    gemm_args args;
    fill fill;
    unsigned side, m_blocks, n_blocks, stages;
    ptx_val shared;       /* u32 */
    ptx_val columns;      /* u64: those of a convolution's group, or all */
    ptx_val first_output; /* u64: the first output of that group */
    /* u32: the addresses of the thread's rows for ldmatrix in the first stage */
    ptx_val x_at[TILE_STEPS], w_at[TILE_STEPS];
    ptx_val sums[TILE_M_MAX][TILE_N_MAX][4]; /* s32 variables */
    /* s32 variables, if zero points need them */
    ptx_val x_sums[TILE_M_MAX][2], w_sums[TILE_N_MAX];
    /* For groups: */
    /* f32 variables: for a strip, and for all strips */
    ptx_val parts[TILE_M_MAX][TILE_N_MAX][4], totals[TILE_M_MAX][TILE_N_MAX][4];
    ptx_val none[4];               /* s32 zeros */
    ptx_val group, group_count;    /* u32: the current group (a variable), and the number of groups */
    ptx_val k_left;                /* u32 variable: k left in the strip */
    ptx_val scales[TILE_N_MAX][2]; /* u64: address of the first scale of each column of the thread */
} tile;

bool tile_has_async(const ptx_builder *b);
/* sums = x * w + before for 16 x 8 outputs: one `whole` instruction or, on sm_75, four `quarter`
 * instructions. */
void tile_multiply(ptx_builder *b, ptx_mma_id whole, ptx_mma_id quarter, const ptx_val sums[4],
                   const ptx_val x[4], const ptx_val w[2], const ptx_val before[4]);

/* tile_groups.c */
void tile_groups_begin(ptx_builder *b, tile *t, ptx_val warp_row, ptx_val warp_column);
/* Computes half of a stage: 64 k. */
void tile_groups_compute(ptx_builder *b, const tile *t, unsigned stage, int half);
void tile_groups_end(ptx_builder *b, const tile *t);

#endif
