/* The last error of each thread. */
#include "driver/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "driver/base/log.h"

static _Thread_local char last_error[512];

qdnnStatus_t qdnn_error(qdnnStatus_t status, const char *format, ...)
{
    char raw[sizeof last_error];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    /* names of files and messages of drivers are quoted in it */
    escape_string(last_error, sizeof last_error, raw);
    if (log_on(QDNN_SEVERITY_ERROR))
        log_write(QDNN_SEVERITY_ERROR, "%s: %s", qdnnGetErrorString(status), last_error);
    return status;
}

void qdnnGetLastErrorString(char *message, size_t size)
{
    if (message && size > 0)
        snprintf(message, size, "%s", last_error);
}
