/* Stretches of rows of weights in shared memory, for rows that begin anywhere: the threads of a team copy those of their outputs by
 * aligned vectors, and then pick what they need. Teams are neighbours in a warp, and no warp waits for another one. */
#ifndef QDNN_KERNELS_GEMM_STRETCHES_H
#define QDNN_KERNELS_GEMM_STRETCHES_H

#include "kernels/emit.h"

enum { STRETCH_OUTPUTS_MAX = 4, SECTOR_BYTES = 32 };

typedef struct stretches {
    unsigned outputs, team; /* outputs of a team; its threads */
    unsigned vectors;       /* of 16 bytes, that a stretch has */
    unsigned align; /* a stretch begins at a multiple of it, before its weights: LOAD_BYTES or SECTOR_BYTES */
    bool swaps_nibbles;                /* those of each byte change places on the way */
    ptx_val thread;                    /* u32: number in the team */
    ptx_val first, end;                /* u64: of all weights; nothing outside of them is read */
    ptx_val from[STRETCH_OUTPUTS_MAX]; /* u64: the thread's first vector of the row's first stretch */
    ptx_val to[STRETCH_OUTPUTS_MAX];   /* u32: where it goes in shared memory */
} stretches;

/* The row that begins at `address` (u64), whose stretches go to `shared` (u32); how many bytes (u32) of a stretch precede its weights. */
ptx_val stretches_begin(ptx_builder *b, stretches *s, unsigned output, ptx_val address, ptx_val shared);
/* The stretch of all rows that is `before` (u64) bytes behind the first, a multiple of align, once the warp is done with the last
 * one. `needed` (u32): how many bytes of it; what follows them counts as 0. Empty: all. */
void stretches_copy(ptx_builder *b, const stretches *s, ptx_val before, ptx_val needed);

#endif
