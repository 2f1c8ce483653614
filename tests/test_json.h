/* What tests of programs ask of the JSON that they print; in test_json.c, beside the tests of the reader. */
#ifndef QDNN_TEST_JSON_H
#define QDNN_TEST_JSON_H

#include "base/json.h"

/* Parses the text, which must be JSON; otherwise reports a failure and returns an empty document. json_free frees
 * it. */
json *read_json(const char *text);
/* What is at the path: a string, a number or a word. */
void check_json(const json *doc, const char *path, const char *expected);
void check_json_number(const json *doc, const char *path, unsigned long long expected);
/* How many members or elements the value at the path has; -1 where there is none. */
int json_count(const json *doc, const char *path);

#endif
