/* Codes in the order in which tensor cores need them: prepacked once, then streamed straight into
 * registers. Plain values count as codes of 16 or 32 bits.
 *
 * A unit is 16 columns n of the product by 64 k. Each of the 32 lanes of a warp holds the 32 codes of it
 * that operand A of four mma m16n8k16 ("steps") needs from that lane: as many words as a code has bits.
 * Each step s has pairs 0 to 3:
 *
 *     pair i of lane 4g + t: n = g + 8 (i % 2), k = 16 s + 2t + 8 (i / 2) and the next
 *
 * Codes of 1, 2, 4, 8 and 16 bits: pair p = 4 s + i has its two codes ("halves") 16 bits apart in word p /
 * (16 / bits), from bit bits * (p % (16 / bits)) on. Codes of 4 bits that are looked up in a table (NF4,
 * FP4, E2M1): each pair is a byte of that word, so that one entry of a table indexed by bytes gives a
 * pair. Other widths: codes follow each other through the words. The words of a lane lie in vectors of
 * four (2 bits: of two; 1, 3, 5, 6 and 7 bits: of one), with those of the 32 lanes side by side. Units of the
 * same n follow each other in k. Elements of the last units that do not exist are 0.
 *
 * GGUF blocks: first their codes as units, then headers, which are all other bytes of a block in their
 * order. The headers of all columns n at the same k are stored together (n rounded up to whole units):
 * first the first words of all of them, then the second words, and finally the rest that is less than a
 * word. IQ1, IQ2 and IQ3 have no codes of single elements: their blocks are all header.
 *
 * TQ1_0: its 48 bytes of five digits count as codes of 8 bits, and a unit is 16 columns by the 48 codes of
 * a block. The elements of a byte lie 32 (in the last 16 bytes: 16) apart, so all five belong to the lane
 * that has the byte. The words of a lane lie in vectors of two. */
#ifndef QDNN_KERNELS_FORMATS_PREPACKED_H
#define QDNN_KERNELS_FORMATS_PREPACKED_H

#include "kernels/formats/blocks.h"
#include "kernels/maps/map.h"

enum { UNIT_N = 16, UNIT_K = 64, UNIT_STEPS = UNIT_K / 16, UNIT_PAIRS = 4 * UNIT_STEPS };
enum { UNIT_WORDS_MAX = 32 }; /* words per lane: as many as a code has bits */

unsigned prepack_bits(const format_row *format);       /* of a code */
unsigned prepack_vector(unsigned bits);                /* consecutive words of a lane */
bool prepack_is_split(unsigned bits);                  /* the halves of a pair are 16 bits apart */
bool prepack_has_byte_pairs(const format_row *format); /* a pair is a byte */
/* The bit at which a code begins among those of its lane: from "pair" and "half" to "bit". */
map prepack_order(unsigned bits, bool byte_pairs);

enum { TERNARY_CODES = 48, TERNARY_WORDS = TERNARY_CODES / 8 }; /* codes per block; words per lane */

/* The extent of a unit: its codes along k, the elements that they stand for, and the bytes of all its
 * columns. */
typedef struct unit_extent {
    unsigned codes, elements, bytes;
} unit_extent;
unit_extent prepack_unit(const format_row *format);

/* The size in bytes of prepacked weights of n columns by k. */
uint64_t prepack_bytes(const format_row *format, uint64_t n, uint64_t k);

/* ---- Blocks ---- */

/* The format of integers of `bits` bits with separate scales, whose codec reads such codes. */
const format_row *prepack_integers(unsigned bits);

#endif
