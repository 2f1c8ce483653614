/* Shared libraries of the CUDA toolkit, loaded by name at run time. */
#ifndef PTXGEN_LIBRARY_H
#define PTXGEN_LIBRARY_H

#include <stddef.h>

/* Loads the first of the names (null-terminated) that is found: in $CUDA_HOME/lib64, then where the system's
 * loader searches, then in /usr/local/cuda/lib64 unless CUDA_HOME is set. Null if there is none; reason,
 * which may be null, then receives the loader's message for the first name. dlclose closes it. */
void *library_open(const char *const *names, char *reason, size_t size);

/* Fills a table of function pointers, one per name (null-terminated). Returns the first name that the library
 * lacks, or null. */
const char *library_fill(void *library, const char *const *names, void *table);

#endif
