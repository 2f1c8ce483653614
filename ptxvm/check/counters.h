/* The totals of a launch, shared by counters.c and counters_print.c. */
#ifndef PTXVM_CHECK_COUNTERS_H
#define PTXVM_CHECK_COUNTERS_H

#include "ptxvm/exec.h"

#define CHECK_MMA_NAMES 64

typedef struct check_sums {
    ptxvm_counters counters;
    ptxvm_mma_count mma[CHECK_MMA_NAMES];
    ptxvm_counts *lines;
    ptxvm_source_count *sources;
    const vm_kernel *kernel; /* valid as long as its module */
    struct vm_pool *pool;
} check_sums;

#endif
