#include "mutate/intervals.h"

#include "mutate/program.h"

#include <string.h>

/* ---- Ranges ---- */

int64_t range_signed_of(uint64_t value, int width)
{
    const uint64_t sign = UINT64_C(1) << (width - 1);
    return (int64_t)(((value & bits_mask(width)) ^ sign) - sign);
}

range range_anything(int width)
{
    return (range){.most = bits_mask(width),
                   .low = range_signed_of(UINT64_C(1) << (width - 1), width),
                   .high = (int64_t)(bits_mask(width) >> 1),
                   .zeros = ~bits_mask(width)};
}

bool range_is_empty(const range *r)
{
    return r->least > r->most || r->low > r->high || (r->zeros & r->ones) != 0;
}

static int highest_bit(uint64_t x)
{
    int bit = -1;
    for (; x; x >>= 1)
        bit++;
    return bit;
}

uint64_t range_least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t range_most_of_two(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int64_t range_lower(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t range_higher(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Each of the three tells something about the two others. */
range range_settled(range r, int width)
{
    const uint64_t half = bits_mask(width) >> 1;
    for (int again = 0; again < 2 && !range_is_empty(&r); again++) {
        if (r.low >= 0) {
            r.least = range_most_of_two(r.least, (uint64_t)r.low);
            r.most = range_least_of(r.most, (uint64_t)r.high);
        } else if (r.high < 0) {
            r.least = range_most_of_two(r.least, (uint64_t)r.low & bits_mask(width));
            r.most = range_least_of(r.most, (uint64_t)r.high & bits_mask(width));
        }
        r.least = range_most_of_two(r.least, r.ones);
        r.most = range_least_of(r.most, ~r.zeros);
        if (r.least > r.most)
            break;
        const uint64_t differing = bits_mask(highest_bit(r.least ^ r.most) + 1); /* below the common bits */
        const uint64_t common = highest_bit(r.least ^ r.most) < 0 ? UINT64_MAX : ~differing;
        r.ones |= r.least & common;
        r.zeros |= ~r.least & common;
        if (r.most <= half || r.least > half) {
            r.low = range_higher(r.low, range_signed_of(r.least, width));
            r.high = range_lower(r.high, range_signed_of(r.most, width));
        }
    }
    return r;
}

range range_one_value(uint64_t value, int width)
{
    value &= bits_mask(width);
    return (range){value, value, range_signed_of(value, width), range_signed_of(value, width), ~value, value};
}

range range_between(uint64_t least, uint64_t most, int width)
{
    range r = range_anything(width);
    r.least = least;
    r.most = most;
    return range_settled(r, width);
}

range range_between_signed(int64_t low, int64_t high, int width)
{
    range r = range_anything(width);
    r.low = low;
    r.high = high;
    return range_settled(r, width);
}

range range_with_bits(uint64_t zeros, uint64_t ones, int width)
{
    range r = range_anything(width);
    r.zeros |= zeros;
    r.ones |= ones & bits_mask(width);
    return range_settled(r, width);
}

/* What both say. */
range range_both(range a, range b, int width)
{
    a.least = range_most_of_two(a.least, b.least);
    a.most = range_least_of(a.most, b.most);
    a.low = range_higher(a.low, b.low);
    a.high = range_lower(a.high, b.high);
    a.zeros |= b.zeros;
    a.ones |= b.ones;
    return range_settled(a, width);
}

range range_either(range a, range b)
{
    if (range_is_empty(&a))
        return b;
    if (range_is_empty(&b))
        return a;
    return (range){range_least_of(a.least, b.least),
                   range_most_of_two(a.most, b.most),
                   range_lower(a.low, b.low),
                   range_higher(a.high, b.high),
                   a.zeros & b.zeros,
                   a.ones & b.ones};
}

bool range_is_same(const range *a, const range *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* A bound that moves in a loop goes to its end, so that the loop is left soon. */
range range_widened(range before, range now, int width)
{
    const range all = range_anything(width);
    if (now.least < before.least)
        now.least = all.least;
    if (now.most > before.most)
        now.most = all.most;
    if (now.low < before.low)
        now.low = all.low;
    if (now.high > before.high)
        now.high = all.high;
    return now;
}

const range range_nothing = {.least = 1, .most = 0, .low = 1, .high = 0};

bool range_is_value(const range *r, uint64_t *value)
{
    *value = r->least;
    return r->least == r->most;
}

bool range_has(const range *r, int width, uint64_t value)
{
    return value >= r->least && value <= r->most && range_signed_of(value, width) >= r->low &&
           range_signed_of(value, width) <= r->high && (value & r->zeros) == 0 && (~value & r->ones) == 0;
}

/* ---- Arithmetic ---- */

/* Bounds that were computed without overflow. */
range range_from_bounds(wide least, wide most, wide low, wide high, int width)
{
    range r = range_anything(width);
    if (least >= 0 && most <= (wide)bits_mask(width)) {
        r.least = (uint64_t)least;
        r.most = (uint64_t)most;
    }
    if (low >= (wide)r.low && high <= (wide)r.high) {
        r.low = (int64_t)low;
        r.high = (int64_t)high;
    }
    return range_settled(r, width);
}

/* The low bits of a sum are known as far as those of both operands are. */
static range with_low_bits_of_sum(range sum, range a, range b, bool subtracts, int width)
{
    const int known = bits_trailing_zeros(~((a.zeros | a.ones) & (b.zeros | b.ones)));
    if (known == 0)
        return sum;
    const uint64_t low = bits_mask(known < width ? known : width);
    const uint64_t value = (subtracts ? a.ones - b.ones : a.ones + b.ones) & low;
    return range_both(sum, range_with_bits(~value & low, value, width), width);
}

range range_added(range a, range b, int width)
{
    range sum = range_from_bounds((wide)a.least + b.least, (wide)a.most + b.most, (wide)a.low + b.low,
                                  (wide)a.high + b.high, width);
    if (((wide)a.least + b.least) > (wide)bits_mask(width)) /* always one overflow */
        sum = range_both(sum,
                         range_between((a.least + b.least) & bits_mask(width),
                                       (a.most + b.most) & bits_mask(width), width),
                         width);
    if ((~a.zeros & ~b.zeros) == 0) /* no bit is in both */
        sum = range_both(sum, range_with_bits(a.zeros & b.zeros, a.ones | b.ones, width), width);
    return with_low_bits_of_sum(sum, a, b, false, width);
}

range range_subtracted(range a, range b, int width)
{
    const range difference = range_from_bounds((wide)a.least - b.most, (wide)a.most - b.least,
                                               (wide)a.low - b.high, (wide)a.high - b.low, width);
    return with_low_bits_of_sum(difference, a, b, true, width);
}

range range_multiplied(range a, range b, int width)
{
    const wide corners[4] = {(wide)a.low * b.low, (wide)a.low * b.high, (wide)a.high * b.low,
                             (wide)a.high * b.high};
    wide low = corners[0], high = corners[0];
    for (int k = 1; k < 4; k++) {
        low = corners[k] < low ? corners[k] : low;
        high = corners[k] > high ? corners[k] : high;
    }
    const unsigned_wide most = (unsigned_wide)a.most * b.most;
    range product = range_from_bounds((wide)((unsigned_wide)a.least * b.least), most >> 126 ? -1 : (wide)most,
                                      low, high, width);
    if (most >> 126 || most > bits_mask(width))
        product = range_from_bounds(-1, 0, low, high, width);
    int zeros = bits_trailing_zeros(~a.zeros) + bits_trailing_zeros(~b.zeros);
    zeros = zeros < width ? zeros : width;
    return range_both(product, range_with_bits(bits_mask(zeros) & bits_mask(width), 0, width), width);
}

range range_upper_product(range a, range b, int width)
{
    return range_between((uint64_t)(((unsigned_wide)a.least * b.least) >> width),
                         (uint64_t)(((unsigned_wide)a.most * b.most) >> width), width);
}

range range_divided(range a, range b, int width)
{
    return b.least == 0 ? range_anything(width) : range_between(a.least / b.most, a.most / b.least, width);
}

range range_remaining(range a, range b, int width)
{
    if (b.least == 0)
        return range_anything(width);
    return a.most < b.least ? a : range_between(0, range_least_of(a.most, b.most - 1), width);
}

/* ---- Bits ---- */

range range_shifted_left(range a, range by, int width)
{
    uint64_t k;
    if (!range_is_value(&by, &k) || k >= (unsigned)width)
        return by.least >= (unsigned)width ? range_one_value(0, width) : range_anything(width);
    const unsigned_wide most = (unsigned_wide)a.most << k;
    range r = range_with_bits(a.zeros << k | bits_mask((int)k) * (k > 0), a.ones << k, width);
    if (most <= bits_mask(width))
        r = range_both(r, range_between(a.least << k, (uint64_t)most, width), width);
    return r;
}

range range_shifted_right(range a, range by, bool has_sign, int width)
{
    const int64_t most = by.most < (unsigned)width ? (int64_t)by.most : width - 1;
    const int64_t least = by.least < (unsigned)width ? (int64_t)by.least : width - 1;
    if (has_sign)
        return range_between_signed(a.low >> (a.low < 0 ? least : most),
                                    a.high >> (a.high < 0 ? most : least), width);
    range r = range_between(by.most >= (unsigned)width ? 0 : a.least >> most,
                            by.least >= (unsigned)width ? 0 : a.most >> least, width);
    if (least == most && by.most < (unsigned)width)
        r = range_both(
            r, range_with_bits(a.zeros >> least | ~(bits_mask(width) >> least), a.ones >> least, width),
            width);
    return r;
}

/* `lop3` and what it comprises: bit `a * 4 + b * 2 + c` of the table. */
range range_looked_up(const range operands[3], unsigned table, int width)
{
    uint64_t zeros = 0, ones = 0;
    for (int bit = 0; bit < width; bit++) {
        bool may_be[2] = {false, false};
        for (unsigned i = 0; i < 8; i++) {
            bool is_possible = true;
            for (int k = 0; k < 3; k++)
                is_possible =
                    is_possible && !((i >> (2 - k) & 1 ? operands[k].zeros : operands[k].ones) >> bit & 1);
            if (is_possible)
                may_be[table >> i & 1] = true;
        }
        zeros |= (uint64_t)!may_be[1] << bit;
        ones |= (uint64_t)!may_be[0] << bit;
    }
    return range_with_bits(zeros, ones, width);
}

range range_fields(const range *a, uint64_t position, uint64_t count, bool has_sign)
{
    if (count == 0)
        return range_one_value(0, 32);
    if (position > 31)
        position = 31;
    if (count > 32 - position)
        count = 32 - position;
    range r = range_shifted_left(*a, range_one_value(32 - position - count, 32), 32);
    return range_shifted_right(r, range_one_value(32 - count, 32), has_sign, 32);
}

range range_inserted(const range *field, const range *into, uint64_t position, uint64_t count)
{
    if (position > 31 || count == 0)
        return *into;
    if (count > 32 - position)
        count = 32 - position;
    const uint64_t mask = bits_mask((int)count) << position;
    return range_with_bits((field->zeros << position & mask) | (into->zeros & ~mask),
                           (field->ones << position & mask) | (into->ones & ~mask), 32);
}

range range_permuted(const range *a, const range *b, uint64_t selector)
{
    uint64_t zeros = 0, ones = 0;
    for (int k = 0; k < 4; k++) {
        const unsigned from = selector >> 4 * k & 15;
        const range *r = from & 4 ? b : a;
        const int shift = 8 * (from & 3);
        uint64_t z = r->zeros >> shift & 0xFF, o = r->ones >> shift & 0xFF;
        if (from & 8)
            z = z >> 7 ? 0xFF : 0, o = o >> 7 ? 0xFF : 0;
        zeros |= z << 8 * k;
        ones |= o << 8 * k;
    }
    return range_with_bits(zeros, ones, 32);
}
