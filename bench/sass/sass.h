/* How many SASS instructions a GPU issues for a launch, without a GPU.
 *
 * A launch runs on ptxvm with counters by line (PTXVM_COUNTERS_LINES). ptxas assembles the same PTX with line
 * information, nvdisasm shows the instructions with the PTX line that each came from, and the basic blocks of
 * that listing get the execution counts that fit ptxvm's best: flow.c says how.
 *
 *   sass_report r;
 *   if (sass_measure(ptx, "sm_90", ptxvm_last_counters(vm), warps, &r, error, sizeof error))
 *       printf("%g instructions per weight\n", WARP * r.issued / weights);
 *
 * The PTX has one instruction per line and no .loc. Figures are estimates: `misfit` tells how well they fit.
 * The numbers of division, square root and reciprocal are taken to be ordinary ones. */
#ifndef BENCH_SASS_H
#define BENCH_SASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptxvm/ptxvm.h"

enum { SASS_OPCODES = 160, SASS_LANES = 32 };

typedef struct sass_opcode {
    char name[24]; /* up to the first dot: "LDG", "FFMA" */
    double issued; /* by warps */
} sass_opcode;

typedef struct sass_report {
    double issued;   /* warp instructions of the whole launch */
    int written;     /* instructions of the kernel's code, padding and what is never reached left out */
    int registers;   /* per thread */
    int spill_bytes; /* spill stores and loads of the code, as `ptxas -v` says */
    int stack_bytes; /* per thread */
    double misfit;   /* how far the counts are missed that must hold, against those of loads, stores and the
                           like: 0 is exact, 0.01 is 1% */
    int n_opcodes;   /* the most frequent first */
    sass_opcode opcodes[SASS_OPCODES];
} sass_report;

/* Whether ptxas and nvdisasm are there (QDNN_NVDISASM names the latter, else PATH and CUDA_HOME); if not, a
 * sentence for the user. */
bool sass_found(char *why, size_t size);

/* Measures the kernel that the counters are of. warps: how many the launch had. False: see error. */
bool sass_measure(const char *ptx, const char *sm, const ptxvm_counters *counters, uint64_t warps,
                  sass_report *report, char *error, size_t error_size);

/* The same from a listing of `nvdisasm -c -gp` and what `ptxas -v` printed. */
bool sass_estimate(const char *listing, const char *ptxas_log, const ptxvm_counters *counters, uint64_t warps,
                   sass_report *report, char *error, size_t error_size);

/* Registers per thread and bytes of spill stores and loads, from what `ptxas -v` printed of one kernel. */
void sass_read_log(const char *log, int *registers, int *spill_bytes);

/* Warp instructions of an opcode; 0 where there are none. */
double sass_issued(const sass_report *report, const char *opcode);

#endif
