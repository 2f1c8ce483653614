/* Text to tokens, with line and column; and messages that show a place in the text. */
#include "front.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static bool is_name_char(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || is_digit(c);
}

static int digit_value(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* The character `ahead` of the cursor, 0 past the end. */
static int peek(const parser *p, int ahead)
{
    return p->end - p->at > ahead ? (unsigned char)p->at[ahead] : 0;
}

/* ---- messages ---- */

/* Appends the line of the text and a caret under the column; tabs stay tabs so that the caret lines up. */
static void show_line(const parser *p, int line, int column, char *message, size_t size)
{
    const char *s = p->text;
    for (int l = 1; l < line && s < p->end; s++)
        l += *s == '\n';
    int length = 0;
    while (s + length < p->end && s[length] != '\n' && s[length] != '\r')
        length++;
    int first = column > 100 ? column - 60 : 1; /* only the part of a long line around the column is shown */
    size_t used = strlen(message);
    used += (size_t)snprintf(message + used, size - used, "\n  ");
    for (int i = first - 1; i < length && i < first + 118 && used + 1 < size; i++)
        message[used++] = s[i];
    message[used] = 0;
    if (used + 8 + (size_t)(column - first) >= size)
        return;
    memcpy(message + used, "\n  ", 4);
    used += 3;
    for (int i = first; i < column; i++)
        message[used++] = i <= length && s[i - 1] == '\t' ? '\t' : ' ';
    message[used++] = '^';
    message[used] = 0;
}

static _Noreturn void fail_va(parser *p, int line, int column, int kind, const char *format, va_list args)
{
    pvm_error *e = p->error;
    e->kind = kind;
    e->line = line;
    e->column = column;
    int n = snprintf(e->message, sizeof e->message, "%d:%d: ", line, column);
    vsnprintf(e->message + n, 240, format, args);
    show_line(p, line, column, e->message, sizeof e->message);
    pvm_make_printable(e->message); /* it contains names, strings and a line of the PTX */
    longjmp(p->failed, 1);
}

void parse_fail_at(parser *p, int line, int column, int kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_va(p, line, column, kind, format, args);
}

void parse_fail(parser *p, int kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_va(p, p->tok.line, p->tok.column, kind, format, args);
}

void check_limit(parser *p, ptxvm_limit limit, uint64_t value)
{
    if (value > p->limits[limit])
        parse_fail(p, PVM_ERROR_UNSUPPORTED, "more than %llu %s: the limit is %s",
                   (unsigned long long)p->limits[limit], ptxvm_limit_what(limit), ptxvm_limit_name(limit));
}

void *parse_alloc(parser *p, size_t bytes)
{
    void *memory = arena_alloc(p->arena, bytes);
    if (!memory)
        parse_fail(p, PVM_ERROR_MEMORY, "out of memory");
    return memory;
}

void *parse_grow(parser *p, void *items, int count, int *capacity, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    if (*capacity > INT32_MAX / 2)
        parse_fail(p, PVM_ERROR_MEMORY, "out of memory");
    int larger = *capacity ? *capacity * 2 : 4;
    void *memory = parse_alloc(p, (size_t)larger * item_bytes);
    if (count)
        memcpy(memory, items, (size_t)count * item_bytes);
    *capacity = larger;
    return memory;
}

char *parse_text(parser *p, const char *text, int length)
{
    char *copy = parse_alloc(p, (size_t)length + 1);
    memcpy(copy, text, (size_t)length);
    return copy;
}

/* ---- tokens ---- */

static void new_line(parser *p)
{
    p->line++;
    p->line_start = p->at;
}

static void skip_comment(parser *p)
{
    int line = p->line, column = (int)(p->at - p->line_start) + 1;
    p->at += 2;
    while (p->at < p->end && !(peek(p, 0) == '*' && peek(p, 1) == '/'))
        if (*p->at++ == '\n')
            new_line(p);
    if (p->at >= p->end)
        parse_fail_at(p, line, column, PVM_ERROR_SYNTAX, "this comment does not end");
    p->at += 2;
}

static void skip_rest_of_line(parser *p)
{
    while (p->at < p->end && *p->at != '\n')
        p->at++;
}

/* White space, comments, and lines of the C preprocessor (# 1 "file"), as far as ptxas accepts them. */
static void skip_blanks(parser *p)
{
    while (p->at < p->end) {
        int c = *p->at;
        if (c == '\n') {
            p->at++;
            new_line(p);
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v')
            p->at++;
        else if (c == '/' && peek(p, 1) == '/')
            skip_rest_of_line(p);
        else if (c == '/' && peek(p, 1) == '*')
            skip_comment(p);
        else if (c == '#' && p->at == p->line_start && peek(p, 1) == ' ' && is_digit(peek(p, 2)))
            skip_rest_of_line(p);
        else
            return;
    }
}

/* Digits of an integer in `base`; of more than 64 bits only the low ones count, as in ptxas. */
static void read_digits(parser *p, int base)
{
    uint64_t value = 0;
    int n = 0;
    for (int d; (d = digit_value(peek(p, 0))) < base; p->at++, n++)
        value = value * (uint64_t)base + (uint64_t)d;
    if (n == 0)
        parse_fail(p, PVM_ERROR_SYNTAX, "a number needs digits here");
    p->tok.kind = TOKEN_INT;
    p->tok.value = value;
    if (peek(p, 0) == 'U') {
        p->tok.is_unsigned = true;
        p->at++;
    }
    if (value > INT64_MAX)
        p->tok.is_unsigned = true;
}

/* 0f and 0d: exact bits, always 8 or 16 digits. */
static void read_float_bits(parser *p, int digits, token_kind kind)
{
    uint64_t value = 0;
    int n = 0;
    for (int d; (d = digit_value(peek(p, 0))) < 16 && n <= digits; p->at++, n++)
        value = value << 4 | (uint64_t)d;
    if (n != digits)
        parse_fail(p, PVM_ERROR_SYNTAX, "a %s literal has exactly %d hexadecimal digits",
                   kind == TOKEN_F32 ? "0f" : "0d", digits);
    p->tok.kind = kind;
    p->tok.value = value;
}

/* The number of characters at the cursor that form a decimal floating-point number; 0 if they do not. */
static int float_length(const parser *p)
{
    int n = 0;
    bool digits = false, point = false, exponent = false;
    while (is_digit(peek(p, n)))
        n++, digits = true;
    if (peek(p, n) == '.' &&
        (digits ? !is_name_start(peek(p, n + 1)) || digit_value(peek(p, n + 1)) == 14 : true)) {
        point = true;
        for (n++; is_digit(peek(p, n)); n++)
            digits = true;
    }
    int c = peek(p, n), sign = peek(p, n + 1) == '+' || peek(p, n + 1) == '-';
    if (digits && (c == 'e' || c == 'E') && is_digit(peek(p, n + 1 + sign))) {
        exponent = true;
        for (n += 1 + sign; is_digit(peek(p, n)); n++)
            ;
    }
    return digits && (point || exponent) ? n : 0;
}

/* The program may have set a locale with a decimal comma: this number is read in the C locale. */
static void read_decimal_float(parser *p, int length)
{
    char buffer[128];
    if (length >= (int)sizeof buffer)
        parse_fail(p, PVM_ERROR_SYNTAX, "this number is too long");
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        parse_fail(p, PVM_ERROR_MEMORY, "out of memory");
    memcpy(buffer, p->at, (size_t)length);
    buffer[length] = 0;
    p->tok.kind = TOKEN_F64;
    locale_t before = uselocale(c);
    p->tok.value = bits_from_f64(strtod(buffer, NULL));
    uselocale(before);
    freelocale(c);
    p->at += length;
}

static void read_number(parser *p)
{
    int second = peek(p, 1), length = float_length(p);
    bool zero = *p->at == '0';
    if (zero && (second == 'x' || second == 'X')) {
        p->at += 2;
        read_digits(p, 16);
    } else if (zero && (second == 'b' || second == 'B')) {
        p->at += 2;
        read_digits(p, 2);
    } else if (zero && (second == 'f' || second == 'F')) {
        p->at += 2;
        read_float_bits(p, 8, TOKEN_F32);
    } else if (zero && (second == 'd' || second == 'D')) {
        p->at += 2;
        read_float_bits(p, 16, TOKEN_F64);
    } else if (length > 0) {
        read_decimal_float(p, length);
    } else {
        read_digits(p, zero && is_digit(second) ? 8 : 10);
    }
    if (is_name_char(peek(p, 0)))
        parse_fail(p, PVM_ERROR_SYNTAX, "'%c' cannot follow a number", *p->at);
}

static void read_word(parser *p)
{
    p->at++;
    p->tok.kind = TOKEN_WORD;
    p->tok.text = p->at;
    while (is_name_char(peek(p, 0)) || (peek(p, 0) == ':' && peek(p, 1) == ':' && is_name_char(peek(p, 2))))
        p->at += *p->at == ':' ? 2 : 1;
    p->tok.length = (int)(p->at - p->tok.text);
}

static void read_string(parser *p)
{
    p->tok.kind = TOKEN_STRING;
    p->tok.text = ++p->at;
    while (p->at < p->end && *p->at != '"' && *p->at != '\n')
        p->at += *p->at == '\\' && p->end - p->at > 1 && p->at[1] != '\n' ? 2 : 1;
    if (p->at >= p->end || *p->at != '"')
        parse_fail(p, PVM_ERROR_SYNTAX, "this string does not end on its line");
    p->tok.length = (int)(p->at - p->tok.text);
    p->at++;
}

static void read_punct(parser *p)
{
    static const struct {
        char text[3];
        int punct;
    } pairs[] = {{"<<", PUNCT_SHL}, {">>", PUNCT_SHR}, {"<=", PUNCT_LE},  {">=", PUNCT_GE},
                 {"==", PUNCT_EQ},  {"!=", PUNCT_NE},  {"&&", PUNCT_AND}, {"||", PUNCT_OR}};
    p->tok.kind = TOKEN_PUNCT;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (peek(p, 0) == pairs[i].text[0] && peek(p, 1) == pairs[i].text[1]) {
            p->tok.punct = pairs[i].punct;
            p->at += 2;
            return;
        }
    unsigned char c = (unsigned char)*p->at;
    if (!strchr("{}()[]<>,;:=+-*/%&|^~!?@", c) || c == 0)
        parse_fail(p, PVM_ERROR_SYNTAX,
                   c > ' ' && c < 127 ? "PTX has no '%c'" : "PTX has no character 0x%02x", c);
    p->tok.punct = c;
    p->at++;
}

void next_token(parser *p)
{
    skip_blanks(p);
    p->tok = (token){
        .kind = TOKEN_END, .text = p->at, .line = p->line, .column = (int)(p->at - p->line_start) + 1};
    if (p->at >= p->end)
        return;
    int c = peek(p, 0), second = peek(p, 1);
    if (is_digit(c) ||
        (c == '.' && is_digit(second) && !is_name_char(peek(p, float_length(p))))) /* ".2d" is a word */
        read_number(p);
    else if (c == '.' && is_name_char(second))
        read_word(p);
    else if (c == '"')
        read_string(p);
    else if (is_name_start(c) && !(c == '%' && !is_name_char(second))) {
        p->tok.kind = TOKEN_NAME;
        for (p->at++; is_name_char(peek(p, 0)); p->at++)
            ;
        p->tok.length = (int)(p->at - p->tok.text);
        return;
    } else
        read_punct(p);
    if (p->tok.kind != TOKEN_WORD && p->tok.kind != TOKEN_STRING)
        p->tok.length = (int)(p->at - p->tok.text);
}

bool token_is(const token *tok, const char *text)
{
    return tok->length == (int)strlen(text) && memcmp(tok->text, text, (size_t)tok->length) == 0;
}

bool at_punct(const parser *p, int punct)
{
    return p->tok.kind == TOKEN_PUNCT && p->tok.punct == punct;
}

bool at_word(const parser *p, const char *word)
{
    return p->tok.kind == TOKEN_WORD && token_is(&p->tok, word);
}

bool at_name(const parser *p, const char *text)
{
    return p->tok.kind == TOKEN_NAME && token_is(&p->tok, text);
}

bool accept_punct(parser *p, int punct)
{
    if (!at_punct(p, punct))
        return false;
    next_token(p);
    return true;
}

bool accept_word(parser *p, const char *word)
{
    if (!at_word(p, word))
        return false;
    next_token(p);
    return true;
}

void expect_punct(parser *p, int punct)
{
    if (accept_punct(p, punct))
        return;
    if (p->tok.kind == TOKEN_END)
        parse_fail(p, PVM_ERROR_SYNTAX, "'%c' is missing at the end of the text", punct);
    parse_fail(p, PVM_ERROR_SYNTAX, "'%c' expected before '%.*s'", punct,
               p->tok.length > 40 ? 40 : p->tok.length, p->tok.text);
}
