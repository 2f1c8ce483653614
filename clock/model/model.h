/* The modelled time of a launch of any PTX on a board: the machine (clock/machine) replays the SASS that ptxas makes of it (clock/sass), as
 * often as ptxvm has counted. It needs ptxas and nvdisasm.
 *
 *   clock_case c = {.ptx = text, .on = board_find("a100"), .counters = ptxvm_last_counters(vm), ...};
 *   clock_estimate e;
 *   if (clock_time(&c, &e, error, sizeof error))
 *       printf("%.1f to %.1f us, modelled\n", e.at[CLOCK_LOW].us, e.at[CLOCK_HIGH].us);
 *   clock_estimate_free(&e);
 *
 * An interval, not a number: its ends are the two ends of what is known of the board, and what the model itself misses (CLOCK_MARGIN). Two
 * kernels are in order only where their intervals do not overlap. */
#ifndef CLOCK_MODEL_H
#define CLOCK_MODEL_H

#include "clock/machine/machine.h"
#include "clock/sass/sass.h"
#include "ptxvm/ptxvm.h"

typedef struct clock_case {
    const char *ptx;    /* one instruction per line, no .loc */
    const char *kernel; /* null: its first */
    const board *on;
    const ptxvm_counters *counters; /* of a launch with PTXVM_COUNTERS_PATHS (or _LINES: one average warp) */
    uint64_t blocks,
        counted_blocks; /* of the launch; how many of them ptxvm ran, if they are a sample; 0: all */
    int threads;        /* per block */
    uint32_t shared;    /* bytes per block, static and dynamic */
    int blocks_per_sm;  /* 0: as many as fit */
    uint64_t budget;    /* clock_launch.budget */
    double
        dram_bytes; /* that all blocks load from DRAM, where more is known than a sample tells; 0: as counted */
    bool warm;      /* L2 holds what the kernel reads, and keeps what it writes */
} clock_case;

/* A line of the PTX at which warps wait, and mostly why: at the slow end. */
typedef struct clock_hot_line {
    int line;
    clock_stall reason;
    double share; /* of all cycles that warps waited */
} clock_hot_line;

enum { CLOCK_HOT_LINES = 8 };

typedef struct clock_estimate {
    clock_result at[CLOCK_CORNERS]; /* us is widened, cycles are as the machine took them */
    double plain_us[CLOCK_CORNERS]; /* a plain kernel that reads as many bytes */
    double roofline;                /* us: the bytes at the board's peak bandwidth */
    int registers, spill_bytes, blocks_per_sm, paths;
    clock_hot_line hot[CLOCK_HOT_LINES]; /* those with the largest shares first */
    int n_hot;
    double misfit; /* of the counts: sass_path.misfit or what the traces miss of it, the largest */
} clock_estimate;

/* False with a reason: tools that are missing, a kernel that does not fit or is not modelled. */
bool clock_time(const clock_case *what, clock_estimate *out, char *error, size_t size);
void clock_estimate_free(clock_estimate *e);

/* The blocks of a launch that an SM holds at a time; registers 0: no limit. By the rules of the CUDA C programming guide. */
int clock_blocks_per_sm(int sm, int threads, uint32_t shared, int registers);

/* What the ends of an interval are multiplied by: the parameters of a board are not all that is not known of it. So much is what it takes
 * for nine of ten published times to lie inside (docs/clock.md, `./run bench clock`). */
#define CLOCK_MARGIN 0.10
double clock_widened(double us, clock_corner corner);

/* A plain kernel that reads so many bytes. */
bool clock_plain_read(const board *on, clock_corner corner, double bytes, double *us);

/* ---- lower.c: SASS to a program of the machine ---- */

typedef struct clock_kernel {
    clock_program program;
    clock_run_of_blocks *runs;
    int n_runs;
    clock_instruction *instructions;
    clock_trace *traces;
    clock_block *blocks;
    double misfit; /* by how much the traces miss the counts */
} clock_kernel;

bool clock_lower(const sass_code *code, const sass_path *paths, int n_paths, const clock_case *what,
                 clock_kernel *out, char *error, size_t size);
void clock_kernel_free(clock_kernel *kernel);

#endif
