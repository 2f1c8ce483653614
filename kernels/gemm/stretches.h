/* Rows of weights that begin anywhere. A "stretch" is a part of a row in shared memory: the threads of a
 * team copy the stretches of their outputs by aligned vectors, and then pick the words they need. Teams
 * are neighbours in a warp, and no warp waits for another. */
#ifndef QDNN_KERNELS_GEMM_STRETCHES_H
#define QDNN_KERNELS_GEMM_STRETCHES_H

#include "kernels/emit.h"

enum { STRETCH_OUTPUTS_MAX = 4, SECTOR_BYTES = 32 };

typedef struct stretches {
    unsigned outputs, team; /* outputs of a team; its threads */
    unsigned vectors;       /* 16-byte vectors per stretch */
    /* A stretch begins at a multiple of this, at or before its weights: LOAD_BYTES or SECTOR_BYTES. */
    unsigned align;
    bool swaps_nibbles;                /* the nibbles of each byte are exchanged while copying */
    ptx_val thread;                    /* u32: number in the team */
    ptx_val first, end;                /* u64: range of all weights; nothing outside is read */
    ptx_val from[STRETCH_OUTPUTS_MAX]; /* u64: the thread's first vector in the row's first stretch */
    ptx_val to[STRETCH_OUTPUTS_MAX];   /* u32: where it goes in shared memory */
} stretches;

/* Sets up the row that begins at `address` (u64), not before that of the previous output; its stretches go to
 * `shared` (u32). Returns how many bytes (u32) of a stretch precede its weights. */
ptx_val stretches_begin(ptx_builder *b, stretches *s, unsigned output, ptx_val address, ptx_val shared);
/* Copies the stretch at offset `before` (u64, a multiple of align) of all rows, once the warp is done with
 * the previous one. `needed` (u32): how many of its bytes are needed; those after them count as 0. Empty:
 * all. */
void stretches_copy(ptx_builder *b, const stretches *s, ptx_val before, ptx_val needed);

#endif
