/* Which kernels (of those for flat groups) and targets the slow tests go through: all of them in the full build (./run test --full), by default
 * formats that between them take every path of the emitters, and one target of each generation. */
#ifndef QDNN_TEST_SAMPLE_H
#define QDNN_TEST_SAMPLE_H

#include "kernels/kernels.h"

/* Whether the row scales, quantizes or dequantizes a tensor, or finds its range: products, repacking and the rest have tests
 * of their own. */
bool sample_is_elementwise(const kernel_row *row);

/* Whether it quantizes K-quants: their search takes a hundred times the instructions of other kernels, so tests of what a
 * kernel has in common with others give it less to do. */
bool sample_is_search(const kernel_row *row);

int sample_row_count(void);
const kernel_row *sample_row_at(int index);

int sample_sm_count(void);
const ptx_sm *sample_sm_at(int index);

bool sample_is_full(void);

#endif
