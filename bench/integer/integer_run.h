/* One launch of an integer product on ptxvm, for its counters: what a kernel costs in instructions, sectors and bank
 * conflicts. */
#ifndef QDNN_BENCH_INTEGER_RUN_H
#define QDNN_BENCH_INTEGER_RUN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct integer_run {
    const char *kernel;      /* "int8_qmatmul" */
    const char *settings[6]; /* "tile=128", "output=f16"; null ends the list */
    const char *sm;
    uint64_t m, n, k;
    uint64_t
        window; /* of a convolution: its side, an image of 16 x 16 positions for every 256 of m; k are its channels */
    int shift; /* bytes that x and w lie behind aligned addresses */
    bool sass; /* the instructions of the SM are counted too (clock/sass/sass.h), where that is possible */
} integer_run;

typedef struct integer_cost {
    uint64_t instructions, mma; /* warp instructions */
    uint64_t bank_conflicts;
    uint64_t load_sectors, store_sectors; /* asked for */
    double sass;                          /* warp instructions of the SM; 0: not counted */
} integer_cost;

/* False, with the reason on stderr, where it does not run. */
bool integer_measure(const integer_run *run, integer_cost *cost);

#endif
