/* Which numbers the registers of a text may hold: how many significant bits they have, and between which powers of two those lie. */
#ifndef QDNN_MUTATE_NUMBERS_H
#define QDNN_MUTATE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

enum { F32_BITS = 24, F32_LEAST = -149, F32_MOST = 128, NUMBERS_OTHERS = 4 };

/* Infinities, NaN, zeros, and numbers of so many significant bits that are multiples of 2^unit and below 2^most; apart from them, a few
 * others, of which the bits are kept, without the sign. The others are below 2^most too, and multiples of 2^unit. */
typedef struct numbers {
    int bits, unit, most;
    uint32_t others[NUMBERS_OTHERS];
    int n_others;
} numbers;

/* Of an operand that is read as f32. */
numbers numbers_of(const char *ptx, const char *operand);
/* How many significant bits they have, the others too. */
int numbers_bits(const numbers *n);
/* The exact products and sums; false where f32 does not have them all. */
bool numbers_product(const numbers *a, const numbers *b, numbers *product);
bool numbers_sum(const numbers *a, const numbers *b, numbers *sum);

#endif
