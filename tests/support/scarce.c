/* The C library's memory, except that one allocation fails. */
#include "support/scarce.h"

#include <stdlib.h>

void *scarce_resize(void *user, void *memory, size_t bytes)
{
    scarce *s = user;
    if (bytes == 0) {
        s->living -= memory != NULL;
        free(memory);
        return NULL;
    }
    if (s->asked++ == s->fails)
        return NULL;
    void *result = realloc(memory, bytes);
    s->living += result && !memory;
    return result;
}
