/* The scales and zeros that a block makes for groups in a row: one lane of each team has those of its group; they pass
 * through shared memory, so that neighbouring threads store neighbouring numbers. */
#ifndef QDNN_KERNELS_NUMBERS_H
#define QDNN_KERNELS_NUMBERS_H

#include "kernels/formats/format.h"
#include "kernels/quant/ranges.h"

typedef struct numbers {
    const coding *coding;
    unsigned lanes;        /* threads of a team */
    ptx_val scales, zeros; /* shared memory; empty where a block has one group, or a group has one thread */
} numbers;

/* Of a block of RANGE_BLOCK threads. */
numbers numbers_begin(ptx_builder *b, const coding *c, unsigned lanes);

/* Stores the numbers of the block's groups, of which the first has the number block_first (u64), where that is below `groups` (u64).
 * All threads take part. */
void numbers_store(ptx_builder *b, const numbers *s, const sidecars *to, const group_made *made,
                   ptx_val block_first, ptx_val groups);

#endif
