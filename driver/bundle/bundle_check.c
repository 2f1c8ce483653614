/* Checks of a manifest entry and of its files, before any of them reach a driver. */
#include "driver/bundle/bundle_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/base/alloc.h"

uint64_t bundle_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

bool bundle_refuse(bundle_reason *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reason->text, sizeof reason->text, format, args);
    va_end(args);
    return false;
}

/* ---- files ---- */

/* Gets the size of a regular file, if it is not too large. */
static bool measure(int file, size_t *bytes, bundle_reason *reason)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        return bundle_refuse(reason, "it cannot be read");
    if (!S_ISREG(about.st_mode))
        return bundle_refuse(reason, "it is not a regular file");
    if (about.st_size > BUNDLE_FILE_MAX)
        return bundle_refuse(reason, "it has %lld bytes; at most %d are read", (long long)about.st_size,
                             BUNDLE_FILE_MAX);
    *bytes = (size_t)about.st_size;
    return true;
}

static bool fill(int file, char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = read(file, data, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        bytes -= (size_t)n;
    }
    return true;
}

static char *read_open(int file, size_t *bytes, bundle_reason *reason)
{
    if (!measure(file, bytes, reason))
        return NULL;
    char *data = alloc_new(*bytes + 1);
    if (!data) {
        reason->no_memory = true;
        bundle_refuse(reason, "the host is out of memory");
    } else if (!fill(file, data, *bytes)) {
        bundle_refuse(reason, "it cannot be read to its end");
        alloc_free(data);
        data = NULL;
    }
    return data;
}

char *bundle_read(int folder, const char *name, size_t *bytes, bundle_reason *reason)
{
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        bundle_refuse(reason, "its name is not that of a file in the folder");
        return NULL;
    }
    /* O_NONBLOCK: opening a pipe must not wait for its other end. */
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        bundle_refuse(reason, errno == ENOENT  ? "there is no such file"
                              : errno == ELOOP ? "it is a symbolic link, not a regular file"
                                               : "it cannot be opened");
        return NULL;
    }
    char *data = read_open(file, bytes, reason);
    close(file);
    return data;
}

bool bundle_check_bytes(const json_value *file, const char *data, size_t bytes, bundle_reason *reason)
{
    uint64_t in_manifest;
    char hash[17];
    const char *hash_in_manifest = json_string(file, "fnv1a64");
    if (!json_u64(file, "bytes", &in_manifest) || !hash_in_manifest)
        return bundle_refuse(reason, "the manifest does not give its size and hash");
    if (in_manifest != bytes)
        return bundle_refuse(reason, "it has %zu bytes; the manifest says %llu", bytes,
                             (unsigned long long)in_manifest);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)bundle_hash(BUNDLE_HASH_START, data, bytes));
    if (strcmp(hash, hash_in_manifest) != 0)
        return bundle_refuse(reason, "its FNV-1a hash is %s; the manifest says %.16s", hash,
                             hash_in_manifest);
    return true;
}

/* ---- the entry ---- */

static bool check_numbers(const json_value *entry, const bundle_request *request, bundle_reason *reason)
{
    const kernel_geometry geometry = kernel_geometry_of(request->row, request->spec);
    const struct {
        const char *path;
        uint64_t value;
    } numbers[] = {
        {"block.0", geometry.block},
        {"block.1", 1},
        {"block.2", 1},
        {"grid.elements_per_block", geometry.elements_per_block},
        {"shared.dynamic", geometry.shared_dynamic},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const json_value *v = json_at(entry, numbers[i].path);
        uint64_t in_manifest;
        if (!json_u64(v, "", &in_manifest) || in_manifest != numbers[i].value)
            return bundle_refuse(reason, "%s is %.40s; it must be %llu", numbers[i].path,
                                 v && *v->text ? v->text : "not given", (unsigned long long)numbers[i].value);
    }
    return true;
}

/* Compares a text of the manifest with what it must be. */
static bool check_text(int i, const char *what, const char *in_manifest, const char *must,
                       bundle_reason *reason)
{
    if (in_manifest && strcmp(in_manifest, must) == 0)
        return true;
    return bundle_refuse(reason, "parameters.%d.%s is %.40s; it must be %s", i, what,
                         in_manifest ? in_manifest : "not given", must);
}

static bool check_u64(const json_value *p, int i, const char *what, uint64_t must, bundle_reason *reason)
{
    uint64_t in_manifest;
    if (!json_u64(p, what, &in_manifest))
        return bundle_refuse(reason, "parameters.%d.%s is not given; it must be %llu", i, what,
                             (unsigned long long)must);
    if (in_manifest != must)
        return bundle_refuse(reason, "parameters.%d.%s is %llu; it must be %llu", i, what,
                             (unsigned long long)in_manifest, (unsigned long long)must);
    return true;
}

static bool check_parameter(const json_value *p, int i, const ptx_param_info *must, bundle_reason *reason)
{
    if (!check_text(i, "name", json_string(p, "name"), must->name, reason) ||
        !check_text(i, "type", json_string(p, "type"), ptx_type_text(must->type), reason) ||
        !check_u64(p, i, "offset", must->offset, reason) || !check_u64(p, i, "size", must->size, reason))
        return false;
    if (must->pointer)
        return check_u64(p, i, "align", must->align, reason);
    return !json_at(p, "align") ||
           bundle_refuse(reason, "parameters.%d.align is given; only a pointer has it", i);
}

/* A launch passes the parameters that the registry's kernel has. A kernel with more parameters would read
 * past the end of that list, so all of them must be the same. */
static bool check_parameters(const json_value *entry, const ptx_info *info, bundle_reason *reason)
{
    const json_value *list = json_at(entry, "parameters");
    if (!list || list->kind != JSON_ARRAY)
        return bundle_refuse(reason, "it gives no list of parameters");
    if (list->count != (uint32_t)info->n_params)
        return bundle_refuse(reason, "it has %llu parameters; it must have %d",
                             (unsigned long long)list->count, info->n_params);
    int i = 0;
    for (const json_value *p = list->first; p; p = p->next, i++)
        if (!check_parameter(p, i, &info->params[i], reason))
            return false;
    return true;
}

/* Only the emitters know a kernel's parameters. Emitting the text again takes tens of microseconds. */
static bool describe(const bundle_request *request, ptx_info *info, bundle_reason *reason)
{
    kernel_text text;
    ptx_error error;
    if (!kernel_emit_normal(request->row, request->spec, request->sm, &alloc_for_ptx, &text, &error)) {
        reason->no_memory = error.no_memory;
        return bundle_refuse(reason, "%.200s", error.text);
    }
    *info = text.info;
    ptx_free_text(&alloc_for_ptx, text.ptx);
    return true;
}

bool bundle_check_entry(const json_value *entry, const bundle_request *request, bundle_reason *reason)
{
    char name[64];
    ptx_info info;
    const char *in_manifest = json_string(entry, "entry");
    kernel_entry_name(request->row, name, sizeof name);
    if (!in_manifest || strcmp(in_manifest, name) != 0)
        return bundle_refuse(reason, "entry is %.60s; it must be %s", in_manifest ? in_manifest : "not given",
                             name);
    return check_numbers(entry, request, reason) && describe(request, &info, reason) &&
           check_parameters(entry, &info, reason);
}

/* ---- cubins ---- */

/* A 64-bit little-endian ELF file. The SM is in its flags: bits 7:0, or from ABI version 8 (CUDA 13) on bits
 * 15:8. */
enum { ELF_HEADER = 64, ELF_ABI_VERSION = 8, ELF_MACHINE = 18, ELF_FLAGS = 48, ELF_MACHINE_CUDA = 190 };

bool bundle_check_cubin(const bundle_request *request, const char *data, size_t bytes, bundle_reason *reason)
{
    static const char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    const unsigned char *p = (const unsigned char *)data;
    if (bytes < ELF_HEADER || memcmp(data, magic, sizeof magic) != 0)
        return bundle_refuse(reason, "it does not begin like a 64-bit ELF file");
    unsigned machine = p[ELF_MACHINE] | (unsigned)p[ELF_MACHINE + 1] << 8;
    if (machine != ELF_MACHINE_CUDA)
        return bundle_refuse(reason, "it is an ELF file for machine %u, not for CUDA (%d)", machine,
                             ELF_MACHINE_CUDA);
    unsigned sm = p[ELF_FLAGS + (p[ELF_ABI_VERSION] >= 8)];
    if (sm != request->sm->number)
        return bundle_refuse(reason, "it is machine code for sm_%u, not for %s", sm, request->sm->name);
    return true;
}
