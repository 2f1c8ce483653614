/* Warp-level instructions wait for the lanes in their member mask: these may arrive in several groups, from
 * different places and calls, as long as the instructions have the same qualifiers and the same mask (PTX ISA
 * on shfl.sync). */
#include "warp.h"

#include <string.h>

#include "launch.h"
#include "ptxvm/exec/hooks.h"

static const vm_op *op_of(const vm_group *group)
{
    return &group->frame->code->ops[group->pc];
}

/* Whether lanes at `a` and lanes at `b` may execute them together. */
static bool may_run_together(const vm_op *a, const vm_op *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->inst->op != b->inst->op || a->n_operands != b->n_operands ||
        memcmp(a->inst->mod, b->inst->mod, sizeof a->inst->mod) != 0)
        return false;
    for (int i = 0; i < a->n_operands; i++)
        if (a->operand[i].width != b->operand[i].width || a->operand[i].is_sink != b->operand[i].is_sink ||
            a->operand[i].is_address != b->operand[i].is_address ||
            a->operand[i].space != b->operand[i].space)
            return false;
    return true;
}

/* Lanes that wait at `op`, or one that agrees with it, for the same members. */
static uint32_t gathered(const vm_warp *warp, const vm_op *op, uint32_t members)
{
    const vm_scheduler *s = warp->scheduler;
    uint32_t mask = 0;
    for (int i = 0; i < s->n_groups; i++)
        if (s->groups[i].state == GROUP_MEMBERS && s->groups[i].members == members &&
            may_run_together(op, op_of(&s->groups[i])))
            mask |= s->groups[i].mask;
    return mask;
}

bool vm_members_ready(const vm_warp *warp, const vm_group *group)
{
    return !(group->members & warp->live & ~gathered(warp, op_of(group), group->members));
}

/* ---- Groups at different instructions or in different frames ---- */

/* An address computed from register and offset, so that those of different instructions can be combined. */
static void gather_address(uint64_t *to, const vm_frame *frame, const vm_operand *operand, uint32_t mask)
{
    for (int lane = 0; lane < WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        uint64_t value = 0;
        if (operand->slot != VM_NO_SLOT) {
            const uint8_t *registers = vm_slot_ptr(frame, operand->slot);
            if (operand->width == 4) {
                uint32_t narrow;
                memcpy(&narrow, registers + 4 * lane, 4);
                value = narrow;
            } else
                memcpy(&value, registers + 8 * lane, 8);
        }
        to[lane] = value + (uint64_t)operand->offset;
    }
}

static void gather_operands(vm_operand *operands, const vm_op *op, uint8_t (*values)[VM_LANE_BYTES],
                            const vm_frame *frame, uint32_t mask)
{
    for (int i = 0; i < op->n_operands; i++) {
        const vm_operand *from = &op->operand[i];
        if (from->is_address)
            gather_address((uint64_t *)(void *)values[i], frame, from, mask);
        else if (from->slot != VM_NO_SLOT)
            vm_blend(values[i], vm_slot_ptr(frame, from->slot), from->width, mask);
        if (!from->is_immediate || from->bits != operands[i].bits)
            operands[i].is_immediate = false;
    }
}

static void scatter_results(const vm_op *op, uint8_t (*values)[VM_LANE_BYTES], const vm_frame *frame,
                            uint32_t mask)
{
    for (int i = 0; i < op->n_results; i++)
        if (op->operand[i].slot != VM_NO_SLOT && !op->operand[i].is_address)
            vm_blend(vm_slot_ptr(frame, op->operand[i].slot), values[i], op->operand[i].width, mask);
}

/* The instruction with operands of its own, filled from those of all groups. */
static vm_result run_gathered(vm_warp *warp, const vm_op *op, uint32_t mask, const vm_group *groups, int n)
{
    uint8_t(*values)[VM_LANE_BYTES] = warp->block->worker->scratch + VM_SCRATCH_VALUES;
    vm_operand operands[VM_GATHER_VALUES];
    vm_frame *frame = warp->frame, together = *frame;
    vm_op joint = *op;
    together.registers = values[0];
    together.lanes = warp->live;
    joint.operand = operands;
    for (int i = 0; i < op->n_operands; i++) {
        operands[i] = op->operand[i];
        operands[i].slot = op->operand[i].is_sink ? VM_NO_SLOT : (vm_slot)(i * VM_LANE_BYTES);
        if (op->operand[i].is_address) {
            operands[i].offset = 0;
            operands[i].width = 8;
        }
    }
    gather_operands(operands, op, values, frame, mask);
    uint32_t all = mask;
    for (int i = 0; i < n; i++) {
        gather_operands(operands, op_of(&groups[i]), values, groups[i].frame, groups[i].mask);
        all |= groups[i].mask;
    }
    const vm_op *segment = warp->segment;
    uint64_t ahead = (uint64_t)(op - segment);
    warp->block->clock += ahead; /* so that vm_clock is also right for `joint` */
    warp->segment = &joint;
    warp->frame = &together;
    uint32_t outside = warp->block->watch ? vm_check_outside(warp, &joint, all) : 0;
    vm_result result = op->exec(warp, &joint, all);
    warp->frame = frame;
    warp->segment = segment;
    warp->block->clock -= ahead;
    scatter_results(op, values, frame, mask);
    for (int i = 0; i < n; i++)
        scatter_results(op_of(&groups[i]), values, groups[i].frame, groups[i].mask);
    vm_check_undefined(warp, frame, op, outside & mask);
    for (int i = 0; i < n; i++)
        vm_check_undefined(warp, groups[i].frame, op_of(&groups[i]), outside & groups[i].mask);
    return result;
}

/* ---- */

static vm_result run_with_waiting(vm_warp *warp, const vm_op *op, uint32_t mask, uint32_t members)
{
    vm_scheduler *s = warp->scheduler;
    vm_group groups[WARP];
    uint32_t all = mask;
    int n = 0;
    bool alike = true;
    for (int i = 0; i < s->n_groups; i++) {
        vm_group *group = &s->groups[i];
        if (group->state != GROUP_MEMBERS || group->members != members || !may_run_together(op, op_of(group)))
            continue;
        alike &= op_of(group) == op && group->frame == warp->frame;
        all |= group->mask;
        groups[n++] = *group;
        group->state = GROUP_READY;
        group->pc++;
    }
    if (warp->block->watch)
        vm_check_members(warp, op, all, alike);
    if (!alike && op->flags & OPF_ONE_PLACE)
        return vm_fault(warp, op, __builtin_ctz(mask), PTXVM_ERROR_EXECUTION,
                        "other lanes of the warp execute another %s: all of them must execute the same",
                        pvm_opcode_name(op->inst->op));
    return alike ? op->exec(warp, op, all) : run_gathered(warp, op, mask, groups, n);
}

/* Lanes of the running group with a different member mask than the first of them wait for their own turn at
 * the same op. */
static bool part_by_members(vm_warp *warp, const vm_op *op, uint32_t *mask, uint32_t *members)
{
    const vm_operand *operand = &op->operand[op->members];
    const uint32_t *value = vm_value(warp, operand);
    uint32_t same = 0;
    *members = value[__builtin_ctz(*mask)];
    for (int lane = 0; lane < WARP; lane++)
        same |= (uint32_t)(value[lane] == *members) << lane;
    uint32_t others = *mask & ~same;
    int32_t pc = warp->scheduler->pc;
    *mask &= same;
    return !others || vm_split(warp, others, pc, pc, pc + 1);
}

vm_result vm_run_members(vm_warp *warp, const vm_op *op, uint32_t *mask, uint32_t *members)
{
    *members = UINT32_MAX;
    if ((op->flags & OPF_MEMBERS) && !part_by_members(warp, op, mask, members))
        return vm_fault(warp, op, __builtin_ctz(*mask), PTXVM_ERROR_MEMORY, "the host has no memory left");
    uint32_t missing = *members & warp->live & ~*mask;
    if (!missing && warp->block->watch)
        vm_check_members(warp, op, *mask, true);
    if (!missing)
        return op->exec(warp, op, *mask);
    if (missing & ~gathered(warp, op, *members)) {
        if (warp->block->watch)
            vm_check_await(warp, op, *mask, missing);
        return VM_BLOCK;
    }
    return run_with_waiting(warp, op, *mask, *members);
}
