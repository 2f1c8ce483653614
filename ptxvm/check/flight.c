/* wgmma and tcgen05 in flight. wgmma: the registers of its result must not be accessed before the wait for it, those of a must not be
 * written, and the shared memory that it reads must not change. Registers that the warp has accessed need a wgmma.fence
 * before a wgmma uses them; accumulators of one wgmma after another do not. tcgen05: the same for the registers of a
 * load, and for shared memory. */
#include "check.h"

#include <string.h>

#include "ptxvm/exec/decode.h"
#include "ptxvm/exec/launch.h"

/* By register. */
typedef struct flight_register {
    uint16_t results, sources; /* products in flight that write it, and that read it as a */
    uint32_t fences;           /* how many fences had been executed when it was last accessed, plus 1 */
    int32_t line;              /* of that access */
    const pvm_inst *user;      /* the last product or load that uses it */
} flight_register;

struct check_flight {
    flight_register *registers;
};

bool vm_check_flight_new(vm_warp *warp, vm_frame *frame)
{
    vm_pool *pool = warp->block->worker->pool;
    size_t n = (size_t)frame->code->check->n_registers + 1;
    struct check_flight *flight = vm_pool_alloc(pool, sizeof *flight);
    if (!flight || !(flight->registers = vm_pool_alloc(pool, n * sizeof *flight->registers)))
        return false;
    frame->flight = flight;
    return true;
}

void vm_check_flight_clear(vm_frame *frame)
{
    size_t n = (size_t)frame->code->check->n_registers;
    memset(frame->flight->registers, 0, n * sizeof *frame->flight->registers);
}

static const char *user_name(const pvm_inst *inst)
{
    unsigned sub = inst->mod[S_SUB];
    return inst->op == OP_wgmma ? "wgmma"
           : sub == M_ld        ? "tcgen05.ld"
           : sub == M_cp        ? "tcgen05.cp"
                                : "tcgen05.mma";
}

static void report(vm_warp *warp, const vm_op *op, const check_op *info, int32_t id, const flight_register *r,
                   const char *does)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_IN_FLIGHT};
    vm_check_report(warp, op, vm_first(warp->active), &finding, -1,
                    "%s %s %s, which the %s of line %d %s: %s must come first", pvm_opcode_name(op->inst->op),
                    does, check_register_name(op, info, id), user_name(r->user), r->user->line,
                    r->results ? "has not written yet" : "may still read",
                    r->user->op == OP_wgmma ? "wgmma.wait_group" : "tcgen05.wait::ld");
}

void check_flight(vm_warp *warp, const vm_op *op, const check_op *info)
{
    if (op->inst->op == OP_wgmma)
        return;
    flight_register *registers = warp->frame->flight->registers;
    uint32_t fences = warp->block->check->fences[warp->index] + 1;
    for (int i = 0; i < info->n_uses + info->n_defs; i++) {
        flight_register *r = &registers[info->uses[i]];
        bool writes = i >= info->n_uses;
        if (r->results || (writes && r->sources))
            report(warp, op, info, info->uses[i], r, writes ? "writes" : "reads");
        r->fences = fences;
        r->line = op->inst->line;
    }
}

static const vm_tensor_site *site_of(const vm_op *op)
{
    return op->extra;
}

/* One register of a product that starts. */
static void begin_register(vm_warp *warp, const vm_op *op, int operand, bool is_result, bool is_read)
{
    const check_op *info = check_op_of(warp, op);
    int32_t id = info->id[operand];
    if (id < 0)
        return;
    flight_register *r = &warp->frame->flight->registers[id];
    ptxvm_finding finding = {.kind = PTXVM_FINDING_IN_FLIGHT};
    if (r->fences == warp->block->check->fences[warp->index] + 1 && !r->results)
        vm_check_report(warp, op, 0, &finding, -1,
                        "%s was accessed at line %d, and no wgmma.fence orders that before this wgmma",
                        check_register_name(op, info, id), r->line);
    if (!is_result && r->results)
        report(warp, op, info, id, r, "reads");
    if (is_result && is_read && !r->results && vm_watch_of(warp)->init && warp->frame->check->undefined[id]) {
        finding.kind = PTXVM_FINDING_UNINITIALISED;
        vm_check_report(warp, op, vm_first(warp->frame->check->undefined[id]), &finding, -1,
                        "wgmma adds to %s, which holds bytes that were never written: scale-d is true",
                        check_register_name(op, info, id));
    }
    r->results += is_result;
    r->sources += !is_result;
    r->user = op->inst;
    r->fences = 0;
}

void vm_check_flight_begin(vm_warp *warp, const vm_op *op, bool adds_to_d)
{
    if (!warp->frame->flight)
        return;
    ptxvm_finding finding = {.kind = PTXVM_FINDING_IN_FLIGHT};
    const int *n = site_of(op)->n;
    if (!warp->block->check->fences[warp->index])
        vm_check_report(warp, op, 0, &finding, -1,
                        "the first wgmma of a kernel needs a wgmma.fence before it");
    for (int i = 0; i < n[0]; i++)
        begin_register(warp, op, i, true, adds_to_d);
    for (int i = 0; n[1] > 1 && i < n[1]; i++)
        begin_register(warp, op, n[0] + i, false, true);
}

void vm_check_flight_end(vm_warp *warp, vm_frame *frame, const vm_op *op, int first, int n)
{
    const vm_watch *watch = warp->block->watch;
    for (int i = first; frame && (frame->flight || (watch && watch->init)) && i < first + n; i++) {
        int32_t id = frame->code->check->ops[op - frame->code->ops].id[i];
        if (id < 0)
            continue;
        if (frame->flight && first)
            frame->flight->registers[id].sources--;
        if (frame->flight && !first)
            frame->flight->registers[id].results = 0;
        if (!first && watch->init)
            frame->check->undefined[id] = 0;
    }
}

void vm_check_load_begin(vm_warp *warp, const vm_op *op)
{
    const check_op *info = warp->frame->flight ? check_op_of(warp, op) : NULL;
    for (int i = 0; info && i < op->n_results; i++) {
        if (info->id[i] < 0)
            continue;
        flight_register *r = &warp->frame->flight->registers[info->id[i]];
        if (r->results || r->sources)
            report(warp, op, info, info->id[i], r, "writes");
        r->results++;
        r->user = op->inst;
        if (vm_watch_of(warp)->init) /* reading it is found here */
            warp->frame->check->undefined[info->id[i]] = 0;
    }
}

void vm_check_load_undefined(vm_warp *warp, vm_frame *frame, const vm_op *op, int i, uint32_t lanes)
{
    const check_op *info = frame ? &frame->code->check->ops[op - frame->code->ops] : NULL;
    if (info && info->id[i] >= 0 && vm_watch_of(warp)->init)
        frame->check->undefined[info->id[i]] = lanes;
}

void vm_check_flight_fence(vm_warp *warp)
{
    if (warp->block->check)
        warp->block->check->fences[warp->index]++;
}

void vm_check_flight_lost(vm_warp *warp, const vm_op *op)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_IN_FLIGHT};
    if (warp->block->watch && warp->block->watch->sync)
        vm_check_report(warp, op, 0, &finding, -1,
                        "the result of this %s is lost: its function returns with no %s for it",
                        user_name(op->inst),
                        op->inst->op == OP_wgmma ? "wgmma.wait_group" : "tcgen05.wait::ld");
}

/* ---- Shared memory ---- */

void vm_check_operand(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, uint64_t at,
                      uint64_t bytes, bool begin)
{
    block_check *check = block->check;
    if (begin || op->inst->op == OP_wgmma) /* which the same warp waits for */
        vm_check_range(warp, op, lane, SPACE_SHARED, block->shared_base + at, bytes, VM_LOAD);
    for (uint64_t word = at / 4; check->operands && word < (at + bytes) / 4; word++) {
        check_operand *operand = &check->operands[word];
        operand->count += begin ? 1 : -1;
        check->n_operands += begin ? 1 : -1;
        operand->site = (uint32_t)op->site;
    }
}

void check_operand_write(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, uint64_t offset,
                         uint64_t bytes)
{
    const block_check *check = block->check;
    for (uint64_t word = offset / 4; word < (offset + bytes + 3) / 4; word++)
        if (check->operands[word].count) {
            const vm_op *other = warp->block->launch->kernel->sites[check->operands[word].site];
            ptxvm_finding finding = {
                .kind = PTXVM_FINDING_IN_FLIGHT, .space = "shared", .address = offset, .access_bytes = bytes};
            vm_check_report(
                warp, op, lane, &finding, -1,
                "writes %llu bytes at shared address 0x%llx, which the %s of line %d may still read: "
                "%s must come first",
                (unsigned long long)bytes, (unsigned long long)offset, user_name(other->inst),
                other->inst->line,
                other->inst->op == OP_wgmma ? "wgmma.wait_group"
                                            : "tcgen05.commit and a wait for its mbarrier");
            return;
        }
}
