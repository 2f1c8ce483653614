/* Shared by the files of prepacking: docs/formats.md, "Prepacked". */
#ifndef QDNN_HOST_REF_PREPACK_H
#define QDNN_HOST_REF_PREPACK_H

#include "host_ref/internal.h"

/* The size of codes of so many bits; and the place of the code of column n and row k of the product. */
int64_t hr_prepacked_code_bytes(int bits, int64_t n, int64_t k);
code_place hr_packed_place(int bits, int64_t k_count, int64_t n, int64_t k);

/* prepack_blocks.c: converts all blocks of [n, k], or back. */
int64_t hr_prepacked_block_bytes(qdnnBlockFormat_t format, int64_t n, int64_t k);
void hr_prepack_blocks(qdnnBlockFormat_t format, int64_t n_count, int64_t k_count, uint8_t *blocks,
                       uint8_t *packed, bool back);

#endif
