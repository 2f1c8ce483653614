/* Bulk copies (cp.async.bulk) that are used too early, or not waited for.
 *
 * A copy out of shared memory reads its source and writes its destination some time after it was started.
 * cp.async.bulk.wait_group.read tells that the source has been read: it may be written, and the block may end. Only
 * wait_group without .read tells that the destination is there. A copy into shared memory completes on its mbarrier,
 * whose phase must not end before: the bytes have to be announced by expect_tx. */
#include "check.h"

#include <stdlib.h>

/* A copy out of shared memory that has not been waited for. */
typedef struct check_bulk {
    const vm_op *op;
    uint64_t to, from, size;
    uint32_t thread;
    uint32_t group; /* of its thread, from 1; 0: not committed yet */
    bool read;      /* the source has been read */
} check_bulk;

static uint32_t thread_of(const vm_warp *warp, int lane)
{
    return (uint32_t)(WARP * warp->index + lane);
}

void vm_check_bulk_out(vm_warp *warp, const vm_op *op, int lane, uint64_t to, uint64_t from, uint64_t size)
{
    block_check *check = warp->block->check;
    if (!vm_watch_of(warp)->sync ||
        (uint64_t)check->n_bulk >= warp->block->launch->vm->config.limits[PTXVM_LIMIT_ASYNC])
        return;
    if (check->n_bulk == check->bulk_capacity) {
        int wanted = check->bulk_capacity ? 2 * check->bulk_capacity : 8;
        check_bulk *grown = realloc(check->bulk, (size_t)wanted * sizeof *grown);
        if (!grown)
            return; /* no memory for it: the copy is not checked */
        check->bulk = grown;
        check->bulk_capacity = wanted;
    }
    check->bulk[check->n_bulk++] = (check_bulk){
        .op = op, .to = to, .from = from % VM_SHARED_SIZE, .size = size, .thread = thread_of(warp, lane)};
}

void vm_check_bulk_commit(vm_warp *warp, uint32_t mask)
{
    block_check *check = warp->block->check;
    VM_EACH_LANE(lane, mask)
    {
        uint32_t thread = thread_of(warp, (int)lane), group = ++check->bulk_groups[thread];
        for (int i = 0; i < check->n_bulk; i++)
            if (check->bulk[i].thread == thread && !check->bulk[i].group)
                check->bulk[i].group = group;
    }
}

/* Whether no more than `newer` groups of the copy's thread, one of the lanes `mask`, came after it. */
static bool is_waited_for(const vm_warp *warp, const check_bulk *copy, uint32_t mask, uint32_t newer)
{
    uint32_t lane = copy->thread % WARP;
    return copy->group && copy->thread / WARP == (uint32_t)warp->index && mask >> lane & 1 &&
           warp->block->check->bulk_groups[copy->thread] - copy->group >= newer;
}

void vm_check_bulk_wait(vm_warp *warp, uint32_t mask, uint32_t newer, bool read)
{
    block_check *check = warp->block->check;
    int kept = 0;
    for (int i = 0; i < check->n_bulk; i++) {
        bool waited = is_waited_for(warp, &check->bulk[i], mask, newer);
        check->bulk[i].read |= waited;
        if (!waited || read)
            check->bulk[kept++] = check->bulk[i];
    }
    check->n_bulk = kept;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

void check_bulk_access(vm_warp *warp, const vm_op *op, int lane, const vm_block *block, pvm_space space,
                       uint64_t address, uint64_t bytes, bool write)
{
    const block_check *check = block->check;
    for (int i = 0; i < check->n_bulk; i++) {
        const check_bulk *copy = &check->bulk[i];
        bool to = space == SPACE_GLOBAL && overlap(address, bytes, copy->to, copy->size);
        bool from =
            space == SPACE_SHARED && write && !copy->read && overlap(address, bytes, copy->from, copy->size);
        if (!to && !from)
            continue;
        ptxvm_finding finding = {.kind = PTXVM_FINDING_ASYNC_READ,
                                 .space = check_space_name(space),
                                 .address = address,
                                 .access_bytes = bytes};
        vm_check_report(warp, op, lane, &finding, copy->op->site,
                        "%s %llu bytes at %s address 0x%llx, which the bulk copy of line %d may still be %s: "
                        "cp.async.bulk.wait_group%s has to come first",
                        write ? "writes" : "reads", (unsigned long long)bytes, check_space_name(space),
                        (unsigned long long)address, copy->op->inst->line, to ? "writing" : "reading",
                        !to          ? ".read"
                        : copy->read ? " without .read"
                                     : "");
        return;
    }
}

/* ---- What must not end before a copy does ---- */

void vm_check_bulk_pending(vm_warp *warp, const vm_op *op, int lane)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_ASYNC_READ};
    if (vm_watch_of(warp)->sync)
        vm_check_report(
            warp, op, lane, &finding, -1,
            "the block ends while this bulk copy may still use its shared memory: nothing has waited for it");
}

void vm_check_bulk_end(vm_block *block)
{
    for (int i = 0; i < block->check->n_bulk; i++) {
        const check_bulk *copy = &block->check->bulk[i];
        if (!copy->read)
            vm_check_bulk_pending(&block->warps[copy->thread / WARP], copy->op, (int)(copy->thread % WARP));
    }
}

void vm_check_early_phase(vm_warp *warp, const vm_op *op, int lane, int copies)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_ASYNC_READ};
    if (copies && vm_watch_of(warp)->sync)
        vm_check_report(
            warp, op, lane, &finding, -1,
            "a phase of the mbarrier ends while %d bulk cop%s that complete%s on it %s under way: "
            "expect_tx must announce their bytes before",
            copies, copies > 1 ? "ies" : "y", copies > 1 ? "" : "s", copies > 1 ? "are" : "is");
}

void vm_check_mbarrier(vm_warp *warp, const vm_op *op, int lane, const char *what, uint64_t arrived,
                       int64_t tx, int copies)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_MBARRIER};
    if (vm_watch_of(warp)->sync)
        vm_check_report(
            warp, op, lane, &finding, -1,
            "%s (%llu arrivals and a transaction count of %lld in this phase, %d bulk copies under way)",
            what, (unsigned long long)arrived, (long long)tx, copies);
}
