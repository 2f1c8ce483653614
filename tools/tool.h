/* Shared by the commands (ptxgen, ptxvm, qdnn): options, messages, unknown names, text and files. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1, /* the work failed */
    TOOL_USAGE = 2   /* the request is invalid */
};

/* The command's name, with which its messages begin; each command defines it. */
extern const char tool_program[];

/* ---- output.c: growing text, files, messages ---- */

typedef struct tool_text {
    char *data;
    size_t size, capacity;
    bool failed; /* out of memory; later additions do nothing */
} tool_text;

void tool_printf(tool_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tool_append(tool_text *text, const void *bytes, size_t count);
/* Appends a string in quotes, escaped as in both JSON and C; bytes that are not UTF-8 become U+FFFD. */
void tool_quote(tool_text *text, const char *string);
/* Appends text from a file or a driver as base/escape.h shows it; the second, several lines of it. */
void tool_escape(tool_text *text, const char *string, size_t length);
void tool_escape_lines(tool_text *text, const char *lines);
void tool_text_free(tool_text *text);

/* The style of a piece of a message on a terminal. */
typedef enum tool_style { TOOL_USUAL, TOOL_STRONG, TOOL_BAD, TOOL_GOOD } tool_style;
/* The escape sequence that begins the style on that stream; empty if it is not a terminal, NO_COLOR is set or
 * TERM is dumb. */
const char *tool_style_text(FILE *stream, tool_style style);

/* Print on stdout, everything escaped (base/escape.h), since names and texts of files are among the arguments: a part
 * of a line, or a whole line or its end. */
void tool_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tool_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print one line on stderr, escaped in the same way, and return the exit code. */
int tool_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int tool_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the file completely or not at all. "-" or null is standard output. Returns an exit code. */
int tool_write(const char *path, const tool_text *text);
/* Appends the whole file; "-" is standard input. Returns an exit code. */
int tool_read(const char *path, tool_text *text);
int tool_make_directory(const char *path);
uint64_t tool_hash(const tool_text *text); /* FNV-1a, 64 bits */
/* The exit code of the command, after checking that standard output was written. */
int tool_finish(int status);

/* ---- names.c: suggestions for unknown names ---- */

/* The name with that index in a list; null past its end. */
typedef const char *(*tool_name_at)(const void *list, int index);

/* The nearest name of the list, or else one that contains it; null if none is similar. */
const char *tool_nearest(const char *name, tool_name_at name_at, const void *list);
/* Reports "unknown WHAT 'NAME'; did you mean 'X'?", or `otherwise` if none is similar. Returns TOOL_USAGE. */
int tool_unknown(const char *what, const char *name, tool_name_at name_at, const void *list,
                 const char *otherwise);

/* ---- options.c: the command line ---- */

typedef struct tool_option {
    const char *name;
    bool takes_value;
    /* Stores it in the command's own struct; value is null if the option takes none. Returns an exit code. */
    int (*parse)(void *options, const char *value);
    size_t flag; /* if parse is null: the offset of the bool in that struct that the option sets */
} tool_option;

typedef struct tool_command_line {
    const tool_option *table;
    int count;
    /* Called for arguments that are not options: a name, a number (also a negative one), "-", and all after
     * "--". Returns an exit code. */
    int (*operand)(void *options, const char *argument);
} tool_command_line;

/* Parses the arguments: "--sm 90" and "--sm=90" are equivalent. Returns an exit code; errors are reported on
 * stderr. */
int tool_parse_options(const tool_command_line *line, void *options, int argc, char **argv);
/* The next part of a comma-separated list; false at its end. Parts too long for the buffer are truncated, and
 * so match nothing. */
bool tool_next_part(const char **list, char *part, size_t size);
/* The same for a list that may be modified: the part, however long, is terminated where its comma was. Null
 * at the end. */
char *tool_cut_part(char **list);

#endif
