/* What the files of prepacking share: docs/formats.md, "Prepacked". */
#ifndef QDNN_HOST_REF_PREPACK_H
#define QDNN_HOST_REF_PREPACK_H

#include "host_ref/internal.h"

/* The bytes of codes of so many bits; and the place of the code of column n and row k of the product; `byte_pairs`: a byte has two
 * neighbours along k. */
int64_t hr_prepacked_code_bytes(int bits, int64_t n, int64_t k);
code_place hr_packed_place(int bits, bool byte_pairs, int64_t k_count, int64_t n, int64_t k);

/* prepack_blocks.c: all blocks of [n, k], or back. */
int64_t hr_prepacked_block_bytes(qdnnBlockFormat_t format, int64_t n, int64_t k);
void hr_prepack_blocks(qdnnBlockFormat_t format, int64_t n_count, int64_t k_count, uint8_t *blocks,
                       uint8_t *packed, bool back);

#endif
