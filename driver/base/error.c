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

/* By kind of status, the most specific first; for errors whose own text says what would be right, but not how to get there. */
static const struct {
    qdnnStatus_t status;
    const char *fix;
} remedies[] = {
    {QDNN_STATUS_BAD_PARAM_NULL_POINTER, "pass a pointer that is not null"},
    {QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "use that shape"},
    {QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "use a value within these bounds"},
    {QDNN_STATUS_BAD_PARAM, "correct that argument"},
    {QDNN_STATUS_NOT_SUPPORTED, "use one of the supported types or settings"},
    {QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED, "free host memory and call again"},
    {QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "free device memory and call again"},
    {QDNN_STATUS_EXECUTION_FAILED_STICKY, "destroy the handle and create another in a new process"},
    {QDNN_STATUS_EXECUTION_FAILED, "check the device and its driver, then call again"},
    {QDNN_STATUS_INTERNAL_ERROR, "report the message as a bug of qdnn"},
};

static const char *remedy_of(qdnnStatus_t status)
{
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (remedies[i].status == status)
            return remedies[i].fix;
    return status < 1000 ? "see the message"
                         : remedy_of((qdnnStatus_t)(status % 1000 ? status / 1000 * 1000 : 0));
}

qdnnStatus_t error_with_remedy(qdnnStatus_t status)
{
    const char *fix = remedy_of(status);
    const size_t tail = strlen("; fix: ") + strlen(fix), room = sizeof last_error - 1 - tail;
    size_t length = strlen(last_error);
    if (status == QDNN_STATUS_SUCCESS || strstr(last_error, "fix: "))
        return status;
    length = length < room ? length : room;
    snprintf(last_error + length, sizeof last_error - length, "; fix: %s", fix);
    return status;
}

void qdnnGetLastErrorString(char *message, size_t size)
{
    if (message && size > 0)
        snprintf(message, size, "%s", last_error);
}
