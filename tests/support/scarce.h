/* Memory in which one allocation fails: the hook for alloc_set_hook. */
#ifndef QDNN_TEST_SCARCE_H
#define QDNN_TEST_SCARCE_H

#include <stddef.h>

typedef struct scarce {
    long fails;  /* the number of the allocation that fails, from 0 */
    long asked;  /* number of allocations so far: if above `fails`, one has failed */
    long living; /* allocations not yet freed */
} scarce;

/* Like realloc; user is a scarce. */
void *scarce_resize(void *user, void *memory, size_t bytes);

#endif
