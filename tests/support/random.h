/* Numbers from a seed, the same everywhere. */
#ifndef QDNN_TEST_RANDOM_H
#define QDNN_TEST_RANDOM_H

#include <stdint.h>

/* A well-mixed number that advances the state. */
uint64_t random_next(uint64_t *state);

#endif
