/* The reader of JSON: what is read, and what is refused without harm. */
#include "test_json.h"

#include "driver/base/alloc.h"
#include "support/locale.h"
#include "support/scarce.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json *read_json(const char *text)
{
    json_error error;
    json *doc = json_parse(text, strlen(text), &error);
    if (!doc)
        FAIL("line %zu: %s:\n%.2000s", error.line, error.reason, text);
    return doc;
}

void check_json(const json *doc, const char *path, const char *expected)
{
    const json_value *v = json_at(json_root(doc), path);
    test_push_note("%s", path);
    CHECK_EQ_STR(v ? v->text : "(nothing)", expected);
    test_pop_note();
}

void check_json_number(const json *doc, const char *path, unsigned long long expected)
{
    uint64_t value = 0;
    test_push_note("%s", path);
    CHECK(json_u64(json_root(doc), path, &value));
    CHECK_EQ_U64(value, expected);
    test_pop_note();
}

int json_count(const json *doc, const char *path)
{
    const json_value *v = json_at(json_root(doc), path);
    return v ? (int)v->count : -1;
}

/* ---- what is read ---- */

TEST_CASE(Json, ReadsEveryKind)
{
    json *doc =
        read_json(" {\"a\" : [1, -2.5e+3 ,0,\"x\"], \"b\":{}, \"c\":true,\n\"d\":null, \"e\":[[ ]]} \n");
    CHECK_EQ_I64(json_count(doc, ""), 5);
    CHECK_EQ_I64(json_count(doc, "a"), 4);
    check_json(doc, "a.0", "1");
    check_json(doc, "a.1", "-2.5e+3");
    check_json(doc, "a.2", "0");
    check_json(doc, "a.3", "x");
    CHECK_EQ_I64(json_count(doc, "b"), 0);
    check_json(doc, "c", "true");
    check_json(doc, "d", "null");
    CHECK_EQ_I64(json_count(doc, "e"), 1);
    CHECK_EQ_I64(json_count(doc, "e.0"), 0);
    static const json_kind kinds[] = {JSON_ARRAY, JSON_OBJECT, JSON_BOOL, JSON_NULL, JSON_ARRAY};
    const json_value *v = json_root(doc)->first;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++, v = v->next) {
        REQUIRE(v != NULL);
        CHECK_EQ_I64(v->kind, kinds[i]);
    }
    CHECK(v == NULL);
    json_free(doc);
}

TEST_CASE(Json, FindsNothingWhereNothingIs)
{
    static const char *const paths[] = {"b",   "a.4",     "a.x",  "a.-1",  "a.0.0", "a.00000000001",
                                        "o.k", "o.key.0", "o.ke", "o.keyy"};
    json *doc = read_json("{\"a\": [1, 2, 3, 4], \"o\": {\"key\": \"value\"}}");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        test_push_note("%s", paths[i]);
        CHECK(json_at(json_root(doc), paths[i]) == NULL);
        test_pop_note();
    }
    CHECK(json_at(NULL, "a") == NULL);
    CHECK(json_root(NULL) == NULL);
    check_json(doc, "o.key", "value");
    CHECK(json_string(json_root(doc), "a.0") == NULL);
    CHECK(json_string(json_root(doc), "a") == NULL);
    CHECK_EQ_STR(json_string(json_root(doc), "o.key"), "value");
    json_free(doc);
}

TEST_CASE(Json, StringsWithEscapes)
{
    json *doc = read_json("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20AC\\uD83D\\ude00\", \"\", "
                          "\"\xC3\xA9,]}\"]");
    check_json(doc, "0", "\"\\/\b\f\n\r\t");
    check_json(doc, "1", "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    check_json(doc, "2", "");
    check_json(doc, "3", "\xC3\xA9,]}");
    json_free(doc);
}

TEST_CASE(Json, NumbersThatFit)
{
    json *doc = read_json("[18446744073709551615, 18446744073709551616, -1, 1.0, 1e2, \"7\", 7]");
    uint64_t value = 5;
    check_json_number(doc, "0", UINT64_MAX);
    static const char *const paths[] = {"1", "2", "3", "4", "5"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        CHECK(!json_u64(json_root(doc), paths[i], &value));
    check_json_number(doc, "6", 7);
    json_free(doc);
}

TEST_CASE(Json, RealNumbersAndWords)
{
    json *doc = read_json("[0.0625, -2.5e-3, 7, \"7\", true, false, null]");
    double value = 0;
    bool answer = false;
    CHECK(json_f64(json_root(doc), "0", &value) && value == 0.0625);
    CHECK(json_f64(json_root(doc), "1", &value) && value == -2.5e-3);
    CHECK(json_f64(json_root(doc), "2", &value) && value == 7);
    CHECK(!json_f64(json_root(doc), "3", &value) && !json_f64(json_root(doc), "4", &value));
    CHECK(json_bool(json_root(doc), "4", &answer) && answer);
    CHECK(json_bool(json_root(doc), "5", &answer) && !answer);
    CHECK(!json_bool(json_root(doc), "6", &answer) && !json_bool(json_root(doc), "2", &answer));
    json_free(doc);
}

TEST_CASE(Json, RealNumbersInALocaleWithACommaForThePoint)
{
    double value = 0;
    if (!comma_locale_begin())
        SKIP("there is no such locale, and none can be made");
    json *doc = read_json("[0.0625, 1e2]");
    CHECK(json_f64(json_root(doc), "0", &value) && value == 0.0625);
    CHECK(json_f64(json_root(doc), "1", &value) && value == 100);
    json_free(doc);
    comma_locale_end();
}

/* ---- what is refused ---- */

static const struct {
    const char *name, *text;
    int line;
    const char *reason;
} mistakes[] = {
    {"empty", "", 1, "the text ends too early"},
    {"space", " \n ", 2, "the text ends too early"},
    {"open_array", "[1", 1, "the text ends too early"},
    {"open_object", "{\"a\":1", 1, "the text ends too early"},
    {"no_value", "[1,]", 1, "a value is missing"},
    {"no_value_of_member", "{\"a\":}", 1, "a value is missing"},
    {"no_comma", "[1\n2]", 2, "',' or the closing bracket is missing after a value"},
    {"wrong_bracket", "[1}", 1, "',' or the closing bracket is missing after a value"},
    {"no_name", "{1:2}", 1, "the name of a member is missing"},
    {"comma_at_end", "{\"a\":1,}", 1, "the name of a member is missing"},
    {"no_colon", "{\"a\" 1}", 1, "':' is missing after the name of a member"},
    {"more", "1 2", 1, "extra text after the value"},
    {"word", "tru", 1, "a value is missing"},
    {"word_and_more", "nullx", 1, "extra text after the value"},
    {"single_quotes", "'a'", 1, "a value is missing"},
    {"leading_zero", "01", 1, "invalid number"},
    {"minus", "-", 1, "invalid number"},
    {"minus_leading_zero", "-01", 1, "invalid number"},
    {"point", "1.", 1, "invalid number"},
    {"exponent", "1e+", 1, "invalid number"},
    {"plus", "+1", 1, "a value is missing"},
    {"open_string", "[\"abc", 1, "unterminated string"},
    {"escape_at_end", "\"\\", 1, "invalid escape"},
    {"escape", "\"\\x\"", 1, "invalid escape"},
    {"newline_in_string", "\"a\nb\"", 1, "a control character in a string"},
    {"hex", "\"\\u12g4\"", 1, "\\u needs four hexadecimal digits"},
    {"hex_at_end", "\"\\u12", 1, "\\u needs four hexadecimal digits"},
    {"nul_by_escape", "\"\\u0000\"", 1, "a NUL in a string"},
    {"high_half", "\"\\ud800x\"", 1, "half of a surrogate pair"},
    {"high_half_twice", "\"\\ud800\\ud800\"", 1, "half of a surrogate pair"},
    {"low_half", "\"\\udc00\"", 1, "half of a surrogate pair"},
    {"utf8_lone_tail", "\"a\x80\"", 1, "a string that is not UTF-8"},
    {"utf8_cut", "\"\xE2\x82\"", 1, "a string that is not UTF-8"},
    {"utf8_too_long", "\"\xC0\xAF\"", 1, "a string that is not UTF-8"},
    {"utf8_surrogate", "\"\xED\xA0\x80\"", 1, "a string that is not UTF-8"},
    {"utf8_past_the_last", "\"\xF4\x90\x80\x80\"", 1, "a string that is not UTF-8"},
    {"utf8_cut_by_the_end", "\"\xF0\x9F", 1, "a string that is not UTF-8"},
};

/* From memory of just that size, so that reading past its end is seen. */
static void check_refused(const char *text, size_t bytes, int line, const char *reason)
{
    char *exact = malloc(bytes + !bytes);
    REQUIRE(exact != NULL);
    memcpy(exact, text, bytes);
    json_error error;
    json *doc = json_parse(exact, bytes, &error);
    CHECK(doc == NULL);
    CHECK(!error.no_memory);
    CHECK_EQ_STR(error.reason, reason);
    CHECK_EQ_I64((int64_t)error.line, line);
    json_free(doc);
    free(exact);
}

TEST_ROWS(Json, Refuses, mistakes)
{
    check_refused(mistakes[index].text, strlen(mistakes[index].text), mistakes[index].line,
                  mistakes[index].reason);
}

TEST_CASE(Json, RefusesNulsInTheText)
{
    check_refused("[1]\0", 4, 1, "extra text after the value");
    check_refused("[1\0]", 4, 1, "the text ends too early");
    check_refused("\"a\0b\"", 5, 1, "unterminated string");
    check_refused("\0", 1, 1, "the text ends too early");
}

TEST_CASE(Json, DepthIsBounded)
{
    char text[2 * JSON_DEPTH_MAX + 2];
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    text[2 * JSON_DEPTH_MAX] = 0;
    json_free(read_json(text));
    memset(text, '[', JSON_DEPTH_MAX + 1);
    check_refused(text, strlen(text), 1, "nested too deeply");
    size_t bytes = 10 << 20;
    char *brackets = malloc(bytes);
    REQUIRE(brackets != NULL);
    memset(brackets, '[', bytes);
    check_refused(brackets, bytes, 1, "nested too deeply");
    free(brackets);
}

/* ---- no memory ---- */

TEST_CASE(Json, EveryAllocationMayFail)
{
    char text[4000] = "[";
    while (strlen(text) + 8 < sizeof text)
        strcat(text, "1,2,3,");
    strcat(text, "4]");
    scarce memory = {.fails = -1};
    do {
        json_error error;
        memory = (scarce){.fails = memory.fails + 1};
        alloc_set_hook(scarce_resize, &memory);
        json *doc = json_parse(text, strlen(text), &error);
        CHECK(doc ? memory.asked <= memory.fails : error.no_memory);
        json_free(doc);
        alloc_set_hook(NULL, NULL);
        CHECK_EQ_I64(memory.living, 0);
    } while (memory.asked > memory.fails);
    CHECK(memory.fails > 4); /* the document, its text and several blocks of values */
}

/* ---- member by member ---- */

typedef struct member_log {
    char text[128];
    int stop_after; /* 0: never */
    int count;
} member_log;

static bool note_member(void *user, const json_value *v)
{
    member_log *log = user;
    size_t used = strlen(log->text);
    snprintf(log->text + used, sizeof log->text - used, "%s=%s/%u;", v->name, v->text, (unsigned)v->count);
    return ++log->count != log->stop_after;
}

static const struct {
    const char *name, *text, *seen, *reason;
    bool ok;
    int stop_after;
} member_cases[] = {
    {"Empty", " { } ", "", NULL, true, 0},
    {"Members", "{\"a\":1,\"b\":[1,2,3],\"c\":\"x\"}", "a=1/0;b=/3;c=x/0;", NULL, true, 0},
    {"Stopped", "{\"a\":1,\"b\":2,\"c\":3}", "a=1/0;b=2/0;", NULL, false, 2},
    {"NoObject", "[1]", "", "the object is missing", false, 0},
    {"CutOff", "{\"a\":1,\"b\":2", "a=1/0;", "the text ends too early", false, 0},
    {"NoComma", "{\"a\":1 \"b\":2}", "", "',' or the closing bracket is missing after a value", false, 0},
    {"Trailing", "{\"a\":1}x", "a=1/0;", "extra text after the value", false, 0},
    {"AtTheLimit", "{\"a\":[1,2,3,4,5,6,7]}", "a=/7;", NULL, true, 0},
    {"BeyondTheLimit", "{\"a\":[1,2,3,4,5,6,7,8]}", "", "too many values for its size", false, 0},
    {"EachHasItsOwnLimit", "{\"a\":[1,2,3,4,5,6,7],\"b\":[1,2,3,4,5,6,7]}", "a=/7;b=/7;", NULL, true, 0},
};

TEST_ROWS(Json, Members, member_cases)
{
    json_error error;
    member_log log = {.stop_after = member_cases[index].stop_after};
    bool ok = json_read_members(member_cases[index].text, strlen(member_cases[index].text), 8, note_member,
                                &log, &error);
    CHECK_EQ_I64(ok, member_cases[index].ok);
    CHECK_EQ_STR(log.text, member_cases[index].seen);
    if (!ok && member_cases[index].reason)
        CHECK_EQ_STR(error.reason, member_cases[index].reason);
    if (!ok && !member_cases[index].reason)
        CHECK(error.reason == NULL);
}

/* As many values as are free and a quarter of the bytes, and one more. */
TEST_CASE(Json, ValuesOfADocument)
{
    enum { MOST = 4 * JSON_VALUES_FREE };
    char *text = malloc(2 * MOST);
    REQUIRE(text != NULL);
    for (int values = 1;; values++) { /* n values in an array: n + 1 in 2n + 1 bytes */
        size_t bytes = 2 * (size_t)values + 1;
        bool fits = (size_t)values + 1 <= JSON_VALUES_FREE + bytes / 4;
        bool next = (size_t)values + 2 <= JSON_VALUES_FREE + (bytes + 2) / 4;
        if (fits && next)
            continue;
        for (int k = 0; k < 2; k++) {
            size_t n = (size_t)values + (size_t)k;
            json_error error;
            for (size_t i = 0; i < n; i++)
                memcpy(text + 2 * i, i ? ",0" : "[0", 2);
            text[2 * n] = ']';
            json *doc = json_parse(text, 2 * n + 1, &error);
            CHECK((doc != NULL) == (k == 0));
            if (!doc)
                CHECK_EQ_STR(error.reason, "too many values for its size");
            json_free(doc);
        }
        break;
    }
    free(text);
}
