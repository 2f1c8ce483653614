/* Host memory, and the hook for tests. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static alloc_hook the_hook;
static void *the_user;

void alloc_use(alloc_hook hook, void *user)
{
    the_hook = hook;
    the_user = user;
}

void *alloc_resize(void *memory, size_t bytes)
{
    if (the_hook)
        return the_hook(the_user, memory, bytes);
    if (bytes > 0)
        return realloc(memory, bytes);
    free(memory);
    return NULL;
}

void *alloc_new(size_t bytes)
{
    void *memory = alloc_resize(NULL, bytes > 0 ? bytes : 1);
    return memory ? memset(memory, 0, bytes) : NULL;
}

char *alloc_copy(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = alloc_new(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void alloc_free(void *memory)
{
    if (memory)
        alloc_resize(memory, 0);
}
