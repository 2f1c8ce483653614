/* Shared by ops_*.c: their part of a warp's state, and the functions that find each instruction. */
#ifndef PTXVM_EXEC_OPS_COMMON_H
#define PTXVM_EXEC_OPS_COMMON_H

#include "memory_access.h"
#include "ops.h"
#include "tensormap.h"
#include "tmem.h"

/* A cp.async of a warp that has been started and is not complete, or a mark between such copies. Its source
 * has been read. */
typedef enum {
    PENDING_COPY,   /* data -> shared memory */
    PENDING_COMMIT, /* the end of a group */
    PENDING_ARRIVE  /* cp.async.mbarrier.arrive: arrives when the copies before it are complete */
} pending_kind;

typedef struct pending {
    const vm_op *op;
    uint32_t lanes;  /* that are not complete */
    uint32_t marked; /* of these: to complete now */
    uint8_t kind, bytes;
    int32_t count;            /* of a mark: the number of consecutive commits */
    uint16_t undefined[WARP]; /* of the source, if that is checked: bit i is byte i */
    uint32_t to[WARP];        /* .shared address of the destination or of the mbarrier */
    uint8_t data[WARP][16];
} pending;

/* A box of a tensor: four rows of it (coordinate[1] to [4]) where it gathers. */
typedef struct tensor_box {
    vm_tensormap map;
    int32_t coordinate[PTXVM_TENSORMAP_RANK];
    uint64_t shared; /* its address in shared memory */
    bool gathers;
} tensor_box;

enum { OPS_ANSWER_BYTES = 16 };

/* A bulk copy of one lane into shared memory. The seed decides whether its data is there when it is started or when it
 * completes, and when it completes: by itself, or when somebody looks at its mbarrier. */
typedef struct pending_bulk {
    const vm_op *op;
    uint64_t to, from, size, barrier; /* of a tensor: size is what it covers of shared memory */
    uint8_t lane, from_space;
    bool landed, moved, is_tensor, is_answer;
    tensor_box box;
    uint8_t answer[OPS_ANSWER_BYTES]; /* of clusterlaunchcontrol.try_cancel: what it writes */
} pending_bulk;

/* The matrix element of each piece of a wmma fragment: piece (reg * parts + part) * 32 + lane. b1 has the
 * most pieces. */
#define WMMA_PIECES 1024
typedef struct wmma_map {
    uint64_t key; /* shape, fragment, type and layout; 0: empty */
    uint8_t row[WMMA_PIECES], col[WMMA_PIECES];
} wmma_map;

struct vm_ops_warp {
    vm_cache cache;
    pending *copies; /* in program order */
    int n_copies, copies_capacity;
    pending_bulk *bulk;
    int n_bulk, bulk_capacity;
    wmma_map *maps;              /* of the fragments a b c d; null at first */
    uint64_t n_started;          /* bulk copies, for the seed */
    struct ops_wgmma *wgmma;     /* private to ops_wgmma.c; null at first */
    struct ops_tcgen05 *tcgen05; /* the same, for ops_tcgen05*.c */
};

/* When something asynchronous reads its operands or writes its results, between its start and the wait for it. Without
 * a seed it is as late as possible. `number` counts what the warp has started. */
typedef enum { LANDING_LATE, LANDING_EARLY, LANDING_BETWEEN, LANDINGS } ops_landing;
ops_landing ops_landing_of(const vm_warp *warp, uint64_t number);

/* Makes room for one more item of an array; null, with the fault recorded, if there is no memory or a limit is
 * exceeded. */
void *ops_grow(vm_warp *warp, const vm_op *op, void *items, int count, int *capacity, size_t size);

/* wgmma: products in flight end with the block, and with the function that started them; what a warp has not executed
 * although the others of its warpgroup have is a fault. */
enum { OPS_WARPGROUPS = 8 };
struct vm_ops_block {
    struct ops_warpgroup *groups;
    vm_tmem tmem;
};
/* That of the warp's block, which may be new. Null, with the fault recorded, without memory. */
struct vm_ops_block *ops_block_of(vm_warp *warp, const vm_op *op);
void ops_wgmma_begin(vm_warp *warp);
bool ops_wgmma_block_end(vm_block *block);
void ops_wgmma_free(vm_warp *warp);

/* tcgen05: what ends with a warp's block, and with the function that started it; commits that arrive on an mbarrier. */
void ops_tcgen05_begin(vm_warp *warp);
void ops_tcgen05_frame_end(vm_warp *warp, const vm_frame *frame);
void ops_tcgen05_block_end(vm_block *block);
void ops_tcgen05_free(vm_warp *warp);
bool ops_tcgen05_land(vm_warp *warp, uint64_t barrier);
int ops_tcgen05_flying(const vm_warp *warp, uint64_t barrier);

/* Completes the copies that an mbarrier waits for, in all warps of the block's cluster. Returns false after a fault. */
bool ops_async_land(vm_block *block, uint64_t barrier);
/* The bulk copies that will complete on an mbarrier. */
int ops_async_flying(const vm_block *block, uint64_t barrier);

/* Starts a bulk copy into shared memory, whose operands have been checked; with .multicast::cluster to each of its
 * blocks. */
bool ops_bulk_begin_each(vm_warp *warp, const pending_bulk *item);
/* Copies a box into shared memory; its bytes. Both for a map that has been checked. */
bool ops_tensor_load(vm_warp *warp, const vm_op *op, int lane, const tensor_box *box);
uint64_t ops_tensor_bytes(const tensor_box *box);
vm_exec_fn *ops_find_tensor_copy(const pvm_inst *inst);

/* mbarrier objects: `address` in the window of the cluster. */
bool ops_mbarrier_arrive(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint32_t count);
bool ops_mbarrier_add_pending(vm_warp *warp, const vm_op *op, int lane, uint64_t address);
bool ops_mbarrier_complete_tx(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint32_t bytes);

/* The byte that an stmatrix writes at `byte` of the row that a lane gives the address of. */
uint8_t ops_stmatrix_byte(vm_warp *warp, const vm_op *op, int row, int byte);

/* Applies an operation of atom and red to one element of `bytes` bytes at host. Null: no such operation for
 * the type. */
typedef uint64_t atomic_fn(uint64_t old, uint64_t b, uint64_t c);
atomic_fn *ops_atomic_find(unsigned operation, pvm_type type);
uint64_t ops_atomic_apply(atomic_fn *apply, uint8_t *host, int bytes, bool parallel, uint64_t b, uint64_t c);

/* st and red; and st.async and red.async, which also complete their bytes on an mbarrier. */
vm_exec_fn ops_exec_st, ops_exec_atomic, ops_exec_async;

/* Each completes an op of its opcodes, like vm_ops_find. */
typedef bool ops_finder(vm_op *op);
ops_finder ops_find_ld, ops_find_st, ops_find_atomic, ops_find_shfl, ops_find_warp, ops_find_cp,
    ops_find_mbarrier, ops_find_cancel, ops_find_matrix, ops_find_wmma, ops_find_wgmma, ops_find_tensormap,
    ops_find_mov, ops_find_address, ops_find_misc, ops_find_tcgen05;

/* Lane `lane` of a register `width` bytes wide, zero-extended; and the reverse. Not for 16-byte registers. */
static inline uint64_t ops_get(const void *value, int width, int lane)
{
    switch (width) {
    case 1:
        return ((const vm_u8 *)value)[lane];
    case 2:
        return ((const vm_u16 *)value)[lane];
    case 4:
        return ((const vm_u32 *)value)[lane];
    default:
        return ((const vm_u64 *)value)[lane];
    }
}

static inline void ops_set(void *value, int width, int lane, uint64_t bits)
{
    switch (width) {
    case 1:
        ((vm_u8 *)value)[lane] = (uint8_t)bits;
        break;
    case 2:
        ((vm_u16 *)value)[lane] = (uint16_t)bits;
        break;
    case 4:
        ((vm_u32 *)value)[lane] = (uint32_t)bits;
        break;
    default:
        ((vm_u64 *)value)[lane] = bits;
    }
}

static inline uint64_t ops_operand(const vm_warp *warp, const vm_operand *operand, int lane)
{
    return ops_get(vm_value(warp, operand), operand->width, lane);
}

/* Writes a result, unless it is the sink. */
static inline void ops_result(const vm_warp *warp, const vm_operand *operand, int lane, uint64_t bits)
{
    if (!operand->is_sink)
        ops_set(vm_value(warp, operand), operand->width, lane, bits);
}

static inline void ops_result_predicate(const vm_warp *warp, const vm_operand *operand, uint32_t mask,
                                        uint32_t value)
{
    if (operand->is_sink)
        return;
    uint32_t *p = vm_value(warp, operand);
    *p = (*p & ~mask) | (value & mask);
}

#endif
