/* Execution: decoded instructions, warps, blocks and launches.
 *
 * Who does what:
 *   decode.c    pvm_function -> vm_code: operands become slots, branches get reconvergence points (cfg.c)
 *   warp.c      runs a warp: divergence, reconvergence, member masks; the only caller of vm_op.exec
 *   calls.c     calls, returns and their frames; local memory
 *   barrier.c   bar and barrier: all barriers pass through it
 *   cluster.c   the blocks of a cluster, in turns
 *   launch.c    runs clusters on host threads, in the seed's order; step limit; faults
 *   overlap.c   launches that begin before the one in front of them has ended
 *   vm.c        the interface of ptxvm.h; report.c the report of a launch
 *   memory.c    every memory access of a kernel passes through it
 *   ops_*.c     the instructions that are more than a lane loop: memory, atomics, warp-level, async copies,
 *               special registers */
#ifndef PTXVM_EXEC_H
#define PTXVM_EXEC_H

#include <stdatomic.h>

#include "lanes.h"
#include "module.h"
#include "ptxvm.h"
#include "tensor.h"

typedef struct vm_warp vm_warp;
typedef struct vm_block vm_block;
typedef struct vm_cluster vm_cluster;
typedef struct vm_launch vm_launch;
typedef struct vm_op vm_op;
typedef struct vm_code vm_code;
typedef struct vm_kernel vm_kernel;
typedef struct vm_memory vm_memory;

/* Addresses and device memory: see exec/memory.h (windows, allocations). A .global or .const address is a
 * device address, and equals the generic address. A .shared address counts from 0 within the block, a .local
 * one from 0 within the lane, a kernel's .param one from 0 within the parameter block. */

/* The effect of an instruction on the lanes that ran it. */
typedef enum {
    VM_NEXT,     /* done, continue */
    VM_BLOCK,    /* nothing done: try again when block->progress has changed (barrier or mbarrier phase) */
    VM_YIELD,    /* done, and a good moment to let other warps run (nanosleep, failed try_wait) */
    VM_BRANCHED, /* the function has moved the lanes itself (branches, calls, exits) */
    VM_FAULT     /* vm_fault has recorded the reason; the launch ends */
} vm_result;

/* Runs one instruction for the lanes in `mask` (never empty; the guard is already applied): reads and writes
 * registers through vm_value, and does not touch other lanes of its results. Warp-level instructions with a
 * member mask (OPF_MEMBERS) are called once, with all live members in `mask`; those with .aligned
 * (OPF_CONVERGED) once for all live lanes of the warp. */
typedef vm_result vm_exec_fn(vm_warp *warp, const vm_op *op, uint32_t mask);

/* Where an operand is: an offset in bytes from frame->registers. Immediates and addresses of symbols are
 * constants in the frame: 32 equal lanes, before the registers. */
typedef int32_t vm_slot;
#define VM_NO_SLOT (-1)

typedef struct vm_operand {
    vm_slot slot;      /* value; of an address: its register (width 4, zero-extended, or 8), or VM_NO_SLOT */
    int16_t width;     /* bytes per lane of the register; 0 for a predicate (one uint32_t mask) */
    int16_t op_width;  /* bytes per lane that the instruction uses; 0 for a predicate */
    pvm_type type;     /* expected by the instruction */
    pvm_type reg_type; /* as declared */
    uint8_t space;     /* of an address: pvm_space; SPACE_NONE is generic. PARAM is a kernel's parameter; the
                          parameters of a function and of its calls are in local memory, and are LOCAL here */
    bool is_address;
    bool negated; /* !p */
    bool is_immediate;
    bool is_sink; /* _ : slot is VM_NO_SLOT */
    bool
        in_cluster; /* of an address: in the .shared::cluster window, not counted from the block's own memory */
    int64_t offset; /* added to an address (the whole address if slot is VM_NO_SLOT) */
    uint64_t bits;  /* value of an immediate */
    const pvm_operand *source;
} vm_operand;

enum {
    OPF_MEMBERS = 1 << 0,   /* waits for the live lanes of the member mask (operand `members`) */
    OPF_CONVERGED = 1 << 1, /* .aligned: waits for all live lanes of the warp */
    OPF_BACK_EDGE = 1 << 2, /* a backward jump: a point to count steps and to let others run */
    OPF_SPIN = 1 << 3,      /* of a back edge: its loop polls memory that others change */
    OPF_INEXACT = 1 << 4,   /* .approx and the like: listed in the report (also set by vm_ops_find) */
    OPF_MASKED = 1 << 5,    /* a lane instruction whose operands must be widened, narrowed or negated */
    OPF_CONTROL = 1 << 6,   /* moves lanes */
    OPF_ONE_PLACE = 1 << 7  /* .aligned: its lanes must not come from different instructions */
};

#define VM_LANE_SLOTS 8

/* How warp.c runs an op. */
typedef enum {
    VM_KIND_EXEC,      /* by its exec function */
    VM_KIND_LANE,      /* a lane function directly on the registers */
    VM_KIND_LANE_MODE, /* the same in another rounding mode, or one listed in the report */
    VM_KIND_WAIT,      /* exec, once all required lanes have arrived (OPF_MEMBERS, OPF_CONVERGED) */
    VM_KIND_BRANCH,    /* bra */
    VM_KIND_CONTROL    /* exec moves the lanes itself: brx, call, ret, exit */
} vm_kind;

struct vm_op {
    vm_exec_fn *exec;
    lane_op lane;                  /* of a lane instruction */
    uint32_t slots[VM_LANE_SLOTS]; /* of a lane instruction: results, carry out, sources, carry in */
    vm_slot guard;                 /* predicate, or VM_NO_SLOT */
    bool guard_negated;
    uint8_t kind; /* vm_kind */
    uint8_t flags;
    int8_t members;                /* index of the member mask operand */
    uint8_t n_results, n_operands; /* vectors are flattened: {a,b,c,d} is four operands */
    uint8_t n_d;                   /* lane instruction: number of results and carry out */
    vm_operand *operand; /* as written; of a call: return values, then arguments (addresses, registers) */
    int32_t target;      /* branch: index of the op */
    int32_t join;        /* branch: where the paths meet again (immediate post-dominator); -1: at exit */
    int32_t site;        /* number within the kernel: its bit in the report */
    const pvm_inst *inst;
    const pvm_function *function;
    void *extra; /* private to the exec function: tensor_op, call site, branch table ... (vm_code_alloc) */
};

/* A function decoded as part of one kernel. Shared by all warps, and not modified while running. */
struct vm_code {
    const pvm_function *function;
    vm_kernel *kernel;
    int index; /* in kernel->codes */
    vm_op *ops;
    int n_ops;
    uint32_t frame_bytes; /* constants, then registers of all lanes */
    uint32_t constant_bytes;
    uint8_t *constants;   /* 32-lane constants: the first bytes of each frame */
    uint32_t local_bytes; /* per lane: .local variables, parameters, return values, call parameters */
    uint32_t local_align;
    vm_slot local_base; /* hidden register: start of the activation's local memory, u64 lanes */
    vm_slot *reg_slot;  /* of the function's registers */
    struct vm_shared_constant *shared_constants; /* addresses of shared variables among the constants */
    int n_shared_constants;
    uint64_t inputs_at, returns_at; /* parameters and return values in local memory, from local_base */
    uint64_t shared_at;             /* of the function's own shared variables */
    struct vm_branch_table *tables; /* of brx.idx */
    struct vm_pool *pool;
    const struct check_code *check; /* null: no checks or counters */
};

/* Allocates memory that lives as long as the code, for vm_op.extra. Null if there is none left. */
void *vm_code_alloc(vm_code *code, size_t bytes);

/* The activation of a call: registers of all 32 lanes. Diverged lanes share it. */
typedef struct vm_frame {
    uint8_t *registers; /* code->frame_bytes; 64-byte aligned */
    const vm_code *code;
    struct vm_frame *caller;
    const vm_op *call_site;
    struct vm_frame *next_free;
    uint32_t lanes; /* that run in it, or in a function called from it */
    struct check_frame *check;
    struct check_flight *flight; /* null: not checked */
} vm_frame;

struct vm_warp {
    vm_block *block;
    int index;            /* in the block: lane l is thread 32 * index + l */
    uint32_t live;        /* lanes that exist and have not exited */
    uint32_t existing;    /* lanes that exist */
    vm_frame *frame;      /* of the running group */
    uint32_t active;      /* lanes of the running group (before the guard) */
    bool wrote;           /* it has written memory visible to others in this slice: not just waiting */
    const vm_op *segment; /* clock and steps have been counted up to here */
    uint8_t *local;       /* lane-major local memory: address a of lane l is local[l * local_stride + a] */
    uint64_t local_stride;
    uint64_t local_top[WARP]; /* first free byte of each lane's local memory (calls, alloca): accesses beyond
                                 it are faults */
    uint16_t tid[3][WARP];    /* %tid of each lane */
    struct vm_scheduler *scheduler; /* private to warp.c */
    uint8_t *local_undefined;       /* like local, 1 for each uninitialised byte; null: not checked */
    bool released_early;            /* some lanes continued without others that a join expected */
    struct vm_ops_warp *ops; /* private to ops_*.c: caches, outstanding cp.async groups; null at first */
};

struct vm_block {
    vm_launch *launch;
    uint32_t ctaid[3];
    uint64_t linear_index; /* x + y * nx + z * nx * ny */
    uint64_t order;        /* index in the seed's order */
    vm_cluster *
        cluster; /* exec/cluster.h; and its rank there, and where its memory is in the .shared::cluster window */
    uint32_t rank;
    uint64_t shared_base;
    bool ended;             /* all its threads have exited, but others of its cluster have not */
    bool observed;          /* accesses are told to checks, counters or overlap.c */
    bool waited, triggered; /* it has executed griddepcontrol.wait, and launch_dependents */
    bool advanced;          /* in its last turn */
    uint8_t *shared;
    uint64_t shared_bytes; /* static and dynamic */
    uint64_t shared_reach; /* limit of accesses: shared_bytes with the memory check, else what an SM
                            * allocates */
    vm_warp *warps;
    int n_warps;
    uint64_t clock;    /* the deterministic counter behind %clock: instructions issued by this block; read it
                          with vm_clock */
    uint64_t progress; /* changes when waiting lanes may continue: a barrier or mbarrier phase completed */
    uint8_t turn[32];  /* the order of its warps */
    uint16_t registers[32];       /* of a thread of each warp: setmaxnreg changes them */
    uint32_t free_registers;      /* per thread of a warp, given back by setmaxnreg.dec */
    struct vm_barriers *barriers; /* private to barrier.c */
    struct vm_ops_block *ops;     /* private to ops_*.c; null at first */
    struct vm_watch *watch;       /* exec/hooks.h: per host thread; null: no checks or counters */
    struct block_check *check;    /* and per block */
    uint32_t *executed;           /* by warp and site: how often; null: paths are not counted */
    struct vm_worker *worker;     /* private to launch.c: the host thread that runs the block */
};

/* A constant of a frame that is the address of a shared variable: the rank of the block in its cluster is added. */
typedef struct vm_shared_constant {
    uint32_t offset; /* of its lanes, in the frame */
    int width;
} vm_shared_constant;

/* A shared variable at module scope, and its place in a kernel's shared memory. */
typedef struct vm_shared_var {
    const pvm_var *var;
    uint64_t offset;
} vm_shared_var;

/* A kernel decoded for a vm, with all functions that it can call. */
struct vm_kernel {
    ptxvm_module *module;
    const pvm_function *function;
    vm_code *entry;
    vm_code **codes; /* of the functions that this kernel can call, in the order of the text */
    int n_codes;
    uint64_t static_shared;
    uint64_t dynamic_shared_offset; /* of .extern .shared variables: static_shared, aligned */
    vm_shared_var *shared_vars;     /* that it uses, in the order of the text */
    int n_shared_vars;
    bool serial; /* its blocks must run on one thread */
    bool has_wgmma, has_tcgen05;
    bool triggers;             /* it has griddepcontrol.launch_dependents */
    const pvm_inst *first_red; /* of global memory */
    ptxvm_status status;       /* why decoding failed */
    int n_sites;               /* number of ops in all codes */
    const vm_op **sites;
    ptxvm_site *contractable; /* bare mul and add pairs */
    int n_contractable;
    struct vm_pool *pool;
};

/* What ended a launch. */
typedef struct vm_fault_info {
    ptxvm_status status;
    uint64_t order; /* of its block; UINT64_MAX: none */
    ptxvm_finding finding;
    char text[768];
} vm_fault_info;

struct vm_launch {
    ptxvm *vm;
    const vm_kernel *kernel;
    const uint8_t *params;
    uint64_t param_bytes;
    uint32_t grid[3], dim[3]; /* %nctaid, %ntid */
    uint64_t n_blocks;
    uint32_t cluster[3]; /* %cluster_nctaid */
    int n_cluster;
    bool explicit_cluster;
    int registers;          /* of a thread when it starts, for setmaxnreg; 0: the kernel does not say */
    int n_threads, n_warps; /* of a block */
    uint64_t static_shared, dynamic_shared, shared_bytes, shared_reach;
    uint64_t step_limit, stack_limit;
    uint64_t grid_id;
    uint64_t workspace; /* of a cooperative launch: device address, %envreg2 and %envreg1 are its halves */
    bool cooperative, serial;
    bool programmatic;          /* it may begin before the launch in front of it has ended */
    bool early;                 /* what that has written has not landed yet */
    bool waited, waited_first;  /* see overlap.h */
    struct vm_journal *journal; /* of its writes; null: not recorded */
    struct vm_run *run;         /* private to launch.c */
};

/* The device. */
struct ptxvm {
    ptxvm_config config;
    pvm_target device;
    const struct sm_traits *traits; /* of the device, or of the next later SM that is in the table */
    const struct board *board;
    lanes_level level;
    vm_memory *memory;
    uint64_t launches;
    uint64_t n_functions; /* of all modules ever loaded: functions have addresses */
    uint64_t workspace;   /* of cooperative launches; 0: none yet */
    ptxvm_module *modules;
    struct vm_reports *reports;
    struct vm_checks *checks;   /* exec/hooks.h */
    struct vm_overlap *overlap; /* exec/overlap.h */
    char error[1024];
};

/* The code of a function as part of the kernel; null if the kernel cannot call it. */
vm_code *vm_code_of(const vm_kernel *kernel, const pvm_function *function);

/* ---- For the instructions ---- */

static inline void *vm_slot_ptr(const vm_frame *frame, vm_slot slot)
{
    return frame->registers + slot;
}

/* The value of an operand for all lanes: 32 consecutive lanes of `width` bytes (a predicate: one
 * uint32_t). */
static inline void *vm_value(const vm_warp *warp, const vm_operand *operand)
{
    return vm_slot_ptr(warp->frame, operand->slot);
}

/* A predicate operand as a mask, with the negation applied. */
static inline uint32_t vm_predicate(const vm_warp *warp, const vm_operand *operand)
{
    const uint32_t *p = vm_value(warp, operand);
    return operand->negated ? ~*p : *p;
}

/* The clock as seen by instruction `op` of this warp. */
static inline uint64_t vm_clock(const vm_warp *warp, const vm_op *op)
{
    return warp->block->clock + (uint64_t)(op - warp->segment);
}

/* Ends the launch with a message: kernel, line, block and the lane's thread, then what happened. Returns
 * VM_FAULT. */
vm_result vm_fault(vm_warp *warp, const vm_op *op, int lane, ptxvm_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for a memory access; `detail` describes it for the finding. */
vm_result vm_fault_access(vm_warp *warp, const vm_op *op, int lane, ptxvm_status status,
                          const ptxvm_finding *detail, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* "kernel k, line 7 (k.cu:3), block (0,0,0), thread (1,0,0): " */
void vm_name_place(const vm_warp *warp, const vm_op *op, int lane, char *text, size_t size);

/* Something has happened that waiting lanes of the block may be waiting for (an mbarrier's phase
 * completed). */
static inline void vm_wake(vm_block *block)
{
    block->progress++;
}

/* The kernel's printf: text appears in the order of the blocks, whatever the number of host threads. Returns
 * false, with the fault recorded, if there is no memory left or the limit is reached. */
bool vm_print(vm_block *block, const char *text, size_t length);

/* The op has computed with a model that is assumed, though its row in the report is published. */
void vm_note_assumed(const vm_warp *warp, const vm_op *op);

/* alloca: reserves `bytes` of the lane's local memory; returns false if the stack limit is reached.
 * stackrestore sets local_top itself. */
bool vm_local_reserve(vm_warp *warp, int lane, uint64_t bytes, uint64_t align, uint64_t *address);

/* The address by which an indirect call refers to a function. */
uint64_t vm_function_address(const ptxvm_module *module, const pvm_function *function);

/* exec/ops.h declares what ops_*.c provide. vm_ops_find is called for an op whose operands, guard, inst and
 * function are decoded, and which is not control flow, a block barrier, a lane instruction, a tensor-core
 * instruction, or a mov other than from a special register. A call of an extern function runs the function
 * from vm_builtin_find: op->operand holds the return values and then the arguments, each an address in local
 * memory (or a register). */

#endif
