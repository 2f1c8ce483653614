/* Quotients of numbers with few significant bits: they never come near a bound, or half way between two integers. */
#include "mutate/numbers.h"
#include "mutate/proofs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIVISOR_BITS = 12 };

/* Any, where the text is not understood. */
static numbers number_of(const char *ptx, const char *operand)
{
    const program *p = program_of(ptx);
    return p ? numbers_of(p, operand) : (numbers){.bits = F32_BITS};
}

/* Whether a number of them, times any power of two, lies between two integers of more than 24 bits. */
static bool has_between(const numbers *n, uint64_t least, uint64_t most)
{
    const int length = bits_length(least), cut = length - n->bits;
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
    const numbers a = number_of(ptx, def.operand[1]), b = number_of(ptx, def.operand[2]);
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

/* A register that holds one of two numbers. */
typedef struct either {
    const char *ptx, *reg;
    uint32_t c, now;
    int depth;
} either;

static bool reads_alike(const instruction *i, void *context)
{
    const either *e = context;
    either next = {e->ptx, i->operand[0], e->c, e->now, e->depth - 1};
    if (text_is_opcode(i, "mov.b32") || text_is_opcode(i, "selp.b32"))
        return next.depth > 0 && text_all_readers(e->ptx, next.reg, reads_alike, &next);
    return strcmp(i->operand[1], e->reg) != 0 && compares_alike(e->ptx, i, e->c, e->now);
}

/* Whether every comparison with the register comes out the same, whichever of both it holds. */
static bool uses_compare_alike(const char *ptx, const char *reg, uint32_t c, uint32_t now, int depth)
{
    either e = {ptx, reg, c, now, depth};
    return depth > 0 && text_all_readers(ptx, reg, reads_alike, &e);
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
        return strcmp(i->operand[2], operand) == 0 && compares_alike(ptx, i, (uint32_t)c, (uint32_t)now);
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

/* `max.s32` and `min.s32` with bounds of at most so much, one behind the other. */
static bool is_clamped(const char *ptx, const char *reg, long most)
{
    instruction first, second;
    return text_only_reader(ptx, reg, &first) && text_only_reader(ptx, first.operand[0], &second) &&
           (text_is_opcode(&first, "max.s32") || text_is_opcode(&first, "min.s32")) &&
           (text_is_opcode(&second, "max.s32") || text_is_opcode(&second, "min.s32")) &&
           strcmp(first.opcode, second.opcode) != 0 && is_bound(first.operand[2], most) &&
           is_bound(second.operand[2], most);
}

/* Whether a quotient by this divisor may lie between so many halves, times any power of two, and a neighbour of that in f32; then its rounding
 * decides whether it is that. One that is the neighbour itself is not rounded. */
static bool may_be_beside(const numbers *a, uint64_t divisor, uint64_t halves)
{
    const uint64_t tie = 2 * (halves << (F32_BITS - bits_length(halves))),
                   below = halves & (halves - 1) ? 2 : 1; /* numbers below a power of two are closer */
    return has_between(a, (tie - below) * divisor + 1, tie * divisor - 1) ||
           has_between(a, tie * divisor + 1, (tie + 2) * divisor - 1);
}

/* Whether it is on the same side however it is rounded, for all divisors. */
static bool is_never_beside(const numbers *a, const numbers *b, uint64_t halves)
{
    for (uint64_t s = UINT64_C(1) << (b->bits - 1); s < UINT64_C(1) << b->bits; s++)
        if (may_be_beside(a, s, halves))
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
        !text_only_reader(ptx, i->operand[0], &rounded) || !text_is_opcode(&rounded, "cvt.rni.s32.f32") ||
        !is_clamped(ptx, rounded.operand[0], CODES))
        return false;
    const numbers a = number_of(ptx, i->operand[1]), b = number_of(ptx, i->operand[2]);
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
    const numbers a = number_of(ptx, i->operand[1]), b = number_of(ptx, i->operand[2]);
    return b.n_others == 0 && b.bits <= DIVISOR_BITS &&
           is_only_compared(ptx, i->operand[0], &a, &b, PROOF_DEPTH);
}

/* `div q, a, c` with a constant, and q is only converted to a narrower type: rounded to nearest or toward zero, q is on the same side of all
 * numbers half way between two of that type, which have one bit more than it, or fewer. So it is where no quotient lies within a last bit of such a
 * number and is another. That covers all normal q. Below 2^-126, f32 has the multiples of 2^-149, and numbers half way are multiples of 2^-134 (or
 * far above, for f16); c = s 2^e, and a is a multiple of 2^unit: a quotient that is not half way is away from it by at least 2^(unit - e) / s or
 * 2^-134 / s, which is 2^-149 at least. */
bool quotient_narrows_alike(const char *ptx, const mutant *m, const instruction *i)
{
    float divisor;
    int e;
    if (m->kind != MUTANT_ROUNDING || !text_is_opcode(i, "div.rn.f32") || strcmp(m->with, "rz") != 0 ||
        !is_f32_constant(i->operand[2], &divisor) || !(divisor > 0x1p-20f && divisor < 0x1p20f))
        return false;
    const int bits = narrowed_bits(ptx, i->operand[0]);
    uint64_t s = (uint64_t)ldexpf(frexpf(divisor, &e), F32_BITS);
    e += bits_trailing_zeros(s) - F32_BITS;
    s >>= bits_trailing_zeros(s);
    const numbers a = number_of(ptx, i->operand[1]);
    if (bits == 0 || s >= 1 << DIVISOR_BITS || a.unit - (e > 1 ? e : 1) - bits_length(s) < F32_LEAST)
        return false;
    for (uint64_t halves = 1; halves < UINT64_C(1) << (bits + 1); halves++)
        if (may_be_beside(&a, s, halves))
            return false;
    return true;
}

/* The same of a quotient that is only encoded in 8 bits or fewer, whatever it is divided by. Below 2^-126 its code is that of 0. */
bool quotient_encodes_alike(const char *ptx, const mutant *m, const instruction *i)
{
    if (m->kind != MUTANT_ROUNDING || !text_is_opcode(i, "div.rn.f32") || strcmp(m->with, "rz") != 0)
        return false;
    const int bits = encoded_bits(ptx, i->operand[0], PROOF_DEPTH);
    const numbers a = number_of(ptx, i->operand[1]), b = number_of(ptx, i->operand[2]);
    if (bits == 0 || b.n_others || b.bits > DIVISOR_BITS)
        return false;
    for (uint64_t halves = 1; halves < UINT64_C(1) << (bits + 1); halves++)
        if (!is_never_beside(&a, &b, halves))
            return false;
    return true;
}
