/* Host memory: every allocation of the library passes through here, so that tests can let each of them fail.
 */
#ifndef QDNN_DRIVER_ALLOC_H
#define QDNN_DRIVER_ALLOC_H

#include <stddef.h>

#include "ptxgen/ptx.h"

/* Zeroed memory, or null. */
void *alloc_new(size_t bytes);
char *alloc_copy(const char *text);
void alloc_free(void *memory);

/* The same for the PTX builder. */
extern const ptx_options alloc_for_ptx;

/* What is asked instead of the C library, as realloc (size 0 frees); null: the C library again. For tests,
 * while no other thread is in a call. */
typedef void *(*alloc_hook)(void *user, void *memory, size_t bytes);
void alloc_set_hook(alloc_hook hook, void *user);

#endif
