/* Host memory of the library: its objects, and the memory of the PTX builder. */
#include "driver/base/alloc.h"

#include "driver/base/object.h"

void alloc_set_hook(alloc_hook hook, void *user)
{
    objects_purge(); /* while the old hook, which allocated them, is still set */
    alloc_use(hook, user);
}

static void *resize_for_ptx(void *user, void *memory, size_t bytes)
{
    (void)user;
    return alloc_resize(memory, bytes);
}

const ptx_options alloc_for_ptx = {.resize = resize_for_ptx};
