/* The memory of a device. Every access of a kernel passes through it.
 *
 * A device address is a 64-bit number that is the same in every run. Generic addresses:
 *
 *   0x0_1000_0000  code: a function's address is VM_CODE_BASE + VM_CODE_STEP * index, for indirect calls
 *   0x0_2000_0000  .const variables: plain allocations, read only, below 4 GiB so that 32-bit addresses
 *                  reach them
 *   0x1_0000_0000  the shared memory of the blocks of a cluster, VM_SHARED_SIZE for each; in the .shared space the same
 *                  byte is address - VM_SHARED_BASE
 *   0x1_8000_0000  the lane's local memory; in the .local space address - VM_LOCAL_BASE
 *   0x1_C000_0000  the kernel's parameters; in the .param space address - VM_PARAM_BASE
 *   0x2_0000_0000  global memory: allocations and .global variables
 *
 * So cvta of .global and .const is the identity, and cvta of the others adds the base of its window.
 *
 * Global memory is shared between the host threads that run blocks: it is accessed only with relaxed atomics
 * of the access's size, so that a race in a kernel is not a race in the host. Shared and local memory belong
 * to one host thread. The table of allocations changes only while no block runs, or while one host thread
 * runs all of them (as for a kernel that can call malloc or free). */
#ifndef PTXVM_EXEC_MEMORY_H
#define PTXVM_EXEC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "ptxvm/ptxvm.h"

#define VM_CODE_BASE      UINT64_C(0x10000000)
#define VM_CODE_STEP      16
#define VM_CONST_BASE     UINT64_C(0x20000000)
#define VM_CONST_END      UINT64_C(0x40000000)
#define VM_SHARED_BASE    UINT64_C(0x100000000)
#define VM_SHARED_SIZE    UINT64_C(0x1000000)
#define VM_CLUSTER_BLOCKS 16
#define VM_LOCAL_BASE     UINT64_C(0x180000000)
#define VM_LOCAL_SIZE     UINT64_C(0x1000000)
#define VM_PARAM_BASE     UINT64_C(0x1C0000000)
#define VM_PARAM_SIZE     UINT64_C(0x10000)
#define VM_GLOBAL_BASE    UINT64_C(0x200000000)

enum {
    VM_ALLOC_CONST = 1 << 0,  /* placed in the .const window; kernels may not write it */
    VM_ALLOC_MODULE = 1 << 1, /* a variable of a module: ptxvm_free rejects it */
    VM_ALLOC_HEAP = 1 << 2,   /* from malloc in a kernel: only free in a kernel accepts it */
    VM_ALLOC_MAPPED = 1 << 3  /* memory of another owner: not counted, not freed */
};

typedef struct vm_alloc {
    uint64_t address, bytes;    /* as requested */
    uint64_t extent;            /* bytes plus padding */
    uint64_t reach;             /* what kernels may access: the extent or, with the memory check, the bytes */
    uint8_t *host;              /* aligned like the address */
    void *storage;              /* what to free */
    struct check_region *check; /* null: not checked */
    uint32_t flags;
} vm_alloc;

enum { VM_SIZES_PACKED = 16 };

typedef struct vm_memory {
    vm_alloc *allocs; /* sorted by address */
    int n_allocs, capacity;
    uint64_t base; /* start of global memory */
    /* By size in units of the padding: below this address there is no gap for an allocation of that size or more. A
     * module with many variables must not pass all of them for each. */
    uint64_t packed_to[VM_SIZES_PACKED + 1];
    uint64_t
        heap_from; /* where a kernel's malloc looks for a place: many calls must not pass all earlier ones */
    uint64_t heap_limit, heap_used; /* bytes that kernels have from malloc, without padding */
    uint64_t limit, used;           /* bytes, including padding */
    uint64_t generation;            /* changes with the table: caches of older generations are invalid */
    unsigned checks;                /* PTXVM_CHECK_* */
    bool counters;
    struct vm_freed *freed; /* the most recently freed allocations, if that is checked; a ring buffer */
    int n_freed, next_freed;
} vm_memory;

#define VM_FREED 256
typedef struct vm_freed {
    uint64_t address, bytes;
} vm_freed;

/* The freed allocation that contained the address, if it has not been reused since; null: none, or too long
 * ago. */
const vm_freed *vm_memory_freed(const vm_memory *memory, uint64_t address);

vm_memory *vm_memory_create(uint64_t limit); /* null: no host memory left */
void vm_memory_destroy(vm_memory *memory);

/* Zeroed memory at a multiple of align (a power of two, raised to at least PTXVM_PADDING), at the lowest
 * place where it fits; a kernel's malloc looks only above its last allocation, or above one that was freed since.
 * PTXVM_ERROR_MEMORY if a limit or the host's memory is exceeded. 0 bytes count as 1. */
ptxvm_status vm_memory_alloc(vm_memory *memory, uint64_t bytes, uint64_t align, uint32_t flags,
                             uint64_t *address);
/* Maps memory of another owner at a given address, with its extent. PTXVM_ERROR_ARGUMENT if the range is in
 * use or overlaps a window. */
ptxvm_status vm_memory_map(vm_memory *memory, uint64_t address, void *host, uint64_t bytes, uint64_t extent);
/* PTXVM_ERROR_ADDRESS if no allocation starts there. */
ptxvm_status vm_memory_free(vm_memory *memory, uint64_t address);

/* The allocation that starts at address; the one that contains [address, address + bytes); the one within
 * whose reach that is; the last one that starts at or below it. Null: none. */
const vm_alloc *vm_memory_at(const vm_memory *memory, uint64_t address);
const vm_alloc *vm_memory_find(const vm_memory *memory, uint64_t address, uint64_t bytes);
const vm_alloc *vm_memory_reach(const vm_memory *memory, uint64_t address, uint64_t bytes);
const vm_alloc *vm_memory_nearest(const vm_memory *memory, uint64_t address);

/* Marks bytes as initialised that the host has written itself, or may write. */
void vm_memory_define(vm_memory *memory, uint64_t address, uint64_t bytes);

/* Copies by the host, outside launches: PTXVM_ERROR_ADDRESS if no single allocation contains the whole
 * range. */
ptxvm_status vm_memory_write(vm_memory *memory, uint64_t to, const void *from, uint64_t bytes);
ptxvm_status vm_memory_read(vm_memory *memory, void *to, uint64_t from, uint64_t bytes);
ptxvm_status vm_memory_fill(vm_memory *memory, uint64_t to, uint8_t value, uint64_t bytes);

/* Where the last accesses of a warp went, by instruction. All zero is a valid empty cache; vm_warp has
 * one. */
#define VM_CACHE_ENTRIES 8
typedef struct vm_cache {
    uint64_t generation;
    vm_alloc entry[VM_CACHE_ENTRIES];
} vm_cache;

#endif
