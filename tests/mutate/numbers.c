#include "mutate/numbers.h"

#include "mutate/proofs.h"
#include "mutate/ranges.h"

#include <string.h>

static const numbers any_number = {.bits = F32_BITS, .unit = F32_LEAST, .most = F32_MOST};

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static int most_of_two(int a, int b)
{
    return a > b ? a : b;
}

int numbers_bits(const numbers *n)
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
    const int zeros = bits_trailing_zeros(significand), length = bits_length(significand);
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
        if (a.n_others == NUMBERS_OTHERS)
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
    const int length = bits_length(most_of(ptx, reg, PROOF_DEPTH));
    return length <= F32_BITS ? (numbers){.bits = most_of_two(length, 1), .unit = 0, .most = length}
                              : any_number;
}

/* The exact products, where f32 has them all. */
bool numbers_product(const numbers *a, const numbers *b, numbers *product)
{
    const int x = numbers_bits(a), y = numbers_bits(b);
    *product = (numbers){.bits = x == 1   ? y
                                 : y == 1 ? x
                                          : x + y,
                         .unit = a->unit + b->unit,
                         .most = a->most + b->most};
    return product->bits <= F32_BITS && product->unit >= F32_LEAST && product->most <= F32_MOST;
}

/* The exact sums, where f32 has them all: multiples of one unit, not too many of it. */
bool numbers_sum(const numbers *a, const numbers *b, numbers *sum)
{
    const int unit = least_of(a->unit, b->unit), most = most_of_two(a->most, b->most) + 1;
    *sum = (numbers){.bits = most_of_two(most - unit, 1), .unit = unit, .most = most};
    return sum->bits <= F32_BITS && unit >= F32_LEAST && most <= F32_MOST;
}

static numbers find(const char *ptx, const char *operand, int depth)
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
            const numbers first = find(ptx, def.operand[passing[k].from], depth - 1),
                          last = find(ptx, def.operand[passing[k].to], depth - 1);
            return either(first, &last);
        }
    if (text_is_opcode(&def, "cvt.f32.f16"))
        return of_half(ptx, def.operand[1]);
    if (text_is_opcode(&def, "cvt.rn.f32.u32") || text_is_opcode(&def, "cvt.rn.f32.u16"))
        return of_integer(ptx, def.operand[1]);
    if (text_is_opcode(&def, "mul.rn.f32")) {
        const numbers a = find(ptx, def.operand[1], depth - 1), b = find(ptx, def.operand[2], depth - 1);
        return numbers_product(&a, &b, &product) ? product : any_number;
    }
    return of_known_bits(ptx, operand);
}

numbers numbers_of(const char *ptx, const char *operand)
{
    return find(ptx, operand, PROOF_DEPTH);
}
