/* Special registers, addresses as numbers, and instructions with little or no effect here. */
#include "cluster.h"
#include "ops_common.h"
#include "overlap.h"
#include "ptxvm/exec/hooks.h"

#include "boards/boards.h"
#include "ptxvm/sm.h"

/* ---- special registers ---- */

typedef uint64_t sreg_fn(const vm_warp *warp, const vm_op *op, int lane, uint64_t component);

/* clang-format off */
#define SREG(name, expression) \
    static uint64_t read_##name(const vm_warp *warp, const vm_op *op, int lane, uint64_t component) \
    { (void)warp, (void)op, (void)lane, (void)component; return expression; }
#define BLOCK (warp->block)
#define LAUNCH (warp->block->launch)
/* x y z of a triple; w reads 0. */
#define XYZ(triple) (component < 3 ? (triple)[component] : 0)

/* clang-format on */

static uint64_t multiprocessors(const vm_warp *warp)
{
    return (uint64_t)LAUNCH->vm->board->multiprocessors;
}

/* clang-format off */
SREG(tid, component < 3 ? warp->tid[component][lane] : 0)
SREG(ntid, XYZ(LAUNCH->dim))
SREG(laneid, (uint64_t)lane)
SREG(warpid, (uint64_t)warp->index)
SREG(nwarpid, (uint64_t)LAUNCH->vm->traits->threads / 32)
SREG(ctaid, XYZ(BLOCK->ctaid))
SREG(nctaid, XYZ(LAUNCH->grid))
SREG(smid, BLOCK->linear_index % multiprocessors(warp))
SREG(nsmid, multiprocessors(warp))
SREG(gridid, LAUNCH->grid_id)
SREG(zero, 0)
SREG(clusterid, component < 3 ? BLOCK->ctaid[component] / LAUNCH->cluster[component] : 0)
SREG(nclusterid, component < 3 ? LAUNCH->grid[component] / LAUNCH->cluster[component] : 0)
SREG(cluster_ctaid, component < 3 ? BLOCK->ctaid[component] % LAUNCH->cluster[component] : 0)
SREG(cluster_nctaid, XYZ(LAUNCH->cluster))
SREG(cluster_ctarank, BLOCK->rank)
SREG(cluster_nctarank, (uint64_t)LAUNCH->n_cluster)
SREG(is_explicit_cluster, LAUNCH->explicit_cluster)
SREG(lanemask_eq, 1u << lane)
SREG(lanemask_lt, (1u << lane) - 1)
SREG(lanemask_le, (2u << lane) - 1)
SREG(lanemask_gt, (uint32_t)~((2u << lane) - 1))
SREG(lanemask_ge, (uint32_t)~((1u << lane) - 1))
/* The clock counts the instructions that the block has issued: the same in every run. */
SREG(clock, (uint32_t)vm_clock(warp, op))
SREG(clock_hi, vm_clock(warp, op) >> 32)
SREG(clock64, vm_clock(warp, op))
/* Cooperative groups find the workspace for grid barriers in %envreg1 (high half) and %envreg2. */
SREG(envreg, component == 1 ? LAUNCH->workspace >> 32 : component == 2 ? (uint32_t)LAUNCH->workspace : 0)
SREG(total_smem_size, BLOCK->shared_bytes)
SREG(aggr_smem_size, BLOCK->shared_bytes * (uint64_t)LAUNCH->n_cluster)
SREG(dynamic_smem_size, LAUNCH->dynamic_shared)

static sreg_fn *const sregs[SREG_COUNT] = {
    [SREG_tid] = read_tid, [SREG_ntid] = read_ntid, [SREG_laneid] = read_laneid, [SREG_warpid] = read_warpid,
    [SREG_nwarpid] = read_nwarpid, [SREG_ctaid] = read_ctaid, [SREG_nctaid] = read_nctaid,
    [SREG_smid] = read_smid,
    [SREG_nsmid] = read_nsmid, [SREG_gridid] = read_gridid, [SREG_clusterid] = read_clusterid,
    [SREG_nclusterid] = read_nclusterid, [SREG_cluster_ctaid] = read_cluster_ctaid,
    [SREG_cluster_nctaid] = read_cluster_nctaid,
    [SREG_cluster_ctarank] = read_cluster_ctarank, [SREG_cluster_nctarank] = read_cluster_nctarank,
    [SREG_is_explicit_cluster] = read_is_explicit_cluster, [SREG_lanemask_eq] = read_lanemask_eq,
    [SREG_lanemask_le] = read_lanemask_le,
    [SREG_lanemask_lt] = read_lanemask_lt, [SREG_lanemask_ge] = read_lanemask_ge,
    [SREG_lanemask_gt] = read_lanemask_gt,
    [SREG_clock] = read_clock, [SREG_clock_hi] = read_clock_hi, [SREG_clock64] = read_clock64,
    [SREG_globaltimer] = read_clock64, [SREG_globaltimer_lo] = read_clock,
    [SREG_globaltimer_hi] = read_clock_hi,
    [SREG_total_smem_size] = read_total_smem_size, [SREG_aggr_smem_size] = read_aggr_smem_size,
    [SREG_dynamic_smem_size] = read_dynamic_smem_size,
    [SREG_envreg] = read_envreg,
    /* pm*, reserved_smem_offset_* and current_graph_exec read 0. */
};
/* clang-format on */

static vm_result exec_mov_sreg(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *d = &op->operand[0];
    const pvm_operand *source = op->operand[1].source;
    sreg_fn *read = sregs[source->sreg] ? sregs[source->sreg] : read_zero;
    VM_EACH_LANE(lane, mask)
    {
        uint64_t value = read(warp, op, (int)lane, source->bits);
        if (d->width == 0)
            ops_result_predicate(warp, d, 1u << lane, value ? UINT32_MAX : 0);
        else
            ops_result(warp, d, (int)lane, value);
    }
    return VM_NEXT;
}

bool ops_find_mov(vm_op *op)
{
    op->exec = exec_mov_sreg;
    return op->n_operands == 2 && op->operand[1].source->kind == OPERAND_SREG;
}

/* ---- addresses ---- */

static uint64_t value_of(const vm_warp *warp, const vm_operand *operand, int lane)
{
    if (!operand->is_address)
        return ops_operand(warp, operand, lane);
    uint64_t address[WARP];
    vm_addresses(warp, operand, 1u << lane, address);
    return address[lane];
}

/* cvta and cvta.to: adds or subtracts the base of the window. */
static vm_result exec_cvta(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    pvm_space space = pvm_mod_space(op->inst->mod[S_SPACE]);
    /* A function's parameters are in local memory. */
    if (space == SPACE_PARAM && op->operand[1].space == SPACE_LOCAL)
        space = SPACE_LOCAL;
    uint64_t base = vm_window_base(space);
    if (op->inst->mod[S_DIR] == M_to)
        base = -base;
    bool own =
        space == SPACE_SHARED && op->inst->mod[S_DIR] != M_to && op->inst->mod[S_SPACE] != M_shared__cluster;
    VM_EACH_LANE(lane, mask)
    {
        uint64_t address = value_of(warp, &op->operand[1], (int)lane);
        if (own && address < VM_SHARED_SIZE)
            address |= warp->block->shared_base;
        ops_result(warp, &op->operand[0], (int)lane, address + base);
    }
    return VM_NEXT;
}

/* ISA: the window of kernel parameters is part of the global window. */
static vm_result exec_isspacep(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    pvm_space space = pvm_mod_space(op->inst->mod[S_SPACE]);
    uint32_t result = 0;
    VM_EACH_LANE(lane, mask)
    {
        uint64_t address = value_of(warp, &op->operand[1], (int)lane);
        pvm_space found = vm_space_of(address);
        bool inside = found == space || (space == SPACE_GLOBAL && found == SPACE_PARAM);
        if (space == SPACE_SHARED && op->inst->mod[S_SPACE] != M_shared__cluster)
            inside &= address - VM_SHARED_BASE - warp->block->shared_base < VM_SHARED_SIZE;
        result |= (uint32_t)inside << lane;
    }
    ops_result_predicate(warp, &op->operand[0], mask, result);
    return VM_NEXT;
}

/* The part of an address that is in the .shared::cluster window: generic ones lie behind its start. */
static uint64_t shared_part(const vm_op *op, uint64_t address)
{
    return op->inst->mod[S_SPACE] == M_NONE ? address - VM_SHARED_BASE : address;
}

/* mapa: the address of the same variable in the block of that rank. */
static vm_result exec_mapa(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        uint64_t rank = ops_operand(warp, &op->operand[2], (int)lane);
        uint64_t address = value_of(warp, &op->operand[1], (int)lane), at = shared_part(op, address);
        if (rank >= (uint64_t)warp->block->cluster->n)
            return vm_fault(warp, op, (int)lane, PTXVM_ERROR_EXECUTION,
                            "mapa of block %llu in a cluster of %d", (unsigned long long)rank,
                            warp->block->cluster->n);
        ops_result(warp, &op->operand[0], (int)lane,
                   address - at + at % VM_SHARED_SIZE + rank * VM_SHARED_SIZE);
    }
    return VM_NEXT;
}

static vm_result exec_getctarank(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane,
               shared_part(op, value_of(warp, &op->operand[1], (int)lane)) / VM_SHARED_SIZE);
    return VM_NEXT;
}

static vm_result exec_alloca(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint64_t align = op->n_operands > 2 ? op->operand[2].bits : 8;
    VM_EACH_LANE(lane, mask)
    {
        uint64_t bytes = ops_operand(warp, &op->operand[1], (int)lane), address;
        if (!vm_local_reserve(warp, (int)lane, bytes, align, &address))
            return vm_fault(warp, op, (int)lane, PTXVM_ERROR_EXECUTION,
                            "alloca of %llu bytes: the stack is full", (unsigned long long)bytes);
        ops_result(warp, &op->operand[0], (int)lane, address);
    }
    return VM_NEXT;
}

static vm_result exec_stacksave(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, warp->local_top[lane]);
    return VM_NEXT;
}

static vm_result exec_stackrestore(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        uint64_t top = ops_operand(warp, &op->operand[0], (int)lane);
        if (top > warp->local_top[lane])
            return vm_fault(warp, op, (int)lane, PTXVM_ERROR_EXECUTION,
                            "stackrestore of 0x%llx, which no stacksave of this call returned",
                            (unsigned long long)top);
        warp->local_top[lane] = top;
    }
    return VM_NEXT;
}

bool ops_find_address(vm_op *op)
{
    static const struct {
        pvm_opcode opcode;
        vm_exec_fn *exec;
    } rows[] = {{OP_cvta, exec_cvta},
                {OP_isspacep, exec_isspacep},
                {OP_mapa, exec_mapa},
                {OP_getctarank, exec_getctarank},
                {OP_alloca, exec_alloca},
                {OP_stacksave, exec_stacksave},
                {OP_stackrestore, exec_stackrestore}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].opcode == op->inst->op)
            op->exec = rows[i].exec;
    return op->exec;
}

/* ---- the rest ---- */

static vm_result exec_nothing(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)warp, (void)op, (void)mask;
    return VM_NEXT;
}

static vm_result exec_sleep(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)warp, (void)op, (void)mask;
    return VM_YIELD;
}

static vm_result exec_trap(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    return vm_fault(warp, op, vm_first(mask), PTXVM_ERROR_TRAP, "%s", pvm_opcode_name(op->inst->op));
}

/* setmaxnreg: what one warp gives back another may take; it waits until there is enough. A warpgroup executes it as a whole, so
 * each of its warps counts for itself. Nothing happens if the registers at the start are not known. */
static vm_result exec_setmaxnreg(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_block *block = warp->block;
    uint16_t *have = &block->registers[warp->index];
    const bool more = op->inst->mod[S_SUB] == M_inc;
    const uint32_t want = (uint32_t)op->operand[0].bits;
    if (!block->launch->registers)
        return VM_NEXT;
    if (more ? want < *have : want > *have)
        return vm_fault(warp, op, vm_first(mask), PTXVM_ERROR_EXECUTION,
                        "setmaxnreg.%s to %u registers: the threads have %u", more ? "inc" : "dec", want,
                        *have);
    if (more && want - *have > block->free_registers)
        return VM_BLOCK;
    block->free_registers = block->free_registers + *have - want;
    *have = (uint16_t)want;
    if (!more)
        vm_wake(block);
    return VM_NEXT;
}

/* While the launch in front has not ended, wait blocks; vm_overlap_land lets it go on. */
static vm_result exec_griddepcontrol(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_block *block = warp->block;
    (void)mask;
    if (op->inst->mod[S_SUB] == M_launch_dependents)
        vm_overlap_trigger(block);
    else if (block->launch->early)
        return VM_BLOCK;
    else if (block->launch->programmatic) {
        block->waited = block->launch->waited = true;
        if (block->watch)
            vm_check_grid_wait(warp);
    }
    return VM_NEXT;
}

/* createpolicy: a hint that nothing here reads. */
static vm_result exec_policy(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, 0);
    return VM_NEXT;
}

/* Cache hints have no effect. Neither do fences: a warp's accesses happen in order, and blocks that read each
 * other's memory (volatile, relaxed or acquiring loads, atomics) run on one host thread. */
bool ops_find_misc(vm_op *op)
{
    switch (op->inst->op) {
    case OP_nanosleep:
        op->exec = exec_sleep;
        break;
    case OP_trap:
    case OP_brkpt:
        op->exec = exec_trap;
        break;
    case OP_setmaxnreg:
        op->exec = exec_setmaxnreg;
        break;
    case OP_griddepcontrol:
        op->exec = exec_griddepcontrol;
        break;
    case OP_createpolicy:
        op->exec = exec_policy;
        break;
    case OP_prefetch:
        op->exec = op->inst->mod[S_MODE] == M_tensormap ? ops_find_tensor_copy(op->inst) : exec_nothing;
        break;
    default:
        op->exec = exec_nothing;
    }
    return true;
}
