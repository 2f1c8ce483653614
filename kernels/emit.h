/* What the emitters of kernels share: elements of a data type as f32 values, index arithmetic, the format
 * table. */
#ifndef QDNN_KERNELS_EMIT_H
#define QDNN_KERNELS_EMIT_H

#include "kernels/kernels.h"

/* ---- Elements (elements.c): memory holds f32, f16, bf16 (u8 for zero points), kernels compute in f32 ----
 */

enum {
    CHUNK_BYTES = 16, /* the widest load and store that every SM has */
    CHUNK_MAX = 8     /* elements of the narrowest data type in a chunk */
};

unsigned element_bytes(qdnnDataType_t type);
unsigned chunk_elements(qdnnDataType_t type); /* 16 bytes' worth: 4 or 8 */

/* One element at address + offset bytes; exact. */
ptx_val emit_load(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset);
/* Rounds x to the type, nearest even, and gives it back as f32: what a reader of the stored element will see.
 */
ptx_val emit_round(ptx_builder *b, qdnnDataType_t type, ptx_val x);
/* Rounds and stores one element; u8 takes an integral f32 in 0..255. */
void emit_store(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val x);
/* A whole chunk by one 16-byte access; address + offset is 16-byte aligned. */
void emit_load_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val *x);
void emit_store_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, const ptx_val *x);
/* The smallest positive and the largest finite value of the type. */
float element_smallest(qdnnDataType_t type);
float element_largest(qdnnDataType_t type);

/* ---- Indices (indices.c): elements are numbered in u64 ---- */

/* i / divisor and the rest, for i below 2^63. */
ptx_val emit_divide(ptx_builder *b, ptx_val i, uint64_t divisor);
ptx_val emit_remainder(ptx_builder *b, ptx_val i, ptx_val quotient, uint64_t divisor);
/* Whether a pointer is a multiple of `align`, a power of two. */
ptx_val emit_aligned(ptx_builder *b, ptx_val pointer, unsigned align);

/* ---- The format table (formats.c) ---- */

/* What one group needs while its elements are coded; made once a group. Unused members stay empty. */
typedef struct group_values {
    ptx_val scale;      /* f32 */
    ptx_val reciprocal; /* f32, 1/scale, where the spec divides by product */
    ptx_val zero;       /* f32 */
} group_values;

/* What the format sets up once a kernel: a table in shared memory. */
typedef struct format_state {
    ptx_val table; /* its address */
} format_state;

typedef struct format_row {
    bool has_zero;
    bool signed_range; /* the scale comes from lo and hi; otherwise from absmax alone */
    /* The scale before it is rounded to its type, from the reduced range (lo and hi, or hi = absmax). */
    ptx_val (*scale)(ptx_builder *b, const kernel_spec *spec, ptx_val lo, ptx_val hi);
    /* The zero point, an integral f32 in 0..15, that goes with the stored scale. Null where the format has
     * none. */
    ptx_val (*zero)(ptx_builder *b, ptx_val lo, ptx_val scale);
    /* The code (u32, 0..15) of a quotient that is not NaN. */
    ptx_val (*encode)(ptx_builder *b, const kernel_spec *spec, const group_values *group, ptx_val quotient);
    /* Called once, before the first decode, by all threads of the block. Null where nothing is needed. */
    format_state (*decode_begin)(ptx_builder *b);
    /* The f32 value of the code in bits shift..shift+3 of a u32 word, in units of the scale. */
    ptx_val (*decode)(ptx_builder *b, const kernel_spec *spec, const format_state *state,
                      const group_values *group, ptx_val word, unsigned shift);
} format_row;

const format_row *format_of(const kernel_row *row);

/* ---- The emitters of registry.def ---- */

kernel_geometry scale_geometry(const kernel_row *row, const kernel_spec *spec);
/* How many threads share the work on a group. */
uint64_t scale_lanes(const kernel_spec *spec);
void emit_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_geometry range_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_range(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_geometry chunk_geometry(const kernel_row *row,
                               const kernel_spec *spec); /* of quantize and dequantize */
void emit_quantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
void emit_dequantize(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

#endif
