/* Rules about numbers with few significant bits: products, sums and conversions that have nothing to round, and quotients that never
 * come near a bound or half way between two integers. */
#include "mutate/proofs.h"
#include "mutate/ranges.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which numbers a register may hold ---- */

enum { F32_BITS = 24, F32_LEAST = -149, F32_MOST = 128, OTHERS_MAX = 4 };

/* Infinities, NaN, zeros, and numbers of so many significant bits that are multiples of 2^unit and below 2^most; apart from them, a few
 * others, of which the bits are kept, without the sign. The others are below 2^most too, and multiples of 2^unit. */
typedef struct numbers {
    int bits, unit, most;
    uint32_t others[OTHERS_MAX];
    int n_others;
} numbers;

static const numbers any_number = {.bits = F32_BITS, .unit = F32_LEAST, .most = F32_MOST};

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static int most_of_two(int a, int b)
{
    return a > b ? a : b;
}

static int length_of(uint64_t x)
{
    int n = 0;
    for (; x; x >>= 1)
        n++;
    return n;
}

static int bits_of(const numbers *n)
{
    return n->n_others ? F32_BITS : n->bits;
}

static numbers of_constant(uint32_t bits)
{
    const int exponent = (int)(bits >> 23 & 0xFF);
    const uint32_t significand = (bits & 0x7FFFFF) | (exponent ? 0x800000 : 0);
    numbers n = {.bits = 1, .unit = F32_MOST, .most = F32_LEAST};
    if (significand == 0 || exponent == 0xFF)
        return n;
    const int zeros = bits_trailing_zeros(significand), length = length_of(significand);
    const int last = most_of_two(exponent, 1) - 150; /* the exponent of the last bit */
    n.unit = last + zeros;
    n.most = last + length;
    if (length - zeros <= 11 || exponent == 0) {
        n.bits = length - zeros;
        return n;
    }
    n.others[n.n_others++] = bits & 0x7FFFFFFF;
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
    a.bits = most_of_two(a.bits, b->bits);
    a.unit = least_of(a.unit, b->unit);
    a.most = most_of_two(a.most, b->most);
    for (int k = 0; k < b->n_others; k++) {
        if (has_other(&a, b->others[k]))
            continue;
        if (a.n_others == OTHERS_MAX)
            return any_number;
        a.others[a.n_others++] = b->others[k];
    }
    return a;
}

/* The low bits of the register that are always 0 are bits of the fraction. */
static numbers of_known_bits(const char *ptx, const char *reg)
{
    const program *p = program_of(ptx);
    ranges *r = p ? ranges_of(p) : NULL;
    const int number = r ? program_register(p, reg) : NO_REGISTER;
    numbers n = any_number;
    if (number == NO_REGISTER || p->width[number] != 32)
        return n;
    const range known = range_anywhere(r, number);
    int zeros = 0;
    while (zeros < F32_BITS - 1 && known.zeros >> zeros & 1)
        zeros++;
    n.bits -= zeros;
    n.unit += zeros;
    return n;
}

/* From f16: of its own, or from two codes of 8 bits. */
static numbers of_half(const char *ptx, const char *reg)
{
    instruction pair, wide;
    if (text_definition(ptx, reg, &pair) && text_is_opcode(&pair, "mov.b32") &&
        text_definition(ptx, pair.operand[1], &wide)) {
        if (strncmp(wide.opcode, "cvt.rn.f16x2.e4m3x2", 19) == 0)
            return (numbers){.bits = 4, .unit = -9, .most = 9};
        if (strncmp(wide.opcode, "cvt.rn.f16x2.e5m2x2", 19) == 0)
            return (numbers){.bits = 3, .unit = -16, .most = 16};
    }
    return (numbers){.bits = 11, .unit = -24, .most = 16};
}

/* From integers without a sign, as far as their largest is known. */
static numbers of_integer(const char *ptx, const char *reg)
{
    const int length = length_of(most_of(ptx, reg, PROOF_DEPTH));
    return length <= F32_BITS ? (numbers){.bits = most_of_two(length, 1), .unit = 0, .most = length}
                              : any_number;
}

/* The exact products, where f32 has them all. */
static bool product_of(const numbers *a, const numbers *b, numbers *product)
{
    const int x = bits_of(a), y = bits_of(b);
    *product = (numbers){.bits = x == 1   ? y
                                 : y == 1 ? x
                                          : x + y,
                         .unit = a->unit + b->unit,
                         .most = a->most + b->most};
    return product->bits <= F32_BITS && product->unit >= F32_LEAST && product->most <= F32_MOST;
}

/* The exact sums, where f32 has them all: multiples of one unit, not too many of it. */
static bool sum_of(const numbers *a, const numbers *b, numbers *sum)
{
    const int unit = least_of(a->unit, b->unit), most = most_of_two(a->most, b->most) + 1;
    *sum = (numbers){.bits = most_of_two(most - unit, 1), .unit = unit, .most = most};
    return sum->bits <= F32_BITS && unit >= F32_LEAST && most <= F32_MOST;
}

static numbers numbers_of(const char *ptx, const char *operand, int depth)
{
    static const struct {
        const char *opcode;
        int from, to; /* operands, one of which (or of whose magnitudes) the result is */
    } passing[] = {{"mov.b32", 1, 1}, {"neg.f32", 1, 1}, {"abs.f32", 1, 1},           {"copysign.f32", 2, 2},
                   {"min.f32", 1, 2}, {"max.f32", 1, 2}, {"shfl.sync.idx.b32", 1, 1}, {"selp.b32", 1, 2}};
    instruction def;
    uint64_t bits;
    numbers product;
    if (text_constant(operand, &bits))
        return of_constant((uint32_t)bits);
    if (depth == 0 || !text_definition(ptx, operand, &def) || def.operand[0][0] == '{')
        return any_number;
    for (size_t k = 0; k < sizeof passing / sizeof passing[0]; k++)
        if (text_is_opcode(&def, passing[k].opcode)) {
            const numbers first = numbers_of(ptx, def.operand[passing[k].from], depth - 1),
                          last = numbers_of(ptx, def.operand[passing[k].to], depth - 1);
            return either(first, &last);
        }
    if (text_is_opcode(&def, "cvt.f32.f16"))
        return of_half(ptx, def.operand[1]);
    if (text_is_opcode(&def, "cvt.rn.f32.u32") || text_is_opcode(&def, "cvt.rn.f32.u16"))
        return of_integer(ptx, def.operand[1]);
    if (text_is_opcode(&def, "mul.rn.f32")) {
        const numbers a = numbers_of(ptx, def.operand[1], depth - 1),
                      b = numbers_of(ptx, def.operand[2], depth - 1);
        return product_of(&a, &b, &product) ? product : any_number;
    }
    return of_known_bits(ptx, operand);
}

/* ---- Nothing to round ---- */

/* Products, sums and differences that f32 has. A difference of two equal numbers is +0, to nearest and toward zero. */
bool result_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    numbers exact;
    if (m->kind != MUTANT_ROUNDING || strcmp(m->with, "rz") != 0 || i->n < 3)
        return false;
    const numbers a = numbers_of(ptx, i->operand[1], PROOF_DEPTH),
                  b = numbers_of(ptx, i->operand[2], PROOF_DEPTH);
    if (text_is_opcode(i, "mul.rn.f32"))
        return product_of(&a, &b, &exact);
    if (text_is_opcode(i, "add.rn.f32") || text_is_opcode(i, "sub.rn.f32"))
        return sum_of(&a, &b, &exact);
    if (!text_is_opcode(i, "fma.rn.f32") || !product_of(&a, &b, &exact))
        return false;
    const numbers c = numbers_of(ptx, i->operand[3], PROOF_DEPTH), product = exact;
    return sum_of(&product, &c, &exact);
}

/* Conversions to a type that has all the numbers. */
bool narrower_type_has_it(const char *ptx, const mutant *m, const instruction *i)
{
    static const struct {
        const char *opcode;
        int bits, unit, most;
    } types[] = {{"cvt.rn.f16.f32", 11, -24, 16}, {"cvt.rn.bf16.f32", 8, -133, 128}};
    for (size_t k = 0; k < sizeof types / sizeof types[0] && m->kind == MUTANT_ROUNDING; k++)
        if (text_is_opcode(i, types[k].opcode)) {
            const numbers n = numbers_of(ptx, i->operand[1], PROOF_DEPTH);
            return bits_of(&n) <= types[k].bits && n.unit >= types[k].unit && n.most <= types[k].most;
        }
    return false;
}

/* ---- Quotients ---- */

enum { DIVISOR_BITS = 12 };

/* Whether a number of them, times any power of two, lies between two integers of more than 24 bits. */
static bool has_between(const numbers *n, uint64_t least, uint64_t most)
{
    const int length = length_of(least), cut = length - n->bits;
    const uint64_t first = cut > 0 ? (least + (UINT64_C(1) << cut) - 1) >> cut << cut : least;
    if (first <= most)
        return true;
    for (int k = 0; k < n->n_others; k++)
        for (int by = 0; by < 40 - F32_BITS; by++) {
            const uint64_t other = (uint64_t)((n->others[k] & 0x7FFFFF) | 0x800000) << by;
            if (other >= least && other <= most)
                return true;
        }
    return false;
}

/* Whether a quotient of two of them may round to a number whose significand lies between these two, with their exponent. The quotient
 * itself lies between the numbers half a last bit below and above them: a dividend lies between their products with a divisor, whose
 * significand takes every value. */
static bool may_divide_to(const numbers *a, const numbers *b, uint32_t least, uint32_t most)
{
    if (b->n_others || b->bits > DIVISOR_BITS)
        return true;
    for (uint64_t s = UINT64_C(1) << (b->bits - 1); s < UINT64_C(1) << b->bits; s++)
        if (has_between(a, (2 * (uint64_t)least - 1) * s, (2 * (uint64_t)most + 1) * s))
            return true;
    return false;
}

static bool is_normal(uint32_t bits)
{
    enum { LEAST = 27, MOST = 227 }; /* far from where a quotient is rounded to fewer bits, or overflows */
    return (bits >> 23 & 0xFF) > LEAST && (bits >> 23 & 0xFF) < MOST;
}

/* Whether a register may be a number from `least` to `most`, given by their bits, of the same sign and exponent: it is a constant or a
 * quotient. */
static bool may_be(const char *ptx, const char *operand, uint32_t least, uint32_t most, int depth)
{
    instruction def;
    uint64_t bits;
    if (text_constant(operand, &bits))
        return bits >= least && bits <= most;
    if (depth == 0 || !text_definition(ptx, operand, &def))
        return true;
    if (text_is_opcode(&def, "mov.b32"))
        return may_be(ptx, def.operand[1], least, most, depth - 1);
    if (text_is_opcode(&def, "selp.b32") || text_is_opcode(&def, "min.f32") ||
        text_is_opcode(&def, "max.f32"))
        return may_be(ptx, def.operand[1], least, most, depth - 1) ||
               may_be(ptx, def.operand[2], least, most, depth - 1);
    if (!text_is_opcode(&def, "div.rn.f32"))
        return true;
    const numbers a = numbers_of(ptx, def.operand[1], PROOF_DEPTH),
                  b = numbers_of(ptx, def.operand[2], PROOF_DEPTH);
    return may_divide_to(&a, &b, (least & 0x7FFFFF) | 0x800000, (most & 0x7FFFFF) | 0x800000);
}

/* `setp.gt p, q, c` and the like; whether a number that equals c counts as one above it. */
static bool is_comparison(const instruction *i, bool *equal_is_above)
{
    static const struct {
        const char *opcode;
        bool equal_is_above;
    } known[] = {
        {"setp.gt.f32", false}, {"setp.le.f32", false}, {"setp.ge.f32", true}, {"setp.lt.f32", true}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (text_is_opcode(i, known[k].opcode)) {
            *equal_is_above = known[k].equal_is_above;
            return i->n == 3;
        }
    return false;
}

/* Whether `setp p, q, c` comes out the same with c and with `now`. Both signs alike: bits of negative numbers grow as they fall. */
static bool compares_alike(const char *ptx, const instruction *i, uint32_t c, uint32_t now)
{
    bool equal_is_above;
    if (!is_comparison(i, &equal_is_above) || c >> 23 != now >> 23 || !is_normal(c))
        return false;
    uint32_t least = c < now ? c : now, most = c < now ? now : c;
    if (equal_is_above != (c >> 31 != 0))
        most--;
    else
        least++;
    return !may_be(ptx, i->operand[1], least, most, PROOF_DEPTH);
}

/* Whether every comparison with the register comes out the same, whichever of both it holds. */
static bool uses_compare_alike(const char *ptx, const char *reg, uint32_t c, uint32_t now, int depth)
{
    instruction i;
    if (depth == 0 || !text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg))
            continue;
        if (!text_parse(line, &i))
            return false;
        if (text_writes(&i) && strcmp(i.operand[0], reg) == 0)
            continue;
        const bool passes = text_is_opcode(&i, "mov.b32") || text_is_opcode(&i, "selp.b32");
        if (passes ? !uses_compare_alike(ptx, i.operand[0], c, now, depth - 1)
                   : strcmp(i.operand[1], reg) == 0 || !compares_alike(ptx, &i, c, now))
            return false;
    }
    return true;
}

/* Whether a number may equal one of the constants that a register may hold. */
static bool may_equal(const char *ptx, const char *number, const char *operand, int depth)
{
    instruction def;
    uint64_t bits;
    if (text_constant(operand, &bits))
        return !is_normal((uint32_t)bits) || may_be(ptx, number, (uint32_t)bits, (uint32_t)bits, PROOF_DEPTH);
    return depth == 0 || !text_definition(ptx, operand, &def) || !text_is_opcode(&def, "selp.b32") ||
           may_equal(ptx, number, def.operand[1], depth - 1) ||
           may_equal(ptx, number, def.operand[2], depth - 1);
}

/* Bounds between the codes of a table: a quotient of numbers with few bits is none of those between a bound and a slightly different
 * one; or it never equals the bound. */
bool no_quotient_is_between(const char *ptx, const mutant *m, const instruction *i)
{
    char operand[TEXT_MAX] = "";
    uint64_t c, now;
    bool equal_is_above;
    if (m->kind == MUTANT_COMPARISON)
        return is_comparison(i, &equal_is_above) &&
               ((strncmp(i->opcode + 5, "gt", 2) == 0 && strcmp(m->with, "ge") == 0) ||
                (strncmp(i->opcode + 5, "ge", 2) == 0 && strcmp(m->with, "gt") == 0) ||
                (strncmp(i->opcode + 5, "lt", 2) == 0 && strcmp(m->with, "le") == 0) ||
                (strncmp(i->opcode + 5, "le", 2) == 0 && strcmp(m->with, "lt") == 0)) &&
               !may_equal(ptx, i->operand[1], i->operand[2], PROOF_DEPTH);
    if (m->kind != MUTANT_CONSTANT || m->length >= TEXT_MAX)
        return false;
    memcpy(operand, ptx + m->at, m->length);
    if (strncmp(operand, "0f", 2) != 0 || !text_constant(operand, &c) || !text_constant(m->with, &now) ||
        (uint32_t)c >> 23 != (uint32_t)now >> 23 || !is_normal((uint32_t)c))
        return false;
    if (is_comparison(i, &equal_is_above))
        return compares_alike(ptx, i, (uint32_t)c, (uint32_t)now);
    return text_is_opcode(i, "selp.b32") &&
           uses_compare_alike(ptx, i->operand[0], (uint32_t)c, (uint32_t)now, PROOF_DEPTH);
}

/* Those that a quotient near 1/2 may come from: 2^127 and more is more than half of any divisor, by as much as the largest divisor of few
 * bits is below 2^128. */
static numbers without_huge(numbers n)
{
    const uint32_t huge = 0x7F000000;
    int left = 0;
    for (int k = 0; k < n.n_others; k++)
        if (n.others[k] < huge)
            n.others[left++] = n.others[k];
    n.n_others = left;
    return n;
}

static bool is_bound(const char *operand, long most)
{
    char *end;
    const long bound = strtol(operand, &end, 10);
    return *operand && *end == 0 && labs(bound) <= most;
}

/* The only instruction that reads the register. */
static bool only_reader(const char *ptx, const char *reg, instruction *reader)
{
    int readers = 0;
    instruction i;
    if (!text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg))
            continue;
        if (!text_parse(line, &i))
            return false;
        if (text_writes(&i) && strcmp(i.operand[0], reg) == 0)
            continue;
        *reader = i;
        readers++;
    }
    return readers == 1;
}

/* `max.s32` and `min.s32` with bounds of at most so much, one behind the other. */
static bool is_clamped(const char *ptx, const char *reg, long most)
{
    instruction first, second;
    return only_reader(ptx, reg, &first) && only_reader(ptx, first.operand[0], &second) &&
           (text_is_opcode(&first, "max.s32") || text_is_opcode(&first, "min.s32")) &&
           (text_is_opcode(&second, "max.s32") || text_is_opcode(&second, "min.s32")) &&
           strcmp(first.opcode, second.opcode) != 0 && is_bound(first.operand[2], most) &&
           is_bound(second.operand[2], most);
}

/* Whether `2 k + 1` halves are met exactly, or not within a last bit: the quotient is on the same side however it is rounded. */
static bool is_never_beside(const numbers *a, const numbers *b, uint64_t halves)
{
    const int by = F32_BITS - length_of(halves);
    const uint64_t tie = 2 * (halves << by);
    for (uint64_t s = UINT64_C(1) << (b->bits - 1); s < UINT64_C(1) << b->bits; s++)
        if (has_between(a, (tie - 2) * s, tie * s - 1) || has_between(a, tie * s + 1, (tie + 2) * s))
            return false;
    return true;
}

/* `div q, a, b`, `cvt.rni.s32 i, q`, and a clamp of i to a code. Rounded to nearest or toward zero, a quotient differs by a last bit; this
 * shows in i only where one of both is half way between two integers and the exact one is not. Beyond the clamp neither shows. */
bool quotient_is_never_beside_a_tie(const char *ptx, const mutant *m, const instruction *i)
{
    enum { CODES = 256 };
    instruction rounded;
    if (m->kind != MUTANT_ROUNDING || !text_is_opcode(i, "div.rn.f32") || strcmp(m->with, "rz") != 0 ||
        !only_reader(ptx, i->operand[0], &rounded) || !text_is_opcode(&rounded, "cvt.rni.s32.f32") ||
        !is_clamped(ptx, rounded.operand[0], CODES))
        return false;
    const numbers a = numbers_of(ptx, i->operand[1], PROOF_DEPTH),
                  b = numbers_of(ptx, i->operand[2], PROOF_DEPTH);
    if (b.n_others || b.bits > DIVISOR_BITS)
        return false;
    const numbers moderate = without_huge(a);
    if (!is_never_beside(&moderate, &b, 1))
        return false;
    for (uint64_t k = 1; k <= CODES; k++)
        if (!is_never_beside(&a, &b, 2 * k + 1))
            return false;
    return true;
}

/* Whether no quotient lies between the constant and a neighbour of it: the two roundings give two neighbours of the exact quotient, and a
 * comparison with the constant tells these apart only if one of them is the constant. */
static bool is_never_beyond(const numbers *a, const numbers *b, uint32_t c)
{
    const uint64_t bound = 2 * (uint64_t)((c & 0x7FFFFF) | 0x800000);
    for (uint64_t s = UINT64_C(1) << (b->bits - 1); s < UINT64_C(1) << b->bits; s++)
        if (has_between(a, bound * s + 1, (bound + 2) * s - 1) ||
            has_between(a, (bound - 2) * s + 1, bound * s - 1))
            return false;
    return true;
}

/* The same of the constants that a register may hold. */
static bool is_beyond_none(const char *ptx, const char *operand, const numbers *a, const numbers *b,
                           int depth)
{
    instruction def;
    uint64_t c;
    if (text_constant(operand, &c))
        return is_normal((uint32_t)c) && is_never_beyond(a, b, (uint32_t)c);
    return depth > 0 && text_definition(ptx, operand, &def) && text_is_opcode(&def, "selp.b32") &&
           is_beyond_none(ptx, def.operand[1], a, b, depth - 1) &&
           is_beyond_none(ptx, def.operand[2], a, b, depth - 1);
}

/* Whether a register is only compared with such constants, or asked whether it is NaN. */
static bool is_only_compared(const char *ptx, const char *reg, const numbers *a, const numbers *b, int depth)
{
    instruction i;
    bool equal_is_above;
    if (depth == 0 || !text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg))
            continue;
        if (!text_parse(line, &i))
            return false;
        if ((text_writes(&i) && strcmp(i.operand[0], reg) == 0) || text_is_opcode(&i, "setp.nan.f32"))
            continue;
        const bool is_alike = text_is_opcode(&i, "selp.b32")
                                  ? is_only_compared(ptx, i.operand[0], a, b, depth - 1)
                                  : is_comparison(&i, &equal_is_above) && strcmp(i.operand[1], reg) == 0 &&
                                        is_beyond_none(ptx, i.operand[2], a, b, PROOF_DEPTH);
        if (!is_alike)
            return false;
    }
    return true;
}

/* A quotient that is compared with the bounds between the codes of a table, and comes near none of them. */
bool quotient_is_never_beside_a_bound(const char *ptx, const mutant *m, const instruction *i)
{
    if (m->kind != MUTANT_ROUNDING || !text_is_opcode(i, "div.rn.f32") || strcmp(m->with, "rz") != 0)
        return false;
    const numbers a = numbers_of(ptx, i->operand[1], PROOF_DEPTH),
                  b = numbers_of(ptx, i->operand[2], PROOF_DEPTH);
    return b.n_others == 0 && b.bits <= DIVISOR_BITS &&
           is_only_compared(ptx, i->operand[0], &a, &b, PROOF_DEPTH);
}
