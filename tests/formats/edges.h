/* Data at the edges of decisions: where the least change of one element changes what host_ref makes of its block. A kernel
 * that rounds one of its sums otherwise decides otherwise there. */
#ifndef QDNN_TEST_EDGES_H
#define QDNN_TEST_EDGES_H

#include "host_ref/host_ref.h"

/* Moves elements of each block (so many elements of a flat tensor, with scales and codes of its own) until it is at an edge. */
void move_to_edges(const ref_quant_spec *spec, int64_t block, uint32_t seed, void *data, int64_t n);

/* Moves each element of a matrix with given scales to a bound between two codes: it and its neighbour in the type have different codes. Those whose
 * magnitude is `kept` or more stay, and the others move toward 0, so that scales that are made of the largest stay too; 0: all move. */
void move_to_bounds(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *arrays,
                    uint32_t seed, float kept, void *x);

#endif
