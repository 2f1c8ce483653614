/* The last error of each thread. */
#include "driver/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver/base/log.h"

static _Thread_local char last_error[512];

qdnnStatus_t qdnn_error(qdnnStatus_t status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    if (log_on(QDNN_SEVERITY_ERROR))
        log_write(QDNN_SEVERITY_ERROR, "%s: %s", qdnnGetErrorString(status), last_error);
    return status;
}

void qdnnGetLastErrorString(char *message, size_t size)
{
    if (message && size > 0)
        snprintf(message, size, "%s", last_error);
}
