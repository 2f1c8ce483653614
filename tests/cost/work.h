/* The work and the memory of a call, counted without a clock.
 *
 * The sources of the readers are compiled once more for this program with -fsanitize-coverage=trace-pc, so that each basic
 * block calls a function that counts it; the linker's --wrap sends string functions and allocations here, where the bytes
 * that they touch and hold are counted. The counts do not depend on the
 * machine or what else it does; only the random key of ptxvm's hashes moves them a little. */
#ifndef QDNN_TEST_COST_WORK_H
#define QDNN_TEST_COST_WORK_H

#include <stdint.h>

typedef struct work_counts {
    uint64_t steps; /* basic blocks, and units of 16 bytes in string functions */
    uint64_t bytes; /* the most that were allocated at a time, beyond what there was at the start */
} work_counts;

/* Of this thread, from work_begin to work_end. */
void work_begin(void);
work_counts work_end(void);

#endif
