/* The contents of a program. */
#ifndef QDNN_DRIVER_PROGRAM_H
#define QDNN_DRIVER_PROGRAM_H

#include <stdio.h>

#include <qdnn/program.h>

#include "driver/api/descriptors.h"
#include "driver/api/plan.h"

enum { PROGRAM_ALIGN = 256 /* of everything in the arena */ };

typedef struct program_tensor {
    char *name;
    qdnnProgramPlace_t place;
    struct qdnnTensorDescriptor shape;
    uint64_t bytes;     /* of the most rows */
    uint64_t row_bytes; /* of each row of a run; 0: the tensor is not by rows */
    unsigned align;     /* that its steps need */
    int first, last;    /* the steps that use it first and last; -1: none */
    uint64_t offset;    /* in the arena */
} program_tensor;

/* A tensor, or a part of it, as a step uses it. */
typedef struct program_use {
    int tensor;
    uint64_t offset, bytes; /* of the part */
    uint8_t place;          /* plans: the operand; kernels: the argument */
    bool reads, writes;
} program_use;

/* A kernel of the caller's own; the values of its arguments that are not addresses. */
typedef struct program_kernel {
    CUmodule module; /* or null: the caller's */
    bool was_launched;
    CUfunction function;
    unsigned grid[3], block[3], shared, rows_per_block;
    int n_arguments;
    struct {
        bool is_rows;
        uint64_t value;
    } arguments[QDNN_KERNEL_ARGUMENTS_MAX];
} program_kernel;

typedef enum { PROGRAM_PLAN, PROGRAM_COPY, PROGRAM_FILL, PROGRAM_KERNEL, PROGRAM_STEP_KINDS } program_kind;
typedef struct program_step {
    program_kind kind;
    char *name;
    int parts;         /* steps that it was fused from; 1: it is as it was added */
    program_use *uses; /* a copy's: to, from */
    int n_uses;
    uint64_t
        per_row; /* plans: rows of the plan in each row of a run; 0: all of the plan's rows in each run */
    uint64_t workspace; /* offset of a plan's workspace in the arena */
    union {
        qdnnPlan_t plan;
        unsigned char byte;
        program_kernel *kernel;
    };
} program_step;

struct qdnnProgram {
    qdnnHandle_t handle;
    uint64_t max_rows;
    bool is_compiled;
    program_tensor *tensors;
    int n_tensors, room_tensors;
    program_step *steps;
    int n_steps, room_steps;
    int fused; /* steps that became a part of the one before */
    uint64_t arena_bytes, intermediate_bytes;
    struct program_trace *trace; /* null: QDNN_TRACE is not set */
};

/* What a step does, for messages and the trace: "quant.q4_0.matmul", "copy". */
const char *program_step_operation(const program_step *step);
/* Repeats the last error with the step that it is about. */
qdnnStatus_t program_in_step(qdnnStatus_t status, int number, const program_step *step);

/* program.c: appends a step whose name and uses it copies. */
qdnnStatus_t program_append(qdnnProgram_t program, const char *name, const program_step *step);
/* Frees what belongs to a step. */
void program_free_step(qdnnHandle_t handle, program_step *step);
/* Whether there is such a tensor (`what` names the argument), and whether anything can be added. */
qdnnStatus_t program_check_tensor(const struct qdnnProgram *program, const char *what, int tensor);
qdnnStatus_t program_check_open(const struct qdnnProgram *program);

/* Raises the alignment of the tensors of a step that is a plan to what it needs. */
void program_align_tensors(qdnnProgram_t program, const program_step *step);
/* Whether two uses in one step must not be: something is read or written where it is written. */
bool program_uses_collide(const program_use *a, const program_use *b);

/* program_fuse.c: makes one step of neighbours whose operations one kernel does with the same bits. */
qdnnStatus_t program_fuse(qdnnProgram_t program);

/* program_arena.c: when each tensor is needed, which fails for one that is read before it is written; and where it
 * lies. */
qdnnStatus_t program_find_lifetimes(qdnnProgram_t program);
qdnnStatus_t program_plan_arena(qdnnProgram_t program);

/* program_kernel.c: unloads. */
void program_kernel_free(qdnnHandle_t handle, program_kernel *kernel);

/* program_run.c: one step, with the addresses of a run. */
typedef struct program_run {
    const void *const *pointers;
    CUdeviceptr arena;
    uint64_t rows;
    launch_chain *chain;
} program_run;
qdnnStatus_t program_run_step(const struct qdnnProgram *program, const program_step *step,
                              const program_run *run);

/* program_trace.c: QDNN_TRACE. */
qdnnStatus_t program_trace_open(qdnnProgram_t program);
void program_trace_close(qdnnProgram_t program);
qdnnStatus_t program_trace_run(const struct qdnnProgram *program, const program_run *run);

#endif
