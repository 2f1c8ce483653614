/* KV caches: how the keys, or the values, of past tokens lie in device memory. The plans that write a cache (rope.h) and
 * attention take the same description. docs/numerics.md ("KV caches") has the addresses to the byte.
 *
 * A cache has pages * pageSlots slots; slot s is place s mod pageSlots of page s / pageSlots, and holds one token: `heads`
 * heads of headSize elements. Key j of a sequence is
 *   paged        in the page that PAGE_TABLE (i32 [sequences, tablePages]) has at [sequence, j / pageSlots], at place
 *                j mod pageSlots
 *   contiguous   in page `sequence`, at place j: a page is the region of one sequence, of any size
 *
 * Keys and values are described apart: so they may have different head sizes and strides, or share pages (two pointers into
 * one buffer). Operands: KEYS and VALUES hold elements, codes or blocks, KEY_SCALE and VALUE_SCALE the scales. */
#ifndef QDNN_CACHE_H
#define QDNN_CACHE_H

#include <qdnn/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The order of the scales of a quantized cache. Both are packed; `groups` are those of a head. */
typedef enum {
    QDNN_KV_SCALES_BY_SLOT = 0, /* [slots, heads, groups] */
    QDNN_KV_SCALES_BY_HEAD =
        1 /* [heads, slots, groups]: those of a head are adjacent, as products read them */
} qdnnKvScales_t;

/* Set `size`, and 0 for what does not matter. */
typedef struct {
    size_t size;        /* sizeof(qdnnKvCache_t) */
    int64_t pages;      /* that the buffer has; contiguous: as many as sequences */
    int64_t pageSlots;  /* paged: a power of two, 1 to 256; contiguous: 1 or more */
    int64_t tablePages; /* paged: pages of each sequence in PAGE_TABLE; 0: contiguous */
    int64_t heads;      /* of keys and values, not of queries */
    int64_t headSize;   /* a multiple of 8, and of the elements of a block or group; at most 1,024 */

    /* Elements: F32, F16, BF16. 0: codes, as `quant` says. */
    qdnnDataType_t type;
    /* Layout BYTES, no zeros, and one of
     *   I8, I4, F8E4M3, F8E5M2 with QDNN_GRANULARITY_GROUP: one scale per group of a head; a group is the head (one scale
     *                          for each head and token), or 32 or 64 elements. Scales are written with the codes
     *   ... with QDNN_GRANULARITY_CHANNEL, axis 1: one scale per head, [heads]; with QDNN_GRANULARITY_TENSOR: one in all.
     *                          These are static: the caller makes them, and a plan that writes the cache reads them
     *   QDNN_QUANT_BLOCK_FORMAT Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 or IQ4_NL: blocks along a head, which contain their scales;
     *                          attention reads them, qdnnCreateQuantizeRowsPlan writes them (not IQ4_NL)
     * Scales are f32, f16 or bf16. The descriptor may be freed once a plan has been created. */
    qdnnQuantDescriptor_t quant;
    qdnnKvScales_t scales; /* of GROUP */

    /* In elements, multiples of headSize; 0: those of packed [pages, pageSlots, heads, headSize]. Heads before slots, or
     * pages that alternate keys and values, are strides too. No two heads may overlap. */
    int64_t pageStride, slotStride, headStride;
} qdnnKvCache_t;

#ifdef __cplusplus
}
#endif
#endif
