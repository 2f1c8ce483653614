/* The reviewed list of mistakes that change nothing. */
#include "mutate_sources/known.h"

#include <stdlib.h>
#include <string.h>

/* What a row's lines begin with. */
static const char *const prefixes[] = {"", "- ", "+ ", "because "};

static bool add_row(known *k, const char **parts)
{
    struct known_row *grown = realloc(k->rows, (size_t)(k->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    k->rows = grown;
    grown[k->count++] = (struct known_row){parts[0], parts[1], parts[2], parts[3]};
    return true;
}

bool known_read(known *k, const char *text, int *line)
{
    *k = (known){.text = strdup(text)};
    const char *parts[4];
    int part = 0;
    *line = 0;
    for (char *at = k->text; at && *at;) {
        char *end = strchr(at, '\n'), *this = at;
        at = end ? end + 1 : NULL;
        if (end)
            *end = 0;
        ++*line;
        if (*this == '#' || !*this)
            continue;
        const size_t length = strlen(prefixes[part]);
        if (strncmp(this, prefixes[part], length) != 0 || !this[length])
            return false;
        parts[part++] = this + length;
        if (part == 4 && !add_row(k, parts))
            return false;
        part %= 4;
    }
    return k->text && part == 0;
}

const char *known_reason(const known *k, const char *path, const char *before, const char *after)
{
    for (int i = 0; i < k->count; i++) {
        const struct known_row *row = &k->rows[i];
        if (strcmp(row->path, path) == 0 && strcmp(row->before, before) == 0 &&
            strcmp(row->after, after) == 0)
            return row->reason;
    }
    return NULL;
}

void known_free(known *k)
{
    free(k->text);
    free(k->rows);
    *k = (known){0};
}
