/* A tensor map: 128 bytes that describe a tensor in global memory and the box that a copy moves. NVIDIA's layout is not
 * public; this is our own. A kernel may have written anything there: nothing is used before vm_tensormap_problem has
 * looked at it. */
#ifndef PTXVM_EXEC_TENSORMAP_H
#define PTXVM_EXEC_TENSORMAP_H

#include "ptxvm/ptxvm.h"

/* The swizzle that exchanges pieces of 32 bytes in rows of 128. */
#define VM_SWIZZLE_BY_32   4
#define VM_TENSORMAP_MAGIC UINT32_C(0x50614D54)

typedef struct vm_tensormap {
    uint64_t address;
    uint64_t stride[PTXVM_TENSORMAP_RANK]; /* bytes; stride[0] is the size of an element */
    uint32_t last[PTXVM_TENSORMAP_RANK];   /* elements, less 1 */
    uint16_t box[PTXVM_TENSORMAP_RANK];
    uint8_t element_stride[PTXVM_TENSORMAP_RANK];
    uint8_t type, rank, interleave, swizzle, fill, l2_promotion;
    uint32_t magic;
    uint8_t unused[32];
} vm_tensormap;

_Static_assert(sizeof(vm_tensormap) == PTXVM_TENSORMAP_BYTES, "a tensor map has 128 bytes");

/* The rule that the map breaks, in `why`. */
ptxvm_status vm_tensormap_problem(const vm_tensormap *map, char *why, size_t size);
/* Of a type that is supported: the bytes of a unit in global memory, and in shared memory; its elements. */
uint32_t vm_tensormap_element_bytes(const vm_tensormap *map);
uint32_t vm_tensormap_shared_bytes(const vm_tensormap *map);
uint32_t vm_tensormap_unit(const vm_tensormap *map);
/* TFLOAT32: f32 in the tensor, which loads round to tf32. */
bool vm_tensormap_rounds(const vm_tensormap *map);
bool vm_tensormap_is_float(const vm_tensormap *map);
/* How many elements of dimension i a copy moves; of the innermost, units. */
uint32_t vm_tensormap_extent(const vm_tensormap *map, int i);
/* The row of the swizzle pattern in bytes: 16, 32, 64 or 128. */
uint32_t vm_tensormap_width(const vm_tensormap *map);

#endif
