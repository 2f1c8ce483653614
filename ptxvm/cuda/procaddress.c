/* Functions by name: cuGetProcAddress, and ptxvm_cuda_symbol for our own library. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *base, *symbol;
    int since;
    void *function, *per_thread; /* per_thread: the _ptds or _ptsz form, or null */
    const char *per_thread_symbol;
} row;

/* A function pointer as returned by the API. */
#define PLAIN(function) ((void *)(uintptr_t)(function))

static const row *rows(size_t *n)
{
    static const row table[] = {
#define F(base, v, since, needs, params, args) {#base, #base #v, since, PLAIN(ptxvm_##base##v), NULL, NULL},
#define S(base, v, pt, since, needs, params, args)                                                           \
    {#base, #base #v, since, PLAIN(ptxvm_##base##v), PLAIN(ptxvm_##base##v##_##pt), #base #v "_" #pt},
#define U(base, v, since) {#base, #base #v, since, PLAIN(ptxvm_##base##v), NULL, NULL},
#define UP(base, v, pt, since)                                                                               \
    {#base, #base #v, since, PLAIN(ptxvm_##base##v), PLAIN(ptxvm_##base##v##_##pt), #base #v "_" #pt},
#include "functions.def"
#undef F
#undef S
#undef U
#undef UP
        /* The header maps this name to a form with a different name. */
        {"cuGraphInstantiate", "", 12000, PLAIN(ptxvm_cuGraphInstantiateWithFlags), NULL, NULL},
    };
    *n = sizeof table / sizeof *table;
    return table;
}

void *ptxvm_cuda_symbol(const char *name)
{
    size_t n;
    const row *r = rows(&n);
    for (size_t i = 0; name && i < n; i++) {
        if (strcmp(r[i].symbol, name) == 0)
            return r[i].function;
        if (r[i].per_thread && strcmp(r[i].per_thread_symbol, name) == 0)
            return r[i].per_thread;
    }
    return NULL;
}

/* The newest form of the name that a program of that version knows. *known: some form exists. */
static const row *find_form(const char *name, int version, bool *known)
{
    size_t n;
    const row *r = rows(&n), *best = NULL;
    *known = false;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(r[i].base, name) != 0)
            continue;
        *known = true;
        if (r[i].since <= version && (!best || r[i].since >= best->since))
            best = &r[i];
    }
    return best;
}

static CUresult find(const char *name, void **function, int version, cuuint64_t flags,
                     CUdriverProcAddressQueryResult *status)
{
    if (!name || !function || flags > 3 || flags == 3)
        return CUDA_ERROR_INVALID_VALUE;
    bool known;
    int newest = driver_version();
    const row *r = find_form(name, version < newest ? version : newest, &known);
    CUdriverProcAddressQueryResult found = r       ? CU_GET_PROC_ADDRESS_SUCCESS
                                           : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (status)
        *status = found;
    *function = NULL;
    if (!r)
        return CUDA_ERROR_NOT_FOUND;
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    *function = per_thread && r->per_thread ? r->per_thread : r->function;
    return CUDA_SUCCESS;
}

CUresult do_cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    return find(name, function, version, flags, NULL);
}

CUresult do_cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *status)
{
    return find(name, function, version, flags, status);
}

/* The runtime asks for several tables, and NVRTC for one: logged once. */
static void log_table(const CUuuid *id)
{
    char text[40], *at = text;
    if (cuda.told_table)
        return;
    cuda.told_table = true;
    for (int i = 0; i < 16; i++)
        at += snprintf(at, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                       (unsigned char)id->bytes[i]);
    cuda_log(CUDA_ERROR_NOT_FOUND,
             "cuGetExportTable: the private table %s of NVIDIA's driver is not here; programs on the CUDA "
             "runtime (cudart, also linked statically) need it and are not supported, programs on the CUDA "
             "driver API are, and NVRTC works without it",
             text);
}

CUresult do_cuGetExportTable(const void **table, const CUuuid *id)
{
    if (table)
        *table = NULL;
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    log_table(id);
    return CUDA_ERROR_NOT_FOUND;
}
