/* Runs a program from a test and captures its output. */
#define _XOPEN_SOURCE 700 /* nftw, posix_openpt */
#include "support/process.h"

#include "tools/toolkit.h"

#include <fcntl.h>
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

static int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : -1;
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
    result.status = exit_code(pclose(pipe));
    return result;
}

/* ---- on a terminal ---- */

/* Both ends of a new terminal. */
static bool open_terminal(int *ours, int *theirs)
{
    *ours = posix_openpt(O_RDWR | O_NOCTTY);
    *theirs = -1;
    if (*ours >= 0 && grantpt(*ours) == 0 && unlockpt(*ours) == 0)
        *theirs = open(ptsname(*ours), O_RDWR | O_NOCTTY);
    if (*theirs < 0 && *ours >= 0)
        close(*ours);
    return *theirs >= 0;
}

static void exec_on(int terminal, int other_end, const char *command)
{
    close(other_end);
    for (int i = 0; i < 3; i++)
        dup2(terminal, i);
    if (terminal > 2)
        close(terminal);
    setsid();
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* A terminal ends lines with \r\n. */
static void plain_lines(process_result *result)
{
    size_t kept = 0;
    for (size_t i = 0; i < result->length; i++)
        if (result->output[i] != '\r' || result->output[i + 1] != '\n')
            result->output[kept++] = result->output[i];
    result->output[kept] = 0;
    result->length = kept;
}

process_result process_run_on_terminal(const char *format, ...)
{
    char command[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    process_result result = {.status = -1};
    int ours, theirs, status = -1;
    if (!open_terminal(&ours, &theirs))
        return result;
    pid_t child = fork();
    if (child == 0)
        exec_on(theirs, ours, command);
    close(theirs);
    FILE *in = fdopen(ours, "r");
    if (in && child > 0)
        result.output = read_all(in, &result.length); /* until an error: the other end is closed */
    if (in)
        fclose(in);
    if (child > 0 && waitpid(child, &status, 0) == child)
        result.status = exit_code(status);
    if (result.output)
        plain_lines(&result);
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
