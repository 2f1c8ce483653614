/* Sets of the values that a register may hold: bounds with and without a sign, and bits that are known. */
#ifndef QDNN_MUTATE_INTERVALS_H
#define QDNN_MUTATE_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

/* Bits above the register's width are 0 in `least`, `most`, `ones`, and 1 in `zeros`; `low` and `high` extend the sign. */
typedef struct range {
    uint64_t least, most;
    int64_t low, high;
    uint64_t zeros, ones; /* bits that are always 0, always 1 */
} range;

bool range_is_value(const range *r, uint64_t *value);
/* Whether a register of this width may hold the value. */
bool range_has(const range *r, int width, uint64_t value);
bool range_is_empty(const range *r);
bool range_is_same(const range *a, const range *b);

/* Numbers, the second pair with a sign. */
uint64_t range_least_of(uint64_t a, uint64_t b);
uint64_t range_most_of_two(uint64_t a, uint64_t b);
int64_t range_lower(int64_t a, int64_t b);
int64_t range_higher(int64_t a, int64_t b);
int64_t range_signed_of(uint64_t value, int width);

/* Ranges of registers of a width. */
extern const range range_nothing;
range range_anything(int width);
range range_one_value(uint64_t value, int width);
range range_between(uint64_t least, uint64_t most, int width);
range range_between_signed(int64_t low, int64_t high, int width);
range range_with_bits(uint64_t zeros, uint64_t ones, int width);
/* Bounds that were computed without overflow: those that the width does not have say nothing. */
range range_from_bounds(wide least, wide most, wide low, wide high, int width);
/* Where the bounds and the bits tell something about each other. */
range range_settled(range r, int width);
/* What both say, and what at least one of them says. */
range range_both(range a, range b, int width);
range range_either(range a, range b);
/* A bound that moves in a loop goes to its end, so that the loop is left soon. */
range range_widened(range before, range now, int width);

/* What instructions make of them. */
range range_added(range a, range b, int width);
range range_subtracted(range a, range b, int width);
range range_multiplied(range a, range b, int width);
range range_upper_product(range a, range b, int width);
range range_divided(range a, range b, int width);
range range_remaining(range a, range b, int width);
range range_shifted_left(range a, range by, int width);
range range_shifted_right(range a, range by, bool has_sign, int width);
/* `lop3` and what it comprises: bit `a * 4 + b * 2 + c` of the table. */
range range_looked_up(const range operands[3], unsigned table, int width);
/* bfe, bfi and prmt of 32 bits. */
range range_fields(const range *a, uint64_t position, uint64_t count, bool has_sign);
range range_inserted(const range *field, const range *into, uint64_t position, uint64_t count);
range range_permuted(const range *a, const range *b, uint64_t selector);

#endif
