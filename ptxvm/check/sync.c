/* Synchronization: barriers, fences, member masks, asynchronous copies. Tells the race check which threads
 * are ordered, and finds threads that do not arrive. */
#include "check.h"

#include "ptxvm/exec/cluster.h"
#include "ptxvm/exec/ops_common.h"
#include "ptxvm/exec/warp.h"

/* ---- Fences, and accesses with memory ordering ---- */

static bool is_wide(const pvm_inst *inst)
{
    return inst->mod[S_SCOPE] != M_cta && inst->mod[S_SCOPE] != M_cluster;
}

/* Whether it orders threads of this block and others: releasing to a cluster counts as releasing to all. */
static bool is_wide_here(const vm_warp *warp, const pvm_inst *inst)
{
    return is_wide(inst) || (inst->mod[S_SCOPE] == M_cluster && warp->block->cluster->n > 1);
}

/* mbarrier.init and inval are plain writes: others may use the object only when they are ordered after them. */
static bool is_mbarrier_use(const pvm_inst *inst)
{
    return inst->op == OP_mbarrier && inst->mod[S_SUB] != M_init && inst->mod[S_SUB] != M_inval;
}

race_reach check_reach(const pvm_inst *inst, bool *acquires, bool *releases)
{
    unsigned sem = inst->mod[S_SEM];
    bool atomic = inst->op == OP_atom || inst->op == OP_red;
    if (acquires)
        *acquires = sem == M_acquire || sem == M_acq_rel || sem == M_sc;
    if (releases)
        *releases = sem == M_release || sem == M_acq_rel || sem == M_sc;
    bool strong = atomic || is_mbarrier_use(inst) || (sem != M_NONE && sem != M_weak);
    return !strong                           ? REACH_NONE
           : is_wide(inst)                   ? REACH_GRID
           : inst->mod[S_SCOPE] == M_cluster ? REACH_CLUSTER
                                             : REACH_BLOCK;
}

bool vm_check_is_strong(const pvm_inst *inst)
{
    return check_reach(inst, NULL, NULL) != REACH_NONE;
}

/* Without .relaxed, a wait on an mbarrier acquires and an arrival releases. */
static bool is_mbarrier_wait(const pvm_inst *inst)
{
    return inst->op == OP_mbarrier && (inst->mod[S_SUB] == M_test_wait || inst->mod[S_SUB] == M_try_wait) &&
           inst->mod[S_SEM] != M_relaxed;
}

static bool is_arrival(const pvm_inst *inst)
{
    return (inst->mod[S_SUB] == M_arrive || inst->mod[S_SUB] == M_arrive_drop) &&
           inst->mod[S_SEM] != M_relaxed;
}

/* Orders accesses of one thread by different ways, not threads. */
static bool is_proxy_fence(const pvm_inst *inst)
{
    return inst->mod[S_MODE] == M_proxy && (inst->mod[S_KIND] == M_async || inst->mod[S_KIND] == M_alias ||
                                            inst->mod[S_KIND] == M_tensormap__generic);
}

/* A member mask that does not include the calling lane. */
static void check_own_bit(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_u32 *members = vm_value(warp, &op->operand[op->members]);
    VM_EACH_LANE(lane, mask)
    if (!(members[lane] >> lane & 1)) {
        ptxvm_finding finding = {.kind = PTXVM_FINDING_MEMBER_MASK};
        vm_check_report(warp, op, (int)lane, &finding, -1,
                        "the member mask 0x%08x of %s leaves out lane %u, which executes it", members[lane],
                        pvm_opcode_name(op->inst->op), lane);
    }
}

/* ---- Members that do not arrive ---- */

/* Lanes at a join after which only the end of the kernel is left have in effect exited: that is allowed. */
static bool is_at_end(const vm_join *join)
{
    const vm_op *op = &join->frame->code->ops[join->pc];
    return op->inst->op == OP_ret || op->inst->op == OP_exit;
}

static uint32_t lanes_at_end(const vm_warp *warp)
{
    const vm_scheduler *s = warp->scheduler;
    uint32_t lanes = 0;
    for (int i = -1; i < s->n_groups; i++)
        for (const vm_join *join = i < 0 ? s->join : s->groups[i].join; join; join = join->parent)
            lanes |= is_at_end(join) ? join->arrived : 0;
    return lanes;
}

void vm_check_await(vm_warp *warp, const vm_op *op, uint32_t lanes, uint32_t missing)
{
    if (!vm_watch_of(warp)->sync || !(op->flags & OPF_MEMBERS))
        return;
    missing &= ~lanes_at_end(warp);
    VM_EACH_LANE(lane, lanes)
    warp->block->check->awaited[WARP * warp->index + (int)lane] |= missing;
}

static void report_members(vm_warp *warp, const vm_op *op, uint32_t mask, uint32_t others, const char *how)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_MEMBER_MASK};
    const vm_u32 *members = vm_value(warp, &op->operand[op->members]);
    vm_check_report(warp, op, vm_first(mask), &finding, -1,
                    "lanes 0x%08x execute %s, whose member mask 0x%08x names lanes 0x%08x as well, which %s",
                    mask, pvm_opcode_name(op->inst->op), members[vm_first(mask)], others, how);
}

/* Lanes that others waited for and that skipped the instruction or exited. Lanes that had exited before are
 * allowed (PTX ISA: the instruction waits for all non-exited threads of the mask), but shuffling with them is
 * useless. */
void check_members_came(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_u32 *members = vm_value(warp, &op->operand[op->members]);
    uint32_t *awaited = warp->block->check->awaited + WARP * warp->index, missing = 0;
    VM_EACH_LANE(lane, mask)
    {
        missing |= awaited[lane] & ~mask;
        awaited[lane] = 0;
    }
    uint32_t exited = members[vm_first(mask)] & warp->existing & ~mask & ~missing;
    if (missing)
        report_members(warp, op, mask, missing, "never came");
    else if (exited && op->inst->op == OP_shfl)
        report_members(warp, op, mask, exited, "have exited");
}

static bool writes_to_others(const pvm_inst *inst)
{
    return (inst->op == OP_st || inst->op == OP_atom || inst->op == OP_red) &&
           check_reach(inst, NULL, NULL) >= REACH_CLUSTER;
}

static bool reads_from_others(const pvm_inst *inst)
{
    return (inst->op == OP_ld || inst->op == OP_atom) && check_reach(inst, NULL, NULL) >= REACH_CLUSTER;
}

void check_events_before(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_watch *watch = vm_watch_of(warp);
    const pvm_inst *inst = op->inst;
    bool releases;
    if (watch->sync && op->flags & OPF_MEMBERS)
        check_own_bit(warp, op, mask);
    if (!watch->race || op->flags & OPF_MEMBERS)
        return;
    check_reach(inst, NULL, &releases);
    if (is_proxy_fence(inst)) {
        if (inst->mod[S_KIND] != M_alias) /* that of tensor maps counts like that of the data */
            check_proxy_fence(warp, mask);
    } else if (inst->op == OP_fence || inst->op == OP_membar) {
        check_fence(warp, mask, is_wide_here(warp, inst));
    } else if (inst->op == OP_mbarrier ? is_arrival(inst) : releases && inst->op != OP_ld)
        check_release(warp, mask, true, is_wide_here(warp, inst));
    if (writes_to_others(inst))
        check_signal(warp);
}

void check_events_after(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const pvm_inst *inst = op->inst;
    bool acquires;
    if (!vm_watch_of(warp)->race || op->flags & OPF_MEMBERS)
        return;
    check_reach(inst, &acquires, NULL);
    if (inst->op == OP_tensormap) { /* cp_fenceproxy: a copy and a fence after it */
        check_fence(warp, mask, is_wide(inst));
        check_proxy_fence(warp, mask);
    }
    if (is_mbarrier_wait(inst) || (acquires && (inst->op == OP_ld || inst->op == OP_atom)))
        check_acquire(warp, mask, true, is_wide_here(warp, inst));
    if (reads_from_others(inst))
        check_observe(warp);
}

/* ---- Barriers ---- */

static bool is_aligned(const pvm_inst *inst)
{
    return inst->op == OP_bar || inst->mod[S_ALIGNED];
}

static void report_divergent(vm_warp *warp, const vm_op *op, uint32_t lanes, uint32_t others, const char *how)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_DIVERGENT_BARRIER};
    vm_check_report(warp, op, vm_first(lanes), &finding, -1,
                    "divergent barrier: lanes 0x%08x of the warp execute it, lanes 0x%08x %s", lanes, others,
                    how);
}

static bool is_of_cluster(const vm_warp *warp, const vm_op *op)
{
    return op->inst->mod[S_SUB] == M_cluster && warp->block->cluster->n > 1;
}

void vm_check_arrive(vm_warp *warp, const vm_op *op, uint32_t lanes, uint32_t before)
{
    const vm_watch *watch = vm_watch_of(warp);
    if (watch->race && op->inst->mod[S_SEM] != M_relaxed)
        check_release(warp, lanes, true, is_of_cluster(warp, op));
    else if (watch->race && is_of_cluster(warp, op)) /* with a fence before it, it releases all the same */
        check_signal(warp);
    if (watch->sync && before && is_aligned(op->inst) && !warp->released_early)
        report_divergent(warp, op, lanes, before, "came to it apart from them");
}

static bool is_barrier(const vm_op *op)
{
    return (op->inst->op == OP_bar || op->inst->op == OP_barrier) && is_aligned(op->inst);
}

void vm_check_stuck(vm_warp *warp)
{
    const vm_scheduler *s = warp->scheduler;
    for (int i = 0; vm_watch_of(warp)->sync && !warp->released_early && i < s->n_groups; i++) {
        const vm_group *group = &s->groups[i];
        const vm_op *op = &group->frame->code->ops[group->pc];
        for (const vm_join *join = group->join; join && group->state == GROUP_BLOCKED; join = join->parent)
            if (is_barrier(op) && join->arrived && !is_at_end(join)) {
                report_divergent(warp, op, group->mask, join->arrived, "have passed it by");
                break;
            }
    }
}

void vm_check_released(vm_warp *warp, uint32_t lanes, bool by_cluster)
{
    if (vm_watch_of(warp)->race && lanes)
        check_acquire(warp, lanes, true, by_cluster);
}

/* ---- Asynchronous copies ---- */

void vm_check_async_begin(vm_warp *warp, uint64_t to, uint64_t bytes)
{
    block_check *check = vm_shared_owner(warp->block, to)->check;
    to %= VM_SHARED_SIZE;
    for (uint64_t word = to / 4; check->async && word < (to + bytes + 3) / 4; word++) {
        check->async[word]++;
        check->n_async++;
    }
}

void vm_check_async_landed(vm_warp *warp, const vm_op *op, int lane, uint64_t to, uint64_t bytes,
                           uint32_t undefined, bool by_thread)
{
    const vm_block *owner = vm_shared_owner(warp->block, to);
    block_check *check = owner->check;
    const vm_watch *watch = vm_watch_of(warp);
    check_region *shared = check->shared;
    to %= VM_SHARED_SIZE;
    for (uint64_t word = to / 4; check->async && word < (to + bytes + 3) / 4; word++)
        if (check->async[word]) {
            check->async[word]--;
            check->n_async--;
        }
    if (check->n_operands)
        check_operand_write(warp, op, lane, owner, to, bytes);
    for (uint64_t i = 0; watch->init && i < bytes; i++) {
        uint8_t bit = i < 16 ? undefined >> i & 1 : 0;
        shared->n_undefined += bit;
        shared->n_undefined -= shared->undefined[to + i];
        shared->undefined[to + i] = bit;
    }
    if (watch->race) {
        race_access a = {.warp = warp,
                         .op = op,
                         .mask = 1u << lane,
                         .space = SPACE_SHARED,
                         .owner = owner,
                         .writes = true,
                         .async = !by_thread};
        check_race(&a, shared, lane, to, to, bytes);
    }
}

void check_async(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, uint64_t offset,
                 uint64_t bytes, bool write)
{
    const block_check *check = block->check;
    for (uint64_t word = offset / 4; word < (offset + bytes + 3) / 4; word++)
        if (check->async[word]) {
            ptxvm_finding finding = {.kind = PTXVM_FINDING_ASYNC_READ,
                                     .space = "shared",
                                     .address = offset,
                                     .access_bytes = bytes};
            vm_check_report(warp, op, lane, &finding, -1,
                            "%s %llu bytes at shared address 0x%llx, where a cp.async is still under way",
                            write ? "writes" : "reads", (unsigned long long)bytes,
                            (unsigned long long)offset);
            return;
        }
}
