/* Unknown names: which known one is nearest. */
#include "tools/tool.h"

#include <string.h>

enum { NAME_MAX_LENGTH = 256 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* How many letters have to be inserted, deleted or changed to make one name of the other. */
static int distance(const char *a, const char *b)
{
    int row[NAME_MAX_LENGTH + 1];
    int columns = (int)strlen(b);
    for (int k = 0; k <= columns; k++)
        row[k] = k;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int k = 0; k < columns; k++) {
            int changed = diagonal + (a[i] != b[k]);
            diagonal = row[k + 1];
            row[k + 1] = least(changed, 1 + least(row[k], diagonal));
        }
    }
    return row[columns];
}

const char *tool_nearest(const char *name, tool_name_at name_at, const void *list)
{
    const char *best = NULL;
    int length = (int)strlen(name), best_distance = length / 3 + 2; /* further away is no likeness */
    for (int i = 0; name_at(list, i); i++) {
        const char *candidate = name_at(list, i);
        if (strlen(candidate) > NAME_MAX_LENGTH)
            continue;
        int d = distance(name, candidate);
        if (d < best_distance) {
            best = candidate;
            best_distance = d;
        }
    }
    return best;
}

int tool_unknown(const char *what, const char *name, tool_name_at name_at, const void *list,
                 const char *otherwise)
{
    const char *near = tool_nearest(name, name_at, list);
    if (near)
        return tool_usage_error("unknown %s '%s'; did you mean '%s'?", what, name, near);
    return tool_usage_error("unknown %s '%s'; %s", what, name, otherwise);
}
