/* The kernels and settings that texts are compared for. */
#ifndef QDNN_TEXTS_LIST_H
#define QDNN_TEXTS_LIST_H

#include <stdbool.h>

/* Lines of text, sorted, each once. */
typedef struct text_list {
    char **at;
    int count, room;
} text_list;

bool text_list_add(text_list *list, const char *line);
/* The lines of a file. */
bool text_list_read(text_list *list, const char *path);
void text_list_sort(text_list *list);
void text_list_free(text_list *list);

/* What the tests of assembly go through in the full build, and what `ptxgen --all` writes: recorded to that file. */
bool list_of_tests(const char *path);

#endif
