/* What each bit of a result is made of: a truth table of a few bits of registers. */
#ifndef QDNN_MUTATE_FORMULAS_H
#define QDNN_MUTATE_FORMULAS_H

#include "mutate/ranges.h"

enum { FORMULA_BITS = 64, FORMULA_SOURCES = 6 };

/* A bit of a register, since the step that gave it this value. */
typedef struct source {
    int reg, version, bit;
} source;

/* Sources are in order, and all of them matter: two formulas are the same function if they are the same. */
typedef struct formula {
    bool is_known;
    int n;
    source from[FORMULA_SOURCES];
    uint64_t table; /* bit i: the result where source k is bit k of i */
} formula;
typedef struct formulas {
    formula bits[FORMULA_BITS];
} formulas;

/* Where a step reads its operands. */
typedef struct view {
    const program *p;
    const ranges *r;      /* at this place */
    formulas **made_of;   /* of each register; null: only its own bits. May be null */
    const int *version;   /* of each register; may be null */
    const bool *is_other; /* registers about which the ranges say nothing; may be null */
} view;

bool formula_is_same(const formula *a, const formula *b);
bool formulas_are_same(const formulas *a, const formulas *b, int width); /* in the lower bits */
/* The bits of an operand; those that its type does not have repeat its sign, or are 0. */
bool formulas_of_operand(const view *v, const step *s, int operand, int width, bool has_sign, formulas *out);
/* Of what a step writes to its only destination. False where it is not understood; bits may be unknown too. */
bool formulas_of_result(const view *v, const step *s, formulas *out);
/* The range of an operand: anything, of registers of which nothing is known. */
range view_range(const view *v, const step *s, int operand, int width);

#endif
