/* The functions behind the macros of tests/test.h without GoogleTest. */
#include "mutate/sink.h"

#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int failures;
static char first_failure[512];

static bool note(bool ok, const char *text)
{
    if (!ok && failures++ == 0)
        snprintf(first_failure, sizeof first_failure, "%s", text);
    return ok;
}

int sink_take(char *first, size_t size)
{
    int count = failures;
    if (first)
        snprintf(first, size, "%s", count ? first_failure : "");
    failures = 0;
    return count;
}

static test_case *first_test;

void test_register(test_case *test)
{
    test->next = first_test;
    first_test = test;
}

const test_case *sink_tests(void)
{
    return first_test;
}

void test_push_note(const char *format, ...)
{
    (void)format;
}

void test_pop_note(void)
{
}

bool test_check(bool ok, const char *file, int line, const char *expression)
{
    (void)file, (void)line;
    return note(ok, expression);
}

bool test_eq_i64(int64_t actual, int64_t expected, const char *file, int line, const char *expression)
{
    return test_check(actual == expected, file, line, expression);
}

bool test_eq_u64(uint64_t actual, uint64_t expected, int digits, const char *file, int line,
                 const char *expression)
{
    (void)digits;
    return test_check(actual == expected, file, line, expression);
}

bool test_eq_f32(float actual, float expected, const char *file, int line, const char *expression)
{
    return test_check(memcmp(&actual, &expected, sizeof actual) == 0, file, line, expression);
}

bool test_eq_str(const char *actual, const char *expected, const char *file, int line, const char *expression)
{
    return test_check(actual && expected && strcmp(actual, expected) == 0, file, line, expression);
}

bool test_eq_mem(const void *actual, const void *expected, size_t bytes, const char *file, int line,
                 const char *expression)
{
    return test_check(bytes == 0 || memcmp(actual, expected, bytes) == 0, file, line, expression);
}

bool test_has(const char *text, const char *part, const char *file, int line, const char *expression)
{
    return test_check(text && strstr(text, part), file, line, expression);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    char text[512];
    va_list args;
    (void)file, (void)line;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    note(false, text);
}

void test_skip(const char *format, ...)
{
    (void)format;
}
