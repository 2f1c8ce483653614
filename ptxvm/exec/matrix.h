/* A matrix in shared memory as wgmma and tcgen05 take it: pieces of 16 bytes, placed by a descriptor. Both have the same
 * layouts (PTX ISA, "Shared Memory Matrix Layout" and "Canonical Layouts"), but not the same bits in the descriptor. */
#ifndef PTXVM_EXEC_MATRIX_H
#define PTXVM_EXEC_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#define VM_MATRIX_ADDRESS 0x3FFFFu

typedef struct vm_matrix {
    const char *name; /* "A" */
    uint32_t start, leading, stride;
    uint32_t width; /* bytes of a row of the swizzle pattern; 16: no swizzle */
    bool is_mn_major;
    bool by_pairs; /* the pattern exchanges 32 bytes instead of 16, and repeats after 4 rows instead of 8 */
} vm_matrix;

/* K-major: piece `piece` (0, 1) of the 32 bytes of row or column `line`. */
uint32_t vm_matrix_by_line(const vm_matrix *m, uint32_t line, uint32_t piece);
/* MN-major: piece `piece` of the rows or columns at depth k: as many of them as fit 16 bytes. */
uint32_t vm_matrix_by_depth(const vm_matrix *m, uint32_t k, uint32_t piece);

#endif
