/* Sets up the checks of a launch, and dispatches each op to them. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ptxvm/exec/launch.h"

bool vm_checks_need_one_thread(const ptxvm *vm)
{
    return vm->config.checks & (PTXVM_CHECK_INIT | PTXVM_CHECK_RACE | PTXVM_CHECK_SYNC);
}

vm_watch *vm_watch_new(vm_launch *launch, bool *ok)
{
    ptxvm *vm = launch->vm;
    bool counters = vm->config.counters != PTXVM_COUNTERS_OFF;
    *ok = true;
    if (!vm_checks_need_one_thread(vm) && !counters)
        return NULL;
    vm_watch *watch = calloc(1, sizeof *watch);
    if (watch) {
        watch->init = vm->config.checks & PTXVM_CHECK_INIT;
        watch->race = vm->config.checks & PTXVM_CHECK_RACE;
        watch->sync = vm->config.checks & PTXVM_CHECK_SYNC;
        watch->flight = watch->sync && (launch->kernel->has_wgmma || launch->kernel->has_tcgen05);
        watch->same = vm->config.checks & PTXVM_CHECK_SAME;
        watch->start = ++vm->checks->clock;
        check_horizon(watch, launch);
        if (watch->race && launch->n_blocks <= UINT32_MAX)
            watch->released = calloc(launch->n_blocks, sizeof *watch->released);
        watch->n_blocks = launch->n_blocks;
        watch->blind = !watch->released;
        if (counters)
            *ok = (watch->counts = calloc((size_t)launch->kernel->n_sites + 1, sizeof *watch->counts)) !=
                      NULL &&
                  (watch->recent = calloc(CHECK_RECENT, sizeof *watch->recent)) != NULL;
        if (*ok && vm->config.counters == PTXVM_COUNTERS_PATHS)
            *ok = (watch->paths = check_paths_new(launch->kernel->n_sites)) != NULL;
    } else
        *ok = false;
    return watch;
}

void vm_watch_free(vm_watch *watch)
{
    if (!watch)
        return;
    for (uint64_t i = 0; watch->released && i < watch->n_blocks; i++)
        free(watch->released[i]);
    free(watch->released);
    free(watch->counts);
    free(watch->recent);
    check_paths_free(watch->paths);
    free(watch);
}

/* ---- Blocks ---- */

bool vm_check_block_new(vm_block *block)
{
    const vm_watch *watch = block->watch;
    unsigned checks = block->launch->vm->config.checks;
    if (watch && watch->paths &&
        !(block->executed = calloc((size_t)block->n_warps * (size_t)block->launch->kernel->n_sites + 1,
                                   sizeof *block->executed)))
        return false;
    if (!watch || !vm_checks_need_one_thread(block->launch->vm))
        return true;
    block->check = calloc(1, sizeof *block->check);
    if (!block->check)
        return false;
    block->check->shared =
        vm_check_region_new(0, block->shared_bytes, block->shared_reach, checks, false, true);
    if (watch->sync)
        block->check->async = calloc(block->shared_reach / 4 + 8, 1);
    if (watch->flight)
        block->check->operands = calloc(block->shared_reach / 4 + 8, sizeof *block->check->operands);
    if (block->launch->kernel->has_tcgen05 && !check_tmem_new(block))
        return false;
    return block->check->shared && (!watch->sync || block->check->async) &&
           (!watch->flight || block->check->operands);
}

void vm_check_block_begin(vm_block *block)
{
    block_check *check = block->check;
    if (block->executed)
        memset(block->executed, 0,
               (size_t)block->n_warps * (size_t)block->launch->kernel->n_sites * sizeof *block->executed);
    if (!check)
        return;
    check->start = ++block->launch->vm->checks->clock;
    check->grid_latest = block->watch->start; /* starting late does not synchronize with others */
    for (int i = 0; i < WARP * block->n_warps; i++) {
        check->warp_acquired[i] = check->warp_released[i] = check->start;
        check->grid_acquired[i] = check->grid_latest;
        check->proxied[i] = check->fenced[i] = check->bulk_groups[i] = 0;
    }
    for (int w = 0; w < block->n_warps; w++) {
        check->acquired[w] = check->released[w] = check->start;
        check->waited[w] = 0;
        check->grid_latest_of_warp[w] = check->grid_latest;
    }
    check->n_bulk = 0;
    check->has_fenced = false;
    check->observed = 0;
    if (block->watch->init) {
        memset(check->shared->undefined, 1, block->shared_bytes);
        check->shared->n_undefined = block->shared_bytes;
    }
    memset(check->awaited, 0, sizeof check->awaited);
    if (check->async && check->n_async)
        memset(check->async, 0, block->shared_reach / 4 + 8);
    check->n_async = 0;
    if (check->operands && check->n_operands)
        memset(check->operands, 0, (block->shared_reach / 4 + 8) * sizeof *check->operands);
    check->n_operands = 0;
    memset(check->fences, 0, sizeof check->fences);
    check_tmem_begin(block);
}

bool vm_check_block_end(vm_block *block)
{
    return !block->executed || check_paths_add(block);
}

void vm_check_block_free(vm_block *block)
{
    free(block->executed);
    if (!block->check)
        return;
    vm_check_region_free(block->check->shared);
    free(block->check->async);
    free(block->check->bulk);
    free(block->check->operands);
    free(block->check->tmem);
    free(block->check);
}

/* ---- Ops ---- */

void vm_check_before(vm_warp *warp, const vm_op *op, uint32_t active, uint32_t mask)
{
    const vm_watch *watch = vm_watch_of(warp);
    const check_op *info = check_op_of(warp, op);
    if (watch->init)
        check_registers(warp, op, info, active, mask);
    if (watch->flight && mask)
        check_flight(warp, op, info);
    if (watch->counts && !info->late)
        check_count(warp, op, active, mask);
    if (info->event && mask && (watch->race || watch->sync))
        check_events_before(warp, op, mask);
}

void vm_check_after(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_watch *watch = vm_watch_of(warp);
    const check_op *info = check_op_of(warp, op);
    if (watch->counts && info->late)
        check_count(warp, op, mask, mask);
    if (watch->race && info->event)
        check_events_after(warp, op, mask);
}

void vm_check_members(vm_warp *warp, const vm_op *op, uint32_t mask, bool alike)
{
    const vm_watch *watch = vm_watch_of(warp);
    const check_op *info = check_op_of(warp, op);
    if (watch->race) {
        check_release(warp, mask, false, false);
        check_acquire(warp, mask, false, false);
    }
    if (watch->sync && op->flags & OPF_MEMBERS)
        check_members_came(warp, op, mask);
    if (info->action != CHECK_SHUFFLE || !alike)
        return;
    if (watch->init)
        check_shuffle(warp, op, info, mask);
    vm_check_undefined(warp, warp->frame, op, vm_check_outside(warp, op, mask));
}
