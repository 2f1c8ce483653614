/* What ranges.c and ranges_results.c share. */
#ifndef QDNN_MUTATE_RANGES_INSIDE_H
#define QDNN_MUTATE_RANGES_INSIDE_H

#include "mutate/ranges.h"

/* What is known where several ways meet. */
typedef struct meeting {
    bool is_reached;
    range *values;   /* of the variables */
    int *conditions; /* of the predicates: the step that set it, as long as its operands are the same */
    uint8_t *
        relations; /* of the steps that compare: how its operands may compare, as long as they are the same */
} meeting;

/* A variable of a loop that only `add v, v, constant` writes, or only `sub v, v, constant`. */
typedef struct counter {
    int variable;
    bool is_down;
    uint64_t least, most; /* by how much it changes in a round */
} counter;

typedef struct block {
    int first, last;
    meeting in, above,
        below; /* from where it comes: together, from above in this sweep, from below in the last one */
    meeting next_below; /* from below in this sweep */
    bool *is_changed;   /* of a loop that is entered only here: which variables it writes */
    counter *counters;  /* of such a loop */
    int n_counters, end_of_loop;
} block;

struct ranges {
    const program *p;
    range *fixed;     /* of registers that are no variables */
    int *variable;    /* the place of a register among the variables, or -1 */
    int *predicate;   /* the place of a register among the predicates, or -1 */
    int *register_of; /* of a variable */
    int n_variables, n_predicates, n_blocks;
    int number; /* of the program */
    block *blocks;
    int *block_of; /* a step's */
    int *
        first_user; /* of each register: where the steps that compare it begin in `users`, which NO_STEP ends */
    int *users;
    range *now; /* of the variables, before step `at` */
    int *condition;
    uint8_t *relation, *edge_relation;
    const block *leaving; /* while its last step is taken */
    bool *may_wrap;       /* of the steps that add and subtract */
    range *first;         /* of the variables, where a loop is entered from above */
    range *edge;          /* a copy of `now`, on its way to a block */
    int at;               /* NO_STEP: `now` belongs to no step */
    int *comparison;      /* the place of a step among those that compare integers, or -1 */
    int n_comparisons;
    int block_size;  /* threads */
    bool is_limited; /* sizes are at most LIMITED_SIZE, as plans check */
    bool is_integer; /* a product of integers: it is not launched without rows */
    bool *
        is_empty; /* of each register: nothing is in it before its only step, which has a guard, and so nobody reads it before */
};

/* At the place where the ranges are: of a register, of an operand of a step, of what a step writes. Empty where nothing is known yet. */
range ranges_get(const ranges *r, int reg);
range ranges_operand(const ranges *r, const step *s, int operand, int width);
range ranges_result(const ranges *r, const step *s);
/* The same of a step that writes several registers, by their place. */
range ranges_result_at(const ranges *r, const step *s, int place);

#endif
