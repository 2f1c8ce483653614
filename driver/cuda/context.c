/* The contexts that have handles: one list, protected by one lock. */
#include "driver/cuda/context.h"

#include <pthread.h>

#include "driver/base/alloc.h"
#include "driver/base/check.h"
#include "driver/cuda/cuda_error.h"
#include "driver/cuda/target.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static context *contexts;

CUresult context_enter(const context *c, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    CUresult result = c->device.api->cuCtxGetCurrent(&current);
    if (result || current == c->cuda)
        return result;
    result = c->device.api->cuCtxPushCurrent(c->cuda);
    *pushed = !result;
    return result;
}

void context_leave(const context *c, bool pushed)
{
    const cuda_api *api = c->device.api;
    CUcontext popped, current = NULL;
    /* A driver may report an earlier error here instead of popping: the caller's context must be restored
     * nevertheless. */
    if (pushed && api->cuCtxPopCurrent(&popped) && !api->cuCtxGetCurrent(&current) && current == c->cuda)
        api->cuCtxPopCurrent(&popped);
}

static context *find(const context *like)
{
    for (context *c = contexts; c; c = c->next)
        if (c->cuda == like->cuda && c->device.api == like->device.api)
            return c;
    return NULL;
}

static void release_primary(const context *c)
{
    if (c->is_primary)
        c->device.api->cuDevicePrimaryCtxRelease(c->device.device);
}

/* Adds a handle to an existing context equal to this one, which is then freed, or else to this one. */
static context *join(context *made)
{
    pthread_mutex_lock(&lock);
    context *found = find(made);
    if (!found) {
        made->next = contexts;
        contexts = found = made;
    }
    found->handles++;
    /* A context taken over from a caller may be released by that caller; now we retain it as well. */
    if (found != made && made->is_primary && !found->is_primary) {
        found->is_primary = true;
        made->is_primary = false;
    }
    pthread_mutex_unlock(&lock);
    if (found != made) {
        release_primary(made);
        alloc_free(made);
    }
    return found;
}

qdnnStatus_t context_acquire(const cuda_device *device, context **out)
{
    context *c = alloc_new(sizeof *c);
    if (!c)
        return OUT_OF_MEMORY();
    *c = (context){.device = *device, .cuda = device->context, .is_primary = !device->context};
    c->target = target_for(device->major, device->minor);
    qdnnStatus_t status = c->target ? QDNN_STATUS_SUCCESS : QDNN_STATUS_NOT_SUPPORTED_SM;
    if (status == QDNN_STATUS_SUCCESS && c->is_primary) {
        CUresult result = device->api->cuDevicePrimaryCtxRetain(&c->cuda, device->device);
        if (result)
            status = cuda_failed(device->api, result, "cuDevicePrimaryCtxRetain", "the device's context");
    }
    if (status == QDNN_STATUS_SUCCESS)
        *out = join(c);
    else
        alloc_free(c);
    return status;
}

/* Removes the context from the list before its modules are unloaded: a handle created meanwhile starts a new
 * one. */
static bool leave(context *c)
{
    pthread_mutex_lock(&lock);
    bool last = --c->handles == 0;
    for (context **at = &contexts; last && *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    return last;
}

void context_release(context *c, void (*unload)(const context *))
{
    if (!leave(c))
        return;
    unload(c);
    release_primary(c);
    alloc_free(c);
}
