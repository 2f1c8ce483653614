/* Memory of a device, made through the public API, for tests that look at every byte of it.
 *
 * A buffer lies between two bands of known bytes that nobody may touch, or, without bands, in an allocation
 * of exactly its size, so that ptxvm sees every access beside it, reads too. */
#ifndef QDNN_TEST_DEVICE_BUFFER_H
#define QDNN_TEST_DEVICE_BUFFER_H

#include <qdnn/qdnn.h>

typedef enum {
    BUFFER_BANDS, /* filled with known bytes, and so is what lies around it */
    BUFFER_EXACT  /* undefined, with nothing around it */
} buffer_kind;

typedef struct device_buffer {
    qdnnHandle_t handle;
    buffer_kind kind;
    size_t bytes; /* its own */
    size_t shift; /* how far its first byte lies behind an aligned address */
    void *base;   /* the allocation */
} device_buffer;

/* False, with a failure reported, where the device has no memory or does not answer; the buffer may be freed
 * all the same. */
bool device_buffer_make(qdnnHandle_t handle, buffer_kind kind, size_t bytes, size_t shift,
                        device_buffer *out);
void device_buffer_free(device_buffer *buffer);

/* Its first byte, an address of the device; null for a buffer without bytes, bands and shift. */
void *device_buffer_at(const device_buffer *buffer);

bool device_buffer_write(const device_buffer *buffer, const void *host);

/* Whether its bytes are the expected ones and its bands as they were. */
bool device_buffer_is(const device_buffer *buffer, const void *expected);
/* Reports a failure that calls it `name` unless they are. */
void device_buffer_check(const device_buffer *buffer, const void *expected, const char *name);

/* Reports a failure with the library's own sentence unless the status is success; returns whether it is. */
#define CHECK_QDNN(call) device_check((call), #call, __FILE__, __LINE__)
bool device_check(qdnnStatus_t status, const char *call, const char *file, int line);

#endif
