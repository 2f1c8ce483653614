/* Text from files, made safe: what is escaped, what stays, and where it is cut. */
#include "base/escape.h"
#include "support/printable.h"
#include "test.h"

#include <string.h>

static const struct {
    const char *name, *text, *shown, *json;
} cases[] = {
    {"Empty", "", "", "\"\""},
    {"Plain", "model.layers.0 ~!", "model.layers.0 ~!", "\"model.layers.0 ~!\""},
    {"Quotes", "a\"b\\c", "a\"b\\c", "\"a\\\"b\\\\c\""},
    {"Utf8", "\xc3\xa9\xe4\xb8\xad\xf0\x9f\xa6\x99\xe2\x80\x8d",
     "\xc3\xa9\xe4\xb8\xad\xf0\x9f\xa6\x99\xe2\x80\x8d",
     "\"\xc3\xa9\xe4\xb8\xad\xf0\x9f\xa6\x99\xe2\x80\x8d\""},
    {"FirstAndLastOfC0", "\x01\x1f ", "\\x01\\x1f ", "\"\\u0001\\u001f \""},
    {"NewlineAndTab", "a\nb\tc\r", "a\\x0ab\\x09c\\x0d", "\"a\\nb\\tc\\u000d\""},
    {"DelAndTilde", "~\x7f", "~\\x7f", "\"~\\u007f\""},
    {"FirstAndLastOfC1", "\xc2\x80\xc2\x9f\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0",
     "\"\\u0080\\u009f\xc2\xa0\""},
    {"ArabicLetterMark", "\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\xd8\\x9c\xd8\x9d",
     "\"\xd8\x9b\\u061c\xd8\x9d\""},
    {"DirectionMarks", "\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
     "\xe2\x80\x8d\\xe2\\x80\\x8e\\xe2\\x80\\x8f\xe2\x80\x90", "\"\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90\""},
    {"SeparatorsAndOverrides", "\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf",
     "\xe2\x80\xa7\\xe2\\x80\\xa8\\xe2\\x80\\xae\xe2\x80\xaf", "\"\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf\""},
    {"Isolates", "\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
     "\xe2\x81\xa5\\xe2\\x81\\xa6\\xe2\\x81\\xa9\xe2\x81\xaa", "\"\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa\""},
    {"LoneContinuation", "a\x80", "a\\x80", "\"a\\ufffd\""},
    {"CutOff", "a\xe4\xb8", "a\\xe4\\xb8", "\"a\\ufffd\\ufffd\""},
    {"Overlong", "\xc0\xaf", "\\xc0\\xaf", "\"\\ufffd\\ufffd\""},
    {"Surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\ufffd\\ufffd\\ufffd\""},
    {"BeyondUnicode", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
};

static void json_of(const char *text, char *out)
{
    *out++ = '"';
    for (size_t left = strlen(text), used; left > 0; text += used, left -= used)
        out += escape_json(out, text, left, &used);
    memcpy(out, "\"", 2);
}

TEST_ROWS(Escape, Cases, cases)
{
    char shown[256], json[256], again[256];
    CHECK_EQ_U64(escape_text(shown, sizeof shown, cases[index].text, strlen(cases[index].text)),
                 strlen(cases[index].shown));
    CHECK_EQ_STR(shown, cases[index].shown);
    CHECK_EQ_STR(escape_string(again, sizeof again, shown), shown); /* once is enough */
    json_of(cases[index].text, json);
    CHECK_EQ_STR(json, cases[index].json);
}

TEST_CASE(Escape, NulIsAByteOfTheText)
{
    char shown[16];
    size_t used;
    CHECK_EQ_U64(escape_text(shown, sizeof shown, "a\0b", 3), 6);
    CHECK_EQ_STR(shown, "a\\x00b");
    CHECK_EQ_U64(escape_json(shown, "\0", 1, &used), 6);
    CHECK_EQ_MEM(shown, "\\u0000", 6);
}

/* For every size of the buffer: never a part of a character or of an escape, and nothing beyond it. */
TEST_CASE(Escape, IsCutBetweenCharacters)
{
    static const char text[] = "a\xe4\xb8\xad\x1b\xf0\x9f\xa6\x99z";
    static const struct {
        size_t size;
        const char *shown;
    } cuts[] = {{1, ""},
                {2, "a"},
                {4, "a"},
                {5, "a\xe4\xb8\xad"},
                {8, "a\xe4\xb8\xad"},
                {9, "a\xe4\xb8\xad\\x1b"},
                {12, "a\xe4\xb8\xad\\x1b"},
                {13, "a\xe4\xb8\xad\\x1b\xf0\x9f\xa6\x99"},
                {14, "a\xe4\xb8\xad\\x1b\xf0\x9f\xa6\x99z"}};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        char shown[16];
        memset(shown, '#', sizeof shown);
        CHECK_EQ_U64(escape_text(shown, cuts[i].size, text, sizeof text - 1), strlen(cuts[i].shown));
        CHECK_EQ_STR(shown, cuts[i].shown);
        for (size_t k = cuts[i].size; k < sizeof shown; k++)
            CHECK_EQ_I64(shown[k], '#');
    }
    CHECK_EQ_U64(escape_text(NULL, 0, text, sizeof text - 1), 0);
}

/* All two-byte texts, and each byte among others. */
TEST_CASE(Escape, NothingHarmfulRemains)
{
    for (unsigned i = 0; i < 65536; i++) {
        char shown[64];
        const char text[4] = {'x', (char)(i >> 8), (char)i, 'y'};
        size_t n = escape_text(shown, sizeof shown, text, sizeof text);
        check_printable(shown, n);
        if (memchr(shown, '\n', n))
            FAIL("a newline remains of %04x", i);
    }
    for (int i = 0; i < n_hostile_names; i++) {
        char shown[512];
        check_printable(
            shown, escape_text(shown, sizeof shown, hostile_names[i].text, strlen(hostile_names[i].text)));
        CHECK_HAS(shown, "\\x0aFORGED");
    }
}
