#include "mutate/formulas.h"

#include <stdio.h>
#include <string.h>

/* ---- Functions of a few bits ---- */

static formula of_constant(unsigned bit)
{
    return (formula){.is_known = true, .table = bit};
}

static bool is_zero(const formula *f)
{
    return f->is_known && f->n == 0 && f->table == 0;
}

static int compare(const source *a, const source *b)
{
    return a->reg != b->reg           ? (a->reg < b->reg ? -1 : 1)
           : a->version != b->version ? (a->version < b->version ? -1 : 1)
                                      : (a->bit > b->bit) - (a->bit < b->bit);
}

bool formula_is_same(const formula *a, const formula *b)
{
    if (!a->is_known || !b->is_known || a->n != b->n || a->table != b->table)
        return false;
    for (int k = 0; k < a->n; k++)
        if (compare(&a->from[k], &b->from[k]) != 0)
            return false;
    return true;
}

bool formulas_are_same(const formulas *a, const formulas *b, int width)
{
    for (int bit = 0; bit < width; bit++)
        if (!formula_is_same(&a->bits[bit], &b->bits[bit]))
            return false;
    return true;
}

/* Puts the source into its place, if it is new; false where there are too many. */
static bool add_source(formula *f, const source *s)
{
    int place = 0;
    while (place < f->n && compare(&f->from[place], s) < 0)
        place++;
    if (place < f->n && compare(&f->from[place], s) == 0)
        return true;
    if (f->n == FORMULA_SOURCES)
        return false;
    memmove(&f->from[place + 1], &f->from[place], (size_t)(f->n - place) * sizeof *s);
    f->from[place] = *s;
    f->n++;
    return true;
}

/* The bit of a formula whose sources are among those of another, which have these values. */
static unsigned value_at(const formula *f, const formula *all, unsigned values)
{
    unsigned index = 0;
    for (int k = 0; k < f->n; k++)
        for (int j = 0; j < all->n; j++)
            if (compare(&f->from[k], &all->from[j]) == 0)
                index |= (values >> j & 1) << k;
    return f->table >> index & 1;
}

/* Takes out a source that does not matter; false where all do. */
static bool simplify(formula *f)
{
    for (int k = 0; k < f->n; k++) {
        uint64_t table = 0;
        bool matters = false;
        for (unsigned i = 0; i < 1u << (f->n - 1); i++) {
            const unsigned low = i & ((1u << k) - 1), with_0 = (i - low) << 1 | low,
                           with_1 = with_0 | 1u << k;
            matters = matters || (f->table >> with_0 & 1) != (f->table >> with_1 & 1);
            table |= (f->table >> with_0 & 1) << i;
        }
        if (matters)
            continue;
        memmove(&f->from[k], &f->from[k + 1], (size_t)(f->n - k - 1) * sizeof f->from[0]);
        f->n--;
        f->table = table;
        return true;
    }
    return false;
}

/* Bit a * 4 + b * 2 + c of the table, as lop3 has it. */
static formula looked_up(const formula in[3], unsigned table)
{
    formula f = {.is_known = in[0].is_known && in[1].is_known && in[2].is_known};
    for (int k = 0; k < 3 && f.is_known; k++)
        for (int j = 0; j < in[k].n && f.is_known; j++)
            f.is_known = add_source(&f, &in[k].from[j]);
    if (!f.is_known)
        return (formula){.is_known = false};
    for (unsigned values = 0; values < 1u << f.n; values++) {
        const unsigned index = value_at(&in[0], &f, values) << 2 | value_at(&in[1], &f, values) << 1 |
                               value_at(&in[2], &f, values);
        f.table |= (uint64_t)(table >> index & 1) << values;
    }
    while (simplify(&f))
        ;
    return f;
}

/* ---- Operands ---- */

static bool is_other(const view *v, int reg)
{
    return v->is_other && reg != NO_REGISTER && v->is_other[reg];
}

range view_range(const view *v, const step *s, int operand, int width)
{
    step unknown = *s;
    if (operand < s->i.n && is_other(v, s->reg[operand])) {
        unknown.reg[operand] = NO_REGISTER;
        strcpy(unknown.i.operand[operand], "?");
    }
    return range_of_operand(v->r, &unknown, operand, width);
}

static bool value_of(const view *v, const step *s, int operand, uint64_t *value)
{
    const range r = view_range(v, s, operand, FORMULA_BITS);
    return operand < s->i.n && range_is_value(&r, value);
}

/* What is a known bit of a register is a constant. */
static formula bit_of(const view *v, int reg, int bit)
{
    if (bit >= v->p->width[reg])
        return of_constant(0);
    if (!is_other(v, reg)) {
        const range r = range_of_register(v->r, reg);
        if ((r.zeros | r.ones) >> bit & 1)
            return of_constant(r.ones >> bit & 1);
    }
    if (v->made_of && v->made_of[reg])
        return v->made_of[reg]->bits[bit];
    return (formula){
        .is_known = true, .n = 1, .from = {{reg, v->version ? v->version[reg] : NO_STEP, bit}}, .table = 2};
}

bool formulas_of_operand(const view *v, const step *s, int operand, int width, bool has_sign, formulas *out)
{
    uint64_t value = 0;
    const bool has_value = value_of(v, s, operand, &value);
    if (operand >= s->i.n || (!has_value && s->reg[operand] == NO_REGISTER))
        return false;
    for (int bit = 0; bit < FORMULA_BITS; bit++) {
        const int from = bit < width ? bit : width - 1;
        if (bit >= width && !has_sign)
            out->bits[bit] = of_constant(0);
        else
            out->bits[bit] = has_value ? of_constant(value >> from & 1) : bit_of(v, s->reg[operand], from);
    }
    return true;
}

/* ---- Results ---- */

static void moved(formulas *bits, int by)
{
    const formulas before = *bits;
    for (int bit = 0; bit < FORMULA_BITS; bit++)
        bits->bits[bit] = bit - by >= 0 && bit - by < FORMULA_BITS ? before.bits[bit - by] : of_constant(0);
}

/* Bits that only one of the two has; from the first that both may have there may be a carry. */
static void summed(formulas *a, const formulas *b)
{
    bool has_carry = false;
    for (int bit = 0; bit < FORMULA_BITS; bit++) {
        formula *x = &a->bits[bit];
        const formula *y = &b->bits[bit];
        has_carry = has_carry || !x->is_known || !y->is_known || (!is_zero(x) && !is_zero(y));
        if (has_carry)
            *x = (formula){.is_known = false};
        else if (is_zero(x))
            *x = *y;
    }
}

static bool bits_of_table(const view *v, const step *s, int width, formulas *out)
{
    static const struct {
        const char *opcode;
        unsigned table;
    } tables[] = {{"and.", 0xC0}, {"or.", 0xFC}, {"xor.", 0x3C}, {"not.", 0x0F}};
    uint64_t table = 0;
    bool is_listed = step_starts(s, "lop3.") && value_of(v, s, 4, &table);
    const int operands = is_listed ? 3 : step_starts(s, "not.") ? 1 : 2;
    for (size_t k = 0; k < sizeof tables / sizeof tables[0] && !is_listed; k++)
        if ((is_listed = step_starts(s, tables[k].opcode)))
            table = tables[k].table;
    formulas in[3];
    for (int k = 0; k < 3 && is_listed; k++)
        if (k >= operands)
            for (int bit = 0; bit < FORMULA_BITS; bit++)
                in[k].bits[bit] = of_constant(0);
        else
            is_listed = formulas_of_operand(v, s, k + 1, width, false, &in[k]);
    for (int bit = 0; bit < FORMULA_BITS && is_listed; bit++) {
        const formula bits[3] = {in[0].bits[bit], in[1].bits[bit], in[2].bits[bit]};
        out->bits[bit] = bit < width ? looked_up(bits, (unsigned)table) : of_constant(0);
    }
    return is_listed;
}

/* `mul x, 2^k`, and with an addend. */
static bool bits_of_product(const view *v, const step *s, int width, bool has_sign, formulas *out)
{
    uint64_t factor;
    const bool is_wide = strstr(s->i.opcode, ".wide.") != NULL;
    if (!value_of(v, s, 2, &factor) || (factor & (factor - 1)) != 0 ||
        !formulas_of_operand(v, s, 1, width, has_sign && is_wide, out))
        return false;
    int shift = 0;
    while (factor > 1 && !(factor >> shift & 1))
        shift++;
    moved(out, factor ? shift : FORMULA_BITS);
    formulas addend;
    if (!step_starts(s, "mad."))
        return true;
    if (!formulas_of_operand(v, s, 3, is_wide ? 2 * width : width, false, &addend))
        return false;
    summed(out, &addend);
    return true;
}

static bool bits_of_shift(const view *v, const step *s, int width, bool has_sign, formulas *out)
{
    uint64_t by;
    const bool is_left = step_starts(s, "shl.");
    if (!value_of(v, s, 2, &by) || !formulas_of_operand(v, s, 1, width, has_sign && !is_left, out))
        return false;
    by = by < (uint64_t)width ? by : (uint64_t)width;
    const formula top = out->bits[FORMULA_BITS - 1];
    moved(out, is_left ? (int)by : -(int)by);
    for (int bit = FORMULA_BITS - (int)by; bit < FORMULA_BITS && !is_left; bit++)
        out->bits[bit] = has_sign ? top : of_constant(0);
    return true;
}

static bool bits_of_field(const view *v, const step *s, int width, bool has_sign, formulas *out)
{
    uint64_t position, count;
    if (width != 32 || !value_of(v, s, 2, &position) || !value_of(v, s, 3, &count) ||
        !formulas_of_operand(v, s, 1, width, has_sign, out))
        return false;
    position &= 0xFF;
    count &= 0xFF;
    if (position > 31 || count > 32)
        return false;
    moved(out, -(int)position);
    if (count > 32 - position)
        count = 32 - position;
    const formula top = has_sign && count ? out->bits[count - 1] : of_constant(0);
    for (int bit = (int)count; bit < FORMULA_BITS; bit++)
        out->bits[bit] = top;
    return true;
}

static bool bits_of_insertion(const view *v, const step *s, formulas *out)
{
    uint64_t position, count;
    formulas field;
    if (!step_is(s, "bfi.b32") || !value_of(v, s, 3, &position) || !value_of(v, s, 4, &count) ||
        position > 255 || count > 255 || !formulas_of_operand(v, s, 1, 32, false, &field) ||
        !formulas_of_operand(v, s, 2, 32, false, out))
        return false;
    for (int bit = (int)position; bit < 32 && bit < (int)(position + count); bit++)
        out->bits[bit] = field.bits[bit - (int)position];
    return true;
}

static bool bits_of_permutation(const view *v, const step *s, formulas *out)
{
    uint64_t selector;
    formulas in[2];
    if (!step_is(s, "prmt.b32") || !value_of(v, s, 3, &selector) ||
        !formulas_of_operand(v, s, 1, 32, false, &in[0]) || !formulas_of_operand(v, s, 2, 32, false, &in[1]))
        return false;
    for (int bit = 0; bit < FORMULA_BITS; bit++) {
        const unsigned from = bit < 32 ? selector >> 4 * (bit / 8) & 15 : 0;
        out->bits[bit] = bit < 32
                             ? in[from >> 2 & 1].bits[8 * (from & 3) + (from & 8 ? 7 : (unsigned)bit % 8)]
                             : of_constant(0);
    }
    return true;
}

/* `cvt.u32.u16`. */
static bool bits_of_conversion(const view *v, const step *s, formulas *out)
{
    int to = 0, from = 0;
    char kind = 0, type = 0;
    if (strlen(s->i.opcode) > strlen("cvt.u32.u16") ||
        sscanf(s->i.opcode, "cvt.%c%d.%c%d", &kind, &to, &type, &from) != 4 || !strchr("us", kind) ||
        !strchr("us", type) || !formulas_of_operand(v, s, 1, from, type == 's', out))
        return false;
    for (int bit = to; bit < FORMULA_BITS; bit++)
        out->bits[bit] = kind == 's' ? out->bits[to - 1] : of_constant(0);
    return true;
}

/* `selp d, a, b, p`. */
static bool bits_of_both(const view *v, const step *s, int width, formulas *out)
{
    formulas a, b;
    if (!formulas_of_operand(v, s, 1, width, false, &a) || !formulas_of_operand(v, s, 2, width, false, &b))
        return false;
    for (int bit = 0; bit < FORMULA_BITS; bit++) {
        const formula in[3] = {a.bits[bit], b.bits[bit], bit_of(v, s->reg[3], 0)};
        out->bits[bit] = looked_up(in, 0xE4);
    }
    return true;
}

/* One of two operands, where it is known which. */
static bool bits_of_choice(const view *v, const step *s, int width, bool has_sign, formulas *out)
{
    const range a = view_range(v, s, 1, width), b = view_range(v, s, 2, width);
    const range p = view_range(v, s, 3, 1);
    const bool is_min = step_starts(s, "min."),
               first_is_less = has_sign ? a.high <= b.low : a.most <= b.least;
    const bool second_is_less = has_sign ? b.high <= a.low : b.most <= a.least;
    int taken = 0;
    if (step_starts(s, "selp."))
        taken = p.least == 1 ? 1 : p.most == 0 ? 2 : 0;
    else if (first_is_less || second_is_less)
        taken = first_is_less == is_min ? 1 : 2;
    if (!taken && step_starts(s, "selp.") && s->reg[3] != NO_REGISTER)
        return bits_of_both(v, s, width, out);
    return taken && formulas_of_operand(v, s, taken, width, false, out);
}

static bool bits_of_half(const view *v, const step *s, formulas *out)
{
    formulas high;
    if (s->n_reads != 2 || s->n_writes != 1)
        return false;
    const int half = v->p->width[s->writes[0]] / 2;
    for (int bit = 0; bit < FORMULA_BITS; bit++) {
        out->bits[bit] = bit < half ? bit_of(v, s->reads[0], bit) : of_constant(0);
        high.bits[bit] = bit < half ? bit_of(v, s->reads[1], bit) : of_constant(0);
    }
    moved(&high, half);
    summed(out, &high);
    return true;
}

bool formulas_of_result(const view *v, const step *s, formulas *out)
{
    bool has_sign;
    const int width = step_type(s, &has_sign);
    if (s->n_writes != 1 || width == 0)
        return false;
    if (step_starts(s, "mov."))
        return s->i.operand[1][0] == '{' ? bits_of_half(v, s, out)
                                         : formulas_of_operand(v, s, 1, width, false, out);
    if (step_starts(s, "cvt."))
        return bits_of_conversion(v, s, out);
    if (step_starts(s, "shl.") || step_starts(s, "shr."))
        return bits_of_shift(v, s, width, has_sign, out);
    if (step_starts(s, "bfe."))
        return bits_of_field(v, s, width, has_sign, out);
    if (step_starts(s, "bfi."))
        return bits_of_insertion(v, s, out);
    if (step_starts(s, "prmt."))
        return bits_of_permutation(v, s, out);
    if (step_starts(s, "min.") || step_starts(s, "max.") || step_starts(s, "selp."))
        return bits_of_choice(v, s, width, has_sign, out);
    if (step_starts(s, "mul.lo.") || step_starts(s, "mad.lo.") || step_starts(s, "mul.wide.") ||
        step_starts(s, "mad.wide."))
        return bits_of_product(v, s, width, has_sign, out);
    formulas other;
    if (step_starts(s, "add.") && formulas_of_operand(v, s, 1, width, false, out) &&
        formulas_of_operand(v, s, 2, width, false, &other)) {
        summed(out, &other);
        return true;
    }
    return bits_of_table(v, s, width, out);
}
