/* The barriers of a block. */
#ifndef PTXVM_EXEC_BARRIER_H
#define PTXVM_EXEC_BARRIER_H

#include "ptxvm/exec.h"

/* bar and barrier: sync, arrive, red, cluster arrive and wait. */
vm_exec_fn vm_exec_barrier;

/* Lanes have exited: barriers no longer wait for them. */
void vm_barrier_exit(vm_block *block);

struct vm_barriers *vm_barriers_new(void); /* null: no memory left */
void vm_barriers_reset(vm_block *block);
/* "16 of 64 threads have arrived at barrier 1": what a stuck block waits for. Returns false if it is at no
 * barrier. */
bool vm_barrier_describe(const vm_block *block, char *text, size_t size);

#endif
