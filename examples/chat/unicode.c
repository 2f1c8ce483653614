/* UTF-8, and what kind of character a code point is. */
#include "text.h"

static const uint32_t runs[] = {
#include "unicode.def"
};

/* Categories of a run whose letters take turns. */
enum { UPPER_LOWER = 10, LOWER_UPPER = 11 };

unicode_category unicode_category_of(uint32_t c)
{
    size_t from = 0, to = sizeof runs / sizeof runs[0];
    while (to - from > 1) { /* the last run that begins at c or before */
        size_t middle = from + (to - from) / 2;
        if (runs[middle] >> 4 <= c)
            from = middle;
        else
            to = middle;
    }
    uint32_t category = runs[from] & 15, odd = (c - (runs[from] >> 4)) & 1;
    if (category == UPPER_LOWER)
        return odd ? UNICODE_LOWER : UNICODE_UPPER;
    if (category == LOWER_UPPER)
        return odd ? UNICODE_UPPER : UNICODE_LOWER;
    return (unicode_category)category;
}

bool unicode_is_letter(uint32_t c)
{
    unicode_category category = unicode_category_of(c);
    return category >= UNICODE_UPPER && category <= UNICODE_LETTER;
}

bool unicode_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

/* By the first byte: how many there are, 0 for one that begins no character. */
static size_t length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

size_t utf8_read(const char *data, size_t size, uint32_t *c)
{
    const unsigned char *bytes = (const unsigned char *)data;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = length_of(bytes[0]);
    uint32_t value = length > 1 ? bytes[0] & (0x7fu >> length) : bytes[0];
    bool whole = length > 0 && length <= size;
    for (size_t i = 1; whole && i < length; i++) {
        whole = (bytes[i] & 0xc0) == 0x80;
        value = value << 6 | (bytes[i] & 0x3f);
    }
    if (!whole || value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        *c = 0xfffd;
        return 1;
    }
    *c = value;
    return length;
}

size_t utf8_write(uint32_t c, char out[4])
{
    static const uint32_t marks[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(marks[length] | c);
    return length;
}

size_t utf8_whole(const char *data, size_t size)
{
    for (size_t back = 1; back < 4 && back <= size; back++) {
        unsigned char byte = (unsigned char)data[size - back];
        if ((byte & 0xc0) != 0x80)
            return length_of(byte) > back ? size - back : size;
    }
    return size;
}
