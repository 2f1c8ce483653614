/* Clusters: blocks that run at the same time and reach each other's shared memory. Every block is in one, most often
 * alone. In the .shared::cluster window the memory of the block of rank r begins at r * VM_SHARED_SIZE; an address of
 * .shared::cta below VM_SHARED_SIZE is the block's own, whatever its rank, and vm_addresses adds the rank to it. */
#ifndef PTXVM_EXEC_CLUSTER_H
#define PTXVM_EXEC_CLUSTER_H

#include "launch.h"
#include "memory.h"

struct vm_cluster {
    int n, first; /* `first` to take its turn */
    vm_cluster *next_free;
    vm_block *blocks[VM_CLUSTER_BLOCKS];
};

vm_cluster *vm_cluster_new(vm_worker *worker);
void vm_cluster_free(vm_cluster *cluster);
/* Starts all its blocks; `order` is that of the first. */
bool vm_cluster_begin(vm_cluster *cluster, uint64_t order);
/* Like vm_block_run. */
vm_block_state vm_cluster_run(vm_cluster *cluster, bool shared);
/* A part of a turn, before the launch in front has ended: nothing that waits is let go on. */
vm_block_state vm_cluster_run_early(vm_cluster *cluster);
/* Ends the run, which has led to `state`. A cluster is used again only if all its blocks are done. Returns false after
 * a fault. */
bool vm_cluster_finish(vm_cluster *cluster, vm_block_state state);
/* Starts the timer, or reports that it is over, in a cluster that only waits. */
bool vm_cluster_waited(vm_cluster *cluster, vm_wait *wait);

/* The block whose shared memory an address in the .shared::cluster window belongs to; null: the cluster has no such
 * block, or it has ended. */
static inline vm_block *vm_shared_owner(const vm_block *block, uint64_t address)
{
    if (address - block->shared_base < VM_SHARED_SIZE)
        return (vm_block *)block;
    uint64_t rank = address / VM_SHARED_SIZE;
    vm_block *owner = rank < (uint64_t)block->cluster->n ? block->cluster->blocks[rank] : NULL;
    return owner && !owner->ended ? owner : NULL;
}

#endif
