/* Error messages, to where PTXVM_LOG directs them: "stderr", "stdout" or a file; "trace", or "trace:" and one
 * of these, also logs every call. Counters of launches. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/module.h"
#include "trace.h"

static FILE *out;

void cuda_log_close(void)
{
    if (out && out != stderr && out != stdout)
        fclose(out);
    out = NULL;
    cuda_tracing = false;
}

/* The part after "trace" or "trace:"; else null. */
static const char *after_trace(const char *where)
{
    if (strncmp(where, "trace", 5) != 0 || (where[5] && where[5] != ':'))
        return NULL;
    return where[5] && where[6] ? where + 6 : "stderr";
}

bool cuda_log_open(const char *where)
{
    cuda_log_close();
    const char *traced = where ? after_trace(where) : NULL;
    where = traced ? traced : where;
    if (where)
        out = strcmp(where, "stderr") == 0   ? stderr
              : strcmp(where, "stdout") == 0 ? stdout
                                             : fopen(where, "a");
    cuda_tracing = traced && out;
    return !where || out;
}

void cuda_log_line(const char *text)
{
    if (!out)
        return;
    fprintf(out, "ptxvm: %s\n", text);
    fflush(out);
}

static _Thread_local char last[512];

/* Names in a message come from callers and files. A message about PTX has several lines: those after the first are
 * indented, so that no name can look like a line of the log. */
static void write_lines(const char *text)
{
    for (size_t length = strlen(text), n; length > 0; text += n, length -= n) {
        n = (size_t)pvm_printable(text, length);
        if (n || *text == '\t')
            fwrite(text, 1, n ? n : 1, out);
        else
            fprintf(out, *text == '\n' ? "\n    " : "\\x%02x", (unsigned)(unsigned char)*text);
        n = n ? n : 1;
    }
}

CUresult cuda_log(CUresult code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(last, sizeof last, format, args);
    va_end(args);
    if (out && length >= 0) {
        char *text = malloc((size_t)length + 1);
        va_start(args, format);
        if (text)
            vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
        fprintf(out, "ptxvm: ");
        write_lines(text ? text : last);
        fprintf(out, " (code %d)\n", (int)code);
        fflush(out);
        free(text);
    }
    pvm_make_printable(last);
    return code;
}

const char *ptxvm_cuda_last_sentence(void)
{
    return last;
}

/* ---- Counters ---- */

static FILE *counters;

void counters_close(void)
{
    if (counters)
        fclose(counters);
    counters = NULL;
}

bool counters_open(const char *path)
{
    counters_close();
    if (path)
        counters = fopen(path, "w");
    return !path || counters;
}

void counters_write(const ptxvm *vm)
{
    if (!counters || !ptxvm_last_counters(vm))
        return;
    ptxvm_counters_json(vm, counters);
    fputc('\n', counters);
    fflush(counters);
}
