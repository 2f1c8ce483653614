/* Tensor memory: 128 lanes of 512 columns of 32 bits for each block, used through tcgen05. An address has the lane in
 * its upper and the column in its lower half. Columns are allocated, all lanes of them, in units of 32. */
#ifndef PTXVM_EXEC_TMEM_H
#define PTXVM_EXEC_TMEM_H

#include "ptxvm/exec.h"

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32, TMEM_UNITS = TMEM_COLUMNS / TMEM_UNIT };

typedef struct vm_tmem {
    uint32_t (*lane)[TMEM_COLUMNS]; /* null before the first allocation */
    uint8_t owner[TMEM_UNITS];      /* by unit: 1 + the first unit of its allocation; 0: free */
    uint32_t last_columns;          /* of the last allocation; 0: none */
    uint32_t wanted, granted; /* of .cta_group::2: columns waited for; 1 + the address the peer has found */
    bool relinquished;
    const vm_op *first; /* the first instruction with a .cta_group */
} vm_tmem;

/* A rectangle of a block's tensor memory. */
typedef struct tmem_region {
    vm_block *block;
    uint32_t lane, lanes, column, columns;
    bool writes, reads; /* reads: what is there matters */
} tmem_region;

vm_tmem *vm_tmem_of(const vm_block *block); /* null: it has never allocated any */
/* Whether the region is allocated; false after a fault, which names what has the address: "d". */
bool vm_tmem_holds(vm_warp *warp, const vm_op *op, int lane, const tmem_region *region, const char *name);
static inline uint32_t *vm_tmem_row(const vm_block *block, uint32_t lane, uint32_t column)
{
    return vm_tmem_of(block)->lane[lane] + column;
}

/* The other block of a pair; null after a fault: there is none, or it has ended. */
vm_block *vm_tmem_peer(vm_warp *warp, const vm_op *op, int lane);
/* All tcgen05 instructions of a kernel have the same .cta_group. Returns 1 or 2; 0 after a fault. */
int vm_tmem_group(vm_warp *warp, const vm_op *op, int lane);

vm_exec_fn vm_exec_tmem_alloc, vm_exec_tmem_dealloc, vm_exec_tmem_relinquish;
void vm_tmem_begin(vm_block *block);
void vm_tmem_end(vm_block *block);
void vm_tmem_free(vm_block *block);

#endif
