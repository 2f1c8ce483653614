/* The last error of each thread. */
#include "files/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"

enum { ERROR_TEXT = 1024 };
static _Thread_local char last_error[ERROR_TEXT];

void qdnnGetLastFileErrorString(char *message, size_t size)
{
    if (message && size)
        snprintf(message, size, "%s", last_error);
}

void files_clear_error(void)
{
    last_error[0] = 0;
}

qdnnStatus_t files_error(qdnnStatus_t status, const char *format, ...)
{
    char raw[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    escape_string(last_error, sizeof last_error, raw); /* it quotes names from files */
    return status;
}

qdnnStatus_t files_damaged(const shard *s, uint64_t offset, const char *format, ...)
{
    char what[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return files_error(QDNN_STATUS_BAD_PARAM, "%s: offset %llu: %.900s", s->path, (unsigned long long)offset,
                       what);
}

qdnnStatus_t files_no_memory(void)
{
    return files_error(QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED, "the host is out of memory");
}
