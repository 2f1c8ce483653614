/* A window of x in shared memory: a few rounds of a few rows as f32, in an order that the reader chooses. A warp stages a
 * round at a time, a thread one chunk of it. */
#ifndef QDNN_KERNELS_GEMM_WINDOW_H
#define QDNN_KERNELS_GEMM_WINDOW_H

#include "kernels/gemm/routes.h"
#include "kernels/gemm/weights.h"

typedef struct x_window {
    const kernel_spec *spec;
    const gemm_args *args;
    unsigned rows, rounds; /* of x; of the window, a power of two */
    unsigned warps;        /* that stage it */
    unsigned round_bytes;
    unsigned offsets
        [CHUNK]; /* bytes from a chunk's place to its elements; fours that lie side by side are aligned */
    unsigned
        flip; /* bytes, as a bit of addresses that differs between elements with even and with odd numbers; or 0 */
    unsigned copies; /* 1, or 2: each element twice, side by side */
    unsigned shift;  /* elements may be scaled by 2^shift */
    ptx_val shared;  /* address: the rounds of the first row, then those of the second ... */
    ptx_val chunk;   /* u64: k, within a round, of the chunk that this thread stages */
    ptx_val slot;    /* u32: its place in the first round */
    ptx_val
        largest; /* variable f32: becomes the largest |x| of what was scaled; empty: it is not asked for */
} x_window;

/* The window that begins at round `first` (u32), of the rows of a tile; what does not exist is 0. By all threads of the
 * block. */
void x_window_stage(ptx_builder *b, const x_window *w, const row_tile *tile, ptx_val first, bool scaled);

#endif
