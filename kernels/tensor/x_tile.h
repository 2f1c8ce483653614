/* Tiles of x on their way to shared memory: copied ahead of their use by cp.async, or (sm_75, FP8 that
 * becomes f16) by way of registers. */
#ifndef QDNN_KERNELS_TENSOR_X_TILE_H
#define QDNN_KERNELS_TENSOR_X_TILE_H

#include "kernels/tensor/tile.h"

enum { X_PIECES_MAX = 4 };

typedef struct x_tile {
    unsigned pieces;                /* per thread */
    ptx_val active;                 /* predicate, where there are fewer pieces than threads */
    ptx_val from[X_PIECES_MAX];     /* variables: addresses of the next tile's pieces */
    ptx_val to[X_PIECES_MAX];       /* u32: the pieces' places within a tile */
    ptx_val k;                      /* variable: k of the next tile's first piece */
    ptx_val of_part;                /* variable: k of the next tile in a part, where there are several */
    ptx_val stage;                  /* variable: offset in bytes of the tile that arrives next */
    ptx_val words[X_PIECES_MAX][4]; /* variables, where tiles pass through registers */
} x_tile;

/* Whether x can be loaded by pieces, and'ed with `all`. */
ptx_val x_tile_aligned(ptx_builder *b, const tile *t, ptx_val all);

/* Starts loading the first tiles. */
x_tile x_tile_begin(ptx_builder *b, const tile *t);
/* Waits for the next tile; after a barrier it is at the returned address. */
ptx_val x_tile_arrive(ptx_builder *b, const tile *t, x_tile *x);
/* After that barrier: starts loading one more. */
void x_tile_next(ptx_builder *b, const tile *t, x_tile *x);
/* After the last tile: waits for copies that are still in flight. */
void x_tile_end(ptx_builder *b, const tile *t);

/* Loads a tile at once into the first stage, for any alignment. */
void x_tile_slowly(ptx_builder *b, const tile *t, ptx_val k0);

#endif
