/* Growing pieces of text, and numbers as text. No printf: it obeys the locale, and it is slow. */
#include "ptxgen/internal.h"

#include <string.h>

char *text_room(ptx_builder *b, ptx_text *text, size_t n)
{
    if (text->capacity - text->size < n) {
        size_t capacity = text->capacity ? text->capacity : 256;
        while (capacity - text->size < n)
            capacity *= 2;
        char *data = builder_resize(&b->options, text->data, capacity);
        if (!data) {
            builder_no_memory(b);
            return NULL;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return text->data + text->size;
}

static void add_bytes(ptx_builder *b, ptx_text *text, const char *s, size_t n)
{
    char *at = text_room(b, text, n);
    if (!at || !n)
        return;
    memcpy(at, s, n);
    text->size += n;
}

void text_add(ptx_builder *b, ptx_text *text, const char *s)
{
    add_bytes(b, text, s, strlen(s));
}

void text_add_text(ptx_builder *b, ptx_text *text, const ptx_text *more)
{
    add_bytes(b, text, more->data, more->size);
}

void text_add_number(ptx_builder *b, ptx_text *text, uint64_t x)
{
    char digits[24];
    add_bytes(b, text, digits, (size_t)(put_decimal(digits, x) - digits));
}

void text_free(ptx_builder *b, ptx_text *text)
{
    if (text->data)
        builder_resize(&b->options, text->data, 0);
    *text = (ptx_text){0};
}

char *put_string(char *at, const char *s)
{
    size_t n = strlen(s);
    memcpy(at, s, n);
    return at + n;
}

char *put_decimal(char *at, uint64_t x)
{
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + x % 10);
    while (x /= 10);
    while (n)
        *at++ = digits[--n];
    return at;
}

char *put_hex(char *at, uint64_t x, int digits)
{
    while (digits--)
        *at++ = "0123456789ABCDEF"[x >> (4 * digits) & 15];
    return at;
}
