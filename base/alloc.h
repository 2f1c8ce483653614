/* Host memory: all allocations of the libraries go through here, so that tests can make each of them fail. */
#ifndef QDNN_BASE_ALLOC_H
#define QDNN_BASE_ALLOC_H

#include <stddef.h>

/* Zeroed memory, or null. */
void *alloc_new(size_t bytes);
char *alloc_copy(const char *text);
void alloc_free(void *memory);
/* Like realloc; a size of 0 frees. */
void *alloc_resize(void *memory, size_t bytes);

/* The function to call instead of the C library, like realloc (size 0 frees); null: the C library again. For
 * tests, while no other thread is in a call. */
typedef void *(*alloc_hook)(void *user, void *memory, size_t bytes);
void alloc_use(alloc_hook hook, void *user);

#endif
