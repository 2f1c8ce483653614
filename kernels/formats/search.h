/* How K-quants are quantized. Each thread has a whole sub-block, tries many scales for it and keeps the best;
 * then the lanes of a super-block round their scales together, and each recomputes its codes with the scale
 * that was stored. Sums run in the order of the elements, as docs/numerics.md requires, which is why no two
 * threads share a sub-block. */
#ifndef QDNN_KERNELS_SEARCH_H
#define QDNN_KERNELS_SEARCH_H

#include "kernels/formats/blocks.h"

enum { SUB_BLOCK_MAX = 32 };

/* A sub-block and the thread that works on it. */
typedef struct sub_block {
    const block_layout *layout;
    const block_lanes *lanes; /* one thread per sub-block of the super-block */
    ptx_val place;            /* u32: number of the sub-block among them */
    const ptx_val *x;         /* free of NaN and infinities */
} sub_block;

struct block_search {
    unsigned elements; /* per sub-block */
    /* the largest code; without minima, codes stand for the integers from -(most + 1) / 2 up */
    float most;
    /* the largest scale and minimum as integers; without minima, the least is -units */
    float units;
    float first; /* with minima: the first candidate adds this to `most` */
    float least; /* without minima: if all scales of a super-block are smaller, it is all zeros */
    float shift; /* without minima: added to the scales when they are stored */
    unsigned candidates;
    /* with minima: errors are squared, and the weights include the root mean square */
    bool squared;
    /* Returns the codes, one per byte of words; stores the other fields of the block. */
    void (*encode)(ptx_builder *b, const sub_block *sub, ptx_val *words);
    /* Stores the integers of the sub-block: its scale, and in bits 8 and up its minimum. */
    void (*put)(ptx_builder *b, const sub_block *sub, ptx_val integers);
};
extern const block_search search_q2_k, search_q3_k, search_q4_k, search_q5_k, search_q6_k;

/* ---- Shared by both kinds (search.c) ---- */

/* The nearest integer (ties to even) within the limits, which are integers; NaN gives the lower limit. */
ptx_val search_nearest(ptx_builder *b, ptx_val v, float low, float high);
ptx_val search_finite_or_zero(ptx_builder *b, ptx_val x);
/* Packs integers, given as f32, into the bytes of words; with `shift` added they are in 0 to 255. */
void search_words(ptx_builder *b, const ptx_val *codes, unsigned count, ptx_val shift, ptx_val *words);
/* The same for one integer; the result is a u32. */
ptx_val search_integer(ptx_builder *b, ptx_val code, float shift);
/* Stores the low byte of x in the block. */
void search_put_byte(ptx_builder *b, const sub_block *sub, ptx_val byte, int offset, ptx_val x);

#endif
