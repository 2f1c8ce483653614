/* What went wrong, in sentences, where PTXVM_LOG says ("stderr", "stdout" or a file); counters of launches.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static FILE *out;

void cuda_log_close(void)
{
    if (out && out != stderr && out != stdout)
        fclose(out);
    out = NULL;
}

void cuda_log_open(const char *where)
{
    cuda_log_close();
    if (where)
        out = strcmp(where, "stderr") == 0   ? stderr
              : strcmp(where, "stdout") == 0 ? stdout
                                             : fopen(where, "a");
}

CUresult cuda_log(CUresult code, const char *format, ...)
{
    if (!out)
        return code;
    va_list args;
    va_start(args, format);
    fprintf(out, "ptxvm: ");
    vfprintf(out, format, args);
    fprintf(out, " (code %d)\n", (int)code);
    fflush(out);
    va_end(args);
    return code;
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
