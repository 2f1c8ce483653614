/* Validation of UTF-8. */
#ifndef QDNN_BASE_UTF8_H
#define QDNN_BASE_UTF8_H

#include <stddef.h>

/* The number of bytes of the character at `text`: 1 to 4, or 0 if the `left` bytes there do not begin with a
 * valid UTF-8 character (RFC 3629: shortest form, no surrogates, at most 10FFFF). */
size_t utf8_length(const char *text, size_t left);

/* The offset of the first byte that is not part of a valid character; `bytes` if there is none. */
size_t utf8_check(const char *text, size_t bytes);

#endif
