/* Roundings that have nothing to round. */
#include "mutate/numbers.h"
#include "mutate/proofs.h"

#include <string.h>

/* Sums, products, quotients and conversions that are exact. */
bool result_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    const program *p = m->kind == MUTANT_ROUNDING ? program_of(ptx) : NULL;
    const int step = p ? program_step_at(p, m->at) : NO_STEP;
    (void)i;
    return step != NO_STEP && numbers_is_exact(p, step);
}

/* Whether a register is another one, rounded to nearest or toward zero. */
static bool is_rounded(const char *ptx, const char *reg, const char *of)
{
    instruction def;
    return text_definition(ptx, reg, &def) &&
           (text_is_opcode(&def, "cvt.rni.f32.f32") || text_is_opcode(&def, "cvt.rzi.f32.f32")) &&
           strcmp(def.operand[1], of) == 0;
}

/* The difference between a number and the integral one next to it; of magnitudes: where that one is 0, it is the number itself. Otherwise the
 * number is 1/2 at least, and both are multiples of its last digit. From 1 on, that is 2^-23 at least, and the difference is at most 1;
 * below 1, it is 2^-24, and the difference at most 1/2. */
bool difference_is_a_fraction(const char *ptx, const mutant *m, const instruction *i)
{
    instruction def;
    return m->kind == MUTANT_ROUNDING && text_is_opcode(i, "sub.rn.f32") && strcmp(m->with, "rz") == 0 &&
           ((is_rounded(ptx, i->operand[2], i->operand[1]) && text_definition(ptx, i->operand[1], &def)) ||
            (is_rounded(ptx, i->operand[1], i->operand[2]) && text_definition(ptx, i->operand[2], &def)));
}
