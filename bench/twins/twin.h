/* CUDA C twins of the kernels, compiled by NVRTC where it is found: something to measure against, and to
 * compare with. */
#ifndef QDNN_BENCH_TWIN_H
#define QDNN_BENCH_TWIN_H

#include "driver/cuda/nvrtc.h"
#include "kernels/kernels.h"

/* The text of a kernel's twin and of the header that it includes. */
typedef struct twin {
    char *source, *header;
} twin;

/* Whether the kernel has one. */
bool twin_exists(const kernel_row *row);

/* Reads the twin's files from the source tree. False when the kernel has none. */
bool twin_open(twin *t, const kernel_row *row);
void twin_close(twin *t);

/* The twin's PTX for these settings. Its entry, parameters and launch are those of the kernel itself. */
bool twin_compile(const twin *t, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                  nvrtc_result *result);

/* The same for the plain twin that every dequantize kernel of integers and small floats has, and that of Q4_K's blocks: one element
 * at a time, in any layout. */
bool plain_twin_compile(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        nvrtc_result *result);

#endif
