/* Tiles of x on their way to shared memory: ahead of their use by cp.async, or (sm_75, FP8 that becomes f16) by way of
 * registers. */
#ifndef QDNN_KERNELS_TENSOR_X_TILE_H
#define QDNN_KERNELS_TENSOR_X_TILE_H

#include "kernels/tensor/tile.h"

enum { X_PIECES_MAX = 4 };

typedef struct x_tile {
    unsigned pieces;                /* of a thread */
    ptx_val active;                 /* predicate, where there are fewer pieces than threads */
    ptx_val from[X_PIECES_MAX];     /* variables: addresses of the next tile's pieces */
    ptx_val to;                     /* u32: the first piece's place within a tile */
    ptx_val k;                      /* variable: k of the next tile's pieces */
    ptx_val stage;                  /* variable: of the tile that arrives next, in bytes */
    ptx_val words[X_PIECES_MAX][4]; /* variables, where tiles pass through registers */
} x_tile;

/* And'ed with `all`: whether x can be loaded by pieces. */
ptx_val x_tile_aligned(ptx_builder *b, const tile *t, ptx_val all);

/* Starts loading the first tiles. */
x_tile x_tile_begin(ptx_builder *b, const tile *t);
/* Waits for the next tile; after a barrier it is at the address that is returned. */
ptx_val x_tile_arrive(ptx_builder *b, const tile *t, x_tile *x);
/* After that barrier: starts loading one more. */
void x_tile_next(ptx_builder *b, const tile *t, x_tile *x);
/* After the last one: what was started ahead of it has come to its end. */
void x_tile_end(ptx_builder *b, const tile *t);

/* A tile at once, whatever the alignment, into the first stage. */
void x_tile_slowly(ptx_builder *b, const tile *t, ptx_val k0);

#endif
