/* Codes that lie along N in the product "columns": how they become f32 (columns_decode.c), for the pass over K
 * (columns_codes.c). */
#ifndef QDNN_KERNELS_GEMM_COLUMNS_CODES_H
#define QDNN_KERNELS_GEMM_COLUMNS_CODES_H

#include "kernels/gemm/columns.h"

enum {
    CODE_COLUMNS = COLUMNS_WIDTH_MAX, /* of a thread, at most */
    CODE_WORDS = 2,                   /* of a thread in a row of the matrix, at most */
    CODE_NUMBERS = 2                  /* of a column, at most */
};

/* What decoding needs of the groups of a thread's columns. */
typedef struct code_numbers {
    ptx_val at[CODE_NUMBERS][CODE_COLUMNS]; /* f32 */
} code_numbers;

/* How codes become f32. */
typedef struct code_way {
    unsigned numbers;    /* of each column, for each group */
    unsigned x_exponent; /* weights are too small by this power of two, and x is as much too large */
    bool is_guarded;     /* some numbers do not serve */
    bool has_table;
    /* Makes the numbers of column k; a predicate that is false where they do not serve, or nothing: they always do. */
    ptx_val (*prepare)(ptx_builder *b, const columns *s, unsigned k, const group_values *group,
                       ptx_val *numbers);
    /* A row of the matrix: f32, or of pairs f32x2 in the first half. */
    void (*decode)(ptx_builder *b, const columns *s, const ptx_val *words, const code_numbers *n,
                   ptx_val *out);
} code_way;

/* Null: the codes have no cheap decode. On a target it may be another one. */
const code_way *code_way_of(const coding *c);
const code_way *code_way_for(const ptx_builder *b, const coding *c);

unsigned code_bits(const coding *c);
unsigned code_width(const coding *c); /* columns of a thread */
unsigned code_words(const coding *c); /* words that a thread loads of a row */
/* Whether two threads share a word, and how many bits the second's codes are above the first's. */
bool code_is_half(const coding *c);
unsigned code_quad_distance(const coding *c);

/* Whether one group is all; else the largest power of two that divides groups: k from a multiple of it on have the same
 * numbers. */
bool codes_have_one_group(const kernel_spec *spec);
unsigned codes_span(const kernel_spec *spec);

/* Whether E4M3 scales are taken as they are, too small by 2^RAW_EXPONENT, which the table makes up for: products of E2M1 and
 * E4M3 are exact wherever the powers of two are. Targets that convert E4M3 have no use for it. */
enum { RAW_EXPONENT = 120 };
bool codes_have_raw_scales(const ptx_builder *b, const coding *c);

#endif
