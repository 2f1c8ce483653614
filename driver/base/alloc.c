/* The library's own side of host memory: its objects, and the PTX builder's memory. */
#include "driver/base/alloc.h"

#include "driver/base/object.h"

void alloc_set_hook(alloc_hook hook, void *user)
{
    objects_purge(); /* the memory goes back to where it came from */
    alloc_use(hook, user);
}

static void *resize_for_ptx(void *user, void *memory, size_t bytes)
{
    (void)user;
    return alloc_resize(memory, bytes);
}

const ptx_options alloc_for_ptx = {.resize = resize_for_ptx};
