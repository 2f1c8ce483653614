/* Streams of u32 words, which hold codes and packed zeros: code i has `bits` bits from bit i * bits on, low
 * bits first. AWQ's streams have their own order within each word: even codes first. */
#ifndef QDNN_KERNELS_STREAM_H
#define QDNN_KERNELS_STREAM_H

#include "kernels/emit.h"

typedef struct word_stream {
    unsigned bits;
    bool is_awq;
    ptx_val first;  /* address of word 0 */
    ptx_val stride; /* u64: bytes from one word to the next; empty: 4 */
} word_stream;

/* Codes are extracted four at a time: a quad is a u32 that holds four of them. */
enum { QUAD = 4 };
unsigned stream_position(unsigned bits, bool is_awq, unsigned element); /* the bit of a code in its quad */

/* A code (number as u64), in the low bits of a u32; bits above it are arbitrary. */
ptx_val stream_code(ptx_builder *b, const word_stream *s, ptx_val number);

/* The quads of `count` codes, 4 or 8, in a stream without gaps; number is a multiple of count. */
void stream_quads(ptx_builder *b, const word_stream *s, ptx_val number, unsigned count, ptx_val *quads);

/* The quads of `count` codes, 4 or 8, that begin at bit `shift` (u32) of words[0] and span quads_words words;
 * further words are not read. */
enum { QUADS_WORDS = 3 };
unsigned quads_words(unsigned bits, unsigned count);
void split_quads(ptx_builder *b, unsigned bits, const ptx_val words[QUADS_WORDS], ptx_val shift,
                 unsigned count, ptx_val *quads);

/* The smallest number of codes that fills whole units of `unit` bits, 8 or 32. */
unsigned codes_of_units(unsigned bits, unsigned unit);

#endif
