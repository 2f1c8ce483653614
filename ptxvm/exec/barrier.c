/* The barriers of a block: sixteen by number, and its part of the one of its cluster. All bar and barrier
 * instructions end up here.
 *
 * A lane that arrives is counted; one that syncs also waits, and retries until the phase is complete. Exited lanes
 * are not waited for. If the number of threads is given, a warp whose live lanes have all arrived counts as a whole
 * warp, as on the hardware. */
#include "barrier.h"
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/exec/hooks.h"
#include "warp.h"

#define N_BARRIERS      17
#define CLUSTER_BARRIER 16
#define MAX_WARPS       32

typedef struct barrier {
    bool open;      /* some lane has arrived in this phase */
    uint32_t count; /* threads needed to complete it; 0: all of the block */
    uint32_t arrived[MAX_WARPS], waiting[MAX_WARPS];
    uint32_t released[MAX_WARPS]; /* have waited, and may continue */
    uint32_t n_true, n_false;     /* of .red's predicate */
    uint32_t result_true[MAX_WARPS],
        result_false[MAX_WARPS]; /* of the phase that released the warp's lanes */
} barrier;

struct vm_barriers {
    barrier barriers[N_BARRIERS];
    uint32_t used; /* bit i: barrier i must be reset for the next block */
};

struct vm_barriers *vm_barriers_new(void)
{
    return calloc(1, sizeof(struct vm_barriers));
}

void vm_barriers_reset(vm_block *block)
{
    for (int i = 0; i < N_BARRIERS; i++)
        if (block->barriers->used >> i & 1)
            block->barriers->barriers[i] = (barrier){.open = false};
    block->barriers->used = 0;
}

static uint32_t threads_arrived(const vm_block *block, const barrier *b)
{
    uint32_t n = 0;
    for (int w = 0; w < block->n_warps; w++) {
        bool whole = b->arrived[w] && !(block->warps[w].live & ~b->arrived[w]);
        n += whole ? WARP : (uint32_t)__builtin_popcount(b->arrived[w]);
    }
    return n;
}

static bool all_have_arrived(const vm_block *block, const barrier *b)
{
    for (int w = 0; w < block->n_warps; w++)
        if (block->warps[w].live & ~b->arrived[w])
            return false;
    return true;
}

static bool is_complete(const vm_block *block, const barrier *b)
{
    return b->count ? threads_arrived(block, b) >= b->count : all_have_arrived(block, b);
}

static void check_complete(vm_block *block, const barrier *b)
{
    for (int w = 0; w < block->n_warps; w++)
        vm_check_released(&block->warps[w], b->waiting[w],
                          b == &block->barriers->barriers[CLUSTER_BARRIER] && block->cluster->n > 1);
}

static void complete(vm_block *block, barrier *b)
{
    if (block->watch)
        check_complete(block, b);
    for (int w = 0; w < block->n_warps; w++) {
        b->released[w] |= b->waiting[w];
        if (b->waiting[w]) {
            b->result_true[w] = b->n_true;
            b->result_false[w] = b->n_false;
        }
        b->arrived[w] = b->waiting[w] = 0;
    }
    b->open = false;
    b->count = b->n_true = b->n_false = 0;
    vm_wake(block);
}

/* The barrier of the cluster: all threads of all its blocks. */
static bool some_wait(const vm_cluster *cluster)
{
    for (int i = 0; i < cluster->n; i++)
        if (cluster->blocks[i]->barriers->barriers[CLUSTER_BARRIER].open)
            return true;
    return false;
}

static void complete_cluster(vm_cluster *cluster)
{
    for (int i = 0; i < cluster->n; i++)
        if (!all_have_arrived(cluster->blocks[i], &cluster->blocks[i]->barriers->barriers[CLUSTER_BARRIER]))
            return;
    for (int i = 0; i < cluster->n; i++)
        complete(cluster->blocks[i], &cluster->blocks[i]->barriers->barriers[CLUSTER_BARRIER]);
}

void vm_barrier_exit(vm_block *block)
{
    struct vm_barriers *all = block->barriers;
    for (int i = 0; i < CLUSTER_BARRIER && all->used; i++)
        if (all->barriers[i].open && is_complete(block, &all->barriers[i]))
            complete(block, &all->barriers[i]);
    if (some_wait(block->cluster))
        complete_cluster(block->cluster);
}

/* ---- The instructions ---- */

/* The request of one instruction, from its operands. */
typedef struct request {
    const vm_op *op;
    unsigned mode; /* M_sync, M_arrive, M_red, M_wait */
    bool cluster;
    const vm_operand *result, *id, *count, *predicate;
} request;

static request read_request(const vm_op *op)
{
    const pvm_inst *inst = op->inst;
    request r = {.op = op, .mode = inst->mod[S_MODE], .cluster = inst->mod[S_SUB] == M_cluster};
    int first = op->n_results, last = op->n_operands;
    if (r.mode == M_red) {
        r.result = &op->operand[0];
        r.predicate = &op->operand[--last];
    }
    if (first < last)
        r.id = &op->operand[first];
    if (first + 1 < last)
        r.count = &op->operand[first + 1];
    return r;
}

static uint32_t lane_value(const vm_warp *warp, const vm_operand *operand, int lane)
{
    uint32_t value;
    memcpy(&value, (const uint8_t *)vm_value(warp, operand) + 4 * lane, sizeof value);
    return value;
}

static void arrive(vm_warp *warp, barrier *b, const request *r, uint32_t lanes, uint32_t count)
{
    int w = warp->index;
    if (warp->block->watch)
        vm_check_arrive(warp, r->op, lanes, b->arrived[w] & warp->live);
    b->open = true;
    b->count = count;
    b->arrived[w] |= lanes;
    if (r->mode != M_arrive || r->cluster)
        b->waiting[w] |= lanes;
    if (r->predicate) {
        uint32_t p = vm_predicate(warp, r->predicate);
        b->n_true += (uint32_t)__builtin_popcount(p & lanes);
        b->n_false += (uint32_t)__builtin_popcount(~p & lanes);
    }
    if (r->cluster)
        complete_cluster(warp->block->cluster);
    else if (is_complete(warp->block, b))
        complete(warp->block, b);
}

/* Arriving and waiting alternate. */
static bool cluster_misused(vm_warp *warp, const barrier *b, const request *r, uint32_t lanes)
{
    uint32_t has_arrived = b->waiting[warp->index] | b->released[warp->index];
    uint32_t wrong = r->mode == M_wait ? lanes & ~has_arrived : lanes & has_arrived;
    if (!wrong)
        return false;
    vm_fault(warp, r->op, __builtin_ctz(wrong), PTXVM_ERROR_EXECUTION,
             r->mode == M_wait ? "barrier.cluster.wait without a barrier.cluster.arrive before it"
                               : "barrier.cluster.arrive twice, with no barrier.cluster.wait between");
    return true;
}

/* Returns true if all the lanes may continue. */
static bool step(vm_warp *warp, barrier *b, const request *r, uint32_t lanes, uint32_t count)
{
    int w = warp->index;
    if (r->mode == M_arrive) { /* a second arrival waits for the next phase */
        if (lanes & b->arrived[w])
            return false;
        arrive(warp, b, r, lanes, count);
        return true;
    }
    uint32_t fresh = lanes & ~b->waiting[w] & ~b->released[w];
    if (fresh && r->mode != M_wait && !(fresh & b->arrived[w]))
        arrive(warp, b, r, fresh, count);
    return !(lanes & ~b->released[w]);
}

static void give_result(vm_warp *warp, const vm_op *op, const barrier *b, const vm_operand *result,
                        uint32_t lanes)
{
    uint32_t n_true = b->result_true[warp->index], n_false = b->result_false[warp->index];
    if (result->is_sink)
        return;
    if (op->inst->mod[S_OP] == M_popc) {
        uint32_t *d = vm_value(warp, result);
        for (int lane = 0; lane < WARP; lane++)
            d[lane] = lanes >> lane & 1 ? n_true : d[lane];
        return;
    }
    bool value = op->inst->mod[S_OP] == M_and ? n_false == 0 : n_true > 0;
    uint32_t p = value ? UINT32_MAX : 0;
    vm_blend(vm_value(warp, result), &p, 0, lanes);
}

/* The lanes that use the same barrier as the first of them. */
static uint32_t same_barrier(const vm_warp *warp, const request *r, uint32_t lanes, uint32_t *id)
{
    if (r->cluster) {
        *id = CLUSTER_BARRIER;
        return lanes;
    }
    *id = lane_value(warp, r->id, __builtin_ctz(lanes));
    uint32_t same = r->id->is_immediate ? lanes : 0;
    for (uint32_t m = lanes & ~same; m; m &= m - 1)
        if (lane_value(warp, r->id, __builtin_ctz(m)) == *id)
            same |= m & -m;
    return same;
}

vm_result vm_exec_barrier(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    struct vm_barriers *all = warp->block->barriers;
    request r = read_request(op);
    bool done = true;
    uint32_t id, same;
    for (uint32_t rest = mask; rest; rest &= ~same) {
        same = same_barrier(warp, &r, rest, &id);
        uint32_t count = r.count ? lane_value(warp, r.count, __builtin_ctz(same)) : 0;
        if (id >= CLUSTER_BARRIER && !r.cluster)
            return vm_fault(warp, op, __builtin_ctz(same), PTXVM_ERROR_EXECUTION,
                            "barrier %u: a block has 16", id);
        if (r.count && (count == 0 || count % WARP))
            return vm_fault(warp, op, __builtin_ctz(same), PTXVM_ERROR_EXECUTION,
                            "barrier %u with %u threads: not a multiple of the warp size", id, count);
        all->used |= 1u << id;
        if (r.cluster && cluster_misused(warp, &all->barriers[id], &r, same))
            return VM_FAULT;
        done &= step(warp, &all->barriers[id], &r, same, count);
    }
    if (!done)
        return VM_BLOCK;
    for (uint32_t rest = mask; rest && r.mode != M_arrive; rest &= ~same) {
        same = same_barrier(warp, &r, rest, &id);
        all->barriers[id].released[warp->index] &= ~same;
        if (r.result)
            give_result(warp, op, &all->barriers[id], r.result, same);
    }
    return VM_NEXT;
}

static void describe_cluster(const vm_cluster *cluster, char *text, size_t size)
{
    uint32_t expected = 0, arrived = 0;
    for (int i = 0; i < cluster->n; i++) {
        const vm_block *block = cluster->blocks[i];
        for (int w = 0; w < block->n_warps; w++)
            expected += (uint32_t)__builtin_popcount(block->warps[w].live);
        arrived += threads_arrived(block, &block->barriers->barriers[CLUSTER_BARRIER]);
    }
    snprintf(text, size, "%u of %u threads have arrived at the barrier of the cluster", arrived, expected);
}

bool vm_barrier_describe(const vm_block *block, char *text, size_t size)
{
    for (int i = 0; i < N_BARRIERS; i++) {
        const barrier *b = &block->barriers->barriers[i];
        if (!b->open)
            continue;
        uint32_t expected = b->count;
        for (int w = 0; w < block->n_warps && !b->count; w++)
            expected += (uint32_t)__builtin_popcount(block->warps[w].live);
        if (i < CLUSTER_BARRIER)
            snprintf(text, size, "%u of %u threads have arrived at barrier %d", threads_arrived(block, b),
                     expected, i);
        else
            describe_cluster(block->cluster, text, size);
        return true;
    }
    return false;
}
