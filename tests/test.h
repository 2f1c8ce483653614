/* Tests are C; GoogleTest runs them. A test body is registered when the program starts and reports through
 * the functions at the end of this file, which tests/runner.cc implements. */
#ifndef QDNN_TEST_H
#define QDNN_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct test_case {
    const char *suite, *name, *file;
    int line;
    void (*body)(int index);
    /* Parameterised cases: how many there are, and the readable name of each ("sm_90_f16_g128"). Null
     * otherwise. */
    int (*count)(void);
    void (*case_name)(int index, char *text, size_t size);
    struct test_case *next;
} test_case;

void test_register(test_case *test);

#define TEST_REGISTER_(suite_, name_, count_, case_name_)                                                    \
    static void suite_##_##name_(int index);                                                                 \
    __attribute__((constructor)) static void register_##suite_##_##name_(void)                               \
    {                                                                                                        \
        static test_case test = {#suite_,          #name_, __FILE__,   __LINE__,                             \
                                 suite_##_##name_, count_, case_name_, NULL};                                \
        test_register(&test);                                                                                \
    }                                                                                                        \
    static void suite_##_##name_(__attribute__((unused)) int index)

/* TEST_CASE(HostRefInt4, TiesGoToEven) { ... } */
#define TEST_CASE(suite, name) TEST_REGISTER_(suite, name, NULL, NULL)

/* TEST_EACH(Kernels, PackInt4, count, case_name) { ... uses `index` ... } runs once for each index below
 * count(). */
#define TEST_EACH(suite, name, count, case_name) TEST_REGISTER_(suite, name, count, case_name)

/* TEST_ROWS(Json, Mistakes, mistakes) { ... mistakes[index] ... } runs once for each row of a table whose rows have
 * a `name`. */
#define TEST_NAMES_(suite_, name_, table_)                                                                   \
    static int suite_##_##name_##_count(void)                                                                \
    {                                                                                                        \
        return (int)(sizeof(table_) / sizeof(table_)[0]);                                                    \
    }                                                                                                        \
    static void suite_##_##name_##_row(int index, char *text, size_t size)                                   \
    {                                                                                                        \
        snprintf(text, size, "%s", (table_)[index].name);                                                    \
    }
#define TEST_ROWS(suite_, name_, table_)                                                                     \
    TEST_NAMES_(suite_, name_, table_)                                                                       \
    TEST_REGISTER_(suite_, name_, suite_##_##name_##_count, suite_##_##name_##_row)

/* CHECK* reports and goes on; REQUIRE* reports and leaves the function; SKIP leaves it as skipped. */
#define CHECK(condition)               test_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_EQ_I64(actual, expected) test_eq_i64((actual), (expected), __FILE__, __LINE__, #actual)
#define CHECK_EQ_U32(actual, expected) test_eq_u64((actual), (expected), 8, __FILE__, __LINE__, #actual)
#define CHECK_EQ_U64(actual, expected) test_eq_u64((actual), (expected), 16, __FILE__, __LINE__, #actual)
#define CHECK_EQ_STR(actual, expected) test_eq_str((actual), (expected), __FILE__, __LINE__, #actual)
/* Compares bits, so NaN equals the same NaN and +0 differs from -0. */
#define CHECK_EQ_F32(actual, expected) test_eq_f32((actual), (expected), __FILE__, __LINE__, #actual)
/* Compares bytes and names the first that differs. */
#define CHECK_EQ_MEM(actual, expected, bytes)                                                                \
    test_eq_mem((actual), (expected), (bytes), __FILE__, __LINE__, #actual)
/* `part` occurs in `text`. */
#define CHECK_HAS(text, part) test_has((text), (part), __FILE__, __LINE__, #text)
#define FAIL(...)             test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!CHECK(condition))                                                                               \
            return;                                                                                          \
    } while (0)
#define SKIP(...)                                                                                            \
    do {                                                                                                     \
        test_skip(__VA_ARGS__);                                                                              \
        return;                                                                                              \
    } while (0)

/* Attaches a line to every failure until the matching pop: which case of a table is running. */
void test_push_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void test_pop_note(void);

/* All return whether the check held. */
bool test_check(bool ok, const char *file, int line, const char *expression);
bool test_eq_i64(int64_t actual, int64_t expected, const char *file, int line, const char *expression);
bool test_eq_u64(uint64_t actual, uint64_t expected, int digits, const char *file, int line,
                 const char *expression);
bool test_eq_f32(float actual, float expected, const char *file, int line, const char *expression);
bool test_eq_str(const char *actual, const char *expected, const char *file, int line,
                 const char *expression);
bool test_eq_mem(const void *actual, const void *expected, size_t bytes, const char *file, int line,
                 const char *expression);
bool test_has(const char *text, const char *part, const char *file, int line, const char *expression);
void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether the running test has failed or was skipped. */
bool test_is_over(void);

#ifdef __cplusplus
}
#endif
#endif
