/* What is asked of an entry of the manifest and of its files before anything of them reaches a driver. */
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

/* Whether the size of a regular file is known and bearable. */
static bool measure(int file, size_t *bytes, bundle_reason *reason)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        return bundle_refuse(reason, "it cannot be read");
    if (!S_ISREG(about.st_mode))
        return bundle_refuse(reason, "it is no regular file");
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
                              : errno == ELOOP ? "it is a link, no regular file"
                                               : "it cannot be opened");
        return NULL;
    }
    char *data = read_open(file, bytes, reason);
    close(file);
    return data;
}

bool bundle_check_bytes(const json_value *file, const char *data, size_t bytes, bundle_reason *reason)
{
    uint64_t said;
    char hash[17];
    const char *hash_said = json_string(file, "fnv1a64");
    if (!json_u64(file, "bytes", &said) || !hash_said)
        return bundle_refuse(reason, "the manifest does not give its size and hash");
    if (said != bytes)
        return bundle_refuse(reason, "it has %zu bytes; the manifest says %llu", bytes,
                             (unsigned long long)said);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)bundle_hash(BUNDLE_HASH_START, data, bytes));
    if (strcmp(hash, hash_said) != 0)
        return bundle_refuse(reason, "its FNV-1a hash is %s; the manifest says %.16s", hash, hash_said);
    return true;
}

/* ---- the entry ---- */

static bool check_numbers(const json_value *entry, const bundle_request *request, bundle_reason *reason)
{
    kernel_spec normal = kernel_spec_normal(request->row, request->spec);
    kernel_geometry geometry = request->row->geometry(request->row, &normal);
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
        uint64_t said;
        if (!json_u64(v, "", &said) || said != numbers[i].value)
            return bundle_refuse(reason, "%s is %.40s; it must be %llu", numbers[i].path,
                                 v && *v->text ? v->text : "not given", (unsigned long long)numbers[i].value);
    }
    return true;
}

/* Parameters lie one behind the other, each at the next multiple of its size. (PTX ISA, "Kernel Function
 * Parameters".) */
static bool check_parameters(const json_value *entry, bundle_reason *reason)
{
    const json_value *list = json_at(entry, "parameters");
    if (!list || list->kind != JSON_ARRAY || list->count > PTX_INFO_PARAMS)
        return bundle_refuse(reason, "it gives no list of parameters");
    uint64_t end = 0;
    for (const json_value *p = list->first; p; p = p->next) {
        const char *name = json_string(p, "name"), *type = json_string(p, "type");
        uint64_t offset, size;
        if (!name || !type || !json_u64(p, "offset", &offset) || !json_u64(p, "size", &size))
            return bundle_refuse(reason, "a parameter lacks its name, type, offset or size");
        if ((size != 1 && size != 2 && size != 4 && size != 8) || offset != (end + size - 1) / size * size)
            return bundle_refuse(reason, "parameter %.40s cannot lie at %llu with %llu bytes", name,
                                 (unsigned long long)offset, (unsigned long long)size);
        end = offset + size;
    }
    return true;
}

bool bundle_check_entry(const json_value *entry, const bundle_request *request, bundle_reason *reason)
{
    char name[64];
    const char *said = json_string(entry, "entry");
    kernel_entry_name(request->row, name, sizeof name);
    if (!said || strcmp(said, name) != 0)
        return bundle_refuse(reason, "entry is %.60s; it must be %s", said ? said : "not given", name);
    return check_numbers(entry, request, reason) && check_parameters(entry, reason);
}

/* ---- PTX ---- */

enum { DECLARATION_MAX = 8192 };

/* Adds to a text that is cut at its size; what is cut matches nothing. */
static void add(char *text, size_t size, size_t *used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void add(char *text, size_t size, size_t *used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (*used < size)
        *used += (size_t)vsnprintf(text + *used, size - *used, format, args);
    va_end(args);
}

/* The declaration of the entry as ptxgen writes it, from what the manifest says. */
static void declare(const json_value *entry, char *text, size_t size)
{
    size_t used = 0;
    add(text, size, &used, "\n.visible .entry %s(", json_string(entry, "entry"));
    const json_value *p = json_at(entry, "parameters.0");
    bool any = p != NULL;
    for (; p; p = p->next) {
        uint64_t align;
        add(text, size, &used, "\n\t.param .%s", json_string(p, "type"));
        if (json_u64(p, "align", &align))
            add(text, size, &used, " .ptr .global .align %llu", (unsigned long long)align);
        add(text, size, &used, " %s%s", json_string(p, "name"), p->next ? "," : "");
    }
    add(text, size, &used, any ? "\n)\n" : ")\n");
}

/* "7.8" is 78. */
static bool parse_version(const char *text, int *version)
{
    size_t major = text ? strspn(text, "0123456789") : 0;
    if (major < 1 || major > 2 || text[major] != '.' || text[major + 1] < '0' || text[major + 1] > '9' ||
        text[major + 2])
        return false;
    *version = 0;
    for (; *text; text++)
        if (*text != '.')
            *version = *version * 10 + (*text - '0');
    return true;
}

bool bundle_check_ptx(const json_value *entry, const bundle_request *request, const char *data, size_t bytes,
                      int *version, bundle_reason *reason)
{
    const char *said = json_string(entry, "ptx_version");
    if (!parse_version(said, version))
        return bundle_refuse(reason, "the manifest does not give its ptx_version");
    if (strlen(data) != bytes)
        return bundle_refuse(reason, "its PTX has a NUL in it");
    char head[64], declaration[DECLARATION_MAX];
    snprintf(head, sizeof head, ".version %s\n.target %s\n", said, request->sm->name);
    if (strncmp(data, head, strlen(head)) != 0)
        return bundle_refuse(reason, "its PTX does not begin with .version %s and .target %s", said,
                             request->sm->name);
    declare(entry, declaration, sizeof declaration);
    if (!strstr(data, declaration))
        return bundle_refuse(reason, "its PTX does not declare %s with the manifest's parameters",
                             json_string(entry, "entry"));
    return true;
}

/* ---- cubins ---- */

/* An ELF file of 64 bits, little-endian. The SM is in its flags: bits 7:0, from ABI version 8 on (CUDA 13)
 * bits 15:8. */
enum { ELF_HEADER = 64, ELF_ABI_VERSION = 8, ELF_MACHINE = 18, ELF_FLAGS = 48, ELF_MACHINE_CUDA = 190 };

bool bundle_check_cubin(const bundle_request *request, const char *data, size_t bytes, bundle_reason *reason)
{
    static const char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    const unsigned char *p = (const unsigned char *)data;
    if (bytes < ELF_HEADER || memcmp(data, magic, sizeof magic) != 0)
        return bundle_refuse(reason, "it does not begin as an ELF file of 64 bits does");
    unsigned machine = p[ELF_MACHINE] | (unsigned)p[ELF_MACHINE + 1] << 8;
    if (machine != ELF_MACHINE_CUDA)
        return bundle_refuse(reason, "it is an ELF file for machine %u, not for CUDA (%d)", machine,
                             ELF_MACHINE_CUDA);
    unsigned sm = p[ELF_FLAGS + (p[ELF_ABI_VERSION] >= 8)];
    if (sm != request->sm->number)
        return bundle_refuse(reason, "it is machine code for sm_%u, not for %s", sm, request->sm->name);
    return true;
}
