#include "blocks.h"

#include <stdlib.h>

#include "driver/base/alloc.h"
#include "driver/base/object.h"

static struct {
    int live, asked, failed, fails;
} state;

/* As realloc; size 0 frees. */
static void *resize(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        state.live -= memory != NULL;
        free(memory);
        return NULL;
    }
    if (++state.asked == state.fails) {
        state.failed++;
        return NULL;
    }
    state.live += !memory;
    return realloc(memory, bytes);
}

void blocks_begin(void)
{
    state.live = 0;
    blocks_fail(0);
    alloc_set_hook(resize, NULL);
}

void blocks_end(void)
{
    alloc_set_hook(NULL, NULL);
}

void blocks_fail(int nth)
{
    state.fails = nth;
    state.asked = state.failed = 0;
}

int blocks_live(void)
{
    objects_purge(); /* destroyed objects wait for their kind */
    return state.live;
}

int blocks_asked(void)
{
    return state.asked;
}

int blocks_failed(void)
{
    return state.failed;
}
