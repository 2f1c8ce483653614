/* One rule for all integer instructions: what the mutant writes is the same in all bits that are used.
 *
 * Its proof by induction over the steps of a launch: as long as both programs have gone the same way, their registers agree in the bits
 * that used_bits gives for both steps. The changed step gives the same as the original in these bits, for all values that the
 * analysis of ranges allows its operands; every other step gives the same because its operands are the same in the bits that it
 * reads. */
#include "mutate/proofs.h"
#include "mutate/used.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 64, LANES = 32, VALUES_MAX = 4096 };

/* The step of the program, the mutant's in its place, and what is known there. */
typedef struct change {
    const program *p;
    ranges *r;
    int at;
    const step *old;
    step now;
    const uint64_t *used; /* of both */
} change;

static bool value_of(const change *c, const step *s, int operand, uint64_t *value)
{
    const range r = range_of_operand(c->r, s, operand, BITS);
    return operand < s->i.n && range_is_value(&r, value);
}

/* ---- Bits that are taken from operands ---- */

/* A bit of a result: a table of up to three bits of operands, the first of which is the highest bit of its index. */
typedef struct source {
    int reg, bit; /* NO_REGISTER: the constant `bit` */
} source;
typedef struct formula {
    bool is_known;
    int n;
    source from[3];
    uint8_t table;
} formula;
typedef formula formulas[BITS];

static formula of_constant(unsigned bit)
{
    return (formula){.is_known = true, .table = (uint8_t)bit};
}

static formula of_source(source s)
{
    if (s.reg == NO_REGISTER)
        return of_constant((unsigned)s.bit);
    return (formula){.is_known = true, .n = 1, .from = {s}, .table = 2};
}

static bool is_zero(const formula *f)
{
    return f->is_known && f->n == 0 && f->table == 0;
}

/* What is a known bit of a register is a constant. */
static source bit_of(const change *c, int reg, int bit)
{
    const range r = range_of_register(c->r, reg);
    if (bit >= c->p->width[reg] || r.zeros >> bit & 1)
        return (source){NO_REGISTER, 0};
    return r.ones >> bit & 1 ? (source){NO_REGISTER, 1} : (source){reg, bit};
}

/* The bits of an operand; those that its type does not have repeat its sign, or are 0. */
static bool operand_bits(const change *c, const step *s, int operand, int width, bool has_sign, formulas out)
{
    const range r = range_of_operand(c->r, s, operand, width);
    uint64_t value;
    for (int bit = 0; bit < BITS; bit++) {
        const int from = bit < width ? bit : width - 1;
        if (bit >= width && !has_sign)
            out[bit] = of_constant(0);
        else if (range_is_value(&r, &value))
            out[bit] = of_constant(value >> from & 1);
        else if (s->reg[operand] != NO_REGISTER)
            out[bit] = of_source(bit_of(c, s->reg[operand], from));
        else
            return false;
    }
    return true;
}

static void moved(formulas bits, int by)
{
    formulas before;
    memcpy(before, bits, sizeof before);
    for (int bit = 0; bit < BITS; bit++)
        bits[bit] = bit - by >= 0 && bit - by < BITS ? before[bit - by] : of_constant(0);
}

/* Bits that only one of the two has; from the first that both may have there may be a carry. */
static void summed(formulas a, const formulas b)
{
    bool has_carry = false;
    for (int bit = 0; bit < BITS; bit++) {
        has_carry =
            has_carry || !a[bit].is_known || !b[bit].is_known || (!is_zero(&a[bit]) && !is_zero(&b[bit]));
        if (has_carry)
            a[bit] = (formula){.is_known = false};
        else if (is_zero(&a[bit]))
            a[bit] = b[bit];
    }
}

static formula looked_up(const formula in[3], unsigned table)
{
    formula f = {.is_known = in[0].is_known && in[1].is_known && in[2].is_known};
    for (int k = 0; k < 3; k++)
        if (in[k].n > 1 || (in[k].n == 1 && in[k].table != 2))
            f.is_known = false;
    if (!f.is_known)
        return f;
    f.n = 3;
    f.table = (uint8_t)table;
    for (int k = 0; k < 3; k++)
        f.from[k] = in[k].n ? in[k].from[0] : (source){NO_REGISTER, in[k].table & 1};
    return f;
}

static bool bits_of_table(const change *c, const step *s, int width, formulas out)
{
    static const struct {
        const char *opcode;
        unsigned table;
    } tables[] = {{"and.", 0xC0}, {"or.", 0xFC}, {"xor.", 0x3C}, {"not.", 0x0F}};
    uint64_t table = 0;
    bool is_listed = step_starts(s, "lop3.") && value_of(c, s, 4, &table);
    const int operands = is_listed ? 3 : step_starts(s, "not.") ? 1 : 2;
    for (size_t k = 0; k < sizeof tables / sizeof tables[0] && !is_listed; k++)
        if ((is_listed = step_starts(s, tables[k].opcode)))
            table = tables[k].table;
    formulas in[3];
    for (int k = 0; k < 3 && is_listed; k++)
        if (k >= operands)
            for (int bit = 0; bit < BITS; bit++)
                in[k][bit] = of_constant(0);
        else
            is_listed = operand_bits(c, s, k + 1, width, false, in[k]);
    for (int bit = 0; bit < BITS && is_listed; bit++) {
        const formula bits[3] = {in[0][bit], in[1][bit], in[2][bit]};
        out[bit] = bit < width ? looked_up(bits, (unsigned)table) : of_constant(0);
    }
    return is_listed;
}

/* `mul x, 2^k`, and with an addend. */
static bool bits_of_product(const change *c, const step *s, int width, bool has_sign, formulas out)
{
    uint64_t factor;
    const bool is_wide = strstr(s->i.opcode, ".wide.") != NULL;
    if (!value_of(c, s, 2, &factor) || (factor & (factor - 1)) != 0 ||
        !operand_bits(c, s, 1, width, has_sign && is_wide, out))
        return false;
    int shift = 0;
    while (factor > 1 && !(factor >> shift & 1))
        shift++;
    moved(out, factor ? shift : BITS);
    formulas addend;
    if (!step_starts(s, "mad."))
        return true;
    if (!operand_bits(c, s, 3, is_wide ? 2 * width : width, false, addend))
        return false;
    summed(out, addend);
    return true;
}

static bool bits_of_shift(const change *c, const step *s, int width, bool has_sign, formulas out)
{
    uint64_t by;
    const bool is_left = step_starts(s, "shl.");
    if (!value_of(c, s, 2, &by) || !operand_bits(c, s, 1, width, has_sign && !is_left, out))
        return false;
    by = by < (uint64_t)width ? by : (uint64_t)width;
    const formula top = out[BITS - 1];
    moved(out, is_left ? (int)by : -(int)by);
    for (int bit = BITS - (int)by; bit < BITS && !is_left; bit++)
        out[bit] = has_sign ? top : of_constant(0);
    return true;
}

static bool bits_of_field(const change *c, const step *s, int width, bool has_sign, formulas out)
{
    uint64_t position, count;
    if (width != 32 || !value_of(c, s, 2, &position) || !value_of(c, s, 3, &count) ||
        !operand_bits(c, s, 1, width, has_sign, out))
        return false;
    position &= 0xFF;
    count &= 0xFF;
    if (position > 31 || count > 32)
        return false;
    moved(out, -(int)position);
    if (count > 32 - position)
        count = 32 - position;
    const formula top = has_sign && count ? out[count - 1] : of_constant(0);
    for (int bit = (int)count; bit < BITS; bit++)
        out[bit] = top;
    return true;
}

static bool bits_of_insertion(const change *c, const step *s, formulas out)
{
    uint64_t position, count;
    formulas field;
    if (!step_is(s, "bfi.b32") || !value_of(c, s, 3, &position) || !value_of(c, s, 4, &count) ||
        position > 255 || count > 255 || !operand_bits(c, s, 1, 32, false, field) ||
        !operand_bits(c, s, 2, 32, false, out))
        return false;
    for (int bit = (int)position; bit < 32 && bit < (int)(position + count); bit++)
        out[bit] = field[bit - (int)position];
    return true;
}

static bool bits_of_permutation(const change *c, const step *s, formulas out)
{
    uint64_t selector;
    formulas in[2];
    if (!step_is(s, "prmt.b32") || !value_of(c, s, 3, &selector) ||
        !operand_bits(c, s, 1, 32, false, in[0]) || !operand_bits(c, s, 2, 32, false, in[1]))
        return false;
    for (int bit = 0; bit < BITS; bit++) {
        const unsigned from = bit < 32 ? selector >> 4 * (bit / 8) & 15 : 0;
        out[bit] = bit < 32 ? in[from >> 2 & 1][8 * (from & 3) + (from & 8 ? 7 : (unsigned)bit % 8)]
                            : of_constant(0);
    }
    return true;
}

/* `cvt.u32.u16`. */
static bool bits_of_conversion(const change *c, const step *s, formulas out)
{
    int to = 0, from = 0;
    char kind = 0, type = 0;
    if (strlen(s->i.opcode) > strlen("cvt.u32.u16") ||
        sscanf(s->i.opcode, "cvt.%c%d.%c%d", &kind, &to, &type, &from) != 4 || !strchr("us", kind) ||
        !strchr("us", type) || !operand_bits(c, s, 1, from, type == 's', out))
        return false;
    for (int bit = to; bit < BITS; bit++)
        out[bit] = kind == 's' ? out[to - 1] : of_constant(0);
    return true;
}

/* One of two operands, where it is known which. */
static bool bits_of_choice(const change *c, const step *s, int width, bool has_sign, formulas out)
{
    const range a = range_of_operand(c->r, s, 1, width), b = range_of_operand(c->r, s, 2, width);
    const range p = range_of_operand(c->r, s, 3, 1);
    const bool is_min = step_starts(s, "min."),
               first_is_less = has_sign ? a.high <= b.low : a.most <= b.least;
    const bool second_is_less = has_sign ? b.high <= a.low : b.most <= a.least;
    int taken = 0;
    if (step_starts(s, "selp."))
        taken = p.least == 1 ? 1 : p.most == 0 ? 2 : 0;
    else if (first_is_less || second_is_less)
        taken = first_is_less == is_min ? 1 : 2;
    return taken && operand_bits(c, s, taken, width, false, out);
}

static bool bits_of_half(const change *c, const step *s, formulas out)
{
    formulas high;
    if (s->n_reads != 2 || s->n_writes != 1)
        return false;
    const int half = c->p->width[s->writes[0]] / 2;
    for (int bit = 0; bit < BITS; bit++) {
        out[bit] = bit < half ? of_source(bit_of(c, s->reads[0], bit)) : of_constant(0);
        high[bit] = bit < half ? of_source(bit_of(c, s->reads[1], bit)) : of_constant(0);
    }
    moved(high, half);
    summed(out, high);
    return true;
}

static bool bits_of_result(const change *c, const step *s, formulas out)
{
    bool has_sign;
    const int width = step_type(s, &has_sign);
    if (s->n_writes != 1 || width == 0)
        return false;
    if (step_starts(s, "mov."))
        return s->i.operand[1][0] == '{' ? bits_of_half(c, s, out) : operand_bits(c, s, 1, width, false, out);
    if (step_starts(s, "cvt."))
        return bits_of_conversion(c, s, out);
    if (step_starts(s, "shl.") || step_starts(s, "shr."))
        return bits_of_shift(c, s, width, has_sign, out);
    if (step_starts(s, "bfe."))
        return bits_of_field(c, s, width, has_sign, out);
    if (step_starts(s, "bfi."))
        return bits_of_insertion(c, s, out);
    if (step_starts(s, "prmt."))
        return bits_of_permutation(c, s, out);
    if (step_starts(s, "min.") || step_starts(s, "max.") || step_starts(s, "selp."))
        return bits_of_choice(c, s, width, has_sign, out);
    if (step_starts(s, "mul.lo.") || step_starts(s, "mad.lo.") || step_starts(s, "mul.wide.") ||
        step_starts(s, "mad.wide."))
        return bits_of_product(c, s, width, has_sign, out);
    formulas other;
    if (step_starts(s, "add.") && operand_bits(c, s, 1, width, false, out) &&
        operand_bits(c, s, 2, width, false, other)) {
        summed(out, other);
        return true;
    }
    return bits_of_table(c, s, width, out);
}

/* The formula's bit for an assignment of the sources of both formulas. */
static unsigned outcome(const formula *f, const source *known, int n, unsigned values)
{
    unsigned index = 0;
    for (int k = 0; k < f->n; k++) {
        unsigned bit = (unsigned)f->from[k].bit & 1;
        for (int j = 0; j < n && f->from[k].reg != NO_REGISTER; j++)
            if (known[j].reg == f->from[k].reg && known[j].bit == f->from[k].bit)
                bit = values >> j & 1;
        index = index << 1 | bit;
    }
    return f->table >> index & 1;
}

static bool agree(const formula *a, const formula *b)
{
    const formula *all[2] = {a, b};
    source known[6];
    int n = 0;
    if (!a->is_known || !b->is_known)
        return false;
    for (int f = 0; f < 2; f++)
        for (int k = 0; k < all[f]->n; k++) {
            bool is_new = all[f]->from[k].reg != NO_REGISTER;
            for (int j = 0; j < n; j++)
                is_new =
                    is_new && !(known[j].reg == all[f]->from[k].reg && known[j].bit == all[f]->from[k].bit);
            if (is_new)
                known[n++] = all[f]->from[k];
        }
    for (unsigned values = 0; values < 1u << n; values++)
        if (outcome(a, known, n, values) != outcome(b, known, n, values))
            return false;
    return true;
}

static bool bits_are_the_same(const change *c)
{
    static formulas before, after;
    if (c->old->n_writes != 1)
        return false;
    const int reg = c->old->writes[0];
    if (!bits_of_result(c, c->old, before) || !bits_of_result(c, &c->now, after))
        return false;
    for (int bit = 0; bit < c->p->width[reg]; bit++)
        if (c->used[reg] >> bit & 1 && !agree(&before[bit], &after[bit]))
            return false;
    return true;
}

/* ---- Differences of sums ---- */

/* A sum of registers times constants, and of a product of two registers. */
enum { TERMS_MAX = 8 };
typedef struct term {
    int reg, other; /* other: the second register of a product */
    bool has_sign;  /* it is extended with its sign */
    uint64_t factor;
} term;
typedef struct sum {
    term terms[TERMS_MAX];
    int n;
    uint64_t constant;
} sum;

static void add_term(sum *s, term t)
{
    for (int k = 0; k < s->n; k++)
        if (s->terms[k].reg == t.reg && s->terms[k].other == t.other && s->terms[k].has_sign == t.has_sign) {
            s->terms[k].factor += t.factor;
            return;
        }
    if (s->n < TERMS_MAX)
        s->terms[s->n++] = t;
}

/* Adds an operand times a factor. `width` of the operand: where it is extended, a register that is never negative has no sign. */
static bool add_operand(const change *c, const step *s, int operand, int width, bool has_sign,
                        uint64_t factor, sum *out)
{
    const range r = range_of_operand(c->r, s, operand, width);
    uint64_t value;
    if (range_is_value(&r, &value)) {
        out->constant += factor * (has_sign ? (uint64_t)r.low : value);
        return true;
    }
    if (s->reg[operand] == NO_REGISTER)
        return false;
    add_term(out, (term){s->reg[operand], NO_REGISTER, has_sign && r.low < 0, factor});
    return true;
}

static bool add_product(const change *c, const step *s, int width, bool has_sign, uint64_t factor, sum *out)
{
    for (int k = 1; k <= 2; k++) {
        const range r = range_of_operand(c->r, s, k, width);
        uint64_t value;
        if (range_is_value(&r, &value))
            return add_operand(c, s, 3 - k, width, has_sign, factor * (has_sign ? (uint64_t)r.low : value),
                               out);
    }
    const range a = range_of_operand(c->r, s, 1, width), b = range_of_operand(c->r, s, 2, width);
    if (s->reg[1] == NO_REGISTER || s->reg[2] == NO_REGISTER)
        return false;
    const int first = s->reg[1] < s->reg[2] ? s->reg[1] : s->reg[2];
    add_term(out, (term){first, first == s->reg[1] ? s->reg[2] : s->reg[1],
                         has_sign && (a.low < 0 || b.low < 0), factor});
    return true;
}

/* Adds what the step makes, times a factor; false where it is no sum. */
static bool add_result(const change *c, const step *s, uint64_t factor, sum *out)
{
    bool has_sign;
    const int width = step_type(s, &has_sign);
    if (width == 0 || s->n_writes != 1)
        return false;
    if (step_starts(s, "add.") || step_starts(s, "sub."))
        return add_operand(c, s, 1, width, false, factor, out) &&
               add_operand(c, s, 2, width, false, step_starts(s, "sub.") ? 0 - factor : factor, out);
    if (step_starts(s, "mov."))
        return s->i.operand[1][0] != '{' && add_operand(c, s, 1, width, false, factor, out);
    const bool is_wide = strstr(s->i.opcode, ".wide.") != NULL, is_low = strstr(s->i.opcode, ".lo.") != NULL;
    if (!(step_starts(s, "mul.") || step_starts(s, "mad.")) || !(is_wide || is_low))
        return false;
    return add_product(c, s, width, has_sign && is_wide, factor, out) &&
           (!step_starts(s, "mad.") || add_operand(c, s, 3, is_wide ? 2 * width : width, false, factor, out));
}

/* The two results differ by a multiple of a power of two that is above all used bits. */
static bool difference_is_above(const change *c)
{
    sum difference = {.n = 0};
    if (c->old->n_writes != 1 || !add_result(c, &c->now, 1, &difference) ||
        !add_result(c, c->old, UINT64_MAX, &difference))
        return false;
    const int reg = c->old->writes[0];
    int zeros = bits_trailing_zeros(difference.constant);
    for (int k = 0; k < difference.n; k++) {
        const term *t = &difference.terms[k];
        int of_term =
            bits_trailing_zeros(t->factor) + bits_trailing_zeros(~range_of_register(c->r, t->reg).zeros);
        if (t->other != NO_REGISTER)
            of_term += bits_trailing_zeros(~range_of_register(c->r, t->other).zeros);
        if (t->factor != 0 && of_term < zeros)
            zeros = of_term;
    }
    return zeros >= BITS || (c->used[reg] & bits_mask(c->p->width[reg])) >> zeros == 0;
}

/* ---- Comparisons ---- */

static bool same_operands(const step *a, const step *b, int from, int to)
{
    for (int k = from; k <= to; k++)
        if (strcmp(a->i.operand[k], b->i.operand[k]) != 0)
            return false;
    return a->i.n == b->i.n;
}

static bool comes_out(const step *s, uint64_t a, uint64_t b, int width, bool has_sign)
{
    const uint64_t sign = has_sign ? UINT64_C(1) << (width - 1) : 0;
    a = (a & bits_mask(width)) ^ sign;
    b = (b & bits_mask(width)) ^ sign;
    return range_relations(s, true) & (a < b ? RANGE_BELOW : a == b ? RANGE_EQUAL : RANGE_ABOVE);
}

/* Another constant: no value that the register may have lies between the two. */
static bool nothing_is_between(const change *c, int width, bool has_sign)
{
    const range x = range_of_operand(c->r, c->old, 1, width);
    uint64_t before, after;
    if (!same_operands(c->old, &c->now, 1, 1) || !value_of(c, c->old, 2, &before) ||
        !value_of(c, &c->now, 2, &after))
        return false;
    const uint64_t low = before < after ? before : after, high = before < after ? after : before;
    const bool tests_equality = step_starts(c->old, "setp.eq") || step_starts(c->old, "setp.ne");
    if (tests_equality)
        return !range_has(&x, width, before & bits_mask(width)) &&
               !range_has(&x, width, after & bits_mask(width));
    if (high - low > VALUES_MAX)
        return (x.most < low || x.least > high) && !has_sign;
    for (uint64_t value = low ? low - 1 : 0; value <= high + 1 && value >= (low ? low - 1 : 0); value++)
        if (range_has(&x, width, value & bits_mask(width)) &&
            comes_out(c->old, value, before, width, has_sign) !=
                comes_out(&c->now, value, after, width, has_sign))
            return false;
    return true;
}

/* Whether the sign bits of both operands are the same in all cases: then they compare the same with and without them. */
static bool have_one_sign(const change *c, int width)
{
    const range a = range_of_operand(c->r, c->old, 1, width), b = range_of_operand(c->r, c->old, 2, width);
    return (a.low >= 0 && b.low >= 0) || (a.high < 0 && b.high < 0);
}

static bool comparison_is_the_same(const change *c)
{
    bool has_sign, has_sign_now;
    const int width = step_type(c->old, &has_sign);
    if (!step_starts(c->old, "setp.") || !step_starts(&c->now, "setp.") || width < 16 ||
        step_type(&c->now, &has_sign_now) != width || c->old->i.n != c->now.i.n)
        return false;
    const bool joins_and = strstr(c->old->i.opcode, ".and.") != NULL;
    if (c->old->i.n > 3 &&
        (!same_operands(c->old, &c->now, 3, 3) || joins_and != (strstr(c->now.i.opcode, ".and.") != NULL)))
        return false;
    /* `.and.` with a predicate: what is compared matters where that is true; `.or.`: where it is false. */
    if (c->old->i.n > 3 && c->old->reg[3] != NO_REGISTER && !ranges_assume(c->r, c->old->reg[3], joins_and))
        return true;
    if (has_sign != has_sign_now)
        return same_operands(c->old, &c->now, 1, 2) &&
               (step_starts(c->old, "setp.eq") || step_starts(c->old, "setp.ne") || have_one_sign(c, width));
    const unsigned before = range_relations_now(c->r, c->old), after = range_relations_now(c->r, &c->now);
    const unsigned is_true = range_relations(c->old, true), is_true_now = range_relations(&c->now, true);
    if ((before & ~is_true) == 0 ? (after & ~is_true_now) == 0
                                 : (before & is_true) == 0 && (after & is_true_now) == 0)
        return true;
    if (same_operands(c->old, &c->now, 1, 2))
        return (before & (is_true ^ is_true_now)) == 0;
    return nothing_is_between(c, width, has_sign);
}

/* ---- Other instructions ---- */

static bool is_same_but_for_type(const change *c)
{
    const char *type = strrchr(c->old->i.opcode, '.');
    return strncmp(c->old->i.opcode, c->now.i.opcode, (size_t)(type - c->old->i.opcode)) == 0;
}

/* Operands without a sign give the same in both types. */
static bool has_no_sign(const change *c)
{
    static const char *const opcodes[] = {"mul.hi.", "mad.hi.", "div.",        "rem.",
                                          "min.",    "max.",    "cvt.rn.f32.", "cvt.rn.f64."};
    bool is_listed = false, has_sign;
    const int width = step_type(c->old, &has_sign);
    for (size_t k = 0; k < sizeof opcodes / sizeof opcodes[0]; k++)
        is_listed = is_listed || step_starts(c->old, opcodes[k]);
    if (!is_listed || !is_same_but_for_type(c) || step_type(&c->now, &has_sign) != width ||
        !same_operands(c->old, &c->now, 0, c->old->i.n - 1))
        return false;
    for (int k = 1; k < c->old->i.n; k++)
        if (range_of_operand(c->r, c->old, k, width).low < 0)
            return false;
    return true;
}

/* An integer of at most 24 bits, besides zeros behind them, is an f32. */
static bool converts_exactly(const change *c)
{
    bool has_sign;
    const int width = step_type(c->old, &has_sign);
    char from[16], to[16];
    if (width == 0 || sscanf(c->old->i.opcode, "cvt.r%*c.f32.%15s", from) != 1 ||
        sscanf(c->now.i.opcode, "cvt.r%*c.f32.%15s", to) != 1 || strcmp(from, to) != 0 ||
        !same_operands(c->old, &c->now, 0, 1))
        return false;
    const range r = range_of_operand(c->r, c->old, 1, width);
    const uint64_t unit = UINT64_C(1)
                          << (bits_trailing_zeros(~r.zeros) < 32 ? bits_trailing_zeros(~r.zeros) : 32);
    const uint64_t below = r.low < 0 ? 0 - (uint64_t)r.low : 0;
    const uint64_t most = !has_sign                                ? r.most
                          : r.high > 0 && (uint64_t)r.high > below ? (uint64_t)r.high
                                                                   : below;
    return most / unit <= 1u << 24;
}

/* The lane that a lane takes from: of shfl with this index, last lane and mask. */
static unsigned lane_of(const step *s, unsigned lane, unsigned index, unsigned fields)
{
    const unsigned segment = fields >> 8 & 31, last = (lane & segment) | (fields & 31 & ~segment);
    const unsigned first = lane & segment;
    unsigned from;
    if (step_starts(s, "shfl.sync.idx"))
        from = first | (index & ~segment & 31);
    else if (step_starts(s, "shfl.sync.bfly"))
        from = lane ^ (index & 31);
    else if (step_starts(s, "shfl.sync.down"))
        from = lane + (index & 31);
    else { /* up: not below the field, which is the first lane here */
        const int up = (int)lane - (int)(index & 31);
        return up >= (int)last ? (unsigned)up : lane;
    }
    return from <= last ? from : lane;
}

/* All lanes take from the same lanes, for every index that may come. */
static bool lanes_are_the_same(const change *c)
{
    if (!step_starts(c->old, "shfl.sync.") || !step_is(&c->now, c->old->i.opcode) || c->old->i.n != 5 ||
        !same_operands(c->old, &c->now, 0, 1) || !same_operands(c->old, &c->now, 4, 4))
        return false;
    const range before = range_of_operand(c->r, c->old, 2, 32),
                after = range_of_operand(c->r, &c->now, 2, 32);
    const bool is_one = same_operands(c->old, &c->now, 2, 2);
    uint64_t a, b, x, y;
    if (!value_of(c, c->old, 3, &a) || !value_of(c, &c->now, 3, &b) ||
        (!is_one && (!range_is_value(&before, &x) || !range_is_value(&after, &y))))
        return false;
    for (unsigned index = 0; index < LANES; index++) {
        const bool may_be = (before.zeros & index) == 0 && (before.ones & ~index & 31) == 0 &&
                            (before.most >= LANES || (index >= before.least && index <= before.most));
        const unsigned now = is_one ? index : (unsigned)after.least & 31;
        for (unsigned lane = 0; lane < LANES && may_be; lane++)
            if (lane_of(c->old, lane, index, (unsigned)a) != lane_of(&c->now, lane, now, (unsigned)b))
                return false;
    }
    return true;
}

/* `dp4a.s32.u32`: bytes below 128 are the same number with a sign and without. */
static bool bytes_have_no_sign(const change *c)
{
    char before[2][4], after[2][4];
    if (sscanf(c->old->i.opcode, "dp4a.%3[us32].%3[us32]", before[0], before[1]) != 2 ||
        sscanf(c->now.i.opcode, "dp4a.%3[us32].%3[us32]", after[0], after[1]) != 2 ||
        !same_operands(c->old, &c->now, 0, 3))
        return false;
    for (int k = 0; k < 2; k++)
        if (strcmp(before[k], after[k]) != 0 &&
            (range_of_operand(c->r, c->old, 1 + k, 32).zeros & 0x80808080) != 0x80808080)
            return false;
    return true;
}

/* `ld.u8` and `ld.s8` differ above the byte. */
static bool loads_the_same(const change *c)
{
    bool has_sign;
    const int width = step_type(c->old, &has_sign);
    if (!step_starts(c->old, "ld.") || !step_starts(&c->now, "ld.") || c->old->n_writes != 1 || width == 0 ||
        step_type(&c->now, &has_sign) != width || !same_operands(c->old, &c->now, 0, 1) ||
        !is_same_but_for_type(c))
        return false;
    return (c->used[c->old->writes[0]] & ~bits_mask(width)) == 0;
}

/* A store of the same bits at the same place. */
static bool stores_the_same(const change *c)
{
    formulas before, after;
    bool has_sign;
    const int width = step_type(c->old, &has_sign);
    if (!step_starts(c->old, "st.") || !step_is(&c->now, c->old->i.opcode) || width == 0 ||
        c->old->i.n != 2 || !same_operands(c->old, &c->now, 0, 0) || c->old->i.operand[1][0] == '{' ||
        !operand_bits(c, c->old, 1, width, false, before) ||
        !operand_bits(c, &c->now, 1, width, false, after))
        return false;
    for (int bit = 0; bit < width; bit++)
        if (!agree(&before[bit], &after[bit]))
            return false;
    return true;
}

/* Nobody looks at it, or it is known to be the same number. */
static bool result_is_known(const change *c)
{
    if (c->old->n_writes != 1 || strncmp(c->old->i.opcode, "ld.", 3) == 0 || step_starts(c->old, "atom"))
        return false;
    const range before = range_of_result(c->r, c->old), after = range_of_result(c->r, &c->now);
    uint64_t a, b;
    return range_is_value(&before, &a) && range_is_value(&after, &b) && a == b;
}

/* ---- The rule ---- */

static bool parse_change(const char *ptx, const mutant *m, change *c)
{
    static char line[512];
    c->p = program_of(ptx);
    c->r = c->p ? ranges_of(c->p) : NULL;
    c->at = c->r ? program_step_at(c->p, m->at) : NO_STEP;
    if (c->at == NO_STEP)
        return false;
    c->old = &c->p->steps[c->at];
    const size_t length = strcspn(c->old->line, "\n"), before = (size_t)(c->p->text + m->at - c->old->line);
    if (length + sizeof m->with >= sizeof line || before + m->length > length)
        return false;
    snprintf(line, sizeof line, "%.*s%s%.*s\n", (int)before, c->old->line, m->with,
             (int)(length - before - m->length), c->old->line + before + m->length);
    return program_parse(c->p, line, &c->now) && c->now.guard == c->old->guard &&
           c->now.guard_is_negated == c->old->guard_is_negated && c->now.n_writes == c->old->n_writes &&
           memcmp(c->now.writes, c->old->writes, sizeof c->now.writes) == 0;
}

/* A register that the mutant reads has been written wherever it is read. */
static bool reads_what_is_written(const change *c)
{
    for (int k = 0; k < c->now.n_reads; k++) {
        bool is_old = false;
        for (int j = 0; j < c->old->n_reads; j++)
            is_old = is_old || c->old->reads[j] == c->now.reads[k];
        if (!is_old && !text_is_written_before(c->p->text, c->p->names[c->now.reads[k]], c->old->line))
            return false;
    }
    return true;
}

static bool (*const ways[])(const change *c) = {
    bits_are_the_same,  difference_is_above, comparison_is_the_same, has_no_sign,     converts_exactly,
    lanes_are_the_same, bytes_have_no_sign,  loads_the_same,         stores_the_same, result_is_known,
};

bool result_is_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    (void)i;
    if (m->kind == MUTANT_DELETION || m->kind == MUTANT_PREDICATE || !parse_change(ptx, m, &c) ||
        !reads_what_is_written(&c))
        return false;
    c.used = used_bits(c.p, c.at, &c.now);
    for (size_t k = 0; k < sizeof ways / sizeof ways[0] && c.used; k++) {
        if (!ranges_go_to(c.r, c.at))
            return false;
        if (c.old->guard != NO_REGISTER && !ranges_assume(c.r, c.old->guard, !c.old->guard_is_negated))
            return false;
        if (ways[k](&c))
            return true;
    }
    return false;
}

/* The largest value of a register that is written once, or of a constant. */
uint64_t most_of(const char *ptx, const char *operand, int depth)
{
    const program *p = program_of(ptx);
    ranges *r = p ? ranges_of(p) : NULL;
    const int reg = p ? program_register(p, operand) : NO_REGISTER;
    uint64_t value;
    (void)depth;
    if (text_constant(operand, &value))
        return value < UINT32_MAX ? value : UINT32_MAX;
    if (!r || reg == NO_REGISTER || p->definitions[reg] != 1)
        return UINT32_MAX;
    for (int k = 0; k < p->n_steps; k++)
        if (p->steps[k].n_writes == 1 && p->steps[k].writes[0] == reg && ranges_go_to(r, k)) {
            const range result = range_of_result(r, &p->steps[k]);
            return result.most < UINT32_MAX ? result.most : UINT32_MAX;
        }
    return UINT32_MAX;
}
