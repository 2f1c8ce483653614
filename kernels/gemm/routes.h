/* Grouped products: which rows of x go to which expert. A small kernel sorts the rows by expert and cuts
 * those of each expert into tiles; the product then takes one tile at a time, so that an expert's weights
 * are decoded once for several rows. Rows without an expert form tiles of their own: their results are
 * NaN.
 *
 * Products without experts use the same functions: their tiles are neighbouring rows. */
#ifndef QDNN_KERNELS_GEMM_ROUTES_H
#define QDNN_KERNELS_GEMM_ROUTES_H

#include "kernels/gemm/gemm.h"

/* ---- The kernel that sorts ---- */

kernel_describes describe_route_rows;
kernel_geometry routes_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_routes(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void routes_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);

/* The largest possible number of tiles, and how many bytes the sorted rows take. */
kernel_rule routes_tiles_rule(uint64_t tile_rows);
uint64_t routes_bytes(const kernel_problem *problem, uint64_t tile_rows);

/* ---- Tiles of rows in a product ---- */

typedef struct row_tile {
    ptx_val first;  /* u64: the first row; of sorted rows, its place among them */
    ptx_val count;  /* u64: rows from there on; the tile has at most tile_rows of them */
    ptx_val order;  /* pointer to the sorted rows; empty: rows are neighbours */
    ptx_val expert; /* u64, clamped to those that exist; empty for products without experts */
    ptx_val known;  /* predicate: the rows name this expert; otherwise they name none that exists */
} row_tile;

/* Begins a loop over the tiles of the block, in steps of the grid's y. */
row_tile row_tiles_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args);
void row_tiles_end(ptx_builder *b);
/* The block's only tile, where the grid covers all tiles of sorted rows; blocks without a tile exit here. */
row_tile row_tile_of_block(ptx_builder *b, const gemm_args *args);

/* Whether the tile has a row i (u64), and that row's number (u64): 0 where sorted rows do not have it. */
ptx_val row_tile_has(ptx_builder *b, const row_tile *t, ptx_val i);
ptx_val row_tile_row(ptx_builder *b, const row_tile *t, ptx_val i, ptx_val has);

/* The row of x (u64) that belongs to a row of y. */
ptx_val x_row_of(ptx_builder *b, const kernel_spec *spec, ptx_val row);

/* The size that sums run over (K, or its rounds): 0 for rows without an expert, which have no weights. */
ptx_val row_tile_size(ptx_builder *b, const row_tile *t, ptx_val size);
/* A sum of the tile; for rows without an expert, a NaN, which survives everything that follows. */
ptx_val row_tile_sum(ptx_builder *b, const row_tile *t, ptx_val sum);

/* The parameters of a product with the weights of the tile's expert. */
gemm_args row_tile_args(ptx_builder *b, const row_tile *t, const gemm_args *args);

#endif
