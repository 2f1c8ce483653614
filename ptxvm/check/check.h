/* Checks and counters while kernels run: what their parts share. What the interpreter calls is in exec/hooks.h.
 *
 * Who does what:
 *   finding.c    the list of findings, their texts, leaks
 *   decode.c     what each op reads, writes and counts as, determined once
 *   init.c       which bytes of registers are uninitialised (init_bytes.c: how bit operations propagate them)
 *   memory.c     the same for memory; every access of a kernel passes through it
 *   race.c       who accessed which byte last, and whether the accesses are ordered
 *   sync.c       barriers, member masks, cp.async
 *   bulk.c       cp.async.bulk
 *   flight.c     registers and shared memory that wgmma and tcgen05 in flight use
 *   tmem.c       tensor memory
 *   counters.c   counts by op, and their totals; counters_print.c writes them
 *   paths.c      warps that execute every op equally often
 *
 * With checks and counters off, none of this costs anything: worker->watch is null, and warps are run by a loop
 * without checks. With init, race or sync on, one host thread runs all blocks, so that this state needs no lock,
 * and does not depend on the number of threads. */
#ifndef PTXVM_CHECK_H
#define PTXVM_CHECK_H

#include "ptxvm/exec/hooks.h"
#include "ptxvm/exec/overlap.h"

/* ---- The state per host thread, code, frame, block and region of memory ---- */

/* How an op propagates undefined bytes; all but the first may copy them. */
typedef enum {
    CHECK_COMPUTE,
    CHECK_COPY,
    CHECK_PACK,
    CHECK_SELECT,
    CHECK_BITS,
    CHECK_SHIFT,
    CHECK_FUNNEL,
    CHECK_PERMUTE,
    CHECK_EXTRACT,
    CHECK_INSERT,
    CHECK_CONVERT,
    CHECK_COMPARE,
    CHECK_SHUFFLE
} check_action;

typedef struct check_op {
    uint8_t action;   /* check_action */
    uint8_t class_of; /* ptxvm_class */
    bool counted;     /* written in the text, not added by the decoder */
    bool late;        /* may be retried: counted when done */
    bool event;       /* orders threads, or has a member mask: sync.c handles it */
    uint8_t n_uses, n_defs;
    int32_t guard;       /* register, -1: none */
    const int32_t *uses; /* registers whose bytes must be defined, or are propagated; then those written */
    const int32_t *id;   /* register of each operand; -1: none or a constant */
} check_op;

/* Registers are numbered densely here, so that the masks of a frame are contiguous. */
typedef struct check_code {
    check_op *ops;
    int n_registers;
    const int32_t *of_register; /* of the function's registers */
} check_code;

typedef struct check_frame {
    uint32_t *undefined; /* by register: lanes with an undefined byte */
    uint32_t
        *parted; /* by register: lanes whose `bytes` tell which; in other lanes all bytes are undefined */
    uint16_t (*bytes)[WARP]; /* by register: which bytes, for the lanes set in both masks */
} check_frame;

/* The scope in which an access is strong: atomic, volatile, relaxed ... */
typedef enum { REACH_NONE, REACH_BLOCK, REACH_CLUSTER, REACH_GRID } race_reach;

/* The last accesses to a word or a byte. */
typedef struct race_touch {
    uint32_t time, site, block;
    uint16_t thread; /* RACE_ASYNC: an asynchronous copy */
    uint8_t reach;   /* race_reach: strong accesses within each other's scope do not race */
    uint8_t state;   /* 0: none; RACE_SPLIT: see the cells of the bytes */
} race_touch;

#define RACE_ASYNC 0xFFFF
#define RACE_SET   1
#define RACE_SPLIT 2
#define RACE_ROWS  32

typedef struct race_cell {
    race_touch write, read[2];
} race_cell;

/* A region of memory: an allocation, or the shared memory of a block. */
typedef struct check_region {
    uint64_t bytes, first_sector, n_sectors;
    uint8_t *undefined; /* 1 for each undefined byte; null: not checked */
    uint64_t n_undefined;
    race_cell **words, **split; /* pages of cells for 4-byte words, and for their bytes if needed */
    _Atomic uint64_t *sectors;  /* bit i: accessed in this launch */
} check_region;

/* A word of shared memory that products in flight read, the last of them at `site`. */
typedef struct check_operand {
    uint32_t site;
    uint16_t count;
} check_operand;

typedef struct block_check {
    check_region *shared;
    uint32_t start; /* on the clock: earlier accesses belong to another block */
    uint32_t grid_acquired
        [1024]; /* by thread: from other blocks, itself or through others that it has synchronized with */
    uint32_t grid_latest, grid_latest_of_warp[WARP]; /* the latest of these */
    uint32_t fenced[1024];  /* by thread: what fences have passed on, once a strong write follows */
    bool has_fenced;        /* since the last strong write */
    uint32_t observed;      /* the last strong read */
    uint32_t proxied[1024]; /* by thread: the last fence.proxy.async after its writes */
    uint32_t warp_acquired[1024], warp_released[1024]; /* by thread: within its warp */
    uint32_t acquired[WARP], released[WARP];           /* by warp: towards other warps */
    uint32_t waited[WARP];  /* by warp: its first griddepcontrol.wait; 0: none yet */
    uint32_t awaited[1024]; /* by thread: lanes that it waits for at a warp-level instruction */
    struct {
        const vm_op *op;
        uint64_t address;
        uint32_t clock;
    } rows[WARP][RACE_ROWS]; /* by warp: whole rows accessed recently; see race.c */
    uint8_t *async;          /* by word of shared memory: copies in flight */
    int n_async;
    struct check_bulk *bulk; /* bulk copies out of shared memory that are under way; see bulk.c */
    int n_bulk, bulk_capacity;
    uint32_t bulk_groups[1024]; /* by thread: committed so far */
    check_operand
        *operands; /* by word of shared memory: products in flight that read it; null: not checked */
    int n_operands;
    uint32_t fences[WARP];   /* by warp: wgmma.fence executed */
    struct check_tmem *tmem; /* null: the kernel has no tcgen05 */
} block_check;

static inline vm_watch *vm_watch_of(const vm_warp *warp)
{
    return warp->block->watch;
}

static inline const check_op *check_op_of(const vm_warp *warp, const vm_op *op)
{
    const vm_code *code = warp->frame->code;
    return &code->check->ops[op - code->ops];
}

/* The same for an op that may be a copy of the code's own op. */
static inline const check_op *check_op_at(const vm_warp *warp, const vm_op *op)
{
    const vm_kernel *kernel = warp->block->launch->kernel;
    const vm_code *code = vm_code_of(kernel, op->function);
    return &code->check->ops[op->site - code->ops[0].site];
}

/* ---- init.c ---- */
void check_registers(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t active, uint32_t mask);
void check_shuffle(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t mask);
/* The undefined bytes of one lane of a register; check_set_lane_bytes sets them. */
uint32_t check_lane_bytes(const vm_frame *frame, int32_t id, int lane);
/* The name of the register with this number, for messages. */
const char *check_register_name(const vm_op *op, const check_op *info, int32_t id);
void check_set_lane_bytes(const vm_frame *frame, int32_t id, int lane, uint32_t bytes);
/* init_bytes.c: the undefined bytes of a result, from those of the sources. Returns false if the op computes
 * with them. */
bool check_propagate(const vm_warp *warp, const vm_op *op, const check_op *info, int lane);

/* ---- memory.c ---- */
const char *check_space_name(pvm_space space);

/* ---- race.c ---- */

/* The way of an access to memory. */
typedef enum { PATH_PLAIN, PATH_READ_ONLY, PATH_PROXY } race_path;

typedef struct race_access {
    vm_warp *warp;
    const vm_op *op;
    const vm_access *access; /* null: of one lane */
    uint32_t mask, all;      /* lanes to check; all lanes of the instruction */
    pvm_space space;
    const vm_block *owner; /* of shared memory */
    race_reach reach;
    race_path path;
    bool reads, writes, async;
    bool uses_object; /* an mbarrier */
} race_access;
void check_race(const race_access *a, check_region *region, int lane, uint64_t address, uint64_t offset,
                uint64_t bytes);
/* All lanes of the access; offsets are relative to base. */
void check_race_lanes(const race_access *a, check_region *region, uint64_t base);
void check_release(vm_warp *warp, uint32_t mask, bool block, bool grid);
void check_acquire(vm_warp *warp, uint32_t mask, bool block, bool grid);
/* Fences; strong writes and reads that reach other blocks; fence.proxy.async. */
void check_fence(vm_warp *warp, uint32_t mask, bool grid);
void check_signal(vm_warp *warp);
void check_observe(vm_warp *warp);
void check_proxy_fence(vm_warp *warp, uint32_t mask);
void check_free_cells(check_region *region);
/* Whether what another thread has done is ordered before what this lane does now. */
bool check_is_ordered(const vm_warp *warp, int lane, const race_touch *past);

/* ---- chain.c: launches that overlap ---- */
/* Whether a thread has waited for the launch, in front of this one, that made an access; that launch. */
bool check_has_ended(const vm_warp *warp, int lane, const race_touch *past);
const vm_past_launch *check_launch_of(const vm_warp *warp, const race_touch *past);
void check_horizon(vm_watch *watch, const vm_launch *launch);
/* Adds the other thread to the finding of a race with such an access, and reports it. */
void check_report_overlap(vm_warp *warp, const vm_op *op, int lane, const race_touch *past, bool writes,
                          bool was_write, ptxvm_finding *finding);

/* ---- sync.c ---- */
void check_events_before(vm_warp *warp, const vm_op *op, uint32_t mask);
void check_members_came(vm_warp *warp, const vm_op *op, uint32_t mask);
void check_events_after(vm_warp *warp, const vm_op *op, uint32_t mask);
/* The scope in which the access of an instruction is strong, and whether it acquires or releases. */
race_reach check_reach(const pvm_inst *inst, bool *acquires, bool *releases);
/* An access to `offset` of the shared memory of `block`. */
void check_async(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, uint64_t offset,
                 uint64_t bytes, bool write);

/* ---- bulk.c ---- */
/* Another access to memory that such a copy reads or writes. */
void check_bulk_access(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, pvm_space space,
                       uint64_t address, uint64_t bytes, bool write);

/* ---- paths.c ---- */
struct check_sums;
struct check_paths *check_paths_new(int n_sites);
void check_paths_free(struct check_paths *paths);
/* The warps of a block that has completed. Returns false if there is no memory. */
bool check_paths_add(vm_block *block);
/* Joins those of all host threads. */
bool check_paths_finish(struct check_sums *sums, const vm_launch *launch, vm_watch *const *watches, int n);

/* ---- flight.c ---- */
/* Each op that is not wgmma.mma_async: its registers must not be those of a product in flight. */
void check_flight(vm_warp *warp, const vm_op *op, const check_op *info);
void check_operand_write(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, uint64_t offset,
                         uint64_t bytes);

/* ---- tmem.c ---- */
bool check_tmem_new(vm_block *block);
void check_tmem_begin(vm_block *block);

/* ---- counters.c ---- */
void check_count(vm_warp *warp, const vm_op *op, uint32_t active, uint32_t mask);

#endif
