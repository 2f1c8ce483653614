/* Mutants that provably give the same results, although ptxas gives them another cubin. */
#ifndef QDNN_MUTATE_PROOFS_H
#define QDNN_MUTATE_PROOFS_H

#include "mutate/mutants.h"

/* The name of the rule that proves it; null where none does. */
const char *mutant_proof(const char *ptx, const mutant *m);

#endif
