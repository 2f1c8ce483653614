/* Text from files, made safe for terminals, logs and JSON.
 *
 * Names and metadata of files, device names and messages of drivers are untrusted: an escape sequence in them would
 * reach the terminal, a newline would forge a line of a log, a mark of direction would show one name as another. What
 * is escaped: C0 and C1 controls (newline and tab too), DEL, line and paragraph separators, marks that change the
 * direction of text, and bytes that are not UTF-8. All other UTF-8 stays as it is. */
#ifndef QDNN_BASE_ESCAPE_H
#define QDNN_BASE_ESCAPE_H

#include <stddef.h>

/* The number of bytes of the character at `text`, 1 to 4, if it may be shown as it is; else 0. */
size_t escape_printable(const char *text, size_t left);

/* Writes the text, with each byte that may not be shown as \xHH. It ends before the first character that does not fit;
 * the result is terminated unless `size` is 0. Returns its length. */
size_t escape_text(char *to, size_t size, const char *text, size_t length);
/* The same for a C string; returns `to`. */
const char *escape_string(char *to, size_t size, const char *text);

/* Escapes the first character of the text as it stands in a JSON string (and in a C string, but for characters that C
 * does not allow as \u): \uHHHH, so that a reader gets it back; a byte that is not UTF-8, which JSON cannot hold,
 * becomes U+FFFD. Returns the length written, at most ESCAPE_JSON_MAX, without a terminating zero; *used receives the
 * number of bytes of the text. `left` must not be 0. */
enum { ESCAPE_JSON_MAX = 6 };
size_t escape_json(char to[ESCAPE_JSON_MAX], const char *text, size_t left, size_t *used);

#endif
