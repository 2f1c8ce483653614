/* The functions behind the macros of tests/test.h without GoogleTest. */
#include "mutate/sink.h"

#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NOTES_MAX = 8 };

static int failures, n_notes;
static char first_failure[4096], notes[NOTES_MAX][1400];

/* A failure, with the notes of the shape it came from. */
static void describe(const char *text)
{
    size_t length = (size_t)snprintf(first_failure, sizeof first_failure, "%s", text);
    for (int i = 0; i < n_notes && i < NOTES_MAX && length < sizeof first_failure; i++)
        length += (size_t)snprintf(first_failure + length, sizeof first_failure - length, "; %s", notes[i]);
}

static bool note(bool ok, const char *text)
{
    if (!ok && failures++ == 0)
        describe(text);
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
    va_list args;
    va_start(args, format);
    if (n_notes < NOTES_MAX)
        vsnprintf(notes[n_notes], sizeof notes[0], format, args);
    n_notes++;
    va_end(args);
}

void test_pop_note(void)
{
    n_notes--;
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

bool test_is_over(void)
{
    return failures > 0;
}
