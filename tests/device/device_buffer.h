/* Device memory allocated through the public API, for tests that check every byte of it.
 *
 * A buffer is either placed between two bands of known bytes that must not be changed, or, without bands, in
 * an allocation of exactly its size, so that ptxvm detects every access outside of it, including reads. */
#ifndef QDNN_TEST_DEVICE_BUFFER_H
#define QDNN_TEST_DEVICE_BUFFER_H

#include <qdnn/qdnn.h>

typedef enum {
    BUFFER_BANDS, /* filled with known bytes, as are the bands around it */
    BUFFER_EXACT  /* undefined contents, nothing around it */
} buffer_kind;

typedef struct device_buffer {
    qdnnHandle_t handle;
    buffer_kind kind;
    size_t bytes; /* without the bands */
    size_t shift; /* distance of its first byte from an aligned address */
    void *base;   /* the allocation */
} device_buffer;

/* Returns false, with a failure reported, if the device is out of memory or does not respond; the buffer can
 * be freed even then. */
bool device_buffer_make(qdnnHandle_t handle, buffer_kind kind, size_t bytes, size_t shift,
                        device_buffer *out);
void device_buffer_free(device_buffer *buffer);

/* The device address of its first byte; null for a buffer without bytes, bands and shift. */
void *device_buffer_at(const device_buffer *buffer);

bool device_buffer_write(const device_buffer *buffer, const void *host);

/* Whether its bytes are as expected and its bands unchanged. */
bool device_buffer_is(const device_buffer *buffer, const void *expected);
/* Reports a failure that names the buffer `name` if they are not. */
void device_buffer_check(const device_buffer *buffer, const void *expected, const char *name);

/* Reports a failure with the library's own message if the status is not success; returns whether it is. */
#define CHECK_QDNN(call) device_check((call), #call, __FILE__, __LINE__)
bool device_check(qdnnStatus_t status, const char *call, const char *file, int line);

#endif
