/* Memory of which one allocation fails: the hook that alloc_set_hook takes. */
#ifndef QDNN_TEST_SCARCE_H
#define QDNN_TEST_SCARCE_H

#include <stddef.h>

typedef struct scarce {
    long fails;  /* the number of the allocation that fails, from 0 */
    long asked;  /* how many there have been: above `fails`, one has failed */
    long living; /* what has not been freed */
} scarce;

/* As realloc; user is a scarce. */
void *scarce_resize(void *user, void *memory, size_t bytes);

#endif
