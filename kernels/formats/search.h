/* How K-quants are quantized: a thread has a whole sub-block, tries many scales for it and keeps the best; then the lanes
 * of a super-block round their scales together, and each makes its codes anew with what was stored. The sums run in
 * the order of the elements, as docs/numerics.md has them, which is why no two threads share one. */
#ifndef QDNN_KERNELS_SEARCH_H
#define QDNN_KERNELS_SEARCH_H

#include "kernels/formats/blocks.h"

enum { SUB_BLOCK_MAX = 32 };

/* A sub-block and the thread that has it. */
typedef struct sub_block {
    const block_layout *layout;
    const block_lanes *lanes; /* a thread for each sub-block of the super-block */
    ptx_val place;            /* u32: its number among them */
    const ptx_val *x;         /* without NaN and infinities */
} sub_block;

struct block_search {
    unsigned elements; /* of a sub-block */
    float most;        /* the largest code. Without minima they stand for -(most + 1) / 2 and up */
    float units;       /* the largest scale and minimum as integers. Without minima: -units is the least */
    float first;       /* with minima: what the first candidate adds to `most` */
    float least;       /* without minima: a super-block whose scales are all smaller is all zeros */
    float shift;       /* without minima: what scales are stored higher by */
    unsigned candidates;
    bool squared; /* with minima: errors are squared, and weights have the root mean square in them */
    /* The codes, one in each byte of words; what the block keeps besides is stored. */
    void (*encode)(ptx_builder *b, const sub_block *sub, ptx_val *words);
    /* Stores the integers of the sub-block: its scale, and from bit 8 on its minimum. */
    void (*put)(ptx_builder *b, const sub_block *sub, ptx_val integers);
};
extern const block_search search_q2_k, search_q3_k, search_q4_k, search_q5_k, search_q6_k;

/* ---- What both kinds share (search.c) ---- */

/* The nearest integer, of two the even one, within the limits (integers themselves); a NaN gives the lower one. */
ptx_val search_nearest(ptx_builder *b, ptx_val v, float low, float high);
ptx_val search_finite_or_zero(ptx_builder *b, ptx_val x);
/* Integers as f32, 0 to 255 once `shift` is added, to the bytes of words. */
void search_words(ptx_builder *b, const ptx_val *codes, unsigned count, ptx_val shift, ptx_val *words);
/* The same of one, a u32. */
ptx_val search_integer(ptx_builder *b, ptx_val code, float shift);
/* Stores the low byte of x in the block. */
void search_put_byte(ptx_builder *b, const sub_block *sub, ptx_val byte, int offset, ptx_val x);

#endif
