/* What the commands (ptxgen, ptxvm) share: options, messages, unknown names, text and files. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1, /* the work could not be done */
    TOOL_USAGE = 2   /* what was asked for makes no sense */
};

/* The command's own name, which begins its messages; each command defines it. */
extern const char tool_program[];

/* ---- output.c: text that grows, files, messages ---- */

typedef struct tool_text {
    char *data;
    size_t size, capacity;
    bool failed; /* out of memory; later additions do nothing */
} tool_text;

void tool_printf(tool_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tool_append(tool_text *text, const void *bytes, size_t count);
/* "as JSON and C both write it": quotes, backslashes and control characters escaped. */
void tool_quote(tool_text *text, const char *string);
void tool_text_free(tool_text *text);

/* How a piece of a message looks on a terminal. */
typedef enum tool_style { TOOL_USUAL, TOOL_STRONG, TOOL_BAD, TOOL_GOOD } tool_style;
/* What begins the style on that stream: nothing where it is no terminal, where NO_COLOR is set or TERM is dumb. */
const char *tool_style_text(FILE *stream, tool_style style);

/* Print one line on stderr and return the exit code. */
int tool_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int tool_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The file appears whole or not at all. "-" or null is standard output. Returns an exit code. */
int tool_write(const char *path, const tool_text *text);
/* Appends the whole file; "-" is standard input. Returns an exit code. */
int tool_read(const char *path, tool_text *text);
int tool_make_directory(const char *path);
uint64_t tool_hash(const tool_text *text); /* FNV-1a, 64 bits */
/* The exit code of the command, once standard output took all of it. */
int tool_finish(int status);

/* ---- names.c: what may have been meant ---- */

/* The index-th name of a list; null past its end. */
typedef const char *(*tool_name_at)(const void *list, int index);

/* The name of the list that is nearest, or else one that contains it; null when none is near. */
const char *tool_nearest(const char *name, tool_name_at name_at, const void *list);
/* Reports "unknown WHAT 'NAME'; did you mean 'X'?", or `otherwise` when nothing is near. Returns TOOL_USAGE.
 */
int tool_unknown(const char *what, const char *name, tool_name_at name_at, const void *list,
                 const char *otherwise);

/* ---- options.c: the command line ---- */

typedef struct tool_option {
    const char *name;
    bool takes_value;
    /* Stores it in the command's own struct; value is null where it takes none. An exit code. */
    int (*parse)(void *options, const char *value);
    size_t flag; /* where parse is null: the bool of that struct that the option sets, by its offset */
} tool_option;

typedef struct tool_command_line {
    const tool_option *table;
    int count;
    /* What is no option: a name, a number (also a negative one), "-", and all after "--". An exit code. */
    int (*operand)(void *options, const char *argument);
} tool_command_line;

/* Goes through the arguments: "--sm 90" and "--sm=90" are the same. An exit code; what is wrong is on stderr.
 */
int tool_parse_options(const tool_command_line *line, void *options, int argc, char **argv);
/* The next part of a list with commas; false at its end. Parts too long for the buffer are cut, and so match
 * nothing. */
bool tool_next_part(const char **list, char *part, size_t size);
/* The same of a list that may be changed: the part, however long, ends where its comma was. Null at the end. */
char *tool_cut_part(char **list);

#endif
