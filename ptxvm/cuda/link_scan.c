/* Divides a PTX text into pieces. The text has already been parsed: only names, linkage and the ends of
 * statements matter here. */
#include "link.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tokens ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static const char *skip_line(const char *p, const char *end)
{
    while (p < end && *p != '\n')
        p++;
    return p;
}

static const char *skip_comment(const char *p, const char *end)
{
    for (p += 2; p < end; p++)
        if (p[0] == '*' && p + 1 < end && p[1] == '/')
            return p + 2;
    return end;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end) {
        bool slash = *p == '/' && p + 1 < end;
        if (*p == ' ' || (*p >= '\t' && *p <= '\r'))
            p++;
        else if (slash && p[1] == '/')
            p = skip_line(p, end);
        else if (slash && p[1] == '*')
            p = skip_comment(p, end);
        else
            break;
    }
    return p;
}

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && p + 1 < end)
            p++;
    return p < end ? p + 1 : end;
}

link_token link_next(const char **at, const char *end)
{
    const char *start = skip_blanks(*at, end), *p = start;
    link_token_kind kind = LINK_PUNCT;
    if (p == end)
        kind = LINK_END;
    else if (*p == '"') {
        kind = LINK_STRING;
        p = skip_string(p, end);
    } else if (is_digit(*p)) { /* also 0f3F800000 and 9.0 */
        kind = LINK_NUMBER;
        while (p < end && (is_digit(*p) || is_letter(*p) || *p == '.'))
            p++;
    } else if (is_letter(*p) || (*p == '.' && p + 1 < end && is_letter(p[1]))) {
        kind = *p == '.' ? LINK_WORD : LINK_NAME;
        for (p++; p < end && (is_digit(*p) || is_letter(*p)); p++)
            ;
    } else
        p++;
    *at = p;
    return (link_token){kind, {start, (size_t)(p - start)}};
}

bool link_is(link_token token, const char *text)
{
    return token.text.length == strlen(text) && memcmp(token.text.at, text, token.text.length) == 0;
}

/* ---- Pieces ---- */

typedef struct scanner {
    link_unit *unit;
    int number; /* of the unit */
    const char *at, *end;
    link_token token; /* the current one */
} scanner;

static void advance(scanner *s)
{
    s->token = link_next(&s->at, s->end);
}

static bool at_end(const scanner *s)
{
    return s->token.kind == LINK_END;
}

static link_span span_between(const char *from, const char *to)
{
    return (link_span){from, (size_t)(to - from)};
}

static void *grow(void *list, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return list;
    void *more = realloc(list, (2 * *capacity + 16) * size);
    if (more)
        *capacity = 2 * *capacity + 16;
    return more;
}

static bool add_piece(link_unit *u, link_piece piece)
{
    link_piece *more = grow(u->pieces, u->n_pieces, &u->piece_capacity, sizeof *more);
    if (!more)
        return false;
    u->pieces = more;
    more[u->n_pieces++] = piece;
    return true;
}

static bool add_symbol(link_unit *u, const link_symbol *symbol)
{
    link_symbol *more = grow(u->symbols, u->n_symbols, &u->symbol_capacity, sizeof *more);
    if (!more)
        return false;
    u->symbols = more;
    more[u->n_symbols++] = *symbol;
    return add_piece(u, (link_piece){.symbol = (int)u->n_symbols - 1});
}

/* Skips from an opening bracket to after the closing one. */
static void skip_group(scanner *s)
{
    int depth = 0;
    do {
        if (s->token.kind == LINK_PUNCT)
            depth += strchr("([{", *s->token.text.at) ? 1 : strchr(")]}", *s->token.text.at) ? -1 : 0;
        advance(s);
    } while (depth > 0 && !at_end(s));
}

static bool at_open(const scanner *s)
{
    return s->token.kind == LINK_PUNCT && strchr("([{", *s->token.text.at);
}

/* ---- Directives ---- */

static int parse_version(link_span text)
{
    int major = 0, minor = 0;
    size_t i = 0;
    for (; i < text.length && is_digit(text.at[i]) && major < 100; i++)
        major = 10 * major + (text.at[i] - '0');
    for (i++; i < text.length && is_digit(text.at[i]) && minor < 100; i++)
        minor = 10 * minor + (text.at[i] - '0');
    return 10 * major + (minor > 9 ? 9 : minor);
}

static void scan_target(scanner *s)
{
    do {
        advance(s);
        char name[24];
        pvm_target target;
        size_t n = s->token.text.length < sizeof name ? s->token.text.length : sizeof name - 1;
        memcpy(name, s->token.text.at, n);
        name[n] = 0;
        if (link_is(s->token, "debug"))
            s->unit->debug = true;
        else if (pvm_target_from_name(name, &target))
            s->unit->target = target;
        advance(s);
    } while (link_is(s->token, ","));
}

/* .file 1 "name" "name", 1, 2 */
static void scan_file(scanner *s)
{
    advance(s);
    long number = strtol(s->token.text.at, NULL, 10);
    if (number >= 0 && number < 65536 && number >= s->unit->files)
        s->unit->files = (int)number + 1;
    advance(s);
    while (s->token.kind == LINK_STRING)
        advance(s);
    while (link_is(s->token, ",")) {
        advance(s);
        advance(s);
    }
}

static void skip_statement(scanner *s)
{
    while (!at_end(s) && !link_is(s->token, ";"))
        advance(s);
    advance(s);
}

/* The directives of a module. Returns true if there was one; those of the header are skipped, the others
 * copied. */
static bool scan_directive(scanner *s, bool *ok)
{
    const char *start = s->token.text.at;
    if (link_is(s->token, ".version")) {
        advance(s);
        s->unit->version = parse_version(s->token.text);
        advance(s);
        return true;
    }
    if (link_is(s->token, ".target")) {
        scan_target(s);
        return true;
    }
    if (link_is(s->token, ".address_size")) {
        advance(s);
        advance(s);
        return true;
    }
    if (link_is(s->token, ".file"))
        scan_file(s);
    else if (link_is(s->token, ".section")) {
        while (!at_end(s) && !link_is(s->token, "{"))
            advance(s);
        skip_group(s);
    } else if (link_is(s->token, ".pragma") || link_is(s->token, ".alias"))
        skip_statement(s);
    else
        return false;
    *ok = add_piece(s->unit, (link_piece){span_between(start, s->token.text.at), -1});
    return true;
}

/* ---- Functions and variables ---- */

static link_linkage scan_linkage(scanner *s)
{
    static const struct {
        const char *word;
        link_linkage linkage;
    } words[] = {{".extern", LINKAGE_EXTERN},
                 {".weak", LINKAGE_WEAK},
                 {".common", LINKAGE_COMMON},
                 {".visible", LINKAGE_VISIBLE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (link_is(s->token, words[i].word)) {
            advance(s);
            return words[i].linkage;
        }
    return LINKAGE_LOCAL;
}

/* .func (results) name (parameters) .tuning ... { } or ; */
static bool scan_function(scanner *s, link_symbol *symbol)
{
    symbol->is_function = true;
    symbol->is_entry = link_is(s->token, ".entry");
    advance(s);
    if (link_is(s->token, "("))
        skip_group(s);
    symbol->name = s->token.text;
    symbol->prefix.length = (size_t)(s->token.text.at - symbol->prefix.at);
    if (s->token.kind != LINK_NAME)
        return false;
    while (!at_end(s) && !link_is(s->token, ";") && !link_is(s->token, "{"))
        if (link_is(s->token, ".pragma"))
            skip_statement(s);
        else
            advance(s);
    symbol->head = span_between(symbol->name.at, s->token.text.at);
    symbol->is_defined = link_is(s->token, "{");
    const char *body = s->token.text.at, *after = s->at;
    if (symbol->is_defined) {
        skip_group(s);
        /* up to the '}': the token after it has already been read */
        after = s->token.text.at;
        symbol->rest = span_between(body, after);
    } else
        advance(s);
    return add_symbol(s->unit, symbol);
}

/* Bytes of one element: ".v4", and the number in ".f32" or ".b8". */
static uint64_t element_bytes(link_token word, uint64_t bytes)
{
    const char *at = word.text.at + 1, *end = word.text.at + word.text.length;
    if (link_is(word, ".v2") || link_is(word, ".v4"))
        return bytes * (uint64_t)(at[1] - '0');
    if (!strchr("bfsu", *at) || at + 1 >= end || !is_digit(at[1]))
        return bytes;
    return bytes * (strtoul(at + 1, NULL, 10) / 8);
}

static uint64_t array_bytes(link_span head, uint64_t element)
{
    const char *at = head.at, *end = head.at + head.length;
    for (link_token t = link_next(&at, end); t.kind != LINK_END; t = link_next(&at, end))
        if (t.kind == LINK_NUMBER)
            element *= strtoull(t.text.at, NULL, 0);
    return element;
}

/* One name of a declaration, up to the ',' or ';' after it. */
static bool scan_declarator(scanner *s, link_symbol symbol, uint64_t element)
{
    const char *equals = NULL;
    symbol.name = s->token.text;
    if (s->token.kind != LINK_NAME)
        return false;
    while (!at_end(s) && !link_is(s->token, ",") && !link_is(s->token, ";")) {
        if (link_is(s->token, "="))
            equals = s->token.text.at;
        if (at_open(s))
            skip_group(s);
        else
            advance(s);
    }
    const char *stop = s->token.text.at;
    symbol.head = span_between(symbol.name.at, equals ? equals : stop);
    symbol.rest = span_between(equals ? equals : stop, stop);
    symbol.is_initialised = equals;
    symbol.is_defined = symbol.linkage != LINKAGE_EXTERN;
    symbol.bytes = array_bytes(symbol.head, element);
    return add_symbol(s->unit, &symbol);
}

/* .align 4 .global .attribute(...) .v4 .f32 a[2] = {...}, b; */
static bool scan_variable(scanner *s, link_symbol *symbol)
{
    uint64_t element = 1;
    bool shared = false;
    while (!at_end(s) && s->token.kind != LINK_NAME) {
        shared |= link_is(s->token, ".shared");
        if (s->token.kind == LINK_WORD)
            element = element_bytes(s->token, element);
        if (at_open(s))
            skip_group(s);
        else
            advance(s);
    }
    symbol->prefix.length = (size_t)(s->token.text.at - symbol->prefix.at);
    symbol->is_dynamic_shared = shared && symbol->linkage == LINKAGE_EXTERN;
    while (scan_declarator(s, *symbol, element)) {
        bool more = link_is(s->token, ",");
        advance(s);
        if (!more)
            return true;
    }
    return false;
}

static bool scan_symbol(scanner *s)
{
    link_symbol symbol = {.unit = s->number};
    symbol.linkage = scan_linkage(s);
    symbol.prefix.at = s->token.text.at;
    if (s->token.kind != LINK_WORD)
        return false;
    return link_is(s->token, ".func") || link_is(s->token, ".entry") ? scan_function(s, &symbol)
                                                                     : scan_variable(s, &symbol);
}

bool link_scan(link_unit *unit, int number)
{
    scanner s = {.unit = unit, .number = number, .at = unit->text, .end = unit->text + strlen(unit->text)};
    bool ok = true;
    advance(&s);
    while (ok && !at_end(&s))
        if (!scan_directive(&s, &ok))
            ok = scan_symbol(&s);
    return ok;
}

void link_unit_clear(link_unit *unit)
{
    free(unit->label);
    free(unit->text);
    free(unit->pieces);
    free(unit->symbols);
    *unit = (link_unit){0};
}
