/* Error messages, to where PTXVM_LOG directs them: "stderr", "stdout" or a file; "trace", or "trace:" and one
 * of these, also logs every call. Counters of launches. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

CUresult cuda_log(CUresult code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last, sizeof last, format, args);
    va_end(args);
    if (out) {
        va_start(args, format);
        fprintf(out, "ptxvm: ");
        vfprintf(out, format, args);
        fprintf(out, " (code %d)\n", (int)code);
        fflush(out);
        va_end(args);
    }
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
