/* The trace of calls (PTXVM_LOG=trace): one line per call, with its arguments and its result. The code is
 * generated from functions.def: TRACE_CALL writes each argument by its type. */
#ifndef PTXVM_CUDA_TRACE_H
#define PTXVM_CUDA_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda_abi.h"

extern bool cuda_tracing; /* set by cuda_log_open while no other thread is in a call */

typedef struct trace_line {
    char text[1000];
    size_t length;
    int n; /* arguments so far */
} trace_line;

void trace_begin(trace_line *line, const char *function);
void trace_end(trace_line *line, CUresult result);
void trace_write(trace_line *line);

void trace_signed(trace_line *line, long long value);
void trace_unsigned(trace_line *line, unsigned long long value);
void trace_real(trace_line *line, double value);
void trace_text(trace_line *line, const char *text);
void trace_pointer(trace_line *line, const void *pointer);
void trace_location(trace_line *line, CUmemLocation location);
void trace_host_function(trace_line *line, CUhostFn function);
void trace_callback(trace_line *line, CUstreamCallback function);
void trace_shared_function(trace_line *line, CUoccupancyB2DSize function);

/* What a successful call wrote to where its first argument points, a number or a handle; nothing for other
 * types. */
void trace_out_int(trace_line *line, CUresult result, const int *out);
void trace_out_wide(trace_line *line, CUresult result, const void *out);
void trace_out_none(trace_line *line, CUresult result, ...);

/* clang-format off */
#define TRACE_ARGUMENT(x)                                                                                    \
    _Generic((x), char: trace_signed, signed char: trace_signed, short: trace_signed, int: trace_signed,     \
        long: trace_signed, long long: trace_signed, unsigned char: trace_unsigned,                          \
        unsigned short: trace_unsigned, unsigned: trace_unsigned, unsigned long: trace_unsigned,             \
        unsigned long long: trace_unsigned, float: trace_real, const char *: trace_text,                     \
        CUmemLocation: trace_location, CUhostFn: trace_host_function, CUstreamCallback: trace_callback,      \
        CUoccupancyB2DSize: trace_shared_function, default: trace_pointer)(&line_, x);

#define TRACE_OUT(x)                                                                                         \
    _Generic((x), int *: trace_out_int, size_t *: trace_out_wide, CUdeviceptr *: trace_out_wide,             \
        CUcontext *: trace_out_wide, CUmodule *: trace_out_wide, CUfunction *: trace_out_wide,               \
        CUlibrary *: trace_out_wide, CUkernel *: trace_out_wide, CUstream *: trace_out_wide,                 \
        CUevent *: trace_out_wide, CUgraph *: trace_out_wide, CUgraphNode *: trace_out_wide,                 \
        CUgraphExec *: trace_out_wide, CUmemoryPool *: trace_out_wide, CUuserObject *: trace_out_wide,       \
        default: trace_out_none)(&line_, result_, x);

/* Each of up to twelve arguments. */
#define TRACE_0()
#define TRACE_1(x) TRACE_ARGUMENT(x)
#define TRACE_2(x, ...) TRACE_ARGUMENT(x) TRACE_1(__VA_ARGS__)
#define TRACE_3(x, ...) TRACE_ARGUMENT(x) TRACE_2(__VA_ARGS__)
#define TRACE_4(x, ...) TRACE_ARGUMENT(x) TRACE_3(__VA_ARGS__)
#define TRACE_5(x, ...) TRACE_ARGUMENT(x) TRACE_4(__VA_ARGS__)
#define TRACE_6(x, ...) TRACE_ARGUMENT(x) TRACE_5(__VA_ARGS__)
#define TRACE_7(x, ...) TRACE_ARGUMENT(x) TRACE_6(__VA_ARGS__)
#define TRACE_8(x, ...) TRACE_ARGUMENT(x) TRACE_7(__VA_ARGS__)
#define TRACE_9(x, ...) TRACE_ARGUMENT(x) TRACE_8(__VA_ARGS__)
#define TRACE_10(x, ...) TRACE_ARGUMENT(x) TRACE_9(__VA_ARGS__)
#define TRACE_11(x, ...) TRACE_ARGUMENT(x) TRACE_10(__VA_ARGS__)
#define TRACE_12(x, ...) TRACE_ARGUMENT(x) TRACE_11(__VA_ARGS__)
#define TRACE_PICK(a, b, c, d, e, f, g, h, i, j, k, l, macro, ...) macro
#define TRACE_EACH(...)                                                                                      \
    TRACE_PICK(__VA_ARGS__ __VA_OPT__(,) TRACE_12, TRACE_11, TRACE_10, TRACE_9, TRACE_8, TRACE_7, TRACE_6,   \
               TRACE_5, TRACE_4, TRACE_3, TRACE_2, TRACE_1, TRACE_0, 0)(__VA_ARGS__)
#define TRACE_HEAD(x, ...) TRACE_OUT(x)
#define TRACE_FIRST(...) __VA_OPT__(TRACE_HEAD(__VA_ARGS__, 0))
/* clang-format on */

/* args: a list in parentheses, as in functions.def. */
#define TRACE_CALL(function, result, args)                                                                   \
    do {                                                                                                     \
        if (!cuda_tracing)                                                                                   \
            break;                                                                                           \
        CUresult result_ = (result);                                                                         \
        trace_line line_;                                                                                    \
        trace_begin(&line_, function);                                                                       \
        TRACE_EACH args trace_end(&line_, result_);                                                          \
        TRACE_FIRST args trace_write(&line_);                                                                \
    } while (0)

#endif
