// The one C++ file: hands the C tests to GoogleTest, so that filters, XML, sharding and discovery are
// GoogleTest's own.
#include "test.h"

#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace
{

enum { SKIPPED = 77 }; // what the program returns where every test was skipped; CTest is told of it

test_case *first_test = nullptr;
thread_local std::vector<std::string> notes;

class CTest : public testing::Test
{
  public:
    CTest(void (*body)(int), int index) : body_(body), index_(index)
    {
    }
    void TestBody() override
    {
        notes.clear();
        body_(index_);
    }

  private:
    void (*body_)(int);
    int index_;
};

void hand_over(const test_case *test, const std::string &name, int index)
{
    testing::RegisterTest(test->suite, name.c_str(), nullptr, nullptr, test->file, test->line,
                          [=]() -> CTest * { return new CTest(test->body, index); });
}

std::string format(const char *format, va_list args)
{
    char text[4096];
    std::vsnprintf(text, sizeof text, format, args);
    return text;
}

bool report(bool ok, const char *file, int line, const std::string &message)
{
    if (ok)
        return true;
    std::string text = message;
    for (const std::string &note : notes)
        text += "\n  in: " + note;
    ADD_FAILURE_AT(file, line) << text;
    return false;
}

std::string hex(uint64_t value, int digits)
{
    char text[32];
    std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(value));
    return text;
}

std::string differs(const char *expression, const std::string &actual, const std::string &expected)
{
    return std::string(expression) + " is " + actual + "\n  expected " + expected;
}

} // namespace

void test_register(test_case *test)
{
    test->next = first_test;
    first_test = test;
}

bool test_check(bool ok, const char *file, int line, const char *expression)
{
    return report(ok, file, line, std::string("not true: ") + expression);
}

bool test_eq_i64(int64_t actual, int64_t expected, const char *file, int line, const char *expression)
{
    return report(actual == expected, file, line,
                  differs(expression, std::to_string(actual), std::to_string(expected)));
}

bool test_eq_u64(uint64_t actual, uint64_t expected, int digits, const char *file, int line,
                 const char *expression)
{
    return report(actual == expected, file, line,
                  differs(expression, hex(actual, digits), hex(expected, digits)));
}

bool test_eq_f32(float actual, float expected, const char *file, int line, const char *expression)
{
    uint32_t a, e;
    std::memcpy(&a, &actual, sizeof a);
    std::memcpy(&e, &expected, sizeof e);
    char text_a[64], text_e[64];
    std::snprintf(text_a, sizeof text_a, "%.9g (%08x)", actual, a);
    std::snprintf(text_e, sizeof text_e, "%.9g (%08x)", expected, e);
    return report(a == e, file, line, differs(expression, text_a, text_e));
}

bool test_eq_str(const char *actual, const char *expected, const char *file, int line, const char *expression)
{
    std::string a = actual ? actual : "(null)", e = expected ? expected : "(null)";
    return report(a == e, file, line, differs(expression, "\"" + a + "\"", "\"" + e + "\""));
}

bool test_eq_mem(const void *actual, const void *expected, size_t bytes, const char *file, int line,
                 const char *expression)
{
    const unsigned char *a = static_cast<const unsigned char *>(actual);
    const unsigned char *e = static_cast<const unsigned char *>(expected);
    size_t first = 0, wrong = 0;
    for (size_t i = bytes; i-- > 0;)
        if (a[i] != e[i])
            first = i, wrong++;
    if (!wrong)
        return true;
    return report(false, file, line,
                  std::string(expression) + ": " + std::to_string(wrong) + " of " + std::to_string(bytes) +
                      " bytes differ, the first at " + std::to_string(first) + ": " + hex(a[first], 2) +
                      ", expected " + hex(e[first], 2));
}

bool test_has(const char *text, const char *part, const char *file, int line, const char *expression)
{
    std::string t = text ? text : "(null)";
    return report(t.find(part) != std::string::npos, file, line,
                  std::string(expression) + " lacks \"" + part + "\":\n" + t);
}

void test_fail(const char *file, int line, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    std::string message = format(text, args);
    va_end(args);
    report(false, file, line, message);
}

void test_skip(const char *text, ...)
{
    va_list args;
    va_start(args, text);
    std::string message = format(text, args);
    va_end(args);
    GTEST_SKIP() << message;
}

bool test_is_over(void)
{
    return testing::Test::HasFailure() || testing::Test::IsSkipped();
}

void test_push_note(const char *text, ...)
{
    va_list args;
    va_start(args, text);
    notes.push_back(format(text, args));
    va_end(args);
}

void test_pop_note(void)
{
    notes.pop_back();
}

// A line for each case that was skipped, with its reason, and one for the others: `./run test` sums them up. Appending is
// one write, so that programs that end together do not mix their lines.
static std::string one_line(std::string text)
{
    for (char &c : text)
        c = c == '\n' ? ' ' : c;
    return text;
}

static void summarise(const testing::UnitTest *all)
{
    const char *path = std::getenv("QDNN_TEST_SUMMARY");
    if (!path)
        return;
    std::string text;
    for (int i = 0; i < all->total_test_suite_count(); i++)
        for (int k = 0; k < all->GetTestSuite(i)->total_test_count(); k++) {
            const testing::TestInfo *test = all->GetTestSuite(i)->GetTestInfo(k);
            if (!test->should_run())
                continue;
            const testing::TestResult *result = test->result();
            if (result->Failed())
                text += std::string("failed\t") + test->test_suite_name() + "." + test->name() + "\n";
            else if (result->Skipped())
                text += std::string("skipped\t") + one_line(result->GetTestPartResult(0).message()) + "\n";
            else
                text += "passed\t\n";
        }
    FILE *file = std::fopen(path, "a");
    if (file) {
        std::setvbuf(file, nullptr, _IOFBF, text.size() + 1);
        std::fwrite(text.data(), 1, text.size(), file);
        std::fclose(file);
    }
}

// A case frees what the next one allocates again. By default each gives its pages back to the system, and asking for them
// anew is a third of the time of many tests.
static void keep_freed_memory()
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

// The same where the leak sanitizer is linked (tests/CMakeLists.txt); it has its own allocator.
extern "C" const char *__lsan_default_options()
{
    return "allocator_release_to_os_interval_ms=-1";
}

// What the driver of a GPU leaves behind is not ours.
extern "C" int __lsan_is_turned_off()
{
    const char *device = std::getenv("QDNN_DEVICE");
    return device && std::strcmp(device, "cuda") == 0;
}

int main(int argc, char **argv)
{
    keep_freed_memory();
    testing::InitGoogleTest(&argc, argv);
    for (const test_case *test = first_test; test; test = test->next) {
        if (!test->count) {
            hand_over(test, test->name, 0);
            continue;
        }
        int count = test->count();
        for (int i = 0; i < count; i++) {
            char name[256];
            test->case_name(i, name, sizeof name);
            hand_over(test, std::string(test->name) + "/" + name, i);
        }
    }
    int result = RUN_ALL_TESTS();
    const testing::UnitTest *all = testing::UnitTest::GetInstance();
    summarise(all);
    if (result == 0 && all->successful_test_count() == 0 && all->skipped_test_count() > 0)
        return SKIPPED;
    return result;
}
