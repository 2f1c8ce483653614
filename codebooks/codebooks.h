/* The codebooks of the GGUF blocks IQ1, IQ2 and IQ3: data of a file format, without any code, so that host_ref and the
 * kernels can share it.
 *
 * codebooks/NAME.def lists the entries of a codebook in order. An entry has a hexadecimal digit for each of its 8 numbers
 * (iq3_xxs, iq3_s: 4), the first number in the lowest digit; digit d stands for number d of the list below.
 *
 * Source: ggml, the tables iq1s_grid, iq2xxs_grid, iq2xs_grid, iq2s_grid, iq3xxs_grid and iq3s_grid of ggml-common.h, read from
 * the package gguf 0.19 of PyPI (gguf.quants). */
#ifndef QDNN_CODEBOOKS_H
#define QDNN_CODEBOOKS_H

/* clang-format off */
#define CODEBOOK_IQ1_NUMBERS     -1, 0, 1
#define CODEBOOK_IQ2_NUMBERS     8, 25, 43
#define CODEBOOK_IQ3_XXS_NUMBERS 4, 12, 20, 28, 36, 44, 52, 62
#define CODEBOOK_IQ3_S_NUMBERS   1, 3, 5, 7, 9, 11, 13, 15
/* clang-format on */

#endif
