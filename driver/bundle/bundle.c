/* Bundles: opens a folder written by ptxgen --all, and finds kernels in it. The parsed manifest is kept, with
 * an index of its entries by hash. */
#include "driver/bundle/bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/base/alloc.h"
#include "driver/bundle/bundle_check.h"
#include "driver/base/check.h"
#include "driver/base/log.h"

static const char manifest_name[] = "manifest.json";
static const char write_it_again[] = "write it again with ptxgen --all";

enum { KEY_MAX = KERNEL_SPEC_TEXT + 128 };

typedef struct index_entry {
    uint64_t hash; /* of the key */
    size_t place;  /* in the manifest */
    const json_value *kernel;
} index_entry;

struct bundle {
    char *directory;
    int folder; /* a descriptor, so that changing the working directory later does not matter */
    json *manifest;
    index_entry *index; /* sorted by hash, then by place in the manifest */
    size_t count;
};

/* ---- keys: "quantize_nf4 sm_90 data=f16 scale=f32 ...", with the settings as kernel_spec_text writes them
 * ---- */

/* Returns false if the entry has no valid key. */
static bool key_of_entry(const json_value *kernel, char *key)
{
    const char *name = json_string(kernel, "kernel"), *sm = json_string(kernel, "sm");
    const json_value *settings = json_at(kernel, "settings");
    if (!name || !sm || !settings || settings->kind != JSON_OBJECT)
        return false;
    size_t used = (size_t)snprintf(key, KEY_MAX, "%s %s", name, sm);
    uint32_t known = 0;
    for (int i = 0; kernel_key_at(i) && used < KEY_MAX; i++) {
        const char *value = json_string(settings, kernel_key_at(i)->name);
        if (value)
            used += (size_t)snprintf(key + used, KEY_MAX - used, " %s=%s", kernel_key_at(i)->name, value);
        known += value != NULL;
    }
    return used < KEY_MAX && known == settings->count;
}

/* If all settings are at their defaults, there may be none to list. */
static void key_of_request(const bundle_request *request, char *key)
{
    char settings[KERNEL_SPEC_TEXT];
    kernel_spec_text(request->row, request->spec, settings, sizeof settings);
    snprintf(key, KEY_MAX, "%s %s%s%s", request->row->name, request->sm->name, *settings ? " " : "",
             settings);
}

static uint64_t hash_key(const char *key)
{
    return bundle_hash(BUNDLE_HASH_START, key, strlen(key));
}

/* The first of an entry's files, from this one on, whose name has that suffix. */
static const json_value *next_file(const json_value *file, const char *suffix)
{
    size_t length = strlen(suffix);
    for (; file; file = file->next) {
        const char *name = json_string(file, "name");
        size_t n = name ? strlen(name) : 0;
        if (n > length && strcmp(name + n - length, suffix) == 0)
            break;
    }
    return file;
}

/* ---- opening ---- */

static int by_hash(const void *a, const void *b)
{
    const index_entry *x = a, *y = b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : (x->place > y->place) - (x->place < y->place);
}

static qdnnStatus_t make_index(bundle *b)
{
    const json_value *kernels = json_at(json_root(b->manifest), "kernels");
    if (!kernels || kernels->kind != JSON_ARRAY)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s/%s has no list of kernels; %s", b->directory,
                          manifest_name, write_it_again);
    b->index = alloc_new(kernels->count * sizeof *b->index);
    if (!b->index)
        return OUT_OF_MEMORY();
    bool usable = false;
    for (const json_value *kernel = kernels->first; kernel; kernel = kernel->next) {
        char key[KEY_MAX];
        if (!key_of_entry(kernel, key))
            return qdnn_error(QDNN_STATUS_BAD_PARAM,
                              "%s/%s: kernel %zu lacks its name, sm or settings, or has unknown ones; %s",
                              b->directory, manifest_name, b->count, write_it_again);
        b->index[b->count] = (index_entry){hash_key(key), b->count, kernel};
        b->count++;
        const json_value *files = json_at(kernel, "files.0");
        usable = usable || next_file(files, ".ptx") || next_file(files, ".cubin");
    }
    if (b->count > 0 && !usable)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "%s/%s names neither PTX nor cubins; %s, with --emit ptx or --emit cubin",
                          b->directory, manifest_name, write_it_again);
    qsort(b->index, b->count, sizeof *b->index, by_hash);
    return QDNN_STATUS_SUCCESS;
}

/* Checks which version of qdnn wrote it. */
static qdnnStatus_t check_head(const bundle *b)
{
    const json_value *root = json_root(b->manifest);
    const char *qdnn = json_string(root, "qdnn"), *emitters = json_string(root, "emitters");
    char version[32], hash_text[17];
    uint64_t form = 0, hash;
    snprintf(version, sizeof version, "%d.%d.%d", QDNN_MAJOR, QDNN_MINOR, QDNN_PATCH);
    if (!json_u64(root, "version", &form) || form != BUNDLE_FORM || !qdnn || !emitters)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "%s/%s is not of the form that this qdnn reads (version %d); %s", b->directory,
                          manifest_name, BUNDLE_FORM, write_it_again);
    if (strcmp(qdnn, version) != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s/%s was written by qdnn %.20s, and this is %s; %s",
                          b->directory, manifest_name, qdnn, version, write_it_again);
    if (!bundle_own_emitters(&hash))
        return OUT_OF_MEMORY();
    snprintf(hash_text, sizeof hash_text, "%016llx", (unsigned long long)hash);
    if (strcmp(emitters, hash_text) != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "%s/%s was written by another build of qdnn %s, whose kernels are not the same; %s",
                          b->directory, manifest_name, version, write_it_again);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_manifest(bundle *b)
{
    size_t bytes;
    bundle_reason reason = {0};
    json_error error = {0};
    char *text = bundle_read(b->folder, manifest_name, &bytes, &reason);
    if (reason.no_memory)
        return OUT_OF_MEMORY();
    if (!text)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s/%s: %s; give a folder that ptxgen --all wrote",
                          b->directory, manifest_name, reason.text);
    b->manifest = json_parse(text, bytes, &error);
    alloc_free(text);
    if (error.no_memory)
        return OUT_OF_MEMORY();
    if (!b->manifest)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s/%s:%zu: %s; %s", b->directory, manifest_name, error.line,
                          error.reason, write_it_again);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t open_folder(bundle *b, const char *directory)
{
    b->directory = alloc_copy(directory);
    if (!b->directory)
        return OUT_OF_MEMORY();
    b->folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b->folder < 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "%s cannot be opened as a folder; give one that ptxgen --all wrote", directory);
    CHECK_STATUS(read_manifest(b));
    CHECK_STATUS(check_head(b));
    return make_index(b);
}

qdnnStatus_t bundle_open(const char *directory, bundle **out)
{
    CHECK_NOT_NULL(directory);
    CHECK_NOT_NULL(out);
    *out = NULL;
    bundle *b = alloc_new(sizeof *b);
    if (!b)
        return OUT_OF_MEMORY();
    b->folder = -1;
    qdnnStatus_t status = open_folder(b, directory);
    if (status == QDNN_STATUS_SUCCESS)
        *out = b;
    else
        bundle_close(b);
    return status;
}

void bundle_close(bundle *b)
{
    if (!b)
        return;
    if (b->folder >= 0)
        close(b->folder);
    json_free(b->manifest);
    alloc_free(b->index);
    alloc_free(b->directory);
    alloc_free(b);
}

/* ---- finding ---- */

static void warn(const bundle *b, const char *file, const char *key, const bundle_reason *reason)
{
    log_write(QDNN_SEVERITY_WARNING, "%s/%s: %s; not used for %s", b->directory, file, reason->text, key);
}

/* Reads the file and checks its bytes. */
static char *load(const bundle *b, const json_value *kernel, const json_value *file,
                  const bundle_request *request, bundle_image *image, bundle_reason *reason)
{
    size_t bytes;
    char *data = bundle_read(b->folder, json_string(file, "name"), &bytes, reason);
    if (!data)
        return NULL;
    bool good = bundle_check_bytes(file, data, bytes, reason) &&
                (image->is_cubin ? bundle_check_cubin(request, data, bytes, reason)
                                 : bundle_check_ptx(kernel, request, data, bytes, &image->version, reason));
    if (good)
        return data;
    alloc_free(data);
    return NULL;
}

/* The first usable file of the kernel with that suffix. */
static bool find_file(const bundle *b, const json_value *kernel, const bundle_request *request,
                      const char *key, bool cubin, bundle_image *image)
{
    const char *suffix = cubin ? ".cubin" : ".ptx";
    for (const json_value *file = next_file(json_at(kernel, "files.0"), suffix); file;
         file = next_file(file->next, suffix)) {
        bundle_reason reason = {0};
        bundle_image found = {.is_cubin = cubin};
        found.data = load(b, kernel, file, request, &found, &reason);
        if (found.data) {
            *image = found;
            return true;
        }
        warn(b, json_string(file, "name"), key, &reason);
    }
    return false;
}

static size_t first_of(const bundle *b, uint64_t hash)
{
    size_t low = 0, high = b->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->index[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- missing kernels ---- */

/* The settings of an entry; those that are not understood keep their defaults. */
static kernel_spec spec_of_entry(const kernel_row *row, const json_value *kernel)
{
    kernel_spec spec = kernel_spec_default();
    char error[256];
    for (int i = 0; kernel_key_at(i); i++) {
        const char *name = kernel_key_at(i)->name, *value = json_string(json_at(kernel, "settings"), name);
        if (value)
            kernel_spec_set(row, &spec, name, value, error, sizeof error);
    }
    return kernel_spec_normal(row, &spec);
}

/* Lists how an entry differs from the request, "group_size=64, scale=f16"; returns the number of differing
 * settings. */
static int difference(const bundle_request *request, const json_value *kernel, char *text, size_t size)
{
    const char *sm = json_string(kernel, "sm");
    int count = strcmp(sm, request->sm->name) != 0;
    size_t used = (size_t)snprintf(text, size, "%s", count ? sm : "");
    kernel_spec spec = spec_of_entry(request->row, kernel);
    for (int i = 0; kernel_key_at(i); i++) {
        const kernel_key_info *key = kernel_key_at(i);
        char has[64], asked[64];
        kernel_spec_value(&spec, key->name, has, sizeof has);
        kernel_spec_value(request->spec, key->name, asked, sizeof asked);
        if (!kernel_has_key(request->row, key->key) || strcmp(asked, has) == 0)
            continue;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s=%s", used ? ", " : "", key->name, has);
        count++;
    }
    return count;
}

/* Logs the missing kernel, with the kernel of that name that differs in the fewest settings. */
static void log_miss(const bundle *b, const bundle_request *request, const char *key)
{
    char nearest[256] = "", other[256];
    int least = 0;
    if (!log_on(QDNN_SEVERITY_WARNING))
        return;
    for (size_t i = 0; i < b->count; i++) {
        const char *name = json_string(b->index[i].kernel, "kernel");
        if (strcmp(name, request->row->name) != 0)
            continue;
        int count = difference(request, b->index[i].kernel, other, sizeof other);
        if (!*nearest || count < least || (count == least && strcmp(other, nearest) < 0)) {
            least = count;
            memcpy(nearest, other, sizeof nearest);
        }
    }
    if (*nearest)
        log_write(QDNN_SEVERITY_WARNING,
                  "%s has no %s, which is emitted; the nearest that it has differs by %s", b->directory, key,
                  nearest);
    else
        log_write(QDNN_SEVERITY_WARNING, "%s has no %s, which is emitted; it has no kernel of that name",
                  b->directory, key);
}

bool bundle_find(const bundle *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                 bool cubins, bundle_image *image)
{
    const bundle_request request = {row, spec, sm};
    char key[KEY_MAX], other[KEY_MAX];
    *image = (bundle_image){0};
    if (!b)
        return false;
    key_of_request(&request, key);
    uint64_t hash = hash_key(key);
    bool named = false;
    for (size_t i = first_of(b, hash); i < b->count && b->index[i].hash == hash; i++) {
        const json_value *kernel = b->index[i].kernel;
        bundle_reason reason = {0};
        if (!key_of_entry(kernel, other) || strcmp(key, other) != 0)
            continue; /* another kernel with the same hash */
        named = true;
        if (!bundle_check_entry(kernel, &request, &reason))
            warn(b, manifest_name, key, &reason);
        else if ((cubins && find_file(b, kernel, &request, key, true, image)) ||
                 find_file(b, kernel, &request, key, false, image))
            return true;
    }
    if (!named)
        log_miss(b, &request, key);
    return false;
}
