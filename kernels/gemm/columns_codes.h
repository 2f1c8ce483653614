/* Codes that lie along N in the product "columns": their conversion to f32 (columns_decode.c), for the
 * pass over K (columns_codes.c). "Numbers" are the f32 values that decoding needs per column and group,
 * made from its scale and zero. */
#ifndef QDNN_KERNELS_GEMM_COLUMNS_CODES_H
#define QDNN_KERNELS_GEMM_COLUMNS_CODES_H

#include "kernels/gemm/columns.h"

enum {
    CODE_COLUMNS = COLUMNS_WIDTH_MAX, /* of a thread, at most */
    CODE_WORDS = 2,                   /* of a thread in a row of the matrix, at most */
    CODE_NUMBERS = 2                  /* of a column, at most */
};

/* What decoding needs to know of the groups of a thread's columns. */
typedef struct code_numbers {
    ptx_val at[CODE_NUMBERS][CODE_COLUMNS]; /* f32 */
} code_numbers;

/* How codes become f32. */
typedef struct code_way {
    unsigned numbers;            /* of each column, for each group */
    unsigned x_exponent;         /* weights are too small by this power of two, and x too large by the same */
    const placed_decode *placed; /* for integers decoded where they lie; else null */
    bool is_guarded;             /* prepare may reject a group */
    bool has_table;
    /* Makes the numbers of column k. Returns a predicate that is false where the decode cannot handle the
     * group; empty: it can. */
    ptx_val (*prepare)(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                       ptx_val *numbers);
    /* Decodes a row of the matrix: f32 (pairs: f32x2 in the first half). */
    void (*decode)(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                   ptx_val *out);
} code_way;

/* The decoder; null: there is no cheap one. code_way_for takes the target into account. */
const code_way *code_way_of(const coding *c);
const code_way *code_way_for(const ptx_builder *b, const coding *c);

unsigned code_bits(const coding *c);
unsigned code_width(const coding *c); /* columns of a thread */
unsigned code_words(const coding *c); /* words that a thread loads per row */
/* Whether two threads share a word, and by how many bits the second one's codes lie above the first one's. */
bool code_is_half(const coding *c);
unsigned code_quad_distance(const coding *c);

/* Whether there is a single group; otherwise codes_span is the largest power of two that divides the group
 * size: all k between two multiples of it have the same numbers. */
bool codes_have_one_group(const kernel_spec *spec);
unsigned codes_span(const kernel_spec *spec);

/* Whether E4M3 scales are used without correcting their exponent (byte_table.h). */
bool codes_have_raw_scales(const ptx_builder *b, const coding *c);

#endif
