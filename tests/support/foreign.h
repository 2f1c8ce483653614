/* Floating-point environments as other libraries leave them behind: other rounding modes, flush-to-zero,
 * denormals-are-zero. */
#ifndef QDNN_TEST_FOREIGN_H
#define QDNN_TEST_FOREIGN_H

/* How many there are on this machine; and the name of one, for TEST_EACH. */
#include <stddef.h>

int foreign_count(void);
void foreign_name(int index, char *text, size_t size);

/* Sets one, with a single exception flag raised. */
void foreign_begin(int index);
/* Reports a failure unless environment and flags are still those of foreign_begin; then sets the default
 * environment. */
void foreign_end(int index);
/* Sets only the modes, for a thread that nobody checks. */
void foreign_set(int index);

#endif
