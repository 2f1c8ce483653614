/* Device memory between guard bands. */
#include "device/device_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { BAND = 64, BAND_BYTE = 0xA5 };

bool device_check(qdnnStatus_t status, const char *call, const char *file, int line)
{
    if (status == QDNN_STATUS_SUCCESS)
        return true;
    char sentence[512];
    qdnnGetLastErrorString(sentence, sizeof sentence);
    test_fail(file, line, "%s: %s: %s", call, qdnnGetErrorString(status), sentence);
    return false;
}

static size_t before(const device_buffer *buffer)
{
    return (buffer->kind == BUFFER_BANDS ? BAND : 0) + buffer->shift;
}

static size_t whole(const device_buffer *buffer)
{
    return before(buffer) + buffer->bytes + (buffer->kind == BUFFER_BANDS ? BAND : 0);
}

bool device_buffer_make(qdnnHandle_t handle, buffer_kind kind, size_t bytes, size_t shift, device_buffer *out)
{
    *out = (device_buffer){.handle = handle, .kind = kind, .bytes = bytes, .shift = shift};
    return CHECK_QDNN(qdnnMalloc(handle, &out->base, whole(out))) &&
           (kind == BUFFER_EXACT || CHECK_QDNN(qdnnFill(handle, out->base, BAND_BYTE, whole(out))));
}

void device_buffer_free(device_buffer *buffer)
{
    if (buffer->base)
        qdnnFree(buffer->handle, buffer->base); /* fails if the device was lost, which has been reported */
    buffer->base = NULL;
}

void *device_buffer_at(const device_buffer *buffer)
{
    return buffer->base ? (char *)buffer->base + before(buffer) : NULL;
}

bool device_buffer_write(const device_buffer *buffer, const void *host)
{
    return CHECK_QDNN(qdnnCopyToDevice(buffer->handle, device_buffer_at(buffer), host, buffer->bytes));
}

/* The actual and the expected bytes, including bands; the caller frees both. */
typedef struct images {
    uint8_t *actual, *expected;
    size_t bytes, first; /* offset of the buffer itself */
} images;

static bool images_make(const device_buffer *buffer, const void *expected, images *out)
{
    size_t skipped = buffer->kind == BUFFER_BANDS ? 0 : before(buffer), bytes = whole(buffer) - skipped;
    *out = (images){malloc(bytes + 1), malloc(bytes + 1), bytes, before(buffer) - skipped};
    if (!CHECK(out->actual && out->expected) ||
        !CHECK_QDNN(qdnnCopyToHost(buffer->handle, out->actual, (char *)buffer->base + skipped, bytes)))
        return false;
    memset(out->expected, BAND_BYTE, bytes);
    memcpy(out->expected + out->first, expected, buffer->bytes);
    return true;
}

static void images_free(images *i)
{
    free(i->actual);
    free(i->expected);
}

bool device_buffer_is(const device_buffer *buffer, const void *expected)
{
    images i;
    bool same = images_make(buffer, expected, &i) && memcmp(i.actual, i.expected, i.bytes) == 0;
    images_free(&i);
    return same;
}

void device_buffer_check(const device_buffer *buffer, const void *expected, const char *name)
{
    images i;
    if (images_make(buffer, expected, &i)) {
        test_push_note("%s, its %zu bytes begin at byte %zu", name, buffer->bytes, i.first);
        CHECK_EQ_MEM(i.actual, i.expected, i.bytes);
        test_pop_note();
    }
    images_free(&i);
}
