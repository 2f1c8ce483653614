/* Values in pairs: two codes become an f16x2 or a bf16x2, each half exactly what the dequantize operation
 * writes in that type, that is, group_decode (or block_decode) in f32, rounded once. docs/decodes.md gives
 * the sequences and explains why they are exact. Usage:
 *
 *     pair_group g = pair_group_of(b, q, QDNN_DATA_F16, &group, &group);          once per group
 *     ptx_val w = pair_decode(b, q, QDNN_DATA_F16, &g, (code_place){word, 0}, (code_place){word, 4});
 *
 * A code may be at any bit of any word, which covers neighbours along a row (positions 0 and 4 of a quad),
 * along a column (the same position of two words) and AWQ's order (positions 0 and 16); a code must not cross
 * the end of its word. The two codes may belong to different groups. Two codes 16 bits apart in one word take
 * the fewest instructions, then two that begin at multiples of 8 bits, then two in one byte. The result is a
 * u32 with the first value in its low half: an operand of `mma`.
 *
 * Scales are applied in 16 bits if that gives the same bits (pair_is_short), otherwise in f32 with one
 * conversion of the pair. All formats and targets are supported either way; formats with a table need
 * quantized_open first. */
#ifndef QDNN_KERNELS_PAIRS_H
#define QDNN_KERNELS_PAIRS_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/quantized.h"

/* Whether the pair is scaled in 16 bits, which takes about half the instructions. `type` is F16 or BF16. */
bool pair_is_short(const ptx_builder *b, const coding *c, qdnnDataType_t type);

/* The same for a target that has all instructions. */
bool pair_fits(const coding *c, qdnnDataType_t type);

/* The numbers of the groups of a pair. */
typedef struct pair_group {
    group_values first, second; /* f32 */
    ptx_val scale, minus_zero;  /* as pairs, if pair_is_short; empty if there is none */
} pair_group;
pair_group pair_group_of(ptx_builder *b, const quantized *q, qdnnDataType_t type, const group_values *first,
                         const group_values *second);

ptx_val pair_decode(ptx_builder *b, const quantized *q, qdnnDataType_t type, const pair_group *group,
                    code_place first, code_place second);

/* The same for a strand of a block: short if there is one scale of the result's own type and codes need no
 * table. */
bool block_pair_is_short(const block_layout *layout, qdnnDataType_t type);
/* Decodes elements `element` (even) and the next. `scale` is block_pair_scale of the strand, computed once
 * for all of its pairs. */
ptx_val block_pair_scale(ptx_builder *b, const block_layout *layout, qdnnDataType_t type,
                         const block_strand *strand);
ptx_val block_decode_pair(ptx_builder *b, const block_layout *layout, const codec_state *state,
                          qdnnDataType_t type, const block_strand *strand, ptx_val scale, unsigned element);

/* What codes of 4 bits stand for in units of their scales, as f32, whatever the format: blocks and integers, too. */
void code_numbers_of(const format_row *format, const kernel_spec *spec, uint64_t bits[16]);

/* ---- For codecs ---- */

ptx_type pair_type(qdnnDataType_t type);          /* PTX_F16X2, PTX_BF16X2 */
unsigned pair_fraction_bits(qdnnDataType_t type); /* 10, 7 */
/* A pair of constants; each is 0 or a normal number that the type can represent. */
ptx_val pair_constant(ptx_builder *b, qdnnDataType_t type, float first, float second);
/* x + y and x * y, rounded once. On sm_80 the only bf16 arithmetic is fma. */
ptx_val pair_add(ptx_builder *b, qdnnDataType_t type, ptx_val x, ptx_val y);
ptx_val pair_mul(ptx_builder *b, qdnnDataType_t type, ptx_val x, ptx_val y);
/* Converts the four codes in a u32, E4M3 or E5M2, to two f16x2 (u32). NaN becomes some NaN: `mma` treats all
 * NaN alike. */
void fp8_to_f16(ptx_builder *b, const minifloat *from, ptx_val word, ptx_val out[2]);
/* Whether bits are moved to convert to f16, as no instruction does it or none is needed; and codes in the upper bytes of
 * halves, whose lower bytes are arbitrary, as an f16x2 (u32). */
bool fp8_is_moved(const ptx_builder *b, const minifloat *from);
ptx_val fp8_tops_to_f16(ptx_builder *b, const minifloat *from, ptx_val tops);
/* Moves codes of `bits` bits to bits `first_at` and `second_at` of the two halves of a u32; the bits around
 * them are arbitrary. */
ptx_val pair_place(ptx_builder *b, unsigned bits, code_place first, unsigned first_at, code_place second,
                   unsigned second_at);

#endif
