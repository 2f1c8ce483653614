/* The memory traffic of an operation by ptxvm's counters, as sm_90, compared with the minimum: the sectors that its operands occupy. */
#ifndef QDNN_BENCH_COUNTED_H
#define QDNN_BENCH_COUNTED_H

#include "kernels/kernels.h"

typedef struct counted {
    const kernel_row *row;
    uint64_t least, unique, requested; /* sectors */
    uint64_t instructions;             /* of warps */
    uint64_t blocks, warps;
    int kernels;
} counted;

/* Runs the operation on numbers between 1/2 and 1; `spec` is normal. False: it launches nothing, or failed, which is reported. */
bool counted_run(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem, counted *c);

#endif
