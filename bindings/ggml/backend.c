/* What ggml sees: one device with memory of its own, for GGML_BACKEND_DL. */
#define GGML_BACKEND_DL
#define GGML_BACKEND_SHARED
#define GGML_BACKEND_BUILD
#include "ggml-backend-impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define DEVICE_NAME "QDNN"
enum { ALIGNMENT = 256, API_VERSION = 2 };
#if GGML_BACKEND_API_VERSION != 2
#error                                                                                                       \
    "this backend is written for version 2 of ggml's backend API; update bindings/ggml to the version of these headers"
#endif

static engine *the_engine(void)
{
    const char *why;
    return engine_get(&why);
}

/* A call of qdnn whose failure ggml has no way to hear of. */
static void must(qdnnStatus_t status, const char *what)
{
    char message[512];
    if (status == QDNN_STATUS_SUCCESS)
        return;
    qdnnGetLastErrorString(message, sizeof message);
    fprintf(stderr, "qdnn: %s: %s: %s\n", what, qdnnGetErrorString(status), message);
    abort();
}

/* ---- Buffers: device memory ---- */

static void buffer_free(ggml_backend_buffer_t buffer)
{
    engine *e = the_engine();
    qdnnFree(engine_lock(e), buffer->context);
    engine_unlock(e);
}

static void *buffer_base(ggml_backend_buffer_t buffer)
{
    return buffer->context;
}

static void buffer_fill(void *at, uint8_t value, size_t bytes)
{
    engine *e = the_engine();
    qdnnHandle_t handle = engine_lock(e);
    must(qdnnFill(handle, at, value, bytes), "filling a buffer");
    must(qdnnSynchronize(handle), "filling a buffer");
    engine_unlock(e);
}

static void buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *t, uint8_t value, size_t offset,
                          size_t size)
{
    (void)buffer;
    buffer_fill((char *)t->data + offset, value, size);
}

static void buffer_clear(ggml_backend_buffer_t buffer, uint8_t value)
{
    buffer_fill(buffer->context, value, buffer->size);
}

static void buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *t, const void *data, size_t offset,
                       size_t size)
{
    (void)buffer;
    engine *e = the_engine();
    must(qdnnCopyToDevice(engine_lock(e), (char *)t->data + offset, data, size),
         "copying a tensor to the device");
    engine_unlock(e);
}

static void buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *t, void *data, size_t offset,
                       size_t size)
{
    (void)buffer;
    engine *e = the_engine();
    must(qdnnCopyToHost(engine_lock(e), data, (const char *)t->data + offset, size),
         "copying a tensor to the host");
    engine_unlock(e);
}

static bool is_ours(ggml_backend_buffer_t buffer)
{
    return buffer && buffer->iface.free_buffer == buffer_free;
}

static bool buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *from, struct ggml_tensor *to)
{
    (void)buffer;
    if (!is_ours(from->view_src ? from->view_src->buffer : from->buffer))
        return false;
    engine *e = the_engine();
    qdnnHandle_t handle = engine_lock(e);
    must(qdnnCopyOnDevice(handle, to->data, from->data, ggml_nbytes(from)),
         "copying a tensor within the device");
    must(qdnnSynchronize(handle), "copying a tensor within the device");
    engine_unlock(e);
    return true;
}

static const char *buffers_name(ggml_backend_buffer_type_t type)
{
    (void)type;
    return DEVICE_NAME;
}

static ggml_backend_buffer_t buffers_alloc(ggml_backend_buffer_type_t type, size_t size)
{
    static const struct ggml_backend_buffer_i calls = {.free_buffer = buffer_free,
                                                       .get_base = buffer_base,
                                                       .memset_tensor = buffer_memset,
                                                       .set_tensor = buffer_set,
                                                       .get_tensor = buffer_get,
                                                       .cpy_tensor = buffer_copy,
                                                       .clear = buffer_clear};
    engine *e = the_engine();
    void *memory;
    qdnnStatus_t status = qdnnMalloc(engine_lock(e), &memory, size ? size : ALIGNMENT);
    engine_unlock(e);
    return status == QDNN_STATUS_SUCCESS ? ggml_backend_buffer_init(type, calls, memory, size) : NULL;
}

static size_t buffers_alignment(ggml_backend_buffer_type_t type)
{
    (void)type;
    return ALIGNMENT;
}

static struct ggml_backend_device device;
static struct ggml_backend_buffer_type buffers = {
    .iface = {.get_name = buffers_name, .alloc_buffer = buffers_alloc, .get_alignment = buffers_alignment},
    .device = &device};

/* ---- Backends: a stream of work. All of them share the engine's, so that their work is in one order. ---- */

static const char *backend_name(ggml_backend_t backend)
{
    (void)backend;
    return DEVICE_NAME;
}

static void backend_free(ggml_backend_t backend)
{
    free(backend);
}

static void backend_synchronize(ggml_backend_t backend)
{
    (void)backend;
    engine *e = the_engine();
    must(qdnnSynchronize(engine_lock(e)), "waiting for the device");
    engine_unlock(e);
}

static bool wants_trace(void)
{
    const char *text = getenv("QDNN_GGML_TRACE");
    return text && *text && strcmp(text, "0") != 0;
}

static enum ggml_status backend_compute(ggml_backend_t backend, struct ggml_cgraph *graph)
{
    (void)backend;
    static uint64_t graphs;
    run r = {.engine = the_engine()};
    enum ggml_status status = GGML_STATUS_SUCCESS;
    engine_lock(r.engine);
    r.graph = ++graphs;
    for (int i = 0; i < ggml_graph_n_nodes(graph) && status == GGML_STATUS_SUCCESS; i++) {
        const struct ggml_tensor *t = ggml_graph_node(graph, i);
        if ((t->flags & GGML_TENSOR_FLAG_COMPUTE) && !run_node(&r, t)) {
            fprintf(stderr, "qdnn: %s %s: %s\n", ggml_op_desc(t), t->name, r.why);
            status = GGML_STATUS_FAILED;
        }
    }
    engine_unlock(r.engine);
    return status;
}

/* Everything is in one order, so an event has passed once all that was queued has. */
static void backend_record(ggml_backend_t backend, ggml_backend_event_t event)
{
    (void)backend, (void)event;
}

static void backend_wait(ggml_backend_t backend, ggml_backend_event_t event)
{
    (void)backend, (void)event;
}

static ggml_backend_t device_init(ggml_backend_dev_t dev, const char *parameters)
{
    static ggml_guid guid = {0x71, 0x64, 0x6E, 0x6E, 0x2D, 0x67, 0x67, 0x6D,
                             0x6C, 0x2D, 0x62, 0x61, 0x63, 0x6B, 0x65, 0x6E};
    (void)parameters;
    struct ggml_backend *made = calloc(1, sizeof *made);
    if (made)
        *made = (struct ggml_backend){.guid = &guid,
                                      .device = dev,
                                      .iface = {.get_name = backend_name,
                                                .free = backend_free,
                                                .synchronize = backend_synchronize,
                                                .graph_compute = backend_compute,
                                                .event_record = backend_record,
                                                .event_wait = backend_wait}};
    return made;
}

/* ---- The device ---- */

static qdnnDeviceInfo_t information(void)
{
    qdnnDeviceInfo_t info = {.size = sizeof info};
    engine *e = the_engine();
    must(qdnnGetDeviceInfo(engine_lock(e), &info), "describing the device");
    engine_unlock(e);
    return info;
}

static const char *device_name(ggml_backend_dev_t dev)
{
    (void)dev;
    return DEVICE_NAME;
}

static const char *device_description(ggml_backend_dev_t dev)
{
    static char text[300];
    (void)dev;
    snprintf(text, sizeof text, "%s", information().name);
    return text;
}

static void device_memory(ggml_backend_dev_t dev, size_t *free_bytes, size_t *total)
{
    (void)dev;
    *free_bytes = *total = (size_t)information().memoryBytes;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev)
{
    (void)dev;
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props)
{
    *props = (struct ggml_backend_dev_props){.name = device_name(dev),
                                             .description = device_description(dev),
                                             .type = device_type(dev),
                                             .caps = {.async = true, .events = true}};
    device_memory(dev, &props->memory_free, &props->memory_total);
}

static ggml_backend_buffer_type_t device_buffers(ggml_backend_dev_t dev)
{
    (void)dev;
    return &buffers;
}

static bool device_supports(ggml_backend_dev_t dev, const struct ggml_tensor *t)
{
    (void)dev;
    run r = {.engine = the_engine(), .dry = true};
    engine_lock(r.engine);
    bool can = run_node(&r, t);
    engine_unlock(r.engine);
    if (!can && wants_trace())
        fprintf(stderr, "qdnn: %s declined: %s\n", ggml_op_desc(t), r.why);
    return can;
}

static bool device_takes(ggml_backend_dev_t dev, ggml_backend_buffer_type_t type)
{
    (void)dev;
    return type == &buffers;
}

static ggml_backend_event_t event_new(ggml_backend_dev_t dev)
{
    struct ggml_backend_event *event = calloc(1, sizeof *event);
    if (event)
        event->device = dev;
    return event;
}

static void event_free(ggml_backend_dev_t dev, ggml_backend_event_t event)
{
    (void)dev;
    free(event);
}

static void event_synchronize(ggml_backend_dev_t dev, ggml_backend_event_t event)
{
    (void)dev, (void)event;
    backend_synchronize(NULL);
}

/* ---- The registry ---- */

static const char *registry_name(ggml_backend_reg_t registry)
{
    (void)registry;
    return DEVICE_NAME;
}

static size_t registry_devices(ggml_backend_reg_t registry)
{
    const char *why;
    (void)registry;
    if (engine_get(&why))
        return 1;
    fprintf(stderr, "qdnn: no device: %s\n", why);
    return 0;
}

static ggml_backend_dev_t registry_device(ggml_backend_reg_t registry, size_t index)
{
    (void)index;
    device = (struct ggml_backend_device){.reg = registry,
                                          .iface = {.get_name = device_name,
                                                    .get_description = device_description,
                                                    .get_memory = device_memory,
                                                    .get_type = device_type,
                                                    .get_props = device_props,
                                                    .init_backend = device_init,
                                                    .get_buffer_type = device_buffers,
                                                    .supports_op = device_supports,
                                                    .supports_buft = device_takes,
                                                    .event_new = event_new,
                                                    .event_free = event_free,
                                                    .event_synchronize = event_synchronize}};
    return &device;
}

static ggml_backend_reg_t make_registry(void)
{
    static struct ggml_backend_reg registry = {.api_version = API_VERSION,
                                               .iface = {.get_name = registry_name,
                                                         .get_device_count = registry_devices,
                                                         .get_device = registry_device}};
    return &registry;
}

GGML_BACKEND_DL_IMPL(make_registry)
