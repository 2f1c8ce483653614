/* Shared by all emitters: elements of a data type as f32 values, stored scales, index arithmetic. */
#ifndef QDNN_KERNELS_EMIT_H
#define QDNN_KERNELS_EMIT_H

#include "kernels/kernels.h"

/* Called if a table over an enumeration has no row for a value, which is a defect: prints the table's name
 * and aborts. */
_Noreturn void missing_row(const char *table, int value);

/* ---- Elements (elements.c): memory holds f32, f16, bf16, f64 (and integer zero points), kernels compute in
 * f32 ---- */

enum {
    LOAD_BYTES = 16, /* the widest load and store that every SM supports */
    CHUNK_MAX = 8    /* elements per chunk, at most */
};

unsigned element_bytes(qdnnDataType_t type);
/* A chunk is the run of elements that a thread handles at a time: 8 of 16-bit types, 4 of others. */
unsigned chunk_elements(qdnnDataType_t type);
unsigned chunk_bytes(qdnnDataType_t type); /* 16; for f64: 32 */

/* Loads one element from address + offset (in bytes) as f32; f64 and 32-bit integers are rounded to
 * nearest even. */
ptx_val emit_load(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset);
/* The same from memory that the kernel also writes. */
ptx_val emit_load_mutable(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset);
/* Rounds x to the type, to nearest even, and returns the result as f32: the value that a reader of the stored
 * element will see. */
ptx_val emit_round(ptx_builder *b, qdnnDataType_t type, ptx_val x);
/* Rounds and stores one element; for integer types, x must be an integral f32 within their range. */
void emit_store(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val x);
/* The same for a value that needs no rounding: a result of emit_round, or a limit of the type. */
void emit_store_exact(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val x);
/* Rounds two f32 to F16 or BF16, to nearest even: a u32 with the first in the low half. */
ptx_val emit_narrow_pair(ptx_builder *b, qdnnDataType_t type, ptx_val lo, ptx_val hi);
/* Loads or stores a whole chunk by 16-byte accesses; address + offset is 16-byte aligned. */
void emit_load_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val *x);
void emit_store_chunk(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, const ptx_val *x);
/* A vector is the content of one 16-byte access: 4 f32, 8 16-bit elements, 2 f64. */
unsigned vector_elements(qdnnDataType_t type);
void emit_load_vector(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, ptx_val *x);
/* `count` elements that fill 8 or 16 bytes, at an address with that alignment. */
void emit_store_vector(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, const ptx_val *x,
                       unsigned count);
/* `count` adjacent elements, 4 or 8, by the widest accesses that they fill; the address is aligned to their
 * size or to 16 bytes, whichever is less. Integers can be loaded, too. */
void emit_load_run(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                   ptx_val *x);
void emit_store_run(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                    const ptx_val *x);
/* The same (joint.c), for kernels in which the lanes of a warp have adjacent chunks, and lanes 2i and 2i + 1
 * either both load or store, or neither does. If a chunk takes more than one access (f64), the two lanes
 * share their accesses, so that requests fill their sectors. After loading and before storing they exchange
 * halves by emit_joint_exchange, which all lanes of the warp must call. */
bool chunk_is_joint(qdnnDataType_t type);
void emit_load_joint(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                     ptx_val *x);
void emit_joint_exchange(ptx_builder *b, qdnnDataType_t type, ptx_val *x);
void emit_store_joint(ptx_builder *b, qdnnDataType_t type, ptx_val address, int offset, unsigned count,
                      const ptx_val *x);
/* `count` u32 words, by accesses of up to 16 bytes. */
void emit_load_words(ptx_builder *b, ptx_val address, int offset, unsigned count, ptx_val *words);
void emit_store_words(ptx_builder *b, ptx_val address, int offset, unsigned count, const ptx_val *words);
/* The elements in a u32 as f32, the lowest first: one of 32 bits, two of 16 or four of 8. */
void emit_widen_word(ptx_builder *b, qdnnDataType_t type, ptx_val word, ptx_val *x);
/* The smallest positive and the largest finite value of the type. */
float element_smallest(qdnnDataType_t type);
float element_largest(qdnnDataType_t type);

/* ---- Stored scales: f32, f16, bf16, E4M3 and E8M0 (loads: formats/format.h) ---- */

unsigned scale_bytes(qdnnScaleType_t type);
/* The data type of a 16-bit or 32-bit scale; 0 for one-byte scales. */
qdnnDataType_t scale_data_type(qdnnScaleType_t type);

/* ---- Indices (indices.c): elements have u64 numbers ---- */

unsigned ceil_log2(uint64_t x);
/* i / divisor and the remainder, for i below 2^63. */
ptx_val emit_divide(ptx_builder *b, ptx_val i, uint64_t divisor);
ptx_val emit_remainder(ptx_builder *b, ptx_val i, ptx_val quotient, uint64_t divisor);
/* Number i (u64) of a list of row numbers, which are I32 or I64, as u64: negative ones are beyond any table. Where `exists`
 * (empty: always) is false, nothing is loaded. */
ptx_val emit_row_number(ptx_builder *b, int type, ptx_val list, ptx_val i, ptx_val exists);
/* i * factor. */
ptx_val emit_multiply(ptx_builder *b, ptx_val i, uint64_t factor);
/* i / divisor rounded up. */
ptx_val emit_divide_up(ptx_builder *b, ptx_val i, uint64_t divisor);
/* Whether a pointer is a multiple of `align`, which is a power of two. */
ptx_val emit_aligned(ptx_builder *b, ptx_val pointer, unsigned align);
/* Whether that is so and a condition holds. */
ptx_val emit_aligned_and(ptx_builder *b, ptx_val condition, ptx_val pointer, unsigned align);

#endif
