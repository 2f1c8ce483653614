/* What may be shown, and how the rest is written. */
#include "base/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static const char digits[] = "0123456789abcdef";

/* Controls, separators of lines and marks of direction; all lie in the first plane of Unicode. */
static const struct {
    uint16_t first, last;
} hidden[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F}, {0x061C, 0x061C},
    {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069},
};

/* The code point of the valid character at `text`. */
static uint32_t code_at(const char *text, size_t length)
{
    static const uint8_t first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (uint8_t)text[0] & first_bits[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((uint8_t)text[i] & 0x3F);
    return code;
}

static bool is_hidden(uint32_t code)
{
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return true;
    return false;
}

size_t escape_printable(const char *text, size_t left)
{
    size_t n = utf8_length(text, left);
    return n && !is_hidden(code_at(text, n)) ? n : 0;
}

size_t escape_text(char *to, size_t size, const char *text, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        size_t n = escape_printable(text + i, length - i);
        uint8_t byte = (uint8_t)text[i];
        const char *from = n ? text + i : (char[4]){'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        size_t more = n ? n : 4;
        if (used + more >= size)
            break;
        memcpy(to + used, from, more);
        used += more;
        i += n ? n : 1;
    }
    if (size)
        to[used] = 0;
    return used;
}

const char *escape_string(char *to, size_t size, const char *text)
{
    escape_text(to, size, text, strlen(text));
    return to;
}

size_t escape_json(char to[ESCAPE_JSON_MAX], const char *text, size_t left, size_t *used)
{
    static const char plain[] = "\"\\\n\t", short_form[] = "\"\\nt";
    const char *found = *text ? strchr(plain, *text) : NULL;
    size_t n = utf8_length(text, left);
    *used = n ? n : 1;
    if (found)
        return (size_t)((char *)memcpy(to, (char[2]){'\\', short_form[found - plain]}, 2) + 2 - to);
    if (escape_printable(text, left)) {
        memcpy(to, text, n);
        return n;
    }
    uint32_t code = n ? code_at(text, n) : 0xFFFD;
    memcpy(to,
           (char[6]){'\\', 'u', digits[code >> 12 & 15], digits[code >> 8 & 15], digits[code >> 4 & 15],
                     digits[code & 15]},
           6);
    return 6;
}
