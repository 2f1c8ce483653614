/* A public header, taken apart: comments, and the declarations that they belong to. */
#ifndef QDNN_API_PAGES_HEADER_H
#define QDNN_API_PAGES_HEADER_H

#include <stdbool.h>
#include <stddef.h>

/* Parts of the header's text. */
typedef struct span {
    const char *text;
    size_t length;
} span;

typedef enum { ITEM_COMMENT, ITEM_DECLARATION } item_kind;

typedef struct item {
    item_kind kind;
    span text;
    bool follows; /* directly after the item in front of it: no empty line is between them */
} item;

typedef struct header {
    char *source;
    item *items;
    int count, room;
} header;

/* Reads and takes apart; false: it cannot be read, or there is no memory. */
bool header_read(const char *path, header *h);
void header_free(header *h);

/* What a declaration declares: the name of a function or type; empty for constants without a type of their own. */
span declared_name(span declaration);

#endif
