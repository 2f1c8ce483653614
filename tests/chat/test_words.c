/* examples/chat: characters, and how tokenizers cut text into words. */
#include "text.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

TEST_CASE(ChatUnicode, Categories)
{
    static const struct {
        uint32_t c;
        unicode_category category;
    } rows[] = {{0, UNICODE_OTHER},         {' ', UNICODE_OTHER},      {'$', UNICODE_SYMBOL},
                {'%', UNICODE_PUNCTUATION}, {'0', UNICODE_NUMBER},     {'A', UNICODE_UPPER},
                {'z', UNICODE_LOWER},       {0xaa, UNICODE_LETTER},    {0x100, UNICODE_UPPER},
                {0x101, UNICODE_LOWER},     {0x137, UNICODE_LOWER},    {0x138, UNICODE_LOWER},
                {0x139, UNICODE_UPPER},     {0x1c5, UNICODE_TITLE},    {0x2b0, UNICODE_MODIFIER},
                {0x301, UNICODE_MARK},      {0x966, UNICODE_NUMBER},   {0x3000, UNICODE_OTHER},
                {0x4e00, UNICODE_LETTER},   {0xd800, UNICODE_OTHER},   {0x1f600, UNICODE_SYMBOL},
                {0xe0100, UNICODE_MARK},    {0x10ffff, UNICODE_OTHER}, {0x1e943, UNICODE_LOWER}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_push_note("U+%04X", (unsigned)rows[i].c);
        CHECK_EQ_I64(unicode_category_of(rows[i].c), rows[i].category);
        test_pop_note();
    }
}

TEST_CASE(ChatUnicode, Utf8)
{
    static const struct {
        const char *data;
        size_t size;
        uint32_t c;
        size_t read;
    } rows[] = {{"a", 1, 'a', 1},
                {"\u00e9", 2, 0xe9, 2},
                {"\u65e5", 3, 0x65e5, 3},
                {"\U0001f600", 4, 0x1f600, 4},
                {"\xc3", 1, 0xfffd, 1},             /* unfinished */
                {"\xc0\x80", 2, 0xfffd, 1},         /* longer than need be */
                {"\xe0\x80\x80", 3, 0xfffd, 1},     /* likewise */
                {"\xed\xa0\x80", 3, 0xfffd, 1},     /* half of a pair */
                {"\xf4\x90\x80\x80", 4, 0xfffd, 1}, /* too large */
                {"\x80", 1, 0xfffd, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t c;
        char back[4];
        test_push_note("row %zu", i);
        CHECK_EQ_I64((int64_t)utf8_read(rows[i].data, rows[i].size, &c), (int64_t)rows[i].read);
        CHECK_EQ_U32(c, rows[i].c);
        if (c != 0xfffd) {
            CHECK_EQ_I64((int64_t)utf8_write(c, back), (int64_t)rows[i].size);
            CHECK_EQ_MEM(back, rows[i].data, rows[i].size);
        }
        test_pop_note();
    }
}

TEST_CASE(ChatUnicode, WholeCharacters)
{
    CHECK_EQ_I64((int64_t)utf8_whole("", 0), 0);
    CHECK_EQ_I64((int64_t)utf8_whole("ab", 2), 2);
    CHECK_EQ_I64((int64_t)utf8_whole("a\u65e5", 4), 4);
    CHECK_EQ_I64((int64_t)utf8_whole("a\u65e5", 3), 1);
    CHECK_EQ_I64((int64_t)utf8_whole("a\u65e5", 2), 1);
    CHECK_EQ_I64((int64_t)utf8_whole("\U0001f600", 3), 0);
    CHECK_EQ_I64((int64_t)utf8_whole("\x80\x80\x80\x80", 4),
                 4); /* no character at all: nothing to wait for */
}

/* ---- words ---- */

static void append(void *context, const char *data, size_t size)
{
    text *out = context;
    if (out->size)
        text_add(out, "|", 1);
    text_add(out, data, size);
}

static void check_words(const char *rules, const char *words, const char *expected)
{
    text out = {0};
    const word_rules *found = word_rules_find(view_of(rules));
    test_push_note("%s", rules);
    if (CHECK(found != NULL)) {
        words_cut(found, words, strlen(words), append, &out);
        CHECK_EQ_STR(out.data ? out.data : "", expected);
    }
    test_pop_note();
    text_free(&out);
}

/* Cut by another implementation, from the regular expressions that the tokenizers were published with. */
static const char sample[] = "Hello, world!  It's 12345 I'LL \u00b2\u00bd\r\n\n  the\tend  na\u00efve "
                             "HTTPServer iPhoneX \u65e5\u672c\u8a9e \ud55c\uad6d a\u0301b $+= `/\n 0.75";
static const struct {
    const char *name, *words;
} cut[] = {
    {"gpt-2", "Hello|,| world|!| | It|'s| 12345| I|'|LL| \u00b2\u00bd|\r\n\n | the|\t|end| | na\u00efve| "
              "HTTPServer| iPhoneX| \u65e5\u672c\u8a9e| \ud55c\uad6d| a|\u0301|b| $+=| `/|\n| 0|.|75"},
    {"llama-bpe",
     "Hello|,| world|!| | It|'s| |123|45| I|'LL| |\u00b2\u00bd|\r\n\n| | the|\tend| | na\u00efve| "
     "HTTPServer| iPhoneX| \u65e5\u672c\u8a9e| \ud55c\uad6d| a|\u0301b| $+=| `/\n| |0|.|75"},
    {"qwen2",
     "Hello|,| world|!| | It|'s| |1|2|3|4|5| I|'LL| |\u00b2|\u00bd|\r\n\n| | the|\tend| | na\u00efve| "
     "HTTPServer| iPhoneX| \u65e5\u672c\u8a9e| \ud55c\uad6d| a|\u0301b| $+=| `/\n| |0|.|7|5"},
    {"qwen35",
     "Hello|,| world|!| | It|'s| |1|2|3|4|5| I|'LL| |\u00b2|\u00bd|\r\n\n| | the|\tend| | na\u00efve| "
     "HTTPServer| iPhoneX| \u65e5\u672c\u8a9e| \ud55c\uad6d| a\u0301b| $+=| `/\n| |0|.|7|5"},
    {"smollm",
     "Hello|,| world|!| | It|'s| |1|2|3|4|5| I|'|LL| |\u00b2|\u00bd|\r\n\n | the|\t|end| | na\u00efve| "
     "HTTPServer| iPhoneX| \u65e5\u672c\u8a9e| \ud55c\uad6d| a|\u0301|b| $+=| `/|\n |0|.|7|5"},
    {"tekken",
     "Hello|,| world|!| | It|'s| |1|2|3|4|5| I|'LL| |\u00b2|\u00bd|\r\n\n| | the|\tend| | na\u00efve| "
     "HTTPServer| i|Phone|X| \u65e5\u672c\u8a9e| \ud55c\uad6d| a\u0301b| $+=| `/\n| |0|.|7|5"},
    {"gpt-4o", "Hello|,| world|!| | It's| |123|45| I'LL| |\u00b2\u00bd|\r\n\n| | the|\tend| | na\u00efve| "
               "HTTPServer| i|Phone|X| \u65e5\u672c\u8a9e| \ud55c\uad6d| a\u0301b| $+=| `/\n| |0|.|75"},
    {"deepseek-v3",
     "Hello|,| world|!| | It|'s| |123|45| I|'LL| |\u00b2\u00bd|\r\n\n| | the|\tend| | na\u00efve| "
     "HTTPServer| iPhoneX| |\u65e5\u672c\u8a9e| \ud55c\uad6d| a\u0301b| $+=| `/\n| |0|.|75"},
    {"deepseek-coder",
     "Hello|,| world|!| | It|'|s| |1|2|3|4|5| I|'|LL| |\u00b2|\u00bd|\r|\n|\n| | the|\tend| | na\u00efve| "
     "HTTPServer| iPhoneX| |\u65e5\u672c\u8a9e| |\ud55c\uad6d| a|\u0301|b| $+= `|/|\n| |0|.|7|5"},
    {"falcon", "Hello|,| world|!| | It|'|s| |123|45| I|'|LL| \u00b2\u00bd|\r\n\n | the|\t|end| | na\u00efve| "
               "HTTPServer| iPhoneX| \u65e5\u672c\u8a9e| \ud55c\uad6d| a|\u0301|b| |$+=| |`/|\n| 0|.|75"},
    {"default",
     "Hello|,| world|!| | It|'|s| |123|45| I|'|LL| |\u00b2\u00bd|\r\n\n | the|\t|end| | na\u00efve| "
     "HTTPServer| iPhoneX| \u65e5\u672c\u8a9e| \ud55c\uad6d| a|\u0301|b| |$+=| `|/|\n| |0|.|75"},
};

TEST_ROWS(ChatWords, AsPublished, cut)
{
    check_words(cut[index].name, sample, cut[index].words);
}

TEST_CASE(ChatWords, Edges)
{
    check_words("gpt-2", "", "");
    check_words("gpt-2", " ", " ");
    check_words("gpt-2", "a  ", "a|  ");
    check_words("gpt-2", "  a", " | a");
    check_words("gpt-2", "'", "'");
    check_words("gpt-2", "'l", "'|l");
    check_words("llama-bpe", "a \n b", "a| \n| b");
    check_words("llama-bpe", "x'Re", "x|'Re");
    check_words("tekken", "ABCdef GHI", "ABCdef| GHI");
    check_words("tekken", "A\u02b0B", "A\u02b0|B"); /* a letter without case ends the small ones */
    check_words("gpt-4o", "\u0301", "\u0301");      /* a mark alone is a word, not what stands before one */
    check_words("smollm",
                "\xff"
                "1",
                "\xff|1");
    CHECK(word_rules_find(view_of("gpt")) == NULL);
    CHECK(word_rules_find(view_of("")) == NULL);
}
