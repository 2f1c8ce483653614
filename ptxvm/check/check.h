/* Checks and counters while kernels run.
 *
 * Who does what:
 *   finding.c    the list of findings, their texts, leaks
 *   decode.c     what each op reads, writes and counts as, determined once
 *   init.c       which bytes of registers are uninitialised (init_bytes.c: how bit operations propagate them)
 *   memory.c     the same for memory; every access of a kernel passes through it
 *   race.c       who accessed which byte last, and whether the accesses are ordered
 *   sync.c       barriers, member masks, cp.async
 *   bulk.c       cp.async.bulk
 *   flight.c     registers and shared memory that wgmma in flight use
 *   counters.c   counts by op, and their totals; counters_print.c writes them
 *   paths.c      warps that execute every op equally often
 *
 * With checks and counters off, none of this costs anything: worker->watch is null, and warps are run by a loop
 * without checks. With init, race or sync on, one host thread runs all blocks, so that this state needs no lock,
 * and does not depend on the number of threads. */
#ifndef PTXVM_CHECK_H
#define PTXVM_CHECK_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory_access.h"

#define CHECK_FINDINGS 100
#define CHECK_TEXT     1024

/* ---- finding.c ---- */

/* The state of a device: the findings and counters of its last launch, and the clock of the race check. */
typedef struct vm_checks {
    ptxvm_finding findings[CHECK_FINDINGS];
    struct {
        int site, other_site;
        char text[CHECK_TEXT];
    } keys[CHECK_FINDINGS];
    int n;
    uint64_t total;
    ptxvm_status status; /* of the first finding */
    uint32_t clock;      /* advances whenever threads are ordered; see race.c */
    struct check_sums *sums;
    const ptxvm_module *module; /* of the last launch */
} vm_checks;

void vm_checks_clear(ptxvm *vm);
void vm_checks_free(ptxvm *vm);
/* Called when a module is unloaded: drops the findings and counters of its kernels. */
void vm_checks_forget(ptxvm *vm, const ptxvm_module *module);

/* Adds a finding: `detail` describes it, the place comes from the warp. other_site: for a race, else -1. */
void vm_check_report(vm_warp *warp, const vm_op *op, int lane, const ptxvm_finding *detail, int other_site,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Adds the fault that ended the launch. */
void vm_check_add_fault(ptxvm *vm, const ptxvm_finding *fault, const char *text);
/* Kernel, function, lines, block and thread of a finding. */
void vm_check_place(const vm_warp *warp, const vm_op *op, int lane, ptxvm_finding *finding);

/* ---- The state per host thread, code, frame, block and region of memory ---- */

/* A sector of global memory (+1; 0: none) that a block has touched. */
typedef struct check_recent {
    uint64_t sector, block;
} check_recent;
enum { CHECK_RECENT = 4096 };

typedef struct vm_watch {
    bool init, race, sync;
    bool flight;          /* sync, and the kernel has wgmma */
    bool same;            /* race: stores of the same value are reported, too */
    ptxvm_counts *counts; /* by site; null: not counted */
    check_recent *recent; /* with counts: CHECK_RECENT of them */
    uint32_t **released;  /* race: by block and thread: when it last released to others; null: never */
    uint64_t n_blocks;
    bool blind;                     /* race: no memory for one of these: blocks are taken to be ordered */
    const vm_op *outside;           /* init: the last shfl that read a lane that did not take part */
    struct check_paths *paths;      /* null: not counted */
    bool out_of_memory;             /* some are missing */
    uint32_t start;                 /* race: the clock at the start of the launch */
    uint16_t moved_undefined[WARP]; /* of data moved by cp.async, ldmatrix or wmma.load: bit i is byte i */
} vm_watch;

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
typedef enum { REACH_NONE, REACH_BLOCK, REACH_GRID } race_reach;

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

/* A word of shared memory that wgmma in flight read, the last of them at `site`. */
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
    uint32_t fences[WARP]; /* by warp: wgmma.fence executed */
} block_check;

static inline vm_watch *vm_watch_of(const vm_warp *warp)
{
    return warp->block->watch;
}

/* The undefined bytes of the lanes, from the access that ldmatrix or wmma.load has just made; null: none. */
static inline const uint16_t *vm_check_moved_undefined(const vm_warp *warp, uint32_t mask)
{
    const vm_watch *watch = warp->block->watch;
    uint32_t any = 0;
    for (int lane = 0; watch && watch->init && lane < WARP; lane++)
        any |= mask >> lane & 1 ? watch->moved_undefined[lane] : 0;
    return any ? watch->moved_undefined : NULL;
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

/* ---- launches: watch.c ---- */
vm_watch *vm_watch_new(vm_launch *launch, bool *ok); /* null and *ok: nothing is checked or counted */
void vm_watch_free(vm_watch *watch);
bool vm_check_block_new(vm_block *block);
void vm_check_block_begin(vm_block *block);
bool vm_check_block_end(vm_block *block); /* it has completed; false: no memory */
void vm_check_block_free(vm_block *block);
bool vm_checks_need_one_thread(const ptxvm *vm);
/* Called for each op of a warp before it runs: `active` is the running group, `mask` those of it whose guard
 * is true. */
void vm_check_before(vm_warp *warp, const vm_op *op, uint32_t active, uint32_t mask);
/* And after it, for ops that may be retried. */
void vm_check_after(vm_warp *warp, const vm_op *op, uint32_t mask);
/* A warp-level instruction with all its lanes; not `alike`: they are at different places. */
void vm_check_members(vm_warp *warp, const vm_op *op, uint32_t mask, bool alike);
/* Lanes of the running group that cannot execute one yet: they wait for `missing`. */
void vm_check_await(vm_warp *warp, const vm_op *op, uint32_t lanes, uint32_t missing);
/* The lanes of a shfl, which has the operands of all of them, that read one that does not execute it; and their
 * results, which are undefined. */
uint32_t vm_check_outside(vm_warp *warp, const vm_op *op, uint32_t mask);
void vm_check_undefined(vm_warp *warp, vm_frame *frame, const vm_op *op, uint32_t lanes);

/* ---- decode.c ---- */
bool vm_check_decode(vm_code *code);

/* ---- init.c ---- */
bool vm_check_frame_new(vm_warp *warp, vm_frame *frame);
void vm_check_frame_begin(vm_frame *frame);
void check_registers(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t active, uint32_t mask);
void check_shuffle(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t mask);
/* The undefined bytes of one lane of a register; check_set_lane_bytes sets them. */
uint32_t check_lane_bytes(const vm_frame *frame, int32_t id, int lane);
/* The name of the register with this number, for messages. */
const char *check_register_name(const vm_op *op, const check_op *info, int32_t id);
/* Called when an instruction has moved undefined bytes: those of result i, by lane. */
void vm_check_moved(vm_warp *warp, const vm_op *op, int i, uint32_t mask, const uint32_t bytes[WARP]);
/* The same for moves to memory: the undefined bytes of operand i (0 if nothing is checked), and a call for a
 * byte written at the address of `lane`. */
uint32_t vm_check_moving(const vm_warp *warp, const vm_op *op, int i, int lane);
void vm_check_moved_to(vm_warp *warp, const vm_access *access, int lane, uint64_t byte);
void check_set_lane_bytes(const vm_frame *frame, int32_t id, int lane, uint32_t bytes);
/* Passes a parameter: registers have id >= 0, memory the bytes of its shadow. */
void vm_check_pass(const vm_frame *to, vm_slot to_slot, uint8_t *to_memory, const vm_frame *from,
                   vm_slot from_slot, const uint8_t *from_memory, uint64_t bytes, int lane);
/* init_bytes.c: the undefined bytes of a result, from those of the sources. Returns false if the op computes
 * with them. */
bool check_propagate(const vm_warp *warp, const vm_op *op, const check_op *info, int lane);

/* ---- memory.c ---- */
check_region *vm_check_region_new(uint64_t address, uint64_t bytes, uint64_t extent, unsigned checks,
                                  bool counters, bool undefined);
void vm_check_region_free(check_region *region);
void vm_check_region_define(check_region *region, uint64_t offset, uint64_t bytes);
void vm_check_region_copy(check_region *to, uint64_t to_offset, const check_region *from,
                          uint64_t from_offset, uint64_t bytes);
void vm_check_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask);
void vm_check_range(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                    uint64_t bytes, vm_access_kind kind);
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

/* ---- sync.c ---- */
void check_events_before(vm_warp *warp, const vm_op *op, uint32_t mask);
void check_members_came(vm_warp *warp, const vm_op *op, uint32_t mask);
void check_events_after(vm_warp *warp, const vm_op *op, uint32_t mask);
/* The scope in which the access of an instruction is strong, and whether it acquires or releases. */
race_reach check_reach(const pvm_inst *inst, bool *acquires, bool *releases);
/* Lanes arrive at a barrier where the lanes `before` of their warp already are; wait there in vain; are
 * released. */
void vm_check_arrive(vm_warp *warp, const vm_op *op, uint32_t lanes, uint32_t before);
void vm_check_stuck(vm_warp *warp);
void vm_check_released(vm_warp *warp, uint32_t lanes);
void vm_check_async_begin(vm_warp *warp, int lane, uint64_t to, uint64_t bytes);
void vm_check_async_landed(vm_warp *warp, const vm_op *op, int lane, uint64_t to, uint64_t bytes,
                           uint32_t undefined, bool by_thread);
void check_async(vm_warp *warp, const vm_op *op, int lane, uint64_t offset, uint64_t bytes, bool write);

/* ---- bulk.c ---- */
/* A bulk copy from .shared `from` to .global `to` begins; the thread commits its group; waits until no more than
 * `newer` groups are under way, or with `read`, have not read their sources. */
void vm_check_bulk_out(vm_warp *warp, const vm_op *op, int lane, uint64_t to, uint64_t from, uint64_t size);
void vm_check_bulk_commit(vm_warp *warp, uint32_t mask);
void vm_check_bulk_wait(vm_warp *warp, uint32_t mask, uint32_t newer, bool read);
/* Another access to memory that such a copy reads or writes. */
void check_bulk_access(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                       uint64_t bytes, bool write);
/* A copy to shared memory, or from it, is under way when the block ends. */
void vm_check_bulk_end(vm_block *block);
void vm_check_bulk_pending(vm_warp *warp, const vm_op *op, int lane);
/* A phase of an mbarrier ends while copies that complete on it are under way. */
void vm_check_early_phase(vm_warp *warp, const vm_op *op, int lane, int copies);
/* An mbarrier that is in use is initialised or invalidated; what it has and waits for. */
void vm_check_mbarrier(vm_warp *warp, const vm_op *op, int lane, const char *what, uint64_t arrived, int64_t tx,
                       int copies);

/* ---- paths.c ---- */
struct check_sums;
struct check_paths *check_paths_new(int n_sites);
void check_paths_free(struct check_paths *paths);
/* The warps of a block that has completed. Returns false if there is no memory. */
bool check_paths_add(vm_block *block);
/* Joins those of all host threads. */
bool check_paths_finish(struct check_sums *sums, const vm_launch *launch, vm_watch *const *watches, int n);
/* ---- flight.c ---- */
bool vm_check_flight_new(vm_warp *warp, vm_frame *frame);
void vm_check_flight_clear(vm_frame *frame);
/* Each op that is not wgmma.mma_async: its registers must not be those of a product in flight. */
void check_flight(vm_warp *warp, const vm_op *op, const check_op *info);
/* A product starts (adds_to_d: it reads d); it no longer uses the registers of operands first to first + n - 1; a fence;
 * the registers of its results end with their function. */
void vm_check_flight_begin(vm_warp *warp, const vm_op *op, bool adds_to_d);
void vm_check_flight_end(vm_warp *warp, vm_frame *frame, const vm_op *op, int first, int n);
void vm_check_flight_fence(vm_warp *warp);
void vm_check_flight_lost(vm_warp *warp, const vm_op *op);
/* A product begins or ends to read bytes of shared memory (a multiple of 4); a write to such bytes. */
void vm_check_operand(vm_warp *warp, const vm_op *op, uint64_t at, uint64_t bytes, bool begin);
void check_operand_write(vm_warp *warp, const vm_op *op, int lane, uint64_t offset, uint64_t bytes);

/* ---- counters.c ---- */
void check_count(vm_warp *warp, const vm_op *op, uint32_t active, uint32_t mask);
void check_count_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask);
void check_counters_begin(ptxvm *vm);
bool check_counters_finish(vm_launch *launch, vm_watch *const *watches, int n, bool complete);
void check_counters_free(ptxvm *vm);

#endif
