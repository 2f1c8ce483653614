/* Rules about shuffles by index. */
#include "mutate/proofs.h"
#include "mutate/ranges.h"

#include <string.h>

/* `shfl.sync.idx d, a, lane, last, members` gives lane `lane` as long as it is not above `last`, and the own value above it (PTX ISA,
 * "shfl.sync"; with no bits of a segment in `last`). Another last lane that no asked-for lane is above of either gives the same. */
bool lane_is_not_above_the_last(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t before, after;
    const program *p = program_of(ptx);
    ranges *r = p ? ranges_of(p) : NULL;
    const size_t length = strlen(i->operand[3]);
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "shfl.sync.idx.b32") || i->n != 5 || !r ||
        m->length != length || strncmp(ptx + m->at, i->operand[3], length) != 0 || ptx[m->at - 1] != ' ' ||
        !text_constant(i->operand[3], &before) || !text_constant(m->with, &after) || before > 31 ||
        after > 31)
        return false;
    /* The members follow the last lane: of equal constants the first is meant. */
    if (strchr(ptx + m->at, ',') == NULL || strcspn(ptx + m->at, ",") > strcspn(ptx + m->at, ";"))
        return false;
    const int at = program_step_at(p, m->at);
    if (at == NO_STEP || !ranges_go_to(r, at))
        return false;
    return range_of_operand(r, &p->steps[at], 2, 32).most <= (before < after ? before : after);
}
