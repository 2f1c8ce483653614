/* One rule for all integer instructions: what the mutant writes is the same in all bits that are used.
 *
 * Its proof by induction over the steps of a launch: as long as both programs have gone the same way, their registers agree in the bits
 * that used_bits gives for both steps. The changed step gives the same as the original in these bits, for all values that the
 * analysis of ranges allows its operands; every other step gives the same because its operands are the same in the bits that it
 * reads. */
#include "mutate/change.h"
#include "mutate/formulas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 64, LANES = 32, VALUES_MAX = 4096 };

static bool value_of(const change *c, const step *s, int operand, uint64_t *value)
{
    const range r = range_of_operand(c->r, s, operand, BITS);
    return operand < s->i.n && range_is_value(&r, value);
}

/* ---- Bits that are taken from operands ---- */

static bool bits_are_the_same(const change *c)
{
    static formulas before, after;
    const view v = {.p = c->p, .r = c->r};
    if (c->old->n_writes != 1 || !formulas_of_result(&v, c->old, &before) ||
        !formulas_of_result(&v, &c->now, &after))
        return false;
    const int reg = c->old->writes[0];
    for (int bit = 0; bit < c->p->width[reg]; bit++)
        if (c->used[reg] >> bit & 1 && !formula_is_same(&before.bits[bit], &after.bits[bit]))
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

/* A move is the same in all types of a size. */
static bool moves_the_same(const change *c)
{
    return step_starts(c->old, "mov.") && step_starts(&c->now, "mov.") &&
           same_operands(c->old, &c->now, 0, c->old->i.n - 1);
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

/* `dp4a d, a, b, c`: an addend that differs in bits that nothing is carried from, and that nobody uses. */
static bool addend_differs_below(const change *c)
{
    uint64_t before, after;
    if (!step_starts(c->old, "dp4a.") || !step_is(&c->now, c->old->i.opcode) ||
        !same_operands(c->old, &c->now, 0, 2) || !value_of(c, c->old, 3, &before) ||
        !value_of(c, &c->now, 3, &after))
        return false;
    const uint64_t lower = bits_mask(used_zeros_of_products(c->p, c->old));
    return ((before ^ after) & ~lower & UINT32_MAX) == 0 &&
           ((before ^ after) & c->used[c->old->writes[0]]) == 0;
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
    static formulas before, after;
    const view v = {.p = c->p, .r = c->r};
    bool has_sign;
    const int width = step_type(c->old, &has_sign);
    if (!step_starts(c->old, "st.") || !step_is(&c->now, c->old->i.opcode) || width == 0 ||
        c->old->i.n != 2 || !same_operands(c->old, &c->now, 0, 0) || c->old->i.operand[1][0] == '{' ||
        !formulas_of_operand(&v, c->old, 1, width, false, &before) ||
        !formulas_of_operand(&v, &c->now, 1, width, false, &after))
        return false;
    return formulas_are_same(&before, &after, width);
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

static bool (*const ways[])(const change *c) = {
    moves_the_same, bits_are_the_same, difference_is_above, comparison_is_the_same,
    has_no_sign,    converts_exactly,  lanes_are_the_same,  bytes_have_no_sign,
    loads_the_same, stores_the_same,   result_is_known,     addend_differs_below,
};

bool result_is_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    (void)i;
    if (!change_of(ptx, m, &c))
        return false;
    for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
        if (!ranges_go_to(c.r, c.at) ||
            (c.old->guard != NO_REGISTER && !ranges_assume(c.r, c.old->guard, !c.old->guard_is_negated)))
            return true; /* no launch comes here */
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
