/* A block: its memory, and scheduling its warps. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "barrier.h"
#include "overlap.h"
#include "ptxvm/exec/hooks.h"
#include "ops.h"

#define SLICE 65536 /* instructions that a warp runs before the next one gets its turn */
#define SHARED_TURNS                                                                                         \
    64 /* rounds of all warps before another block gets its turn, if blocks share a host thread */

/* ---- Memory ---- */

static bool new_warps(vm_block *block)
{
    const vm_launch *launch = block->launch;
    block->warps = calloc((size_t)launch->n_warps, sizeof *block->warps);
    if (!block->warps)
        return false;
    block->n_warps = launch->n_warps;
    for (int w = 0; w < block->n_warps; w++) {
        vm_warp *warp = &block->warps[w];
        warp->block = block;
        warp->index = w;
        warp->scheduler = calloc(1, sizeof *warp->scheduler);
        if (!warp->scheduler)
            return false;
        for (int lane = 0; lane < WARP; lane++) {
            int thread = w * WARP + lane;
            if (thread < launch->n_threads)
                warp->existing |= 1u << lane;
            warp->tid[0][lane] = (uint16_t)((uint32_t)thread % launch->dim[0]);
            warp->tid[1][lane] = (uint16_t)((uint32_t)thread / launch->dim[0] % launch->dim[1]);
            warp->tid[2][lane] = (uint16_t)((uint32_t)thread / launch->dim[0] / launch->dim[1]);
        }
    }
    return true;
}

vm_block *vm_block_new(vm_worker *worker)
{
    const vm_launch *launch = worker->run->launch;
    vm_block *block = vm_worker_hold(worker, launch->shared_bytes) ? calloc(1, sizeof *block) : NULL;
    if (!block)
        return NULL;
    *block = (vm_block){.launch = worker->run->launch,
                        .worker = worker,
                        .watch = worker->watch,
                        .shared_bytes = launch->shared_bytes,
                        .shared_reach = launch->shared_reach,
                        .observed = worker->watch || launch->journal || launch->early};
    block->shared = aligned_alloc(256, (launch->shared_reach + 256) / 256 * 256);
    block->barriers = vm_barriers_new();
    if (block->shared && block->barriers && new_warps(block) && vm_check_block_new(block))
        return block;
    vm_block_free(block);
    return NULL;
}

void vm_block_free(vm_block *block)
{
    for (int w = 0; w < block->n_warps; w++) {
        vm_ops_warp_free(&block->warps[w]);
        free(block->warps[w].scheduler);
        free(block->warps[w].local);
        free(block->warps[w].local_undefined);
    }
    free(block->warps);
    free(block->barriers);
    vm_ops_block_free(block);
    vm_check_block_free(block);
    free(block->shared);
    free(block);
}

/* ---- Start and end ---- */

static void shuffle_warps(vm_block *block)
{
    uint64_t state =
        block->launch->vm->config.seed ^ (block->linear_index * UINT64_C(0xd1342543de82ef95) + 1);
    for (int w = 0; w < block->n_warps; w++)
        block->turn[w] = (uint8_t)w;
    for (int w = block->n_warps - 1; w > 0 && block->launch->vm->config.seed; w--) {
        int other = (int)(vm_random(&state) % (uint64_t)(w + 1));
        uint8_t t = block->turn[w];
        block->turn[w] = block->turn[other];
        block->turn[other] = t;
    }
}

/* Clusters are in the seed's order, the blocks of a cluster by rank. */
void vm_place_in_grid(const vm_launch *launch, uint64_t number, uint64_t rank, uint32_t ctaid[3])
{
    uint64_t index =
        vm_order_block(launch->vm->config.seed, launch->n_blocks / (uint64_t)launch->n_cluster, number);
    for (int i = 0; i < 3; i++) {
        uint32_t size = launch->cluster[i], clusters = launch->grid[i] / size;
        ctaid[i] = (uint32_t)(index % clusters) * size + (uint32_t)(rank % size);
        index /= clusters;
        rank /= size;
    }
}

static void place_block(vm_block *block)
{
    const vm_launch *launch = block->launch;
    vm_place_in_grid(launch, block->order / (uint64_t)launch->n_cluster, block->rank, block->ctaid);
    block->linear_index =
        block->ctaid[0] +
        (uint64_t)launch->grid[0] * (block->ctaid[1] + (uint64_t)launch->grid[1] * block->ctaid[2]);
}

bool vm_block_begin(vm_block *block, uint64_t order)
{
    const vm_launch *launch = block->launch;
    block->order = order;
    place_block(block);
    block->ended = block->waited = block->triggered = false;
    block->clock = block->progress = 0;
    block->free_registers = 0;
    for (int w = 0; w < block->n_warps; w++)
        block->registers[w] = (uint16_t)launch->registers;
    if (block->shared_reach)
        memset(block->shared, 0, block->shared_reach);
    vm_barriers_reset(block);
    vm_check_block_begin(block);
    shuffle_warps(block);
    for (int w = 0; w < block->n_warps; w++)
        if (!vm_ops_warp_begin(&block->warps[w]) || !vm_warp_begin(&block->warps[w], launch->kernel->entry))
            return false;
    return true;
}

vm_result vm_block_end(vm_block *block)
{
    vm_result result = vm_ops_block_end(block);
    if (block->launch->programmatic)
        vm_overlap_trigger(block);
    if (!vm_check_block_end(block))
        block->watch->out_of_memory = true;
    for (int w = 0; w < block->n_warps; w++)
        vm_warp_end(&block->warps[w]);
    block->worker->warp_instructions += block->clock;
    return result;
}

/* ---- Turns ---- */

typedef struct round_result {
    bool alive, advanced, spinning, fault;
} round_result;

/* The steps of a slice, limited by what the block may still run. */
static uint64_t slice_of(const vm_block *block)
{
    uint64_t limit = block->launch->step_limit;
    if (!limit || limit > block->clock + SLICE)
        return SLICE;
    return limit > block->clock ? limit - block->clock : 1;
}

static bool over_limit(vm_block *block, vm_warp *warp)
{
    uint64_t limit = block->launch->step_limit;
    if (!limit || block->clock < limit)
        return false;
    uint32_t mask = 0;
    const vm_op *op = vm_warp_place(warp, &mask);
    if (!op)
        return false;
    vm_fault(warp, op, __builtin_ctz(mask), PTXVM_ERROR_STEP_LIMIT,
             "the block has run %llu instructions, the limit is %llu; it is in a loop here",
             (unsigned long long)block->clock, (unsigned long long)limit);
    return true;
}

/* A block earlier in order has ended in a fault: what this one does no longer matters. */
static bool is_given_up(const vm_block *block)
{
    return atomic_load_explicit(&block->worker->run->fault_order, memory_order_relaxed) < block->order;
}

static round_result run_round(vm_block *block)
{
    round_result round = {.alive = false};
    for (int i = 0; i < block->n_warps; i++) {
        vm_warp *warp = &block->warps[block->turn[i]];
        if (!warp->live)
            continue;
        uint64_t before = block->clock;
        vm_warp_state state = vm_warp_run(warp, slice_of(block));
        round.alive |= state != WARP_DONE;
        round.spinning |= state == WARP_SPIN;
        round.advanced |=
            state == WARP_DONE || state == WARP_SLICE || (state == WARP_BLOCKED && block->clock != before);
        if (state == WARP_FAULT || over_limit(block, warp) || (state != WARP_DONE && is_given_up(block))) {
            round.fault = true;
            return round;
        }
    }
    return round;
}

bool vm_block_release(vm_block *block)
{
    bool any = false;
    for (int w = 0; w < block->n_warps; w++) {
        if (block->warps[w].live && block->watch)
            vm_check_stuck(&block->warps[w]);
        if (block->warps[w].live)
            any |= vm_warp_release(&block->warps[w]);
    }
    return any;
}

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail_waiting(vm_block *block, uint64_t seconds)
{
    for (int w = 0; w < block->n_warps; w++) {
        uint32_t mask = 0;
        const vm_op *op = vm_warp_place(&block->warps[w], &mask);
        if (!op)
            continue;
        vm_fault(&block->warps[w], op, __builtin_ctz(mask), PTXVM_ERROR_DEADLOCK,
                 "the kernel has waited for %llu seconds, in a loop here, for memory that nothing writes; a "
                 "launch runs in the thread that makes it, so what that thread would write afterwards never "
                 "comes (PTXVM_WAIT sets the time)",
                 (unsigned long long)seconds);
        return;
    }
}

bool vm_block_waited(vm_block *block, vm_wait *wait)
{
    uint64_t seconds = block->launch->vm->config.wait_seconds;
    if (!seconds)
        return false;
    double now = now_seconds();
    if (!wait->since)
        wait->since = now;
    if (now - wait->since < (double)seconds)
        return false;
    fail_waiting(block, seconds);
    return true;
}

vm_block_state vm_block_run(vm_block *block, vm_block_turn turn)
{
    vm_wait wait = {0};
    for (int turns = 0; turn == BLOCK_ALONE || turns < SHARED_TURNS; turns++) {
        round_result round = run_round(block);
        if (round.fault)
            return BLOCK_FAULT;
        if (!round.alive)
            return BLOCK_DONE;
        block->advanced |= round.advanced;
        if (round.advanced || (turn != BLOCK_PATIENT && vm_block_release(block))) {
            wait.since = 0;
            continue;
        }
        if (!round.spinning)
            return BLOCK_STUCK;
        if (turn != BLOCK_ALONE)
            return BLOCK_WAITING;
        if (vm_block_waited(block, &wait))
            return BLOCK_FAULT;
    }
    return BLOCK_BUSY;
}

void vm_block_deadlock(vm_block *block)
{
    char text[128];
    for (int w = 0; w < block->n_warps; w++) {
        uint32_t mask = 0;
        const vm_op *op = vm_warp_place(&block->warps[w], &mask);
        if (!op)
            continue;
        bool barrier = vm_barrier_describe(block, text, sizeof text);
        ptxvm_finding detail = {.kind = barrier ? PTXVM_FINDING_MISSED_BARRIER : PTXVM_FINDING_DEADLOCK};
        vm_fault_access(&block->warps[w], op, __builtin_ctz(mask), PTXVM_ERROR_DEADLOCK, &detail,
                        "no thread of the block can go on%s%s", barrier ? ": " : "", barrier ? text : "");
        return;
    }
}
