/* The boards (boards.def) and SM generations (generations.def, pipes.def) that ptxvm can act as and kernels are judged for: numbers that others
 * published. Depends on nothing; ptxvm, the library and the tools read it. */
#ifndef QDNN_BOARDS_H
#define QDNN_BOARDS_H

#include <stddef.h>

typedef struct board {
    const char *name;  /* "a100" */
    const char *title; /* "A100 40 GB SXM" */
    int sm;            /* 80 */
    int is_default;    /* what `sm_80` alone means */
    int multiprocessors;
    int clock_mhz; /* boost */
    int memory_gb, memory_khz, bus_bits;
    int dram_gbs; /* peak */
    int l2_kib;
    int tensor_tflops; /* dense, f16 with f32 sums */
    int halves;        /* f32 sums halve the rate of 16-bit products */
    int integrated;
    const char *source;
} board;

/* A published number: the least and the largest value that was measured. */
typedef struct published_range {
    int low, high;
} published_range;

typedef struct generation {
    int sm;
    published_range shared, l1, l2, dram, tensor;            /* latencies in cycles */
    int fma_per_clock, integer_per_clock, special_per_clock; /* results per multiprocessor */
    published_range dram_percent;                            /* what a plain read reaches, of the peak */
    const char *source;
} generation;

/* What the model of time needs besides (pipes.def). */
typedef struct pipes {
    int sm;
    int half_per_clock, f64_per_clock; /* results per multiprocessor */
    int mma_percent;                   /* of the board's tensor rate, that mma.sync reaches */
    int l1_bytes;                      /* per clock */
    published_range l2_bytes;          /* per clock and multiprocessor; low is slow */
    published_range special;           /* latency */
    int shuffle;                       /* latency */
    published_range mixed_percent;     /* of the DRAM peak, while reads and writes alternate; low is slow */
    published_range mixed_wait;        /* nanoseconds that reads then wait for writes */
    published_range block_start;       /* cycles */
    int warp_start;
    const char *source;
} pipes;

int board_count(void);
const board *board_at(int index);
/* By name, in either case ("A100"); null if there is none. */
const board *board_find(const char *name);
/* The board that an SM (80) stands for where none is named; null for an SM that is not in the table. */
const board *board_of_sm(int sm);
/* The fullest target that it runs: "sm_90a" for h100. */
void board_sm_name(const board *b, char *text, size_t size);
/* The names of all boards, separated by ", ": for messages. */
const char *board_names(void);

const generation *generation_of_sm(int sm);
const pipes *pipes_of_sm(int sm);

#endif
