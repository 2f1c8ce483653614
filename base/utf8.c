/* UTF-8, as defined in RFC 3629. */
#include "base/utf8.h"

#include <stdint.h>

/* The first byte determines the length and, for some, restricts the second: this rejects overlong forms,
 * surrogates and numbers past 10FFFF. */
static const struct {
    uint8_t first, last, length, second_from, second_to;
} leads[] = {
    {0x00, 0x7F, 1, 0x80, 0xBF}, {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

size_t utf8_length(const char *text, size_t left)
{
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; left > 0 && i < sizeof leads / sizeof leads[0]; i++) {
        if (at[0] < leads[i].first || at[0] > leads[i].last)
            continue;
        size_t n = leads[i].length;
        if (n > left || (n > 1 && (at[1] < leads[i].second_from || at[1] > leads[i].second_to)))
            return 0;
        for (size_t k = 2; k < n; k++)
            if ((at[k] & 0xC0) != 0x80)
                return 0;
        return n;
    }
    return 0;
}

size_t utf8_check(const char *text, size_t bytes)
{
    size_t at = 0;
    for (size_t n; at < bytes && (n = utf8_length(text + at, bytes - at)) > 0; at += n)
        continue;
    return at;
}
