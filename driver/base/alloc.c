/* Host memory, and the hook that tests set. */
#include "driver/base/alloc.h"

#include "driver/base/object.h"

#include <stdlib.h>
#include <string.h>

static alloc_hook the_hook;
static void *the_user;

void alloc_set_hook(alloc_hook hook, void *user)
{
    objects_purge(); /* the memory goes back to where it came from */
    the_hook = hook;
    the_user = user;
}

static void *resize(void *memory, size_t bytes)
{
    if (the_hook)
        return the_hook(the_user, memory, bytes);
    if (bytes > 0)
        return realloc(memory, bytes);
    free(memory);
    return NULL;
}

static void *resize_for_ptx(void *user, void *memory, size_t bytes)
{
    (void)user;
    return resize(memory, bytes);
}

const ptx_options alloc_for_ptx = {.resize = resize_for_ptx};

void *alloc_new(size_t bytes)
{
    void *memory = resize(NULL, bytes > 0 ? bytes : 1);
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
        resize(memory, 0);
}
