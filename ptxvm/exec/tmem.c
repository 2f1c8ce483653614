/* Allocating tensor memory. With a seed an allocation may lie at any place that fits, as programs must not expect it at
 * column 0. */
#include "tmem.h"

#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "ops_common.h"
#include "ptxvm/exec/hooks.h"

#define FRESH 0x7FBADBADu /* in columns that have just been allocated: a NaN */

vm_tmem *vm_tmem_of(const vm_block *block)
{
    return block->ops && block->ops->tmem.lane ? &block->ops->tmem : NULL;
}

static vm_tmem *tmem_of(vm_warp *warp, const vm_op *op)
{
    struct vm_ops_block *ops = ops_block_of(warp, op);
    if (!ops)
        return NULL;
    if (!ops->tmem.lane)
        ops->tmem.lane = malloc(sizeof *ops->tmem.lane * TMEM_LANES);
    if (!ops->tmem.lane)
        vm_fault(warp, op, 0, PTXVM_ERROR_MEMORY, "the host has no memory left for tensor memory");
    return ops->tmem.lane ? &ops->tmem : NULL;
}

/* ---- What may be accessed ---- */

static bool is_allocated(const vm_tmem *tmem, uint32_t column, uint32_t columns)
{
    if (!tmem || column >= TMEM_COLUMNS || columns > TMEM_COLUMNS - column)
        return false;
    for (uint32_t unit = column / TMEM_UNIT; unit <= (column + columns - 1) / TMEM_UNIT; unit++)
        if (!tmem->owner[unit])
            return false;
    return true;
}

bool vm_tmem_holds(vm_warp *warp, const vm_op *op, int lane, const tmem_region *r, const char *name)
{
    bool lanes_fit = r->lane < TMEM_LANES && r->lanes <= TMEM_LANES - r->lane;
    if (lanes_fit && is_allocated(vm_tmem_of(r->block), r->column, r->columns))
        return true;
    ptxvm_finding detail = {.kind = PTXVM_FINDING_OUT_OF_BOUNDS,
                            .space = "tensor",
                            .address = (uint64_t)r->lane << 16 | r->column,
                            .access_bytes = 4 * (uint64_t)r->columns};
    vm_fault_access(warp, op, lane, PTXVM_ERROR_ADDRESS, &detail,
                    "%s: lanes %u to %u, columns %u to %u of tensor memory: %s", name, r->lane,
                    r->lane + r->lanes - 1, r->column, r->column + r->columns - 1,
                    lanes_fit ? "not all of these columns are allocated" : "there are lanes 0 to 127");
    return false;
}

vm_block *vm_tmem_peer(vm_warp *warp, const vm_op *op, int lane)
{
    const vm_cluster *cluster = warp->block->cluster;
    uint32_t rank = warp->block->rank ^ 1;
    vm_block *peer = rank < (uint32_t)cluster->n ? cluster->blocks[rank] : NULL;
    if (peer && !peer->ended)
        return peer;
    vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
             peer ? ".cta_group::2 in block %u of a cluster whose block %u has ended"
                  : ".cta_group::2 in block %u of a cluster that has no block %u",
             warp->block->rank, rank);
    return NULL;
}

int vm_tmem_group(vm_warp *warp, const vm_op *op, int lane)
{
    struct vm_ops_block *ops = ops_block_of(warp, op);
    if (!ops)
        return 0;
    if (!ops->tmem.first)
        ops->tmem.first = op;
    unsigned group = op->inst->mod[S_FLAG2];
    if (ops->tmem.first->inst->mod[S_FLAG2] == group)
        return group == M_cta_group__2 ? 2 : 1;
    vm_fault(
        warp, op, lane, PTXVM_ERROR_EXECUTION,
        "%s here and another .cta_group at line %d: all tcgen05 instructions of a kernel must have the same",
        pvm_mod_text((pvm_mod)group), ops->tmem.first->inst->line);
    return 0;
}

/* ---- Allocation ---- */

/* All lanes of a warp together, with the same number of columns. */
static bool is_by_whole_warp(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    if (mask == UINT32_MAX)
        return true;
    vm_fault(warp, op, vm_first(mask), PTXVM_ERROR_EXECUTION,
             "only the lanes 0x%08x execute it: all 32 threads of the warp must, together", mask);
    return false;
}

static bool columns_of(vm_warp *warp, const vm_op *op, const vm_operand *operand, uint32_t *columns)
{
    *columns = (uint32_t)ops_operand(warp, operand, 0);
    for (int lane = 1; lane < WARP; lane++)
        if ((uint32_t)ops_operand(warp, operand, lane) != *columns) {
            vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
                     "%u columns here and %u in lane 0: it must be the same in all lanes",
                     (unsigned)ops_operand(warp, operand, lane), *columns);
            return false;
        }
    if (*columns >= TMEM_UNIT && *columns <= TMEM_COLUMNS && !(*columns & (*columns - 1)))
        return true;
    vm_fault(warp, op, 0, PTXVM_ERROR_EXECUTION, "%u columns: it must be 32, 64, 128, 256 or 512", *columns);
    return false;
}

static bool is_free(const vm_tmem *tmem, uint32_t unit, uint32_t units)
{
    for (uint32_t i = 0; i < units; i++)
        if (tmem->owner[unit + i])
            return false;
    return true;
}

/* A place that is free in one or two blocks, aligned to its size; -1: none. */
static int find_place(const vm_warp *warp, const vm_tmem *a, const vm_tmem *b, uint32_t columns)
{
    uint32_t units = columns / TMEM_UNIT, n = 0, free_at[TMEM_UNITS];
    for (uint32_t unit = 0; unit < TMEM_UNITS; unit += units)
        if (is_free(a, unit, units) && is_free(b, unit, units))
            free_at[n++] = unit;
    if (!n)
        return -1;
    const vm_block *block = warp->block;
    uint64_t seed = block->launch->vm->config.seed;
    uint64_t state = seed ^ (block->linear_index / 2 + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (int)free_at[seed ? vm_random(&state) % n : 0];
}

static void take(vm_tmem *tmem, int unit, uint32_t columns)
{
    memset(tmem->owner + unit, unit + 1, columns / TMEM_UNIT);
    tmem->last_columns = columns;
    for (int lane = 0; lane < TMEM_LANES; lane++)
        for (uint32_t i = 0; i < columns; i++)
            tmem->lane[lane][(uint32_t)unit * TMEM_UNIT + i] = FRESH;
}

static bool may_allocate(vm_warp *warp, const vm_op *op, const vm_tmem *tmem, uint32_t columns)
{
    if (tmem->relinquished)
        vm_fault(warp, op, 0, PTXVM_ERROR_EXECUTION,
                 "the block has given up allocating by tcgen05.relinquish_alloc_permit");
    if (tmem->last_columns && columns > tmem->last_columns && warp->block->watch)
        vm_check_tmem_growth(warp, op, columns, tmem->last_columns);
    return !tmem->relinquished;
}

static vm_result store_address(vm_warp *warp, const vm_op *op, uint32_t address)
{
    uint64_t to[WARP];
    vm_addresses(warp, &op->operand[0], 1, to);
    uint8_t *host = vm_translate_lane(warp, op, 0, op->operand[0].space, to[0], 4, 4, VM_STORE);
    if (!host)
        return VM_FAULT;
    memcpy(host, &address, 4);
    return VM_NEXT;
}

static vm_result alloc_single(vm_warp *warp, const vm_op *op, vm_tmem *tmem, uint32_t columns)
{
    int unit = find_place(warp, tmem, tmem, columns);
    if (unit < 0)
        return VM_BLOCK; /* until another warp deallocates */
    take(tmem, unit, columns);
    if (warp->block->check)
        vm_check_tmem_alloc(warp->block, (uint32_t)unit * TMEM_UNIT, columns);
    return store_address(warp, op, (uint32_t)unit * TMEM_UNIT);
}

/* A warp of each block of a pair: the second to come allocates for both. */
static vm_result alloc_pair(vm_warp *warp, const vm_op *op, vm_tmem *tmem, uint32_t columns)
{
    vm_block *peer = vm_tmem_peer(warp, op, 0);
    if (!peer)
        return VM_FAULT;
    if (tmem->granted) {
        uint32_t address = tmem->granted - 1;
        tmem->granted = tmem->wanted = 0;
        return store_address(warp, op, address);
    }
    vm_tmem *other = vm_tmem_of(peer);
    tmem->wanted = columns;
    if (!other || !other->wanted)
        return VM_BLOCK;
    if (other->wanted != columns)
        return vm_fault(warp, op, 0, PTXVM_ERROR_EXECUTION,
                        "%u columns here and %u in the other block of the pair: both must allocate the same",
                        columns, other->wanted);
    int unit = find_place(warp, tmem, other, columns);
    if (unit < 0)
        return VM_BLOCK;
    take(tmem, unit, columns);
    take(other, unit, columns);
    if (warp->block->check) {
        vm_check_tmem_alloc(warp->block, (uint32_t)unit * TMEM_UNIT, columns);
        vm_check_tmem_alloc(peer, (uint32_t)unit * TMEM_UNIT, columns);
    }
    tmem->wanted = 0;
    other->granted = 1 + (uint32_t)unit * TMEM_UNIT;
    vm_wake(peer);
    return store_address(warp, op, (uint32_t)unit * TMEM_UNIT);
}

vm_result vm_exec_tmem_alloc(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint32_t columns;
    int group = is_by_whole_warp(warp, op, mask) ? vm_tmem_group(warp, op, 0) : 0;
    vm_tmem *tmem = group ? tmem_of(warp, op) : NULL;
    if (!tmem || !columns_of(warp, op, &op->operand[1], &columns) || !may_allocate(warp, op, tmem, columns))
        return VM_FAULT;
    return (group == 2 ? alloc_pair : alloc_single)(warp, op, tmem, columns);
}

vm_result vm_exec_tmem_dealloc(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint32_t columns, address;
    if (!is_by_whole_warp(warp, op, mask) || !vm_tmem_group(warp, op, 0) ||
        !columns_of(warp, op, &op->operand[1], &columns))
        return VM_FAULT;
    vm_tmem *tmem = vm_tmem_of(warp->block);
    address = (uint32_t)ops_operand(warp, &op->operand[0], 0);
    uint32_t unit = address / TMEM_UNIT, units = columns / TMEM_UNIT, n = 0;
    while (tmem && address % TMEM_UNIT == 0 && unit + n < TMEM_UNITS && tmem->owner[unit + n] == unit + 1)
        n++;
    if (n != units)
        return vm_fault(warp, op, 0, PTXVM_ERROR_EXECUTION,
                        n ? "%u columns of tensor memory at 0x%x: %u were allocated there"
                          : "%u columns of tensor memory at 0x%x: nothing was allocated there",
                        columns, address, n * TMEM_UNIT);
    if (warp->block->check)
        vm_check_tmem_dealloc(warp, op, address, columns);
    memset(tmem->owner + unit, 0, units);
    for (int i = 0; i < warp->block->cluster->n; i++)
        vm_wake(warp->block->cluster->blocks[i]);
    return VM_NEXT;
}

vm_result vm_exec_tmem_relinquish(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    if (!is_by_whole_warp(warp, op, mask) || !vm_tmem_group(warp, op, 0))
        return VM_FAULT;
    warp->block->ops->tmem.relinquished = true;
    return VM_NEXT;
}

/* ---- The life of a block ---- */

void vm_tmem_begin(vm_block *block)
{
    if (block->ops)
        block->ops->tmem = (vm_tmem){.lane = block->ops->tmem.lane};
}

void vm_tmem_end(vm_block *block)
{
    const vm_tmem *tmem = vm_tmem_of(block);
    uint32_t units = 0;
    for (int i = 0; tmem && i < TMEM_UNITS; i++)
        units += tmem->owner[i] != 0;
    if (units && block->watch)
        vm_check_tmem_leak(block, units * TMEM_UNIT, tmem->first);
}

void vm_tmem_free(vm_block *block)
{
    free(block->ops ? block->ops->tmem.lane : NULL);
}
