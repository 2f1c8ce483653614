/* Running a program from a test and reading what it printed. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "support/process.h"

#include "tools/toolkit.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *read_all(FILE *in, size_t *length)
{
    size_t capacity = 1 << 16, used = 0;
    char *text = malloc(capacity);
    while (text) {
        used += fread(text + used, 1, capacity - used - 1, in);
        if (used + 1 < capacity)
            break;
        capacity *= 2;
        char *grown = realloc(text, capacity);
        if (!grown)
            free(text);
        text = grown;
    }
    if (text)
        text[used] = 0;
    *length = text ? used : 0;
    return text;
}

process_result process_run(const char *format, ...)
{
    char command[8192], line[8300];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(line, sizeof line, "{ %s\n} 2>&1", command);
    process_result result = {.status = -1};
    FILE *pipe = popen(line, "r");
    if (!pipe)
        return result;
    result.output = read_all(pipe, &result.length);
    int status = pclose(pipe);
    result.status = WIFEXITED(status)     ? WEXITSTATUS(status)
                    : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                          : -1;
    return result;
}

void process_free(process_result *result)
{
    free(result->output);
    result->output = NULL;
}

void temp_dir_make(char *path, size_t size)
{
    if (!toolkit_make_directory(path, size)) {
        perror("a temporary directory");
        abort();
    }
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

void temp_dir_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
