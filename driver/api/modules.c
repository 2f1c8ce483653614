/* The module cache, and the way from a specification to a loaded kernel.
 *
 * Kernels are built outside the lock; if two threads build the same one, the second to finish uses the
 * first's. Modules in use are never unloaded; of the others, the least recently used is unloaded first. */
#include "driver/api/modules.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/base/alloc.h"
#include "driver/cuda/cuda_error.h"
#include "driver/cuda/dump.h"
#include "driver/base/log.h"
#include "driver/cuda/target.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static module *modules[MODULES_MAX];
static uint64_t clock_ticks;

/* ---- The cache; all of it runs under the lock ---- */

static module *find(const context *c, const kernel_row *row, const kernel_spec *spec)
{
    for (int i = 0; i < MODULES_MAX; i++)
        if (modules[i] && modules[i]->context == c && modules[i]->row == row &&
            kernel_spec_equal(&modules[i]->spec, spec))
            return modules[i];
    return NULL;
}

/* An empty slot, or that of the module idle for longest; null if all are in use. */
static module **find_place(void)
{
    module **oldest = NULL;
    for (int i = 0; i < MODULES_MAX; i++) {
        if (!modules[i])
            return &modules[i];
        if (modules[i]->users == 0 && (!oldest || modules[i]->stamp < (*oldest)->stamp))
            oldest = &modules[i];
    }
    return oldest;
}

static module *use(module *m)
{
    m->users++;
    m->stamp = ++clock_ticks;
    return m;
}

static module *find_and_use(const context *c, const kernel_row *row, const kernel_spec *spec)
{
    pthread_mutex_lock(&lock);
    module *m = find(c, row, spec);
    if (m)
        use(m);
    pthread_mutex_unlock(&lock);
    return m;
}

/* ---- Loading ---- */

/* Modules are loaded and unloaded in the relaxed capture mode: otherwise a driver treats them as errors that
 * invalidate the capture of any other stream, even on another thread. A driver without that mode works
 * without it. */
typedef struct relaxed {
    const cuda_api *api;
    CUstreamCaptureMode before;
    bool is_set;
} relaxed;

static relaxed relax(const cuda_api *api)
{
    relaxed r = {.api = api, .before = CU_STREAM_CAPTURE_MODE_RELAXED};
    r.is_set = !api->cuThreadExchangeStreamCaptureMode(&r.before);
    return r;
}

/* Tried twice, because a driver may report an earlier error instead of restoring the caller's mode. */
static void relax_end(relaxed r)
{
    CUstreamCaptureMode mode = r.before;
    if (r.is_set && r.api->cuThreadExchangeStreamCaptureMode(&mode)) {
        mode = r.before;
        r.api->cuThreadExchangeStreamCaptureMode(&mode);
    }
}

void module_unload_image(const context *c, CUmodule cuda)
{
    bool pushed;
    if (!cuda || context_enter(c, &pushed))
        return;
    relaxed r = relax(c->device.api);
    r.api->cuModuleUnload(cuda);
    relax_end(r);
    context_leave(c, pushed);
}

static void unload(module *m)
{
    module_unload_image(m->context, m->cuda);
    alloc_free(m);
}

/* The module is no longer used, but kernels launched from it may still be running. */
static void evict(module *m)
{
    bool pushed;
    if (!context_enter(m->context, &pushed)) {
        m->context->device.api->cuCtxSynchronize();
        context_leave(m->context, pushed);
    }
    unload(m);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static qdnnStatus_t emit(const context *c, const kernel_row *row, const kernel_spec *spec, bundle_image *out)
{
    kernel_text text;
    ptx_error problem;
    if (!kernel_emit_normal(row, spec, c->target, &alloc_for_ptx, &text, &problem))
        return qdnn_error(problem.no_memory ? QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED
                                            : QDNN_STATUS_NOT_SUPPORTED_SM,
                          "%s", problem.text);
    *out = (bundle_image){.data = text.ptx, .version = text.info.version};
    dump_ptx(row, spec, c->target, text.ptx);
    return QDNN_STATUS_SUCCESS;
}

/* A cubin runs only on the compute capability that it was compiled for, and only on GPUs. */
static bool takes_cubins(const context *c)
{
    return !c->device.is_vm && c->target->number == 10 * c->device.major + c->device.minor;
}

/* A launch with more than 48 KiB of shared memory, static memory included, must be allowed on the function
 * first. */
static CUresult allow_shared(const cuda_api *api, CUfunction function, unsigned bytes)
{
    enum { ALWAYS_ALLOWED = 32 << 10 };
    return bytes <= ALWAYS_ALLOWED
               ? 0
               : api->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         (int)bytes);
}

/* The driver's own message is kept, as far as it fits. */
static qdnnStatus_t load_image(qdnnHandle_t handle, const char *name, const module_image *image,
                               CUmodule *cuda, CUfunction *function)
{
    enum { NOT_FOUND = 500 };
    char log[200] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const cuda_api *api = handle->context->device.api;
    CUmodule loaded = NULL;
    CUresult result = api->cuModuleLoadDataEx(&loaded, image->data, 2, options, values);
    log[sizeof log - 1] = 0;
    if (result)
        return handle_failed(handle, result, "cuModuleLoadDataEx", "kernel %s%s%s", name, *log ? ": " : "",
                             log);
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    result = api->cuModuleGetFunction(function, loaded, image->entry);
    if (result == NOT_FOUND)
        status = qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                            "the text has no kernel %s (CUDA C: declare it extern \"C\")", image->entry);
    else if (result)
        status = handle_failed(handle, result, "cuModuleGetFunction", "kernel %s", image->entry);
    else if ((result = allow_shared(api, *function, image->shared)))
        status = handle_failed(handle, result, "cuFuncSetAttribute", "kernel %s, %u bytes of shared memory",
                               image->entry, image->shared);
    if (status == QDNN_STATUS_SUCCESS)
        *cuda = loaded;
    else
        api->cuModuleUnload(loaded);
    return status;
}

qdnnStatus_t module_load_image(qdnnHandle_t handle, const char *name, const module_image *image,
                               CUmodule *cuda, CUfunction *function)
{
    relaxed r = relax(handle->context->device.api);
    qdnnStatus_t status = load_image(handle, name, image, cuda, function);
    relax_end(r);
    return status;
}

static qdnnStatus_t load(qdnnHandle_t handle, const kernel_row *row, const bundle_image *text, module *m)
{
    char entry[64];
    double start = seconds();
    kernel_entry_name(row, entry, sizeof entry);
    const module_image image = {text->data, entry, kernel_geometry_of(row, &m->spec).shared_dynamic};
    qdnnStatus_t status = module_load_image(handle, row->name, &image, &m->cuda, &m->function);
    m->load_seconds = seconds() - start;
    return status;
}

/* Loads an image that took so many seconds to produce, and frees it. */
static qdnnStatus_t use_image(qdnnHandle_t handle, const kernel_row *row, bundle_image *text, double spent,
                              module *m)
{
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    m->version = text->version;
    m->emit_seconds = spent;
    if (!text->is_cubin)
        status = target_check_version(text->version, handle->context->device.driver_version);
    if (status == QDNN_STATUS_SUCCESS)
        status = load(handle, row, text, m);
    alloc_free(text->data);
    return status;
}

/* A line of the log about a module: "quantize_nf4 sm_90 data=f16 ...: ". */
static void log_module(qdnnSeverity_t severity, const module *m, const char *what)
{
    char settings[KERNEL_SPEC_TEXT];
    kernel_spec_text(m->row, &m->spec, settings, sizeof settings);
    log_write(severity, "%s %s %s: %s", m->row->name, m->context->target->name, settings, what);
}

/* Loads a kernel from the bundle; false: it has to be emitted, or the handle is unusable. */
static bool build_from_bundle(qdnnHandle_t handle, const kernel_row *row, const kernel_spec *spec, module *m)
{
    bundle_image text = {0};
    double start = seconds();
    if (!handle->bundle || !bundle_find(handle->bundle, row, spec, handle->context->target,
                                        takes_cubins(handle->context), &text))
        return false;
    m->from_bundle = use_image(handle, row, &text, seconds() - start, m) == QDNN_STATUS_SUCCESS;
    if (!m->from_bundle)
        log_module(QDNN_SEVERITY_WARNING, m, "the bundle's kernel is not used");
    return m->from_bundle;
}

static qdnnStatus_t build(qdnnHandle_t handle, const kernel_row *row, const kernel_spec *spec, module *m)
{
    if (!build_from_bundle(handle, row, spec, m)) {
        bundle_image text = {0};
        double start = seconds();
        CHECK_STATUS(handle_check(handle));
        CHECK_STATUS(emit(handle->context, row, spec, &text));
        CHECK_STATUS(use_image(handle, row, &text, seconds() - start, m));
    }
    if (log_on(QDNN_SEVERITY_INFO)) {
        char what[96];
        snprintf(what, sizeof what, "%s in %.0f us, loaded in %.0f us", m->from_bundle ? "read" : "emitted",
                 m->emit_seconds * 1e6, m->load_seconds * 1e6);
        log_module(QDNN_SEVERITY_INFO, m, what);
    }
    return QDNN_STATUS_SUCCESS;
}

/* Adds a module to the cache if there is room, unless another thread has added the same one: then returns
 * that one. */
static module *publish(module *m)
{
    pthread_mutex_lock(&lock);
    module *theirs = find(m->context, m->row, &m->spec);
    module **place = theirs ? NULL : find_place();
    if (place && *place)
        evict(*place); /* under the lock: its context may be about to be released, which waits for the
                        *                                lock in modules_drop */
    if (place) {
        *place = m;
        m->cached = true;
    }
    module *answer = use(theirs ? theirs : m);
    pthread_mutex_unlock(&lock);
    if (theirs)
        unload(m);
    return answer;
}

qdnnStatus_t module_acquire(qdnnHandle_t handle, const kernel_row *row, const kernel_spec *spec, module **out,
                            bool *was_loaded)
{
    module *m = find_and_use(handle->context, row, spec);
    *was_loaded = m != NULL;
    if (!m) {
        m = alloc_new(sizeof *m);
        if (!m)
            return OUT_OF_MEMORY();
        m->context = handle->context;
        m->row = row;
        m->spec = *spec;
        qdnnStatus_t status = build(handle, row, spec, m);
        if (status != QDNN_STATUS_SUCCESS) {
            unload(m);
            return status;
        }
        m = publish(m);
    }
    *out = m;
    return QDNN_STATUS_SUCCESS;
}

void module_release(module *m)
{
    pthread_mutex_lock(&lock);
    bool gone = --m->users == 0 && !m->cached;
    pthread_mutex_unlock(&lock);
    if (gone)
        evict(m);
}

/* Removes one of the context's modules from the cache; null if there are none left. */
static module *remove_one(const context *c)
{
    module *taken = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MODULES_MAX && !taken; i++)
        if (modules[i] && modules[i]->context == c) {
            taken = modules[i];
            modules[i] = NULL;
        }
    pthread_mutex_unlock(&lock);
    return taken;
}

void modules_drop(const context *c)
{
    for (module *m; (m = remove_one(c));)
        unload(m);
}

int modules_count(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MODULES_MAX; i++)
        count += modules[i] != NULL;
    pthread_mutex_unlock(&lock);
    return count;
}
