/* A launch in progress: host threads, the blocks that they run, and their shared state. */
#ifndef PTXVM_EXEC_LAUNCH_H
#define PTXVM_EXEC_LAUNCH_H

#include <pthread.h>

#include "ptxvm/exec.h"
#include "warp.h"

#define VM_SCRATCH_VALUES 16
#define VM_LANE_BYTES     (WARP * 16) /* of the widest register */
#define VM_GATHER_VALUES  64

/* Of an op that the report lists: executed; and by a model that is only assumed, whatever its row says. */
enum { SITE_EXECUTED = 1, SITE_ASSUMED = 2 };

#define VM_WORKER_ALIGN 128

/* The state of one host thread. */
typedef struct vm_worker {
    _Alignas(VM_WORKER_ALIGN) struct vm_run *run; /* so that two workers never write to the same cache line */
    uint64_t warp_instructions, thread_instructions;
    uint8_t *sites;         /* by the kernel's ops: SITE_* of those to be listed in the report */
    struct vm_pool *pool;   /* frames, joins */
    vm_frame **free_frames; /* by code */
    vm_join *free_joins;
    uint8_t (
        *scratch)[VM_LANE_BYTES]; /* VM_SCRATCH_VALUES for lane instructions, followed by VM_GATHER_VALUES */
    uint64_t order;               /* of the running block */
    vm_cluster *free_clusters;
    struct vm_watch *watch;    /* check/check.h; null: no checks or counters */
    struct vm_output *outputs; /* output of printf, by block */
    uint64_t printed;          /* its total size */
    uint64_t held;             /* bytes of registers, local and shared memory */
    bool limited;              /* more of these was refused */
    pthread_t thread;
} vm_worker;

/* The state shared by all host threads of a launch. */
typedef struct vm_run {
    vm_launch *launch;
    _Atomic uint64_t next;        /* next cluster to take */
    _Atomic uint64_t fault_order; /* the lowest order of a block that ended in a fault; UINT64_MAX: none */
    pthread_mutex_t lock;         /* protects fault */
    vm_fault_info fault;
    uint64_t shuffle[4]; /* keys of the permutation of blocks; see launch_order.c */
} vm_run;

/* Counts `bytes` more of registers, local or shared memory. Returns false if that exceeds
 * PTXVM_LIMIT_BLOCKS. */
bool vm_worker_hold(vm_worker *worker, uint64_t bytes);
/* Why there is no memory: a status, and the message. */
ptxvm_status vm_worker_shortage(const vm_worker *worker, char *text, size_t size);

/* ---- launch_block.c: a block's memory, and scheduling its warps ---- */
typedef enum {
    BLOCK_DONE,
    BLOCK_STUCK,   /* no lane can continue, unless another block does something */
    BLOCK_WAITING, /* it only spins */
    BLOCK_BUSY,    /* it has used up its time */
    BLOCK_FAULT
} vm_block_state;

/* With whom a block shares its host thread. */
typedef enum {
    BLOCK_ALONE,
    BLOCK_SHARED, /* other blocks wait for their turn: it also returns when it only waits */
    BLOCK_PATIENT /* and what it waits for may come from them: lanes are not released from joins */
} vm_block_turn;

vm_block *vm_block_new(vm_worker *worker);
bool vm_block_begin(vm_block *block, uint64_t order);
vm_block_state vm_block_run(vm_block *block, vm_block_turn turn);
/* Releases lanes that wait at joins; false: there are none. */
bool vm_block_release(vm_block *block);
vm_result vm_block_end(vm_block *block);
void vm_block_free(vm_block *block);
/* Reports the fault of a block in which no lane can continue. */
void vm_block_deadlock(vm_block *block);

/* A timer that runs while nothing but polling memory happens; all zero: stopped. */
typedef struct vm_wait {
    double since; /* 0: stopped */
} vm_wait;
/* The block only spins, and has done so since the timer was started. Returns true after wait_seconds, and
 * reports that as its fault. */
bool vm_block_waited(vm_block *block, vm_wait *wait);

/* The next cluster in order will not start: the %ctaid of its first block. Returns false if all have started. */
bool vm_cancel_cluster(vm_block *block, uint32_t first[3]);
/* The place in the grid of a block by its rank in the cluster with that number. */
void vm_place_in_grid(const vm_launch *launch, uint64_t number, uint64_t rank, uint32_t ctaid[3]);

/* ---- launch_order.c: seeded permutations ---- */
/* The block with the given order: a permutation of 0..n-1, the identity for seed 0. */
uint64_t vm_order_block(uint64_t seed, uint64_t n, uint64_t order);
uint64_t vm_random(uint64_t *state);

#endif
