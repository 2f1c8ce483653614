/* Which numbers the registers of a text may hold: how many significant bits they have, and between which bounds they lie.
 *
 * An abstract interpretation of the f32 numbers of the whole text; what several steps write to a register is joined. */
#ifndef QDNN_MUTATE_NUMBERS_H
#define QDNN_MUTATE_NUMBERS_H

#include "mutate/program.h"

enum { F32_BITS = 24, F32_LEAST = -149, NUMBERS_OTHERS = 4 };
enum { NUMBERS_NAN = 1, NUMBERS_INFINITY = 2, NUMBERS_MINUS_INFINITY = 4, NUMBERS_SPECIAL = 7 };

/* Numbers of so many significant bits that are multiples of 2^unit, and a few others, of which the bits are kept, without the sign. All
 * of them, finite, lie between two bounds and are multiples of 2^unit; besides, NaN and infinities. */
typedef struct numbers {
    int bits, unit;
    double low, high; /* low > high: none is finite */
    unsigned special;
    uint32_t others[NUMBERS_OTHERS];
    int n_others;
} numbers;

/* Of an operand that is read as f32. */
numbers numbers_of(const program *p, const char *operand);
/* How many significant bits they have, the others too. */
int numbers_bits(const numbers *n);
/* The largest magnitude. */
double numbers_most(const numbers *n);
/* Whether the step has nothing to round: all results of it are exact, or NaN, or infinite because an operand is. */
bool numbers_is_exact(const program *p, int step);

#endif
