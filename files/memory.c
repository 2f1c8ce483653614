/* Memory that belongs to a file, and its growing lists. */
#include "files/internal.h"

#include <limits.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum {
    PIECE_HEAD = (sizeof(piece) + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t)
};

void *file_alloc(struct qdnnFile *f, size_t bytes)
{
    piece *p = bytes < SIZE_MAX - PIECE_HEAD ? alloc_new(PIECE_HEAD + bytes) : NULL;
    if (!p)
        return NULL;
    p->before = f->pieces;
    f->pieces = p;
    return (char *)p + PIECE_HEAD;
}

void file_free_pieces(struct qdnnFile *f)
{
    for (piece *p = f->pieces, *before; p; p = before) {
        before = p->before;
        alloc_free(p);
    }
    f->pieces = NULL;
}

char *file_copy(struct qdnnFile *f, const char *text, size_t bytes)
{
    char *copy = file_alloc(f, bytes + 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *file_print(struct qdnnFile *f, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return file_copy(f, text, strlen(text));
}

/* Makes room for one more element; the list may move. */
static bool grow(void **list, int used, int *room, size_t element)
{
    if (used < *room)
        return true;
    if (*room > INT_MAX / 2)
        return false;
    int more = *room ? 2 * *room : 64;
    void *grown = alloc_resize(*list, (size_t)more * element);
    if (!grown)
        return false;
    *list = grown;
    *room = more;
    return true;
}

#define ADD(list, count, room)                                                                               \
    void *all = f->list;                                                                                     \
    if (!grow(&all, f->count, &f->room, sizeof *f->list))                                                    \
        return NULL;                                                                                         \
    f->list = all;                                                                                           \
    memset(&f->list[f->count], 0, sizeof *f->list);                                                          \
    return &f->list[f->count++]

qdnnFileTensor_t *file_add_tensor(struct qdnnFile *f)
{
    ADD(tensors, n_tensors, tensors_room);
}

qdnnFileWeight_t *file_add_weight(struct qdnnFile *f)
{
    ADD(weights, n_weights, weights_room);
}

qdnnFileMetadata_t *file_add_metadata(struct qdnnFile *f)
{
    ADD(metadata, n_metadata, metadata_room);
}
