/* Rules about what registers hold where a step reads them: the same in two of them, zeros in their low bits, bits that nobody uses. */
#include "mutate/change.h"

#include <stdio.h>
#include <string.h>

/* ---- One register for another ---- */

/* The step that defines a register; NO_STEP where several do. */
static int definition_at(const program *p, int reg)
{
    for (int at = 0; at < p->n_steps && reg != NO_REGISTER && p->definitions[reg] == 1; at++)
        for (int k = 0; k < p->steps[at].n_writes; k++)
            if (p->steps[at].writes[k] == reg)
                return at;
    return NO_STEP;
}

/* `shfl.sync.bfly d, a, 0, 31, 0xFFFFFFFF` moves nothing. */
static bool is_copy(const step *s)
{
    uint64_t distance, lanes;
    return step_is(s, "shfl.sync.bfly.b32") && s->guard == NO_REGISTER && s->reg[1] != NO_REGISTER &&
           text_constant(s->i.operand[2], &distance) && distance == 0 &&
           text_constant(s->i.operand[4], &lanes) && lanes == 0xFFFFFFFF;
}

/* The register that a register is a copy of where a line reads it; itself where it is none. No label is between the definition of the copy
 * and the line, and what it is a copy of is defined above it, once: it is the same when the line is reached. */
static int origin(const program *p, int reg, const char *line)
{
    const int at = definition_at(p, reg);
    if (at == NO_STEP || !is_copy(&p->steps[at]) || !text_is_written_before(p->text, p->names[reg], line))
        return reg;
    const int above = definition_at(p, p->steps[at].reg[1]);
    return above == NO_STEP || above > at ? reg : origin(p, p->steps[at].reg[1], line);
}

bool registers_are_copies(const program *p, const char *one, const char *other, const char *line)
{
    const int a = program_register(p, one), b = program_register(p, other);
    return a != NO_REGISTER && b != NO_REGISTER && origin(p, a, line) == origin(p, b, line);
}

static bool is_same_copy(const change *c, const mutant *m)
{
    char old[TEXT_MAX];
    snprintf(old, sizeof old, "%.*s", (int)m->length, c->p->text + m->at);
    return registers_are_copies(c->p, old, m->with, c->old->line);
}

/* Each holds one value at this place, and it is the same; or both are copies of one. */
bool registers_have_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    (void)i;
    if (m->kind != MUTANT_REGISTER || !change_of(ptx, m, &c) || !ranges_go_to(c.r, c.at) ||
        c.old->i.n != c.now.i.n)
        return false;
    if (is_same_copy(&c, m))
        return true;
    for (int k = 0; k < c.old->i.n; k++) { /* the first operand of a store is an address */
        uint64_t before, after;
        if (strcmp(c.old->i.operand[k], c.now.i.operand[k]) == 0)
            continue;
        if (c.old->reg[k] == NO_REGISTER || c.now.reg[k] == NO_REGISTER ||
            c.p->width[c.old->reg[k]] != c.p->width[c.now.reg[k]])
            return false;
        const range a = range_of_register(c.r, c.old->reg[k]), b = range_of_register(c.r, c.now.reg[k]);
        if (!range_is_value(&a, &before) || !range_is_value(&b, &after) || before != after)
            return false;
    }
    return true;
}

/* ---- Fields ---- */

/* `bfe d, x, position, count` with another count: the lower bits are the same, and no other is used. */
bool field_is_wide_enough(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    uint64_t old, now;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "bfe.u32") || !change_of(ptx, m, &c) ||
        strcmp(c.old->i.operand[2], c.now.i.operand[2]) != 0 || !text_constant(c.old->i.operand[3], &old) ||
        !text_constant(c.now.i.operand[3], &now) || old > 32 || now > 32)
        return false;
    return (c.used[c.old->writes[0]] & ~bits_mask((int)(old < now ? old : now))) == 0;
}

/* ---- Sums before a division ---- */

/* The step that alone reads a register; NO_STEP where several do. */
static int only_reader(const program *p, int reg)
{
    int found = NO_STEP;
    for (int at = 0; at < p->n_steps; at++)
        for (int k = 0; k < p->steps[at].n_reads; k++)
            if (p->steps[at].reads[k] == reg && found != at) {
                if (found != NO_STEP)
                    return NO_STEP;
                found = at;
            }
    return found;
}

/* `add n, a, c`, which is only divided by d: where n is a multiple of a power of two that divides d, adding less than that power to
 * it gives the same quotient. */
bool quotient_is_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    uint64_t old, now;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "add.u64") || !change_of(ptx, m, &c) ||
        c.old->guard != NO_REGISTER || !text_constant(c.old->i.operand[2], &old) ||
        !text_constant(c.now.i.operand[2], &now) || now <= old || !ranges_go_to(c.r, c.at))
        return false;
    const int sum = c.old->writes[0], at = only_reader(c.p, sum);
    const uint64_t divisor =
        at != NO_STEP && c.p->definitions[sum] == 1 ? divisor_of(ptx, &c.p->steps[at].i) : 0;
    const range result = range_of_result(c.r, c.old);
    const int zeros = bits_trailing_zeros(~result.zeros);
    return divisor > 0 && zeros < 32 && divisor % (UINT64_C(1) << zeros) == 0 &&
           now - old < UINT64_C(1) << zeros;
}

/* ---- Roundings of numbers that need none ---- */

/* Whether the register is only shifted right by 16, so that its lower half matters in no other way than by its carry. */
static bool is_upper_half_taken(const program *p, int reg)
{
    const int at = only_reader(p, reg);
    return at != NO_STEP && step_is(&p->steps[at], "shr.u32") && strcmp(p->steps[at].i.operand[2], "16") == 0;
}

/* `bfe t, x, 16, 1`, `add u, x, 32767`, `add w, u, t`, `shr v, w, 16` rounds x to bf16. The lower half of a number that bf16 has is 0: any
 * addends whose sum is less than 2^16 give the same. */
bool nothing_is_carried(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    const bool is_field = text_is_opcode(i, "bfe.u32");
    if (m->kind != MUTANT_CONSTANT || (!is_field && !text_is_opcode(i, "add.u32")) ||
        !change_of(ptx, m, &c) || c.old->reg[1] != c.now.reg[1])
        return false;
    const int both = only_reader(c.p, c.old->writes[0]);
    if (both == NO_STEP || !step_is(&c.p->steps[both], "add.u32") ||
        !is_upper_half_taken(c.p, c.p->steps[both].writes[0]))
        return false;
    const int other = definition_at(c.p, c.p->steps[both].reg[is_field ? 1 : 2]);
    if (other == NO_STEP || c.p->steps[other].reg[1] != c.old->reg[1] ||
        only_reader(c.p, c.p->steps[other].writes[0]) != both)
        return false;
    const step *sum = is_field ? &c.p->steps[other] : c.old, *field = is_field ? c.old : &c.p->steps[other];
    uint64_t addend, changed;
    if (!step_is(sum, "add.u32") || !step_is(field, "bfe.u32") ||
        !text_constant(sum->i.operand[2], &addend) || !ranges_go_to(c.r, c.at))
        return false;
    changed = addend;
    if (!is_field && !text_constant(c.now.i.operand[2], &changed))
        return false;
    const range x = range_of_register(c.r, c.old->reg[1]), before = range_of_result(c.r, field),
                after = range_of_result(c.r, is_field ? &c.now : field);
    return (x.zeros & 0xFFFF) == 0xFFFF && addend + before.most <= 0xFFFF && changed + after.most <= 0xFFFF;
}
