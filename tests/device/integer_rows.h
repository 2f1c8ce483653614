/* The kernel that a plan takes for one row, launched with several. Plans do not, but what ptxgen writes may. */
#ifndef QDNN_TEST_INTEGER_ROWS_H
#define QDNN_TEST_INTEGER_ROWS_H

#include "device/integer_case.h"

/* Launches the case's kernel for one row with all of its rows on a ptxvm for this SM, and compares every result. */
bool integer_rows_run(const char *sm, const integer_case *c);

#endif
