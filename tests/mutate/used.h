/* Which bits of each register play a part in what a kernel stores, and in where it goes. */
#ifndef QDNN_MUTATE_USED_H
#define QDNN_MUTATE_USED_H

#include "mutate/ranges.h"

/* Of each register of the program, whether or not the changed step takes the place of the step at `at`: the bits that one of the two
 * programs uses. The array is overwritten by the next call; null without memory. */
const uint64_t *used_bits(const program *p, int at, const step *changed);

/* The zeros that end all products that a `dp4a` or an `mma` of bytes adds up: the lower bits of its addends stay as they are, and nothing
 * is carried from them. 0 for other steps, and where nothing is known. */
int used_zeros_of_products(const program *p, const step *s);

/* The bits of a register that the step reads, if these bits of all registers are used. */
uint64_t used_by(const program *p, const step *s, int reg, const uint64_t *bits);

#endif
