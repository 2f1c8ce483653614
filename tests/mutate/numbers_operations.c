/* What instructions make of numbers. */
#include "mutate/numbers_inside.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { F16_BITS = 11, F16_LEAST = -24, BF16_BITS = 8, BF16_LEAST = -133, HIGHEST_UNIT = 128 };

static bool is_zero(const numbers *n)
{
    return n->low == 0 && n->high == 0;
}

static double one_below(double x)
{
    return nextafter(x, -INFINITY);
}

static double one_above(double x)
{
    return nextafter(x, INFINITY);
}

/* An infinity that is summed or multiplied makes infinities and NaN; finite numbers are not made of it. */
static unsigned special_of(const numbers *a, const numbers *b)
{
    return a->special | b->special ? NUMBERS_SPECIAL : 0;
}

/* Without rounding. Products of two f32 are exact in f64. */
static numbers product_of(const numbers *a, const numbers *b)
{
    numbers n = numbers_none;
    n.special = special_of(a, b);
    if (a->low > a->high || b->low > b->high)
        return n;
    const double corners[] = {a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high};
    for (int k = 0; k < 4; k++) {
        n.low = fmin(n.low, corners[k]);
        n.high = fmax(n.high, corners[k]);
    }
    const int x = numbers_bits(a), y = numbers_bits(b);
    n.bits = x == 1 ? y : y == 1 ? x : x + y;
    n.unit = a->unit + b->unit;
    return n;
}

/* Without rounding, apart from that of the bounds. */
static numbers sum_of(const numbers *a, const numbers *b)
{
    numbers n = numbers_none;
    n.special = special_of(a, b);
    if (a->low > a->high || b->low > b->high)
        return n;
    n.low = a->low + b->low;
    n.high = a->high + b->high;
    if (n.low - a->low != b->low || n.low - b->low != a->low)
        n.low = one_below(n.low);
    if (n.high - a->high != b->high || n.high - b->high != a->high)
        n.high = one_above(n.high);
    n.unit = numbers_lesser(a->unit, b->unit);
    n.bits = is_zero(a) ? numbers_bits(b) : is_zero(b) ? numbers_bits(a) : 2 * F32_BITS;
    return n;
}

static numbers multiplied(const operands *o, bool *is_exact)
{
    numbers n = product_of(&o->a, &o->b);
    *is_exact =
        numbers_has_all(&n) || (n.bits <= F32_BITS && n.unit >= F32_LEAST && numbers_most(&n) <= FLT_MAX);
    return numbers_rounded(n);
}

/* A difference of two equal numbers is +0, to nearest and toward zero, and so is +0 + -0. */
static numbers added(const operands *o, bool *is_exact)
{
    const numbers n = sum_of(&o->a, &o->b);
    *is_exact = numbers_has_all(&n) || is_zero(&o->a) || is_zero(&o->b);
    return numbers_rounded(n);
}

static numbers subtracted(const operands *o, bool *is_exact)
{
    const operands opposite = {.a = o->a, .b = numbers_negated(o->b)};
    return added(&opposite, is_exact);
}

static numbers multiplied_and_added(const operands *o, bool *is_exact)
{
    const numbers product = product_of(&o->a, &o->b), n = sum_of(&product, &o->c);
    *is_exact = numbers_has_all(&n);
    return numbers_rounded(n);
}

/* Quotients by powers of two are exact where nothing is lost below. x / infinity is 0. */
static numbers divided(const operands *o, bool *is_exact)
{
    const numbers *a = &o->a, *b = &o->b;
    const double least = fmax(ldexp(1, b->unit), b->low > 0 ? b->low : b->high < 0 ? -b->high : 0);
    numbers n = {.bits = 2 * F32_BITS, .unit = F32_LEAST, .special = special_of(a, b)};
    if (b->low <= 0 && b->high >= 0)
        n.special = NUMBERS_SPECIAL;
    const double most = one_above(numbers_most(a) / least);
    n.low = a->low >= 0 && b->low >= 0 ? 0 : -most;
    n.high = most;
    *is_exact = false;
    if (numbers_bits(b) == 1 && b->low <= b->high && numbers_most(b) > 0) {
        n.bits = numbers_bits(a);
        n.unit = a->unit - ilogb(numbers_most(b));
        *is_exact = n.unit >= F32_LEAST && numbers_most(a) / least <= FLT_MAX;
        n.unit = numbers_lesser(n.unit, HIGHEST_UNIT);
    }
    return numbers_rounded(n);
}

static numbers reciprocal_of(const operands *o, bool *is_exact)
{
    const operands one_by = {.a = numbers_of_constant(0x3F800000), .b = o->a};
    return divided(&one_by, is_exact);
}

/* The lesser one; the other of NaN and of an infinity. */
static numbers least_of(const operands *o, bool *is_exact)
{
    const numbers *a = &o->a, *b = &o->b;
    numbers n = numbers_either(*a, b);
    n.high = fmin(a->high, b->high);
    if (a->special & (NUMBERS_NAN | NUMBERS_INFINITY))
        n.high = fmax(n.high, b->high);
    if (b->special & (NUMBERS_NAN | NUMBERS_INFINITY))
        n.high = fmax(n.high, a->high);
    n.special =
        ((a->special | b->special) & NUMBERS_MINUS_INFINITY) | (a->special & b->special & NUMBERS_NAN);
    if ((a->special & (NUMBERS_NAN | NUMBERS_INFINITY)) && (b->special & (NUMBERS_NAN | NUMBERS_INFINITY)))
        n.special |= (a->special | b->special) & NUMBERS_INFINITY;
    *is_exact = true;
    return numbers_settled(n);
}

static numbers most_of_both(const operands *o, bool *is_exact)
{
    const operands opposite = {.a = numbers_negated(o->a), .b = numbers_negated(o->b)};
    return numbers_negated(least_of(&opposite, is_exact));
}

static numbers either_of(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return numbers_either(o->a, &o->b);
}

static numbers first_of(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return o->a;
}

static numbers opposite_of(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return numbers_negated(o->a);
}

static numbers magnitude_of(const operands *o, bool *is_exact)
{
    numbers n = o->a;
    *is_exact = true;
    if (n.low > n.high)
        return numbers_with_either_sign(n);
    n.low = o->a.low > 0 ? o->a.low : o->a.high < 0 ? -o->a.high : 0;
    n.high = numbers_most(&o->a);
    n.special = (n.special & NUMBERS_NAN) |
                (n.special & (NUMBERS_INFINITY | NUMBERS_MINUS_INFINITY) ? NUMBERS_INFINITY : 0);
    return numbers_settled(n);
}

/* The sign of the first, the magnitude of the second. */
static numbers signed_magnitude(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return numbers_with_either_sign(o->b);
}

/* To integral numbers. What is rounded up has one bit more, and ends in a 0. */
static numbers made_integral(const operands *o, bool *is_exact)
{
    numbers n = o->a;
    *is_exact = n.unit >= 0;
    n.low = floor(n.low);
    n.high = ceil(n.high);
    n.unit = numbers_greater(n.unit, 0);
    return n.n_others
               ? numbers_settled((numbers){
                     .bits = F32_BITS, .unit = n.unit, .low = n.low, .high = n.high, .special = n.special})
               : numbers_settled(n);
}

/* To an integer, which is no number of f32. Beyond its ends, every rounding gives the end. */
static numbers to_integer(const operands *o, bool *is_exact)
{
    *is_exact = o->a.unit >= 0;
    return numbers_any;
}

static bool fits(const numbers *n, int bits, int unit, double most)
{
    return numbers_bits(n) <= bits && n->unit >= unit && numbers_most(n) <= most;
}

static const double F16_MOST = 65504, BF16_MOST = 0x1.FEp127;

static numbers to_f16(const operands *o, bool *is_exact)
{
    *is_exact = fits(&o->a, F16_BITS, F16_LEAST, F16_MOST);
    return numbers_between(F16_BITS, F16_LEAST, F16_MOST);
}

static numbers to_bf16(const operands *o, bool *is_exact)
{
    *is_exact = fits(&o->a, BF16_BITS, BF16_LEAST, BF16_MOST);
    return numbers_between(BF16_BITS, BF16_LEAST, BF16_MOST);
}

static numbers to_two_f16(const operands *o, bool *is_exact)
{
    *is_exact = fits(&o->a, F16_BITS, F16_LEAST, F16_MOST) && fits(&o->b, F16_BITS, F16_LEAST, F16_MOST);
    return numbers_any;
}

static numbers to_two_bf16(const operands *o, bool *is_exact)
{
    *is_exact =
        fits(&o->a, BF16_BITS, BF16_LEAST, BF16_MOST) && fits(&o->b, BF16_BITS, BF16_LEAST, BF16_MOST);
    return numbers_any;
}

numbers numbers_from_f16(const operands *o, bool *is_exact)
{
    (void)o;
    *is_exact = true;
    return numbers_between(F16_BITS, F16_LEAST, F16_MOST);
}

static numbers from_bf16(const operands *o, bool *is_exact)
{
    (void)o;
    *is_exact = true;
    return numbers_between(BF16_BITS, BF16_LEAST, BF16_MOST);
}

static numbers root_of(const operands *o, bool *is_exact)
{
    (void)o;
    *is_exact = false;
    numbers n = numbers_any;
    n.low = 0;
    return n;
}

static const struct {
    const char *opcode;
    operation *is;
} operations[] = {
    {"mov.b32", first_of},
    {"shfl.", first_of},
    {"selp.b32", either_of},
    {"selp.f32", either_of},
    {"neg.f32", opposite_of},
    {"abs.f32", magnitude_of},
    {"copysign.f32", signed_magnitude},
    {"min.f32", least_of},
    {"max.f32", most_of_both},
    {"mul.rn.f32", multiplied},
    {"mul.rz.f32", multiplied},
    {"add.rn.f32", added},
    {"add.rz.f32", added},
    {"sub.rn.f32", subtracted},
    {"sub.rz.f32", subtracted},
    {"fma.rn.f32", multiplied_and_added},
    {"fma.rz.f32", multiplied_and_added},
    {"div.rn.f32", divided},
    {"div.rz.f32", divided},
    {"rcp.rn.f32", reciprocal_of},
    {"rcp.rz.f32", reciprocal_of},
    {"sqrt.rn.f32", root_of},
    {"cvt.rni.f32.f32", made_integral},
    {"cvt.rzi.f32.f32", made_integral},
    {"cvt.rmi.f32.f32", made_integral},
    {"cvt.rpi.f32.f32", made_integral},
    {"cvt.rni.s32.f32", to_integer},
    {"cvt.rzi.s32.f32", to_integer},
    {"cvt.rmi.s32.f32", to_integer},
    {"cvt.rpi.s32.f32", to_integer},
    {"cvt.rni.u32.f32", to_integer},
    {"cvt.rzi.u32.f32", to_integer},
    {"cvt.f32.f16", numbers_from_f16},
    {"cvt.f32.bf16", from_bf16},
    {"cvt.rn.f16.f32", to_f16},
    {"cvt.rn.bf16.f32", to_bf16},
    {"cvt.rn.f16x2.f32", to_two_f16},
    {"cvt.rn.bf16x2.f32", to_two_bf16},
};

operation *numbers_operation_of(const step *s)
{
    for (size_t k = 0; k < sizeof operations / sizeof operations[0]; k++)
        if (step_is(s, operations[k].opcode) ||
            (strcmp(operations[k].opcode, "shfl.") == 0 && step_starts(s, "shfl.") && s->n_writes == 1))
            return operations[k].is;
    return NULL;
}
