/* Parses a copy of the text in place: escapes in strings are replaced, the closing quote of a string becomes
 * its terminating zero, and the character after a number becomes a zero once it has been read. */
#include "base/json.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { VALUES_A_BLOCK = 512 };

/* Memory grows in blocks, so that values never move. */
typedef struct block {
    struct block *before;
    json_value values[VALUES_A_BLOCK];
} block;

struct json {
    char *text;
    block *last;
    size_t used; /* of the last block */
    const json_value *root;
};

typedef struct reader {
    json *doc;
    char *at;  /* the text ends with a zero */
    char *end; /* of the text */
    char *cut; /* the end of a number, set to zero when the character there has been read */
    int depth;
    size_t values_left; /* that may still be read */
    json_error *error;
} reader;

static bool fail(reader *r, const char *reason)
{
    r->error->reason = reason;
    return false;
}

static json_value *new_value(reader *r)
{
    json *doc = r->doc;
    if (r->values_left == 0) {
        fail(r, "too many values for its size");
        return NULL;
    }
    r->values_left--;
    if (!doc->last || doc->used == VALUES_A_BLOCK) {
        block *b = alloc_new(sizeof *b);
        if (!b) {
            r->error->no_memory = true;
            fail(r, "the host is out of memory");
            return NULL;
        }
        b->before = doc->last;
        doc->last = b;
        doc->used = 0;
    }
    json_value *v = &doc->last->values[doc->used++];
    *v = (json_value){0};
    return v;
}

static void skip_space(reader *r)
{
    while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')
        r->at++;
}

/* Consumes and returns the next character that is not white space. */
static char take(reader *r)
{
    skip_space(r);
    char c = *r->at;
    r->at += c != 0;
    if (r->cut)
        *r->cut = 0;
    r->cut = NULL;
    return c;
}

/* ---- strings ---- */

static bool read_hex(reader *r, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = *r->at ? strchr(digits, *r->at) : NULL;
        if (!digit)
            return fail(r, "\\u needs four hexadecimal digits");
        *code = *code << 4 | ((unsigned)(digit - digits) & 15);
    }
    return true;
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *out++ = (char)((0xFF00u >> (more + 1) & 0xFF) | code >> 6 * more);
    while (more-- > 0)
        *out++ = (char)(0x80 | (code >> 6 * more & 63));
    return out;
}

/* Reads the digits after \u: one code, or two that form a surrogate pair. */
static bool read_code(reader *r, char **out)
{
    unsigned code, low;
    if (!read_hex(r, &code))
        return false;
    if (code >= 0xD800 && code < 0xDC00) {
        if (strncmp(r->at, "\\u", 2) != 0)
            return fail(r, "half of a surrogate pair");
        r->at += 2;
        if (!read_hex(r, &low))
            return false;
        if (low < 0xDC00 || low > 0xDFFF)
            return fail(r, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return fail(r, "half of a surrogate pair");
    }
    if (code == 0)
        return fail(r, "a NUL in a string");
    *out = put_utf8(*out, code);
    return true;
}

static bool read_escape(reader *r, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *r->at;
    const char *which = c ? strchr(from, c) : NULL;
    r->at += c != 0;
    if (c == 'u')
        return read_code(r, out);
    if (!which)
        return fail(r, "invalid escape");
    *(*out)++ = to[which - from];
    return true;
}

/* Called after the opening quote. */
static bool read_string(reader *r, const char **text)
{
    char *out = r->at;
    *text = out;
    while (*r->at != '"') {
        unsigned char c = (unsigned char)*r->at;
        if (c < ' ')
            return fail(r, c ? "a control character in a string" : "unterminated string");
        size_t n = utf8_length(r->at, (size_t)(r->end - r->at));
        if (n == 0)
            return fail(r, "a string that is not UTF-8");
        if (c != '\\') {
            memmove(out, r->at, n);
            out += n;
        }
        r->at += n;
        if (c == '\\' && !read_escape(r, &out))
            return false;
    }
    r->at++;
    *out = 0;
    return true;
}

/* ---- numbers and words ---- */

static bool skip_digits(reader *r)
{
    const char *from = r->at;
    while (*r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > from;
}

/* -0.25e+10: no leading zeros, digits on both sides of the point. */
static bool read_number(reader *r, json_value *v)
{
    v->kind = JSON_NUMBER;
    v->text = r->at;
    r->at += *r->at == '-';
    const char *digits = r->at;
    bool ok = skip_digits(r) && (*digits != '0' || r->at == digits + 1);
    if (ok && *r->at == '.') {
        r->at++;
        ok = skip_digits(r);
    }
    if (ok && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        r->at += *r->at == '+' || *r->at == '-';
        ok = skip_digits(r);
    }
    r->cut = r->at;
    return ok || fail(r, "invalid number");
}

static bool read_word(reader *r, json_value *v)
{
    static const struct {
        const char *text;
        json_kind kind;
    } words[] = {{"true", JSON_BOOL}, {"false", JSON_BOOL}, {"null", JSON_NULL}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i].text);
        if (strncmp(r->at, words[i].text, n) == 0) {
            v->kind = words[i].kind;
            v->text = words[i].text;
            r->at += n;
            return true;
        }
    }
    return fail(r, *r->at ? "a value is missing" : "the text ends too early");
}

/* ---- values ---- */

static json_value *read_value(reader *r, const char *name);

static json_value *read_member(reader *r)
{
    const char *name;
    if (take(r) != '"') {
        fail(r, "the name of a member is missing");
        return NULL;
    }
    if (!read_string(r, &name))
        return NULL;
    if (take(r) != ':') {
        fail(r, "':' is missing after the name of a member");
        return NULL;
    }
    return read_value(r, name);
}

/* Called after the opening bracket. */
static bool read_list(reader *r, json_value *v, char close)
{
    const json_value **place = &v->first;
    if (r->depth == JSON_DEPTH_MAX)
        return fail(r, "nested too deeply");
    skip_space(r);
    if (*r->at == close) {
        r->at++;
        return true;
    }
    r->depth++;
    for (;;) {
        json_value *child = close == '}' ? read_member(r) : read_value(r, NULL);
        if (!child)
            return false;
        *place = child;
        place = &child->next;
        v->count++;
        char c = take(r);
        if (c == close)
            break;
        if (c != ',')
            return fail(r, c ? "',' or the closing bracket is missing after a value"
                             : "the text ends too early");
    }
    r->depth--;
    return true;
}

static bool read_into(reader *r, json_value *v)
{
    skip_space(r);
    char c = *r->at;
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, v);
    if (c != '"' && c != '[' && c != '{')
        return read_word(r, v);
    r->at++;
    v->kind = c == '"' ? JSON_STRING : c == '[' ? JSON_ARRAY : JSON_OBJECT;
    return c == '"' ? read_string(r, &v->text) : read_list(r, v, c == '[' ? ']' : '}');
}

static json_value *read_value(reader *r, const char *name)
{
    json_value *v = new_value(r);
    if (!v)
        return NULL;
    v->name = name;
    v->text = "";
    return read_into(r, v) ? v : NULL;
}

static bool read_document(reader *r, size_t bytes)
{
    json *doc = r->doc;
    doc->root = read_value(r, NULL);
    if (!doc->root)
        return false;
    if (take(r) || r->at != doc->text + bytes)
        return fail(r, "extra text after the value");
    return true;
}

/* A copy of the text and room for values; null, with the reason, if there is no memory. */
static json *new_document(const char *text, size_t bytes, json_error *error)
{
    *error = (json_error){.no_memory = true, .line = 1, .reason = "the host is out of memory"};
    json *doc = alloc_new(sizeof *doc);
    char *copy = doc ? alloc_new(bytes + 1) : NULL;
    if (!copy) {
        alloc_free(doc);
        return NULL;
    }
    memcpy(copy, text, bytes);
    doc->text = copy;
    error->no_memory = false;
    return doc;
}

static void locate_error(const reader *r, const char *text)
{
    r->error->offset = (size_t)(r->at - r->doc->text);
    for (const char *p = text; p < text + r->error->offset; p++)
        r->error->line += *p == '\n';
}

json *json_parse(const char *text, size_t bytes, json_error *error)
{
    json *doc = new_document(text, bytes, error);
    if (!doc)
        return NULL;
    reader r = {.doc = doc,
                .at = doc->text,
                .end = doc->text + bytes,
                .values_left = JSON_VALUES_FREE + bytes / 4,
                .error = error};
    if (read_document(&r, bytes))
        return doc;
    locate_error(&r, text);
    json_free(doc);
    return NULL;
}

/* ---- member by member ---- */

/* Frees all values but those of one block, which is used again. */
static void forget_values(json *doc)
{
    for (block *b = doc->last; b && b->before; b = doc->last) {
        doc->last = b->before;
        alloc_free(b);
    }
    doc->used = 0;
}

static bool read_each(reader *r, size_t values_max, json_member_reader read, void *user)
{
    if (take(r) != '{')
        return fail(r, "the object is missing");
    skip_space(r);
    if (*r->at == '}') {
        r->at++;
        return true;
    }
    for (char c = ','; c != '}';) {
        forget_values(r->doc);
        r->values_left = values_max;
        r->depth = 1;
        const json_value *member = read_member(r);
        if (!member)
            return false;
        c = take(r); /* ends a number */
        if (c != ',' && c != '}')
            return fail(r, c ? "',' or the closing bracket is missing after a value"
                             : "the text ends too early");
        if (!read(user, member)) {
            r->error->reason = NULL;
            return false;
        }
    }
    return true;
}

bool json_read_members(const char *text, size_t bytes, size_t values_max, json_member_reader read, void *user,
                       json_error *error)
{
    json *doc = new_document(text, bytes, error);
    if (!doc)
        return false;
    reader r = {.doc = doc, .at = doc->text, .end = doc->text + bytes, .error = error};
    bool ok = read_each(&r, values_max, read, user);
    if (ok && (take(&r) || r.at != doc->text + bytes))
        ok = fail(&r, "extra text after the value");
    if (!ok && error->reason)
        locate_error(&r, text);
    json_free(doc);
    return ok;
}

void json_free(json *doc)
{
    if (!doc)
        return;
    for (block *b = doc->last, *before; b; b = before) {
        before = b->before;
        alloc_free(b);
    }
    alloc_free(doc->text);
    alloc_free(doc);
}

const json_value *json_root(const json *doc)
{
    return doc ? doc->root : NULL;
}

/* ---- looking up ---- */

/* The member of that name (the first if there are several), or the element of that number. */
static const json_value *child(const json_value *v, const char *step, size_t length)
{
    const json_value *c = v->first;
    if (v->kind == JSON_OBJECT) {
        while (c && (strncmp(c->name, step, length) != 0 || c->name[length]))
            c = c->next;
        return c;
    }
    if (length == 0 || length > 9 || strspn(step, "0123456789") < length)
        return NULL;
    for (unsigned long index = strtoul(step, NULL, 10); c && index > 0; index--)
        c = c->next;
    return c;
}

const json_value *json_at(const json_value *value, const char *path)
{
    while (value && *path) {
        size_t length = strcspn(path, ".");
        value = child(value, path, length);
        path += length + (path[length] == '.');
    }
    return value;
}

const char *json_string(const json_value *value, const char *path)
{
    const json_value *v = json_at(value, path);
    return v && v->kind == JSON_STRING ? v->text : NULL;
}

bool json_u64(const json_value *value, const char *path, uint64_t *number)
{
    const json_value *v = json_at(value, path);
    if (!v || v->kind != JSON_NUMBER || v->text[strspn(v->text, "0123456789")])
        return false;
    errno = 0;
    *number = strtoull(v->text, NULL, 10);
    return errno == 0;
}

/* strtod expects the decimal point of the locale. */
bool json_f64(const json_value *value, const char *path, double *number)
{
    enum { DIGITS_MAX = 400 };
    const json_value *v = json_at(value, path);
    const char *point = localeconv()->decimal_point;
    char text[DIGITS_MAX + 16];
    if (!v || v->kind != JSON_NUMBER || strlen(v->text) > DIGITS_MAX || strlen(point) > 8)
        return false;
    size_t whole = strcspn(v->text, ".");
    memcpy(text, v->text, whole);
    text[whole] = 0;
    if (v->text[whole])
        strcat(strcat(text, point), v->text + whole + 1);
    *number = strtod(text, NULL);
    return true;
}

bool json_bool(const json_value *value, const char *path, bool *answer)
{
    const json_value *v = json_at(value, path);
    if (!v || v->kind != JSON_BOOL)
        return false;
    *answer = v->text[0] == 't';
    return true;
}
