/* Where the checks of tests/test.h go in this program: failures are counted, not reported. */
#ifndef QDNN_MUTATE_SINK_H
#define QDNN_MUTATE_SINK_H

#include "test.h"

/* The first of the tests that registered, in any order. */
const test_case *sink_tests(void);

/* How many checks failed since the last call, and what the first of them said. */
int sink_take(char *first, size_t size);

#endif
