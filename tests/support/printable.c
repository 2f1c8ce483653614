#include "support/printable.h"

#include "test.h"

#include <stdint.h>
#include <string.h>

const hostile_name hostile_names[] = {
    {"Escape", "w\033]0;title\007\033[2J\nFORGED"},
    {"CarriageReturn", "w.weight\rFORGED\b\b\v\f\t\nFORGED"},
    {"Del", "w\x7f\nFORGED"},
    {"C1", "w\xc2\x9b"
           "31m\xc2\x85\nFORGED"},
    {"Bidi", "w\xe2\x80\xaetxt\xe2\x81\xa6x\xe2\x80\x8f\xd8\x9c\nFORGED"},
    {"Separators", "w\xe2\x80\xa8\xe2\x80\xa9\nFORGED"},
};
const int n_hostile_names = sizeof hostile_names / sizeof hostile_names[0];

/* The code point at `text`, by the bit patterns of RFC 3629; -1 if it is not the shortest form of a character. */
static int32_t decode(const uint8_t *text, size_t left, size_t *used)
{
    static const struct {
        uint8_t mask, lead;
        size_t length;
        int32_t least;
    } forms[] = {{0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};
    *used = 1;
    for (int i = 0; i < 4; i++) {
        if ((text[0] & forms[i].mask) != forms[i].lead || forms[i].length > left)
            continue;
        int32_t code = text[0] & (uint8_t)~forms[i].mask;
        for (size_t k = 1; k < forms[i].length; k++) {
            if ((text[k] & 0xC0) != 0x80)
                return -1;
            code = code << 6 | (text[k] & 0x3F);
        }
        *used = forms[i].length;
        bool is_surrogate = code >= 0xD800 && code < 0xE000;
        return code >= forms[i].least && code <= 0x10FFFF && !is_surrogate ? code : -1;
    }
    return -1;
}

static bool may_be_shown(int32_t code)
{
    return code == '\n' || (code >= 0x20 && code < 0x7F) ||
           (code >= 0xA0 && code != 0x061C && code != 0x200E && code != 0x200F &&
            !(code >= 0x2028 && code <= 0x202E) && !(code >= 0x2066 && code <= 0x2069));
}

void check_printable(const char *text, size_t length)
{
    for (size_t i = 0, used; i < length; i += used) {
        int32_t code = decode((const uint8_t *)text + i, length - i, &used);
        if (may_be_shown(code))
            continue;
        FAIL("byte %zu, 0x%02x, is not printable (code point %d), after '%.*s'", i,
             (unsigned)(uint8_t)text[i], (int)code, i < 60 ? (int)i : 60, text + (i < 60 ? 0 : i - 60));
        return;
    }
    CHECK(strstr(text, "\nFORGED") == NULL);
    CHECK(strncmp(text, "FORGED", 6) != 0);
}
