/* Mutants that provably give the same results, although ptxas gives them another cubin.
 *
 * Each rule looks at the instructions that define an operand, as far as they are defined once in the text; a register
 * that is assigned in several places is a variable, of which nothing is known. */
#ifndef QDNN_MUTATE_PROOFS_H
#define QDNN_MUTATE_PROOFS_H

#include "mutate/mutants.h"
#include "mutate/text.h"

enum { PROOF_DEPTH = 12 };

/* The name of the rule that proves it; null where none does. */
const char *mutant_proof(const char *ptx, const mutant *m);

/* Rules of their own files; the instruction is the original's. */
bool difference_is_exact(const char *ptx, const mutant *m, const instruction *i);
bool narrowing_is_exact(const char *ptx, const mutant *m, const instruction *i);
bool adds_zero(const char *ptx, const mutant *m, const instruction *i);
bool conversion_is_exact(const char *ptx, const mutant *m, const instruction *i);
bool conversion_is_of_positive(const char *ptx, const mutant *m, const instruction *i);
bool difference_vanishes(const char *ptx, const mutant *m, const instruction *i);
bool other_is_never_nan(const char *ptx, const mutant *m, const instruction *i);
bool nan_never_comes(const char *ptx, const mutant *m, const instruction *i);
bool other_is_nan_with_it(const char *ptx, const mutant *m, const instruction *i);
bool nan_is_any(const char *ptx, const mutant *m, const instruction *i);
bool sum_rounds_alike(const char *ptx, const mutant *m, const instruction *i);
bool multiplies_exactly(const char *ptx, const mutant *m, const instruction *i);
bool difference_is_integral(const char *ptx, const mutant *m, const instruction *i);
bool result_is_exact(const char *ptx, const mutant *m, const instruction *i);
bool difference_is_a_fraction(const char *ptx, const mutant *m, const instruction *i);
bool no_quotient_is_between(const char *ptx, const mutant *m, const instruction *i);
bool quotient_is_never_beside_a_bound(const char *ptx, const mutant *m, const instruction *i);
bool quotient_is_never_beside_a_tie(const char *ptx, const mutant *m, const instruction *i);
bool lanes_get_the_same(const char *ptx, const mutant *m, const instruction *i);
bool lane_0_gets_the_same(const char *ptx, const mutant *m, const instruction *i);
bool keys_are_the_same(const char *ptx, const mutant *m, const instruction *i);
bool any_lane_does(const char *ptx, const mutant *m, const instruction *i);
bool any_barrier_does(const char *ptx, const mutant *m, const instruction *i);

bool lane_is_not_above_the_last(const char *ptx, const mutant *m, const instruction *i);
bool result_is_the_same(const char *ptx, const mutant *m, const instruction *i);
bool difference_is_absorbed(const char *ptx, const mutant *m, const instruction *i);
bool registers_have_the_same(const char *ptx, const mutant *m, const instruction *i);
bool field_is_wide_enough(const char *ptx, const mutant *m, const instruction *i);
bool any_copy_does(const char *ptx, const mutant *m, const instruction *i);
bool nothing_is_carried(const char *ptx, const mutant *m, const instruction *i);
bool overflow_is_narrowed(const char *ptx, const mutant *m, const instruction *i);
bool sum_is_clamped(const char *ptx, const mutant *m, const instruction *i);
bool other_half_is_dropped(const char *ptx, const mutant *m, const instruction *i);
bool quotient_narrows_alike(const char *ptx, const mutant *m, const instruction *i);
bool quotient_encodes_alike(const char *ptx, const mutant *m, const instruction *i);
bool quotient_is_the_same(const char *ptx, const mutant *m, const instruction *i);

/* Whether from a line on only lane 0 stores what is made of a register, or branches on it. */
bool is_for_lane_0(const char *ptx, const char *reg, const char *line, int depth);
/* The number with these bits; whether the operand is a number, and which. */
float float_of(uint64_t bits);
bool is_f32_constant(const char *operand, float *value);
/* Whether a register is never NaN, because of clamps, extremes and arithmetic between such. */
bool is_between_numbers(const char *ptx, const char *operand);
/* The divisor of a division by `mul.hi t, n, factor`, `shr q, t, k`, whose first step this is; 0 where it is none. */
uint64_t divisor_of(const char *ptx, const instruction *i);
/* The significant bits of the type, f16 or bf16, that a register is only converted to, rounded to nearest; 0 where it is used otherwise. */
int narrowed_bits(const char *ptx, const char *reg);
/* The same of a type of 8 bits or fewer that saturates, by one instruction or by several. What is below 2^-100 becomes a zero of its sign. */
int encoded_bits(const char *ptx, const char *reg, int depth);
/* The largest value of an unsigned operand. */
uint64_t most_of(const char *ptx, const char *operand, int depth);

#endif
