/* A driver that watches the order of calls. */
#include "api/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/idle_driver.h"

enum { PARAMS_MAX = 32 };

/* A loaded text with its kernel: which of the parameters are 64 bits wide, and may be pointers. */
typedef struct loaded {
    bool is_there, is_wide[PARAMS_MAX];
    int n_params, pending[RECORDED_STREAMS];
} loaded;

typedef struct region {
    CUdeviceptr at;
    size_t bytes;
    bool is_own;
    int pending[RECORDED_STREAMS];
} region;

static recorder now;
static cuda_api api;
static loaded texts[RECORDED_MAX];
static int n_texts, queued[RECORDED_STREAMS];
static region regions[RECORDED_MAX];
static int n_regions;
static CUdeviceptr next_address;

static void mistake(const char *what)
{
    if (!*now.mistake)
        snprintf(now.mistake, sizeof now.mistake, "%s", what);
}

/* ---- Streams ---- */

static int number_of(CUstream stream)
{
    return (int)((uintptr_t)stream / 64 % RECORDED_STREAMS);
}

CUstream recorder_stream(int number)
{
    return number ? (CUstream)(uintptr_t)(64 * number) : NULL;
}

int recorder_pending(int stream)
{
    return queued[stream];
}

static void finish(int stream)
{
    queued[stream] = 0;
    for (int i = 0; i < n_texts; i++)
        texts[i].pending[stream] = 0;
    for (int i = 0; i < n_regions; i++)
        regions[i].pending[stream] = 0;
}

static void finish_all(void)
{
    for (int i = 0; i < RECORDED_STREAMS; i++)
        finish(i);
}

static CUresult stream_synchronize(CUstream stream)
{
    now.syncs++;
    finish(number_of(stream));
    return 0;
}

static CUresult context_synchronize(void)
{
    now.syncs++;
    finish_all();
    return 0;
}

/* ---- Memory ---- */

static CUresult allocate(CUdeviceptr *pointer, size_t bytes)
{
    if (n_regions == RECORDED_MAX)
        return 2;
    *pointer = next_address += 1 << 20;
    next_address += (bytes + 255) / 256 * 256;
    regions[n_regions++] = (region){.at = *pointer, .bytes = bytes, .is_own = now.is_own};
    now.memory++;
    return 0;
}

static CUresult release(CUdeviceptr pointer)
{
    finish_all();
    for (int i = 0; i < n_regions; i++)
        if (regions[i].at == pointer) {
            regions[i] = regions[--n_regions];
            now.memory--;
            return 0;
        }
    mistake("cuMemFree of memory that is not allocated");
    return 1;
}

static CUresult to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)to, (void)from, (void)bytes;
    queued[number_of(stream)]++;
    return 0;
}

static CUresult to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to, (void)from, (void)bytes;
    queued[number_of(stream)]++;
    return 0;
}

static CUresult on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to, (void)from, (void)bytes;
    queued[number_of(stream)]++;
    return 0;
}

/* ---- Modules ---- */

/* The parameters of the one kernel of a text. */
static void read_params(const char *text, loaded *t)
{
    const char *entry = strstr(text, ".entry"), *end = entry ? strchr(entry, ')') : NULL;
    for (const char *at = entry; at && (at = strstr(at, ".param")) && at < end; at++)
        if (t->n_params < PARAMS_MAX)
            t->is_wide[t->n_params++] = strncmp(at, ".param .u64", 11) == 0;
}

static CUresult load(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                     void **values)
{
    (void)count, (void)options, (void)values;
    void (*meanwhile)(void) = now.while_loading;
    if (n_texts == RECORDED_MAX)
        return 2;
    loaded *t = &texts[n_texts++];
    *t = (loaded){.is_there = true};
    read_params(image, t);
    now.loads++;
    *module = (CUmodule)(void *)t;
    now.while_loading = NULL;
    if (meanwhile)
        meanwhile();
    return 0;
}

static CUresult unload(CUmodule module)
{
    loaded *t = (loaded *)(void *)module;
    for (int i = 0; i < RECORDED_STREAMS; i++)
        if (t->pending[i])
            mistake("cuModuleUnload while a kernel of the module is pending");
    if (!t->is_there)
        mistake("cuModuleUnload of a module that is not loaded");
    t->is_there = false;
    now.unloads++;
    return 0;
}

static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
    (void)name;
    *function = (CUfunction)(void *)module;
    return 0;
}

static void use(region *r, int stream)
{
    for (int other = 0; other < RECORDED_STREAMS; other++)
        if (other != stream && r->pending[other])
            mistake("memory of the library's own is used on one stream while it is used on another");
    r->pending[stream]++;
    now.used_own_memory++;
}

static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
                       void **params, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared;
    (void)extra;
    loaded *t = (loaded *)(void *)function;
    const int number = number_of(stream);
    if (!t->is_there)
        mistake("cuLaunchKernel of a module that was unloaded");
    for (int i = 0; i < t->n_params; i++)
        for (int k = 0; k < n_regions && t->is_wide[i]; k++) {
            uint64_t value;
            memcpy(&value, params[i], sizeof value);
            if (regions[k].is_own && value >= regions[k].at && value < regions[k].at + regions[k].bytes)
                use(&regions[k], number);
        }
    t->pending[number]++;
    queued[number]++;
    now.launches++;
    return 0;
}

static CUresult is_device_memory(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    (void)attribute, (void)pointer;
    *(unsigned *)value = 2;
    return 0;
}

static CUresult range_of(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    for (int i = 0; i < n_regions; i++)
        if (pointer >= regions[i].at && pointer < regions[i].at + regions[i].bytes) {
            *base = regions[i].at;
            *bytes = regions[i].bytes;
            return 0;
        }
    return 1;
}

recorder *recorder_begin(void)
{
    now = (recorder){0};
    n_texts = n_regions = 0;
    next_address = UINT64_C(1) << 32;
    memset(queued, 0, sizeof queued);
    return &now;
}

cuda_device recorder_device(void)
{
    api = idle_driver;
    api.cuStreamSynchronize = stream_synchronize;
    api.cuCtxSynchronize = context_synchronize;
    api.cuMemAlloc = allocate;
    api.cuMemFree = release;
    api.cuMemGetAddressRange = range_of;
    api.cuPointerGetAttribute = is_device_memory;
    api.cuMemcpyHtoDAsync = to_device;
    api.cuMemcpyDtoHAsync = to_host;
    api.cuMemcpyDtoDAsync = on_device;
    api.cuModuleLoadDataEx = load;
    api.cuModuleUnload = unload;
    api.cuModuleGetFunction = get_function;
    api.cuLaunchKernel = launch;
    return idle_device(&api);
}
