/* Data at the edges of decisions: where the least change of one element changes what host_ref makes of its block. A kernel
 * that rounds one of its sums otherwise decides otherwise there. */
#ifndef QDNN_TEST_EDGES_H
#define QDNN_TEST_EDGES_H

#include "host_ref/host_ref.h"

/* Moves elements of each block (so many elements of a flat tensor, with scales and codes of its own) until it is at an edge. */
void move_to_edges(const ref_quant_spec *spec, int64_t block, uint32_t seed, void *data, int64_t n);

#endif
