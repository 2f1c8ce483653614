/* Makes text from PTX safe for terminals, logs and JSON: what is not printable UTF-8 becomes \xHH. */
#include "../module.h"

#include <string.h>

/* The code point of the UTF-8 sequence at the start of `text`, and its length; length 0: there is none. */
static uint32_t decode(const unsigned char *text, size_t length, int *bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = text[0] < 0x80             ? 1
            : (text[0] & 0xE0) == 0xC0 ? 2
            : (text[0] & 0xF0) == 0xE0 ? 3
            : (text[0] & 0xF8) == 0xF0 ? 4
                                       : 0;
    uint32_t code = n == 1 ? text[0] : text[0] & (0x7Fu >> n);
    *bytes = 0;
    if (n == 0 || (size_t)n > length)
        return 0;
    for (int i = 1; i < n; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3F);
    }
    if (code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    *bytes = n;
    return code;
}

/* Marks that change the direction of text: a name could appear as another. */
static bool is_direction(uint32_t code)
{
    return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0x200E ||
           code == 0x200F || code == 0x061C;
}

int pvm_printable(const char *text, size_t length)
{
    int bytes;
    uint32_t code = length ? decode((const unsigned char *)text, length, &bytes) : 0;
    if (!length || !bytes || code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 ||
        code == 0x2029 || is_direction(code))
        return 0;
    return bytes;
}

size_t pvm_escape(char *to, size_t size, const char *text, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        int n = pvm_printable(text + i, length - i);
        unsigned char byte = (unsigned char)text[i];
        if (used + (n ? (size_t)n : 4) >= size)
            break;
        if (n)
            memcpy(to + used, text + i, (size_t)n);
        else
            memcpy(to + used, (char[4]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
        used += n ? (size_t)n : 4;
        i += n ? (size_t)n : 1;
    }
    if (size)
        to[used] = 0;
    return used;
}

void pvm_make_printable(char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length;) {
        int n = text[i] == '\n' || text[i] == '\t' ? 1 : pvm_printable(text + i, length - i);
        if (!n)
            text[i] = '?';
        i += n ? (size_t)n : 1;
    }
}
