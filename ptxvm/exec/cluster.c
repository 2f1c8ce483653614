/* A cluster: its blocks take turns on one host thread until all of them are done. */
#include "cluster.h"

#include <stdlib.h>

#include "ops.h"

#define CLUSTER_TURNS 16 /* of all blocks, before another cluster gets its turn */

vm_cluster *vm_cluster_new(vm_worker *worker)
{
    vm_cluster *cluster = worker->free_clusters;
    if (cluster) {
        worker->free_clusters = cluster->next_free;
        return cluster;
    }
    cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return NULL;
    cluster->n = worker->run->launch->n_cluster;
    for (int i = 0; i < cluster->n; i++) {
        cluster->blocks[i] = vm_block_new(worker);
        if (!cluster->blocks[i]) {
            vm_cluster_free(cluster);
            return NULL;
        }
        cluster->blocks[i]->cluster = cluster;
        cluster->blocks[i]->rank = (uint32_t)i;
        cluster->blocks[i]->shared_base = (uint64_t)i * VM_SHARED_SIZE;
    }
    return cluster;
}

void vm_cluster_free(vm_cluster *cluster)
{
    for (int i = 0; i < cluster->n && cluster->blocks[i]; i++)
        vm_block_free(cluster->blocks[i]);
    free(cluster);
}

bool vm_cluster_begin(vm_cluster *cluster, uint64_t order)
{
    uint64_t seed = cluster->blocks[0]->launch->vm->config.seed, state = seed ^ (order + 1);
    cluster->first = seed ? (int)(vm_random(&state) % (uint64_t)cluster->n) : 0;
    for (int i = 0; i < cluster->n; i++)
        if (!vm_block_begin(cluster->blocks[i], order + (uint64_t)i))
            return false;
    return true;
}

/* ---- Turns ---- */

typedef struct turn {
    bool alive, advanced, spinning, fault;
} turn;

/* One turn of each block that is not done. In a cluster blocks do not let lanes go on from joins by themselves: what
 * they wait for may come from another block. */
static turn run_turn(vm_cluster *cluster)
{
    turn t = {.alive = false};
    for (int i = 0; i < cluster->n; i++) {
        vm_block *block = cluster->blocks[(cluster->first + i) % cluster->n];
        if (block->ended)
            continue;
        block->advanced = false;
        vm_block_state state = vm_block_run(block, BLOCK_PATIENT);
        block->ended = state == BLOCK_DONE;
        t.alive |= state != BLOCK_DONE;
        t.advanced |= block->advanced || state == BLOCK_DONE;
        t.spinning |= state == BLOCK_WAITING;
        if (state == BLOCK_FAULT) {
            t.fault = true;
            return t;
        }
    }
    return t;
}

static bool release_waiting(vm_cluster *cluster)
{
    bool any = false;
    for (int i = 0; i < cluster->n; i++)
        any |= !cluster->blocks[i]->ended && vm_block_release(cluster->blocks[i]);
    return any;
}

static vm_block *first_running(const vm_cluster *cluster)
{
    int i = 0;
    while (i < cluster->n - 1 && cluster->blocks[i]->ended)
        i++;
    return cluster->blocks[i];
}

bool vm_cluster_waited(vm_cluster *cluster, vm_wait *wait)
{
    return vm_block_waited(first_running(cluster), wait);
}

static vm_block_state run_several(vm_cluster *cluster, bool shared)
{
    vm_wait wait = {0};
    for (int turns = 0; !shared || turns < CLUSTER_TURNS; turns++) {
        turn t = run_turn(cluster);
        if (t.fault)
            return BLOCK_FAULT;
        if (!t.alive)
            return BLOCK_DONE;
        if (t.advanced || release_waiting(cluster)) {
            wait.since = 0;
            continue;
        }
        if (!t.spinning)
            return BLOCK_STUCK;
        if (shared)
            return BLOCK_WAITING;
        if (vm_cluster_waited(cluster, &wait))
            return BLOCK_FAULT;
    }
    return BLOCK_BUSY;
}

vm_block_state vm_cluster_run(vm_cluster *cluster, bool shared)
{
    return cluster->n > 1 ? run_several(cluster, shared)
                          : vm_block_run(cluster->blocks[0], shared ? BLOCK_SHARED : BLOCK_ALONE);
}

vm_block_state vm_cluster_run_early(vm_cluster *cluster)
{
    turn t = run_turn(cluster);
    return t.fault ? BLOCK_FAULT : t.alive ? BLOCK_WAITING : BLOCK_DONE;
}

bool vm_cluster_finish(vm_cluster *cluster, vm_block_state state)
{
    bool ok = state == BLOCK_DONE;
    if (state == BLOCK_STUCK)
        vm_block_deadlock(first_running(cluster));
    if (!ok) {
        vm_cluster_free(cluster);
        return false;
    }
    for (int i = 0; i < cluster->n; i++)
        ok &= vm_block_end(cluster->blocks[i]) == VM_NEXT;
    vm_worker *worker = cluster->blocks[0]->worker;
    cluster->next_free = worker->free_clusters;
    worker->free_clusters = cluster;
    return ok;
}
