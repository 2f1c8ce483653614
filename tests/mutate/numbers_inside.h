/* What the files numbers*.c share. */
#ifndef QDNN_MUTATE_NUMBERS_INSIDE_H
#define QDNN_MUTATE_NUMBERS_INSIDE_H

#include "mutate/intervals.h"
#include "mutate/numbers.h"

/* ---- Sets (numbers_sets.c) ---- */

extern const numbers numbers_any, numbers_none;
numbers numbers_of_constant(uint32_t bits);
/* Of so many bits, multiples of 2^unit, with either sign up to a bound, and NaN and infinities: the numbers of a narrow type. */
numbers numbers_between(int bits, int unit, double most);
/* The bits of a register of 32 as a number. */
numbers numbers_of_pattern(const range *r);
/* Integers as f32; whether that has all of them goes to *is_exact. */
numbers numbers_of_integers(const range *r, bool has_sign, bool *is_exact);
/* Where the fields tell something about each other. */
numbers numbers_settled(numbers n);
numbers numbers_either(numbers a, const numbers *b);
numbers numbers_both(numbers a, const numbers *b);
bool numbers_is_same(const numbers *a, const numbers *b);
numbers numbers_with_either_sign(numbers n);
numbers numbers_negated(numbers n);
/* Those of f32 that they are rounded to, in whatever way; what is too large becomes infinite, or the largest. */
numbers numbers_rounded(numbers n);
/* Whether f32 has all multiples of 2^unit up to the bounds. */
bool numbers_has_all(const numbers *n);

static inline int numbers_lesser(int a, int b)
{
    return a < b ? a : b;
}

static inline int numbers_greater(int a, int b)
{
    return a > b ? a : b;
}

/* ---- Operations (numbers_operations.c) ---- */

typedef struct operands {
    numbers a, b, c;
} operands;
/* The results; whether they are exact goes to *is_exact. */
typedef numbers operation(const operands *o, bool *is_exact);
/* Null: none that is known. */
operation *numbers_operation_of(const step *s);
operation numbers_from_f16;

#endif
