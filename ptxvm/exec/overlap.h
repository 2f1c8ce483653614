/* Programmatic dependent launch: a kernel that begins before the one in front of it has ended.
 *
 * The first kernel has in fact run: what it wrote is recorded (a journal), if it contains griddepcontrol.launch_dependents. When
 * the second one begins, these writes are taken back, as if they had not arrived, and bytes that nobody expects are put in their
 * place. Some of its blocks run until they end or wait at griddepcontrol.wait; then the writes land, and it goes on. With a seed,
 * some of the writes have already landed at first, some of the memory is still as it was before them, and more or fewer blocks
 * begin early. An atomic or other strong access lands them at once: such accesses may go on next to those of the first kernel.
 *
 * For the race check, the launches that may still run when another one begins are listed (the chain). */
#ifndef PTXVM_EXEC_OVERLAP_H
#define PTXVM_EXEC_OVERLAP_H

#include "memory_access.h"
#include "ptxvm/exec.h"

enum { VM_CHAIN = 8 };

/* A launch that the next one may overlap with. */
typedef struct vm_past_launch {
    uint32_t start; /* on the clock of the race check */
    const vm_kernel *kernel;
    uint32_t grid[3], dim[3];
    bool
        waited; /* one of its threads executed griddepcontrol.wait: it cannot end before those in front of it */
    bool
        waited_first; /* and in some block before griddepcontrol.launch_dependents: it releases nothing before they end */
} vm_past_launch;

struct vm_overlap {
    struct vm_journal *last; /* of the last launch; null: none */
    struct vm_journal
        *landing; /* of the one in front of the launch that runs, until its writes have landed */
    vm_past_launch chain[VM_CHAIN];
    int n; /* the last ones, each overlapping with the next */
};

struct vm_overlap *vm_overlap_new(void);
void vm_overlap_free(struct vm_overlap *overlap);
/* The next launch overlaps with nothing: the host has used the memory, or a module has been unloaded. */
void vm_overlap_drop(ptxvm *vm);

/* A launch begins; false: no memory. It ends. */
bool vm_overlap_begin(vm_launch *launch);
void vm_overlap_end(vm_launch *launch);
/* The writes of the launch in front land. */
void vm_overlap_land(vm_launch *launch);
/* How many of its clusters begin before that. */
uint64_t vm_overlap_early(const vm_launch *launch);
/* An access of a launch that is recorded, or that runs early. */
void vm_overlap_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask);
void vm_overlap_range(vm_warp *warp, const vm_op *op, pvm_space space, uint64_t address, uint64_t bytes,
                      vm_access_kind kind);
/* A thread of the block executes griddepcontrol.launch_dependents, or is the last one to exit. */
void vm_overlap_trigger(vm_block *block);

#endif
