/* Shared by the files of prepacking: docs/formats.md, "Prepacked". */
#ifndef QDNN_HOST_REF_PREPACK_H
#define QDNN_HOST_REF_PREPACK_H

#include "host_ref/internal.h"

/* Units along k: each has so many codes of a column, of so many bits; byte_pairs: two neighbours along k share a byte. */
enum { HR_UNIT_K = 64 };
typedef struct {
    int bits, unit_k;
    bool byte_pairs;
} hr_units;

/* The bytes of the units of n columns with k codes each; and the place of code k of column n. */
int64_t hr_prepacked_code_bytes(hr_units units, int64_t n, int64_t k);
code_place hr_packed_place(hr_units units, int64_t k_count, int64_t n, int64_t k);

/* prepack_blocks.c: converts all blocks of [n, k], or back. */
int64_t hr_prepacked_block_bytes(qdnnBlockFormat_t format, int64_t n, int64_t k);
void hr_prepack_blocks(qdnnBlockFormat_t format, int64_t n_count, int64_t k_count, uint8_t *blocks,
                       uint8_t *packed, bool back);

#endif
