/* Calls and returns: frames of registers, local memory, parameters; and the jumps that may split a group by
 * value (brx.idx, indirect calls). Parameters in .param space are copied between the local memories of caller
 * and callee. */
#include "warp.h"

#include <string.h>
#include <stdlib.h>

#include "barrier.h"
#include "decode.h"
#include "launch.h"
#include "ops.h"
#include "ptxvm/exec/hooks.h"

#define LEAST_FRAME                                                                                          \
    64 /* bytes of stack that even a function without local memory takes: recursion must end */
#define LOCAL_PADDING 64 /* between lanes, so that equal addresses use different cache sets */

/* ---- Frames ---- */

/* Addresses of shared variables are those of the block in the window of its cluster. */
static void place_shared(const vm_frame *frame, const vm_block *block)
{
    const vm_code *code = frame->code;
    for (int i = 0; i < code->n_shared_constants; i++) {
        const vm_shared_constant *c = &code->shared_constants[i];
        uint64_t address = 0;
        memcpy(&address, code->constants + c->offset, (size_t)c->width);
        address += block->shared_base;
        for (int lane = 0; lane < WARP; lane++)
            memcpy(frame->registers + c->offset + lane * c->width, &address, (size_t)c->width);
    }
}

vm_frame *vm_frame_new(vm_warp *warp, const vm_code *code)
{
    vm_worker *worker = warp->block->worker;
    vm_frame *frame = worker->free_frames[code->index];
    if (frame)
        worker->free_frames[code->index] = frame->next_free;
    else {
        bool watched = warp->block->watch && warp->block->watch->init;
        if (!vm_worker_hold(worker, (watched ? 2 : 1) * (uint64_t)code->frame_bytes))
            return NULL;
        frame = vm_pool_alloc(worker->pool, sizeof *frame);
        uint8_t *registers = frame ? vm_pool_alloc(worker->pool, code->frame_bytes) : NULL;
        if (!registers)
            return NULL;
        *frame = (vm_frame){.registers = registers, .code = code};
        if (code->constant_bytes)
            memcpy(registers, code->constants, code->constant_bytes);
        if (watched && !vm_check_frame_new(warp, frame))
            return NULL;
        if (warp->block->watch && warp->block->watch->flight && !vm_check_flight_new(warp, frame))
            return NULL;
    }
    if (warp->block->launch->n_cluster > 1)
        place_shared(frame, warp->block);
    if (frame->check)
        vm_check_frame_begin(frame);
    if (frame->flight)
        vm_check_flight_clear(frame);
    /* What a kernel reads without having written it must not depend on which block ran here before. */
    memset(frame->registers + code->constant_bytes, 0, code->frame_bytes - code->constant_bytes);
    frame->caller = NULL;
    frame->call_site = NULL;
    return frame;
}

void vm_frame_free(vm_warp *warp, vm_frame *frame)
{
    vm_worker *worker = warp->block->worker;
    if (frame->code->kernel->has_wgmma || frame->code->kernel->has_tcgen05)
        vm_ops_frame_end(warp, frame);
    frame->next_free = worker->free_frames[frame->code->index];
    worker->free_frames[frame->code->index] = frame;
}

/* ---- Local memory ---- */

/* Makes sure that each lane has at least `bytes` of local memory. */
bool vm_local_grow(vm_warp *warp, uint64_t bytes)
{
    if (bytes + LOCAL_PADDING <= warp->local_stride)
        return true;
    uint64_t stride = (2 * warp->local_stride > bytes ? 2 * warp->local_stride : bytes) + 2 * LOCAL_PADDING;
    stride = stride / LOCAL_PADDING * LOCAL_PADDING;
    bool watched = warp->block->watch && warp->block->watch->init;
    if (!vm_worker_hold(warp->block->worker, (watched ? 2 : 1) * WARP * (stride - warp->local_stride)))
        return false;
    uint8_t *local = aligned_alloc(LOCAL_PADDING, WARP * stride);
    if (!local)
        return false;
    for (uint64_t lane = 0; lane < WARP && warp->local; lane++)
        memcpy(local + lane * stride, warp->local + lane * warp->local_stride, warp->local_stride);
    if (watched) {
        uint8_t *undefined = calloc(WARP, stride);
        for (uint64_t lane = 0; undefined && lane < WARP && warp->local_undefined; lane++)
            memcpy(undefined + lane * stride, warp->local_undefined + lane * warp->local_stride,
                   warp->local_stride);
        free(warp->local_undefined);
        warp->local_undefined = undefined;
        if (!undefined) {
            free(local);
            return false;
        }
    }
    free(warp->local);
    warp->local = local;
    warp->local_stride = stride;
    return true;
}

bool vm_local_reserve(vm_warp *warp, int lane, uint64_t bytes, uint64_t align, uint64_t *address)
{
    uint64_t at = (warp->local_top[lane] + align - 1) / align * align,
             limit = warp->block->launch->stack_limit;
    if (at > limit || bytes > limit - at || !vm_local_grow(warp, at + bytes))
        return false;
    *address = at;
    warp->local_top[lane] = at + bytes;
    memset(warp->local + (uint64_t)lane * warp->local_stride + at, 0, bytes);
    if (warp->local_undefined)
        memset(warp->local_undefined + (uint64_t)lane * warp->local_stride + at, 1, bytes);
    return true;
}

static uint8_t *local_at(const vm_warp *warp, int lane, uint64_t address)
{
    return warp->local + (uint64_t)lane * warp->local_stride + address;
}

static bool enter_local(vm_warp *warp, vm_frame *frame, uint32_t mask)
{
    uint64_t *base = vm_slot_ptr(frame, frame->code->local_base);
    uint64_t bytes = frame->code->local_bytes < LEAST_FRAME ? LEAST_FRAME : frame->code->local_bytes;
    for (uint32_t m = mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        if (!vm_local_reserve(warp, lane, bytes, frame->code->local_align, &base[lane]))
            return false;
    }
    return true;
}

/* ---- Parameters ---- */

/* One side of a parameter: a variable in local memory (of that side's frame), or a register or constant in
 * it. */
typedef struct place {
    const vm_frame *frame;
    bool is_local;
    vm_slot slot; /* of the register, or of the base of the address */
    int64_t offset;
    uint64_t bytes; /* per lane */
} place;

static place place_of_argument(const vm_frame *frame, const vm_operand *operand)
{
    uint64_t bytes = operand->is_address ? operand->source->var->size : (uint64_t)operand->width;
    return (place){frame, operand->is_address, operand->slot, operand->offset, bytes};
}

static place place_of_formal(const vm_frame *frame, const pvm_var *var, int reg, uint64_t at)
{
    const vm_code *code = frame->code;
    if (reg >= 0)
        return (place){frame, false, code->reg_slot[reg], 0,
                       (uint64_t)vm_type_width(code->function->regs[reg].type)};
    return (place){frame, true, code->local_base, (int64_t)(at + var->offset), var->size};
}

static uint8_t *lane_of(const vm_warp *warp, const place *p, int lane)
{
    uint8_t *value = vm_slot_ptr(p->frame, p->slot);
    if (!p->is_local)
        return value + (uint64_t)lane * p->bytes;
    uint64_t base;
    memcpy(&base, value + 8 * lane, sizeof base);
    return local_at(warp, lane, base + (uint64_t)p->offset);
}

/* Undefined bytes stay undefined when passed. */
static void pass_undefined(vm_warp *warp, const place *to, const place *from, uint32_t mask)
{
    uint64_t bytes = to->bytes < from->bytes ? to->bytes : from->bytes;
    for (uint32_t m = mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint8_t *d = to->is_local ? warp->local_undefined + (lane_of(warp, to, lane) - warp->local) : NULL;
        uint8_t *s =
            from->is_local ? warp->local_undefined + (lane_of(warp, from, lane) - warp->local) : NULL;
        vm_check_pass(to->frame, to->slot, d, from->frame, from->slot, s, bytes, lane);
    }
}

static void pass(vm_warp *warp, place to, place from, uint32_t mask)
{
    if (to.slot == VM_NO_SLOT || from.slot == VM_NO_SLOT || (to.bytes == 0) != (from.bytes == 0))
        return;
    if (warp->block->watch && warp->block->watch->init)
        pass_undefined(warp, &to, &from, mask);
    if (!to.is_local && !from.is_local && to.bytes == from.bytes) {
        vm_blend(vm_slot_ptr(to.frame, to.slot), vm_slot_ptr(from.frame, from.slot), (int)to.bytes, mask);
        return;
    }
    size_t bytes = to.bytes < from.bytes ? to.bytes : from.bytes;
    for (uint32_t m = mask; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint8_t *d = lane_of(warp, &to, lane);
        const uint8_t *s = lane_of(warp, &from, lane);
        if (bytes == 4)
            memcpy(d, s, 4);
        else if (bytes == 8)
            memcpy(d, s, 8);
        else
            memcpy(d, s, bytes);
    }
}

static int reg_of(const int *regs, int i)
{
    return regs ? regs[i] : -1;
}

static void pass_arguments(vm_warp *warp, const vm_op *op, const vm_frame *caller, const vm_frame *callee,
                           uint32_t mask)
{
    const pvm_function *f = callee->code->function;
    for (int i = 0; i < f->n_params && i < op->inst->call->n_args; i++)
        pass(warp, place_of_formal(callee, f->params[i], reg_of(f->reg_of_param, i), callee->code->inputs_at),
             place_of_argument(caller, &op->operand[op->n_results + i]), mask);
}

static void pass_results(vm_warp *warp, const vm_op *op, const vm_frame *caller, const vm_frame *callee,
                         uint32_t mask)
{
    const pvm_function *f = callee->code->function;
    for (int i = 0; i < f->n_returns && i < op->n_results; i++)
        pass(warp, place_of_argument(caller, &op->operand[i]),
             place_of_formal(callee, f->returns[i], reg_of(f->reg_of_return, i), callee->code->returns_at),
             mask);
}

/* ---- call ---- */

static vm_result no_memory(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    char text[256];
    ptxvm_status status = vm_worker_shortage(warp->block->worker, text, sizeof text);
    return vm_fault(warp, op, __builtin_ctz(mask), status, "%s", text);
}

/* Lanes of `mask` whose value is that of the first. */
static uint32_t same_as_first(const void *values, int width, uint32_t mask, uint64_t *value)
{
    uint32_t same = 0;
    *value = 0;
    memcpy(value, (const uint8_t *)values + width * __builtin_ctz(mask), (size_t)width);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint64_t other = 0;
        memcpy(&other, (const uint8_t *)values + width * __builtin_ctz(m), (size_t)width);
        if (other == *value)
            same |= m & -m;
    }
    return same;
}

/* The function that the first lane calls; lanes with another target will execute the call again from the same
 * place. */
static const vm_code *find_target(vm_warp *warp, const vm_op *op, uint32_t *mask, vm_result *result)
{
    const vm_kernel *kernel = warp->block->launch->kernel;
    const vm_operand *target = &op->operand[op->n_operands - 1];
    int32_t pc = warp->scheduler->pc;
    uint64_t value;
    uint32_t same = same_as_first(vm_value(warp, target), target->width, *mask, &value);
    *result = VM_BRANCHED;
    if (same != *mask && !vm_split(warp, *mask & ~same, pc, pc, pc + 1)) {
        *result = no_memory(warp, op, same);
        return NULL;
    }
    *mask = same;
    const pvm_module *ptx = kernel->module->ptx;
    const pvm_call *call = op->inst->call;
    uint64_t first = vm_function_address(kernel->module, ptx->functions[0]);
    uint64_t index = (value - first) / VM_CODE_STEP;
    const vm_code *code =
        value >= first && (value - first) % VM_CODE_STEP == 0 && index < (uint64_t)ptx->n_functions
            ? vm_code_of(kernel, ptx->functions[index])
            : NULL;
    if (!code || code->function->is_entry ||
        !pvm_same_signature(code->function, call->prototype ? call->prototype : call->candidates[0])) {
        *result =
            vm_fault(warp, op, __builtin_ctz(same), PTXVM_ERROR_EXECUTION,
                     "indirect call of 0x%llx, which is not a function of this kernel with that prototype",
                     (unsigned long long)value);
        return NULL;
    }
    return code;
}

vm_result vm_exec_call(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_scheduler *s = warp->scheduler;
    const vm_call_site *site = op->extra;
    const vm_code *code = site->callee;
    int32_t pc = s->pc;
    vm_result result;
    if (mask != warp->active && !vm_split(warp, warp->active & ~mask, pc + 1, pc, pc + 1))
        return no_memory(warp, op, mask);
    if (!code && !(code = find_target(warp, op, &mask, &result)))
        return result;
    vm_frame *caller = warp->frame, *callee = vm_frame_new(warp, code);
    vm_join *join = callee ? vm_join_new(warp, (vm_join){.frame = caller,
                                                         .pc = pc + 1,
                                                         .expected = mask,
                                                         .parent = s->join,
                                                         .callee = callee})
                           : NULL;
    if (!join)
        return no_memory(warp, op, mask);
    callee->caller = caller;
    callee->call_site = op;
    callee->lanes = mask;
    if (!enter_local(warp, callee, mask))
        return warp->block->worker->limited ? no_memory(warp, op, mask)
                                            : vm_fault(warp, op, __builtin_ctz(mask), PTXVM_ERROR_EXECUTION,
                                                       "stack overflow: the limit is %llu bytes per thread",
                                                       (unsigned long long)warp->block->launch->stack_limit);
    pass_arguments(warp, op, caller, callee, mask);
    warp->frame = callee;
    s->join = join;
    s->pc = 0;
    return VM_BRANCHED;
}

/* ---- ret and exit ---- */

/* The lanes leave; the rest of the running group continues after the instruction. */
static vm_result continue_without(vm_warp *warp, uint32_t gone)
{
    warp->active &= ~gone;
    warp->scheduler->pc++;
    return VM_BRANCHED;
}

static void leave_local(vm_warp *warp, const vm_frame *frame, uint32_t mask)
{
    const uint64_t *base = vm_slot_ptr(frame, frame->code->local_base);
    for (uint32_t m = mask; m; m &= m - 1)
        warp->local_top[__builtin_ctz(m)] = base[__builtin_ctz(m)];
}

vm_result vm_exec_ret(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_scheduler *s = warp->scheduler;
    vm_frame *frame = warp->frame, *caller = frame->caller;
    if (!caller)
        return vm_exec_exit(warp, op, mask);
    pass_results(warp, frame->call_site, caller, frame, mask);
    leave_local(warp, frame, mask);
    vm_join *join = s->join;
    while (join->callee != frame)
        join = join->parent;
    vm_leave(warp, mask, s->join, join);
    join->arrived |= mask;
    frame->lanes &= ~mask;
    vm_settle(warp, join);
    return continue_without(warp, mask);
}

vm_result vm_exec_exit(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)op;
    warp->live &= ~mask;
    for (vm_frame *frame = warp->frame; frame; frame = frame->caller)
        frame->lanes &= ~mask;
    vm_leave(warp, mask, warp->scheduler->join, NULL);
    continue_without(warp, mask);
    vm_barrier_exit(warp->block);
    return VM_BRANCHED;
}

/* ---- brx.idx ---- */

vm_result vm_exec_brx(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_scheduler *s = warp->scheduler;
    const vm_branch_table *table = op->extra;
    const vm_operand *index = &op->operand[0];
    int32_t pc = s->pc;
    uint64_t value;
    if (mask != warp->active && !vm_split(warp, warp->active & ~mask, pc + 1, pc, op->join))
        return no_memory(warp, op, mask);
    uint32_t same = same_as_first(vm_value(warp, index), index->width, mask, &value);
    if (value >= (uint64_t)table->n)
        return vm_fault(warp, op, __builtin_ctz(mask), PTXVM_ERROR_EXECUTION,
                        "brx.idx with index %llu of %d targets", (unsigned long long)value, table->n);
    if (same != mask && !vm_split(warp, mask & ~same, pc, pc, op->join))
        return no_memory(warp, op, mask);
    s->pc = table->target[value];
    return VM_BRANCHED;
}
