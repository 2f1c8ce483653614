/* Facts about a product on a board that need no model of time: launches, workspace, how much of the machine its blocks fill. Registers
 * and the bytes of code need ptxas; everything else follows from the plan and the tables of SMs and boards. */
#ifndef BENCH_FACTS_H
#define BENCH_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/product/code.h"
#include "boards/boards.h"
#include "kernels/kernels.h"

/* ---- How blocks fill a board ---- */

typedef struct facts_launch {
    uint64_t blocks;
    int threads;     /* per block */
    uint32_t shared; /* bytes per block, static and dynamic */
    int registers;   /* per thread; 0: unknown, and then no limit */
} facts_launch;

typedef struct facts_fill {
    int blocks_per_sm;   /* that fit at a time; 0: not even one does */
    double warps_per_sm; /* resident in the first wave, the average over all SMs of the board */
    double waves;        /* blocks / (SMs x blocks per SM): below 1, some places stay empty */
    double last_wave;    /* how full the last wave is, 0 to 1; 1 where there is only a part of one wave */
} facts_fill;

facts_fill facts_fill_of(const board *on, const facts_launch *launch);

/* ---- A product ---- */

typedef enum facts_mode { FACTS_EXACT, FACTS_TENSOR, FACTS_PREPACKED, FACTS_MODES } facts_mode;
const char *facts_mode_name(facts_mode mode);

/* A format as weights [N, K] with x and y in f16 (facts_formats.def). */
typedef struct facts_format {
    const char *name, *kernel, *settings;
} facts_format;
int facts_format_count(void);
const facts_format *facts_format_at(int index);
const facts_format *facts_format_find(const char *name);

/* N, K of the matrices of a model (facts_shapes.def). */
typedef struct facts_shape {
    const char *model;
    uint64_t n, k;
} facts_shape;
int facts_shape_count(void);
const facts_shape *facts_shape_at(int index);

typedef struct facts {
    char product[16];          /* the kernel that multiplies: "gemv", "tile" */
    uint64_t tile_rows, split; /* its shape */
    char kernel[512];          /* its name, with all settings and the SM */
    int launches;
    uint64_t workspace, bytes; /* bytes: of all operands, each once */
    facts_launch launch;       /* the one that multiplies */
    facts_fill fill;
    uint64_t row_tiles;  /* how often the weights are read, and their instructions issued */
    double wanted_warps; /* per SM, for up to 16 rows: min(8, W / SMs), W the most warps that the mode's law
                            lets work; 0: nothing is asked for */
    int spill_bytes;     /* -1: unknown */
    facts_code code;     /* FACTS_RUN; else 0 */
    double flight;       /* bytes that all resident warps have on their way to DRAM at a time, at most */
    double
        wanted_flight; /* for up to 16 rows: what DRAM delivers in 600 ns, at most a quarter of the bytes; 0: nothing */
    double dram_us;  /* bytes at the board's peak bandwidth: no kernel can be faster from a cold cache */
    double issue_us; /* if every scheduler issued in every cycle: no kernel can be faster from any cache */
} facts;

/* What is looked at: the plan alone; also what ptxas says, if it is found; also a run of a small product on ptxvm, and its machine code. */
typedef enum facts_depth { FACTS_PLAN, FACTS_ASSEMBLED, FACTS_RUN } facts_depth;

/* The product of weights of this shape. False with a reason: the format does not have it. */
bool facts_product_of(const facts_format *format, facts_mode mode, uint64_t m, const facts_shape *shape,
                      const board *on, facts_product *out, char *why, size_t size);

/* False with a reason, as above. */
bool facts_of(const facts_format *format, facts_mode mode, uint64_t m, const facts_shape *shape,
              const board *on, facts_depth depth, facts *out, char *why, size_t size);

#endif
