/* Launches that overlap (programmatic dependent launch): what one of them may do before griddepcontrol.wait, and what the
 * launches in front of it may still do. The cells of the race check keep the accesses of these launches: one of them is ordered
 * before an access of this launch if the thread has executed griddepcontrol.wait, or synchronized with one that has. */
#include "check.h"

void check_horizon(vm_watch *watch, const vm_launch *launch)
{
    const struct vm_overlap *o = launch->vm->overlap;
    watch->horizon = watch->unwaited = watch->start;
    if (!launch->programmatic)
        return;
    watch->horizon = watch->unwaited = o->chain[0].start;
    if (!o->chain[o->n - 1].waited) /* it may end before those in front of it */
        watch->unwaited = o->chain[o->n - 1].start;
}

void vm_check_grid_wait(vm_warp *warp)
{
    vm_watch *watch = vm_watch_of(warp);
    uint32_t *waited = warp->block->check ? &warp->block->check->waited[warp->index] : NULL;
    if (!watch->race || !waited || *waited)
        return;
    *waited = ++warp->block->launch->vm->checks->clock;
    if (!watch->waited)
        watch->waited = *waited;
}

static bool has_waited(const vm_warp *warp, int lane)
{
    const block_check *check = warp->block->check;
    const vm_watch *watch = vm_watch_of(warp);
    if (check->waited[warp->index])
        return true;
    for (int w = 0; w < warp->block->n_warps; w++)
        if (check->waited[w] && check->released[w] > check->waited[w] &&
            check->acquired[warp->index] > check->waited[w])
            return true;
    return watch->waited && check->grid_acquired[WARP * warp->index + lane] > watch->waited;
}

bool check_has_ended(const vm_warp *warp, int lane, const race_touch *past)
{
    return past->time >= vm_watch_of(warp)->unwaited && has_waited(warp, lane);
}

const vm_past_launch *check_launch_of(const vm_warp *warp, const race_touch *past)
{
    const struct vm_overlap *o = warp->block->launch->vm->overlap;
    int i = o->n - 1;
    while (i > 0 && o->chain[i].start > past->time)
        i--;
    return &o->chain[i];
}

static void place_of(const vm_past_launch *launch, const race_touch *past, ptxvm_finding *f)
{
    uint32_t thread = past->thread == RACE_ASYNC ? 0 : past->thread;
    f->other_block[0] = past->block % launch->grid[0];
    f->other_block[1] = past->block / launch->grid[0] % launch->grid[1];
    f->other_block[2] = past->block / launch->grid[0] / launch->grid[1];
    f->other_thread[0] = thread % launch->dim[0];
    f->other_thread[1] = thread / launch->dim[0] % launch->dim[1];
    f->other_thread[2] = thread / launch->dim[0] / launch->dim[1];
}

void check_report_overlap(vm_warp *warp, const vm_op *op, int lane, const race_touch *past, bool writes,
                          bool was_write, ptxvm_finding *f)
{
    const struct vm_overlap *o = warp->block->launch->vm->overlap;
    const vm_past_launch *other = check_launch_of(warp, past);
    const bool has_ended = check_has_ended(warp, lane, past), in_vain = !has_ended && has_waited(warp, lane);
    const char *between = o->chain[o->n - 1].kernel->function->name;
    place_of(other, past, f);
    vm_check_report(
        warp, op, lane, f, -2 - (int)past->site,
        "race: %s %llu bytes at %s address 0x%llx that the launch of %s %s, block (%u,%u,%u), thread "
        "(%u,%u,%u) %s at line %d: %s%s%s",
        writes ? "writes" : "reads", (unsigned long long)f->access_bytes, f->space,
        (unsigned long long)f->address, other->kernel->function->name,
        in_vain ? "in front of the last one" : "in front of this one", f->other_block[0], f->other_block[1],
        f->other_block[2], f->other_thread[0], f->other_thread[1], f->other_thread[2],
        was_write ? "wrote" : "read", f->other_line,
        has_ended
            ? "ld.global.nc needs memory that nothing writes while the kernel runs, and this one began before"
        : in_vain ? "griddepcontrol.wait waits for "
                  : "griddepcontrol.wait has to come first",
        in_vain ? between : "", in_vain ? " alone, which has not waited for it" : "");
}
