/* Stands before the compiler in the build of the mutants: a source file that has a copy is compiled from the copy. */
#include "mutate_sources/project.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The copy of that argument, if it has one. */
static bool copy_of(const char *root, const char *copies, const char *argument, char *path, size_t size)
{
    const size_t length = strlen(root);
    if (strncmp(argument, root, length) != 0 || argument[length] != '/')
        return false;
    snprintf(path, size, "%s%s", copies, argument + length);
    return access(path, R_OK) == 0 && strcmp(argument + strlen(argument) - 2, ".c") == 0;
}

int compile_copy(const char *root, const char *copies, char **command)
{
    int count = 0, n = 0;
    while (command[count])
        count++;
    char **list = calloc((size_t)count + 3, sizeof *list), path[PATH_MAX], folder[PATH_MAX];
    if (!list || count == 0)
        return tool_fail("there is no command");
    for (int i = 0; i < count; i++) {
        list[n++] = command[i];
        if (!copy_of(root, copies, command[i], path, sizeof path))
            continue;
        /* Headers in quotes lie beside the original. As the last of -I: -iquote would come before the others, for every header
         * that this one includes ("qdnn/types.h" is not what lies in tools/qdnn). */
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(command[i], '/') - command[i]), command[i]);
        list[n - 1] = "-I";
        list[n++] = folder;
        list[n++] = path;
    }
    execvp(list[0], list);
    return tool_fail("cannot start '%s'", list[0]);
}
