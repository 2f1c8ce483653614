/* The numbers of all registers of a text, from one step to the next until nothing changes. */
#include "mutate/numbers_inside.h"
#include "mutate/ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        return last.p->width[reg] == 32 ? last.of[reg] : numbers_any;
    return text_constant(operand, &bits) ? numbers_of_constant((uint32_t)bits) : numbers_any;
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
        last.bits[k] = numbers_any;
        last.is_reached[k] = ranges_go_to(r, k);
        if (!last.is_reached[k] || s->n_writes != 1 || p->width[s->writes[0]] != 32)
            continue;
        if (width) {
            const range operand = range_of_operand(r, s, 1, width);
            last.bits[k] = numbers_of_integers(&operand, has_sign, &last.is_exact[k]);
        } else {
            const range result = range_of_result(r, s);
            last.bits[k] = numbers_of_pattern(&result);
        }
    }
}

static operands operands_of(const step *s)
{
    operands o = {numbers_any, numbers_any, numbers_any};
    numbers *const to[] = {&o.a, &o.b, &o.c};
    for (int k = 0; k < 3 && k + 1 < s->i.n; k++)
        *to[k] = operand_of(s->i.operand[k + 1]);
    return o;
}

static numbers result_of(int number)
{
    const step *s = &last.p->steps[number];
    operation *is = numbers_operation_of(s);
    bool is_exact;
    if (s->n_writes != 1 || !is)
        return last.bits[number];
    if (is == numbers_from_f16)
        return s->reg[1] == NO_REGISTER ? numbers_any : last.of_half[s->reg[1]];
    const operands o = operands_of(s);
    return numbers_both(is(&o, &is_exact), &last.bits[number]);
}

/* Two f16 from two codes of 8 bits, and what takes them apart. */
static numbers half_result(const step *s)
{
    bool is_exact;
    if (step_starts(s, "cvt.rn.f16x2.e4m3x2"))
        return numbers_between(4, -9, 448);
    if (step_starts(s, "cvt.rn.f16x2.e5m2x2"))
        return numbers_between(3, -16, 57344);
    if (step_is(s, "mov.b32") && s->i.operand[0][0] == '{' && s->n_reads == 1)
        return last.of_half[s->reads[0]];
    return numbers_from_f16(NULL, &is_exact);
}

static bool join(numbers *to, const numbers *from, bool is_late)
{
    const numbers before = *to;
    *to = numbers_either(*to, from);
    if (numbers_is_same(&before, to))
        return false;
    if (is_late)
        *to = numbers_any;
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
        const numbers n = last.p->width[reg] == 32 ? result_of(number) : numbers_any, half = half_result(s);
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
        last.of[reg] = last.of_half[reg] = numbers_none;
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
    return prepare(p) ? operand_of(operand) : numbers_any;
}

bool numbers_is_exact(const program *p, int number)
{
    const step *s = &p->steps[number];
    operation *is = numbers_operation_of(s);
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
