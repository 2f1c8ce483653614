/* Growing pieces of text, and numbers as text. Does not use printf, which is slow and depends on the
 * locale. */
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

/* Two digits at a time, from a table: most of the output is register numbers. */
char *put_decimal(char *at, uint64_t x)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    char digits[20], *from = digits + sizeof digits;
    for (; x > UINT32_MAX; x /= 100)
        memcpy(from -= 2, pairs + 2 * (x % 100), 2);
    uint32_t low = (uint32_t)x;
    for (; low >= 100; low /= 100)
        memcpy(from -= 2, pairs + 2 * (low % 100), 2);
    if (low >= 10)
        memcpy(from -= 2, pairs + 2 * low, 2);
    else
        *--from = (char)('0' + low);
    while (from < digits + sizeof digits)
        *at++ = *from++;
    return at;
}

char *put_hex(char *at, uint64_t x, int digits)
{
    while (digits--)
        *at++ = "0123456789ABCDEF"[x >> (4 * digits) & 15];
    return at;
}
