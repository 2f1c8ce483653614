/* A table in shared memory with an entry for each byte: the two numbers of its 4-bit codes, or the one of
 * an 8-bit code. Each thread of half a warp (of a whole warp, where entries are one number) reads its own
 * copy, so there are no bank conflicts. Entry e lies at e * 256, and its copies fill 128 bytes from there,
 * so one byte permutation makes an address. The gaps of 128 bytes between the entries ("runs") are free
 * for other data. */
#ifndef QDNN_KERNELS_BYTE_TABLE_H
#define QDNN_KERNELS_BYTE_TABLE_H

#include "kernels/formats/quantized.h"

enum {
    BYTE_TABLE_RUN = 128,
    BYTE_TABLE_PITCH = 2 * BYTE_TABLE_RUN,
    BYTE_TABLE_BYTES = 255 * BYTE_TABLE_PITCH + BYTE_TABLE_RUN
};

typedef struct byte_table {
    ptx_val base; /* u32: address, a multiple of BYTE_TABLE_RUN */
    ptx_val copy; /* u32: offset of the thread's copy in an entry */
} byte_table;

/* The f32 value of the code at a bit (0 or 4) of a byte (u32). */
typedef ptx_val byte_number(ptx_builder *b, const void *user, ptx_val byte, unsigned position);

/* Fills the table, by all `threads` (a power of two from 32 to 256) of the block, with `numbers` (1 or 2)
 * f32 per entry: the lower code's first, unless `swapped`. A barrier has to follow before it is read. */
byte_table byte_table_fill(ptx_builder *b, ptx_val base, unsigned threads, unsigned numbers, bool swapped,
                           byte_number *of, const void *user);

/* The same for the codes of a format, whose numbers are multiplied by 2^exponent. */
byte_table code_table_fill(ptx_builder *b, const quantized *q, ptx_val base, unsigned threads, bool swapped,
                           int exponent);

/* Whether E4M3 scales are used without correcting their exponent, and the table's entries make up for it: where the products
 * are exact either way, and no instruction converts scales. */
enum { RAW_SCALE_EXPONENT = 120 };
bool e4m3_scales_stay_raw(const ptx_builder *b, const coding *c);

/* The address of the entry of byte `byte` of a word; and the numbers that it holds. */
ptx_val byte_table_address(ptx_builder *b, const byte_table *t, ptx_val word, unsigned byte);
void byte_table_load(ptx_builder *b, const byte_table *t, ptx_val word, unsigned byte, ptx_val *out,
                     unsigned numbers);

#endif
