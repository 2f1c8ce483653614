/* Uninitialised registers. A frame has, for each register, a mask of the lanes with an undefined byte, and
 * for those lanes which bytes. The masks alone decide in nearly all cases: a lane that is read must not be
 * set in them, a lane that is written is cleared. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "ptxvm/exec/decode.h"
#include "ptxvm/exec/launch.h"

bool vm_check_frame_new(vm_warp *warp, vm_frame *frame)
{
    vm_pool *pool = warp->block->worker->pool;
    size_t n = (size_t)frame->code->check->n_registers + 1;
    check_frame *shadow = vm_pool_alloc(pool, sizeof *shadow);
    if (!shadow)
        return false;
    shadow->undefined = vm_pool_alloc(pool, n * sizeof *shadow->undefined);
    shadow->parted = vm_pool_alloc(pool, n * sizeof *shadow->parted);
    shadow->bytes = vm_pool_alloc(pool, n * sizeof *shadow->bytes);
    frame->check = shadow;
    return shadow->undefined && shadow->parted && shadow->bytes;
}

void vm_check_frame_begin(vm_frame *frame)
{
    size_t n = (size_t)frame->code->check->n_registers;
    memset(frame->check->undefined, 0xFF, n * sizeof *frame->check->undefined);
    memset(frame->check->parted, 0, n * sizeof *frame->check->parted);
}

uint32_t check_lane_bytes(const vm_frame *frame, int32_t id, int lane)
{
    if (id < 0 || !(frame->check->undefined[id] >> lane & 1))
        return 0;
    return frame->check->parted[id] >> lane & 1 ? frame->check->bytes[id][lane] : UINT16_MAX;
}

void check_set_lane_bytes(const vm_frame *frame, int32_t id, int lane, uint32_t bytes)
{
    if (id < 0)
        return;
    uint32_t *undefined = &frame->check->undefined[id];
    *undefined = (*undefined & ~(1u << lane)) | (uint32_t)(bytes != 0) << lane;
    frame->check->parted[id] |= 1u << lane;
    frame->check->bytes[id][lane] = (uint16_t)bytes;
}

/* False for lanes at different places: their operands are in different registers. */
static bool is_of_one_place(const vm_warp *warp, const vm_op *op)
{
    const vm_code *code = warp->frame->code;
    return op >= code->ops && op < code->ops + code->n_ops;
}

void vm_check_moved(vm_warp *warp, const vm_op *op, int i, uint32_t mask, const uint32_t bytes[WARP])
{
    VM_EACH_LANE(lane, is_of_one_place(warp, op) ? mask : 0)
    check_set_lane_bytes(warp->frame, check_op_of(warp, op)->id[i], (int)lane, bytes[lane]);
}

uint32_t vm_check_moving(const vm_warp *warp, const vm_op *op, int i, int lane)
{
    const vm_watch *watch = warp->block->watch;
    if (!watch || !watch->init || !is_of_one_place(warp, op))
        return 0;
    return check_lane_bytes(warp->frame, check_op_of(warp, op)->id[i], lane);
}

/* ---- Uses ---- */

static const char *use_of(const vm_op *op, const check_op *info, int32_t id)
{
    for (int i = 0; i < op->n_operands; i++)
        if (info->id[i] == id && op->operand[i].is_address)
            return "addresses memory with";
    switch (op->inst->op) {
    case OP_set:
    case OP_selp:
    case OP_slct:
    case OP_bra:
    case OP_brx:
    case OP_vote:
        return "decides by";
    default:
        return "computes with";
    }
}

const char *check_register_name(const vm_op *op, const check_op *info, int32_t id)
{
    for (int i = 0; i < op->n_operands; i++) {
        const pvm_operand *source = op->operand[i].source;
        if (info->id[i] == id && source && source->reg >= 0 &&
            (source->kind == OPERAND_REG || source->kind == OPERAND_ADDRESS))
            return op->function->regs[source->reg].name;
    }
    return "a register";
}

static bool is_predicate(const vm_op *op, const check_op *info, int32_t id)
{
    for (int i = 0; i < op->n_operands; i++)
        if (info->id[i] == id)
            return op->operand[i].width == 0;
    return false;
}

/* The other way to get such bytes, if the kernel has used it. */
static const char *or_shuffled(const vm_warp *warp, char hint[100])
{
    const vm_op *shuffle = vm_watch_of(warp)->outside;
    hint[0] = 0;
    if (shuffle)
        snprintf(hint, 100, ", or that shfl at line %d read from a lane outside its member mask",
                 shuffle->inst->line);
    return hint;
}

static void report_use(vm_warp *warp, const vm_op *op, const check_op *info, int lane)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_UNINITIALISED};
    char hint[100];
    int32_t id = -1;
    for (int i = 0; i < info->n_uses && id < 0; i++)
        if (warp->frame->check->undefined[info->uses[i]] >> lane & 1)
            id = info->uses[i];
    vm_check_report(warp, op, lane, &finding, -1, "%s %s %s, which %s bytes that were never written%s",
                    pvm_opcode_name(op->inst->op), use_of(op, info, id), check_register_name(op, info, id),
                    is_predicate(op, info, id) ? "depends on" : "holds", or_shuffled(warp, hint));
}

/* Lanes with an undefined source: they propagate it, or it is a finding. Once reported, the value counts as
 * written. */
static void pass_on(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t lanes)
{
    uint32_t *undefined = warp->frame->check->undefined;
    for (; lanes; lanes &= lanes - 1) {
        int lane = __builtin_ctz(lanes);
        if (info->action != CHECK_COMPUTE && check_propagate(warp, op, info, lane))
            continue;
        report_use(warp, op, info, lane);
        for (int i = 0; i < info->n_uses + info->n_defs; i++)
            undefined[info->uses[i]] &= ~(1u << lane);
    }
}

static void report_guard(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t lanes)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_UNINITIALISED};
    char hint[100];
    vm_check_report(warp, op, __builtin_ctz(lanes), &finding, -1,
                    "the guard of %s is a predicate that depends on bytes that were never written%s",
                    pvm_opcode_name(op->inst->op), or_shuffled(warp, hint));
    warp->frame->check->undefined[info->guard] &= ~lanes;
}

void check_registers(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t active, uint32_t mask)
{
    uint32_t *undefined = warp->frame->check->undefined, bad = 0;
    const int32_t *id = info->uses;
    if (info->guard >= 0 && (undefined[info->guard] & active))
        report_guard(warp, op, info, undefined[info->guard] & active);
    for (int i = 0; i < info->n_uses; i++)
        bad |= undefined[*id++];
    bad &= mask;
    if (__builtin_expect(bad != 0, 0)) {
        pass_on(warp, op, info, bad);
        mask &= ~bad;
    }
    if (info->action == CHECK_SHUFFLE) { /* what it writes is known only when all its members have arrived */
        int32_t from = info->id[op->n_results];
        if (op->kind != VM_KIND_WAIT || from < 0 || !(undefined[from] & warp->live))
            check_shuffle(warp, op, info, mask);
        return;
    }
    for (int i = 0; i < info->n_defs; i++)
        undefined[*id++] &= ~mask;
}

/* ---- shfl: the instruction itself, run on other values ---- */

/* What the lanes of `mask` receive if source a holds `values`. The scratch space of lane instructions is free
 * here; the other part of it may hold the operands. */
static void run_shuffle(vm_warp *warp, const vm_op *op, uint32_t mask, uint32_t values[WARP])
{
    uint8_t(*scratch)[VM_LANE_BYTES] = warp->block->worker->scratch;
    vm_operand operands[8];
    vm_frame *frame = warp->frame, shadow = *frame;
    vm_op shuffle = *op;
    shadow.registers = scratch[0];
    shuffle.operand = operands;
    for (int i = 0; i < op->n_operands && i < 8; i++) {
        operands[i] = op->operand[i];
        operands[i].is_sink = false;
        operands[i].slot = (vm_slot)(i * VM_LANE_BYTES);
        if (op->operand[i].slot != VM_NO_SLOT)
            memcpy(scratch[i], vm_slot_ptr(frame, op->operand[i].slot), operands[i].width ? WARP * 4 : 4);
    }
    operands[0].width = 4;
    memcpy(scratch[op->n_results], values, WARP * sizeof *values);
    warp->frame = &shadow;
    op->exec(warp, &shuffle, mask);
    warp->frame = frame;
    memcpy(values, scratch[0], WARP * sizeof *values);
}

void check_shuffle(vm_warp *warp, const vm_op *op, const check_op *info, uint32_t mask)
{
    int in = op->n_results;
    int32_t to = info->id[0], from = info->id[in];
    vm_frame *frame = warp->frame;
    bool all_defined = from < 0 || !(frame->check->undefined[from] & warp->live);
    for (int i = all_defined ? 0 : 1; i < op->n_results; i++)
        if (info->id[i] >= 0)
            frame->check->undefined[info->id[i]] &= ~mask;
    if (all_defined || to < 0)
        return;
    uint32_t bytes[WARP];
    for (int lane = 0; lane < WARP; lane++)
        bytes[lane] = check_lane_bytes(frame, from, lane);
    run_shuffle(warp, op, mask, bytes);
    VM_EACH_LANE(lane, mask)
    check_set_lane_bytes(frame, to, (int)lane, bytes[lane]);
}

uint32_t vm_check_outside(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint32_t source[WARP], outside = 0;
    if (!vm_watch_of(warp)->init || op->inst->op != OP_shfl || !(op->flags & OPF_MEMBERS) ||
        mask == UINT32_MAX)
        return 0;
    for (uint32_t lane = 0; lane < WARP; lane++)
        source[lane] = lane;
    run_shuffle(warp, op, mask, source);
    VM_EACH_LANE(lane, mask)
    outside |= (uint32_t) !(mask >> source[lane] & 1) << lane;
    return outside;
}

void vm_check_undefined(vm_warp *warp, vm_frame *frame, const vm_op *op, uint32_t lanes)
{
    if (!lanes)
        return;
    vm_watch_of(warp)->outside = op;
    VM_EACH_LANE(lane, lanes)
    check_set_lane_bytes(frame, check_op_at(warp, op)->id[0], (int)lane, UINT16_MAX);
}

/* ---- Parameters ---- */

static int32_t number_at(const vm_frame *frame, vm_slot slot)
{
    const vm_code *code = frame->code;
    for (int i = 0; i < code->function->n_regs; i++)
        if (code->reg_slot[i] == slot)
            return code->check->of_register[i];
    return -1;
}

void vm_check_pass(const vm_frame *to, vm_slot to_slot, uint8_t *to_memory, const vm_frame *from,
                   vm_slot from_slot, const uint8_t *from_memory, uint64_t bytes, int lane)
{
    if (to_memory && from_memory) {
        memcpy(to_memory, from_memory, bytes);
        return;
    }
    uint32_t undefined = 0;
    if (!from_memory)
        undefined = check_lane_bytes(from, number_at(from, from_slot), lane);
    for (uint64_t i = 0; from_memory && i < bytes && i < 16; i++)
        undefined |= (uint32_t)from_memory[i] << i;
    if (!to_memory)
        check_set_lane_bytes(to, number_at(to, to_slot), lane, undefined);
    for (uint64_t i = 0; to_memory && i < bytes && i < 16; i++)
        to_memory[i] = undefined >> i & 1;
}
