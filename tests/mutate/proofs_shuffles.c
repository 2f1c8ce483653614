/* Rules about shuffles by index. */
#include "mutate/proofs.h"
#include "mutate/ranges.h"

#include <string.h>

/* Whether the mutation is the operand before the last one. */
static bool is_last_but_one(const char *ptx, const mutant *m, const instruction *i)
{
    const char *behind = ptx + m->at + m->length, *last = i->operand[i->n - 1];
    return strncmp(behind, ", ", 2) == 0 && strncmp(behind + 2, last, strlen(last)) == 0 &&
           behind[2 + strlen(last)] == ';';
}

/* `shfl.sync.idx d, a, lane, last, members`: lane `lane` if it is not above `last`, otherwise the own value (PTX ISA, "shfl.sync";
 * a `last` below 32 has no segments). No lane that is asked for is above either of the two last ones. */
bool lane_is_not_above_the_last(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t before, after;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "shfl.sync.idx.b32") || i->n != 5 ||
        !is_last_but_one(ptx, m, i) || !text_constant(i->operand[3], &before) ||
        !text_constant(m->with, &after) || before > 31 || after > 31)
        return false;
    const program *p = program_of(ptx);
    ranges *r = p ? ranges_of(p) : NULL;
    const int at = r ? program_step_at(p, m->at) : NO_STEP;
    return at != NO_STEP && ranges_go_to(r, at) &&
           range_of_operand(r, &p->steps[at], 2, 32).most <= (before < after ? before : after);
}
