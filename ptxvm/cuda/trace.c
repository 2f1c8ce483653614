/* The lines of a trace. A line that is too long is truncated. */
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "ptxvm/module.h"

bool cuda_tracing;

static void __attribute__((format(printf, 2, 3))) add(trace_line *line, const char *format, ...)
{
    size_t room = sizeof line->text - line->length;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line->text + line->length, room, format, args);
    va_end(args);
    if (n > 0)
        line->length += (size_t)n < room ? (size_t)n : room - 1;
}

static void next_argument(trace_line *line)
{
    if (line->n++)
        add(line, ", ");
}

void trace_begin(trace_line *line, const char *function)
{
    line->text[0] = 0;
    line->length = 0;
    line->n = 0;
    add(line, "%s(", function);
}

void trace_end(trace_line *line, CUresult result)
{
    const char *name = NULL;
    do_cuGetErrorName(result, &name);
    add(line, ") = %d %s", (int)result, name ? name : "");
}

void trace_write(trace_line *line)
{
    cuda_log_line(line->text);
}

/* ---- Arguments ---- */

void trace_signed(trace_line *line, long long value)
{
    next_argument(line);
    add(line, "%lld", value);
}

/* Sizes and flags are small, device addresses large. */
static void add_unsigned(trace_line *line, unsigned long long value)
{
    add(line, value >> 32 ? "0x%llx" : "%llu", value);
}

void trace_unsigned(trace_line *line, unsigned long long value)
{
    next_argument(line);
    add_unsigned(line, value);
}

void trace_real(trace_line *line, double value)
{
    next_argument(line);
    add(line, "%.9g", value);
}

void trace_text(trace_line *line, const char *text)
{
    enum { SHOWN = 120 };
    next_argument(line);
    if (!text) {
        add(line, "null");
        return;
    }
    char shown[4 * SHOWN + 1];
    size_t length = strnlen(text, SHOWN + 1);
    pvm_escape(shown, sizeof shown, text, length < SHOWN ? length : SHOWN);
    add(line, length > SHOWN ? "\"%s...\"" : "\"%s\"", shown);
}

static void add_pointer(trace_line *line, uintptr_t pointer)
{
    add(line, pointer ? "0x%llx" : "null", (unsigned long long)pointer);
}

void trace_pointer(trace_line *line, const void *pointer)
{
    next_argument(line);
    add_pointer(line, (uintptr_t)pointer);
}

void trace_location(trace_line *line, CUmemLocation location)
{
    next_argument(line);
    add(line, "{%d, %d}", (int)location.type, location.id);
}

void trace_host_function(trace_line *line, CUhostFn function)
{
    next_argument(line);
    add_pointer(line, (uintptr_t)function);
}

void trace_callback(trace_line *line, CUstreamCallback function)
{
    next_argument(line);
    add_pointer(line, (uintptr_t)function);
}

void trace_shared_function(trace_line *line, CUoccupancyB2DSize function)
{
    next_argument(line);
    add_pointer(line, (uintptr_t)function);
}

/* ---- Results ---- */

void trace_out_int(trace_line *line, CUresult result, const int *out)
{
    if (!result && out)
        add(line, ", gives %d", *out);
}

void trace_out_wide(trace_line *line, CUresult result, const void *out)
{
    uint64_t value;
    if (result || !out)
        return;
    memcpy(&value, out, sizeof value);
    add(line, ", gives ");
    add_unsigned(line, value);
}

void trace_out_none(trace_line *line, CUresult result, ...)
{
    (void)line;
    (void)result;
}
