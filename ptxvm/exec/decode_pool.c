/* Memory that is freed all at once: decoded code, the texts of a report. */
#include "decode.h"
#include "ptxvm/poison.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CHUNK ((size_t)2 * 1024) /* a module may have many kernels that are nearly empty */
#define MOST_CHUNK  ((size_t)64 * 1024)
#define ALIGNMENT   ((size_t)64)

typedef struct chunk {
    struct chunk *next;
    size_t used, bytes;
} chunk;

struct vm_pool {
    chunk *chunks;
    size_t chunk_bytes; /* of the next one */
};

vm_pool *vm_pool_create(void)
{
    vm_pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->chunk_bytes = FIRST_CHUNK;
    return pool;
}

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static chunk *new_chunk(vm_pool *pool, size_t bytes)
{
    size_t total =
        round_up(sizeof(chunk)) + PVM_GAP + (bytes > pool->chunk_bytes ? bytes : pool->chunk_bytes);
    chunk *c = aligned_alloc(ALIGNMENT, total);
    if (!c)
        return NULL;
    *c = (chunk){pool->chunks, round_up(sizeof(chunk)), total};
    pool->chunks = c;
    pool->chunk_bytes = pool->chunk_bytes < MOST_CHUNK ? 2 * pool->chunk_bytes : MOST_CHUNK;
    return c;
}

void *vm_pool_alloc(vm_pool *pool, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return NULL;
    size_t taken = round_up(bytes ? bytes : 1) + PVM_GAP;
    chunk *c = pool->chunks;
    if (!c || c->bytes - c->used < taken)
        c = new_chunk(pool, taken);
    if (!c)
        return NULL;
    uint8_t *p = (uint8_t *)c + c->used;
    c->used += taken;
    memset(p, 0, taken);
    PVM_CLOSE(p + bytes, taken - bytes);
    return p;
}

char *vm_pool_format(vm_pool *pool, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : vm_pool_alloc(pool, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

void vm_pool_destroy(vm_pool *pool)
{
    if (!pool)
        return;
    for (chunk *c = pool->chunks, *next; c; c = next) {
        next = c->next;
        PVM_OPEN(c, c->bytes);
        free(c);
    }
    free(pool);
}
