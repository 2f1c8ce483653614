/* Codes in the order in which tensor cores take them: prepacked once, then streamed straight into registers. Plain values are
 * codes of 16 or 32 bits.
 *
 * A unit is 16 columns n of the product by 64 k. Each of the 32 lanes of a warp has the 32 codes of it that the operand A of
 * four mma m16n8k16 wants from that lane, so as many words as a code has bits. Step s of the four has pairs 0 to 3:
 *
 *     pair i of lane 4g + t: n = g + 8 (i % 2), k = 16 s + 2t + 8 (i / 2) and the next
 *
 * Codes of 2, 4, 8 and 16 bits: pair p = 4 s + i has its halves 16 bits apart in word p / (16 / bits), from bit bits * (p % (16 /
 * bits)) on. Codes of 4 bits that are looked up in a table (NF4, FP4, E2M1): each pair is a byte of that word, so that one entry of a
 * table of bytes is a pair. Other widths: one code behind the other through the words. Words of a lane lie by fours (2 bits: by
 * twos; 3, 5, 6 and 7 bits: one by one), those of the 32 lanes side by side. Units of the same n follow each other in k. What does not exist
 * of the last units is 0.
 *
 * Blocks of GGUF: their codes as units, then headers, which are all other bytes of a block in their order. Those of the blocks of
 * the same k follow each other in n, of which there are as many as units have: first the first words of all of them, then the
 * second words, and at last what is less than a word.
 *
 * TQ1_0: its 48 bytes of five digits are the codes, of 8 bits, and a unit is 16 columns by the 48 of a block. A byte has elements that
 * lie 32 (of the last 16 bytes: 16) apart, so all five are of the lane that has the byte. The words of a lane lie by twos. */
#ifndef QDNN_KERNELS_TENSOR_PREPACK_H
#define QDNN_KERNELS_TENSOR_PREPACK_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/matrix.h"

enum { UNIT_N = 16, UNIT_K = 64, UNIT_STEPS = UNIT_K / 16, UNIT_PAIRS = 4 * UNIT_STEPS };
enum { UNIT_WORDS_MAX = 32 }; /* of a lane: as many as a code has bits */

unsigned prepack_bits(const format_row *format);       /* of a code */
unsigned prepack_vector(unsigned bits);                /* words of a lane that lie together */
bool prepack_is_split(unsigned bits);                  /* halves of a pair are 16 bits apart in a word */
bool prepack_has_byte_pairs(const format_row *format); /* a pair is a byte */

enum { TERNARY_CODES = 48, TERNARY_WORDS = TERNARY_CODES / 8 }; /* of a block; of a lane */

/* A unit along k: its codes, the elements that they stand for, and the bytes of all its columns. */
typedef struct unit_extent {
    unsigned codes, elements, bytes;
} unit_extent;
unit_extent prepack_unit(const format_row *format);

/* The bytes of n columns by k. */
uint64_t prepack_bytes(const format_row *format, uint64_t n, uint64_t k);

/* ---- Blocks ---- */

/* Whether their codes are digits: TQ1_0. */
bool prepack_is_ternary(const block_layout *layout);
unsigned prepack_header_bytes(const block_layout *layout);
/* Where a byte of the block that is no code lies in its header, and the reverse. */
unsigned prepack_header_place(const block_layout *layout, unsigned byte);
unsigned prepack_header_byte(const block_layout *layout, unsigned place);
/* The format of integers of so many bits beside scales, whose codec reads such codes. */
const format_row *prepack_integers(unsigned bits);

/* The bits of codes in a block: a byte has `fields` fields of as many bits as fill it. Field f of byte j of a run of `span` bytes
 * is of element f * span + j of the run's elements. */
typedef struct block_part {
    unsigned first; /* byte */
    unsigned span, fields;
} block_part;
/* The lower bits of codes and, where it has fields, the upper ones. */
typedef struct block_parts {
    unsigned bits;
    block_part low, high;
} block_parts;
block_parts prepack_parts(const block_layout *layout);
unsigned part_bytes(const block_layout *layout, const block_part *part);

/* ---- What the kernel's files share ---- */

typedef struct packing {
    unsigned bits;
    bool byte_pairs, k_in_columns, is_plain;
    unit_extent unit;
    ptx_val n, k, units_k;      /* u64 */
    ptx_val packed;             /* pointer */
    const block_layout *blocks; /* null: not in blocks */
    matrix m;                   /* of blocks, its codes alone */
} packing;

/* The code (u32) of column n and row k (u64) in the units. */
ptx_val prepack_packed_code(ptx_builder *b, const packing *p, ptx_val n, ptx_val k);

/* prepack_blocks.c: one code of column n and row k; and everything back, by threads that are `step` (u64) in number. */
ptx_val prepack_block_code(ptx_builder *b, const packing *p, ptx_val n, ptx_val k);
void prepack_block_unpack(ptx_builder *b, const packing *p, ptx_val step);

/* Headers from the blocks to where they lie packed, or back. */
void prepack_move_headers(ptx_builder *b, const packing *p, ptx_val step, bool back);
ptx_val prepack_block_address(ptx_builder *b, const packing *p, ptx_val n, ptx_val block);

/* prepack_ternary.c: all of TQ1_0, there or back. */
void prepack_ternary(ptx_builder *b, const packing *p, ptx_val step, bool back);

/* prepack_plain.c: the same of plain values. */
ptx_val prepack_plain_value(ptx_builder *b, const packing *p, ptx_val n, ptx_val k);
void prepack_plain_unpack(ptx_builder *b, const packing *p, ptx_val step);

bool prepack_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
void emit_prepack(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
kernel_geometry prepack_geometry(const kernel_row *row, const kernel_spec *spec);
void prepack_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps);
void prepack_bound(const kernel_spec *spec, const kernel_problem *problem,
                   kernel_operand operands[QDNN_OPERAND_COUNT]);

#endif
