/* A window of x in shared memory: a few rounds of a few rows as f32, in an order that the reader chooses.
 * A warp stages one round at a time, each thread one chunk of it. */
#ifndef QDNN_KERNELS_GEMM_WINDOW_H
#define QDNN_KERNELS_GEMM_WINDOW_H

#include "kernels/gemm/routes.h"
#include "kernels/gemm/weights.h"

typedef struct x_window {
    const kernel_spec *spec;
    const gemm_args *args;
    unsigned rows, rounds; /* rows of x; rounds per window, a power of two */
    unsigned warps;        /* that stage it */
    unsigned round_bytes;
    unsigned
        offsets[CHUNK]; /* bytes from a chunk's place to its elements; four contiguous ones are aligned */
    unsigned flip;      /* an address bit (in bytes) that differs between even and odd elements; or 0 */
    unsigned copies;    /* 1, or 2: each element twice, side by side */
    unsigned shift;     /* elements may be scaled by 2^shift */
    bool whole_chunks;  /* K is a multiple of CHUNK: no chunk is cut */
    bool short_rows;    /* rows often end in the first window: vectors are loaded there, too, if they are aligned */
    ptx_val shared;     /* address: the rounds of the first row, then those of the second ... */
    ptx_val chunk;      /* u64: k, within a round, of the chunk that this thread stages */
    ptx_val slot;       /* u32: its place in the first round */
    ptx_val largest;    /* variable f32: receives the largest |x| of what was scaled; empty: not needed */
} x_window;

/* Stages the window that begins at round `first` (u32), for the rows of a tile; elements that do not exist
 * are 0. To be called by all threads of the block. */
void x_window_stage(ptx_builder *b, const x_window *w, const row_tile *tile, ptx_val first, bool scaled);

#endif
