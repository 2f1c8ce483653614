/* All logits of a text: a hash, a file. */
#include "chat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct digest {
    uint64_t hash;
    int64_t rows, columns;
    float *row;
    FILE *file;
    const char *path;
};

digest *digest_open(const char *path, int64_t columns)
{
    digest *d = take(sizeof *d);
    *d = (digest){.hash = 0xcbf29ce484222325u, .columns = columns, .path = path};
    d->row = take((size_t)columns * sizeof(float));
    if (path && !(d->file = fopen(path, "wb")))
        fail("%s cannot be written", path);
    return d;
}

void digest_rows(digest *d, qdnnHandle_t handle, const void *logits, int64_t rows)
{
    const size_t bytes = (size_t)d->columns * sizeof(float);
    for (int64_t i = 0; i < rows; i++) {
        ok(qdnnCopyToHost(handle, d->row, (const char *)logits + (size_t)i * bytes, bytes));
        const unsigned char *at = (const unsigned char *)d->row;
        for (size_t k = 0; k < bytes; k++) /* FNV-1a */
            d->hash = (d->hash ^ at[k]) * 0x100000001b3u;
        if (d->file && fwrite(d->row, 1, bytes, d->file) != bytes)
            fail("%s cannot be written", d->path);
    }
    d->rows += rows;
}

void digest_close(digest *d)
{
    printf("logits: %" PRId64 " x %" PRId64 ", hash %016" PRIx64 "\n", d->rows, d->columns, d->hash);
    if (d->file && fclose(d->file))
        fail("%s cannot be written", d->path);
    free(d->row);
    free(d);
}
