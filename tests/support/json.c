/* A recursive reader: skip() goes over one value and fails on what is not JSON; the rest is walking with it.
 */
#include "support/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* All skip functions return the end of what they skip, or null. */
static const char *skip_string(const char *p)
{
    if (*p++ != '"')
        return NULL;
    while (*p != '"') {
        if ((unsigned char)*p < ' ')
            return NULL;
        if (*p == '\\' && !strchr("\"\\/bfnrtu", p[1]))
            return NULL;
        p += *p == '\\' ? 2 : 1;
    }
    return p + 1;
}

static const char *skip_scalar(const char *p)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0)
            return p + strlen(words[i]);
    size_t n = strspn(p, "-+0123456789.eE");
    return n && (isdigit((unsigned char)p[0]) || p[0] == '-') ? p + n : NULL;
}

static const char *skip(const char *p);

static const char *skip_list(const char *p, char close, bool named)
{
    p = space(p + 1);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (named) {
            p = skip_string(p);
            p = p ? space(p) : NULL;
            if (!p || *p++ != ':')
                return NULL;
        }
        p = skip(space(p));
        p = p ? space(p) : NULL;
        if (!p || (*p != ',' && *p != close))
            return NULL;
        if (*p == close)
            return p + 1;
        p = space(p + 1);
    }
}

static const char *skip(const char *p)
{
    if (*p == '{')
        return skip_list(p, '}', true);
    if (*p == '[')
        return skip_list(p, ']', false);
    return *p == '"' ? skip_string(p) : skip_scalar(p);
}

bool json_valid(const char *text)
{
    const char *end = skip(space(text));
    return end && *space(end) == 0;
}

/* The member of that name, or the element of that number; null when there is none. The text is valid. */
static const char *child(const char *p, const char *name, size_t length, int *count)
{
    bool named = *p == '{';
    if (!named && *p != '[')
        return NULL;
    int index = 0;
    for (p = space(p + 1); *p != '}' && *p != ']'; index++) {
        bool found = !named && name && index == atoi(name);
        if (named) {
            const char *end = skip_string(p);
            found = name && (size_t)(end - p) == length + 2 && strncmp(p + 1, name, length) == 0;
            p = space(space(end) + 1);
        }
        if (found)
            return p;
        p = space(skip(p));
        p = *p == ',' ? space(p + 1) : p;
    }
    *count = index;
    return NULL;
}

static const char *walk(const char *text, const char *path)
{
    const char *p = json_valid(text) ? space(text) : NULL;
    int count;
    while (p && *path) {
        size_t length = strcspn(path, ".");
        p = child(p, path, length, &count);
        path += length + (path[length] == '.');
    }
    return p;
}

bool json_value(const char *text, const char *path, char *value, size_t size)
{
    const char *p = walk(text, path), *end = p ? skip(p) : NULL;
    if (!p)
        return false;
    bool quoted = *p == '"';
    p += quoted;
    end -= quoted;
    size_t n = 0;
    for (; p < end && n + 1 < size; p++) {
        bool escaped = quoted && *p == '\\';
        p += escaped;
        value[n++] = escaped && *p == 'n' ? '\n' : escaped && *p == 't' ? '\t' : *p;
    }
    value[n] = 0;
    return p == end;
}

int json_count(const char *text, const char *path)
{
    const char *p = walk(text, path);
    int count = -1;
    if (p)
        child(p, NULL, 0, &count);
    return count;
}
