/* The kernel that prepacks codes, and unpacks them (formats/prepacked.h). */
#ifndef QDNN_KERNELS_TENSOR_PREPACK_H
#define QDNN_KERNELS_TENSOR_PREPACK_H

#include "kernels/formats/matrix.h"
#include "kernels/formats/prepacked.h"

typedef struct packing {
    unsigned bits;
    bool byte_pairs, k_in_columns, is_plain;
    unit_extent unit;
    ptx_val n, k, units_k;      /* u64 */
    ptx_val packed;             /* pointer */
    const block_layout *blocks; /* null: not in blocks */
    matrix m;                   /* for blocks, only the codes are set */
} packing;

/* Reads the code (u32) of column n and row k (u64) from the units. */
ptx_val prepack_packed_code(ptx_builder *b, const packing *p, ptx_val n, ptx_val k);

/* prepack_blocks.c: reads the code of column n and row k from the blocks; unpacks everything, with `step`
 * (u64) threads. */
ptx_val prepack_block_code(ptx_builder *b, const packing *p, ptx_val n, ptx_val k);
void prepack_block_unpack(ptx_builder *b, const packing *p, ptx_val step);

/* Copies the headers of blocks to their packed place, or back. */
void prepack_move_headers(ptx_builder *b, const packing *p, ptx_val step, bool back);
ptx_val prepack_block_address(ptx_builder *b, const packing *p, ptx_val n, ptx_val block);

/* prepack_ternary.c: packs or unpacks all of TQ1_0. */
void prepack_ternary(ptx_builder *b, const packing *p, ptx_val step, bool back);

/* prepack_plain.c: the same for plain values. */
ptx_val prepack_plain_value(ptx_builder *b, const packing *p, ptx_val n, ptx_val k);
void prepack_plain_unpack(ptx_builder *b, const packing *p, ptx_val step);

bool prepack_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
void emit_prepack(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_geometry prepack_geometry(const kernel_row *row, const kernel_spec *spec);

#endif
