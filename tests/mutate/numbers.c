#include "mutate/numbers.h"

#include "mutate/ranges.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F16_BITS = 11, F16_LEAST = -24, BF16_BITS = 8, BF16_LEAST = -133, HIGHEST_UNIT = 128 };

/* ---- Sets ---- */

static const numbers any_number = {
    .bits = F32_BITS, .unit = F32_LEAST, .low = -FLT_MAX, .high = FLT_MAX, .special = NUMBERS_SPECIAL};
static const numbers no_number = {.bits = 1, .unit = HIGHEST_UNIT, .low = INFINITY, .high = -INFINITY};

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

static int greater(int a, int b)
{
    return a > b ? a : b;
}

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
static numbers settled(numbers n)
{
    const double most = numbers_most(&n), least = n.low > 0 ? n.low : n.high < 0 ? -n.high : 0;
    if (n.low > n.high || most == 0) {
        n.bits = 1;
        n.unit = HIGHEST_UNIT;
        n.n_others = 0;
        return n;
    }
    if (least > 0)
        n.unit = greater(n.unit, ilogb(least) - numbers_bits(&n) + 1);
    n.bits = lesser(n.bits, greater(power_above(most) - n.unit, 1));
    return n;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static numbers of_constant(uint32_t bits)
{
    enum { FEW = 11 };
    const float x = float_of(bits);
    numbers n = no_number;
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
    n.unit = greater(exponent, 1) - 150 + zeros;
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

static numbers either(numbers a, const numbers *b)
{
    a.bits = greater(a.bits, b->bits);
    a.unit = lesser(a.unit, b->unit);
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

static numbers both(numbers a, const numbers *b)
{
    a.bits = lesser(a.bits, b->bits);
    a.unit = greater(a.unit, b->unit);
    a.low = fmax(a.low, b->low);
    a.high = fmin(a.high, b->high);
    a.special &= b->special;
    return settled(a);
}

static bool is_same(const numbers *a, const numbers *b)
{
    return a->bits == b->bits && a->unit == b->unit && a->low == b->low && a->high == b->high &&
           a->special == b->special && a->n_others == b->n_others;
}

/* ---- From bits and from integers ---- */

/* The magnitudes are between two patterns of bits, of which the lowest are always 0. */
static numbers between_patterns(uint32_t least, uint32_t most, int zeros)
{
    enum { INFINITE = 0x7F800000 };
    numbers n = no_number;
    if (most >= INFINITE)
        n.special = NUMBERS_SPECIAL;
    if (least >= INFINITE)
        return n;
    n.low = (double)float_of(least);
    n.high = most >= INFINITE ? FLT_MAX : (double)float_of(most);
    n.bits = F32_BITS - zeros;
    n.unit = greater((int)(least >> 23), 1) - 150 + zeros;
    return n;
}

static numbers with_either_sign(numbers n)
{
    n.low = -numbers_most(&n);
    n.high = -n.low;
    n.special |= n.special & (NUMBERS_INFINITY | NUMBERS_MINUS_INFINITY)
                     ? NUMBERS_INFINITY | NUMBERS_MINUS_INFINITY
                     : 0;
    return settled(n);
}

static numbers negated(numbers n)
{
    const double low = n.low;
    n.low = -n.high;
    n.high = -low;
    n.special = (n.special & NUMBERS_NAN) | (n.special & NUMBERS_INFINITY ? NUMBERS_MINUS_INFINITY : 0) |
                (n.special & NUMBERS_MINUS_INFINITY ? NUMBERS_INFINITY : 0);
    return n;
}

/* The bits of a register as a number. */
static numbers of_bits(const range *r)
{
    const uint32_t magnitude = 0x7FFFFFFF, sign = 0x80000000;
    const uint32_t least = (uint32_t)r->ones & magnitude, most = ~(uint32_t)r->zeros & magnitude;
    const int zeros = lesser(bits_trailing_zeros(~r->zeros), F32_BITS - 1);
    if (r->zeros & sign)
        return settled(between_patterns((uint32_t)r->least, (uint32_t)r->most, zeros));
    if (r->ones & sign)
        return negated(settled(between_patterns(least, most, zeros)));
    return with_either_sign(between_patterns(least, most, zeros));
}

/* Bounds of numbers that are rounded to f32 in some way; what is too large becomes infinite, or stays the largest. */
static numbers rounded(numbers n)
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
    n.unit = greater(n.unit, F32_LEAST);
    n.bits = lesser(n.bits, F32_BITS);
    return settled(n);
}

/* Whether f32 has all multiples of 2^unit up to the bounds: there are at most 2^24 of them. */
static bool has_all(const numbers *n)
{
    return numbers_most(n) == 0 || (n->unit >= F32_LEAST && numbers_most(n) <= FLT_MAX &&
                                    power_above(numbers_most(n)) - n->unit <= F32_BITS);
}

static numbers of_integers(const range *r, bool has_sign, bool *is_exact)
{
    const int zeros = lesser(bits_trailing_zeros(~r->zeros), 63);
    const numbers n = {.bits = 64,
                       .unit = zeros,
                       .low = has_sign ? (double)r->low : (double)r->least,
                       .high = has_sign ? (double)r->high : (double)r->most};
    *is_exact = has_all(&n);
    return rounded(n);
}

/* ---- Arithmetic ---- */

typedef struct operands {
    numbers a, b, c;
} operands;
/* The results; whether they are exact goes to *is_exact. */
typedef numbers operation(const operands *o, bool *is_exact);

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
    numbers n = no_number;
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
    numbers n = no_number;
    n.special = special_of(a, b);
    if (a->low > a->high || b->low > b->high)
        return n;
    n.low = a->low + b->low;
    n.high = a->high + b->high;
    if (n.low - a->low != b->low || n.low - b->low != a->low)
        n.low = one_below(n.low);
    if (n.high - a->high != b->high || n.high - b->high != a->high)
        n.high = one_above(n.high);
    n.unit = lesser(a->unit, b->unit);
    n.bits = is_zero(a) ? numbers_bits(b) : is_zero(b) ? numbers_bits(a) : 2 * F32_BITS;
    return n;
}

static numbers multiplied(const operands *o, bool *is_exact)
{
    numbers n = product_of(&o->a, &o->b);
    *is_exact = has_all(&n) || (n.bits <= F32_BITS && n.unit >= F32_LEAST && numbers_most(&n) <= FLT_MAX);
    return rounded(n);
}

/* A difference of two equal numbers is +0, to nearest and toward zero, and so is +0 + -0. */
static numbers added(const operands *o, bool *is_exact)
{
    const numbers n = sum_of(&o->a, &o->b);
    *is_exact = has_all(&n) || is_zero(&o->a) || is_zero(&o->b);
    return rounded(n);
}

static numbers subtracted(const operands *o, bool *is_exact)
{
    const operands opposite = {.a = o->a, .b = negated(o->b)};
    return added(&opposite, is_exact);
}

static numbers multiplied_and_added(const operands *o, bool *is_exact)
{
    const numbers product = product_of(&o->a, &o->b), n = sum_of(&product, &o->c);
    *is_exact = has_all(&n);
    return rounded(n);
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
        n.unit = lesser(n.unit, HIGHEST_UNIT);
    }
    return rounded(n);
}

/* The lesser one; the other of NaN and of an infinity. */
static numbers least_of(const operands *o, bool *is_exact)
{
    const numbers *a = &o->a, *b = &o->b;
    numbers n = either(*a, b);
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
    return settled(n);
}

static numbers most_of_both(const operands *o, bool *is_exact)
{
    const operands opposite = {.a = negated(o->a), .b = negated(o->b)};
    return negated(least_of(&opposite, is_exact));
}

static numbers either_of(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return either(o->a, &o->b);
}

static numbers first_of(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return o->a;
}

static numbers opposite_of(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return negated(o->a);
}

static numbers magnitude_of(const operands *o, bool *is_exact)
{
    numbers n = o->a;
    *is_exact = true;
    if (n.low > n.high)
        return with_either_sign(n);
    n.low = o->a.low > 0 ? o->a.low : o->a.high < 0 ? -o->a.high : 0;
    n.high = numbers_most(&o->a);
    n.special = (n.special & NUMBERS_NAN) |
                (n.special & (NUMBERS_INFINITY | NUMBERS_MINUS_INFINITY) ? NUMBERS_INFINITY : 0);
    return settled(n);
}

/* The sign of the first, the magnitude of the second. */
static numbers signed_magnitude(const operands *o, bool *is_exact)
{
    *is_exact = true;
    return with_either_sign(o->b);
}

/* To integral numbers. What is rounded up has one bit more, and ends in a 0. */
static numbers made_integral(const operands *o, bool *is_exact)
{
    numbers n = o->a;
    *is_exact = n.unit >= 0;
    n.low = floor(n.low);
    n.high = ceil(n.high);
    n.unit = greater(n.unit, 0);
    return n.n_others
               ? settled((numbers){
                     .bits = F32_BITS, .unit = n.unit, .low = n.low, .high = n.high, .special = n.special})
               : settled(n);
}

/* To an integer, which is no number of f32. Beyond its ends, every rounding gives the end. */
static numbers to_integer(const operands *o, bool *is_exact)
{
    *is_exact = o->a.unit >= 0;
    return any_number;
}

static bool fits(const numbers *n, int bits, int unit, double most)
{
    return numbers_bits(n) <= bits && n->unit >= unit && numbers_most(n) <= most;
}

static numbers half_of(int bits, int unit, double most)
{
    return (numbers){.bits = bits, .unit = unit, .low = -most, .high = most, .special = NUMBERS_SPECIAL};
}

static const double F16_MOST = 65504, BF16_MOST = 0x1.FEp127;

static numbers to_f16(const operands *o, bool *is_exact)
{
    *is_exact = fits(&o->a, F16_BITS, F16_LEAST, F16_MOST);
    return half_of(F16_BITS, F16_LEAST, F16_MOST);
}

static numbers to_bf16(const operands *o, bool *is_exact)
{
    *is_exact = fits(&o->a, BF16_BITS, BF16_LEAST, BF16_MOST);
    return half_of(BF16_BITS, BF16_LEAST, BF16_MOST);
}

static numbers to_two_f16(const operands *o, bool *is_exact)
{
    *is_exact = fits(&o->a, F16_BITS, F16_LEAST, F16_MOST) && fits(&o->b, F16_BITS, F16_LEAST, F16_MOST);
    return any_number;
}

static numbers to_two_bf16(const operands *o, bool *is_exact)
{
    *is_exact =
        fits(&o->a, BF16_BITS, BF16_LEAST, BF16_MOST) && fits(&o->b, BF16_BITS, BF16_LEAST, BF16_MOST);
    return any_number;
}

static numbers from_f16(const operands *o, bool *is_exact)
{
    (void)o;
    *is_exact = true;
    return half_of(F16_BITS, F16_LEAST, F16_MOST);
}

static numbers from_bf16(const operands *o, bool *is_exact)
{
    (void)o;
    *is_exact = true;
    return half_of(BF16_BITS, BF16_LEAST, BF16_MOST);
}

static numbers root_of(const operands *o, bool *is_exact)
{
    (void)o;
    *is_exact = false;
    numbers n = any_number;
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
    {"cvt.f32.f16", from_f16},
    {"cvt.f32.bf16", from_bf16},
    {"cvt.rn.f16.f32", to_f16},
    {"cvt.rn.bf16.f32", to_bf16},
    {"cvt.rn.f16x2.f32", to_two_f16},
    {"cvt.rn.bf16x2.f32", to_two_bf16},
};

static operation *operation_of(const step *s)
{
    for (size_t k = 0; k < sizeof operations / sizeof operations[0]; k++)
        if (step_is(s, operations[k].opcode) ||
            (strcmp(operations[k].opcode, "shfl.") == 0 && step_starts(s, "shfl.") && s->n_writes == 1))
            return operations[k].is;
    return NULL;
}

/* ---- The text ---- */

static struct {
    const program *p;
    int number;
    numbers *of;      /* of each register */
    numbers *of_half; /* of each register of 16 bits, or of the halves of one of 32, if they are f16 */
    numbers *bits;    /* of each step: its result as a pattern of bits, or made of an integer */
    bool *is_exact;   /* of each step that converts an integer */
    bool *is_reached;
} last;

static numbers operand_of(const char *operand)
{
    uint64_t bits;
    const int reg = program_register(last.p, operand);
    if (reg != NO_REGISTER)
        return last.p->width[reg] == 32 ? last.of[reg] : any_number;
    return text_constant(operand, &bits) ? of_constant((uint32_t)bits) : any_number;
}

/* `cvt.rn.f32.s32`: the width of the integer, or 0. */
static int integer_width(const step *s, bool *has_sign)
{
    char kind;
    int width;
    if (sscanf(s->i.opcode, "cvt.r%*[nz].f32.%c%d", &kind, &width) != 2 || !strchr("us", kind))
        return 0;
    *has_sign = kind == 's';
    return width;
}

/* What the ranges of integers say, once for all. */
static void read_ranges(ranges *r)
{
    const program *p = last.p;
    for (int k = 0; k < p->n_steps; k++) {
        const step *s = &p->steps[k];
        bool has_sign = false;
        const int width = integer_width(s, &has_sign);
        last.bits[k] = any_number;
        last.is_reached[k] = ranges_go_to(r, k);
        if (!last.is_reached[k] || s->n_writes != 1 || p->width[s->writes[0]] != 32)
            continue;
        if (width) {
            const range operand = range_of_operand(r, s, 1, width);
            last.bits[k] = of_integers(&operand, has_sign, &last.is_exact[k]);
        } else {
            const range result = range_of_result(r, s);
            last.bits[k] = of_bits(&result);
        }
    }
}

static operands operands_of(const step *s)
{
    operands o = {any_number, any_number, any_number};
    numbers *const to[] = {&o.a, &o.b, &o.c};
    for (int k = 0; k < 3 && k + 1 < s->i.n; k++)
        *to[k] = operand_of(s->i.operand[k + 1]);
    return o;
}

static numbers result_of(int number)
{
    const step *s = &last.p->steps[number];
    operation *is = operation_of(s);
    bool is_exact;
    if (s->n_writes != 1 || !is)
        return last.bits[number];
    if (is == from_f16)
        return s->reg[1] == NO_REGISTER ? any_number : last.of_half[s->reg[1]];
    const operands o = operands_of(s);
    return both(is(&o, &is_exact), &last.bits[number]);
}

/* Two f16 from two codes of 8 bits, and what takes them apart. */
static numbers half_result(const step *s)
{
    bool is_exact;
    if (step_starts(s, "cvt.rn.f16x2.e4m3x2"))
        return half_of(4, -9, 448);
    if (step_starts(s, "cvt.rn.f16x2.e5m2x2"))
        return half_of(3, -16, 57344);
    if (step_is(s, "mov.b32") && s->i.operand[0][0] == '{' && s->n_reads == 1)
        return last.of_half[s->reads[0]];
    return from_f16(NULL, &is_exact);
}

static bool join(numbers *to, const numbers *from, bool is_late)
{
    const numbers before = *to;
    *to = either(*to, from);
    if (is_same(&before, to))
        return false;
    if (is_late)
        *to = any_number;
    return true;
}

/* Whether anything has changed. */
static bool run_step(int number, bool is_late)
{
    const step *s = &last.p->steps[number];
    bool has_changed = false;
    if (!last.is_reached[number])
        return false;
    for (int k = 0; k < s->n_writes; k++) {
        const int reg = s->writes[k];
        const numbers n = last.p->width[reg] == 32 ? result_of(number) : any_number, half = half_result(s);
        has_changed = join(&last.of[reg], &n, is_late) || has_changed;
        has_changed = join(&last.of_half[reg], &half, false) || has_changed;
    }
    return has_changed;
}

static bool make(const program *p)
{
    const size_t n = (size_t)p->n_registers + 1, steps = (size_t)p->n_steps + 1;
    free(last.of), free(last.of_half), free(last.bits), free(last.is_exact), free(last.is_reached);
    last.p = p;
    last.number = p->number;
    last.of = calloc(n, sizeof *last.of);
    last.of_half = calloc(n, sizeof *last.of_half);
    last.bits = calloc(steps, sizeof *last.bits);
    last.is_exact = calloc(steps, sizeof *last.is_exact);
    last.is_reached = calloc(steps, sizeof *last.is_reached);
    return last.of && last.of_half && last.bits && last.is_exact && last.is_reached;
}

static bool prepare(const program *p)
{
    enum { SWEEPS_BEFORE_WIDENING = 12, SWEEPS_MAX = 200 };
    static bool is_known;
    if (last.p == p && last.number == p->number)
        return is_known;
    ranges *r = ranges_of(p);
    is_known = make(p) && r;
    if (!is_known)
        return false;
    read_ranges(r);
    for (int reg = 0; reg < p->n_registers; reg++)
        last.of[reg] = last.of_half[reg] = no_number;
    int sweep = 0;
    for (bool has_changed = true; has_changed && is_known; is_known = ++sweep < SWEEPS_MAX) {
        has_changed = false;
        for (int k = 0; k < p->n_steps; k++)
            has_changed = run_step(k, sweep >= SWEEPS_BEFORE_WIDENING) || has_changed;
    }
    return is_known;
}

numbers numbers_of(const program *p, const char *operand)
{
    return prepare(p) ? operand_of(operand) : any_number;
}

bool numbers_is_exact(const program *p, int number)
{
    const step *s = &p->steps[number];
    operation *is = operation_of(s);
    bool has_sign, is_exact = false;
    if (!prepare(p) || !last.is_reached[number])
        return false;
    if (integer_width(s, &has_sign))
        return last.is_exact[number];
    const operands o = operands_of(s);
    if (is)
        is(&o, &is_exact);
    return is_exact;
}
