/* Whether a mistake compiles: one compilation of its file with that mistake alone, in the form of inside.h that is strict about types. */
#include "base/json.h"
#include "mutate_sources/project.h"
#include "mutate_sources/rewrite.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const json_value *command_of(const project *p, const source *s)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", p->root, s->path);
    const json_value *root = json_root(p->commands_json);
    for (const json_value *one = root ? root->first : NULL; one; one = one->next) {
        const char *file = json_string(one, "file");
        if (file && strcmp(file, path) == 0)
            return one;
    }
    return NULL;
}

/* The part of a command between what CMake puts before the compiler and the files. */
static int flags_of(const project *p, const char *command, const char **flags)
{
    char launcher[PATH_MAX];
    snprintf(launcher, sizeof launcher, "%s/copies ", p->build);
    const char *compiler = strstr(command, launcher), *files = strstr(command, " -o ");
    *flags = compiler ? compiler + strlen(launcher) : command;
    return files && files > *flags ? (int)(files - *flags) : -1;
}

static bool run_check(project *p, const source *s, const char *copy)
{
    const json_value *one = command_of(p, s);
    const char *flags, *folder = one ? json_string(one, "directory") : NULL;
    const int length = folder ? flags_of(p, json_string(one, "command"), &flags) : -1;
    if (length < 0)
        return false; /* a file that is no part of the build */
    const char *slash = strrchr(s->path, '/');
    tool_text line = {0};
    /* Warnings that the compiler gives unasked are mistakes that nobody would leave in; VLAs come from sizes that are not constant any more. */
    tool_printf(&line,
                "cd '%s' && %.*s -O0 -DSOURCE_CHECK -Wno-all -Wno-extra -Wreturn-type -Wvla -Werror -I "
                "'%s/%.*s' -S -o "
                "'%s/check.s' '%s' >/dev/null 2>'%s/check.log' && grep -q source_mutant_is_here '%s/check.s'",
                folder, length, flags, p->root, (int)(slash ? slash - s->path : 0), s->path, p->build, copy,
                p->build, p->build);
    tool_append(&line, "", 1);
    const bool ok = !line.failed && system(line.data) == 0;
    tool_text_free(&line);
    return ok;
}

bool mistake_compiles(project *p, const source *s, const mistake *m)
{
    const numbered one = {1, m};
    char path[PATH_MAX];
    tool_text text = {0};
    snprintf(path, sizeof path, "%s/check.c", p->build);
    const bool ok =
        rewrite(s, p->root, &one, 1, &text) && tool_write(path, &text) == TOOL_OK && run_check(p, s, path);
    tool_text_free(&text);
    return ok;
}
