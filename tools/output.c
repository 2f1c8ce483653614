/* Growing text, messages, and files that are written completely or not at all. */
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "tools/unfinished.h"

/* ---- text ---- */

static bool reserve(tool_text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 4)
        return false;
    if (text->capacity - text->size > more)
        return true;
    size_t capacity = 2 * text->capacity + more + 256;
    char *grown = realloc(text->data, capacity);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->data = grown;
    text->capacity = capacity;
    return true;
}

void tool_append(tool_text *text, const void *bytes, size_t count)
{
    if (!reserve(text, count + 1))
        return;
    memcpy(text->data + text->size, bytes, count);
    text->size += count;
    text->data[text->size] = 0;
}

static void append_formatted(tool_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0)
        text->failed = true;
    else if (reserve(text, (size_t)n + 1)) {
        vsnprintf(text->data + text->size, (size_t)n + 1, format, args);
        text->size += (size_t)n;
    }
}

void tool_printf(tool_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append_formatted(text, format, args);
    va_end(args);
}

void tool_quote(tool_text *text, const char *string)
{
    tool_append(text, "\"", 1);
    for (size_t left = strlen(string), used; left > 0; string += used, left -= used) {
        char escaped[ESCAPE_JSON_MAX];
        size_t n = escape_json(escaped, string, left, &used);
        tool_append(text, escaped, n);
    }
    tool_append(text, "\"", 1);
}

void tool_escape(tool_text *text, const char *string, size_t length)
{
    if (length > SIZE_MAX / 16 || !reserve(text, 4 * length + 1)) {
        text->failed = true;
        return;
    }
    text->size += escape_text(text->data + text->size, 4 * length + 1, string, length);
}

void tool_text_free(tool_text *text)
{
    free(text->data);
    *text = (tool_text){0};
}

uint64_t tool_hash(const tool_text *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text->size; i++)
        hash = (hash ^ (unsigned char)text->data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- messages ---- */

const char *tool_style_text(FILE *stream, tool_style style)
{
    static const char *const sequences[] = {[TOOL_USUAL] = "\033[0m",
                                            [TOOL_STRONG] = "\033[1m",
                                            [TOOL_BAD] = "\033[1;31m",
                                            [TOOL_GOOD] = "\033[1;32m"};
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    bool plain = (no_color && *no_color) || !terminal || strcmp(terminal, "dumb") == 0;
    return plain || !isatty(fileno(stream)) ? "" : sequences[style];
}

/* Formats, escapes and prints; without memory, it prints nothing but that. */
static void print_escaped(FILE *stream, const char *format, va_list args)
{
    tool_text raw = {0}, shown = {0};
    append_formatted(&raw, format, args);
    if (raw.data)
        tool_escape(&shown, raw.data, raw.size);
    if (raw.failed || shown.failed)
        fputs("(out of memory)", stream);
    else if (shown.size)
        fwrite(shown.data, 1, shown.size, stream);
    tool_text_free(&raw);
    tool_text_free(&shown);
}

void tool_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_escaped(stdout, format, args);
    va_end(args);
}

void tool_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_escaped(stdout, format, args);
    va_end(args);
    putchar('\n');
}

void tool_escape_lines(tool_text *text, const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        tool_escape(text, lines, length);
        tool_append(text, "\n", 1);
        lines += length + (lines[length] == '\n');
    }
}

static void message(const char *format, va_list args)
{
    fflush(stdout); /* earlier output comes first, even if both go to one file */
    fprintf(stderr, "%s%s:%s ", tool_style_text(stderr, TOOL_BAD), tool_program,
            tool_style_text(stderr, TOOL_USUAL));
    print_escaped(stderr, format, args);
}

int tool_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message(format, args);
    va_end(args);
    fputs("\n", stderr);
    return TOOL_FAILED;
}

int tool_usage_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message(format, args);
    va_end(args);
    fprintf(stderr, " (%s --help shows examples)\n", tool_program);
    return TOOL_USAGE;
}

/* ---- files ---- */

static bool write_bytes(int file, const tool_text *text)
{
    for (size_t done = 0; done < text->size;) {
        ssize_t n = write(file, text->data + done, text->size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* Closes; the first failure counts. */
static bool close_after(int file, bool ok)
{
    int problem = errno;
    if (close(file) != 0 && ok)
        return false;
    errno = problem;
    return ok;
}

/* Into a device or a pipe, which must not be replaced. */
static bool fill(const char *path, const tool_text *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    return file >= 0 && close_after(file, write_bytes(file, text));
}

/* Not synced: bundles have thousands of files, and all of them can be made again. */
static bool replace(const char *path, const tool_text *text)
{
    char temporary[UNFINISHED_PATH];
    int file;
    if (!unfinished_beside(path, temporary, &file))
        return false;
    if (close_after(file, write_bytes(file, text)) && unfinished_publish(temporary, path, NULL))
        return true;
    unfinished_discard();
    return false;
}

int tool_write(const char *path, const tool_text *text)
{
    if (text->failed)
        return tool_fail("out of memory");
    if (!path || strcmp(path, "-") == 0) {
        fwrite(text->data, 1, text->size, stdout);
        return TOOL_OK; /* tool_finish checks stdout at the end */
    }
    struct stat info;
    bool special = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    bool ok = special ? fill(path, text) : replace(path, text);
    return ok ? TOOL_OK : tool_fail("cannot write %s: %s", path, strerror(errno));
}

int tool_read(const char *path, tool_text *text)
{
    char part[1 << 16];
    bool standard = strcmp(path, "-") == 0;
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY);
    ssize_t n = file < 0 ? -1 : 0;
    while (file >= 0 && ((n = read(file, part, sizeof part)) > 0 || (n < 0 && errno == EINTR)))
        tool_append(text, part, n > 0 ? (size_t)n : 0);
    int problem = errno;
    if (file >= 0 && !standard)
        close(file);
    if (n < 0)
        return tool_fail("cannot read %s: %s", standard ? "standard input" : path, strerror(problem));
    return text->failed ? tool_fail("out of memory") : TOOL_OK;
}

int tool_make_directory(const char *path)
{
    char part[4096];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return tool_fail("cannot make the directory '%.200s': its name is %s", path,
                         length ? "too long" : "empty");
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        struct stat info;
        bool there = mkdir(part, 0777) == 0 || (stat(part, &info) == 0 && S_ISDIR(info.st_mode));
        if (!there)
            return tool_fail("cannot make the directory %s: %s", part, strerror(errno));
    }
    return TOOL_OK;
}

int tool_finish(int status)
{
    /* A full disk or a closed pipe is noticed here at the latest. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == TOOL_OK)
        return tool_fail("cannot write to standard output");
    return status;
}
