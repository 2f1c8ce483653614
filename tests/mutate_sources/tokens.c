/* The tokens of a C file: words, numbers, strings and signs, with their brackets matched. */
#include "mutate_sources/tokens.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *text;
    int at, line;
    bool line_is_empty; /* so far: a # here begins a preprocessor line */
    tokens *out;
    int capacity;
    int open; /* the innermost bracket that is open; -1: none */
} reader;

/* Longest first. */
static const char *const signs[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
                                    "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##"};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static int length_of_word(const char *s)
{
    int n = 0;
    while (is_word(s[n]))
        n++;
    return n;
}

/* A preprocessing number: a sign belongs to it behind the letter of an exponent. */
static int length_of_number(const char *s)
{
    int n = 0;
    while (is_word(s[n]) || s[n] == '.' ||
           (n > 0 && (s[n] == '+' || s[n] == '-') && strchr("eEpP", s[n - 1]))) {
        bool is_hex_digit = n > 1 && (s[1] == 'x' || s[1] == 'X') && (s[n - 1] == 'e' || s[n - 1] == 'E');
        if ((s[n] == '+' || s[n] == '-') && is_hex_digit)
            break;
        n++;
    }
    return n;
}

static int length_of_text(const char *s)
{
    int n = 1;
    while (s[n] && s[n] != s[0] && s[n] != '\n')
        n += s[n] == '\\' && s[n + 1] ? 2 : 1;
    return s[n] == s[0] ? n + 1 : n;
}

static int length_of_sign(const char *s)
{
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (strncmp(s, signs[i], strlen(signs[i])) == 0)
            return (int)strlen(signs[i]);
    return 1;
}

static void pass(reader *r, int n)
{
    for (int i = 0; i < n; i++)
        if (r->text[r->at + i] == '\n')
            r->line++;
    r->at += n;
}

static int length_of_comment(const char *s)
{
    const char *end = s[1] == '*' ? strstr(s + 2, "*/") : strchr(s, '\n');
    if (!end)
        return (int)strlen(s);
    return (int)(end - s) + (s[1] == '*' ? 2 : 0);
}

/* To the end of the line that no backslash continues; a comment in it may go further. */
static void pass_directive(reader *r)
{
    while (r->text[r->at] && r->text[r->at] != '\n') {
        const char *s = r->text + r->at;
        if (s[0] == '/' && (s[1] == '*' || s[1] == '/'))
            pass(r, length_of_comment(s));
        else
            pass(r, s[0] == '\\' && s[1] ? 2 : 1);
    }
}

static bool close_bracket(reader *r, token *t, char sign)
{
    static const char pairs[] = "()[]{}";
    if (r->open < 0)
        return false;
    token *opening = &r->out->list[r->open];
    if (*(strchr(pairs, sign) - 1) != r->text[opening->at])
        return false;
    t->partner = r->open;
    t->inside = opening->inside;
    opening->partner = r->out->count;
    r->open = opening->inside;
    return true;
}

static bool add(reader *r, token_kind kind, int length)
{
    if (r->out->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 1024;
        token *grown = realloc(r->out->list, (size_t)r->capacity * sizeof *grown);
        if (!grown)
            return false;
        r->out->list = grown;
    }
    token *t = &r->out->list[r->out->count];
    *t = (token){kind, r->at, length, r->line, -1, r->open};
    const char sign = r->text[r->at];
    if (kind == TOKEN_SIGN && strchr(")]}", sign) && !close_bracket(r, t, sign))
        return false;
    if (kind == TOKEN_SIGN && strchr("([{", sign))
        r->open = r->out->count;
    r->out->count++;
    pass(r, length);
    return true;
}

static bool read_token(reader *r)
{
    const char *s = r->text + r->at;
    if (isdigit((unsigned char)s[0]) || (s[0] == '.' && isdigit((unsigned char)s[1])))
        return add(r, TOKEN_NUMBER, length_of_number(s));
    if (is_word(s[0])) {
        const int n = length_of_word(s);
        if (s[n] == '"' || s[n] == '\'') /* u8"text" */
            return add(r, TOKEN_TEXT, n + length_of_text(s + n));
        return add(r, TOKEN_WORD, n);
    }
    if (s[0] == '"' || s[0] == '\'')
        return add(r, TOKEN_TEXT, length_of_text(s));
    return add(r, TOKEN_SIGN, length_of_sign(s));
}

bool tokens_read(const char *text, tokens *out)
{
    *out = (tokens){.text = text};
    reader r = {.text = text, .line = 1, .line_is_empty = true, .out = out, .open = -1};
    while (text[r.at]) {
        const char *s = text + r.at;
        if (isspace((unsigned char)*s)) {
            r.line_is_empty = r.line_is_empty || *s == '\n';
            pass(&r, 1);
        } else if (s[0] == '\\' && s[1] == '\n') {
            pass(&r, 2);
        } else if (s[0] == '/' && (s[1] == '*' || s[1] == '/')) {
            pass(&r, length_of_comment(s));
        } else if (s[0] == '#' && r.line_is_empty) {
            pass_directive(&r);
        } else {
            r.line_is_empty = false;
            if (!read_token(&r)) {
                tokens_free(out);
                return false;
            }
        }
    }
    if (r.open >= 0) {
        tokens_free(out);
        return false;
    }
    return true;
}

void tokens_free(tokens *t)
{
    free(t->list);
    *t = (tokens){0};
}

bool tokens_is(const tokens *t, int i, const char *text)
{
    return i >= 0 && i < t->count && (size_t)t->list[i].length == strlen(text) &&
           strncmp(t->text + t->list[i].at, text, strlen(text)) == 0;
}

bool tokens_in(const tokens *t, int i, const char *list)
{
    if (i < 0 || i >= t->count)
        return false;
    const size_t length = (size_t)t->list[i].length;
    for (const char *one = list; *one;) {
        const size_t n = strcspn(one, " ");
        if (n == length && strncmp(one, t->text + t->list[i].at, n) == 0)
            return true;
        one += n + strspn(one + n, " ");
    }
    return false;
}
