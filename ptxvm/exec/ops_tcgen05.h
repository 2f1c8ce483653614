/* Shared by ops_tcgen05*.c: what a warp has started and what is not complete yet. */
#ifndef PTXVM_EXEC_OPS_TCGEN05_H
#define PTXVM_EXEC_OPS_TCGEN05_H

#include "matrix.h"
#include "ops_common.h"
#include "tmem.h"

typedef enum { TCGEN05_MMA, TCGEN05_COPY, TCGEN05_SHIFT, TCGEN05_COMMIT } tcgen05_kind;

/* The instruction descriptor, decoded. */
typedef struct tcgen05_shape {
    tensor_op op;
    int m, n; /* of the whole product, of both blocks */
    bool a_is_mn_major, b_is_mn_major, negates_a, negates_b;
    int scale_a_byte, scale_b_byte;
} tcgen05_shape;

/* An mma, a copy or a shift of one thread, or its commit of those before. */
typedef struct tcgen05_item {
    const vm_op *op;
    uint8_t kind, lane;
    bool is_pair, done, at_commit;
    uint32_t d; /* mma: d; copy, shift: the address */
    uint64_t a,
        b; /* descriptors; a in tensor memory: its address. copy: b. commit: a is the mbarrier's address */
    uint32_t scale_a, scale_b;
    uint32_t disabled[8]; /* lanes of d that are not written, for each block of a pair 4 words */
    bool adds, a_in_tmem, shifts_a;
    uint8_t scale_d; /* d is multiplied by 2^-scale_d first */
    uint16_t ranks;  /* commit: the blocks whose mbarriers it arrives on */
    tcgen05_shape shape;
} tcgen05_item;

/* A load or store of the warp before its wait. */
typedef struct tcgen05_transfer {
    const vm_op *op;
    vm_frame *frame; /* of a load's registers; null: it has returned */
    uint32_t address;
    bool moved, delivered; /* tensor memory has been read or written; a load's registers have their values */
    uint32_t (*values)[WARP]; /* by register; null: not taken yet */
} tcgen05_transfer;

struct ops_tcgen05 {
    tcgen05_item *items; /* by order of their start */
    int n, capacity;
    tcgen05_transfer *loads, *stores;
    int n_loads, loads_capacity, n_stores, stores_capacity;
    uint64_t started;
};

struct ops_tcgen05 *tcgen05_state(vm_warp *warp, const vm_op *op);
/* The first lane's address of an operand in tensor memory; lanes must agree if `all` do. */
uint32_t tcgen05_address(const vm_warp *warp, const vm_operand *operand, int lane);
static inline uint32_t tmem_lane_of(uint32_t address)
{
    return address >> 16;
}
static inline uint32_t tmem_column_of(uint32_t address)
{
    return address & 0xFFFF;
}

/* ops_tcgen05_async.c */
/* Adds an item whose operands have been checked, and lets the seed decide when it happens. */
bool tcgen05_start(vm_warp *warp, const tcgen05_item *item);
/* What an item reads and writes of tensor memory; returns how many, at most TCGEN05_REGIONS. */
enum { TCGEN05_REGIONS = 16 };
int tcgen05_regions(const vm_warp *warp, const tcgen05_item *item, tmem_region *regions);
vm_exec_fn tcgen05_exec_copy, tcgen05_exec_shift, tcgen05_exec_commit;

/* ops_tcgen05_mma.c */
vm_exec_fn tcgen05_exec_mma;
int tcgen05_mma_regions(const vm_warp *warp, const tcgen05_item *item, tmem_region *regions);
void tcgen05_multiply(vm_warp *warp, const tcgen05_item *item);
/* For the checks: the operands in shared memory are read from the start of a product to its end. */
void tcgen05_watch_shared(vm_warp *warp, const tcgen05_item *item, bool begin);
/* Descriptors of matrices in shared memory. */
bool tcgen05_descriptor_is_valid(vm_warp *warp, const vm_op *op, int lane, const char *name, uint64_t bits);
vm_matrix tcgen05_matrix(const char *name, uint64_t bits, bool is_mn_major);
bool tcgen05_piece_is_inside(vm_warp *warp, const vm_op *op, int lane, const vm_block *block,
                             const vm_matrix *m, uint32_t at);
/* Gets one piece of 16 bytes of a block's shared memory. */
static inline void tcgen05_read_piece(const vm_block *block, uint32_t at, uint32_t words[4])
{
    memcpy(words, block->shared + at, 16);
}

#endif
