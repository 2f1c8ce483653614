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

/* `watched` is a constant: the loop is compiled once without any checks, and once with them. */
static inline __attribute__((always_inline)) run_result run_group(vm_warp *warp, bool watched)
{
    vm_scheduler *s = warp->scheduler;
    const vm_op *ops, *op, *join;
    uint8_t *base;
    uint32_t active, full, members, there;

reload: /* the group, its place or its frame have changed */
    ops = warp->frame->code->ops;
    op = ops + s->pc;
    warp->segment = op;
    base = warp->frame->registers;
    active = warp->active;
    s->n_active = (uint32_t)__builtin_popcount(active);
    full = warp->frame->lanes;
    join = join_op(warp);
    goto check_join;

    for (;;) {
        uint32_t mask = active;
        if (op->guard != VM_NO_SLOT) {
            uint32_t p = *(const uint32_t *)(const void *)(base + op->guard);
            mask &= op->guard_negated ? ~p : p;
            if (watched)
                vm_check_before(warp, op, active, mask);
            if (!mask)
                goto next;
        } else if (watched)
            vm_check_before(warp, op, active, mask);
        switch ((vm_kind)op->kind) {
        case VM_KIND_LANE:
            if (mask == full) {
                lane_pointers p;
                find_pointers(&p, op, base);
                op->lane.run(p.d, p.s + op->n_d, op->inst);
            } else
                vm_run_lane_partly(warp, op, mask);
            goto next;

        case VM_KIND_LANE_MODE:
            run_lane_mode(warp, op, mask);
            goto next;

        case VM_KIND_BRANCH:
            count_steps(warp, op + 1);
            if (mask != active) {
                if (op->target == op + 1 - ops)
                    goto next;
                if (!diverge(warp, op, mask))
                    return no_memory(warp, op);
                if (!(op->flags & OPF_BACK_EDGE) || !slice_is_over(warp, op))
                    goto reload;
            } else {
                s->pc = op->target;
                if (!(op->flags & OPF_BACK_EDGE) || !slice_is_over(warp, op)) {
                    warp->segment = op = ops + op->target;
                    goto check_join;
                }
            }
            put_back(warp, GROUP_READY, 0, true);
            return RUN_SLICE;

        case VM_KIND_WAIT:
        case VM_KIND_CONTROL:
        case VM_KIND_EXEC:
            break;
        }

        vm_result result;
        if (op->flags & OPF_INEXACT)
            warp->block->worker->sites[op->site] |= SITE_EXECUTED;
        if (op->kind == VM_KIND_WAIT) {
            s->pc = (int32_t)(op - ops);
            there = mask;
            result = vm_run_members(warp, op, &there, &members);
            if (result == VM_BLOCK) {
                count_steps(warp, op);
                return wait_here(warp, op, there, GROUP_MEMBERS, members);
            }
            if (result == VM_NEXT && warp->active != active) { /* lanes with another mask were split off */
                s->pc++;
                goto reload;
            }
        } else {
            if (op->kind == VM_KIND_CONTROL) {
                s->pc = (int32_t)(op - ops);
                count_steps(warp, op + 1);
            }
            result = op->exec(warp, op, mask);
        }
        if (watched && (result == VM_NEXT || result == VM_YIELD))
            vm_check_after(warp, op, mask);
        switch (result) {
        case VM_NEXT:
            break;
        case VM_BRANCHED:
            if (!warp->active)
                return RUN_GONE;
            if ((int64_t)warp->block->clock < s->slice_end)
                goto reload;
            put_back(warp, GROUP_READY, 0, true);
            return RUN_SLICE;
        case VM_BLOCK:
            count_steps(warp, op);
            return wait_here(warp, op, mask, GROUP_BLOCKED, 0);
        case VM_YIELD:
            count_steps(warp, op + 1);
            s->pc = (int32_t)(op - ops) + 1;
            s->spin_edges = SPIN_EDGES;
            put_back(warp, GROUP_READY, 0, true);
            return RUN_SLICE;
        case VM_FAULT:
            return RUN_FAULT;
        }
    next:
        op++;
    check_join:
        if (op == join) {
            count_steps(warp, op);
            s->pc = (int32_t)(op - ops);
            if (!arrive(warp))
                return RUN_GONE;
            goto reload;
        }
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
