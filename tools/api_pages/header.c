#include "tools/api_pages/header.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        rewind(file);
        text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
        if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

static bool add(header *h, item_kind kind, const char *from, const char *to, bool follows)
{
    if (h->count == h->room) {
        const int room = h->room ? 2 * h->room : 64;
        item *more = realloc(h->items, (size_t)room * sizeof *more);
        if (!more)
            return false;
        h->items = more;
        h->room = room;
    }
    h->items[h->count++] = (item){kind, {from, (size_t)(to - from)}, follows};
    return true;
}

/* Behind a line of the preprocessor. */
static const char *skip_directive(const char *at)
{
    while (*at && *at != '\n')
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return at;
}

static const char *end_of_comment(const char *at)
{
    const char *end = strstr(at, "*/");
    return end ? end + 2 : at + strlen(at);
}

/* Behind a declaration: its semicolon, or the body of an inline function. */
static const char *end_of_declaration(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        if (at[0] == '/' && at[1] == '*') {
            at = end_of_comment(at) - 1;
        } else if (*at == '{' || *at == '(') {
            depth++;
        } else if (*at == '}' || *at == ')') {
            depth--;
            if (depth == 0 && *at == '}' && at[1] == '\n')
                return at + 1;
        } else if (*at == ';' && depth == 0) {
            return at + 1;
        }
    }
    return at;
}

/* `extern "C" {` and its end are not the header's subject. */
static bool is_linkage(const char *at)
{
    return strncmp(at, "extern \"C\"", 10) == 0 || *at == '}';
}

static bool take_apart(header *h)
{
    const char *at = h->source;
    bool follows = false;
    for (;;) {
        int lines = 0;
        for (; isspace((unsigned char)*at); at++)
            lines += *at == '\n';
        if (!*at)
            return true;
        follows = lines < 2;
        const char *end;
        if (*at == '#') {
            end = skip_directive(at);
        } else if (is_linkage(at)) {
            end = strchr(at, '\n') ? strchr(at, '\n') : at + strlen(at);
        } else {
            const bool comment = at[0] == '/' && at[1] == '*';
            end = comment ? end_of_comment(at) : end_of_declaration(at);
            if (!add(h, comment ? ITEM_COMMENT : ITEM_DECLARATION, at, end, follows))
                return false;
        }
        at = end;
    }
}

bool header_read(const char *path, header *h)
{
    *h = (header){.source = read_file(path)};
    return h->source && take_apart(h);
}

void header_free(header *h)
{
    free(h->source);
    free(h->items);
}

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* A function's name is in front of the first parenthesis, a type's in front of the last semicolon. */
span declared_name(span d)
{
    const bool type = d.length > 7 && strncmp(d.text, "typedef", 7) == 0;
    const char *end = d.text + d.length - 1;
    if (!type) {
        end = memchr(d.text, '(', d.length);
        if (!end || strncmp(d.text, "enum", 4) == 0)
            return (span){d.text, 0};
    } else {
        const char *pointer = strstr(d.text, "(*");
        if (pointer && pointer < end && !memchr(d.text, '{', (size_t)(pointer - d.text)))
            end = memchr(pointer, ')', (size_t)(end - pointer));
    }
    const char *from = end;
    while (from > d.text && is_of_name(from[-1]))
        from--;
    return (span){from, (size_t)(end - from)};
}
