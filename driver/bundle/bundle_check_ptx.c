/* Checks that a bundle's PTX is the text that its manifest entry describes. */
#include "driver/bundle/bundle_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DECLARATION_MAX = 8192 };

/* Appends to a text that is truncated to its size; a truncated text matches nothing. */
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

/* The declaration of the entry as ptxgen writes it. bundle_check_entry has already compared the manifest's
 * parameters with the registry's. */
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

/* Returns the end of the comment or string that begins here; otherwise the next character. */
static const char *skip(const char *p)
{
    const char *end;
    if (strncmp(p, "//", 2) == 0)
        return p + strcspn(p, "\n"); /* the newline itself may begin the declaration */
    if (strncmp(p, "/*", 2) == 0)
        return (end = strstr(p + 2, "*/")) ? end + 2 : p + strlen(p);
    if (*p == '"')
        return (end = strchr(p + 1, '"')) ? end + 1 : p + strlen(p);
    return p + 1;
}

/* Whether the text contains these words as code, not in a comment or a string. A '#', which a preprocessor
 * would interpret, makes the text untrusted: ptxgen never writes one. */
static bool has_code(const char *text, const char *words)
{
    size_t length = strlen(words);
    bool found = false;
    for (const char *p = text; *p; p = skip(p)) {
        if (*p == '#')
            return false;
        found = found || strncmp(p, words, length) == 0;
    }
    return found;
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
    if (!has_code(data, declaration))
        return bundle_refuse(reason, "its PTX does not declare %s with its parameters",
                             json_string(entry, "entry"));
    return true;
}
