/* A source file with mistakes compiled in, each behind its number. */
#ifndef QDNN_MUTATE_SOURCES_REWRITE_H
#define QDNN_MUTATE_SOURCES_REWRITE_H

#include "mutate_sources/mistakes.h"
#include "tools/tool.h"

typedef struct numbered {
    int number; /* from 1: SOURCE_MUTANT */
    const mistake *mistake;
} numbered;

/* Appends the file with these mistakes (any order; places may lie within each other) and a mark at the beginning of each block. Every line keeps its
 * number, and messages name `root`/path. Mistakes whose places overlap without one containing the other are refused: false. */
bool rewrite(const source *s, const char *root, const numbered *list, int count, tool_text *out);

#endif
