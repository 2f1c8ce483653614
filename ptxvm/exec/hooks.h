/* What the interpreter tells the checks and counters, and asks of them: check/ implements all of it, a file per
 * section. A launch without checks and counters has no vm_watch, and calls none of this. */
#ifndef PTXVM_HOOKS_H
#define PTXVM_HOOKS_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory_access.h"
#include "ptxvm/exec/tmem.h"

#define CHECK_FINDINGS 100
#define CHECK_TEXT     1024

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

/* A sector of global memory (+1; 0: none) that a block has touched. */
typedef struct check_recent {
    uint64_t sector, block;
} check_recent;
enum { CHECK_RECENT = 4096 };

typedef struct vm_watch {
    bool init, race, sync;
    bool flight;          /* sync, and the kernel has wgmma or tcgen05 */
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
    uint32_t horizon;               /* and at that of the first launch that may still run when it starts */
    uint32_t unwaited;              /* what is older may still go on when griddepcontrol.wait returns */
    uint32_t waited;                /* the first griddepcontrol.wait of a thread; 0: none yet */
    uint16_t moved_undefined[WARP]; /* of data moved by cp.async, ldmatrix or wmma.load: bit i is byte i */
} vm_watch;

/* ---- finding.c ---- */
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

/* The undefined bytes of the lanes, from the access that ldmatrix or wmma.load has just made; null: none. */
static inline const uint16_t *vm_check_moved_undefined(const vm_warp *warp, uint32_t mask)
{
    const vm_watch *watch = warp->block->watch;
    uint32_t any = 0;
    for (int lane = 0; watch && watch->init && lane < WARP; lane++)
        any |= mask >> lane & 1 ? watch->moved_undefined[lane] : 0;
    return any ? watch->moved_undefined : NULL;
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
/* Called when an instruction has moved undefined bytes: those of result i, by lane. */
void vm_check_moved(vm_warp *warp, const vm_op *op, int i, uint32_t mask, const uint32_t bytes[WARP]);
/* The same for moves to memory: the undefined bytes of operand i (0 if nothing is checked), and a call for a
 * byte written at the address of `lane`. */
uint32_t vm_check_moving(const vm_warp *warp, const vm_op *op, int i, int lane);
void vm_check_moved_to(vm_warp *warp, const vm_access *access, int lane, uint64_t byte);
/* Passes a parameter: registers have id >= 0, memory the bytes of its shadow. */
void vm_check_pass(const vm_frame *to, vm_slot to_slot, uint8_t *to_memory, const vm_frame *from,
                   vm_slot from_slot, const uint8_t *from_memory, uint64_t bytes, int lane);

/* ---- memory.c ---- */
struct check_region *vm_check_region_new(uint64_t address, uint64_t bytes, uint64_t extent, unsigned checks,
                                         bool counters, bool undefined);
void vm_check_region_free(struct check_region *region);
void vm_check_region_define(struct check_region *region, uint64_t offset, uint64_t bytes);
void vm_check_region_copy(struct check_region *to, uint64_t to_offset, const struct check_region *from,
                          uint64_t from_offset, uint64_t bytes);
void vm_check_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask);
void vm_check_range(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                    uint64_t bytes, vm_access_kind kind);

/* ---- sync.c ---- */
/* Lanes arrive at a barrier where the lanes `before` of their warp already are; wait there in vain; are
 * released. */
void vm_check_arrive(vm_warp *warp, const vm_op *op, uint32_t lanes, uint32_t before);
void vm_check_stuck(vm_warp *warp);
void vm_check_released(vm_warp *warp, uint32_t lanes, bool by_cluster);
/* An access that may go on next to others to the same place. */
bool vm_check_is_strong(const pvm_inst *inst);
/* `to` is in the window of the cluster. */
void vm_check_async_begin(vm_warp *warp, uint64_t to, uint64_t bytes);
void vm_check_async_landed(vm_warp *warp, const vm_op *op, int lane, uint64_t to, uint64_t bytes,
                           uint32_t undefined, bool by_thread);

/* ---- bulk.c ---- */
/* A bulk copy from .shared `from` to .global `to` begins; the thread commits its group; waits until no more than
 * `newer` groups are under way, or with `read`, have not read their sources. */
void vm_check_bulk_out(vm_warp *warp, const vm_op *op, int lane, uint64_t to, uint64_t from, uint64_t size);
void vm_check_bulk_commit(vm_warp *warp, uint32_t mask);
void vm_check_bulk_wait(vm_warp *warp, uint32_t mask, uint32_t newer, bool read);
/* A copy to shared memory, or from it, is under way when the block ends. */
void vm_check_bulk_end(vm_block *block);
void vm_check_bulk_pending(vm_warp *warp, const vm_op *op, int lane);
/* A phase of an mbarrier ends while copies that complete on it are under way. */
void vm_check_early_phase(vm_warp *warp, const vm_op *op, int lane, int copies);
/* An mbarrier that is in use is initialised or invalidated; what it has and waits for. */
void vm_check_mbarrier(vm_warp *warp, const vm_op *op, int lane, const char *what, uint64_t arrived,
                       int64_t tx, int copies);

/* ---- flight.c ---- */
bool vm_check_flight_new(vm_warp *warp, vm_frame *frame);
void vm_check_flight_clear(vm_frame *frame);
/* A product starts (adds_to_d: it reads d); it no longer uses the registers of operands first to first + n - 1; a fence;
 * the registers of its results end with their function. */
void vm_check_flight_begin(vm_warp *warp, const vm_op *op, bool adds_to_d);
void vm_check_flight_end(vm_warp *warp, vm_frame *frame, const vm_op *op, int first, int n);
void vm_check_flight_fence(vm_warp *warp);
void vm_check_flight_lost(vm_warp *warp, const vm_op *op);
/* A product begins or ends to read bytes of shared memory (a multiple of 4); a write to such bytes. */
void vm_check_operand(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, uint64_t at,
                      uint64_t bytes, bool begin);
/* A tcgen05.ld starts; the lanes in which its i-th register gets what was never written. */
void vm_check_load_begin(vm_warp *warp, const vm_op *op);
void vm_check_load_undefined(vm_warp *warp, vm_frame *frame, const vm_op *op, int i, uint32_t lanes);

/* ---- chain.c ---- */
/* A griddepcontrol.wait of a launch that began before the one in front of it had ended. */
void vm_check_grid_wait(vm_warp *warp);

/* ---- tmem.c ---- */
/* A tcgen05 instruction begins to use a region, and is complete; fences and commits. */
void vm_check_tmem_begin(vm_warp *warp, const vm_op *op, int lane, const tmem_region *region);
void vm_check_tmem_end(vm_warp *warp, const vm_op *op, int lane, const tmem_region *region);
void vm_check_tmem_fence(vm_warp *warp, bool before);
void vm_check_tmem_commit(vm_warp *warp, uint32_t mask);
bool vm_check_tmem_is_undefined(const vm_block *block, uint32_t lane, uint32_t column, uint32_t columns);
/* The block ends, and with it something in flight. */
void vm_check_tmem_pending(vm_warp *warp, const vm_op *op, int lane);
/* Allocation; one that is larger than the last; what is still allocated when the block ends. */
void vm_check_tmem_alloc(vm_block *block, uint32_t column, uint32_t columns);
void vm_check_tmem_dealloc(vm_warp *warp, const vm_op *op, uint32_t column, uint32_t columns);
void vm_check_tmem_growth(vm_warp *warp, const vm_op *op, uint32_t columns, uint32_t last);
void vm_check_tmem_leak(vm_block *block, uint32_t columns, const vm_op *first);

/* ---- counters.c ---- */
void check_count_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask);
void check_counters_begin(ptxvm *vm);
bool check_counters_finish(vm_launch *launch, vm_watch *const *watches, int n, bool complete);
void check_counters_free(ptxvm *vm);

#endif
