/* Memory that grows, and the end of the program where something fails. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "chat: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

void *take(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        fail("out of memory");
    return memory;
}

void *take_more(void *memory, size_t bytes)
{
    void *more = realloc(memory, bytes ? bytes : 1);
    if (!more)
        fail("out of memory");
    return more;
}

void text_add(text *t, const char *data, size_t size)
{
    if (t->size + size + 1 > t->room) {
        t->room = 2 * (t->size + size + 1);
        t->data = take_more(t->data, t->room);
    }
    if (size)
        memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = 0;
}

void text_print(text *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    char *line = take((size_t)size + 1);
    vsnprintf(line, (size_t)size + 1, format, again);
    text_add(t, line, (size_t)size);
    free(line);
    va_end(again);
    va_end(args);
}

void text_free(text *t)
{
    free(t->data);
    *t = (text){0};
}

void token_list_add(token_list *list, int32_t id)
{
    if (list->count == list->room) {
        list->room = 2 * list->room + 16;
        list->ids = take_more(list->ids, list->room * sizeof *list->ids);
    }
    list->ids[list->count++] = id;
}

void token_list_free(token_list *list)
{
    free(list->ids);
    *list = (token_list){0};
}
