/* The arguments of a call, for the log: _Generic selects a function by type. */
#ifndef QDNN_DRIVER_LOG_VALUES_H
#define QDNN_DRIVER_LOG_VALUES_H

#include <stddef.h>
#include <stdint.h>

typedef struct log_value {
    enum { VALUE_SIGNED, VALUE_UNSIGNED, VALUE_REAL, VALUE_TEXT, VALUE_POINTER } kind;
    union {
        int64_t whole;
        uint64_t natural;
        double real;
        const char *text;
        const void *pointer;
    };
} log_value;

static inline log_value value_signed(int64_t x)
{
    return (log_value){.kind = VALUE_SIGNED, .whole = x};
}
static inline log_value value_unsigned(uint64_t x)
{
    return (log_value){.kind = VALUE_UNSIGNED, .natural = x};
}
static inline log_value value_real(double x)
{
    return (log_value){.kind = VALUE_REAL, .real = x};
}
static inline log_value value_text(const char *x)
{
    return (log_value){.kind = VALUE_TEXT, .text = x};
}
static inline log_value value_pointer(const void *x)
{
    return (log_value){.kind = VALUE_POINTER, .pointer = x};
}

/* Pointers to results are logged as plain char pointers, since they point to nothing yet. */
#define LOG_VALUE(x)                                                                                         \
    _Generic((x),                                                                                            \
        signed char: value_signed,                                                                           \
        int: value_signed,                                                                                   \
        long: value_signed,                                                                                  \
        long long: value_signed,                                                                             \
        _Bool: value_unsigned,                                                                               \
        unsigned char: value_unsigned,                                                                       \
        unsigned: value_unsigned,                                                                            \
        unsigned long: value_unsigned,                                                                       \
        unsigned long long: value_unsigned,                                                                  \
        float: value_real,                                                                                   \
        double: value_real,                                                                                  \
        const char *: value_text,                                                                            \
        default: value_pointer)(x)

/* LOG_VALUE of each of up to twelve arguments, separated by commas. */
#define LOG_COUNT(...)                                         LOG_COUNT_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define LOG_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define LOG_PASTE(a, b)                                        LOG_PASTE_(a, b)
#define LOG_PASTE_(a, b)                                       a##b
#define LOG_EACH(...)                                          LOG_PASTE(LOG_EACH_, LOG_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define LOG_EACH_1(x)                                          LOG_VALUE(x)
#define LOG_EACH_2(x, ...)                                     LOG_VALUE(x), LOG_EACH_1(__VA_ARGS__)
#define LOG_EACH_3(x, ...)                                     LOG_VALUE(x), LOG_EACH_2(__VA_ARGS__)
#define LOG_EACH_4(x, ...)                                     LOG_VALUE(x), LOG_EACH_3(__VA_ARGS__)
#define LOG_EACH_5(x, ...)                                     LOG_VALUE(x), LOG_EACH_4(__VA_ARGS__)
#define LOG_EACH_6(x, ...)                                     LOG_VALUE(x), LOG_EACH_5(__VA_ARGS__)
#define LOG_EACH_7(x, ...)                                     LOG_VALUE(x), LOG_EACH_6(__VA_ARGS__)
#define LOG_EACH_8(x, ...)                                     LOG_VALUE(x), LOG_EACH_7(__VA_ARGS__)
#define LOG_EACH_9(x, ...)                                     LOG_VALUE(x), LOG_EACH_8(__VA_ARGS__)
#define LOG_EACH_10(x, ...)                                    LOG_VALUE(x), LOG_EACH_9(__VA_ARGS__)
#define LOG_EACH_11(x, ...)                                    LOG_VALUE(x), LOG_EACH_10(__VA_ARGS__)
#define LOG_EACH_12(x, ...)                                    LOG_VALUE(x), LOG_EACH_11(__VA_ARGS__)

#endif
