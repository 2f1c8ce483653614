/* libFuzzer target: a manifest's entry, a zero byte, the PTX that it names. Nothing in them makes the checks of
 * driver/bundle read outside the bytes, whatever the entry says of the file. "$BYTES" and "$HASH" in the entry become
 * what is true of the file, so that mutants of it come as far as the checks of PTX. */
#include "driver/bundle/bundle_check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    char *entry; /* zero-terminated */
    const char *file;
    size_t file_bytes;
} input;

/* The entry with its marks filled in. */
static char *fill_in(const uint8_t *data, size_t size, const char *file, size_t file_bytes)
{
    size_t room = 24 * size + 64, used = 0;
    char *text = calloc(room, 1);
    for (size_t i = 0; i < size;) {
        if (size - i >= 6 && memcmp(data + i, "$BYTES", 6) == 0) {
            used += (size_t)snprintf(text + used, room - used, "%zu", file_bytes);
            i += 6;
        } else if (size - i >= 5 && memcmp(data + i, "$HASH", 5) == 0) {
            uint64_t hash = bundle_hash(BUNDLE_HASH_START, file, file_bytes);
            used += (size_t)snprintf(text + used, room - used, "%016llx", (unsigned long long)hash);
            i += 5;
        } else
            text[used++] = (char)data[i++];
    }
    return text;
}

static input split(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t entry = zero ? (size_t)(zero - data) : size;
    input in = {.file = (const char *)data + (zero ? entry + 1 : size),
                .file_bytes = zero ? size - entry - 1 : 0};
    in.entry = fill_in(data, entry, in.file, in.file_bytes);
    return in;
}

/* A copy that ends with the file and a zero, as bundle_read gives it. */
static void check_file(const json_value *entry, const bundle_request *request, const input *in)
{
    bundle_reason reason = {0};
    const json_value *file = json_at(entry, "files.0");
    int version = 0;
    char *copy = calloc(in->file_bytes + 1, 1);
    if (in->file_bytes)
        memcpy(copy, in->file, in->file_bytes);
    if (!bundle_check_bytes(file, copy, in->file_bytes, &reason) && !reason.text[0])
        abort();
    bundle_check_ptx(entry, request, copy, in->file_bytes, &version, &reason);
    bundle_check_cubin(request, copy, in->file_bytes, &reason);
    free(copy);
}

static const bundle_request *request(void)
{
    static bundle_request r;
    static kernel_spec spec;
    if (!r.row) {
        r.row = kernel_find("quantize_int4");
        r.sm = ptx_sm_find("sm_90");
        r.spec = &spec;
        if (!r.row || !r.sm)
            abort();
    }
    return &r;
}

/* The whole way of a user, through a folder. */
static void open_folder(const char *entry)
{
    static char folder[256];
    static bool made;
    char path[300];
    const char *parent = getenv("TMPDIR");
    bundle *b = NULL;
    bundle_image image;
    if (!made) {
        snprintf(folder, sizeof folder, "%s/fuzz_bundle_XXXXXX", parent && *parent ? parent : ".");
        made = mkdtemp(folder) != NULL;
    }
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    FILE *file = made ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%s", entry);
    fclose(file);
    if (bundle_open(folder, &b) == QDNN_STATUS_SUCCESS &&
        bundle_find(b, request()->row, KERNEL_NORMAL(request()->row, request()->spec), request()->sm, true, &image))
        alloc_free(image.data);
    bundle_close(b);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = split(data, size);
    json_error error = {0};
    json *doc = json_parse(in.entry, strlen(in.entry), &error);
    bundle_reason reason = {0};
    if (doc) {
        if (!bundle_check_entry(json_root(doc), request(), &reason) && !reason.text[0])
            abort();
        check_file(json_root(doc), request(), &in);
        if (json_at(json_root(doc), "kernels"))
            open_folder(in.entry);
    }
    json_free(doc);
    free(in.entry);
    return 0;
}
