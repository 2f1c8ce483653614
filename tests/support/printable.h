/* What may reach a terminal or a log, decided without the code under test. */
#ifndef QDNN_TEST_PRINTABLE_H
#define QDNN_TEST_PRINTABLE_H

#include <stddef.h>

/* Names that must not be shown as they are, by what they try; each has a newline before FORGED. */
typedef struct hostile_name {
    const char *name, *text;
} hostile_name;
extern const hostile_name hostile_names[];
extern const int n_hostile_names;

/* Checks that the text is UTF-8 without controls (but newlines that end its lines), DEL, separators and marks of
 * direction, and that no line begins with FORGED. */
void check_printable(const char *text, size_t length);

#endif
