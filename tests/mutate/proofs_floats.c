/* Rules about numbers: roundings that have nothing to round, and NaN. */
#include "mutate/proofs.h"

#include <stdlib.h>
#include <string.h>

/* The exponent of all numbers that the bits of a register may be; -1 where it is not known. lop3 and prmt put a code into the
 * fraction of a power of two: only bits below 23 come from elsewhere. */
static int exponent_of(const instruction *def)
{
    uint64_t mask, base, selector;
    if (strncmp(def->opcode, "lop3.", 5) == 0 && def->n == 5 && text_constant(def->operand[2], &mask) &&
        text_constant(def->operand[3], &base) && strcmp(def->operand[4], "0x6A") == 0 && mask < 1u << 23)
        return (int)(base >> 23);
    if (strncmp(def->opcode, "prmt.", 5) == 0 && def->n == 4 && text_constant(def->operand[2], &base) &&
        text_constant(def->operand[3], &selector) && base == 0x4B000000 && (selector & 0xFFF0) == 0x7440)
        return 0x4B000000 >> 23;
    return -1;
}

/* The rounding of a difference of two numbers between 2^e and 2^(e+1): both are multiples of 2^(e-23), and so is their difference,
 * which is less than 2^e: it has at most 23 bits and is exact. */
bool difference_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    instruction def;
    uint64_t c;
    if (m->kind != MUTANT_ROUNDING || !text_is_opcode(i, "sub.rn.f32") || i->n != 3 ||
        !text_constant(i->operand[2], &c) || !text_definition(ptx, i->operand[1], &def))
        return false;
    int exponent = exponent_of(&def);
    return exponent >= 0 && (int)(c >> 23) == exponent;
}

/* Whether a register holds an integral number, or NaN, or an infinity. Sums, differences, products and extremes of integral
 * numbers are integral, rounded or not: an f32 that cannot hold a fraction's bits is integral anyway. */
static bool is_integral(const char *ptx, const char *operand, int depth)
{
    instruction def;
    uint64_t bits;
    if (text_constant(operand, &bits)) {
        union {
            uint32_t bits;
            float value;
        } x = {(uint32_t)bits};
        return x.value > -8388608.0f && x.value < 8388608.0f && x.value == (float)(int)x.value;
    }
    if (depth == 0 || !text_definition(ptx, operand, &def))
        return false;
    if (text_is_opcode(&def, "cvt.rni.f32.f32") || text_is_opcode(&def, "cvt.rzi.f32.f32"))
        return true;
    if (text_is_opcode(&def, "copysign.f32"))
        return is_integral(ptx, def.operand[2], depth - 1);
    if (!text_is_opcode(&def, "selp.b32") && !text_is_opcode(&def, "min.f32") &&
        !text_is_opcode(&def, "max.f32") && !text_is_opcode(&def, "add.rn.f32") &&
        !text_is_opcode(&def, "sub.rn.f32"))
        return false;
    return is_integral(ptx, def.operand[1], depth - 1) && is_integral(ptx, def.operand[2], depth - 1);
}

/* Whether a register holds a number of f16 (or bf16): widened from one, or the extreme of two such. */
static bool is_half(const char *ptx, const char *operand, bool is_f16, int depth)
{
    instruction def;
    uint64_t bits;
    if (text_constant(operand, &bits)) {
        uint64_t exponent = bits >> 23 & 0xFF;
        if (exponent > 102 && exponent <= 112) /* subnormal: multiples of 2^-24 */
            return is_f16 ? (bits & ((UINT64_C(1) << (126 - exponent)) - 1)) == 0 : (bits & 0xFFFF) == 0;
        return is_f16 ? (bits & 0x1FFF) == 0 &&
                            (exponent == 0 ? bits << 33 == 0 : exponent > 112 && exponent < 143)
                      : (bits & 0xFFFF) == 0;
    }
    if (depth == 0 || !text_definition(ptx, operand, &def))
        return false;
    if (is_f16 ? text_is_opcode(&def, "cvt.f32.f16")
               : text_is_opcode(&def, "shl.b32") && strcmp(def.operand[2], "16") == 0)
        return true;
    return (text_is_opcode(&def, "min.f32") || text_is_opcode(&def, "max.f32")) &&
           is_half(ptx, def.operand[1], is_f16, depth - 1) && is_half(ptx, def.operand[2], is_f16, depth - 1);
}

/* Narrowing a number that the type has does not round. */
bool narrowing_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    bool is_f16 = text_is_opcode(i, "cvt.rn.f16.f32");
    return m->kind == MUTANT_ROUNDING && (is_f16 || text_is_opcode(i, "cvt.rn.bf16.f32")) && i->n == 2 &&
           is_half(ptx, i->operand[1], is_f16, PROOF_DEPTH);
}

/* x + 0 is x, and -0 + 0 is +0 in every rounding but the downward one. */
bool adds_zero(const char *ptx, const mutant *m, const instruction *i)
{
    (void)ptx;
    return m->kind == MUTANT_ROUNDING && text_is_opcode(i, "add.rn.f32") && i->n == 3 &&
           strcmp(i->operand[2], "0f00000000") == 0 && strcmp(m->with, "rz") == 0;
}

/* The conversion of an integral number to an integer does not round. */
bool conversion_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    return m->kind == MUTANT_ROUNDING &&
           (text_is_opcode(i, "cvt.rni.s32.f32") || text_is_opcode(i, "cvt.rzi.s32.f32")) && i->n == 2 &&
           is_integral(ptx, i->operand[1], PROOF_DEPTH);
}

float float_of(uint64_t bits)
{
    union {
        uint32_t bits;
        float value;
    } x = {(uint32_t)bits};
    return x.value;
}

bool is_f32_constant(const char *operand, float *value)
{
    uint64_t bits;
    if (strncmp(operand, "0f", 2) != 0 || !text_constant(operand, &bits))
        return false;
    *value = float_of(bits);
    return *value == *value;
}

/* `min` or `max` of anything and a number from 0 to below 2^31. */
static bool is_extreme_of_positive(const instruction *i, const char *opcode)
{
    float bound;
    return text_is_opcode(i, opcode) && i->n == 3 && is_f32_constant(i->operand[2], &bound) && bound >= 0 &&
           bound < 0x1p31f;
}

/* A number from 0 to below 2^31 becomes the same integer with and without a sign. Clamped from both sides to such numbers, anything is one of
 * them: the extreme of NaN and a number is that number. */
bool conversion_is_of_positive(const char *ptx, const mutant *m, const instruction *i)
{
    instruction outer, inner;
    if (m->kind != MUTANT_TYPE || strcmp(m->with, "u32") != 0 || i->n != 2 ||
        !(text_is_opcode(i, "cvt.rni.s32.f32") || text_is_opcode(i, "cvt.rzi.s32.f32")) ||
        !text_definition(ptx, i->operand[1], &outer) || !text_definition(ptx, outer.operand[1], &inner))
        return false;
    return (is_extreme_of_positive(&outer, "min.f32") && is_extreme_of_positive(&inner, "max.f32")) ||
           (is_extreme_of_positive(&outer, "max.f32") && is_extreme_of_positive(&inner, "min.f32"));
}

/* ---- NaN ---- */

/* The extreme of a number and anything else is a number; so are the bits of a small integer. A constant that is neither 0 nor
 * infinite makes no NaN of a number. */
static bool is_never_nan(const char *ptx, const char *operand, int depth)
{
    instruction def;
    float c;
    if (is_f32_constant(operand, &c))
        return true;
    if (depth == 0 || !text_definition(ptx, operand, &def))
        return false;
    if (text_is_opcode(&def, "min.f32") || text_is_opcode(&def, "max.f32"))
        return is_never_nan(ptx, def.operand[1], depth - 1) || is_never_nan(ptx, def.operand[2], depth - 1);
    if (text_is_opcode(&def, "neg.f32") || text_is_opcode(&def, "abs.f32"))
        return is_never_nan(ptx, def.operand[1], depth - 1);
    if (text_is_opcode(&def, "div.rn.f32") || text_is_opcode(&def, "mul.rn.f32") ||
        text_is_opcode(&def, "add.rn.f32"))
        return is_f32_constant(def.operand[2], &c) && c - c == 0 && (c != 0 || def.opcode[0] == 'a') &&
               is_never_nan(ptx, def.operand[1], depth - 1);
    if (text_is_opcode(&def, "selp.b32"))
        return is_never_nan(ptx, def.operand[1], depth - 1) && is_never_nan(ptx, def.operand[2], depth - 1);
    if (strncmp(def.opcode, "cvt.rn.f32.u", 12) == 0 || strncmp(def.opcode, "cvt.rn.f32.s", 12) == 0)
        return true;
    return most_of(ptx, operand, PROOF_DEPTH) <= 0x7F800000 || is_between_numbers(ptx, operand);
}

/* Whether x is NaN: `setp.nan p, x, x`. With a number in one of the places it is the same question. */
bool other_is_never_nan(const char *ptx, const mutant *m, const instruction *i)
{
    return m->kind == MUTANT_REGISTER && strncmp(i->opcode, "setp.nan.", 9) == 0 && i->n >= 3 &&
           m->with[1] != 'p' && /* another predicate of setp.nan.or */
           strcmp(i->operand[1], i->operand[2]) == 0 && is_never_nan(ptx, m->with, PROOF_DEPTH) &&
           text_is_written_before(ptx, m->with, ptx + m->at);
}

/* `selp d, c, x, p` where p says that a number is NaN: c is never taken. */
bool nan_never_comes(const char *ptx, const mutant *m, const instruction *i)
{
    instruction test;
    const size_t length = strlen(i->operand[1]);
    return (m->kind == MUTANT_CONSTANT || m->kind == MUTANT_REGISTER) && text_is_opcode(i, "selp.b32") &&
           i->n == 4 && m->length == length && strncmp(ptx + m->at, i->operand[1], length) == 0 &&
           ptx[m->at - 2] == ',' && strstr(ptx + m->at, i->operand[2]) == ptx + m->at + length + 2 &&
           text_definition(ptx, i->operand[3], &test) &&
           (text_is_opcode(&test, "testp.notanumber.f32") || text_is_opcode(&test, "setp.nan.f32")) &&
           is_never_nan(ptx, test.operand[1], PROOF_DEPTH);
}

/* Whether a register is NaN only where another is: it is that one, was computed from it alone by what makes no NaN of a number, or
 * takes a NaN's place where that one is NaN. */
static bool is_nan_only_with(const char *ptx, const char *operand, const char *other, int depth)
{
    static const char *const unary[] = {"mov.b32",         "abs.f32",         "neg.f32",
                                        "cvt.rni.f32.f32", "cvt.rzi.f32.f32", "cvt.rmi.f32.f32"};
    instruction def, test;
    float c;
    if (strcmp(operand, other) == 0 || is_never_nan(ptx, operand, PROOF_DEPTH))
        return true;
    if (depth == 0 || !text_definition(ptx, operand, &def))
        return false;
    for (size_t k = 0; k < sizeof unary / sizeof unary[0]; k++)
        if (text_is_opcode(&def, unary[k]))
            return is_nan_only_with(ptx, def.operand[1], other, depth - 1);
    if (text_is_opcode(&def, "copysign.f32"))
        return is_nan_only_with(ptx, def.operand[2], other, depth - 1);
    if (text_is_opcode(&def, "min.f32") || text_is_opcode(&def, "max.f32"))
        return is_nan_only_with(ptx, def.operand[1], other, depth - 1) ||
               is_nan_only_with(ptx, def.operand[2], other, depth - 1);
    if (text_is_opcode(&def, "mul.rn.f32") || text_is_opcode(&def, "add.rn.f32"))
        return is_f32_constant(def.operand[2], &c) && c - c == 0 && (c != 0 || def.opcode[0] == 'a') &&
               is_nan_only_with(ptx, def.operand[1], other, depth - 1);
    if (!text_is_opcode(&def, "selp.b32") || !is_nan_only_with(ptx, def.operand[2], other, depth - 1))
        return false;
    return is_nan_only_with(ptx, def.operand[1], other, depth - 1) ||
           (text_definition(ptx, def.operand[3], &test) && text_is_opcode(&test, "setp.nan.f32") &&
            is_nan_only_with(ptx, test.operand[1], other, depth - 1) &&
            is_nan_only_with(ptx, test.operand[2], other, depth - 1));
}

/* `setp.nan p, x, x` with one place taken by a register that is NaN only where x is. */
bool other_is_nan_with_it(const char *ptx, const mutant *m, const instruction *i)
{
    return m->kind == MUTANT_REGISTER && text_is_opcode(i, "setp.nan.f32") && i->n == 3 &&
           strcmp(i->operand[1], i->operand[2]) == 0 &&
           is_nan_only_with(ptx, m->with, i->operand[1], PROOF_DEPTH) &&
           text_is_written_before(ptx, m->with, ptx + m->at);
}

static bool is_nan_constant(const char *operand)
{
    uint64_t bits;
    return text_constant(operand, &bits) && bits <= UINT32_MAX && (bits & 0x7FFFFFFF) > 0x7F800000;
}

/* Whether no instruction looks at which NaN (of one sign) a register holds: arithmetic gives one NaN of its own for all of them. */
static bool nans_are_the_same(const char *ptx, const char *reg, int depth)
{
    static const char *const arithmetic[] = {"add.", "sub.", "mul.",  "fma.",  "div.",
                                             "min.", "max.", "setp.", "cvt.r", "rcp."};
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction i;
        bool is_listed = false;
        if (!text_names(line, reg))
            continue;
        if (depth == 0 || !text_parse(line, &i))
            return false;
        if (text_writes(&i) && strcmp(i.operand[0], reg) == 0)
            continue; /* a definition */
        for (size_t k = 0; k < sizeof arithmetic / sizeof arithmetic[0]; k++)
            is_listed = is_listed || strncmp(i.opcode, arithmetic[k], strlen(arithmetic[k])) == 0;
        const bool is_sign = text_is_opcode(&i, "copysign.f32") && strcmp(i.operand[2], reg) != 0;
        const bool passes = text_is_opcode(&i, "selp.b32") || text_is_opcode(&i, "mov.b32") ||
                            text_is_opcode(&i, "copysign.f32") || text_is_opcode(&i, "abs.f32") ||
                            text_is_opcode(&i, "neg.f32");
        if (is_sign)
            continue;
        if (!(is_listed && strstr(i.opcode, ".f32") && !strstr(i.opcode, "f32.u") &&
              !strstr(i.opcode, "f32.s")) &&
            !(passes && nans_are_the_same(ptx, i.operand[0], depth - 1)))
            return false;
    }
    return true;
}

/* One NaN for another. */
bool nan_is_any(const char *ptx, const mutant *m, const instruction *i)
{
    char operand[TEXT_MAX] = "";
    if (m->kind != MUTANT_CONSTANT || m->length >= TEXT_MAX ||
        !(text_is_opcode(i, "selp.b32") || text_is_opcode(i, "mov.b32")))
        return false;
    memcpy(operand, ptx + m->at, m->length);
    uint64_t old, now;
    return is_nan_constant(operand) && is_nan_constant(m->with) && text_constant(operand, &old) &&
           text_constant(m->with, &now) && (old ^ now) < 0x80000000 &&
           nans_are_the_same(ptx, i->operand[0], PROOF_DEPTH);
}

/* ---- Products and sums that are exact ---- */

/* The largest number whose bits a mask lets through; infinite where the register is not masked. */
static float most_of_masked(const char *ptx, const char *operand)
{
    instruction def;
    uint64_t mask;
    if (!text_definition(ptx, operand, &def) || def.n < 3 || !text_constant(def.operand[2], &mask) ||
        !(text_is_opcode(&def, "and.b32") ||
          (strncmp(def.opcode, "lop3.", 5) == 0 && strcmp(def.operand[4], "0xC0") == 0)))
        return float_of(0x7F800000);
    return float_of(mask & 0x7FFFFFFF);
}

/* A product by one is exact, and so is one by a larger power of two that does not overflow. */
bool multiplies_exactly(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t bits;
    if (m->kind != MUTANT_ROUNDING || !text_is_opcode(i, "mul.rn.f32") || i->n != 3 ||
        strncmp(i->operand[2], "0f", 2) != 0 || !text_constant(i->operand[2], &bits))
        return false;
    const float factor = float_of(bits & 0x7FFFFFFF), largest = most_of_masked(ptx, i->operand[1]);
    return factor == 1.0f ||
           (factor > 1.0f && (bits & 0x7FFFFF) == 0 && largest * factor <= float_of(0x7F7FFFFF));
}

/* A bound of the magnitudes of all numbers that a register may hold; infinite where none is known. */
static float magnitude_of(const char *ptx, const char *operand, int depth)
{
    const float none = float_of(0x7F800000);
    instruction def, inner;
    float c, low;
    if (is_f32_constant(operand, &c))
        return c < 0 ? -c : c;
    if (depth == 0 || !text_definition(ptx, operand, &def))
        return none;
    if (text_is_opcode(&def, "abs.f32") || text_is_opcode(&def, "neg.f32"))
        return magnitude_of(ptx, def.operand[1], depth - 1);
    if (text_is_opcode(&def, "mul.rn.f32"))
        return 1.001f * magnitude_of(ptx, def.operand[1], depth - 1) *
               magnitude_of(ptx, def.operand[2], depth - 1);
    if (!text_is_opcode(&def, "min.f32") || !is_f32_constant(def.operand[2], &c) || c < 0 ||
        !text_definition(ptx, def.operand[1], &inner))
        return none;
    if (text_is_opcode(&inner, "abs.f32"))
        return c;
    return text_is_opcode(&inner, "max.f32") && is_f32_constant(inner.operand[2], &low)
               ? (-low > c ? -low : c)
               : none;
}

/* `add t, x, C`, `sub y, t, C` with C = 1.5 * 2^23 rounds x to an integer: below 2^21, t and C are integers between 2^23 and 2^24, and
 * their difference is exact. */
bool difference_is_integral(const char *ptx, const mutant *m, const instruction *i)
{
    static const char magic[] = "0f4B400000";
    const float most = 0x1p21f;
    instruction def;
    if (m->kind != MUTANT_ROUNDING || !text_is_opcode(i, "sub.rn.f32") || strcmp(i->operand[2], magic) != 0 ||
        !text_definition(ptx, i->operand[1], &def))
        return false;
    if (text_is_opcode(&def, "add.rn.f32"))
        return strcmp(def.operand[2], magic) == 0 && magnitude_of(ptx, def.operand[1], PROOF_DEPTH) < most;
    return text_is_opcode(&def, "fma.rn.f32") && strcmp(def.operand[3], magic) == 0 &&
           1.001f * magnitude_of(ptx, def.operand[1], PROOF_DEPTH) *
                   magnitude_of(ptx, def.operand[2], PROOF_DEPTH) <
               most;
}

/* ---- Rounding by a sum ---- */

/* Whether the register is the exponent of x in the bits of an f32, or a larger one: `shr e, x, 23`, `max e, e, least`. */
static bool is_exponent_of(const char *ptx, const char *operand, const char *x)
{
    instruction def;
    if (!text_definition(ptx, operand, &def))
        return false;
    if (text_is_opcode(&def, "max.u32"))
        return is_exponent_of(ptx, def.operand[1], x);
    return text_is_opcode(&def, "shr.u32") && strcmp(def.operand[1], x) == 0 &&
           strcmp(def.operand[2], "23") == 0;
}

/* `min x, |y|, c`: a number that is not negative. */
static bool is_limited_magnitude(const char *ptx, const char *x)
{
    instruction def, inner;
    float c;
    return text_definition(ptx, x, &def) && text_is_opcode(&def, "min.f32") &&
           is_f32_constant(def.operand[2], &c) && c >= 0 && c < 0x1p64f &&
           text_definition(ptx, def.operand[1], &inner) && text_is_opcode(&inner, "abs.f32");
}

/* `mad M, e, 2^23, C`, `add t, x, M`, `sub y, t, M` (of the bits) with the exponent e of an x that is not negative, or a larger one: M is a power of two,
 * 2^k times as large as x at least, k = C / 2^23 - 1. The sum rounds x to a multiple of M's last place u, to an even one in a tie. With
 * D u more, D even, M has the same exponent, and so has the sum; what is even stays so. */
bool sum_rounds_alike(const char *ptx, const mutant *m, const instruction *i)
{
    enum { FRACTION = 1 << 23, ROOM = 1 << 21, EXPONENT_MOST = 255 };
    uint64_t factor, addend, now, old;
    instruction use;
    char x[TEXT_MAX] = "", sum[TEXT_MAX] = "";
    bool is_taken_off = false;
    int uses = 0;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "mad.lo.u32") ||
        !text_constant(i->operand[2], &factor) || !text_constant(i->operand[3], &addend) ||
        factor != FRACTION || addend % FRACTION != 0 || addend / FRACTION < 3 ||
        !text_constant(m->with, &now))
        return false;
    const bool is_factor = m->at < (size_t)(strstr(ptx + m->at, ";") - ptx) && ptx[m->at + m->length] == ',';
    old = is_factor ? factor : addend;
    if (now < old || (now - old) % 2 != 0 || (now - old) * (is_factor ? EXPONENT_MOST : 1) > ROOM)
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, i->operand[0]) || !text_parse(line, &use) ||
            strcmp(use.operand[0], i->operand[0]) == 0)
            continue;
        uses++;
        if (text_is_opcode(&use, "add.rn.f32") && strcmp(use.operand[2], i->operand[0]) == 0) {
            strcpy(x, use.operand[1]);
            strcpy(sum, use.operand[0]);
        } else
            is_taken_off = text_is_opcode(&use, "sub.u32") && strcmp(use.operand[1], sum) == 0;
    }
    return uses == 2 && is_taken_off && text_count_lines(ptx, i->operand[0]) == 3 &&
           text_count_lines(ptx, sum) == 2 && is_exponent_of(ptx, i->operand[1], x) &&
           is_limited_magnitude(ptx, x);
}
