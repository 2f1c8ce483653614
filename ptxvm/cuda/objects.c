/* The live handles: a hash set of addresses. A handle from a program is looked up here before it is
 * dereferenced, so that an invalid one is an error and not a crash. */
#include "internal.h"

#include <stdlib.h>

typedef struct entry {
    const void *object; /* null: free; TOMB: was used */
    object_kind kind;
    uint64_t id;
} entry;

static entry *table;
static size_t capacity, used; /* used includes tombs */
static uint64_t last_id;
static const char tomb;
#define TOMB ((const void *)&tomb)

static size_t slot_of(const void *object)
{
    uint64_t h = (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 20) & (capacity - 1);
}

static entry *find(const void *object)
{
    if (!object || !capacity)
        return NULL;
    for (size_t i = slot_of(object); table[i].object; i = (i + 1) & (capacity - 1))
        if (table[i].object == object)
            return &table[i];
    return NULL;
}

static void put(entry e)
{
    size_t i = slot_of(e.object);
    while (table[i].object)
        i = (i + 1) & (capacity - 1);
    table[i] = e;
    used++;
}

static bool grow(void)
{
    entry *old = table;
    size_t n = capacity, live = 0;
    for (size_t i = 0; i < n; i++)
        live += old[i].object && old[i].object != TOMB;
    size_t wanted = 256;
    while (wanted < 4 * (live + 1))
        wanted *= 2;
    entry *fresh = calloc(wanted, sizeof *fresh);
    if (!fresh)
        return false;
    table = fresh;
    capacity = wanted;
    used = 0;
    for (size_t i = 0; i < n; i++)
        if (old[i].object && old[i].object != TOMB)
            put(old[i]);
    free(old);
    return true;
}

void *object_new(object_kind kind, size_t bytes)
{
    if (2 * (used + 1) > capacity && !grow())
        return NULL;
    void *object = calloc(1, bytes);
    if (object)
        put((entry){object, kind, ++last_id});
    return object;
}

void object_forget(const void *object)
{
    entry *e = find(object);
    if (e)
        e->object = TOMB;
}

bool object_is(const void *object, object_kind kind)
{
    const entry *e = find(object);
    return e && e->kind == kind;
}

uint64_t object_id(const void *object)
{
    const entry *e = find(object);
    return e ? e->id : 0;
}

/* The live object of a kind with the lowest number above `after`; null: none. */
static const entry *next_of(object_kind kind, uint64_t after)
{
    const entry *next = NULL;
    for (size_t i = 0; i < capacity; i++)
        if (table[i].object && table[i].object != TOMB && table[i].kind == kind && table[i].id > after &&
            (!next || table[i].id < next->id))
            next = &table[i];
    return next;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = ((const entry *)a)->id, y = ((const entry *)b)->id;
    return (x > y) - (x < y);
}

/* All objects of a kind, by number; null: no memory left. */
static entry *list_of(object_kind kind, size_t *n)
{
    *n = 0;
    entry *list = malloc((capacity + 1) * sizeof *list);
    for (size_t i = 0; list && i < capacity; i++)
        if (table[i].object && table[i].object != TOMB && table[i].kind == kind)
            list[(*n)++] = table[i];
    if (list)
        qsort(list, *n, sizeof *list, compare_ids);
    return list;
}

/* The function may delete and create objects: each is looked up again, and new ones come last. */
void object_each(object_kind kind, void (*fn)(void *object, void *user), void *user)
{
    size_t n;
    uint64_t after = 0;
    entry *list = list_of(kind, &n);
    for (size_t i = 0; list && i < n; i++) {
        after = list[i].id;
        if (object_id(list[i].object) == after)
            fn((void *)(uintptr_t)list[i].object, user);
    }
    free(list);
    for (const entry *next; (next = next_of(kind, after));) {
        after = next->id;
        fn((void *)(uintptr_t)next->object, user);
    }
}

void objects_clear(void)
{
    free(table);
    table = NULL;
    capacity = used = 0;
}
