/* A mutant as two steps of a program: the original one, and what takes its place. */
#ifndef QDNN_MUTATE_CHANGE_H
#define QDNN_MUTATE_CHANGE_H

#include "mutate/proofs.h"
#include "mutate/used.h"

typedef struct change {
    const program *p;
    ranges *r;
    int at; /* the number of the step */
    const step *old;
    step now;
    const uint64_t *used; /* the bits of each register that either of the two programs uses */
} change;

/* A step that is left out becomes a move of its destination to itself. False for a mutant that changes a guard, or reads what may not
 * have been written, and for texts that are not understood. */
bool change_of(const char *ptx, const mutant *m, change *c);

/* Whether both registers are copies of the same one where a line reads them (proofs_values.c). */
bool registers_are_copies(const program *p, const char *one, const char *other, const char *line);

#endif
