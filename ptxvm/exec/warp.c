/* Runs a warp: groups of lanes, one at a time, that split at branches and meet again at their joins.
 *
 * A branch that splits a group creates a join at its immediate post-dominator; a group that reaches its own join
 * waits there for the others. That alone could hang if lanes wait for each other (a spin lock within a warp), so
 * lanes at a join are released early if the rest of their warp only spins, or if nothing else can make progress. */
#include "warp.h"

#include <string.h>

#include "decode.h"
#include "launch.h"
#include "ptxvm/exec/hooks.h"

#define SPIN_COST  1024 /* steps that one iteration of a spin loop counts for */
#define SPIN_EDGES 16   /* iterations that make a slice count as spinning */
/* Lanes waiting at a join are released after this many slices: of spinning, or of any other work. */
#define SPIN_PATIENCE  2
#define SLICE_PATIENCE 32

void vm_note_assumed(const vm_warp *warp, const vm_op *op)
{
    warp->block->worker->sites[op->site] |= SITE_ASSUMED;
}

/* ---- Groups and joins ---- */

void vm_group_push(vm_warp *warp, vm_group group)
{
    vm_scheduler *s = warp->scheduler;
    s->groups[s->n_groups++] = group;
}

vm_join *vm_join_new(vm_warp *warp, vm_join join)
{
    vm_worker *worker = warp->block->worker;
    vm_join *j = worker->free_joins;
    if (j)
        worker->free_joins = j->parent;
    else if (!(j = vm_pool_alloc(worker->pool, sizeof *j)))
        return NULL;
    *j = join;
    return j;
}

static void free_join(vm_warp *warp, vm_join *join)
{
    vm_worker *worker = warp->block->worker;
    if (join->callee)
        vm_frame_free(warp, join->callee);
    join->parent = worker->free_joins;
    worker->free_joins = join;
}

void vm_settle(vm_warp *warp, vm_join *join)
{
    if (join->arrived != join->expected)
        return;
    if (join->arrived)
        vm_group_push(
            warp,
            (vm_group){.mask = join->arrived, .pc = join->pc, .frame = join->frame, .join = join->parent});
    free_join(warp, join);
}

void vm_leave(vm_warp *warp, uint32_t lanes, vm_join *from, const vm_join *until)
{
    for (vm_join *join = from, *parent; join != until; join = parent) {
        parent = join->parent;
        join->expected &= ~lanes;
        vm_settle(warp, join);
    }
}

bool vm_split(vm_warp *warp, uint32_t aside, int32_t aside_pc, int32_t stay_pc, int32_t join_pc)
{
    vm_scheduler *s = warp->scheduler;
    vm_join *join = s->join;
    if (join_pc >= 0 && !(join && join->pc == join_pc && join->frame == warp->frame)) {
        join = vm_join_new(
            warp, (vm_join){.frame = warp->frame, .pc = join_pc, .expected = warp->active, .parent = join});
        if (!join)
            return false;
        s->join = join;
    }
    if (aside_pc == join_pc)
        join->arrived |= aside;
    else
        vm_group_push(warp, (vm_group){.mask = aside, .pc = aside_pc, .frame = warp->frame, .join = join});
    warp->active &= ~aside;
    s->pc = stay_pc;
    return true;
}

/* The running group, at its join, joins those waiting there. Returns true if all have arrived, and continue
 * together. */
static bool arrive(vm_warp *warp)
{
    vm_scheduler *s = warp->scheduler;
    vm_join *join = s->join;
    join->arrived |= warp->active;
    if (join->arrived != join->expected)
        return false;
    warp->active = join->arrived;
    s->join = join->parent;
    s->idle_slices = 0;
    free_join(warp, join);
    return true;
}

bool vm_warp_release(vm_warp *warp)
{
    vm_scheduler *s = warp->scheduler;
    for (int i = s->n_groups - 1; i >= 0; i--)
        for (vm_join *join = s->groups[i].join; join; join = join->parent)
            if (join->arrived) {
                vm_group_push(warp, (vm_group){.mask = join->arrived,
                                               .pc = join->pc,
                                               .frame = join->frame,
                                               .join = join->parent});
                join->expected &= ~join->arrived;
                join->arrived = 0;
                warp->released_early = true;
                return true;
            }
    return false;
}

const vm_op *vm_warp_place(const vm_warp *warp, uint32_t *mask)
{
    const vm_scheduler *s = warp->scheduler;
    if (!s->n_groups)
        return NULL;
    const vm_group *group = &s->groups[s->n_groups - 1];
    *mask = group->mask;
    return &group->frame->code->ops[group->pc];
}

/* ---- The choice of the next group ---- */

static bool is_ready(const vm_warp *warp, const vm_group *group)
{
    switch (group->state) {
    case GROUP_READY:
        return true;
    case GROUP_BLOCKED:
        return group->progress != warp->block->progress;
    default:
        return vm_members_ready(warp, group);
    }
}

static vm_group take(vm_scheduler *s, int index)
{
    vm_group group = s->groups[index];
    for (int i = index + 1; i < s->n_groups; i++)
        s->groups[i - 1] = s->groups[i];
    s->n_groups--;
    return group;
}

/* Groups that happen to be at the same place with the same joins continue as one. */
static void merge_with(vm_scheduler *s, vm_group *group)
{
    for (int i = s->n_groups - 1; i >= 0; i--) {
        const vm_group *other = &s->groups[i];
        if (other->state == GROUP_READY && other->pc == group->pc && other->frame == group->frame &&
            other->join == group->join)
            group->mask |= take(s, i).mask;
    }
}

static bool pick(vm_warp *warp)
{
    vm_scheduler *s = warp->scheduler;
    bool waiting = false;
    for (int i = s->n_groups - 1; i >= 0; i--) {
        waiting |= s->groups[i].state == GROUP_MEMBERS;
        if (!is_ready(warp, &s->groups[i]))
            continue;
        vm_group group = take(s, i);
        if (group.state == GROUP_READY && s->n_groups)
            merge_with(s, &group);
        warp->active = group.mask;
        warp->frame = group.frame;
        s->pc = group.pc;
        s->join = group.join;
        return true;
    }
    return waiting && vm_warp_release(warp) && pick(warp);
}

/* Puts the running group back: after the others if it should let them go first. */
static void put_back(vm_warp *warp, vm_group_state state, uint32_t members, bool last)
{
    vm_scheduler *s = warp->scheduler;
    vm_group group = {.mask = warp->active,
                      .pc = s->pc,
                      .frame = warp->frame,
                      .join = s->join,
                      .state = state,
                      .progress = warp->block->progress,
                      .members = members};
    vm_group_push(warp, group);
    for (int i = s->n_groups - 1; last && i > 0; i--) {
        s->groups[i] = s->groups[i - 1];
        s->groups[i - 1] = group;
    }
}

/* ---- Running ---- */

/* Counts the instructions since the last time, up to but excluding `end`. */
static inline void count_steps(vm_warp *warp, const vm_op *end)
{
    uint64_t n = (uint64_t)(end - warp->segment);
    warp->block->clock += n;
    warp->block->worker->thread_instructions += n * warp->scheduler->n_active;
    warp->segment = end;
}

typedef enum {
    RUN_GONE,  /* the group is waiting, or its lanes have exited: pick another */
    RUN_SLICE, /* its time slice is over */
    RUN_FAULT
} run_result;

static run_result no_memory(vm_warp *warp, const vm_op *op)
{
    vm_fault(warp, op, __builtin_ctz(warp->active), PTXVM_ERROR_MEMORY, "the host has no memory left");
    return RUN_FAULT;
}

/* The lanes outside mask continue after the op; the running group then consists of those that wait at it. */
static bool set_aside_unguarded(vm_warp *warp, int32_t pc, uint32_t mask)
{
    uint32_t rest = warp->active & ~mask;
    warp->scheduler->pc = pc;
    return !rest || vm_split(warp, rest, pc + 1, pc, pc + 1);
}

static run_result wait_here(vm_warp *warp, const vm_op *op, uint32_t mask, vm_group_state state,
                            uint32_t members)
{
    int32_t pc = (int32_t)(op - warp->frame->code->ops);
    if (!set_aside_unguarded(warp, pc, mask))
        return no_memory(warp, op);
    put_back(warp, state, members, true);
    return RUN_GONE;
}

static bool diverge(vm_warp *warp, const vm_op *op, uint32_t taken)
{
    int32_t next = (int32_t)(op - warp->frame->code->ops) + 1;
    if (next == op->join)
        return vm_split(warp, warp->active & ~taken, next, op->target, op->join);
    return vm_split(warp, taken, op->target, next, op->join);
}

static const vm_op *join_op(const vm_warp *warp)
{
    const vm_join *join = warp->scheduler->join;
    return join && join->frame == warp->frame ? &warp->frame->code->ops[join->pc] : NULL;
}

typedef union {
    void *d[VM_LANE_SLOTS];
    const void *s[VM_LANE_SLOTS];
} lane_pointers;

static inline void find_pointers(lane_pointers *p, const vm_op *op, uint8_t *base)
{
    for (int i = 0; i < VM_LANE_SLOTS; i++)
        p->d[i] = base + op->slots[i];
}

static void run_lane_mode(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    lane_pointers p;
    if (op->flags & OPF_INEXACT)
        warp->block->worker->sites[op->site] |= SITE_EXECUTED;
    if (mask != warp->frame->lanes) {
        vm_run_lane_partly(warp, op, mask);
        return;
    }
    find_pointers(&p, op, warp->frame->registers);
    lanes_run(&op->lane, p.d, p.s + op->n_d, op->inst);
}

/* The time slice is over at a back edge, or the loop seems to wait for others. */
static bool slice_is_over(vm_warp *warp, const vm_op *op)
{
    vm_scheduler *s = warp->scheduler;
    if (op->flags & OPF_SPIN) {
        s->slice_end -= SPIN_COST;
        s->spin_edges++;
    }
    return (int64_t)warp->block->clock >= s->slice_end;
}

/* ---- The loop ---- */

/* A group on its way: what the loop needs in registers. */
typedef struct running {
    vm_warp *warp;
    const vm_op *ops, *op, *join;
    uint8_t *base;
    uint32_t active, full;
    run_result end; /* for GO_END */
} running;

/* What comes after an instruction. */
typedef enum {
    GO_ON,     /* the next one */
    GO_THERE,  /* running.op, which it has set */
    GO_RELOAD, /* the group, its place or its frame have changed */
    GO_END
} go;

#define INLINE static inline __attribute__((always_inline))

INLINE void load_group(running *r, vm_warp *warp)
{
    vm_scheduler *s = warp->scheduler;
    r->warp = warp;
    r->ops = warp->frame->code->ops;
    warp->segment = r->op = r->ops + s->pc;
    r->base = warp->frame->registers;
    r->active = warp->active;
    s->n_active = (uint32_t)__builtin_popcount(r->active);
    r->full = warp->frame->lanes;
    r->join = join_op(warp);
}

INLINE go end_with(running *r, run_result end)
{
    r->end = end;
    return GO_END;
}

INLINE go end_slice_here(running *r)
{
    put_back(r->warp, GROUP_READY, 0, true);
    return end_with(r, RUN_SLICE);
}

/* The lanes at whose join the group is: all of them go on together, or this group has ended. */
INLINE go run_join(running *r)
{
    count_steps(r->warp, r->op);
    r->warp->scheduler->pc = (int32_t)(r->op - r->ops);
    return arrive(r->warp) ? GO_RELOAD : end_with(r, RUN_GONE);
}

INLINE uint32_t guarded(const running *r)
{
    if (r->op->guard == VM_NO_SLOT)
        return r->active;
    const uint32_t p = *(const uint32_t *)(const void *)(r->base + r->op->guard);
    return r->active & (r->op->guard_negated ? ~p : p);
}

INLINE go run_lanes(const running *r, uint32_t mask)
{
    const vm_op *op = r->op;
    lane_pointers p;
    if (mask == r->full) {
        find_pointers(&p, op, r->base);
        op->lane.run(p.d, p.s + op->n_d, op->inst);
    } else {
        vm_run_lane_partly(r->warp, op, mask);
    }
    return GO_ON;
}

INLINE go run_branch(running *r, uint32_t mask)
{
    const vm_op *op = r->op;
    const bool all = mask == r->active;
    count_steps(r->warp, op + 1);
    if (!all && op->target == op + 1 - r->ops)
        return GO_ON;
    if (all)
        r->warp->scheduler->pc = op->target;
    else if (!diverge(r->warp, op, mask))
        return end_with(r, no_memory(r->warp, op));
    if (op->flags & OPF_BACK_EDGE && slice_is_over(r->warp, op))
        return end_slice_here(r);
    if (!all)
        return GO_RELOAD;
    r->warp->segment = r->op = r->ops + op->target;
    return GO_THERE;
}

/* After an instruction that the tables of exec/ops_*.c carry out. */
INLINE go run_result_of(running *r, vm_result result, uint32_t mask)
{
    vm_scheduler *s = r->warp->scheduler;
    switch (result) {
    case VM_NEXT:
        return GO_ON;
    case VM_BRANCHED:
        return !r->warp->active                                ? end_with(r, RUN_GONE)
               : (int64_t)r->warp->block->clock < s->slice_end ? GO_RELOAD
                                                               : end_slice_here(r);
    case VM_BLOCK:
        count_steps(r->warp, r->op);
        return end_with(r, wait_here(r->warp, r->op, mask, GROUP_BLOCKED, 0));
    case VM_YIELD:
        count_steps(r->warp, r->op + 1);
        s->pc = (int32_t)(r->op - r->ops) + 1;
        s->spin_edges = SPIN_EDGES;
        return end_slice_here(r);
    default:
        return end_with(r, RUN_FAULT);
    }
}

INLINE void check_after(const running *r, vm_result result, uint32_t mask, bool watched)
{
    if (watched && (result == VM_NEXT || result == VM_YIELD))
        vm_check_after(r->warp, r->op, mask);
}

/* An instruction for which lanes wait until all members are there. */
INLINE go run_wait(running *r, uint32_t mask, bool watched)
{
    uint32_t there = mask, members;
    r->warp->scheduler->pc = (int32_t)(r->op - r->ops);
    const vm_result result = vm_run_members(r->warp, r->op, &there, &members);
    if (result == VM_BLOCK) {
        count_steps(r->warp, r->op);
        return end_with(r, wait_here(r->warp, r->op, there, GROUP_MEMBERS, members));
    }
    if (result == VM_NEXT && r->warp->active != r->active) { /* lanes with another mask were split off */
        r->warp->scheduler->pc++;
        return GO_RELOAD;
    }
    check_after(r, result, mask, watched);
    return run_result_of(r, result, mask);
}

INLINE go run_exec(running *r, uint32_t mask, bool watched)
{
    if (r->op->kind == VM_KIND_CONTROL) {
        r->warp->scheduler->pc = (int32_t)(r->op - r->ops);
        count_steps(r->warp, r->op + 1);
    }
    const vm_result result = r->op->exec(r->warp, r->op, mask);
    check_after(r, result, mask, watched);
    return run_result_of(r, result, mask);
}

INLINE go run_op(running *r, uint32_t mask, bool watched)
{
    switch ((vm_kind)r->op->kind) {
    case VM_KIND_LANE:
        return run_lanes(r, mask);
    case VM_KIND_LANE_MODE:
        run_lane_mode(r->warp, r->op, mask);
        return GO_ON;
    case VM_KIND_BRANCH:
        return run_branch(r, mask);
    default:
        break;
    }
    if (r->op->flags & OPF_INEXACT)
        r->warp->block->worker->sites[r->op->site] |= SITE_EXECUTED;
    return r->op->kind == VM_KIND_WAIT ? run_wait(r, mask, watched) : run_exec(r, mask, watched);
}

/* `watched` is a constant: the loop is compiled once without any checks, and once with them. */
INLINE run_result run_group(vm_warp *warp, bool watched)
{
    running r;
    load_group(&r, warp);
    for (;;) {
        go next;
        if (r.op == r.join) {
            next = run_join(&r);
        } else {
            const uint32_t mask = guarded(&r);
            if (watched)
                vm_check_before(warp, r.op, r.active, mask);
            next = mask ? run_op(&r, mask, watched) : GO_ON;
        }
        if (next == GO_ON)
            r.op++;
        else if (next == GO_RELOAD)
            load_group(&r, warp);
        else if (next == GO_END)
            return r.end;
    }
}

static run_result run_plain(vm_warp *warp)
{
    return run_group(warp, false);
}

static run_result run_watched(vm_warp *warp)
{
    return run_group(warp, true);
}

/* Lanes at a join that the others may be waiting for are released after some slices. */
static vm_warp_state end_slice(vm_warp *warp)
{
    vm_scheduler *s = warp->scheduler;
    bool spins = s->spin_edges >= SPIN_EDGES && !warp->wrote;
    s->idle_slices += spins ? SLICE_PATIENCE / SPIN_PATIENCE : 1;
    if (s->idle_slices >= SLICE_PATIENCE) {
        s->idle_slices = 0;
        vm_warp_release(warp);
    }
    return spins ? WARP_SPIN : WARP_SLICE;
}

vm_warp_state vm_warp_run(vm_warp *warp, uint64_t steps)
{
    vm_scheduler *s = warp->scheduler;
    s->slice_end = (int64_t)(warp->block->clock + steps);
    s->spin_edges = 0;
    warp->wrote = false;
    while (pick(warp)) {
        run_result result = warp->block->watch ? run_watched(warp) : run_plain(warp);
        if (result == RUN_SLICE)
            return end_slice(warp);
        if (result == RUN_FAULT)
            return WARP_FAULT;
    }
    return warp->live ? WARP_BLOCKED : WARP_DONE;
}

/* ---- Start and end ---- */

bool vm_warp_begin(vm_warp *warp, const vm_code *entry)
{
    vm_scheduler *s = warp->scheduler;
    vm_frame *frame = vm_frame_new(warp, entry);
    if (!frame)
        return false;
    frame->lanes = warp->live = warp->existing;
    warp->released_early = false;
    *s = (vm_scheduler){.root = frame};
    vm_group_push(warp, (vm_group){.mask = warp->live, .frame = frame});
    warp->frame = frame;
    for (int lane = 0; lane < WARP; lane++)
        warp->local_top[lane] = 0;
    if (!vm_local_grow(warp, entry->local_bytes))
        return false;
    uint64_t *base = vm_slot_ptr(frame, entry->local_base);
    for (int lane = 0; lane < WARP; lane++) {
        base[lane] = 0;
        warp->local_top[lane] = entry->local_bytes;
        if (entry->local_bytes)
            memset(warp->local + (uint64_t)lane * warp->local_stride, 0, entry->local_bytes);
        if (entry->local_bytes && warp->local_undefined)
            memset(warp->local_undefined + (uint64_t)lane * warp->local_stride, 1, entry->local_bytes);
    }
    return true;
}

void vm_warp_end(vm_warp *warp)
{
    vm_frame_free(warp, warp->scheduler->root);
}
