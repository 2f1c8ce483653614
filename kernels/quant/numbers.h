/* Stores the scales and zeros that a block computes for consecutive groups: one lane of each team has those
 * of its group; they go through shared memory, so that neighbouring threads store adjacent numbers. */
#ifndef QDNN_KERNELS_NUMBERS_H
#define QDNN_KERNELS_NUMBERS_H

#include "kernels/formats/format.h"
#include "kernels/quant/ranges.h"

typedef struct numbers {
    const coding *coding;
    unsigned lanes;        /* threads per team */
    ptx_val scales, zeros; /* shared memory; empty if a block has one group, or a group has one thread */
} numbers;

/* For a block of RANGE_BLOCK threads. */
numbers numbers_begin(ptx_builder *b, const coding *c, unsigned lanes);

/* Stores the numbers of the block's groups. The first group has the number block_first (u64); those at or
 * beyond `groups` (u64) are left out. All threads take part. */
void numbers_store(ptx_builder *b, const numbers *s, const sidecars *to, const group_made *made,
                   ptx_val block_first, ptx_val groups);

#endif
