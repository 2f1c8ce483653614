/* How tokenizers cut text into words. Each was published as regular expressions; here, each alternative is a function that tells
 * how many characters it matches at a place. Rules of a tokenizer are applied one after another, each to the parts that the ones
 * before it left: what a rule matches is a part, and so is what lies between two matches. */
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* A part of a text, as code points. */
typedef struct part {
    const uint32_t *c;
    size_t count;
} part;

/* The characters that match at the part's beginning; 0: none. */
typedef size_t (*rule)(part p);
typedef bool (*kind)(uint32_t c);

/* ---- kinds of characters ---- */

static bool is_letter(uint32_t c)
{
    return unicode_is_letter(c);
}

static bool is_mark(uint32_t c)
{
    return unicode_category_of(c) == UNICODE_MARK;
}

static bool is_letter_or_mark(uint32_t c)
{
    return is_letter(c) || is_mark(c);
}

static bool is_number(uint32_t c)
{
    return unicode_category_of(c) == UNICODE_NUMBER;
}

static bool is_ascii_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_ascii_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_ascii_punctuation(uint32_t c)
{
    return c > ' ' && c < 127 && !is_ascii_letter(c) && !is_ascii_digit(c);
}

static bool is_punctuation(uint32_t c)
{
    return unicode_category_of(c) == UNICODE_PUNCTUATION;
}

static bool is_punctuation_or_symbol(uint32_t c)
{
    return is_punctuation(c) || unicode_category_of(c) == UNICODE_SYMBOL;
}

static bool is_punctuation_or_ascii_symbol(uint32_t c)
{
    return is_punctuation(c) || (c < 127 && c > 0 && strchr("$+<=>^~|", (int)c));
}

static bool is_punctuation_or_ascii_symbol_or_backtick(uint32_t c)
{
    return is_punctuation_or_ascii_symbol(c) || c == '`';
}

static bool is_line_end(uint32_t c)
{
    return c == '\r' || c == '\n';
}

static bool is_line_end_or_slash(uint32_t c)
{
    return is_line_end(c) || c == '/';
}

/* Neither space nor letter nor number. */
static bool is_other(uint32_t c)
{
    return !unicode_is_space(c) && !is_letter(c) && !is_number(c);
}

/* May stand before the letters of a word. */
static bool is_before_word(uint32_t c)
{
    return !is_line_end(c) && !is_letter(c) && !is_number(c);
}

static bool is_before_deepseek_word(uint32_t c)
{
    return !is_line_end(c) && !is_letter(c) && !is_punctuation_or_symbol(c);
}

/* May be in the capitals that a word begins with, and in the small letters that it goes on with. */
static bool is_capital(uint32_t c)
{
    unicode_category category = unicode_category_of(c);
    return category != UNICODE_LOWER && is_letter_or_mark(c);
}

static bool is_small(uint32_t c)
{
    unicode_category category = unicode_category_of(c);
    return category != UNICODE_UPPER && category != UNICODE_TITLE && is_letter_or_mark(c);
}

static bool is_cjk(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff);
}

static bool is_cjk_or_hangul(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x800 && c <= 0x4e00) || (c >= 0xac00 && c <= 0xd7ff);
}

/* ---- parts of alternatives ---- */

/* How many characters of the kind follow one another from `at`. */
static size_t run(part p, size_t at, kind is)
{
    size_t n = 0;
    while (at + n < p.count && is(p.c[at + n]))
        n++;
    return n;
}

/* `before` at most once, then the kind at least once. */
static size_t run_after(part p, kind before, kind is)
{
    size_t skipped = p.count > 0 && before(p.c[0]);
    size_t n = run(p, skipped, is);
    return n ? skipped + n : run(p, 0, is);
}

static bool is_blank(uint32_t c)
{
    return c == ' ';
}

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

/* 's 't 're 've 'm 'll 'd from `at`. */
static size_t contraction(part p, size_t at, bool any_case)
{
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (at >= p.count || p.c[at] != '\'')
        return 0;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n = 0;
        for (; ends[i][n] && at + 1 + n < p.count; n++) {
            uint32_t c = p.c[at + 1 + n];
            if (c != (uint32_t)ends[i][n] && !(any_case && c == (uint32_t)ends[i][n] - 'a' + 'A'))
                break;
        }
        if (!ends[i][n])
            return 1 + n;
    }
    return 0;
}

/* A blank, then neither spaces nor letters nor numbers, then what may follow. */
static size_t others(part p, kind after)
{
    size_t n = run_after(p, is_blank, is_other);
    return n ? n + run(p, n, after) : 0;
}

static bool never(uint32_t c)
{
    (void)c;
    return false;
}

/* Spaces up to the last end of a line among them. */
static size_t lines(part p)
{
    size_t n = run(p, 0, unicode_is_space);
    while (n > 0 && !is_line_end(p.c[n - 1]))
        n--;
    return n;
}

/* Spaces, except the last one before something else: it belongs to what follows. */
static size_t spaces(part p)
{
    size_t n = run(p, 0, unicode_is_space);
    return n > 1 && n < p.count ? n - 1 : n;
}

/* ---- rules ---- */

static size_t gpt2(part p)
{
    size_t n = contraction(p, 0, false);
    n = n ? n : run_after(p, is_blank, is_letter);
    n = n ? n : run_after(p, is_blank, is_number);
    n = n ? n : others(p, never);
    return n ? n : spaces(p);
}

static size_t words_and_digits(part p, kind letters, size_t digits)
{
    size_t n = contraction(p, 0, true);
    n = n ? n : run_after(p, is_before_word, letters);
    n = n ? n : at_most(run(p, 0, is_number), digits);
    n = n ? n : others(p, is_line_end);
    n = n ? n : lines(p);
    return n ? n : spaces(p);
}

static size_t llama3(part p)
{
    return words_and_digits(p, is_letter, 3);
}

static size_t qwen2(part p)
{
    return words_and_digits(p, is_letter, 1);
}

static size_t qwen35(part p)
{
    return words_and_digits(p, is_letter_or_mark, 1);
}

/* Capitals and then small letters, at least one: capitals are given back where no small one follows them, as letters without
 * case may be either. */
static size_t capitals_then_small(part p)
{
    for (size_t capitals = run(p, 0, is_capital) + 1; capitals-- > 0;) {
        size_t small = run(p, capitals, is_small);
        if (small)
            return capitals + small;
    }
    return 0;
}

static size_t only_capitals(part p)
{
    size_t n = run(p, 0, is_capital);
    return n ? n + run(p, n, is_small) : 0;
}

/* The rule behind what may stand before a word, or without it. */
static size_t after_one(part p, rule then)
{
    if (p.count > 0 && is_before_word(p.c[0])) {
        size_t n = then((part){p.c + 1, p.count - 1});
        if (n)
            return n + 1;
    }
    return then(p);
}

static size_t cased_words(part p, size_t digits, bool contractions)
{
    size_t n = after_one(p, capitals_then_small);
    n = n ? n : after_one(p, only_capitals);
    if (n)
        return n + (contractions ? contraction(p, n, true) : 0);
    n = at_most(run(p, 0, is_number), digits);
    n = n ? n : others(p, is_line_end_or_slash);
    n = n ? n : lines(p);
    return n ? n : spaces(p);
}

static size_t tekken(part p)
{
    return cased_words(p, 1, false);
}

static size_t gpt4o(part p)
{
    return cased_words(p, 3, true);
}

static size_t deepseek3(part p)
{
    size_t n = 0;
    if (p.count > 1 && is_ascii_punctuation(p.c[0]) && is_ascii_letter(p.c[1]))
        return 1 + run(p, 1, is_ascii_letter);
    n = run_after(p, is_before_deepseek_word, is_letter_or_mark);
    if (!n) {
        n = run_after(p, is_blank, is_punctuation_or_symbol);
        n += n ? run(p, n, is_line_end) : 0;
    }
    n = n ? n : lines(p);
    return n ? n : spaces(p);
}

static size_t one_number(part p)
{
    return at_most(run(p, 0, is_number), 1);
}

static size_t three_numbers(part p)
{
    return at_most(run(p, 0, is_number), 3);
}

static size_t numbers(part p)
{
    return run(p, 0, is_number);
}

static size_t three_ascii_digits(part p)
{
    return run(p, 0, is_ascii_digit) >= 3 ? 3 : 0;
}

static size_t line_end(part p)
{
    return at_most(run(p, 0, is_line_end), 1);
}

static size_t spaced_letters(part p)
{
    return run_after(p, unicode_is_space, is_letter);
}

static size_t spaced_punctuation(part p)
{
    return run_after(p, unicode_is_space, is_punctuation);
}

static size_t cjk(part p)
{
    return run(p, 0, is_cjk);
}

static size_t cjk_or_hangul(part p)
{
    return run(p, 0, is_cjk_or_hangul);
}

static size_t marks_of_default(part p)
{
    return run(p, 0, is_punctuation_or_ascii_symbol);
}

static size_t marks_of_falcon(part p)
{
    return run(p, 0, is_punctuation_or_ascii_symbol_or_backtick);
}

/* ---- tokenizers ---- */

enum { RULES_MAX = 5 };
struct word_rules {
    const char *names; /* of tokenizer.ggml.pre, apart by spaces */
    bool takes_whole_words;
    rule rules[RULES_MAX]; /* until a null one */
};

static const word_rules table[] = {
    {"gpt-2 gpt2 mpt olmo jais trillion phi-2 roberta-bpe gigachat a.x-4.0 mellum modern-bert "
     "granite-docling",
     false,
     {gpt2}},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2", true, {llama3}},
    {"dbrx smaug-bpe chatglm-bpe glm4", false, {llama3}},
    {"qwen2 deepseek-r1-qwen stablelm2 megrez kormo", false, {qwen2}},
    {"qwen35", false, {qwen35}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b", false, {one_number, gpt2}},
    {"tekken", true, {tekken}},
    {"gpt-4o llama4", false, {gpt4o}},
    {"deepseek-v3 hunyuan-dense", false, {three_numbers, cjk, deepseek3}},
    {"deepseek-coder", false, {line_end, spaced_letters, spaced_punctuation, cjk_or_hangul, one_number}},
    {"falcon", false, {marks_of_falcon, gpt2, three_ascii_digits}},
    {"default", false, {marks_of_default, gpt2, numbers, three_ascii_digits}},
};

const word_rules *word_rules_find(view name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (const char *at = table[i].names; *at; at += strspn(at, " ")) {
            size_t size = strcspn(at, " ");
            if (size == name.size && memcmp(at, name.data, size) == 0)
                return &table[i];
            at += size;
        }
    return NULL;
}

bool word_rules_take_whole_words(const word_rules *rules)
{
    return rules->takes_whole_words;
}

/* ---- cutting ---- */

typedef struct cutter {
    const word_rules *rules;
    const uint32_t *characters;
    const size_t *offsets; /* of each character in the text, and of its end */
    const char *data;
    void (*word)(void *context, const char *data, size_t size);
    void *context;
} cutter;

/* Characters from..to by the rules from number r on. */
static void cut(const cutter *c, size_t r, size_t from, size_t to)
{
    if (from == to)
        return;
    if (r == RULES_MAX || !c->rules->rules[r]) {
        c->word(c->context, c->data + c->offsets[from], c->offsets[to] - c->offsets[from]);
        return;
    }
    size_t gap = from;
    while (from < to) {
        size_t n = c->rules->rules[r]((part){c->characters + from, to - from});
        if (n == 0) {
            from++;
            continue;
        }
        cut(c, r + 1, gap, from);
        cut(c, r + 1, from, from + n);
        gap = from += n;
    }
    cut(c, r + 1, gap, to);
}

void words_cut(const word_rules *rules, const char *data, size_t size,
               void (*word)(void *context, const char *data, size_t size), void *context)
{
    uint32_t *characters = take((size + 1) * sizeof *characters);
    size_t *offsets = take((size + 1) * sizeof *offsets), count = 0;
    for (size_t at = 0; at < size; count++) {
        offsets[count] = at;
        at += utf8_read(data + at, size - at, &characters[count]);
    }
    offsets[count] = size;
    const cutter c = {rules, characters, offsets, data, word, context};
    cut(&c, 0, 0, count);
    free(characters);
    free(offsets);
}
