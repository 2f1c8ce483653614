/* A model of time of a GPU that is not here: it replays the instructions of a launch, with the control codes of their SASS, on schedulers,
 * pipes, scoreboards, shared memory, L1, L2 and DRAM. It knows no SASS and no PTX: programs come from clock/sass or are written by hand.
 *
 *   clock_parameters p;
 *   clock_parameters_of(board_find("a100"), CLOCK_LOW, &p);
 *   clock_result r;
 *   if (clock_run(&program, &launch, &p, &r))
 *       printf("at least %.1f us, modelled\n", r.us);
 *   clock_result_free(&r);
 *
 * What it leaves out: instruction caches, address translation, the contents of L1 and L2 (a program says which share of an
 * instruction's sectors misses them), power and its throttling, the launch itself. It is deterministic. */
#ifndef CLOCK_MACHINE_H
#define CLOCK_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boards/boards.h"

/* ---- Programs ---- */

/* What an instruction occupies. */
typedef enum clock_unit {
    CLOCK_CONTROL, /* nothing but its turn to issue: branches, waits */
    CLOCK_FMA,
    CLOCK_ALU,
    CLOCK_HALF,
    CLOCK_F64,
    CLOCK_XU, /* special functions and conversions */
    CLOCK_TENSOR,
    CLOCK_UNIFORM,
    CLOCK_SHARED, /* shared memory and shuffles: `wavefronts` passes of the SM's load/store unit */
    CLOCK_GLOBAL, /* loads, stores and atomics of global memory: the same unit, then L1 and what is behind it */
    CLOCK_UNITS
} clock_unit;

typedef enum clock_action {
    CLOCK_NOTHING,
    CLOCK_LOAD,           /* global memory: `sectors` with the shares `l2` and `dram` */
    CLOCK_STORE,          /* nobody waits for it */
    CLOCK_ATOMIC,         /* waits for L2 and back */
    CLOCK_COPY_ASYNC,     /* cp.async: part of the group that the next COMMIT closes */
    CLOCK_COMMIT,         /* cp.async.commit_group */
    CLOCK_WAIT_GROUPS,    /* until at most `number` groups are open */
    CLOCK_BARRIER,        /* `barrier` of the block's warps; with `number` > 0: of that many */
    CLOCK_BARRIER_ARRIVE, /* counts at `barrier`, and goes on */
    CLOCK_MBAR_ARRIVE,    /* at mbarrier `number` */
    CLOCK_MBAR_WAIT,      /* for its next phase, as counted by this warp */
    CLOCK_COPY_BULK,      /* `sectors` to shared memory; mbarrier `number` waits for them */
    CLOCK_FENCE,          /* until the warp's stores are visible */
    CLOCK_SHUFFLE,        /* on CLOCK_SHARED, with its own latency */
    CLOCK_ACTIONS
} clock_action;

enum {
    CLOCK_SCOREBOARDS = 6,
    CLOCK_NO_SCOREBOARD = 7,
    CLOCK_MBARRIERS = 16,
    CLOCK_BARRIERS = 16,
    CLOCK_SCHEDULERS = 4
};

typedef struct clock_instruction {
    uint8_t unit;   /* clock_unit */
    uint8_t action; /* clock_action */
    uint8_t stall;  /* cycles before the warp's next instruction may issue; 0 and 1 are the same */
    uint8_t write_barrier,
        read_barrier; /* the scoreboard that it holds until its result is there, its operands are read; else 7 */
    uint8_t wait_mask; /* of scoreboards that must be free before it issues */
    uint8_t number;    /* of groups, warps or an mbarrier */
    uint8_t barrier;   /* CLOCK_BARRIER, CLOCK_BARRIER_ARRIVE: which of the block's */
    float
        work; /* CLOCK_TENSOR: multiplications, in units of 16-bit ones with f32 sums; other units: how many turns of the pipe, 0 is 1 */
    float wavefronts; /* passes of the load/store unit; 0 is 1 */
    float sectors;    /* of 32 bytes, requested by a warp */
    float l2, dram;   /* shares of the sectors that miss L1, that miss L2, too (dram <= l2) */
    int line;         /* of the PTX; 0: unknown */
} clock_instruction;

/* A warp class: what a warp executes, in order. */
typedef struct clock_trace {
    const uint32_t *steps; /* indices of instructions */
    size_t length;
} clock_trace;

/* A block class: its warps, each of a warp class. */
typedef struct clock_block {
    const uint16_t *warps;
    int n_warps;
    int mbarrier_arrivals[CLOCK_MBARRIERS]; /* of warps, that complete a phase */
} clock_block;

typedef struct clock_program {
    const clock_instruction *instructions;
    int n_instructions;
    const clock_trace *traces;
    int n_traces;
    const clock_block *blocks;
    int n_blocks;
} clock_program;

/* So many blocks of a class start one after another. */
typedef struct clock_run_of_blocks {
    uint64_t count;
    int block; /* of clock_program.blocks */
} clock_run_of_blocks;

typedef struct clock_launch {
    const clock_run_of_blocks *runs; /* in the order in which blocks start */
    int n_runs;
    int blocks_per_sm; /* at a time */
    uint64_t l2_bytes; /* stored bytes that L2 keeps: they do not reach DRAM before the kernel ends */
    uint64_t
        budget; /* warp instructions to simulate; above, each SM that is simulated stands for several. 0: 4 million */
} clock_launch;

/* ---- Parameters ---- */

/* The two ends of what is known of a board: every parameter at its fastest, at its slowest. */
typedef enum clock_corner { CLOCK_LOW, CLOCK_HIGH, CLOCK_CORNERS } clock_corner;

typedef struct clock_parameters {
    int sms;
    double mhz;
    double interval[CLOCK_UNITS]; /* cycles between two instructions of a scheduler's pipe (CLOCK_F64 too) */
    double tensor_rate;           /* 16-bit multiplications with f32 sums, per cycle and scheduler */
    /* Latencies in cycles, from issue to use: of results that a scoreboard guards, by unit; then of memory */
    double latency[CLOCK_UNITS];
    double shuffle_latency, l1_latency, l2_latency, dram_latency;
    double latency_spread; /* of L2 and DRAM: the share by which single accesses differ from the mean */
    double barrier_latency, fence_latency;
    double async_latency; /* what a copy to shared memory takes longer than a load */
    /* Rates, in bytes per cycle */
    double l1_bytes, sm_bytes, l2_bytes,
        dram_bytes;    /* of an SM; from L2 to an SM; of the board; of the board, reading alone */
    double dram_mixed; /* the share of it that is left when reads and writes are mixed */
    double
        dram_mixed_wait; /* cycles that reads wait for writes where DRAM is busy with both; in proportion to how busy it is */
    int dram_channels;
    double in_flight; /* sectors that an SM may have on their way; 0: no limit */
    double lsu_queue; /* cycles of work that the load/store unit may be behind before issue stalls */
    double block_start,
        warp_start; /* cycles from a block's end to its successor's first instruction; between the starts of its warps */
    double block_interval; /* cycles between two blocks, over the board */
} clock_parameters;

/* False: nothing is known of the board's SM. */
bool clock_parameters_of(const board *on, clock_corner corner, clock_parameters *out);

/* ---- Results ---- */

/* Why a warp did not issue: cycles between one instruction and the next beyond one. */
typedef enum clock_stall {
    CLOCK_STALL_FIXED,   /* the stall count: a result of fixed latency */
    CLOCK_STALL_GLOBAL,  /* a load of global memory */
    CLOCK_STALL_SHARED,  /* shared memory, a shuffle, a special function or conversion */
    CLOCK_STALL_ASYNC,   /* a group of cp.async */
    CLOCK_STALL_BARRIER, /* other warps of the block */
    CLOCK_STALL_MBARRIER,
    CLOCK_STALL_FENCE,
    CLOCK_STALL_PIPE,     /* the pipe was busy */
    CLOCK_STALL_QUEUE,    /* the load/store unit was behind */
    CLOCK_STALL_SELECTED, /* another warp had its turn */
    CLOCK_STALLS
} clock_stall;

const char *clock_stall_name(clock_stall stall);
const char *clock_unit_name(clock_unit unit);

typedef struct clock_result {
    double cycles, us;             /* from the first block's start to the last one's end */
    double issued;                 /* warp instructions */
    double issue_bound_us;         /* if every scheduler issued in every cycle */
    double issue_busy;             /* share of the schedulers' cycles in which they issued */
    double busy[CLOCK_UNITS];      /* the same of pipes */
    double dram_bytes, dram_busy;  /* busy: of the rate at which it reads */
    double stalls[CLOCK_STALLS];   /* warp cycles */
    double (*waits)[CLOCK_STALLS]; /* the same by instruction of the program: of those that waited */
    int simulated_sms;             /* of the board's; fewer: each stands for several */
} clock_result;

/* False: no memory, a block that never fits, or warps that wait for each other for ever (`error` says which). */
bool clock_run(const clock_program *program, const clock_launch *launch, const clock_parameters *parameters,
               clock_result *result, const char **error);
void clock_result_free(clock_result *result);

#endif
