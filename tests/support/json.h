/* A small reader of JSON for tests: is the text well formed, and what is at a path such as
 * "kernels.3.files.0.name"? */
#ifndef QDNN_TEST_JSON_H
#define QDNN_TEST_JSON_H

#include <stdbool.h>
#include <stddef.h>

bool json_valid(const char *text);
/* The value at the path: a string without its quotes and escapes, anything else as it is written. False when
 * it is not there. */
bool json_value(const char *text, const char *path, char *value, size_t size);
/* How many members or elements the value at the path has; -1 when it is not there or has none to count. "" is
 * the whole. */
int json_count(const char *text, const char *path);

#endif
