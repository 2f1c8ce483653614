/* The memory of one module: chunks that only grow, freed together. */
#include "front.h"
#include "../poison.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, ALIGNMENT = 16 };

typedef struct chunk {
    struct chunk *next;
    size_t bytes;
} chunk;

struct pvm_arena {
    pvm_allocator allocator;
    chunk *chunks;
    char *at, *end;
};

static void *from_heap(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void to_heap(void *user, void *memory)
{
    (void)user;
    free(memory);
}

pvm_arena *arena_create(const pvm_allocator *allocator)
{
    pvm_allocator a = {from_heap, to_heap, NULL};
    if (allocator && allocator->alloc)
        a = *allocator;
    pvm_arena *arena = a.alloc(a.user, sizeof *arena);
    if (arena)
        *arena = (pvm_arena){.allocator = a};
    return arena;
}

void arena_destroy(pvm_arena *arena)
{
    if (!arena)
        return;
    pvm_allocator a = arena->allocator;
    for (chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        PVM_OPEN(c, c->bytes);
        a.release(a.user, c);
    }
    a.release(a.user, arena);
}

static bool add_chunk(pvm_arena *arena, size_t bytes)
{
    size_t size = bytes + 2 * ALIGNMENT > CHUNK_BYTES ? bytes + 2 * ALIGNMENT : CHUNK_BYTES;
    chunk *c = arena->allocator.alloc(arena->allocator.user, size);
    if (!c)
        return false;
    *c = (chunk){arena->chunks, size};
    arena->chunks = c;
    arena->at = (char *)c + ALIGNMENT;
    arena->end = (char *)c + size;
    return true;
}

void *arena_alloc(pvm_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t taken = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + PVM_GAP;
    if (!arena->at || (size_t)(arena->end - arena->at) < taken)
        if (!add_chunk(arena, taken))
            return NULL;
    char *memory = arena->at;
    arena->at += taken;
    memset(memory, 0, taken);
    PVM_CLOSE(memory + bytes, taken - bytes);
    return memory;
}
