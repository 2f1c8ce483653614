/* Finding the known name nearest to an unknown one. */
#include "tools/tool.h"

#include <string.h>

enum { NAME_MAX_LENGTH = 256 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The number of letters to insert, delete, change or swap with the next one to turn one name into the
 * other. */
static int distance(const char *a, const char *b)
{
    int rows[3][NAME_MAX_LENGTH + 1];
    int *above = rows[0], *here = rows[1], *two_above = rows[2];
    int columns = (int)strlen(b);
    for (int k = 0; k <= columns; k++)
        here[k] = k;
    for (int i = 0; a[i]; i++) {
        int *oldest = two_above;
        two_above = above;
        above = here;
        here = oldest;
        here[0] = i + 1;
        for (int k = 0; k < columns; k++) {
            here[k + 1] = least(above[k] + (a[i] != b[k]), 1 + least(above[k + 1], here[k]));
            if (i > 0 && k > 0 && a[i] == b[k - 1] && a[i - 1] == b[k])
                here[k + 1] = least(here[k + 1], two_above[k - 1] + 1);
        }
    }
    return here[columns];
}

static int common_start(const char *a, const char *b)
{
    int n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

const char *tool_nearest(const char *name, tool_name_at name_at, const void *list)
{
    const char *best = NULL;
    int length = (int)strlen(name), best_distance = length / 4 + 2; /* names farther apart are not similar */
    for (int i = 0; name_at(list, i); i++) {
        const char *candidate = name_at(list, i);
        if (strlen(candidate) > NAME_MAX_LENGTH)
            continue;
        int d = distance(name, candidate);
        bool ahead = best && d == best_distance && common_start(name, candidate) > common_start(name, best);
        if (d < best_distance || ahead) {
            best = candidate;
            best_distance = d;
        }
    }
    for (int i = 0; !best && length > 2 && name_at(list, i); i++) /* a part of a name, as of a mangled one */
        best = strstr(name_at(list, i), name) ? name_at(list, i) : NULL;
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
