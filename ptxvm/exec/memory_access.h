/* A warp's memory access: translates guest addresses to host addresses, with checks. Every load, store,
 * atomic and copy of a kernel goes through vm_translate or vm_translate_lane, which is where checks and
 * counters belong. */
#ifndef PTXVM_EXEC_MEMORY_ACCESS_H
#define PTXVM_EXEC_MEMORY_ACCESS_H

#include <string.h>

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory.h"

typedef enum {
    VM_LOAD = 1,
    VM_STORE = 2,
    VM_ATOMIC = 3 /* both */
} vm_access_kind;

/* The lanes' addresses of one instruction. Only the entries of active lanes are meaningful. */
typedef struct vm_access {
    uint32_t bytes;  /* per lane */
    uint32_t align;  /* the required alignment of addresses */
    uint8_t space;   /* pvm_space; SPACE_NONE is generic */
    uint8_t kind;    /* vm_access_kind */
    bool contiguous; /* out: all 32 lanes are active, and lane i is at vm_host(0) + i * bytes */
    bool parallel;   /* out: other host threads may access it: use relaxed atomics */
    bool flat;       /* out: all in one region of memory: see vm_host */
    uint8_t *origin;
    uint64_t base, stride;
    uint64_t address[WARP]; /* in the space */
    uint8_t *host[WARP];    /* if it is not flat */
} vm_access;

/* The host address of an active lane's bytes, after vm_access_operand. */
static inline uint8_t *vm_host(const vm_access *access, uint32_t lane)
{
    return access->flat ? access->origin + (access->address[lane] - access->base) + lane * access->stride
                        : access->host[lane];
}

/* The active lanes' addresses of an operand [reg + offset] or [var + offset]. Those in .shared are in the window of the
 * cluster. */
void vm_addresses(const vm_warp *warp, const vm_operand *operand, uint32_t mask, uint64_t address[WARP]);

/* The same, translated and checked: bytes, align, space and kind are given. Returns false, with the launch's
 * fault recorded, if an active lane's address is outside or misaligned. */
bool vm_access_operand(vm_warp *warp, const vm_op *op, const vm_operand *operand, vm_access *access,
                       uint32_t mask);

/* The same for addresses that are already computed. */
bool vm_translate(vm_warp *warp, const vm_op *op, vm_access *access, uint32_t mask);

/* One lane's range of bytes, of any length. Returns null, with the fault recorded, if it is not entirely
 * inside. */
uint8_t *vm_translate_lane(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                           uint64_t bytes, uint32_t align, vm_access_kind kind);

/* The same bytes are accessed as different types. */
typedef uint8_t __attribute__((may_alias)) vm_u8;
typedef uint16_t __attribute__((may_alias)) vm_u16;
typedef uint32_t __attribute__((may_alias)) vm_u32;
typedef uint64_t __attribute__((may_alias)) vm_u64;

/* Host memory that other host threads may access as well: bits is 8, 16, 32 or 64. 16 bytes are two accesses
 * of 8. */
#define VM_LOAD_RELAXED(bits, host)                                                                          \
    __atomic_load_n((const vm_u##bits *)(const void *)(host), __ATOMIC_RELAXED)
#define VM_STORE_RELAXED(bits, host, value)                                                                  \
    __atomic_store_n((vm_u##bits *)(void *)(host), (uint##bits##_t)(value), __ATOMIC_RELAXED)

/* 1, 2, 4 or 8 bytes. */
static inline uint64_t vm_load_relaxed(const uint8_t *host, int bytes)
{
    switch (bytes) {
    case 1:
        return VM_LOAD_RELAXED(8, host);
    case 2:
        return VM_LOAD_RELAXED(16, host);
    case 4:
        return VM_LOAD_RELAXED(32, host);
    default:
        return VM_LOAD_RELAXED(64, host);
    }
}

static inline void vm_store_relaxed(uint8_t *host, int bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        VM_STORE_RELAXED(8, host, value);
        break;
    case 2:
        VM_STORE_RELAXED(16, host, value);
        break;
    case 4:
        VM_STORE_RELAXED(32, host, value);
        break;
    default:
        VM_STORE_RELAXED(64, host, value);
    }
}

/* Copies between guest or host memory, either of which may be shared between host threads. */
void vm_copy_relaxed(uint8_t *to, const uint8_t *from, uint64_t bytes);

static inline uint64_t vm_window_base(pvm_space space)
{
    return space == SPACE_SHARED  ? VM_SHARED_BASE
           : space == SPACE_LOCAL ? VM_LOCAL_BASE
           : space == SPACE_PARAM ? VM_PARAM_BASE
                                  : 0;
}

/* The space that contains a generic address. */
static inline pvm_space vm_space_of(uint64_t address)
{
    return address - VM_SHARED_BASE < VM_CLUSTER_BLOCKS * VM_SHARED_SIZE ? SPACE_SHARED
           : address - VM_LOCAL_BASE < VM_LOCAL_SIZE                     ? SPACE_LOCAL
           : address - VM_PARAM_BASE < VM_PARAM_SIZE                     ? SPACE_PARAM
           : address - VM_CONST_BASE < VM_CONST_END - VM_CONST_BASE      ? SPACE_CONST
                                                                         : SPACE_GLOBAL;
}

/* The active lanes, lowest first: for (uint32_t m = mask; m; m &= m - 1) { int lane = vm_first(m); ... } */
static inline int vm_first(uint32_t mask)
{
    return __builtin_ctz(mask);
}
#define VM_EACH_LANE(lane, mask)                                                                             \
    for (uint32_t lanes_left_ = (mask), lane = 0;                                                            \
         lanes_left_ && (lane = (uint32_t)vm_first(lanes_left_), true); lanes_left_ &= lanes_left_ - 1)

#endif
