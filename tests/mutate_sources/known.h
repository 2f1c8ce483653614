/* The list of mistakes that change nothing that a test could see, each reviewed and with its reason (equivalent.txt). */
#ifndef QDNN_MUTATE_SOURCES_KNOWN_H
#define QDNN_MUTATE_SOURCES_KNOWN_H

#include "mutate_sources/project.h"

/* Four lines each: the path, "- " and the line before, "+ " and the line after, "because " and the reason. Blank lines and lines that begin with
 * # are ignored. Lines are compared with single blanks (mistake_before), so the list does not depend on line numbers. */
typedef struct known {
    char *text; /* the file's, with ends of strings in it */
    struct known_row {
        const char *path, *before, *after, *reason;
    } * rows;
    int count;
} known;

/* Takes a copy. Returns false with the number of the line that is wrong. */
bool known_read(known *k, const char *text, int *line);
/* The reason; null if it is not listed. */
const char *known_reason(const known *k, const char *path, const char *before, const char *after);
void known_free(known *k);

#endif
