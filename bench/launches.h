/* The modelled time of an operation of one or several launches: a small problem of the same kernels runs on ptxvm, and its blocks stand for
 * those of the large one. */
#ifndef BENCH_LAUNCHES_H
#define BENCH_LAUNCHES_H

#include "clock/model/model.h"
#include "kernels/kernels.h"

/* Gives an operand its contents. */
typedef void launches_fill(const void *user, qdnnOperand_t operand, uint8_t *bytes, uint64_t size);

typedef struct launches_case {
    const kernel_row *row;
    kernel_spec spec; /* in normal form */
    kernel_problem whole, small;
    unsigned heads,
        rows; /* of the blocks along y, one of `heads` is run; in a second launch `rows` of them; 0: all */
    double bytes; /* that the first launch reads from DRAM; 0: as counted */
    bool warm;    /* L2 has what it reads */
    launches_fill *fill;
    const void *user;
} launches_case;

typedef struct launches_time {
    double us[CLOCK_CORNERS], issue_us, misfit;
    int launches, registers, spill_bytes; /* registers and spills: of the first launch */
    uint64_t parts;                       /* blocks along z */
    const char *reason;                   /* why its warps wait */
} launches_time;

/* False with a reason. */
bool launches_time_of(const launches_case *c, const board *on, launches_time *out, char *why, size_t size);

#endif
