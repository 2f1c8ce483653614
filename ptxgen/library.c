/* Loading shared libraries of the CUDA toolkit at run time. */
#include "ptxgen/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_in(const char *folder, const char *name)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

void *library_open(const char *const *names, char *reason, size_t size)
{
    const char *home = getenv("CUDA_HOME");
    char folder[2048];
    void *library = NULL;
    snprintf(folder, sizeof folder, "%s/lib64", home ? home : "");
    for (int i = 0; names[i] && home && !library; i++)
        library = open_in(folder, names[i]);
    for (int i = 0; names[i] && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        const char *said = library ? NULL : dlerror();
        if (i == 0 && reason)
            snprintf(reason, size, "%s", said ? said : "");
    }
    for (int i = 0; names[i] && !home && !library; i++)
        library = open_in("/usr/local/cuda/lib64", names[i]);
    return library;
}

/* ISO C has no cast from void * to a function pointer, so the bits are copied. */
const char *library_fill(void *library, const char *const *names, void *table)
{
    for (int i = 0; names[i]; i++) {
        void *function = dlsym(library, names[i]);
        if (!function)
            return names[i];
        memcpy((char *)table + sizeof(void *) * (size_t)i, &function, sizeof function);
    }
    return NULL;
}
