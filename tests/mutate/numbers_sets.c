/* Sets of numbers. */
#include "mutate/numbers_inside.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { HIGHEST_UNIT = 128 };

const numbers numbers_any = {
    .bits = F32_BITS, .unit = F32_LEAST, .low = -FLT_MAX, .high = FLT_MAX, .special = NUMBERS_SPECIAL};
const numbers numbers_none = {.bits = 1, .unit = HIGHEST_UNIT, .low = INFINITY, .high = -INFINITY};

int numbers_bits(const numbers *n)
{
    return n->n_others ? F32_BITS : n->bits;
}

double numbers_most(const numbers *n)
{
    return n->low > n->high ? 0 : fmax(fabs(n->low), fabs(n->high));
}

/* The least k with x <= 2^k. */
static int power_above(double x)
{
    int exponent;
    const double fraction = frexp(x, &exponent);
    return fraction == 0.5 ? exponent - 1 : exponent;
}

/* Where the fields tell something about each other. Numbers of n bits from 2^e on are multiples of 2^(e-n+1); multiples of 2^u up to
 * 2^e have at most e - u bits, or one. */
numbers numbers_settled(numbers n)
{
    const double most = numbers_most(&n), least = n.low > 0 ? n.low : n.high < 0 ? -n.high : 0;
    if (n.low > n.high || most == 0) {
        n.bits = 1;
        n.unit = HIGHEST_UNIT;
        n.n_others = 0;
        return n;
    }
    if (least > 0)
        n.unit = numbers_greater(n.unit, ilogb(least) - numbers_bits(&n) + 1);
    n.bits = numbers_lesser(n.bits, numbers_greater(power_above(most) - n.unit, 1));
    return n;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

numbers numbers_of_constant(uint32_t bits)
{
    enum { FEW = 11 };
    const float x = float_of(bits);
    numbers n = numbers_none;
    if (isnan(x) || isinf(x)) {
        n.special = isnan(x) ? NUMBERS_NAN : x > 0 ? NUMBERS_INFINITY : NUMBERS_MINUS_INFINITY;
        return n;
    }
    n.low = n.high = (double)x;
    if (x == 0)
        return n;
    const int exponent = (int)(bits >> 23 & 0xFF);
    const uint32_t significand = (bits & 0x7FFFFF) | (exponent ? 0x800000 : 0);
    const int zeros = bits_trailing_zeros(significand), length = bits_length(significand) - zeros;
    n.unit = numbers_greater(exponent, 1) - 150 + zeros;
    if (length > FEW && exponent)
        n.others[n.n_others++] = bits & 0x7FFFFFFF;
    else
        n.bits = length;
    return n;
}

static bool has_other(const numbers *n, uint32_t bits)
{
    for (int k = 0; k < n->n_others; k++)
        if (n->others[k] == bits)
            return true;
    return false;
}

numbers numbers_either(numbers a, const numbers *b)
{
    a.bits = numbers_greater(a.bits, b->bits);
    a.unit = numbers_lesser(a.unit, b->unit);
    a.low = fmin(a.low, b->low);
    a.high = fmax(a.high, b->high);
    a.special |= b->special;
    for (int k = 0; k < b->n_others; k++) {
        if (has_other(&a, b->others[k]))
            continue;
        if (a.n_others == NUMBERS_OTHERS) {
            a.bits = F32_BITS;
            a.n_others = 0;
            return a;
        }
        a.others[a.n_others++] = b->others[k];
    }
    return a;
}

numbers numbers_both(numbers a, const numbers *b)
{
    a.bits = numbers_lesser(a.bits, b->bits);
    a.unit = numbers_greater(a.unit, b->unit);
    a.low = fmax(a.low, b->low);
    a.high = fmin(a.high, b->high);
    a.special &= b->special;
    return numbers_settled(a);
}

bool numbers_is_same(const numbers *a, const numbers *b)
{
    return a->bits == b->bits && a->unit == b->unit && a->low == b->low && a->high == b->high &&
           a->special == b->special && a->n_others == b->n_others;
}

/* ---- From bits and from integers ---- */

/* The magnitudes are between two patterns of bits, of which the lowest are always 0. */
static numbers between_patterns(uint32_t least, uint32_t most, int zeros)
{
    enum { INFINITE = 0x7F800000 };
    numbers n = numbers_none;
    if (most >= INFINITE)
        n.special = NUMBERS_SPECIAL;
    if (least >= INFINITE)
        return n;
    n.low = (double)float_of(least);
    n.high = most >= INFINITE ? FLT_MAX : (double)float_of(most);
    n.bits = F32_BITS - zeros;
    n.unit = numbers_greater((int)(least >> 23), 1) - 150 + zeros;
    return n;
}

numbers numbers_with_either_sign(numbers n)
{
    n.low = -numbers_most(&n);
    n.high = -n.low;
    n.special |= n.special & (NUMBERS_INFINITY | NUMBERS_MINUS_INFINITY)
                     ? NUMBERS_INFINITY | NUMBERS_MINUS_INFINITY
                     : 0;
    return numbers_settled(n);
}

numbers numbers_negated(numbers n)
{
    const double low = n.low;
    n.low = -n.high;
    n.high = -low;
    n.special = (n.special & NUMBERS_NAN) | (n.special & NUMBERS_INFINITY ? NUMBERS_MINUS_INFINITY : 0) |
                (n.special & NUMBERS_MINUS_INFINITY ? NUMBERS_INFINITY : 0);
    return n;
}

/* The bits of a register as a number. */
numbers numbers_of_pattern(const range *r)
{
    const uint32_t magnitude = 0x7FFFFFFF, sign = 0x80000000;
    const uint32_t least = (uint32_t)r->ones & magnitude, most = ~(uint32_t)r->zeros & magnitude;
    const int zeros = numbers_lesser(bits_trailing_zeros(~r->zeros), F32_BITS - 1);
    if (r->zeros & sign)
        return numbers_settled(between_patterns((uint32_t)r->least, (uint32_t)r->most, zeros));
    if (r->ones & sign)
        return numbers_negated(numbers_settled(between_patterns(least, most, zeros)));
    return numbers_with_either_sign(between_patterns(least, most, zeros));
}

/* Bounds of numbers that are rounded to f32 in some way; what is too large becomes infinite, or stays the largest. */
numbers numbers_rounded(numbers n)
{
    if (n.low > n.high)
        return n;
    if (n.high > FLT_MAX || n.low < -FLT_MAX)
        n.special |= NUMBERS_INFINITY | NUMBERS_MINUS_INFINITY;
    n.high = fmax(fmin(n.high, FLT_MAX), -FLT_MAX);
    n.low = fmax(fmin(n.low, FLT_MAX), -FLT_MAX);
    const float low = (float)n.low, high = (float)n.high;
    n.low = (double)low > n.low ? (double)nextafterf(low, -INFINITY) : (double)low;
    n.high = (double)high < n.high ? (double)nextafterf(high, INFINITY) : (double)high;
    n.unit = numbers_greater(n.unit, F32_LEAST);
    n.bits = numbers_lesser(n.bits, F32_BITS);
    return numbers_settled(n);
}

/* Whether f32 has all multiples of 2^unit up to the bounds: there are at most 2^24 of them. */
bool numbers_has_all(const numbers *n)
{
    return numbers_most(n) == 0 || (n->unit >= F32_LEAST && numbers_most(n) <= FLT_MAX &&
                                    power_above(numbers_most(n)) - n->unit <= F32_BITS);
}

numbers numbers_of_integers(const range *r, bool has_sign, bool *is_exact)
{
    const int zeros = numbers_lesser(bits_trailing_zeros(~r->zeros), 63);
    const numbers n = {.bits = 64,
                       .unit = zeros,
                       .low = has_sign ? (double)r->low : (double)r->least,
                       .high = has_sign ? (double)r->high : (double)r->most};
    *is_exact = numbers_has_all(&n);
    return numbers_rounded(n);
}

numbers numbers_between(int bits, int unit, double most)
{
    return (numbers){.bits = bits, .unit = unit, .low = -most, .high = most, .special = NUMBERS_SPECIAL};
}
