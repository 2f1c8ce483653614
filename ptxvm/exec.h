/* Execution: decoded instructions, warps, blocks and launches.
 *
 * Who does what:
 *   decode.c    ptx_function -> vm_code: operands become slots, control flow gets its reconvergence points
 *   warp.c      runs a warp: divergence, reconvergence, calls; the only caller of vm_op.exec
 *   launch.c    runs blocks on host threads, in the seed's order; barriers; step limit
 *   memory.c    the one place that every guest memory access passes through
 *   ops_*.c     the instructions that are more than a lane loop: memory, atomics, warp-level, async copies, special registers */
#ifndef PTXVM_EXEC_H
#define PTXVM_EXEC_H

#include "lanes.h"
#include "module.h"
#include "ptxvm.h"
#include "tensor.h"

typedef struct vm_warp vm_warp;
typedef struct vm_block vm_block;
typedef struct vm_launch vm_launch;
typedef struct vm_op vm_op;
typedef struct vm_code vm_code;

/* What an instruction did to the lanes that ran it. */
typedef enum {
    VM_NEXT,  /* done, go on */
    VM_BLOCK, /* nothing done: try again when something in the block has changed (barrier, mbarrier, warp members) */
    VM_YIELD, /* done, and a good moment to let others run (nanosleep, failed try_wait) */
    VM_BRANCHED, /* the core has moved the lanes itself (branches, calls, exits) */
    VM_FAULT  /* launch->fault says what; the launch ends */
} vm_result;

/* Runs one instruction for the lanes in `mask` (never empty; the guard is already applied). Warp-level instructions with a member
 * mask (OPF_MEMBERS) are called once, with all the live members present in `mask`. */
typedef vm_result vm_exec_fn(vm_warp *warp, const vm_op *op, uint32_t mask);

/* Where an operand is: an offset in bytes. Registers count from the frame, constants (immediates, 32 equal lanes; symbol
 * addresses) from the code's constant pool; see vm_slot_ptr. */
typedef int32_t vm_slot; /* >= 0: frame + slot; < 0: constants + ~slot */

typedef struct vm_operand {
    vm_slot slot;       /* value, or the address's register (constant 0 where it has none) */
    int16_t width;      /* bytes a lane of the register; 0 for a predicate */
    int16_t op_width;   /* bytes a lane that the instruction means; 0 for a predicate */
    ptx_type type;      /* what the instruction takes */
    ptx_type reg_type;  /* as declared */
    uint8_t space;      /* ptx_space of an address */
    bool negated;       /* !p */
    bool is_immediate;
    bool is_sink;
    int64_t offset;     /* added to an address */
    const ptx_operand *source;
} vm_operand;

enum {
    OPF_MEMBERS = 1 << 0,  /* wait for the live lanes of the member mask (operand `members`) */
    OPF_CONVERGED = 1 << 1, /* .aligned: all live lanes of the warp */
    OPF_BARRIER = 1 << 2,
    OPF_BACK_EDGE = 1 << 3
};

struct vm_op {
    vm_exec_fn *exec;
    lane_op lane;          /* of a lane instruction */
    vm_slot guard;         /* predicate, or -1 as in INT32_MIN for none: see VM_NO_GUARD */
    bool guard_negated;
    uint8_t flags;
    int8_t members;        /* index of the member mask operand */
    uint8_t n_results, n_operands; /* vectors are spread out: {a,b,c,d} is four operands */
    vm_operand *operand;
    vm_slot carry;         /* the carry flag where the instruction uses it, else VM_NO_GUARD */
    int32_t target;        /* branch: index of the op */
    int32_t join;          /* branch: where the paths meet again (immediate post-dominator), or -1: at exit */
    const ptx_inst *inst;
    const void *extra;     /* of the exec function's own: tensor_op, call site, branch table ... (lives in the code's arena) */
};
#define VM_NO_GUARD INT32_MIN

/* A function ready to run. Shared by all warps, never written while running. */
struct vm_code {
    const ptx_function *function;
    vm_op *ops;
    int n_ops;
    uint32_t frame_bytes; /* registers of all lanes */
    uint8_t *constants;   /* 32-lane constants */
    uint32_t constant_bytes;
    uint32_t local_bytes, call_param_bytes; /* per lane */
};

/* A call's activation: registers of all 32 lanes. Lanes that diverged share it. */
typedef struct vm_frame {
    struct vm_frame *caller;
    const vm_code *code;
    int32_t return_op;
    uint8_t *registers; /* code->frame_bytes */
    uint8_t *call_params; /* lane-major: lane * call_param_bytes: the .param objects declared in the body */
    const struct vm_frame *param_frame; /* where .param inputs of this function are read: the caller's call_params */
    const vm_op *call_site;
    uint64_t local_base[WARP]; /* offset of this activation's .local block in each lane's local memory */
    uint32_t references; /* groups of lanes that run in it or will return to it */
} vm_frame;

struct vm_warp {
    vm_block *block;
    int index;           /* in the block */
    uint32_t live;       /* lanes that exist and have not exited */
    vm_frame *frame;     /* of the group that is running */
    uint32_t active;     /* lanes of the group that is running */
    uint8_t *local;      /* lane-major local memory: lane * local_bytes */
    uint64_t local_top[WARP]; /* first free byte of each lane's local memory (calls, alloca) */
    void *scheduler;     /* warp.c's own */
    void *async;         /* ops_async.c's own: outstanding cp.async groups */
    uint64_t steps;
};

struct vm_block {
    vm_launch *launch;
    uint32_t ctaid[3];
    uint64_t linear_index;
    uint8_t *shared;
    uint64_t shared_bytes; /* static and dynamic */
    vm_warp *warps;
    int n_warps;
    uint64_t clock;     /* the deterministic counter behind %clock: instructions issued by this block */
    uint64_t progress;  /* counts what may wake a waiting lane: barrier and mbarrier arrivals, exits, stores */
    void *barriers;     /* barrier.c's own */
    void *worker;       /* launch.c's own: the host thread that runs the block, with its arenas and report */
};

static inline void *vm_slot_ptr(const vm_frame *frame, vm_slot slot)
{
    return slot >= 0 ? frame->registers + slot : (uint8_t *)frame->code->constants + ~slot;
}

/* The value of an operand for all lanes, 32 lanes side by side, `width` bytes each. */
static inline void *vm_value(const vm_warp *warp, const vm_operand *operand)
{
    return vm_slot_ptr(warp->frame, operand->slot);
}

#endif
