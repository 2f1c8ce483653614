/* Loading NVRTC and cuBLAS. */
#include "driver/cuda/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/base/error.h"
#include "driver/base/log.h"
#include "ptxgen/library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Tries to load it; `why` receives the reason if it cannot. */
static bool try_open(runtime_library *l, char *why, size_t size)
{
    const char *path = getenv(l->variable);
    const char *given[] = {path, NULL};
    bool is_given = path && *path;
    char reason[256] = "";
    void *handle = library_open(is_given ? given : l->files, reason, sizeof reason);
    if (!handle) {
        snprintf(why, size, "%s was not found: %s; %s may name it", l->title, reason, l->variable);
        return false;
    }
    const char *missing = library_fill(handle, l->symbols, l->table);
    if (missing) {
        snprintf(why, size, "%s%s%s lacks the function %s", l->title, is_given ? " in " : "",
                 is_given ? path : "", missing);
        dlclose(handle);
        return false;
    }
    l->handle = handle;
    return true;
}

static bool use(runtime_library *l, char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    bool was_open = l->handle != NULL, ok = was_open || try_open(l, why, size);
    pthread_mutex_unlock(&lock);
    if (ok && !was_open)
        log_write(QDNN_SEVERITY_INFO, "%s is open", l->title);
    return ok;
}

qdnnStatus_t library_use(runtime_library *library)
{
    char why[480];
    if (use(library, why, sizeof why))
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED_LIBRARY_MISSING, "%s", why);
}

bool library_found(runtime_library *library)
{
    char why[480];
    return use(library, why, sizeof why);
}

void library_forget(runtime_library *library)
{
    pthread_mutex_lock(&lock);
    library->handle = NULL;
    pthread_mutex_unlock(&lock);
}
