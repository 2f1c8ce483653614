/* Which values a register may hold where a step reads it: bounds with and without a sign, and bits that are known.
 *
 * An abstract interpretation of the whole text. It knows the sizes of blocks and the limits of the parameters, follows loops, and
 * learns from the branches that lead to a step. */
#ifndef QDNN_MUTATE_RANGES_H
#define QDNN_MUTATE_RANGES_H

#include "mutate/intervals.h"
#include "mutate/program.h"

typedef struct ranges ranges;

/* The last one is kept, as the program is. Null without memory. */
ranges *ranges_of(const program *p);
/* Goes to before a step; what follows is about this place. False where the step is never reached. */
bool ranges_go_to(ranges *r, int step);
/* From here on (until ranges_go_to is called again) the predicate is taken to be as given; false where it never is. */
bool ranges_assume(ranges *r, int predicate, bool is_true);

/* Anything of its width, where nothing is known. */
range range_of_register(const ranges *r, int reg);
/* Of an operand of the step (which may be another than the program's at this place): a register, a constant or a special register. */
range range_of_operand(const ranges *r, const step *s, int operand, int width);
/* What a step makes of its operands: of its only destination. */
range range_of_result(const ranges *r, const step *s);

/* Of a register that is written once, wherever it is read; anything of its width, of others. */
range range_anywhere(const ranges *r, int reg);

/* How the operands 1 and 2 of a setp of integers may compare. */
enum { RANGE_BELOW = 1, RANGE_EQUAL = 2, RANGE_ABOVE = 4, RANGE_ANY = 7 };
unsigned range_relations_now(const ranges *r, const step *s);
/* How they compare where the comparison comes out as given. */
unsigned range_relations(const step *s, bool is_true);

#endif
