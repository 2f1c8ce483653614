#include "cost/work.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static _Thread_local bool counting;
static _Thread_local uint64_t steps;
static _Thread_local int64_t held, most;

void work_begin(void)
{
    steps = 0;
    held = most = 0;
    counting = true;
}

work_counts work_end(void)
{
    counting = false;
    return (work_counts){steps, (uint64_t)most};
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

static void touch(size_t bytes)
{
    steps += bytes / 16;
}

/* ---- string functions ---- */

#define WRAPS(result, name, parameters)                                                                      \
    result __real_##name parameters;                                                                         \
    result __wrap_##name parameters;                                                                         \
    result __wrap_##name parameters

WRAPS(size_t, strlen, (const char *text))
{
    size_t n = __real_strlen(text);
    touch(n);
    return n;
}

WRAPS(int, strcmp, (const char *a, const char *b))
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    touch(n);
    return (unsigned char)a[n] - (unsigned char)b[n];
}

WRAPS(int, memcmp, (const void *a, const void *b, size_t n))
{
    touch(n);
    return __real_memcmp(a, b, n);
}

WRAPS(void *, memcpy, (void *restrict to, const void *restrict from, size_t n))
{
    touch(n);
    return __real_memcpy(to, from, n);
}

WRAPS(void *, memmove, (void *to, const void *from, size_t n))
{
    touch(n);
    return __real_memmove(to, from, n);
}

WRAPS(void *, memset, (void *to, int value, size_t n))
{
    touch(n);
    return __real_memset(to, value, n);
}

WRAPS(void *, memchr, (const void *text, int c, size_t n))
{
    void *found = __real_memchr(text, c, n);
    touch(found ? (size_t)((char *)found - (const char *)text) : n);
    return found;
}

WRAPS(char *, strchr, (const char *text, int c))
{
    char *found = __real_strchr(text, c);
    touch(found ? (size_t)(found - text) : __real_strlen(text));
    return found;
}

WRAPS(char *, strstr, (const char *text, const char *part))
{
    char *found = __real_strstr(text, part);
    touch(found ? (size_t)(found - text) : __real_strlen(text));
    return found;
}

/* ---- allocations ---- */

static void hold(int64_t change)
{
    if (!counting)
        return;
    held += change;
    most = held > most ? held : most;
}

static int64_t usable(void *memory)
{
    return memory ? (int64_t)malloc_usable_size(memory) : 0;
}

WRAPS(void *, malloc, (size_t bytes))
{
    void *memory = __real_malloc(bytes);
    hold(usable(memory));
    return memory;
}

WRAPS(void *, calloc, (size_t n, size_t bytes))
{
    void *memory = __real_calloc(n, bytes);
    hold(usable(memory));
    return memory;
}

WRAPS(void *, realloc, (void *memory, size_t bytes))
{
    int64_t before = usable(memory);
    void *moved = __real_realloc(memory, bytes);
    if (moved || bytes == 0)
        hold(usable(moved) - before);
    touch(moved != memory ? (size_t)before : 0);
    return moved;
}

WRAPS(void, free, (void *memory))
{
    hold(-usable(memory));
    __real_free(memory);
}
