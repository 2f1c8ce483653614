/* What the emitters of kernels share: elements of a data type as f32 values, stored scales, index arithmetic. */
#ifndef QDNN_KERNELS_EMIT_H
#define QDNN_KERNELS_EMIT_H

#include "kernels/kernels.h"

/* A table over an enumeration has no row for this value: a defect, which ends the program with its name. */
_Noreturn void missing_row(const char *table, int value);

/* ---- Elements (elements.c): memory holds f32, f16, bf16, f64 (and integers as zero points), kernels compute in
 * f32 ---- */

enum {
    LOAD_BYTES = 16, /* the widest load and store that every SM has */
    CHUNK_MAX = 8    /* elements of the narrowest data type in a chunk */
};

unsigned element_bytes(qdnnDataType_t type);
unsigned chunk_elements(qdnnDataType_t type); /* what a thread takes at a time: 8 of 16 bits, 4 of more */
unsigned chunk_bytes(qdnnDataType_t type);    /* 16; f64: 32 */

/* One element at address + offset bytes; exact. */
ptx_val emit_load(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset);
/* The same from memory that the kernel writes, too. */
ptx_val emit_load_mutable(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset);
/* Rounds x to the type, nearest even, and gives it back as f32: what a reader of the stored element will see.
 */
ptx_val emit_round(ptx_builder *b, qdnnDataType_t type, ptx_val x);
/* Rounds and stores one element; integer types take an integral f32 in their range. */
void emit_store(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val x);
/* The same for a number that emit_round gave, or a bound of its type: there is nothing to round. */
void emit_store_exact(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val x);
/* Two f32 rounded to F16 or BF16, nearest even: a u32 with the first in the low half. */
ptx_val emit_narrow_pair(ptx_builder *b, qdnnDataType_t type, ptx_val lo, ptx_val hi);
/* A whole chunk by 16-byte accesses; address + offset is 16-byte aligned. */
void emit_load_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val *x);
void emit_store_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, const ptx_val *x);
/* A vector is what one 16-byte access holds: 4 f32, 8 of 16 bits, 2 f64. */
unsigned vector_elements(qdnnDataType_t type);
void emit_load_vector(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val *x);
/* `count` elements that fill 8 or 16 bytes, at an address that is aligned to that. */
void emit_store_vector(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, const ptx_val *x,
                       unsigned count);
/* `count` neighbours, 4 or 8, by the widest accesses that they fill; the address is aligned to their bytes, or to 16.
 * Loaded may be integers too. */
void emit_load_run(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                   ptx_val *x);
void emit_store_run(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                    const ptx_val *x);
/* The same (joint.c) where the lanes of a warp have neighbouring chunks, and lanes 2i and 2i + 1 both load or store, or neither: of types whose chunk is
 * more than one access (f64), two lanes share them, so that requests fill their sectors. After loading and before storing
 * they exchange halves, in which all lanes of the warp take part. */
bool chunk_is_joint(qdnnDataType_t type);
void emit_load_joint(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                     ptx_val *x);
void emit_joint_exchange(ptx_builder *b, qdnnDataType_t type, ptx_val *x);
void emit_store_joint(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                      const ptx_val *x);
/* So many u32 words, by 16 bytes at most. */
void emit_load_words(ptx_builder *b, ptx_val address, int offset, unsigned count, ptx_val *words);
void emit_store_words(ptx_builder *b, ptx_val address, int offset, unsigned count, const ptx_val *words);
/* The elements of a u32, the lowest first: one of 32 bits, two of 16 or four of 8. */
void emit_widen_word(ptx_builder *b, qdnnDataType_t type, ptx_val word, ptx_val *x);
/* The smallest positive and the largest finite value of the type. */
float element_smallest(qdnnDataType_t type);
float element_largest(qdnnDataType_t type);

/* ---- Stored scales (scales.c): f32, f16, bf16, E4M3 and E8M0 ---- */

unsigned scale_bytes(qdnnScaleType_t type);
/* The data type that a scale of 16 or 32 bits has; 0 for bytes. */
qdnnDataType_t scale_data_type(qdnnScaleType_t type);
ptx_val emit_load_scale(ptx_builder *b, qdnnScaleType_t type, ptx_val address, int offset);
/* As emit_load_run. */
void emit_load_scale_run(ptx_builder *b, qdnnScaleType_t type, ptx_val address, unsigned count, ptx_val *x);

/* ---- Indices (indices.c): elements are numbered in u64 ---- */

unsigned ceil_log2(uint64_t x);
/* i / divisor and the rest, for i below 2^63. */
ptx_val emit_divide(ptx_builder *b, ptx_val i, uint64_t divisor);
ptx_val emit_remainder(ptx_builder *b, ptx_val i, ptx_val quotient, uint64_t divisor);
/* i / divisor rounded up. */
ptx_val emit_divide_up(ptx_builder *b, ptx_val i, uint64_t divisor);
/* Whether a pointer is a multiple of `align`, a power of two. */
ptx_val emit_aligned(ptx_builder *b, ptx_val pointer, unsigned align);

#endif
