/* Whether bytes are text. */
#ifndef QDNN_BASE_UTF8_H
#define QDNN_BASE_UTF8_H

#include <stddef.h>

/* How many bytes the character at `text` takes: 1 to 4, or 0 where no character of UTF-8 (RFC 3629: shortest form, no
 * surrogates, at most 10FFFF) begins within the `left` bytes there. */
size_t utf8_length(const char *text, size_t left);

/* The place of the first byte that belongs to no character; `bytes` where all do. */
size_t utf8_check(const char *text, size_t bytes);

#endif
