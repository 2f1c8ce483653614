/* Shared libraries of the CUDA toolkit, opened by name at run time. */
#ifndef PTXGEN_LIBRARY_H
#define PTXGEN_LIBRARY_H

#include <stddef.h>

/* Opens the first of the names (ending with null) that is found: in $CUDA_HOME/lib64, then where the system's
 * loader looks, then in /usr/local/cuda/lib64 unless CUDA_HOME says that the toolkit is elsewhere. Null when
 * there is none; reason, which may be null, has what the loader said of the first name. dlclose closes it. */
void *library_open(const char *const *names, char *reason, size_t size);

/* Fills a table of function pointers, one for each name (ending with null). The first name that the library
 * lacks, or null. */
const char *library_fill(void *library, const char *const *names, void *table);

#endif
