/* The SASS of a kernel: the instructions that ptxas makes of a PTX text, with their control codes, as basic blocks and loops, and how
 * often warps execute each block, without a GPU.
 *
 *   sass_code code;
 *   if (sass_assemble(ptx, "sm_90a", NULL, &code, error, sizeof error)) {      ptxas and nvdisasm
 *       ... code.insts, code.blocks, code.loops ...
 *       sass_path *paths;
 *       int n = sass_paths(&code, ptxvm_last_counters(vm), warps, &paths);   of a launch with PTXVM_COUNTERS_PATHS
 *       for (int b, c = 0; c < n; c++)
 *           for (sass_walk walk = sass_walk_begin(&code, &paths[c]); (b = sass_walk_next(&walk)) >= 0;)
 *               ... a warp of this path executes block b ...
 *   }
 *
 * The PTX has one instruction per line and no .loc. Execution counts are estimates from ptxvm's counts by line (flow.c says how);
 * `misfit` tells how well they fit. The numbers of division, square root and reciprocal are taken to be ordinary ones.
 *
 * Who does what:
 *   listing.c   text of nvdisasm -> instructions and basic blocks     decode.c    what an instruction is, from its text and its bits
 *   loops.c     loops and their nesting                               opcodes.def every opcode, its unit and what it does
 *   flow.c      how often each block runs (nnls.c: least squares)     walk.c      the blocks of a warp in order
 *   sass.c      ptxas and nvdisasm, and sums over a launch */
#ifndef CLOCK_SASS_H
#define CLOCK_SASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptxvm/ptxvm.h"

enum { SASS_LANES = 32, SASS_INST_BYTES = 16, SASS_SCOREBOARDS = 6, SASS_READS = 6 };

/* ---- Instructions ---- */

/* What ptxas tells the hardware about an instruction: bits 105 to 125 of its 128, the same on sm_75 to sm_121. Shared memory answers in
 * order, so of several loads from it only the last has a scoreboard that is waited for. */
typedef struct sass_control {
    uint8_t stall;        /* cycles until the warp's next instruction may issue, 0 to 15 */
    bool yield;           /* the scheduler may prefer another warp */
    int8_t write_barrier; /* the scoreboard that is released when its results are written; -1: none */
    int8_t read_barrier;  /* the one that is released when its operands have been read; -1: none */
    uint8_t waits;        /* scoreboards that must be released before it issues: bit i is scoreboard i */
    uint8_t reuse;        /* operands kept for the next instruction, by operand */
} sass_control;

/* Where an instruction goes when it issues. Which of these share a pipe, and how fast each is, depends on the generation. */
typedef enum sass_unit {
    SASS_UNIT_UNKNOWN, /* not in opcodes.def */
    SASS_UNIT_ALU,     /* integer sums, logic, shifts, comparisons, selection, moves */
    SASS_UNIT_FMA,     /* f32, and products of integers */
    SASS_UNIT_HALF,    /* f16x2 and bf16x2 */
    SASS_UNIT_DOUBLE,
    SASS_UNIT_SPECIAL, /* MUFU, conversions, bit counts: a quarter of the rate, or less; releases a scoreboard */
    SASS_UNIT_TENSOR,
    SASS_UNIT_MEMORY,   /* global, local and shared memory, shuffles */
    SASS_UNIT_CONSTANT, /* constants by an address, and special registers; releases a scoreboard */
    SASS_UNIT_UNIFORM,  /* one value per warp */
    SASS_UNIT_BRANCH,   /* branches, barriers of warps, what only the front end sees */
    SASS_UNITS
} sass_unit;

typedef enum sass_kind {
    SASS_COMPUTE,
    SASS_LOAD,
    SASS_STORE,
    SASS_ATOMIC,      /* with a result */
    SASS_REDUCTION,   /* an atomic without one */
    SASS_COPY,        /* LDGSTS: cp.async; `bytes` per thread from global to shared memory */
    SASS_BULK,        /* UBLKCP and the like: cp.async.bulk; its size is in a register */
    SASS_COPY_COMMIT, /* LDGDEPBAR: the copies so far are a group */
    SASS_COPY_WAIT,   /* DEPBAR.LE SB, n: until at most `keep` groups are in flight */
    SASS_COPY_ARRIVE, /* ARRIVES: the copies so far arrive at an mbarrier */
    SASS_MMA,
    SASS_SHUFFLE,
    SASS_BARRIER,  /* BAR: of the block */
    SASS_MBARRIER, /* SYNCS */
    SASS_FENCE,
    SASS_BRANCH,
    SASS_CALL,
    SASS_RETURN,
    SASS_EXIT,
    SASS_PADDING, /* NOP */
    SASS_KINDS
} sass_kind;

typedef enum sass_space {
    SASS_NO_SPACE,
    SASS_GLOBAL,
    SASS_SHARED,
    SASS_LOCAL,
    SASS_CONSTANT,
    SASS_GENERIC
} sass_space;

/* R8 to R11: {8, 4}. Uniform registers and predicates are not listed. */
typedef struct sass_registers {
    uint8_t first, count;
} sass_registers;

typedef struct sass_mma {
    int m, n, k;    /* 0: not an mma */
    char types[24]; /* as SASS has them behind the shape: "F32", "F32.BF16", "S8.S8" */
} sass_mma;

typedef struct sass_inst {
    const char *text; /* in the listing, without the guard: "LDG.E.128.CONSTANT R4, desc[UR4][R2.64]" */
    int text_length, opcode_length, base_length; /* of it: the opcode, and the opcode up to its first dot */
    uint32_t address;
    uint64_t low, high; /* its bits */
    int line;           /* of the PTX */
    int block;          /* that it is in */
    sass_control control;
    sass_unit unit;
    sass_kind kind;
    sass_space space; /* of a memory access; SASS_COPY: global */
    int bytes;        /* of a memory access, per thread */
    bool bypass;      /* a load or copy that leaves L1 out */
    int keep;         /* SASS_COPY_WAIT */
    int scoreboard;   /* SASS_COPY_WAIT: SB0 is that of copies; -1 for other instructions */
    sass_mma mma;
    bool guarded;      /* @P0 */
    int8_t predicate;  /* of the guard: 0 to 6; 7 is PT; uniform ones: +8; -1: not guarded */
    bool negated;      /* @!P0 */
    bool conditional;  /* guarded, or a branch with a predicate among its operands */
    const char *label; /* of a branch or call; null: none */
    int label_length;
    int target; /* the block there; -1: none, or not in this kernel */
    sass_registers writes, reads[SASS_READS];
    int n_reads;
} sass_inst;

bool sass_is(const sass_inst *inst, const char *base);      /* the opcode up to its first dot */
bool sass_has(const sass_inst *inst, const char *part);     /* a later part of the opcode: "BYPASS" */
bool sass_reads(const sass_inst *inst, sass_registers any); /* any of these registers */
bool sass_writes(const sass_inst *inst, sass_registers any);

/* ---- Code ---- */

typedef struct sass_block {
    int first, count; /* instructions */
    int loop;         /* the innermost loop that it is in; -1: none */
    bool reached;     /* from the entry */
} sass_block;

/* Blocks follow each other, or one calls the other: then control also goes on behind the call. */
typedef struct sass_edge {
    int from, to;
    bool call;
} sass_edge;

/* A natural loop: entered at its head alone. Blocks of inner loops are part of the outer one. */
typedef struct sass_loop {
    int head;
    int parent, depth;   /* the loop around it (-1: none); 0 is outermost */
    int n_blocks, bytes; /* of code, with inner loops */
} sass_loop;

typedef struct sass_code {
    sass_inst *insts;
    sass_block *blocks;
    sass_edge *edges;
    sass_loop *loops;
    int n_insts, n_blocks, n_edges, n_loops;
    int written; /* instructions, padding and what is never reached left out */
    int registers, spill_bytes,
        stack_bytes; /* as `ptxas -v` says; spill_bytes: of stores and loads in the code */
    char *listing;
} sass_code;

/* Whether ptxas and nvdisasm are there (QDNN_NVDISASM names the latter, else PATH and CUDA_HOME); if not, a sentence for the user. */
bool sass_found(char *why, size_t size);

/* Of a kernel of the PTX; null: its first. sm: "sm_90a". False: see error. Free the code. */
bool sass_assemble(const char *ptx, const char *sm, const char *kernel, sass_code *code, char *error,
                   size_t error_size);

/* The same from a listing of `nvdisasm -c -gp -hex`. Without -hex, controls are unknown: all zero, with no scoreboards. False: the kernel
 * is not in the listing, or there is no memory. */
bool sass_parse(const char *listing, const char *kernel, sass_code *code);
void sass_code_free(sass_code *code);

/* Registers per thread and bytes of spill stores and loads, from what `ptxas -v` printed of one kernel. */
void sass_read_log(const char *log, int *registers, int *spill_bytes);

/* Whether block b is in the loop, directly or in an inner one. */
bool sass_in_loop(const sass_code *code, int b, int loop);

/* ---- What warps execute ---- */

/* The warps of a launch that take one path, or nearly one. */
typedef struct sass_path {
    uint64_t warps;
    uint64_t first; /* one of them: block * warps per block + warp */
    bool merged;    /* of several paths: the counts are averages */
    double *blocks; /* executions per warp, by block */
    double *edges;  /* and by edge */
    double issued;  /* instructions per warp */
    double
        misfit; /* how far the counts are missed that must hold, against those of loads, stores and the like: 0.01 is 1% */
} sass_path;

/* From the counters of a launch: by path with PTXVM_COUNTERS_PATHS; with PTXVM_COUNTERS_LINES one path, the average. warps: how many the
 * launch had. Returns their number; 0: no counters by line, or no memory. Free them. */
int sass_paths(const sass_code *code, const ptxvm_counters *counters, uint64_t warps, sass_path **paths);
void sass_paths_free(sass_path *paths, int n);

/* How often the loop goes round each time it is entered. */
double sass_trips(const sass_code *code, const sass_path *path, int loop);

/* The blocks of a warp of the path in order: the branches are taken as often as counted, evenly where that leaves a choice. */
typedef struct sass_walk {
    const sass_code *code;
    const sass_path *of;
    uint32_t *taken; /* by edge */
    int *calls;      /* blocks to return to */
    int n_calls, at;
    uint64_t left; /* blocks, at most */
} sass_walk;
sass_walk sass_walk_begin(const sass_code *code, const sass_path *path);
int sass_walk_next(sass_walk *walk); /* a block; -1: the end, and the walk is freed */
void sass_walk_free(sass_walk *walk);

/* ---- Sums over a launch ---- */

enum { SASS_OPCODES = 160 };

typedef struct sass_opcode {
    char name[24]; /* up to the first dot: "LDG", "FFMA" */
    double issued; /* by warps */
} sass_opcode;

typedef struct sass_report {
    double issued;                                    /* warp instructions of the whole launch */
    int written, registers, spill_bytes, stack_bytes; /* as in sass_code */
    double misfit;
    int n_opcodes; /* the most frequent first */
    sass_opcode opcodes[SASS_OPCODES];
} sass_report;

/* Measures the kernel that the counters are of. warps: how many the launch had. False: see error. */
bool sass_measure(const char *ptx, const char *sm, const ptxvm_counters *counters, uint64_t warps,
                  sass_report *report, char *error, size_t error_size);

/* The same from a listing and what `ptxas -v` printed. */
bool sass_estimate(const char *listing, const char *ptxas_log, const ptxvm_counters *counters, uint64_t warps,
                   sass_report *report, char *error, size_t error_size);

/* Warp instructions of an opcode; 0 where there are none. */
double sass_issued(const sass_report *report, const char *opcode);

#endif
