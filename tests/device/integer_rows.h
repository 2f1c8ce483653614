/* The kernels that plans take for one row or for a few, launched with more. Plans do not, but what ptxgen writes may. */
#ifndef QDNN_TEST_INTEGER_ROWS_H
#define QDNN_TEST_INTEGER_ROWS_H

#include "device/integer_case.h"

/* Launches the kernel for so many rows with all rows of the case on ptxvm as this SM, or on a GPU, and compares every result. */
bool integer_rows_run(const char *sm, const integer_case *c, int64_t planned);

#endif
