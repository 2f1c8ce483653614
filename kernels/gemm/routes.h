/* Grouped products: which rows of x go to which expert. A small kernel sorts the rows by expert and cuts those of each
 * expert into tiles; the product then takes a tile at a time, so that an expert's weights are decoded once for several
 * rows. Rows without an expert are tiles of their own: their results are NaN.
 *
 * A product without experts goes through the same functions: its tiles are neighbouring rows. */
#ifndef QDNN_KERNELS_GEMM_ROUTES_H
#define QDNN_KERNELS_GEMM_ROUTES_H

#include "kernels/gemm/gemm.h"

/* ---- The kernel that sorts ---- */

bool routes_takes(const kernel_spec *spec, int operand);
kernel_geometry routes_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_routes(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void routes_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);

/* How many tiles there are at most, and how many bytes the sorted rows take. */
uint64_t routes_tiles(const kernel_problem *problem, uint64_t tile_rows);
uint64_t routes_bytes(const kernel_problem *problem, uint64_t tile_rows);

/* ---- Tiles of rows in a product ---- */

typedef struct row_tile {
    ptx_val first;  /* u64: the first row; of sorted rows, its place among them */
    ptx_val count;  /* u64: rows from there on, of which the tile has tile_rows at most */
    ptx_val order;  /* pointer to the sorted rows; empty: rows are neighbours */
    ptx_val expert; /* u64, one that exists; empty where there are none */
    ptx_val known;  /* predicate: it is the one that the rows name; else they name none */
} row_tile;

/* A loop over the tiles of the block, in steps of the grid's y. */
row_tile row_tiles_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args);
void row_tiles_end(ptx_builder *b);
/* The one tile of the block, where the grid has all tiles of sorted rows; a block without one ends here. */
row_tile row_tile_of_block(ptx_builder *b, const gemm_args *args);

/* Whether the tile has a row i (u64), and the row's number (u64), which is 0 where sorted rows do not have it. */
ptx_val row_tile_has(ptx_builder *b, const row_tile *t, ptx_val i);
ptx_val row_tile_row(ptx_builder *b, const row_tile *t, ptx_val i, ptx_val has);

/* A size that sums run over (K, or its rounds), which is 0 for rows without an expert: they have no weights. */
ptx_val row_tile_size(ptx_builder *b, const row_tile *t, ptx_val size);
/* A sum of the tile; of rows without an expert a NaN, which stays one through all that follows. */
ptx_val row_tile_sum(ptx_builder *b, const row_tile *t, ptx_val sum);

/* The parameters of a product with the weights of the tile's expert. */
gemm_args row_tile_args(ptx_builder *b, const row_tile *t, const gemm_args *args);

#endif
